//! `helenus feed KEYSPACE.TABLE`: the change feed of a table as lines of JSON.
//!
//! It reads the stream of the admin port ([`crate::server::admin`]): a line is the data of an event.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, servers, terminal};
use crate::config::Values;
use crate::server::admin::client::{self, Event};

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("table")
                .value_name("KEYSPACE.TABLE")
                .required(true)
                .help("The table; case-sensitive names need no quotes"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("START")
                .default_value("start")
                .help("Where to begin: start, now, a time such as 2024-05-01T00:00:00Z, or behind the record with this position"),
        )
        .arg(
            Arg::new("follow")
                .long("follow")
                .action(ArgAction::SetTrue)
                .help("Wait for more changes"),
        )
        .arg(
            Arg::new("full")
                .long("full")
                .action(ArgAction::SetTrue)
                .help("Print every change, deletes too, with the row before and after it"),
        )
        .after_help(
            "Each line is a JSON object: `current`, the row as it is now, and `position`, where --from goes on after it. The last \
             position is also said on standard error. With --full a line is a change: `current` and `previous`, the row after and before \
             it, and `metadata`.",
        )
}

/// Prints the records of the feed.
///
/// # Errors
/// There is no server, no such table, no feed; the stream was cut off.
pub(super) fn run(values: &Values, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = |name| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let (keyspace, table) = text("table")
        .split_once('.')
        .ok_or("name the table as KEYSPACE.TABLE")?;
    let (place, token) = servers::admin(values)?;
    let path = format!(
        "/api/feed/{}/{}?from={}&follow={}&full={}",
        encoded(keyspace),
        encoded(table),
        encoded(text("from")),
        matches.get_flag("follow"),
        matches.get_flag("full")
    );
    let mut out = io::stdout().lock();
    let (mut position, mut end) = (String::new(), None);
    let take = |event: Event| {
        if !event.id.is_empty() {
            position = event.id;
        }
        match event.kind.as_str() {
            "" if event.data.is_empty() => Ok(()),
            "" => {
                writeln!(out, "{}", event.data)?;
                out.flush()?;
                Ok(())
            }
            "error" => Err(Failure::from(event.data)),
            kind => {
                end = Some(kind.to_owned());
                Ok(())
            }
        }
    };
    let outcome = client::events(&place, token.as_deref(), &path, take);
    if !position.is_empty() {
        terminal::say(format_args!("helenus: the position is {position}"));
    }
    match outcome? {
        (200, _) if end.is_some() => Ok(ExitCode::SUCCESS),
        (200, _) => Err("the feed was cut off: continue with --from and the last position".into()),
        (_, body) if !body.trim().is_empty() => Err(body.trim().into()),
        (status, _) => Err(format!("{place} answers {status}").into()),
    }
}

/// A percent-encoded text (RFC 3986 §2.1).
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_times_are_encoded() {
        assert_eq!(encoded("2024-05-01 10:00+01"), "2024-05-01%2010%3A00%2B01");
        assert_eq!(encoded("Größe/\"x\""), "Gr%C3%B6%C3%9Fe%2F%22x%22");
    }
}
