//! A server over a store of objects that fails for a while: it answers 503, hangs, loses the answers to what it did, or takes two seconds longer. Or it
//! answers 503 to puts, and renews the lease: then every read must be answered.
//!
//! Each client counts its own register up, by an update with a condition. An update that was answered with an error may have taken effect or not,
//! and the next condition tells. A register behind what was acknowledged has lost something; one that is ahead of what was asked has it doubled.
//! After the store has come back, every client has to have a write acknowledged within `BACK_MAX`.
//!
//! A store that hangs does what was asked when it comes back, long after its clients have turned away.

pub mod moves;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bucket_speed::{end, start};
use crate::crash::int;
use crate::objects::{Fault, Latency, Objects, Protocol};
use crate::raw::{Connection, Params};
use crate::{Error, Outcome, clock};

/// Clients, each with a register.
const CLIENTS: i32 = 8;

/// Longest time from the store's return to an acknowledged write of each client.
const BACK_MAX: Duration = Duration::from_secs(5);

/// Time before a fault and after it.
const QUIET: Duration = Duration::from_secs(3);

/// Longest wait after a fault for clients that have no write acknowledged.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// SERIAL, native_protocol_v4.spec §3.
const SERIAL: u16 = 0x0008;

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE faults WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE faults.register (k int PRIMARY KEY, v int) WITH helenus_partitions = 4",
];

/// What one fault showed.
#[derive(Debug, Default)]
struct Seen {
    acknowledged: u64,
    /// Updates that were answered with an error, and of these, those that had taken effect.
    failed: u64,
    done_though_failed: u64,
    reads: u64,
    reads_failed: u64,
    /// Of the slowest client.
    back: Duration,
    wrong: Vec<String>,
}

/// What clients and the run share.
struct Shared {
    /// The server's.
    address: Mutex<String>,
    is_over: AtomicBool,
    /// The server did not start again: clients give up.
    is_given_up: AtomicBool,
    /// When the store came back; `None`: not yet.
    returned: Mutex<Option<Instant>>,
    seen: Mutex<Seen>,
    /// Clients that had a write acknowledged since.
    back: Mutex<usize>,
}

impl Shared {
    fn new(address: &str) -> Self {
        Self {
            address: Mutex::new(address.to_owned()),
            is_over: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            returned: Mutex::new(None),
            seen: Mutex::default(),
            back: Mutex::new(0),
        }
    }

    fn start_clients<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        for k in 0..CLIENTS {
            scope.spawn(move || {
                if let Err(error) = client(self, k) {
                    lock(&self.seen).wrong.push(format!("client {k}: {error}"));
                }
            });
        }
    }
}

/// Runs all faults, each for so long; true when nothing was lost or doubled and all came back in time.
///
/// # Errors
/// When the server does not start or end.
pub fn run(length: Duration, protocol: Protocol) -> Outcome<bool> {
    let store = Objects::start(protocol, Latency::REGION)?;
    let folder = tempfile::tempdir()?;
    let mut server = start(&store, folder.path())?;
    let mut connection = server.connect()?;
    for statement in SCHEMA {
        connection.must(statement)?;
    }
    let mut held = true;
    for (name, fault) in [
        ("503", Fault::Unavailable),
        ("hang", Fault::Hang),
        ("answers lost", Fault::Deaf),
        ("2 s slower", Fault::Slow(Duration::from_secs(2))),
        ("503 to puts of the log", Fault::NoLogs),
        ("503 to puts but the lease", Fault::OnlyTheLease),
    ] {
        for k in 0..CLIENTS {
            connection.must(&format!("INSERT INTO faults.register (k, v) VALUES ({k}, 0)"))?;
        }
        let seen = one(&store, server.address(), fault, length)?;
        println!(
            "{name} for {} s: {} acknowledged, {} failed, of which {} had been done; {} of {} reads failed; back after {:.2} s; {} wrong",
            length.as_secs(),
            seen.acknowledged,
            seen.failed,
            seen.done_though_failed,
            seen.reads_failed,
            seen.reads,
            seen.back.as_secs_f64(),
            seen.wrong.len()
        );
        for wrong in seen.wrong.iter().take(10) {
            println!("  {wrong}");
        }
        held &= seen.wrong.is_empty() && seen.back <= BACK_MAX;
        let must_read = matches!(fault, Fault::NoLogs | Fault::OnlyTheLease);
        held &= !must_read || (seen.reads > 0 && seen.reads_failed == 0);
        if !server.runs()? {
            println!("  the server has ended");
            return Ok(false);
        }
    }
    end(server)?;
    Ok(held)
}

fn one(store: &Objects, address: &str, fault: Fault, length: Duration) -> Outcome<Seen> {
    let shared = Shared::new(address);
    std::thread::scope(|scope| {
        shared.start_clients(scope);
        std::thread::sleep(QUIET);
        store.set(fault);
        scope.spawn(|| read(&shared, length));
        std::thread::sleep(length);
        store.set(Fault::None);
        let returned = clock::now();
        *lock(&shared.returned) = Some(returned);
        while *lock(&shared.back) < usize::try_from(CLIENTS).unwrap_or(0) && returned.elapsed() < WAIT_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        lock(&shared.seen).back = returned.elapsed();
        std::thread::sleep(QUIET);
        shared.is_over.store(true, Ordering::SeqCst);
    });
    shared.seen.into_inner().map_err(|_| Error::failed("a client panicked"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads all registers, one after another, for so long.
fn read(shared: &Shared, length: Duration) {
    let (mut connection, mut last, began) = (None, BTreeMap::new(), clock::now());
    while began.elapsed() < length {
        for k in 0..CLIENTS {
            let found = look(&mut connection, shared, k);
            let mut seen = lock(&shared.seen);
            seen.reads += 1;
            match found {
                None => seen.reads_failed += 1,
                Some(found) => {
                    let before = last.insert(k, found).unwrap_or_default();
                    if found < before {
                        seen.wrong.push(format!("register {k} was {before} and is {found}"));
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A register. `None`: the server gave no answer.
fn look(connection: &mut Option<Connection>, shared: &Shared, k: i32) -> Option<i32> {
    let address = lock(&shared.address).clone();
    let mut open = match connection.take() {
        Some(open) => open,
        None => Connection::open(&address, 4).ok()?,
    };
    let text = format!("SELECT v FROM faults.register WHERE k = {k}");
    let answer = open.query(&text, &Params::default()).ok()?;
    *connection = Some(open);
    int(answer.get("rows")?.get(0)?.get(0))
}

/// What became of an update.
enum Told {
    Applied,
    /// The register has another number.
    Not(Option<i32>),
    Failed,
}

fn client(shared: &Shared, k: i32) -> Outcome<()> {
    let (mut connection, mut known, mut is_unsure, mut is_back) = (None, 0, false, false);
    while !shared.is_over.load(Ordering::SeqCst) || (is_unsure && !shared.is_given_up.load(Ordering::SeqCst)) {
        let (next, began) = (known + 1, clock::now());
        match update(&mut connection, shared, k, known, next) {
            Told::Applied => {
                (known, is_unsure) = (next, false);
                lock(&shared.seen).acknowledged += 1;
                // Sent after the store came back.
                if !is_back && lock(&shared.returned).is_some_and(|returned| began >= returned) {
                    is_back = true;
                    *lock(&shared.back) += 1;
                }
            }
            Told::Not(Some(found)) if found == next && is_unsure => {
                (known, is_unsure) = (next, false);
                lock(&shared.seen).done_though_failed += 1;
            }
            Told::Not(found) => {
                let what = format!("register {k} is {found:?}: {known} was acknowledged, and {next} was asked for");
                lock(&shared.seen).wrong.push(what);
                return Ok(());
            }
            Told::Failed => {
                is_unsure = true;
                lock(&shared.seen).failed += 1;
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    Ok(())
}

fn update(connection: &mut Option<Connection>, shared: &Shared, k: i32, known: i32, next: i32) -> Told {
    let text = format!("UPDATE faults.register SET v = {next} WHERE k = {k} IF v = {known}");
    let mut open = match connection
        .take()
        .map_or_else(|| Connection::open(&lock(&shared.address).clone(), 4), Ok)
    {
        Ok(open) => open,
        Err(_) => return Told::Failed,
    };
    let params = Params {
        serial: Some(SERIAL),
        ..Params::default()
    };
    let Ok(answer) = open.query(&text, &params) else {
        return Told::Failed;
    };
    *connection = Some(open);
    let cell = |at: usize| answer.get("rows")?.get(0)?.get(at);
    match cell(0).and_then(Value::as_str) {
        Some("01") => Told::Applied,
        Some(_) => Told::Not(int(cell(1))),
        None => Told::Failed,
    }
}
