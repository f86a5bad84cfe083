//! The arguments of `helenus stress`, and the plan that they make.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::keys::{Keys, Pattern, Ranges};
use super::load::{Kind, Mix, Plan};
use crate::cli::Failure;
use helenus_base::clock::Clock;

/// Most connections, since each has a thread.
const CONNECTIONS_MAX: u64 = 4096;

/// Most operations of a transaction of table storage.
const BATCH_MAX: u64 = 100;

/// Longest text of an entity, in bytes: what a property of table storage may have, as UTF-16.
const VALUE_BYTES_MAX: u64 = 32_768;

/// Most ranges that a report tells apart.
const RANGES_MAX: u64 = 64;

/// Longest load, in seconds.
const SECONDS_MAX: u64 = 86_400;

/// Number arguments: name, value, default, range, help. An empty default is none.
const NUMBERS: &[(&str, &str, &str, std::ops::RangeInclusive<u64>, &str)] = &[
    (
        "connections",
        "NUMBER",
        "8",
        1..=CONNECTIONS_MAX,
        "Connections, each with one operation at a time",
    ),
    (
        "seconds",
        "SECONDS",
        "",
        1..=SECONDS_MAX,
        "How long; 30 where --operations is not given",
    ),
    (
        "operations",
        "NUMBER",
        "",
        1..=u64::MAX / 4096,
        "How many operations; a transaction is one",
    ),
    (
        "rate",
        "NUMBER",
        "",
        1..=10_000_000,
        "Operations a second; without it, as fast as they are answered",
    ),
    (
        "hot-keys",
        "NUMBER",
        "4",
        1..=1_000_000,
        "Keys that are hot, with --pattern hot",
    ),
    (
        "hot-percent",
        "PERCENT",
        "90",
        0..=100,
        "Part of the entities that go to hot keys",
    ),
    (
        "rows-per-key",
        "NUMBER",
        "1",
        1..=10_000_000,
        "Entities in a row that share a partition key",
    ),
    (
        "batch",
        "NUMBER",
        "1",
        1..=BATCH_MAX,
        "Entities of a write: more than one are a transaction",
    ),
    (
        "value-bytes",
        "BYTES",
        "200",
        0..=VALUE_BYTES_MAX,
        "Length of the text of each entity",
    ),
    (
        "ranges",
        "NUMBER",
        "8",
        1..=RANGES_MAX,
        "Ranges of keys of equal width that the report tells apart",
    ),
    (
        "first",
        "NUMBER",
        "",
        0..=u64::MAX,
        "First key of append and prepend; without it, microseconds of the clock",
    ),
    (
        "written",
        "NUMBER",
        "",
        1..=u64::MAX,
        "Entities of an earlier load with the same --seed or --first that reads choose among",
    ),
    (
        "seed",
        "NUMBER",
        "",
        0..=u64::MAX,
        "What random keys are made from; without it, another one each time",
    ),
];

/// The arguments of the verb.
#[must_use]
pub(in crate::cli) fn arguments(command: Command) -> Command {
    let named = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let names = |all: Vec<&'static str>| PossibleValuesParser::new(all);
    let patterns = Pattern::NAMES.iter().map(|(name, _)| *name).collect();
    let mixes = Mix::NAMES.iter().map(|(name, _)| *name).collect();
    let command = command
        .arg(
            Arg::new("service")
                .value_name("SERVICE")
                .required(true)
                .value_parser(names(vec!["tables", "cql"]))
                .help("Azure table storage by its REST API, of any server that speaks it; or CQL"),
        )
        .arg(
            named("connection", "STRING")
                .env("AZURE_STORAGE_CONNECTION_STRING")
                .hide_env_values(true)
                .default_value("UseDevelopmentStorage=true")
                .help("The account of tables, as Azure's SDKs take it; AZURE_STORAGE_CONNECTION_STRING"),
        )
        .arg(named("ca", "FILE").help("Certificates to trust over https, as PEM; without it, any"))
        .arg(named("table", "TABLE").help("The table, made if it is not there; stress without it"))
        .arg(
            named("pattern", "PATTERN")
                .value_parser(names(patterns))
                .default_value("random")
                .help("How partition keys follow each other: append, prepend, random or hot"),
        )
        .arg(
            named("operation", "OPERATION")
                .value_parser(names(mixes))
                .default_value("upsert")
                .help("upsert, insert, read (one entity), query (a partition key), or mixed: half upserts, half reads"),
        );
    NUMBERS
        .iter()
        .fold(command, |command, (name, value, default, range, help)| {
            let argument = named(name, value)
                .value_parser(value_parser!(u64).range(range.clone()))
                .help(*help);
            command.arg(if default.is_empty() { argument } else { argument.default_value(*default) })
        })
        .arg(named("bounds", "KEYS").value_delimiter(',').help(
            "First keys of the ranges that the report tells apart, by commas; instead of --ranges",
        ))
        .arg(named("report", "FILE").help("Write a page of HTML with pictures there"))
        .arg(
            Arg::new("ordered")
                .long("ordered")
                .action(ArgAction::SetTrue)
                .help("Make the table of CQL with placement = 'ordered': in the order of its keys, as tables are"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("One JSON object, for programs"),
        )
        .after_help(
            "A partition key is 16 hexadecimal digits, so that eight ranges of equal width begin at 2, 4, 6, 8, a, c and e. Exit code 1: \
             operations failed; a refusal of a busy server is no failure.",
        )
}

/// A number that was given, or its default.
#[must_use]
pub(super) fn number(matches: &ArgMatches, name: &str) -> Option<u64> {
    matches.get_one::<u64>(name).copied()
}

/// The plan of the arguments.
///
/// # Errors
/// Arguments contradict each other.
pub(super) fn plan(matches: &ArgMatches, drawn: u64, clock: &Clock) -> Result<Plan, Failure> {
    let of = |name: &str| number(matches, name);
    let name = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    let pattern = Pattern::named(name("pattern")).unwrap_or(Pattern::Random);
    let mix = Mix::NAMES.iter().find(|(known, _)| *known == name("operation"));
    let mix = mix.map_or(Mix::All(Kind::Upsert), |(_, mix)| *mix);
    let seed = of("seed").unwrap_or(drawn);
    let batch = of("batch").unwrap_or(1);
    // Entities of a transaction share their key, so a key has whole transactions.
    let rows_per_key = of("rows-per-key").unwrap_or(1).next_multiple_of(batch);
    let operations = of("operations");
    let is_reading = matches!(mix, Mix::All(Kind::Read | Kind::Query));
    if is_reading && of("written").is_none() {
        return Err("reads need --written NUMBER, the entities of an earlier load, and its --seed or --first".into());
    }
    let micros = u64::try_from(clock.wall_micros()).unwrap_or(0);
    Ok(Plan {
        keys: Keys {
            pattern,
            first: of("first").unwrap_or(micros),
            seed,
            rows_per_key,
            hot_keys: of("hot-keys").unwrap_or(1),
            hot_percent: of("hot-percent").unwrap_or(0),
        },
        ranges: match matches.get_many::<String>("bounds") {
            Some(begins) => Ranges::at(begins.cloned().collect()),
            None => Ranges::equal(of("ranges").unwrap_or(1)),
        },
        mix,
        connections: usize::try_from(of("connections").unwrap_or(1))?,
        time: match (of("seconds"), operations) {
            (Some(seconds), _) => Some(Duration::from_secs(seconds)),
            (None, Some(_)) => None,
            (None, None) => Some(Duration::from_secs(30)),
        },
        operations,
        rate: of("rate"),
        batch,
        written: of("written").unwrap_or(1),
        seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(words: &[&str]) -> Result<Plan, String> {
        let words = std::iter::once("stress").chain(words.iter().copied());
        let matches = arguments(Command::new("stress")).try_get_matches_from(words);
        let matches = matches.map_err(|error| error.to_string())?;
        plan(&matches, 5, &Clock::manual(1000)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_has_defaults() {
        let plan = planned(&["tables"]).unwrap();
        assert_eq!((plan.connections, plan.batch, plan.ranges.len()), (8, 1, 8));
        assert_eq!((plan.time, plan.operations), (Some(Duration::from_secs(30)), None));
        assert_eq!(
            (plan.keys.pattern, plan.keys.first, plan.seed),
            (Pattern::Random, 1000, 5)
        );
        assert_eq!(planned(&["cql", "--operations", "9"]).unwrap().time, None);
    }

    #[test]
    fn transactions_do_not_cross_keys() {
        let plan = planned(&["tables", "--batch", "100", "--rows-per-key", "150"]).unwrap();
        assert_eq!(plan.keys.rows_per_key, 200);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        assert!(
            planned(&["tables", "--operation", "read"])
                .unwrap_err()
                .contains("--written")
        );
        for wrong in [
            vec![],
            vec!["blobs"],
            vec!["tables", "--batch", "101"],
            vec!["cql", "--pattern", "x"],
        ] {
            assert!(planned(&wrong).is_err(), "{wrong:?}");
        }
    }
}
