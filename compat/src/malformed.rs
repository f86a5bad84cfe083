//! Frames that no client should send, thousands in each protocol version, while a well-behaved client goes on asking.
//!
//! Held: the server lives, its log tells of no panic, its memory grows by a bounded amount, and the well-behaved
//! client gets every answer within a second.

use crate::raw::request::{self, Bound, InBatch, Params, Prepared};
use crate::raw::{Connection, opcode, put_bytes, segment};
use crate::server::{Server, rss_kib};
use crate::{Error, Outcome, clock};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Threads that send.
const SENDERS: u64 = 8;
/// Most frames on one connection.
const FRAMES_PER_CONNECTION: usize = 8;
/// Wait for an answer to a bad frame; there need not be one.
const ANSWER_WAIT: Duration = Duration::from_millis(5);
/// Most the server's memory may grow, in KiB.
const GROWTH_KIB_MAX: u64 = 256 * 1024;
/// Longest the well-behaved client waits, in milliseconds.
const GOOD_CLIENT_MS_MAX: f64 = 1000.0;

/// Sends `frames` frames in each version; true when all held.
///
/// # Errors
/// When the server cannot be started.
pub fn run(frames: usize, seed: u64) -> Outcome<bool> {
    let folder = tempfile::tempdir()?;
    let mut server = Server::start("memory:", folder.path())?;
    let mut setup = server.connect()?;
    setup.must("CREATE KEYSPACE bad WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")?;
    setup.must("CREATE TABLE bad.t (k int PRIMARY KEY, v text, l list<int>, m map<text, int>)")?;
    setup.must("INSERT INTO bad.t (k, v, l) VALUES (1, 'a', [1, 2])")?;
    let before = rss_kib(server.pid())?;
    let mut held = true;
    for version in [3, 4, 5] {
        let stop = Arc::new(AtomicBool::new(false));
        let good = {
            let (address, stop) = (server.address().to_owned(), Arc::clone(&stop));
            std::thread::spawn(move || good_client(&address, &stop))
        };
        let senders = (0..SENDERS)
            .map(|sender| {
                let address = server.address().to_owned();
                let share = frames / usize::try_from(SENDERS).unwrap_or(1) + 1;
                let random = fastrand::Rng::with_seed(seed ^ (u64::from(version) << 32) ^ sender);
                std::thread::spawn(move || send(&address, version, share, random))
            })
            .collect::<Vec<_>>();
        let mut sent = 0;
        for sender in senders {
            sent += sender.join().map_err(|_| Error::failed("a sender panicked"))?;
        }
        stop.store(true, Ordering::Relaxed);
        let (answers, slowest) = match good.join().map_err(|_| Error::failed("the good client panicked"))? {
            Ok(told) => told,
            Err(error) => {
                println!("malformed: version {version}: the good client was not answered: {error}");
                (0, f64::INFINITY)
            }
        };
        let asked = server
            .connect()
            .and_then(|mut c| c.must("SELECT v FROM bad.t WHERE k = 1"));
        if let Err(error) = &asked {
            println!("malformed: version {version}: a new client is not answered: {error}");
        }
        let alive = server.runs()?;
        println!(
            "malformed: version {version}: {sent} frames, server {}, good client {answers} answers, slowest {slowest:.0} ms",
            if alive { "lives" } else { "is gone" },
        );
        held &= alive && asked.is_ok() && slowest <= GOOD_CLIENT_MS_MAX;
    }
    // A server that is gone holds nothing, and has been reported.
    let after = rss_kib(server.pid()).unwrap_or(0);
    let growth = after.saturating_sub(before);
    let panics = server.panics();
    println!(
        "malformed: memory grew by {} MiB (≤ {}), {panics} panics in the log",
        growth / 1024,
        GROWTH_KIB_MAX / 1024
    );
    let good = held && growth <= GROWTH_KIB_MAX && panics == 0;
    if !good {
        println!("malformed: the server's log is kept in {}", folder.keep().display());
    }
    Ok(good)
}

/// Asks until told to stop; how many answers, and the slowest in milliseconds.
fn good_client(address: &str, stop: &AtomicBool) -> Outcome<(usize, f64)> {
    let mut connection = Connection::open(address, 4)?;
    let (mut answers, mut slowest) = (0, 0.0f64);
    while !stop.load(Ordering::Relaxed) {
        let start = clock::now();
        connection.must("SELECT v FROM bad.t WHERE k = 1")?;
        slowest = slowest.max(clock::millis_since(start));
        answers += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok((answers, slowest))
}

/// Sends `count` frames over as many connections as it takes; what goes wrong on a socket is the server's good right.
fn send(address: &str, version: u8, count: usize, mut random: fastrand::Rng) -> usize {
    let mut sent = 0;
    while sent < count {
        let started = random.u8(..) < 200;
        let Ok(mut stream) = TcpStream::connect(address) else {
            std::thread::sleep(Duration::from_millis(20));
            sent += 1;
            continue;
        };
        let limits = stream.set_read_timeout(Some(ANSWER_WAIT)).and(stream.set_nodelay(true));
        if limits.is_err() || (started && start_up(&mut stream, version).is_err()) {
            sent += 1;
            continue;
        }
        for _ in 0..random.usize(1..=FRAMES_PER_CONNECTION) {
            let bytes = bad_bytes(version, started, &mut random);
            sent += 1;
            if stream.write_all(&bytes).is_err() {
                break;
            }
            let mut answer = [0u8; 4096];
            match stream.read(&mut answer) {
                Ok(0) => break,
                Err(error)
                    if !matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    break;
                }
                _ => {}
            }
        }
    }
    sent
}

fn start_up(stream: &mut TcpStream, version: u8) -> std::io::Result<()> {
    stream.write_all(&envelope(
        version,
        0,
        opcode::STARTUP,
        &request::startup(&[("CQL_VERSION", "3.0.0")]),
    ))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut head = [0u8; 9];
    stream.read_exact(&mut head)?;
    stream.set_read_timeout(Some(ANSWER_WAIT))
}

fn envelope(version: u8, flags: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version, flags, 0, 1, opcode];
    put_bytes(&mut out, body);
    out
}

/// Bytes that are wrong somewhere, most of the time.
fn bad_bytes(version: u8, started: bool, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = match random.u8(..10) {
        0 => (0..random.usize(1..200)).map(|_| random.u8(..)).collect(),
        1 => lying_length(version, random),
        2 => {
            let body = (0..random.usize(0..64)).map(|_| random.u8(..)).collect::<Vec<_>>();
            envelope(version, random.u8(..), random.u8(..), &body)
        }
        _ => {
            let (opcode, body) = good_request(version, random);
            let mut bytes = envelope(
                version,
                if random.u8(..) < 40 { random.u8(..) } else { 0 },
                opcode,
                &body,
            );
            mutate(&mut bytes, random);
            bytes
        }
    };
    if version >= 5 && started {
        let mut framed = Vec::new();
        segment::put_envelope(&mut framed, &bytes);
        // Checksums that fail end a connection at once, so most segments stay whole.
        if random.u8(..) < 60 {
            mutate(&mut framed, random);
        }
        bytes = framed;
    }
    bytes
}

/// A header that announces another length than what follows.
fn lying_length(version: u8, random: &mut fastrand::Rng) -> Vec<u8> {
    let announced: i32 = match random.u8(..5) {
        0 => -1,
        1 => i32::MIN,
        2 => i32::MAX,
        3 => 256 << 20,
        _ => random.i32(0..100_000),
    };
    let mut out = vec![
        version,
        0,
        0,
        1,
        random.choice([1, 5, 7, 9, 10, 11, 13, 15]).unwrap_or(7),
    ];
    out.extend_from_slice(&announced.to_be_bytes());
    out.extend((0..random.usize(0..300)).map(|_| random.u8(..)));
    out
}

/// A few bytes flipped, cut, doubled or set to what limits are made of.
fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 => {
                for byte in bytes.iter_mut().skip(at).take(4) {
                    *byte = 0xFF;
                }
            }
            3 => {
                for byte in bytes.iter_mut().skip(at).take(2) {
                    *byte = random.choice([0, 0x7F, 0x80, 0xFF]).unwrap_or(0);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.u8(..8);
                }
            }
        }
    }
}

/// A request as a client could send it, to be spoiled.
fn good_request(version: u8, random: &mut fastrand::Rng) -> (u8, Vec<u8>) {
    let params = Params {
        values: (0..random.usize(0..4)).map(|_| bound(random)).collect(),
        page_size: random.bool().then(|| random.i32(-5..10)),
        paging_state: (random.u8(..) < 50).then(|| (0..random.usize(0..40)).map(|_| random.u8(..)).collect()),
        serial: random.bool().then(|| random.u16(..12)),
        timestamp: random.bool().then(|| random.i64(..)),
        keyspace: (random.u8(..) < 50).then(|| "bad".to_owned()),
        now: (random.u8(..) < 50).then(|| random.i32(..)),
        consistency: Some(random.u16(..14)),
        skip_metadata: random.bool(),
        names: Vec::new(),
    };
    let prepared = Prepared {
        id: (0..random.usize(0..20)).map(|_| random.u8(..)).collect(),
        metadata_id: (0..16).map(|_| random.u8(..)).collect(),
    };
    match random.u8(..8) {
        0 => (
            opcode::STARTUP,
            request::startup(&[("CQL_VERSION", "3.0.0"), ("COMPRESSION", "lz4")]),
        ),
        1 => (opcode::OPTIONS, Vec::new()),
        2 => (
            opcode::PREPARE,
            request::prepare(version, &statement(random), random.bool().then_some("bad")),
        ),
        3 => (opcode::EXECUTE, request::execute(version, &prepared, &params)),
        4 => {
            let text = InBatch::Text(statement(random), vec![bound(random)]);
            let statements = [text, InBatch::Prepared(prepared, vec![bound(random)])];
            (
                opcode::BATCH,
                request::batch(version, random.u8(..4), &statements, &params),
            )
        }
        5 => (opcode::REGISTER, request::register(&["SCHEMA_CHANGE", "NONSENSE"])),
        6 => (
            opcode::AUTH_RESPONSE,
            (0..random.usize(0..40)).map(|_| random.u8(..)).collect(),
        ),
        _ => (opcode::QUERY, request::query(version, &statement(random), &params)),
    }
}

fn bound(random: &mut fastrand::Rng) -> Bound {
    match random.u8(..5) {
        0 => Bound::Null,
        1 => Bound::Unset,
        2 => Bound::Bytes(1i32.to_be_bytes().to_vec()),
        _ => Bound::Bytes((0..random.usize(0..40)).map(|_| random.u8(..)).collect()),
    }
}

fn statement(random: &mut fastrand::Rng) -> String {
    let deep = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    match random.u8(..9) {
        0 => "SELECT * FROM bad.t WHERE k = ?".to_owned(),
        1 => "INSERT INTO bad.t (k, v, l, m) VALUES (2, ?, ?, ?)".to_owned(),
        2 => format!(
            "INSERT INTO bad.t (k, l) VALUES (3, {})",
            deep("[", "]", random.usize(1..5000))
        ),
        3 => format!("SELECT {} FROM bad.t", deep("token(", ")", random.usize(1..2000))),
        4 => format!(
            "SELECT * FROM bad.t WHERE k IN ({})",
            "1,".repeat(random.usize(1..3000))
        ),
        5 => format!(
            "SELECT * FROM bad.t WHERE {}",
            "k = ? AND ".repeat(random.usize(1..500))
        ),
        6 => "'".repeat(random.usize(1..100)),
        7 => (0..random.usize(0..100)).map(|_| random.char(..)).collect(),
        _ => "UPDATE bad.t SET l = l + ?, m[?] = ? WHERE k = ? IF v = ?".to_owned(),
    }
}
