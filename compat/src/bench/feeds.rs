//! What a change feed costs a write. For each engine three servers of the same program: the table of one has no feed, of one the
//! incremental feed, of one the full fidelity feed.
//!
//! The servers are loaded in turn, and each round begins with another one, so that what else the machine does meets all alike. Counted is
//! all processor time of a server from the first round to the last, with what it does between its turns, for an operation.

use super::{Figures, Options};
use crate::launch::{ENGINES, Launch};
use crate::server::{self, Server};
use crate::{Error, Outcome};
use std::time::Duration;

/// What a table's feed is called, and the properties that switch it on. The first is what the others are compared with.
const FEEDS: [(&str, &str); 3] = [
    ("no feed", ""),
    ("incremental", " WITH cdc = true"),
    (
        "full fidelity",
        " WITH cosmosdb_full_fidelity_retention_seconds = 86400",
    ),
];
/// Kinds of operations that are writes without a condition.
const WRITES: [&str; 2] = ["insert", "update"];
/// Rounds of each kind; each server is the first as often as the others.
const ROUNDS: u64 = 6;

/// A server under load.
#[derive(Debug)]
struct Loaded {
    server: Server,
    rounds: Vec<Figures>,
    /// Its processor time before the first round.
    cpu_micros_before: u64,
}

/// What was measured of one server.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_micros: f64,
    p50_micros: f64,
}

/// Runs each engine and prints figures and ratios.
///
/// # Errors
/// When a server does not start or refuses, or no kind of write is asked for.
pub(super) fn run(options: &Options) -> Outcome<bool> {
    let kinds: Vec<_> = super::kinds()
        .filter(|kind| WRITES.contains(&kind.name()) && options.load.asks_for(kind.name()))
        .collect();
    if kinds.is_empty() {
        return Err(Error::failed(format!("the kinds of writes are {}", WRITES.join(", "))));
    }
    for engine in ENGINES {
        let folder = tempfile::tempdir()?;
        let mut all = Vec::new();
        for (place, (_, properties)) in FEEDS.iter().enumerate() {
            let folder = folder.path().join(place.to_string());
            std::fs::create_dir(&folder)?;
            let server = Launch::new(engine, &folder).start(&folder)?;
            super::prepare_with(server.address(), &options.load, properties)?;
            all.push(Loaded {
                server,
                rounds: Vec::new(),
                cpu_micros_before: 0,
            });
        }
        for kind in &kinds {
            for loaded in &mut all {
                kind.load(
                    loaded.server.address(),
                    &options.load,
                    Duration::from_secs(options.warmup),
                    0,
                )?;
                loaded.rounds.clear();
                loaded.cpu_micros_before = server::cpu_micros(loaded.server.pid())?;
            }
            for round in 0..ROUNDS {
                let servers = all.len();
                all.rotate_left(usize::try_from(round).unwrap_or(0) % servers);
                for loaded in &mut all {
                    let figures = kind.measure(
                        &loaded.server,
                        &options.load,
                        Duration::from_secs(options.seconds),
                        round + 1,
                    )?;
                    loaded.rounds.push(figures);
                }
                all.rotate_right(usize::try_from(round).unwrap_or(0) % servers);
            }
            let costs = all.iter().map(cost).collect::<Outcome<Vec<_>>>()?;
            print(engine, kind.name(), &costs);
        }
    }
    Ok(true)
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a run of minutes")]
fn cost(loaded: &Loaded) -> Outcome<Cost> {
    let cpu = server::cpu_micros(loaded.server.pid())?.saturating_sub(loaded.cpu_micros_before);
    let operations: u64 = loaded.rounds.iter().map(|figures| figures.operations).sum();
    let mut p50: Vec<u64> = loaded.rounds.iter().map(|figures| figures.p50_micros).collect();
    p50.sort_unstable();
    Ok(Cost {
        cpu_micros: cpu as f64 / operations.max(1) as f64,
        p50_micros: p50.get(p50.len() / 2).copied().unwrap_or(0) as f64,
    })
}

fn print(engine: &str, kind: &str, costs: &[Cost]) {
    let Some(plain) = costs.first() else { return };
    for ((name, _), cost) in FEEDS.iter().zip(costs) {
        println!(
            "{engine:10} {kind:6} {name:13} server CPU {:7.1} µs/op, ratio {:5.3}  p50 {:7.0} µs, ratio {:5.3}",
            cost.cpu_micros,
            cost.cpu_micros / plain.cpu_micros,
            cost.p50_micros,
            cost.p50_micros / plain.p50_micros
        );
    }
}
