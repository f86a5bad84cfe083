//! `helenus lint`: advice on a data model.

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::{Failure, seed};
use crate::advice::{self, Script};
use crate::clock::Clock;
use crate::config::{Config, Origin, Values};
use crate::permissions;

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    command
        .arg(Arg::new("schema").value_name("SCHEMA.CQL").help(
            "Statements that make the schema; with --data the data there is looked at too, while no server has it open",
        ))
        .arg(
            option("queries", "FILE")
                .requires("schema")
                .help("Statements that are asked, with ? where values are"),
        )
        .arg(
            option("format", "FORMAT")
                .requires("schema")
                .value_parser(["text", "json", "sarif"])
                .default_value("text")
                .help("For people, for programs, or SARIF 2.1.0"),
        )
        .arg(
            option("fail-on", "LEVEL")
                .requires("schema")
                .value_parser(["note", "warning", "error", "never"])
                .default_value("error")
                .help("Fail when something of this level or a higher one is found"),
        )
        .arg(
            option("keyspace", "NAME")
                .requires("schema")
                .default_value("app")
                .help("Where tables without a keyspace are, until a USE"),
        )
}

/// Looks at a data model, and at data where some is given on the command line.
///
/// # Errors
/// A file cannot be read, or the data cannot be opened.
pub(super) fn run(values: &Values, matches: &ArgMatches, schema: &str) -> Result<ExitCode, Failure> {
    let read = |file: &str| match std::fs::read_to_string(file) {
        Ok(text) => Ok(Script::new(file, &text)),
        Err(error) => Err(format!("cannot read {file}: {error}")),
    };
    let option = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let schema = read(schema)?;
    let queries = option("queries").map(read).transpose()?;
    let clock = Clock::system();
    let today = clock.wall_seconds().div_euclid(86_400);
    // The setting has a default, and data is looked at only where it is named on the command line.
    let is_data_given = values
        .iter()
        .any(|(setting, _, origin)| setting.name == "data" && *origin == Origin::CommandLine);
    let mut bytes_max = advice::LOGICAL_BYTES_MAX;
    let figures = match is_data_given {
        false => None,
        true => {
            permissions::keep_new_files_private();
            let config = Config::new(values)?;
            bytes_max = config.limits.logical_partition_bytes_max.unwrap_or(bytes_max);
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            Some(runtime.block_on(crate::server::survey::survey(&config, clock, seed()?))?)
        }
    };
    let found = advice::advise(&advice::Input {
        schema: &schema,
        queries: queries.as_ref(),
        keyspace: option("keyspace").unwrap_or("app"),
        figures: figures.as_deref(),
        logical_bytes_max: bytes_max,
        today,
    });
    let mut out = std::io::stdout().lock();
    match option("format") {
        Some("json") => writeln!(out, "{:#}", advice::json(&found, bytes_max, today))?,
        Some("sarif") => writeln!(out, "{:#}", advice::sarif(&found))?,
        _ => out.write_all(advice::text(&found, bytes_max, today).as_bytes())?,
    }
    let fails = match option("fail-on") {
        Some("never") => None,
        Some("note") => Some(advice::Level::Note),
        Some("warning") => Some(advice::Level::Warning),
        _ => Some(advice::Level::Error),
    };
    Ok(if fails.is_some_and(|least| found.worst() >= Some(least)) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
