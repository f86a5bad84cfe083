//! Warnings about settings without effect: misspelt variables, settings of the other profile.

use crate::config::{Origin, SETTINGS, Values, variable};

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
    let nearest = SETTINGS
        .iter()
        .map(|setting| variable(setting.name))
        .min_by_key(|known| distance(known, name))
        .filter(|known| distance(known, name) <= 2);
    match nearest {
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

/// Edits of one character, or swaps of two neighbours, between two texts (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX);
            let above = rows.last().map_or(&[][..], Vec::as_slice);
            let mut best = (at(above, j + 1) + 1)
                .min(at(&row, j) + 1)
                .min(at(above, j) + usize::from(a != b));
            let is_swap = i > 0 && j > 0 && left.get(i - 1) == Some(b) && right.get(j - 1) == Some(a);
            if is_swap && let Some(before) = rows.get(i - 1) {
                best = best.min(at(before, j - 1) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
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

    #[test]
    fn distances_count_edits_and_swaps() {
        for (left, right, edits) in [
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }
}
