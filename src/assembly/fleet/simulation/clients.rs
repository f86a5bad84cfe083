//! The clients of a simulated fleet: each asks any node, and judges the answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use helenus_types::consistency::Consistency;
use helenus_types::wire::request::{Params, Query, Request};
use helenus_types::wire::response::Body;
use helenus_types::wire::{Header, Opcode, Version};
use tokio::task::JoinHandle;

use super::model::{List, Mark, Register};
use super::nodes::{Process, World};
use crate::server::{Events, Handled, Handler, Session};

/// Clients that append and swap, and that write and read columns.
const WRITERS: usize = 5;

/// Lists, registers, rows of the table whose columns change.
const LISTS: u64 = 3;
const REGISTERS: u64 = 1;
const ROWS: u64 = 4;

/// How often a client swaps without a pause, so that others are likely to swap at once.
const SWAPS: usize = 4;

/// Most columns that can be dropped.
const COLUMNS_MAX: usize = 5;

/// The pause between two statements of a client.
const PAUSE_MAX_MS: u64 = 60;
const CHANGE_PAUSE_MAX_MS: u64 = 800;

/// One client in so many leaves before its answer, within so many milliseconds.
const LEAVES_ONE_IN: u64 = 6;
const LEAVES_WITHIN_MS: u64 = 12;

/// Most reads of a list at rest until one is answered.
const READS_MAX: u32 = 20;

/// A value of a column says of which one it is.
const VALUES: i64 = 1_000_000;

const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS ks.l (k int PRIMARY KEY, v list<bigint>)",
    "CREATE TABLE IF NOT EXISTS ks.r (k int PRIMARY KEY, v bigint)",
    "CREATE TABLE IF NOT EXISTS ks.d (k int PRIMARY KEY, m bigint)",
];

/// Codes of errors after which a write or a change of the schema may have been done. An owner that loses its stores within a change answers
/// with a failure to read.
const UNSURE: [i32; 4] = [0x0000, 0x1100, 0x1300, 0x1500];
const INVALID: i32 = 0x2200;

/// What the clients know.
#[derive(Default)]
struct Known {
    lists: BTreeMap<u64, List>,
    registers: BTreeMap<u64, Register>,
    /// The numbers of the columns that are there, or may be.
    columns: Vec<i64>,
}

pub(super) struct Clients {
    world: Rc<World>,
    known: RefCell<Known>,
}

/// How a statement ended.
enum Outcome {
    /// The names of the columns, and rows.
    Rows(Vec<String>, Vec<Vec<Option<bytes::Bytes>>>),
    Done,
    /// Nothing was done.
    Refused(i32, String),
    /// It may have been done.
    Unknown(String),
}

impl Outcome {
    /// A number that fills the first column of the first row. `None`: there is none.
    fn number(&self) -> Option<i64> {
        let Self::Rows(_, rows) = self else { return None };
        rows.first()?.first()?.as_ref().map(number)
    }
}

fn number(value: &bytes::Bytes) -> i64 {
    match value.len() {
        1 => i64::from(value[0]),
        _ => i64::from_be_bytes(value[..8].try_into().unwrap()),
    }
}

/// The elements of a list of bigint.
fn elements(value: Option<&bytes::Bytes>) -> Vec<i64> {
    let Some(mut value) = value.cloned() else {
        return Vec::new();
    };
    (0..value.get_i32())
        .map(|_| (value.get_i32(), value.get_i64()).1)
        .collect()
}

fn read_rows(rows: &helenus_types::wire::response::Rows) -> Outcome {
    let names: Vec<String> = rows
        .metadata
        .columns()
        .iter()
        .map(|column| column.name.to_string())
        .collect();
    let mut content = rows.content.clone();
    let mut read = Vec::new();
    for _ in 0..rows.row_count {
        let cells = names.iter().map(|_| {
            let length = usize::try_from(content.get_i32()).ok()?;
            Some(content.split_to(length))
        });
        read.push(cells.collect());
    }
    Outcome::Rows(names, read)
}

/// An error of a code.
fn failed(code: i32, text: String) -> Outcome {
    if UNSURE.contains(&code) {
        return Outcome::Unknown(text);
    }
    Outcome::Refused(code, text)
}

impl Clients {
    /// A node that runs. `None`: there is none.
    fn process(&self) -> Option<(usize, Rc<Process>)> {
        let running = self.world.processes();
        let count = u64::try_from(running.len()).unwrap();
        (count > 0).then(|| running[usize::try_from(self.world.below(count)).unwrap()].clone())
    }

    /// Asks any node.
    async fn ask(&self, text: &str) -> Outcome {
        match self.process() {
            Some((place, process)) => self.ask_at(place, &process, text).await,
            None => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Outcome::Refused(0x1000, "no node runs".to_owned())
            }
        }
    }

    /// Asks a node, until it answers or is killed.
    async fn ask_at(&self, place: usize, process: &Process, text: &str) -> Outcome {
        let number = self.world.number();
        self.world.note(|| format!("{number} n{place} {text}"));
        process.at_work.set(process.at_work.get() + 1);
        let mut killed = process.killed.subscribe();
        let patience = if self.world.below(LEAVES_ONE_IN) == 0 {
            self.world.below(LEAVES_WITHIN_MS)
        } else {
            u64::from(u32::MAX)
        };
        let outcome = tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_millis(patience)) => Outcome::Unknown("the client has left".to_owned()),
            _ = killed.wait_for(|killed| *killed) => Outcome::Unknown("the node was killed".to_owned()),
            outcome = sent(process, text) => outcome,
        };
        process.at_work.set(process.at_work.get() - 1);
        match &outcome {
            Outcome::Done => self.world.note(|| format!("{number} done")),
            Outcome::Rows(_, rows) => self.world.note(|| format!("{number} {rows:?}")),
            Outcome::Refused(code, text) => {
                if *code == 0x1000 {
                    self.world.mark(Mark::Refused);
                }
                self.world.note(|| format!("{number} refused {code:x} {text}"));
            }
            Outcome::Unknown(text) => {
                self.world.mark(Mark::Unanswered);
                self.world.note(|| format!("{number} unknown {text}"));
            }
        }
        outcome
    }

    async fn write_and_read(&self) {
        while !self.world.is_over() {
            match self.world.below(10) {
                0..3 => self.append().await,
                3..5 => drop(self.read_list(self.world.below(LISTS)).await),
                5..7 => {
                    for _ in 0..SWAPS {
                        self.swap().await;
                    }
                }
                7 | 8 => self.write_column().await,
                _ => self.read_columns().await,
            }
            self.world.sleep_up_to(PAUSE_MAX_MS).await;
        }
    }

    /// Appends a number to a list; half of the clients date their writes.
    async fn append(&self) {
        let (list, number) = (self.world.below(LISTS), self.world.number());
        let dated = if self.world.below(2) == 0 {
            format!(" USING TIMESTAMP {number}")
        } else {
            String::new()
        };
        self.known.borrow_mut().lists.entry(list).or_default().begin(number);
        let outcome = self
            .ask(&format!("UPDATE ks.l{dated} SET v = v + [{number}] WHERE k = {list}"))
            .await;
        let mut known = self.known.borrow_mut();
        let list = known.lists.entry(list).or_default();
        match outcome {
            Outcome::Done | Outcome::Rows(..) => {
                self.world.mark(Mark::Acknowledged);
                list.done(number);
            }
            Outcome::Refused(..) => list.never(number),
            Outcome::Unknown(_) => {}
        }
    }

    /// Reads a list. Returns whether it was answered.
    async fn read_list(&self, list: u64) -> bool {
        let certain = self.known.borrow_mut().lists.entry(list).or_default().certain();
        let outcome = self.ask(&format!("SELECT v FROM ks.l WHERE k = {list}")).await;
        let Outcome::Rows(_, rows) = outcome else { return false };
        let seen = rows.first().map_or_else(Vec::new, |row| elements(row[0].as_ref()));
        let judged = self
            .known
            .borrow_mut()
            .lists
            .entry(list)
            .or_default()
            .judge(&certain, &seen);
        match judged {
            Ok(0) => {}
            Ok(_) => self.world.mark(Mark::DoneUnanswered),
            Err(what) => self.world.fail(format!("list {list}: {what}")),
        }
        true
    }

    /// Replaces the value of a register by a new one, if it is still the one that was read.
    async fn swap(&self) {
        let (register, to) = (self.world.below(REGISTERS), self.world.number());
        let read = self.ask(&format!("SELECT v FROM ks.r WHERE k = {register}")).await;
        let Some(from) = read.number() else { return };
        self.seen(register, from);
        self.known
            .borrow_mut()
            .registers
            .entry(register)
            .or_default()
            .begin(from, to);
        let outcome = self
            .ask(&format!("UPDATE ks.r SET v = {to} WHERE k = {register} IF v = {from}"))
            .await;
        match outcome.number() {
            Some(1) => self.seen(register, to),
            Some(_) => self.world.mark(Mark::NotSwapped),
            None => {}
        }
    }

    fn seen(&self, register: u64, value: i64) {
        let seen = self
            .known
            .borrow_mut()
            .registers
            .entry(register)
            .or_default()
            .seen(value);
        self.world
            .judge(seen.map_err(|what| format!("register {register}: {what}")));
    }

    fn column(&self) -> Option<i64> {
        let columns = self.known.borrow().columns.clone();
        let count = u64::try_from(columns.len()).unwrap();
        (count > 0).then(|| columns[usize::try_from(self.world.below(count)).unwrap()])
    }

    async fn write_column(&self) {
        let Some(column) = self.column() else { return };
        let value = column * VALUES + self.world.number();
        let (row, name) = (self.world.below(ROWS), name_of(column));
        // The column may be dropped meanwhile.
        let _ = self
            .ask(&format!("INSERT INTO ks.d (k, {name}) VALUES ({row}, {value})"))
            .await;
    }

    async fn read_columns(&self) {
        let row = self.world.below(ROWS);
        let text = match self.column() {
            Some(column) if self.world.below(2) == 0 => format!("SELECT {} FROM ks.d WHERE k = {row}", name_of(column)),
            _ => format!("SELECT * FROM ks.d WHERE k = {row}"),
        };
        let Outcome::Rows(names, rows) = self.ask(&text).await else {
            return;
        };
        for (name, value) in names.iter().zip(rows.first().into_iter().flatten()) {
            let (Some(column), Some(value)) = (column_of(name), value) else {
                continue;
            };
            if number(value) / VALUES != column {
                self.world
                    .fail(format!("column {name} has the value {}", number(value)));
            }
        }
    }

    /// Adds and drops columns, and looks whether each node knows.
    async fn change(&self) {
        while !self.world.is_over() {
            self.world.sleep_up_to(CHANGE_PAUSE_MAX_MS).await;
            let count = self.known.borrow().columns.len();
            if count == 0 || (count < COLUMNS_MAX && self.world.below(2) == 0) {
                let column = self.world.number();
                self.known.borrow_mut().columns.push(column);
                self.changed(&format!(
                    "ALTER TABLE ks.d ADD IF NOT EXISTS {} bigint",
                    name_of(column)
                ))
                .await;
                self.look(column, true).await;
            } else if let Some(column) = self.column() {
                self.changed(&format!("ALTER TABLE ks.d DROP IF EXISTS {}", name_of(column)))
                    .await;
                self.look(column, false).await;
                self.known.borrow_mut().columns.retain(|other| *other != column);
            }
        }
    }

    /// Asks for a change of the schema until it is acknowledged.
    async fn changed(&self, text: &str) {
        loop {
            match self.ask(text).await {
                Outcome::Done | Outcome::Rows(..) => return self.world.mark(Mark::Changed),
                Outcome::Refused(code, what) if code != 0x1000 => {
                    return self.world.fail(format!("{text}: {code:x} {what}"));
                }
                Outcome::Refused(..) | Outcome::Unknown(_) if self.world.failure().is_some() => return,
                Outcome::Refused(..) | Outcome::Unknown(_) => self.world.mark(Mark::ChangeRepeated),
            }
        }
    }

    /// Asks all nodes for a column whose change was acknowledged.
    async fn look(&self, column: i64, is_there: bool) {
        if self.world.is_over() {
            return;
        }
        let name = name_of(column);
        let text = format!("SELECT {name} FROM ks.d WHERE k = 0");
        let running = self.world.processes();
        let asked = running
            .iter()
            .map(|(place, process)| async { (*place, self.ask_at(*place, process, &text).await) });
        for (place, outcome) in futures::future::join_all(asked).await {
            match outcome {
                Outcome::Rows(..) | Outcome::Done if !is_there => {
                    self.world
                        .fail(format!("n{place} shows the column {name}, whose drop was acknowledged"));
                }
                Outcome::Refused(INVALID, what) if is_there => {
                    self.world.fail(format!(
                        "n{place} does not know the column {name}, which was added: {what}"
                    ));
                }
                _ => {}
            }
        }
    }
}

/// The name of a column: such that a new one stands anywhere among the others.
fn name_of(column: i64) -> String {
    let letter = char::from(b'a' + u8::try_from(column * 11 % 26).unwrap());
    format!("{letter}{column}")
}

fn column_of(name: &str) -> Option<i64> {
    name.get(1..)?.parse().ok()
}

/// Sends a statement, as a driver does.
async fn sent(process: &Process, text: &str) -> Outcome {
    let params = Params {
        consistency: Consistency::Quorum,
        ..Params::default()
    };
    let mut body = Vec::new();
    Request::Query(Query { text, params }).write(&mut body, Version::V4);
    let header = Header {
        version: Version::V4,
        flags: 0,
        stream: 1,
        opcode_byte: Opcode::Query.byte(),
        length: body.len(),
    };
    let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let session = Arc::new(Session::new(client, false, Arc::new(Events::default())));
    let Handled::Answer(response) = Arc::clone(&process.requests).handle(session, header, body.into()).await else {
        return Outcome::Refused(0x1001, "no memory".to_owned());
    };
    match response.body {
        Body::Error(error) => failed(i32::from(error.code().number()), error.message().to_owned()),
        Body::Relayed(mut relayed) if relayed.opcode == Opcode::Error => failed(
            relayed.bytes.get_i32(),
            String::from_utf8_lossy(&relayed.bytes).into_owned(),
        ),
        Body::Rows(rows) => read_rows(&rows),
        _ => Outcome::Done,
    }
}

/// Makes the tables.
pub(super) async fn prepare(world: &Rc<World>) -> Rc<Clients> {
    let clients = Rc::new(Clients {
        world: Rc::clone(world),
        known: RefCell::default(),
    });
    for text in SCHEMA {
        clients.changed(text).await;
    }
    for register in 0..REGISTERS {
        let text = format!("INSERT INTO ks.r (k, v) VALUES ({register}, {})", world.number());
        clients.changed(&text).await;
    }
    clients
}

/// Sets the clients to work.
pub(super) fn spawn(clients: &Rc<Clients>) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    for _ in 0..WRITERS {
        let clients = Rc::clone(clients);
        tasks.push(tokio::task::spawn_local(async move { clients.write_and_read().await }));
    }
    let clients = Rc::clone(clients);
    tasks.push(tokio::task::spawn_local(async move { clients.change().await }));
    tasks
}

/// Checks all lists once nothing fails any more.
pub(super) async fn check_at_rest(clients: &Clients) {
    for list in 0..LISTS {
        let mut tries = 0;
        // A client may leave before its answer.
        while clients.world.failure().is_none() && !clients.read_list(list).await {
            tries += 1;
            if tries == READS_MAX {
                clients.world.fail(format!("list {list} cannot be read at rest"));
            }
        }
    }
}
