//! `helenus settings`: prints every setting with its meaning, value and origin, as a configuration file. Only what was set is a line of
//! it; a default is a comment, so that a file pins none.

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, serving::list};
use crate::config::{Config, Origin, Setting, Values, is_hidden};

/// Kinds of values that are numbers.
const NUMBERS: &[&str] = &[
    "BYTES",
    "COUNT",
    "MILLISECONDS",
    "NUMBER",
    "PERCENT",
    "SECONDS",
    "UNITS",
];

/// The arguments of the verb.
pub(super) fn arguments(command: Command) -> Command {
    command.arg(
        Arg::new("changed")
            .long("changed")
            .action(ArgAction::SetTrue)
            .help("Only the settings that were set"),
    )
}

/// Prints the settings as [`arguments`] say.
///
/// # Errors
/// As [`print`].
pub(super) fn run(values: &Values, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    print(values, matches.get_flag("changed"))
}

/// Prints the settings as TOML, with their origins as comments, and validates them.
///
/// # Errors
/// A value is invalid, or standard output is closed.
pub(super) fn print(values: &Values, only_changed: bool) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    for (setting, values, origin) in values.iter() {
        let is_set = matches!(origin, Origin::File(_) | Origin::Environment(_) | Origin::CommandLine);
        if only_changed && !is_set {
            continue;
        }
        if !only_changed {
            writeln!(out, "# {}", setting.help)?;
        }
        let name = setting.name;
        let space = if only_changed { "" } else { "\n" };
        if is_hidden(setting, values) {
            writeln!(out, "# {name} is set  # {origin}{space}")?;
        } else if values.is_empty() {
            writeln!(out, "# {name} is not set{space}")?;
        } else {
            let comment = if is_set { "" } else { "# " };
            writeln!(out, "{comment}{name} = {}  # {origin}{space}", of_toml(setting, values))?;
        }
    }
    let config = Config::new(values)?;
    writeln!(
        out,
        "# data in {}, served on {}",
        config.data,
        list(&config.server.listen)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The value of a setting in TOML, in its own type.
fn of_toml(setting: &Setting, values: &[String]) -> String {
    let typed: Vec<String> = values.iter().map(|value| typed(setting, value).to_string()).collect();
    match (typed.as_slice(), setting.repeatable) {
        ([one], false) => one.clone(),
        (all, _) => format!("[{}]", all.join(", ")),
    }
}

fn typed(setting: &Setting, value: &str) -> toml::Value {
    let text = || toml::Value::from(value);
    match setting.value {
        "BOOL" => value.parse::<bool>().map_or_else(|_| text(), toml::Value::from),
        kind if NUMBERS.contains(&kind) => value.parse::<i64>().map_or_else(|_| text(), toml::Value::from),
        _ => text(),
    }
}
