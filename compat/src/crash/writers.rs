//! The clients of a cycle. Each writes until the server is gone and returns what it was told.

use super::{BATCHERS, COUNTERS, INSERTERS, Promises, RACERS, int, row_value};
use crate::raw::request::{self, Bound, InBatch, Params, Prepared};
use crate::raw::{Connection, opcode};
use crate::{Error, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Inserts in flight on one connection.
const INSERTS_IN_FLIGHT: usize = 16;

/// What one client was told.
#[derive(Debug)]
pub(super) enum Told {
    Rows {
        cycle: i32,
        writer: i32,
        acknowledged: i32,
    },
    Register {
        granted: Vec<(i32, String)>,
        doubts: i32,
    },
    Counter {
        counter: i32,
        sure: i64,
        doubts: i64,
    },
    Batches {
        cycle: i32,
        writer: i32,
        acknowledged: i32,
        sent: i32,
    },
}

type Writers = Vec<JoinHandle<Outcome<Told>>>;

/// Starts all clients of a cycle.
pub(super) fn start(address: &str, cycle: i32, stop: &Arc<AtomicBool>) -> Writers {
    let mut threads = Writers::new();
    for writer in 0..INSERTERS {
        let (address, stop) = (address.to_owned(), Arc::clone(stop));
        threads.push(std::thread::spawn(move || insert(&address, cycle, writer, &stop)));
    }
    for racer in 0..RACERS {
        let (address, stop) = (address.to_owned(), Arc::clone(stop));
        threads.push(std::thread::spawn(move || race(&address, cycle, racer, &stop)));
    }
    for counter in 0..COUNTERS {
        let (address, stop) = (address.to_owned(), Arc::clone(stop));
        threads.push(std::thread::spawn(move || count(&address, counter, &stop)));
    }
    for writer in 0..BATCHERS {
        let (address, stop) = (address.to_owned(), Arc::clone(stop));
        threads.push(std::thread::spawn(move || batch(&address, cycle, writer, &stop)));
    }
    threads
}

/// Waits for all and adds what they were told to the promises.
pub(super) fn join(threads: Writers, promises: &mut Promises) -> Outcome<()> {
    for thread in threads {
        match thread.join().map_err(|_| Error::failed("a writer panicked"))?? {
            Told::Rows {
                cycle,
                writer,
                acknowledged,
            } => promises.rows.push((cycle, writer, acknowledged)),
            Told::Register { granted, doubts } => {
                promises.granted.extend(granted);
                promises.register_doubts += doubts;
            }
            Told::Counter { counter, sure, doubts } => {
                let at = usize::try_from(counter).unwrap_or(0);
                if let Some(sum) = promises.counted.get_mut(at) {
                    sum.0 += sure;
                    sum.1 += doubts;
                }
            }
            Told::Batches {
                cycle,
                writer,
                acknowledged,
                sent,
            } => {
                promises.batches.push((cycle, writer, acknowledged, sent));
            }
        }
    }
    Ok(())
}

fn int_value(n: i32) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

/// An error that ends a client because the server is gone; anything else is a failure of the run.
fn gone(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}

/// A connection, or `None` when the kill came first.
fn connect(address: &str) -> Outcome<Option<Connection>> {
    match Connection::open(address, 4) {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The prepared statement, or `None` when the kill came first.
fn prepare(connection: &mut Connection, text: &str) -> Outcome<Option<Prepared>> {
    match connection.prepare(text) {
        Ok((prepared, _)) => Ok(Some(prepared)),
        Err(error) if gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn insert(address: &str, cycle: i32, writer: i32, stop: &AtomicBool) -> Outcome<Told> {
    let mut acknowledged = 0;
    let told = |acknowledged| {
        Ok(Told::Rows {
            cycle,
            writer,
            acknowledged,
        })
    };
    let Some(mut connection) = connect(address)? else {
        return told(0);
    };
    let text = "INSERT INTO crash.rows (cycle, writer, seq, v) VALUES (?, ?, ?, ?)";
    let Some(prepared) = prepare(&mut connection, text)? else {
        return told(0);
    };
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut bytes = Vec::new();
        for stream in 0..INSERTS_IN_FLIGHT {
            let v = Bound::Bytes(row_value(cycle, writer, next));
            let params = Params {
                values: vec![int_value(cycle), int_value(writer), int_value(next), v],
                ..Params::default()
            };
            let stream = i16::try_from(stream).unwrap_or(0);
            connection.put(
                &mut bytes,
                stream,
                opcode::EXECUTE,
                &request::execute(4, &prepared, &params),
            );
            next += 1;
        }
        if connection.send(&bytes).is_err() {
            break;
        }
        // Rows are promised in order only when the whole window was acknowledged; of a broken window none is counted.
        let mut window = 0;
        while window < INSERTS_IN_FLIGHT {
            match connection.receive() {
                Ok(answer) if answer.opcode == opcode::RESULT => window += 1,
                Ok(answer) => return Err(Error::failed(format!("an insert was refused: {answer:?}"))),
                Err(error) if gone(&error) => return told(acknowledged),
                Err(error) => return Err(error),
            }
        }
        acknowledged = next;
    }
    told(acknowledged)
}

fn race(address: &str, cycle: i32, racer: i32, stop: &AtomicBool) -> Outcome<Told> {
    let mut granted = Vec::new();
    let mut doubts = 0;
    let Some(mut connection) = connect(address)? else {
        return Ok(Told::Register { granted, doubts });
    };
    let serial = Params {
        consistency: Some(8),
        ..Params::default()
    };
    let mut attempt = 0;
    while !stop.load(Ordering::Relaxed) {
        let told = match connection.query("SELECT v FROM crash.register WHERE k = 0", &serial) {
            Ok(told) => told,
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        };
        let v = int(told.pointer("/rows/0/0")).ok_or_else(|| Error::failed(format!("the register reads {told}")))?;
        attempt += 1;
        let mark = format!("{cycle}-{racer}-{attempt}");
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

fn count(address: &str, counter: i32, stop: &AtomicBool) -> Outcome<Told> {
    let (mut sure, mut doubts) = (0, 0);
    let Some(mut connection) = connect(address)? else {
        return Ok(Told::Counter { counter, sure, doubts });
    };
    let text = format!("UPDATE crash.counters SET n = n + 1 WHERE k = {counter}");
    while !stop.load(Ordering::Relaxed) {
        match connection.query(&text, &Params::default()) {
            Ok(told) if told.get("code").is_none() => sure += 1,
            Ok(told) => return Err(Error::failed(format!("an increment was refused: {told}"))),
            Err(error) if gone(&error) => {
                doubts += 1;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Told::Counter { counter, sure, doubts })
}

fn batch(address: &str, cycle: i32, writer: i32, stop: &AtomicBool) -> Outcome<Told> {
    let (mut acknowledged, mut sent) = (0, 0);
    let told = |acknowledged, sent| {
        Ok(Told::Batches {
            cycle,
            writer,
            acknowledged,
            sent,
        })
    };
    let Some(mut connection) = connect(address)? else {
        return told(0, 0);
    };
    let one = "INSERT INTO crash.one (cycle, writer, seq) VALUES (?, ?, ?)";
    let two = "INSERT INTO crash.two (cycle, writer, seq) VALUES (?, ?, ?)";
    let Some(one) = prepare(&mut connection, one)? else {
        return told(0, 0);
    };
    let Some(two) = prepare(&mut connection, two)? else {
        return told(0, 0);
    };
    while !stop.load(Ordering::Relaxed) {
        let values = vec![int_value(cycle), int_value(writer), int_value(sent)];
        let statements = [
            InBatch::Prepared(one.clone(), values.clone()),
            InBatch::Prepared(two.clone(), values),
        ];
        sent += 1;
        match connection.ask(opcode::BATCH, &request::batch(4, 0, &statements, &Params::default())) {
            Ok(answer) if answer.opcode == opcode::RESULT => acknowledged = sent,
            Ok(answer) => return Err(Error::failed(format!("a batch was refused: {answer:?}"))),
            Err(error) if gone(&error) => break,
            Err(error) => return Err(error),
        }
    }
    told(acknowledged, sent)
}
