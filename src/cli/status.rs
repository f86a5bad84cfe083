//! `helenus status`: the figures of a running server, once or every second.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, servers};
use crate::config::Values;
use crate::server::admin::client;
use helenus_engine::views::print;

/// Time between two pages of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Begins a page at the top of a terminal, and removes the last one.
const NEW_PAGE: &str = "\x1b[H\x1b[2J\x1b[3J";

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    let switch = |name: &'static str, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    command
        .arg(switch("json", "One JSON object, for programs"))
        .arg(switch("watch", "Print them again every second, until Ctrl-C"))
}

/// Requests the figures from the admin port of a running server, and prints them.
///
/// # Errors
/// The server cannot be found or does not answer. While it is watched, its failures are printed.
pub(super) fn run(values: &Values, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let is_json = matches.get_flag("json");
    let mut page = page(values, is_json)?;
    let mut out = io::stdout().lock();
    if !matches.get_flag("watch") {
        out.write_all(page.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let begin = if out.is_terminal() && !is_json { NEW_PAGE } else { "" };
    loop {
        out.write_all(begin.as_bytes())?;
        out.write_all(page.as_bytes())?;
        out.flush()?;
        std::thread::sleep(WATCH_EVERY);
        page = self::page(values, is_json).unwrap_or_else(|error| {
            if is_json {
                format!("{}\n", serde_json::json!({"error": error.to_string()}))
            } else {
                format!("helenus: {error}\n")
            }
        });
    }
}

/// The figures as they are now.
fn page(values: &Values, is_json: bool) -> Result<String, Failure> {
    let (address, token) = servers::admin(values)?;
    let everything = client::everything(address, token.as_deref())?;
    if is_json {
        return Ok(format!("{}\n", serde_json::to_string(&everything)?));
    }
    Ok(print::text(&everything))
}
