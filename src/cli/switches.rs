//! A hint at a switch whose value is separated from it: switches take theirs behind an equals sign, so that a switch without a value may
//! stand before a verb.

use crate::config::SETTINGS;

/// What to type in place of the first switch that a word of a value follows. `None` means that there is none.
pub(super) fn separated(arguments: impl Iterator<Item = String>) -> Option<String> {
    let arguments: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
    arguments.windows(2).find_map(|pair| {
        let [switch, value] = pair else { return None };
        let name = switch.strip_prefix("--")?;
        let is_switch = |name: &str| {
            let mut settings = SETTINGS.iter();
            settings.any(|setting| setting.name == name && setting.value == "BOOL")
        };
        let value = match value.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" => "true",
            "false" | "off" | "no" => "false",
            _ => return None,
        };
        is_switch(name).then(|| format!("--{name} takes its value behind an equals sign: type --{name}={value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_switch_before_a_truth_value_gets_a_hint() {
        let of = |line: &str| separated(line.split(' ').map(str::to_owned));
        let hint = |name: &str, value: &str| {
            Some(format!(
                "--{name} takes its value behind an equals sign: type --{name}={value}"
            ))
        };
        assert_eq!(of("helenus --login false"), hint("login", "false"));
        assert_eq!(of("helenus dev --metering OFF --login yes"), hint("metering", "false"));
        for other in [
            "helenus --login=false",
            "helenus --login dev",
            "helenus --listen false",
            "helenus run -- helenus --login true",
            "helenus",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
