//! `helenus lint`: advice on a data model.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::{Failure, seed};
use crate::advice::{self, Script};
use crate::config::{Config, Origin, Values};
use helenus_base::clock::Clock;
use helenus_base::permissions;

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
            option("baseline", "FILE")
                .requires("schema")
                .help("Findings that are accepted, as --write-baseline wrote them"),
        )
        .arg(
            Arg::new("write-baseline")
                .long("write-baseline")
                .action(clap::ArgAction::SetTrue)
                .requires("baseline")
                .help("Write all findings to the baseline, and accept them"),
        )
        .arg(
            option("explain", "RULE")
                .conflicts_with("schema")
                .help("What a rule looks for, why that costs, and what to do instead"),
        )
        .arg(
            option("keyspace", "NAME")
                .requires("schema")
                .default_value("app")
                .help("Where tables without a keyspace are, until a USE"),
        )
}

/// Prints the description of a rule.
///
/// # Errors
/// There is no such rule; the error lists all rules.
pub(super) fn explain(rule: &str) -> Result<ExitCode, Failure> {
    let Some(text) = advice::explained(rule) else {
        let rules: Vec<&str> = advice::RULES.iter().map(|rule| rule.id).collect();
        return Err(format!("there is no rule {rule}: expected one of {}", rules.join(", ")).into());
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Checks a data model, and data if the command line names some.
///
/// # Errors
/// A file cannot be read, or the data cannot be opened.
#[expect(
    clippy::too_many_lines,
    reason = "what is read, advised and printed, from beginning to end"
)]
pub(super) fn run(values: &Values, matches: &ArgMatches, schema: &str) -> Result<ExitCode, Failure> {
    let read = |file: &str| match std::fs::read_to_string(file) {
        Ok(text) => Ok(Script::new(file, &text)),
        Err(error) => Err(format!("cannot read {file}: {error}")),
    };
    let option = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let schema = read(schema)?;
    let queries = option("queries").map(read).transpose()?;
    let writes_baseline = matches.get_flag("write-baseline");
    let baseline = match option("baseline") {
        Some(file) if !writes_baseline => {
            let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("baseline: there is no file {file}: --write-baseline makes it with what is found now")
                }
                _ => format!("baseline: cannot read {file}: {error}"),
            })?;
            Some(advice::Baseline::parse(&text).map_err(|why| format!("{file} is no baseline: {why}"))?)
        }
        _ => None,
    };
    let profile = values.text("profile").unwrap_or_default().parse()?;
    let clock = Clock::system();
    let today = clock.wall_seconds().div_euclid(86_400);
    // The setting has a default, so data is checked only if the command line names it.
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
            let mut figures = runtime.block_on(crate::assembly::survey::survey(&config, clock, seed()?))?;
            // A view is judged by its table.
            figures.retain(|figure| !figure.is_view);
            Some(figures)
        }
    };
    let found = advice::advise(&advice::Input {
        schema: &schema,
        queries: queries.as_ref(),
        keyspace: option("keyspace").unwrap_or("app"),
        figures: figures.as_deref(),
        logical_bytes_max: bytes_max,
        today,
        profile,
        baseline: baseline.as_ref(),
    });
    if let Some(file) = option("baseline").filter(|_| writes_baseline) {
        let text = format!("{:#}\n", serde_json::to_value(advice::Baseline::of(&found))?);
        std::fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = std::io::stdout().lock();
    match option("format") {
        Some("json") => writeln!(out, "{:#}", advice::json(&found, bytes_max, today))?,
        Some("sarif") => writeln!(out, "{:#}", advice::sarif(&found, profile))?,
        _ => {
            let style = advice::Style {
                colour: out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            };
            out.write_all(advice::text(&found, bytes_max, today, style).as_bytes())?;
        }
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
