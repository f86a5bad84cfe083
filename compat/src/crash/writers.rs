//! The clients of a cycle. Each writes until the server is gone and returns what it was told.

use super::acknowledged::Acknowledged;
use super::{Promises, int, row_value};
use crate::raw::request::{self, Bound, InBatch, Params, Prepared};
use crate::raw::{Connection, opcode};
use crate::{Error, Outcome, clock, through};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Inserts in flight on one connection.
pub(super) const INSERTS_IN_FLIGHT: i32 = 16;
/// Rows of a partition that a deleter fills.
pub(super) const DELETED_ROWS: i32 = 20;
/// Partitions that a deleter keeps whole, and as many again that it keeps with one column written after the deletion.
const DELETED_AFTER: i32 = 20;
/// Refusals whose texts are kept.
const TEXTS_MAX: usize = 20;
/// Pause of a client after a refusal.
const AFTER_REFUSAL: Duration = Duration::from_millis(5);

/// How many clients of each kind there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clients {
    /// Clients that insert rows.
    pub(crate) inserters: i32,
    /// Clients that race on the register.
    pub(crate) racers: i32,
    /// Clients that count.
    pub(crate) counters: i32,
    /// Clients that send batches.
    pub(crate) batchers: i32,
    /// Clients that fill partitions and delete them.
    pub(crate) deleters: i32,
}

/// What was refused, all clients together.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Whether a refusal leaves a write in doubt; otherwise it fails the run.
    are_expected: bool,
    count: AtomicU64,
    texts: Mutex<BTreeSet<String>>,
}

impl Refusals {
    pub(crate) fn expected() -> Self {
        Self {
            are_expected: true,
            ..Self::default()
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Different texts of refusals, the first ones.
    pub(crate) fn texts(&self) -> Vec<String> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().cloned().collect()
    }

    fn note(&self, doing: &str, told: &str) -> Outcome<()> {
        if !self.are_expected && !through::is_owner_killed() {
            return Err(Error::failed(format!("{doing} was refused: {told}")));
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() < TEXTS_MAX {
            texts.insert(told.to_owned());
        }
        drop(texts);
        std::thread::sleep(AFTER_REFUSAL);
        Ok(())
    }
}

/// What one client was told.
#[derive(Debug)]
enum Told {
    Rows(Rows),
    Register { granted: Vec<(i32, String)>, doubts: i32 },
    Counter { counter: i32, sure: i64, doubts: i64 },
    Batches(Batches),
    Deletions(Deletions),
}

/// Rows of a cycle and inserter.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) cycle: i32,
    pub(crate) writer: i32,
    pub(crate) acknowledged: Acknowledged,
}

/// Batches of a cycle and batcher.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    pub(crate) cycle: i32,
    pub(crate) writer: i32,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) sent: i32,
}

/// Partitions of a cycle and deleter: `emptied` ones hold nothing older than the deletion, `erased` ones nothing at all.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    pub(crate) cycle: i32,
    pub(crate) writer: i32,
    pub(crate) emptied: Acknowledged,
    pub(crate) erased: Acknowledged,
}

/// What a client needs to know.
#[derive(Debug, Clone)]
struct Client {
    address: String,
    cycle: i32,
    /// Its number among those of its kind.
    number: i32,
    stop: Arc<AtomicBool>,
    refusals: Arc<Refusals>,
}

/// The clients of a cycle, at work.
#[derive(Debug)]
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Outcome<Told>>>,
}

impl Writers {
    /// Starts all clients of a cycle.
    pub(crate) fn start(address: &str, cycle: i32, clients: Clients, refusals: &Arc<Refusals>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let mut add = |count: i32, work: fn(&Client) -> Outcome<Told>| {
            for number in 0..count {
                let client = Client {
                    address: address.to_owned(),
                    cycle,
                    number,
                    stop: Arc::clone(&stop),
                    refusals: Arc::clone(refusals),
                };
                threads.push(std::thread::spawn(move || work(&client)));
            }
        };
        add(clients.inserters, insert);
        add(clients.racers, race);
        add(clients.counters, count);
        add(clients.batchers, batch);
        add(clients.deleters, delete);
        Self { stop, threads }
    }

    /// Stops all, waits for them and adds what they were told to the promises.
    ///
    /// # Errors
    /// A client was refused what has to be accepted.
    pub(crate) fn join(self, promises: &mut Promises) -> Outcome<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            match thread.join().map_err(|_| Error::failed("a writer panicked"))?? {
                Told::Rows(rows) => promises.rows.push(rows),
                Told::Register { granted, doubts } => {
                    promises.granted.extend(granted);
                    promises.register_doubts += doubts;
                }
                Told::Counter { counter, sure, doubts } => {
                    let at = usize::try_from(counter).unwrap_or(0);
                    if promises.counted.len() <= at {
                        promises.counted.resize(at + 1, (0, 0));
                    }
                    if let Some(sum) = promises.counted.get_mut(at) {
                        sum.0 += sure;
                        sum.1 += doubts;
                    }
                }
                Told::Batches(batches) => promises.batches.push(batches),
                Told::Deletions(deletions) => promises.deletions.push(deletions),
            }
        }
        Ok(())
    }
}

/// An error that ends a client because the server is gone; anything else is a failure of the run.
pub(crate) fn gone(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}

impl Client {
    fn works(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// A connection on which these are prepared, or `None` when the kill came first or the server refuses.
    fn connect(&self, texts: &[&str]) -> Outcome<Option<(Connection, Vec<Prepared>)>> {
        let prepared = Connection::open(&self.address, 4).and_then(|mut connection| {
            let all = texts.iter().map(|text| Ok(connection.prepare(text)?.0));
            let all = all.collect::<Outcome<Vec<_>>>()?;
            Ok((connection, all))
        });
        match prepared {
            Ok(all) => Ok(Some(all)),
            Err(error) if gone(&error) => Ok(None),
            Err(Error::Refused { doing, message, .. }) => {
                self.refusals.note(&doing, &message)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a statement was acknowledged: `None` when the server is gone.
    fn did(&self, connection: &mut Connection, text: &str) -> Outcome<Option<bool>> {
        match connection.must(text) {
            Ok(_) => Ok(Some(true)),
            Err(error) if gone(&error) => Ok(None),
            Err(Error::Refused { message, .. }) => {
                self.refusals.note(text, &message)?;
                Ok(Some(false))
            }
            Err(error) => Err(error),
        }
    }
}

fn int_value(n: i32) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

fn insert(client: &Client) -> Outcome<Told> {
    let mut rows = Rows {
        cycle: client.cycle,
        writer: client.number,
        acknowledged: Acknowledged::default(),
    };
    let text = "INSERT INTO crash.rows (cycle, writer, seq, v) VALUES (?, ?, ?, ?)";
    let Some((mut connection, prepared)) = client.connect(&[text])? else {
        return Ok(Told::Rows(rows));
    };
    let prepared = prepared.first().ok_or(Error::Malformed("an id of a statement"))?;
    let mut next = 0;
    while client.works() && insert_window(client, &mut connection, prepared, next, &mut rows)? {
        next += INSERTS_IN_FLIGHT;
    }
    Ok(Told::Rows(rows))
}

/// Sends a window of inserts from `first` on and takes the answers; false when the server is gone.
fn insert_window(
    client: &Client,
    connection: &mut Connection,
    prepared: &Prepared,
    first: i32,
    rows: &mut Rows,
) -> Outcome<bool> {
    let mut bytes = Vec::new();
    for (stream, seq) in (0_i16..).zip(first..first + INSERTS_IN_FLIGHT) {
        let v = Bound::Bytes(row_value(client.cycle, client.number, seq));
        let values = vec![int_value(client.cycle), int_value(client.number), int_value(seq), v];
        let params = Params {
            values,
            ..Params::default()
        };
        connection.put(
            &mut bytes,
            stream,
            opcode::EXECUTE,
            &request::execute(4, prepared, &params),
        );
    }
    let mut done = BTreeSet::new();
    let mut lives = connection.send(&bytes).is_ok();
    for _ in 0..INSERTS_IN_FLIGHT {
        if !lives {
            break;
        }
        match connection.receive() {
            Ok(answer) if answer.opcode == opcode::RESULT => {
                done.insert(first + i32::from(answer.stream));
            }
            Ok(answer) => client.refusals.note("an insert", &told(&answer))?,
            Err(error) if gone(&error) => lives = false,
            Err(error) => return Err(error),
        }
    }
    let at = clock::now();
    for seq in done {
        rows.acknowledged.push(seq, at);
    }
    Ok(lives)
}

/// The words of a refusal.
fn told(answer: &crate::raw::Envelope) -> String {
    let plain = crate::raw::answer::plain(answer).unwrap_or_default();
    let message = plain.get("message").and_then(|message| message.as_str());
    message.map_or_else(|| plain.to_string(), str::to_owned)
}

fn race(client: &Client) -> Outcome<Told> {
    let (mut granted, mut doubts) = (Vec::new(), 0);
    let Some((mut connection, _)) = client.connect(&[])? else {
        return Ok(Told::Register { granted, doubts });
    };
    let serial = Params {
        consistency: Some(8),
        ..Params::default()
    };
    let mut attempt = 0;
    while client.works() {
        let told = match connection.query("SELECT v FROM crash.register WHERE k = 0", &serial) {
            Ok(told) => told,
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        };
        let Some(v) = int(told.pointer("/rows/0/0")) else {
            client.refusals.note("a read of the register", &told.to_string())?;
            continue;
        };
        attempt += 1;
        let mark = format!("{}-{}-{attempt}", client.cycle, client.number);
        let update = format!(
            "UPDATE crash.register SET v = {}, mark = '{mark}' WHERE k = 0 IF v = {v}",
            v + 1
        );
        match connection.query(&update, &Params::default()) {
            Ok(told) => match told.pointer("/rows/0/0").and_then(|c| c.as_str()) {
                Some("01") => granted.push((v + 1, mark)),
                Some("00") => {}
                // A timeout leaves it in doubt.
                _ if told.get("code").is_some() => doubts += 1,
                _ => return Err(Error::failed(format!("a conditional update answers {told}"))),
            },
            Err(error) if gone(&error) => {
                doubts += 1;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Told::Register { granted, doubts })
}

fn count(client: &Client) -> Outcome<Told> {
    let counter = client.number;
    let (mut sure, mut doubts) = (0, 0);
    let Some((mut connection, _)) = client.connect(&[])? else {
        return Ok(Told::Counter { counter, sure, doubts });
    };
    let text = format!("UPDATE crash.counters SET n = n + 1 WHERE k = {counter}");
    while client.works() {
        match client.did(&mut connection, &text)? {
            Some(true) => sure += 1,
            Some(false) => doubts += 1,
            None => {
                doubts += 1;
                break;
            }
        }
    }
    Ok(Told::Counter { counter, sure, doubts })
}

fn batch(client: &Client) -> Outcome<Told> {
    let mut batches = Batches {
        cycle: client.cycle,
        writer: client.number,
        ..Batches::default()
    };
    let texts = [
        "INSERT INTO crash.one (cycle, writer, seq) VALUES (?, ?, ?)",
        "INSERT INTO crash.two (cycle, writer, seq) VALUES (?, ?, ?)",
    ];
    let Some((mut connection, prepared)) = client.connect(&texts)? else {
        return Ok(Told::Batches(batches));
    };
    while client.works() {
        let seq = batches.sent;
        let values = vec![int_value(client.cycle), int_value(client.number), int_value(seq)];
        let statements: Vec<InBatch> = prepared
            .iter()
            .map(|prepared| InBatch::Prepared(prepared.clone(), values.clone()))
            .collect();
        batches.sent += 1;
        match connection.ask(opcode::BATCH, &request::batch(4, 0, &statements, &Params::default())) {
            Ok(answer) if answer.opcode == opcode::RESULT => batches.acknowledged.push(seq, clock::now()),
            Ok(answer) => client.refusals.note("a batch", &told(&answer))?,
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Told::Batches(batches))
}

/// Fills a partition, later deletes it and writes one column of each of its rows anew, still later deletes these too. Sweeps meet every
/// state between.
fn delete(client: &Client) -> Outcome<Told> {
    let mut deletions = Deletions {
        cycle: client.cycle,
        writer: client.number,
        ..Deletions::default()
    };
    let Some((mut connection, _)) = client.connect(&[])? else {
        return Ok(Told::Deletions(deletions));
    };
    let at = |n: i32| format!("cycle = {} AND writer = {} AND n = {n}", client.cycle, client.number);
    let key = format!("{}, {}", client.cycle, client.number);
    let batch = |rows: String| format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH");
    for n in 0.. {
        let (old, older) = (n - DELETED_AFTER, n - 2 * DELETED_AFTER);
        let fill = (0..DELETED_ROWS)
            .map(|c| format!("INSERT INTO crash.gone (cycle, writer, n, c, a, b) VALUES ({key}, {n}, {c}, 1, 1); "));
        let update = (0..DELETED_ROWS).map(|c| format!("UPDATE crash.gone SET a = 2 WHERE {} AND c = {c}; ", at(old)));
        let delete = |n: i32| format!("DELETE FROM crash.gone WHERE {}", at(n));
        // Of each: from which partition on there is one to be changed, and the statement.
        let steps = [
            (n, batch(fill.collect())),
            (old, delete(old)),
            (old, batch(update.collect())),
            (older, delete(older)),
        ];
        for (place, (changed, statement)) in steps.into_iter().enumerate() {
            if changed < 0 || !client.works() {
                continue;
            }
            match (client.did(&mut connection, &statement)?, place) {
                (None, _) => return Ok(Told::Deletions(deletions)),
                (Some(true), 1) => deletions.emptied.push(old, clock::now()),
                (Some(true), 3) => deletions.erased.push(older, clock::now()),
                _ => {}
            }
        }
        if !client.works() {
            break;
        }
    }
    Ok(Told::Deletions(deletions))
}
