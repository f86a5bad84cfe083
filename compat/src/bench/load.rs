//! The load itself.

use super::{Figures, Load};
use crate::raw::request::{self, Bound, Params, Prepared};
use crate::raw::{Connection, opcode};
use crate::{Error, Outcome, clock};
use std::time::{Duration, Instant};

/// Rows in a partition of `bench.wide`.
const ROWS_PER_PARTITION: i32 = 1000;
/// Bytes of a value.
const VALUE_BYTES: usize = 100;

/// What a phase asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    statement: &'static str,
    values: fn(&mut fastrand::Rng, i32) -> Vec<Bound>,
    /// Least bytes of an answer: a server that finds nothing is quick, and wrong.
    answer_bytes_min: usize,
}

/// When a phase ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    Elapsed(Duration),
    /// So many operations on all connections together.
    Operations(u64),
}

pub(super) const SCHEMA: [&str; 4] = [
    "DROP KEYSPACE IF EXISTS bench",
    "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE bench.narrow (k bigint PRIMARY KEY, v blob)",
    "CREATE TABLE bench.wide (k int, c int, v blob, PRIMARY KEY (k, c))",
];

pub(super) const PHASES: [Phase; 5] = [
    Phase {
        name: "insert",
        statement: "INSERT INTO bench.narrow (k, v) VALUES (?, ?)",
        values: insert_values,
        answer_bytes_min: 4,
    },
    Phase {
        name: "read",
        statement: "SELECT k, v FROM bench.narrow WHERE k = ?",
        values: read_values,
        answer_bytes_min: VALUE_BYTES,
    },
    Phase {
        name: "slice",
        statement: "SELECT c, v FROM bench.wide WHERE k = ? AND c >= ? LIMIT 100",
        values: slice_values,
        answer_bytes_min: 100 * VALUE_BYTES,
    },
    Phase {
        name: "update",
        statement: "UPDATE bench.narrow SET v = ? WHERE k = ?",
        values: update_values,
        answer_bytes_min: 4,
    },
    Phase {
        name: "conditional",
        statement: "UPDATE bench.narrow SET v = ? WHERE k = ? IF EXISTS",
        values: update_values,
        // `[applied]` and its value: a result without rows is shorter.
        answer_bytes_min: 16,
    },
];

fn blob(random: &mut fastrand::Rng) -> Bound {
    Bound::Bytes((0..VALUE_BYTES).map(|_| random.u8(..)).collect())
}

fn bigint(n: i64) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

fn int(n: i32) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

/// A key that [`fill`] has written.
fn known_key(random: &mut fastrand::Rng, partitions: i32) -> Bound {
    bigint(random.i64(0..i64::from(partitions) * 100))
}

fn insert_values(random: &mut fastrand::Rng, _: i32) -> Vec<Bound> {
    vec![bigint(random.i64(..)), blob(random)]
}

fn read_values(random: &mut fastrand::Rng, partitions: i32) -> Vec<Bound> {
    vec![known_key(random, partitions)]
}

fn slice_values(random: &mut fastrand::Rng, partitions: i32) -> Vec<Bound> {
    vec![
        int(random.i32(0..partitions)),
        int(random.i32(0..ROWS_PER_PARTITION - 100)),
    ]
}

fn update_values(random: &mut fastrand::Rng, partitions: i32) -> Vec<Bound> {
    vec![blob(random), known_key(random, partitions)]
}

/// Writes what the phases read.
pub(super) fn fill(address: &str, load: &Load) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    let mut random = fastrand::Rng::with_seed(1);
    let (narrow, _) = connection.prepare("INSERT INTO bench.narrow (k, v) VALUES (?, ?)")?;
    let rows = (0..i64::from(load.partitions) * 100).map(|k| vec![bigint(k), blob(&mut random)]);
    write_all(&mut connection, &narrow, rows)?;
    let (wide, _) = connection.prepare("INSERT INTO bench.wide (k, c, v) VALUES (?, ?, ?)")?;
    let mut random = fastrand::Rng::with_seed(2);
    let keys = (0..load.partitions).flat_map(|k| (0..ROWS_PER_PARTITION).map(move |c| (k, c)));
    let rows = keys.map(|(k, c)| vec![int(k), int(c), blob(&mut random)]);
    write_all(&mut connection, &wide, rows)
}

/// Executes with each row of values, a window at a time.
fn write_all(connection: &mut Connection, prepared: &Prepared, rows: impl Iterator<Item = Vec<Bound>>) -> Outcome<()> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut bytes = Vec::new();
        let mut sent = 0;
        for values in rows.by_ref().take(128) {
            let params = Params {
                values,
                ..Params::default()
            };
            connection.put(
                &mut bytes,
                sent,
                opcode::EXECUTE,
                &request::execute(4, prepared, &params),
            );
            sent += 1;
        }
        connection.send(&bytes)?;
        for _ in 0..sent {
            let answer = connection.receive()?;
            if answer.opcode != opcode::RESULT {
                return Err(Error::failed(format!("a write was refused: {answer:?}")));
            }
        }
    }
    Ok(())
}

/// Runs a phase on all connections at once. Rounds use keys of their own, so that what one has inserted is new again in the next.
pub(super) fn run(address: &str, phase: &Phase, load: &Load, until: Until, round: u64) -> Outcome<Figures> {
    let start = clock::now();
    let until = match until {
        Until::Operations(all) => Until::Operations(all.div_ceil(load.connections.max(1) as u64)),
        Until::Elapsed(_) => until,
    };
    let threads = (0..load.connections)
        .map(|seed| {
            let address = address.to_owned();
            let (phase, in_flight, partitions) = (*phase, load.in_flight, load.partitions);
            let seed = seed_of(u64::try_from(seed).unwrap_or(0), round);
            std::thread::spawn(move || one(&address, phase, in_flight, partitions, until, seed))
        })
        .collect::<Vec<_>>();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| Error::failed("a load thread panicked"))??);
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(0).into();
    Ok(Figures {
        operations: u64::try_from(times.len()).unwrap_or(u64::MAX),
        seconds,
        p50_micros: at(50),
        p99_micros: at(99),
        cpu_micros: 0,
    })
}

/// One connection: keeps `in_flight` requests under way; microseconds from sending to answer for each operation.
fn one(address: &str, phase: Phase, in_flight: usize, partitions: i32, until: Until, seed: u64) -> Outcome<Vec<u32>> {
    let mut connection = Connection::open(address, 4)?;
    let (prepared, _) = connection.prepare(phase.statement)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut sent_at: Vec<Instant> = vec![clock::now(); in_flight];
    let mut free: Vec<i16> = (0..in_flight).filter_map(|s| i16::try_from(s).ok()).collect();
    let mut times = Vec::new();
    let start = clock::now();
    let mut under_way = 0;
    loop {
        let going = match until {
            Until::Elapsed(length) => start.elapsed() < length,
            Until::Operations(operations) => (times.len() as u64) < operations,
        };
        if going && !free.is_empty() {
            let mut bytes = Vec::new();
            let now = clock::now();
            for stream in free.drain(..) {
                let params = Params {
                    values: (phase.values)(&mut random, partitions),
                    skip_metadata: true,
                    ..Params::default()
                };
                connection.put(
                    &mut bytes,
                    stream,
                    opcode::EXECUTE,
                    &request::execute(4, &prepared, &params),
                );
                if let Some(at) = usize::try_from(stream).ok().and_then(|s| sent_at.get_mut(s)) {
                    *at = now;
                }
                under_way += 1;
            }
            connection.send(&bytes)?;
        }
        if under_way == 0 {
            return Ok(times);
        }
        let mut answer = Some(connection.receive()?);
        // All that has arrived by now is answered by one write.
        while let Some(envelope) = answer {
            if envelope.opcode != opcode::RESULT || envelope.body.len() < phase.answer_bytes_min {
                return Err(Error::failed(format!(
                    "{} was refused or finds nothing: {envelope:?}",
                    phase.name
                )));
            }
            let sent = usize::try_from(envelope.stream).ok().and_then(|s| sent_at.get(s));
            let micros = sent.map_or(0, |at| at.elapsed().as_micros());
            times.push(u32::try_from(micros).unwrap_or(u32::MAX));
            free.push(envelope.stream);
            under_way -= 1;
            answer = connection.take()?;
        }
    }
}

/// Different keys on each connection and in each round, the same each time the program runs.
fn seed_of(connection: u64, round: u64) -> u64 {
    0x9E37_79B9_7F4A_7C15u64.wrapping_mul((round << 32) + connection + 1)
}

#[cfg(test)]
mod tests {
    use super::PHASES;
    use crate::null::Canned;
    use crate::raw::opcode;

    #[test]
    fn the_server_that_does_nothing_answers_as_expected() {
        let canned = Canned::new();
        for phase in PHASES {
            let (_, prepared) = canned.answer(opcode::PREPARE, phase.statement.as_bytes());
            // The kind of the result, then the id, with which an EXECUTE begins.
            let (op, body) = canned.answer(opcode::EXECUTE, prepared.get(4..).unwrap_or_default());
            assert_eq!(op, opcode::RESULT, "{}", phase.name);
            assert!(body.len() >= phase.answer_bytes_min, "{}: {body:?}", phase.name);
        }
    }
}
