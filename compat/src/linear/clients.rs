//! The clients of a cycle: each sends one operation after the other until the server is gone or enough was answered, and returns
//! what it asked and was told.

use super::Options;
use super::history::{Action, Answer, Operation, Pair};
use crate::raw::request::{self, InBatch, Params};
use crate::raw::{Connection, answer, opcode, unhex};
use crate::{Error, Outcome, through};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What all clients of a run share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Operations answered so far.
    answered: AtomicU64,
    /// The time: the next number.
    now: AtomicU64,
    /// The next value to write.
    value: AtomicI32,
}

impl Shared {
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    fn value(&self) -> i32 {
        self.value.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until so many operations were answered, or no client is left.
    pub(super) fn wait_for(&self, answered: u64, clients: &Clients) {
        while self.answered() < answered && !clients.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

pub(super) type Clients = Vec<JoinHandle<Outcome<Vec<Operation>>>>;

/// Starts the clients of a cycle. In the last one they end when `until` operations were answered, else with the server.
pub(super) fn start(
    address: &str,
    options: &Options,
    cycle: u64,
    until: u64,
    shared: &Arc<Shared>,
) -> Outcome<Clients> {
    let until = if cycle == options.kills { until } else { u64::MAX };
    (0..options.clients)
        .map(|number| {
            let number = u64::try_from(number).unwrap_or_default();
            let client = Client {
                random: fastrand::Rng::with_seed(options.seed ^ (cycle << 32) ^ (number << 16)),
                shared: Arc::clone(shared),
                known: vec![[None, None]; usize::try_from(options.pairs).unwrap_or_default()],
                pairs: options.pairs,
            };
            let address = address.to_owned();
            let thread = std::thread::Builder::new().stack_size(512 << 10);
            Ok(thread.spawn(move || client.work(&address, until))?)
        })
        .collect()
}

/// Waits for all clients; what they did.
pub(super) fn join(clients: Clients) -> Outcome<Vec<Operation>> {
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.join().map_err(|_| Error::failed("a client panicked"))??);
    }
    Ok(history)
}

struct Client {
    random: fastrand::Rng,
    shared: Arc<Shared>,
    /// What it last saw of each pair: conditions that often hold.
    known: Vec<Pair>,
    pairs: i32,
}

/// An error that says that the server is gone.
fn gone(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}

impl Client {
    fn work(mut self, address: &str, until: u64) -> Outcome<Vec<Operation>> {
        let mut history = Vec::new();
        let mut pair = self.random.i32(0..self.pairs);
        let mut connection = match Connection::open(address, 4) {
            Ok(connection) => connection,
            Err(error) if gone(&error) => return Ok(history),
            Err(error) => return Err(error),
        };
        while self.shared.answered() < until {
            // Often the same as before: what was seen just now is likely to be there still.
            if self.random.u8(..3) == 0 {
                pair = self.random.i32(0..self.pairs);
            }
            let action = self.choose(pair);
            let called = self.shared.tick();
            let told = self.ask(&mut connection, pair, &action);
            let answered = self.shared.tick();
            let is_gone = matches!(&told, Err(error) if gone(error));
            let answer = match told {
                Err(error) if gone(&error) => None,
                told => read(&action, &told?)?,
            };
            if let Some(answer) = &answer {
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
                self.learn(pair, &action, answer);
            }
            history.push(Operation {
                pair,
                called,
                answer: answer.map(|answer| (answered, answer)),
                action,
            });
            if is_gone {
                break;
            }
        }
        Ok(history)
    }

    fn choose(&mut self, pair: i32) -> Action {
        let row = self.random.usize(..2);
        let known = usize::try_from(pair).ok().and_then(|pair| self.known.get(pair));
        let known = known.copied().unwrap_or_default();
        let expected = known.get(row).copied().flatten();
        match self.random.u8(..100) {
            0..25 => Action::Read,
            25..37 => Action::Insert {
                row,
                value: self.shared.value(),
            },
            37..62 => Action::Update {
                row,
                expected,
                value: self.shared.value(),
            },
            62..66 => Action::UpdateExisting {
                row,
                value: self.shared.value(),
            },
            66..72 => Action::Delete { row, expected },
            72..74 => Action::DeleteExisting { row },
            74..88 => Action::Both {
                expected: known,
                values: [self.shared.value(), self.shared.value()],
            },
            88..92 => Action::InsertBoth {
                values: [self.shared.value(), self.shared.value()],
            },
            _ => Action::Beside {
                row,
                expected,
                value: self.shared.value(),
                other: self.random.bool().then(|| self.shared.value()),
            },
        }
    }

    fn learn(&mut self, pair: i32, action: &Action, answer: &Answer) {
        let Some(known) = usize::try_from(pair).ok().and_then(|pair| self.known.get_mut(pair)) else {
            return;
        };
        match answer {
            Answer::Seen(seen) => *known = *seen,
            Answer::Applied => *known = action.applied_to(known).unwrap_or(*known),
            Answer::Refused(shown) => {
                for (slot, shown) in known.iter_mut().zip(shown) {
                    *slot = shown.unwrap_or(*slot);
                }
            }
        }
    }

    fn ask(&mut self, connection: &mut Connection, pair: i32, action: &Action) -> Outcome<Value> {
        let serial = if self.random.bool() { 8 } else { 9 };
        let statements = statements(pair, action);
        let mut params = Params {
            serial: Some(serial),
            ..Params::default()
        };
        if *action == Action::Read {
            params.consistency = Some(serial);
        }
        match statements.as_slice() {
            [text] => connection.query(text, &params),
            // As a statement or as a message.
            [first, second] if self.random.bool() => {
                connection.query(&format!("BEGIN BATCH {first}; {second}; APPLY BATCH"), &params)
            }
            _ => {
                let members: Vec<InBatch> = statements
                    .into_iter()
                    .map(|text| InBatch::Text(text, Vec::new()))
                    .collect();
                let body = request::batch(connection.version(), 0, &members, &params);
                answer::plain(&connection.ask(opcode::BATCH, &body)?)
            }
        }
    }
}

fn statements(pair: i32, action: &Action) -> Vec<String> {
    let literal = |value: &Option<i32>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    let insert = |row: usize, value: i32| {
        format!("INSERT INTO linear.registers (k, c, v) VALUES ({pair}, {row}, {value}) IF NOT EXISTS")
    };
    let update =
        |row: usize, value: i32| format!("UPDATE linear.registers SET v = {value} WHERE k = {pair} AND c = {row}");
    let update_if =
        |row: usize, expected: &Option<i32>, value: i32| format!("{} IF v = {}", update(row, value), literal(expected));
    let delete = |row: usize| format!("DELETE FROM linear.registers WHERE k = {pair} AND c = {row}");
    match action {
        Action::Read => vec![format!("SELECT c, v FROM linear.registers WHERE k = {pair}")],
        Action::Insert { row, value } => vec![insert(*row, *value)],
        Action::Update { row, expected, value } => vec![update_if(*row, expected, *value)],
        Action::UpdateExisting { row, value } => vec![format!("{} IF EXISTS", update(*row, *value))],
        Action::Delete { row, expected } => vec![format!("{} IF v = {}", delete(*row), literal(expected))],
        Action::DeleteExisting { row } => vec![format!("{} IF EXISTS", delete(*row))],
        Action::Both {
            expected: [first, second],
            values: [one, two],
        } => vec![update_if(0, first, *one), update_if(1, second, *two)],
        Action::InsertBoth { values: [one, two] } => vec![insert(0, *one), insert(1, *two)],
        Action::Beside {
            row,
            expected,
            value,
            other,
        } => vec![
            update_if(*row, expected, *value),
            other.map_or_else(|| delete(1 - row), |other| update(1 - row, other)),
        ],
    }
}

/// A 4-byte integer of a cell.
fn int(cell: &Value) -> Option<i32> {
    let bytes = unhex(cell.as_str()?)?;
    Some(i32::from_be_bytes(bytes.try_into().ok()?))
}

/// What an answer says; `None`: the operation is in doubt.
///
/// # Errors
/// When the server refuses, or says what cannot be.
fn read(action: &Action, told: &Value) -> Outcome<Option<Answer>> {
    let strange = || Error::failed(format!("{action:?} was answered {told}"));
    if let Some(code) = told.get("code").and_then(Value::as_str) {
        // Timeouts and failures of writes.
        return match code {
            "0x1100" | "0x1500" | "0x1700" => Ok(None),
            _ if through::is_owner_killed() => Ok(None),
            _ => Err(strange()),
        };
    }
    let columns = told.get("columns").and_then(Value::as_array).ok_or_else(strange)?;
    let place = |name: &str| {
        columns
            .iter()
            .position(|column| column.get("name").and_then(Value::as_str) == Some(name))
    };
    let rows = told.get("rows").and_then(Value::as_array).ok_or_else(strange)?;
    let shows = action.shows();
    // What would be shown, and is not, is not there.
    let mut shown: [Option<Option<i32>>; 2] = shows.map(|shows| shows.then_some(None));
    for cells in rows {
        if let Some(at) = place("[applied]") {
            match cells.get(at).and_then(Value::as_str) {
                Some("01") => return Ok(Some(Answer::Applied)),
                Some("00") => {}
                _ => return Err(strange()),
            }
        }
        let Some(value) = place("v").and_then(|at| cells.get(at)) else {
            continue;
        };
        let row = match place("c").and_then(|at| cells.get(at)) {
            Some(cell) => int(cell).and_then(|row| usize::try_from(row).ok()),
            None => shows.iter().position(|shows| *shows),
        };
        let slot = row.and_then(|row| shown.get_mut(row)).ok_or_else(strange)?;
        if slot.is_none() {
            return Err(strange());
        }
        *slot = Some(int(value));
    }
    Ok(Some(if *action == Action::Read {
        Answer::Seen(shown.map(Option::flatten))
    } else {
        Answer::Refused(shown)
    }))
}
