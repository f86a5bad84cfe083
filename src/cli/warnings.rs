//! Warnings about settings without effect: misspelt variables, settings of the other profile.

use crate::config::{Origin, SETTINGS, Values, nearest, variable};

/// Variables with the prefix `HELENUS_` that belong to scripts, tests and the configuration file's name.
const OTHERS: &[&str] = &[
    "HELENUS_CONFIG",
    "HELENUS_BIN",
    "HELENUS_BUILD_CACHE",
    "HELENUS_LOGIN",
    super::running::RUN_RECORD,
];

/// Prefixes of such variables.
const OTHER_PREFIXES: &[&str] = &["HELENUS_COMPAT_", "HELENUS_SIMULATE_", "HELENUS_FUZZ_"];

/// Settings that only the profile `cosmos` reads.
const COSMOS_ONLY: &[&str] = &[
    "account",
    "account-key",
    "account-consistency",
    "region",
    "cosmos-strict",
];

/// Warnings about variables of the environment, a sentence each.
pub fn of_environment(names: impl Iterator<Item = String>) -> Vec<String> {
    let unknown = names.filter(|name| {
        name.starts_with("HELENUS_")
            && !OTHERS.contains(&name.as_str())
            && !OTHER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && !SETTINGS.iter().any(|setting| variable(setting.name) == *name)
    });
    let mut warnings: Vec<String> = unknown.map(|name| unknown_variable(&name)).collect();
    warnings.sort();
    warnings
}

fn unknown_variable(name: &str) -> String {
    match nearest(name, SETTINGS.iter().map(|setting| variable(setting.name))) {
        Some(known) => format!("{name} is no setting and is ignored; did you mean {known}?"),
        None => format!("{name} is no setting and is ignored; `helenus settings` lists all settings"),
    }
}

/// Warnings about settings without effect in the profile that was chosen. A setting equal to its default, as `helenus
/// settings` writes it, needs none.
pub fn of_profile(values: &Values, is_cosmos: bool) -> Vec<String> {
    if is_cosmos {
        return Vec::new();
    }
    let given = values.iter().filter(|(setting, values, origin)| {
        let is_default = setting.default.is_some_and(|default| *values == [default]);
        COSMOS_ONLY.contains(&setting.name) && !values.is_empty() && !is_default && **origin != Origin::Default
    });
    given
        .map(|(setting, _, origin)| {
            let name = setting.name;
            format!("{name} ({origin}) has no effect without --profile cosmos")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_named_with_the_nearest_setting() {
        let names = [
            "HELENUS_LISTN",
            "HELENUS_DATA",
            "HELENUS_COMPAT_CACHE",
            "PATH",
            "HELENUS_ZZZ",
        ];
        let warnings = of_environment(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(
            warnings,
            [
                "HELENUS_LISTN is no setting and is ignored; did you mean HELENUS_LISTEN?",
                "HELENUS_ZZZ is no setting and is ignored; `helenus settings` lists all settings",
            ]
        );
    }
}
