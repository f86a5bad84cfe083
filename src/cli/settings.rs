//! `helenus settings`: prints every setting with its value and origin, as a configuration file.

use std::io::Write;
use std::process::ExitCode;

use super::{Failure, serving::list};
use crate::config::{Config, Values, is_hidden};

/// Prints every setting as TOML, with its origin as a comment, and validates them.
///
/// # Errors
/// A value is invalid, or standard output is closed.
pub(super) fn print(values: &Values) -> Result<ExitCode, Failure> {
    let mut out = std::io::stdout().lock();
    for (setting, values, origin) in values.iter() {
        let quoted: Vec<String> = values
            .iter()
            .map(|value| toml::Value::from(value.as_str()).to_string())
            .collect();
        let value = match (quoted.as_slice(), setting.repeatable) {
            (_, _) if is_hidden(setting, values) => {
                writeln!(out, "# {} is set  # {origin}", setting.name)?;
                continue;
            }
            ([], _) => {
                writeln!(out, "# {} is not set", setting.name)?;
                continue;
            }
            ([one], false) => one.clone(),
            (all, _) => format!("[{}]", all.join(", ")),
        };
        writeln!(out, "{} = {value}  # {origin}", setting.name)?;
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
