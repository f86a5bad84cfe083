//! The load: clients that write rows of their own, and one that scans.

use super::model::{FILLED_PER_KEY, Model, Place, ROWS_PER_KEY};
use super::page::{Page, page, still};
use super::pause::Acknowledged;
use crate::raw::request::{self, Bound, InBatch, Params, Prepared};
use crate::raw::{Connection, Envelope, opcode};
use crate::through::is_by_kill;
use crate::{Error, Outcome, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Requests of a writer in flight.
const IN_FLIGHT: i16 = 16;
/// Batches of a loader in flight, each of all rows of a key.
const BATCHES_IN_FLIGHT: usize = 16;
/// Keys that a scan under load goes over, and the rows of its pages.
const SCANNED_KEYS: usize = 200;
const SCANNED_PAGE_ROWS: i32 = 500;

/// The statements that make the table.
pub(super) fn schema(partitions: usize) -> [String; 3] {
    [
        "CREATE KEYSPACE parts WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        format!(
            "CREATE TABLE parts.t (k int, c int, v bigint, tag int, PRIMARY KEY (k, c)) WITH helenus_partitions = {partitions}"
        ),
        "CREATE INDEX by_tag ON parts.t (tag)".to_owned(),
    ]
}

fn int(number: u32) -> Bound {
    Bound::Bytes(number.to_be_bytes().to_vec())
}

fn bigint(number: u32) -> Bound {
    Bound::Bytes(u64::from(number).to_be_bytes().to_vec())
}

/// `k, c, v, tag` of a row.
fn values(model: &Model, place: Place, version: u32) -> Vec<Bound> {
    let tag = model.tag(place, version);
    vec![
        int(place.k),
        int(place.c),
        bigint(version),
        tag.map_or(Bound::Unset, |tag| Bound::Bytes(tag.to_be_bytes().to_vec())),
    ]
}

fn with(values: Vec<Bound>) -> Params {
    Params {
        values,
        skip_metadata: true,
        ..Params::default()
    }
}

const INSERT: &str = "INSERT INTO parts.t (k, c, v, tag) VALUES (?, ?, ?, ?)";

/// Writes the rows that are there from the start, several clients side by side.
pub(super) fn fill(address: &str, model: &Arc<Model>, clients: u32) -> Outcome<()> {
    let threads: Vec<JoinHandle<Outcome<()>>> = (0..clients)
        .map(|client| {
            let (address, model) = (address.to_owned(), Arc::clone(model));
            std::thread::spawn(move || {
                let mut connection = Connection::open(&address, 4)?;
                let (insert, _) = connection.prepare(INSERT)?;
                let keys: Vec<u32> = (0..model.keys()).filter(|k| k % clients == client).collect();
                for keys in keys.chunks(BATCHES_IN_FLIGHT) {
                    let mut bytes = Vec::new();
                    for (stream, k) in (0_i16..).zip(keys) {
                        let rows: Vec<InBatch> = (0..FILLED_PER_KEY)
                            .map(|c| {
                                let (place, version) = (Place { k: *k, c }, model.new_version());
                                model.set(place, version);
                                InBatch::Prepared(insert.clone(), values(&model, place, version))
                            })
                            .collect();
                        let body = request::batch(4, 1, &rows, &Params::default());
                        connection.put(&mut bytes, stream, opcode::BATCH, &body);
                    }
                    connection.send(&bytes)?;
                    for _ in keys {
                        acknowledged(&connection.receive()?)?;
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| Error::failed("a loader panicked"))??;
    }
    Ok(())
}

fn acknowledged(answer: &Envelope) -> Outcome<()> {
    if answer.opcode == opcode::RESULT {
        return Ok(());
    }
    let value = crate::raw::answer::plain(answer)?;
    crate::raw::connection::succeeded("a write under load", value).map(|_| ())
}

/// A write that was sent and not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doubt {
    pub(super) place: Place,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// What clients did in one window of load.
#[derive(Debug, Default)]
pub(super) struct Worked {
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) reads: u64,
    pub(super) scanned: u64,
    pub(super) faults: Vec<String>,
}

/// The same over a run.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) acknowledged: usize,
    pub(super) doubts: usize,
    pub(super) reads: u64,
    pub(super) scanned: u64,
}

impl Totals {
    pub(super) fn add(&mut self, worked: &Worked) {
        self.acknowledged += worked.acknowledged.len();
        self.doubts += worked.doubts.len();
        self.reads += worked.reads;
        self.scanned += worked.scanned;
    }
}

/// Clients at work.
pub(super) struct Load(Vec<JoinHandle<Outcome<Worked>>>);

impl Load {
    /// Begins; `range` are the tokens of the partitions about to change, where half of the writes and all scans go.
    pub(super) fn start(
        address: &str,
        model: &Arc<Model>,
        range: (i64, i64),
        stop: &Arc<AtomicBool>,
        random: &mut fastrand::Rng,
    ) -> Self {
        let writers = model.writers();
        let threads = (0..=writers).map(|number| {
            let (address, model, stop) = (address.to_owned(), Arc::clone(model), Arc::clone(stop));
            let mut random = random.fork();
            std::thread::spawn(move || {
                let mut worked = Worked::default();
                let done = if number == writers {
                    scan(&address, &model, range, &stop, &mut random, &mut worked)
                } else {
                    write(&address, &model, number, range, &stop, &mut random, &mut worked)
                };
                match done {
                    Err(error) if !is_by_kill(&error) => Err(error),
                    // The server is gone, as it has to be now and then.
                    Ok(()) | Err(_) => Ok(worked),
                }
            })
        });
        Self(threads.collect())
    }

    pub(super) fn join(self) -> Outcome<Worked> {
        let mut all = Worked::default();
        for thread in self.0 {
            let mut worked = thread.join().map_err(|_| Error::failed("a client panicked"))??;
            all.acknowledged.append(&mut worked.acknowledged);
            all.doubts.append(&mut worked.doubts);
            all.faults.append(&mut worked.faults);
            all.reads += worked.reads;
            all.scanned += worked.scanned;
        }
        Ok(all)
    }
}

struct Statements {
    insert: Prepared,
    update: Prepared,
    delete: Prepared,
    read: Prepared,
}

/// What a request in flight is about; `after` is `None` for a read.
struct InFlight {
    place: Place,
    before: u32,
    after: Option<u32>,
}

fn write(
    address: &str,
    model: &Model,
    writer: u32,
    range: (i64, i64),
    stop: &AtomicBool,
    random: &mut fastrand::Rng,
    worked: &mut Worked,
) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    let mut prepared = |text: &str| connection.prepare(text).map(|(prepared, _)| prepared);
    let statements = Statements {
        insert: prepared(INSERT)?,
        update: prepared("UPDATE parts.t SET v = ?, tag = ? WHERE k = ? AND c = ?")?,
        delete: prepared("DELETE FROM parts.t WHERE k = ? AND c = ?")?,
        read: prepared("SELECT k, c, v FROM parts.t WHERE k = ? AND c = ?")?,
    };
    let near: Vec<u32> = model
        .keys_in(range.0, range.1)
        .iter()
        .map(|(_, k)| *k)
        .filter(|k| !Model::is_still(*k) && model.writer(*k) == writer)
        .collect();
    while !stop.load(Ordering::Relaxed) {
        let mut bytes = Vec::new();
        let mut flight = BTreeMap::new();
        let mut used = BTreeSet::new();
        for stream in 0..IN_FLIGHT {
            let k = match near.get(random.usize(..near.len().max(1))) {
                Some(k) if random.bool() => *k,
                _ => model.some_key(writer, random),
            };
            let place = Place {
                k,
                c: random.u32(..ROWS_PER_KEY),
            };
            // Two requests on one row in flight may take effect in any order.
            if !used.insert(place) {
                continue;
            }
            let one = ask(model, place, &statements, random, |body| {
                connection.put(&mut bytes, stream, opcode::EXECUTE, &body);
            });
            flight.insert(stream, one);
        }
        exchange(&mut connection, model, &bytes, flight, worked)?;
    }
    Ok(())
}

/// Sends requests and takes their answers.
fn exchange(
    connection: &mut Connection,
    model: &Model,
    bytes: &[u8],
    mut flight: BTreeMap<i16, InFlight>,
    worked: &mut Worked,
) -> Outcome<()> {
    let sent = clock::now();
    let (mut refused, mut end) = (Vec::new(), Ok(()));
    let answered = connection.send(bytes).and_then(|()| {
        while !flight.is_empty() {
            let answer = connection.receive()?;
            let Some(one) = flight.remove(&answer.stream) else {
                return Err(Error::Malformed("an answer to no question"));
            };
            if let Err(error) = take(model, &one, &answer, sent, worked) {
                refused.push(one);
                // The others are answered, too: none is to take effect after rows in doubt are looked up.
                end = Err(error);
            }
        }
        end
    });
    let left = flight.into_values().chain(refused).filter_map(|one| {
        let after = one.after?;
        Some(Doubt {
            place: one.place,
            before: one.before,
            after,
        })
    });
    worked.doubts.extend(left);
    answered
}

/// Chooses what to do with a row.
fn ask(
    model: &Model,
    place: Place,
    statements: &Statements,
    random: &mut fastrand::Rng,
    mut put: impl FnMut(Vec<u8>),
) -> InFlight {
    let before = model.version(place);
    let key = || vec![int(place.k), int(place.c)];
    let what = random.u8(..20);
    let (prepared, values, after) = match (before, what) {
        (_, 0..=4) => (&statements.read, key(), None),
        (0, _) | (_, 5..=8) => {
            let version = model.new_version();
            (&statements.insert, values(model, place, version), Some(version))
        }
        (_, 9..=10) => (&statements.delete, key(), Some(0)),
        _ => {
            let version = model.new_version();
            let mut values = values(model, place, version);
            values.rotate_left(2);
            (&statements.update, values, Some(version))
        }
    };
    put(request::execute(4, prepared, &with(values)));
    InFlight { place, before, after }
}

fn take(
    model: &Model,
    one: &InFlight,
    answer: &Envelope,
    sent: std::time::Instant,
    worked: &mut Worked,
) -> Outcome<()> {
    match one.after {
        Some(after) => {
            acknowledged(answer)?;
            worked.acknowledged.push((sent, clock::now()));
            model.set(one.place, after);
        }
        None => {
            let found = Page::read(answer)?;
            let version = found.rows.first().map_or(0, |(_, version)| *version);
            if version != one.before {
                worked.faults.push(format!(
                    "under load: row {:?} reads {version}, {} was acknowledged",
                    one.place, one.before
                ));
            }
            worked.reads += 1;
        }
    }
    Ok(())
}

/// Scans ranges of the partitions about to change, page by page: of keys that nobody writes every row once and in order.
fn scan(
    address: &str,
    model: &Model,
    range: (i64, i64),
    stop: &AtomicBool,
    random: &mut fastrand::Rng,
    worked: &mut Worked,
) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    let keys = model.keys_in(range.0, range.1);
    while !stop.load(Ordering::Relaxed) && !keys.is_empty() {
        let middle = keys.get(random.usize(..keys.len())).map_or(0, |(token, _)| *token);
        let (lower, upper) = model.around(middle, SCANNED_KEYS);
        let (mut found, mut state) = (Vec::new(), None);
        loop {
            let next = page(&mut connection, (lower, upper), SCANNED_PAGE_ROWS, state)?;
            worked.scanned += next.rows.len() as u64;
            found.extend(still(&next.rows));
            match next.state {
                Some(next) => state = Some(next),
                None => break,
            }
        }
        let expected = model.rows_in(lower, upper).map(|(place, _)| place);
        let expected: Vec<Place> = expected.filter(|place| Model::is_still(place.k)).collect();
        if found != expected {
            worked.faults.push(format!(
                "under load: a scan of tokens {lower} to {upper} gave {} rows that nobody writes, there are {}",
                found.len(),
                expected.len()
            ));
        }
    }
    Ok(())
}
