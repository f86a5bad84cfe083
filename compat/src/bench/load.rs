//! The load itself.

use super::{Figures, Load};
use crate::raw::request::{self, Bound, InBatch, Params, Prepared};
use crate::raw::{Connection, Envelope, opcode};
use crate::{Error, Outcome, clock, server};
use std::time::{Duration, Instant};

/// Rows in a partition of `bench.wide`.
const ROWS_PER_PARTITION: i32 = 1000;
/// What an answer must hold, of the values that were sent.
type Holds = fn(&[Bound], &Load) -> Vec<u8>;

/// A statement and the values that go with it.
#[derive(Debug)]
struct Statement {
    text: &'static str,
    values: fn(&mut fastrand::Rng, &Load) -> Vec<Bound>,
    /// `None` means that no answer is looked into.
    holds: Option<Holds>,
}

/// How statements are sent.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Prepared, one of them at random.
    Execute,
    /// Prepared, so many in an unlogged batch.
    Batch(usize),
    /// As text, with its values beside it.
    Query,
}

/// What a phase asks.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    statements: &'static [Statement],
    form: Form,
    /// Least bytes of an answer: a server that finds nothing is quick, and wrong.
    answer_bytes_min: usize,
}

/// The kind of a batch that is not logged.
const UNLOGGED: u8 = 1;
/// One answer in so many is looked into.
const ANSWERS_A_CHECK: u64 = 1000;

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

const INSERT: Statement = Statement {
    text: "INSERT INTO bench.narrow (k, v) VALUES (?, ?)",
    values: insert_values,
    holds: None,
};
const READ: Statement = Statement {
    text: "SELECT k, v FROM bench.narrow WHERE k = ?",
    values: read_values,
    holds: Some(cell_and_value),
};
const SLICE: Statement = Statement {
    text: "SELECT c, v FROM bench.wide WHERE k = ? AND c >= ? LIMIT 100",
    values: slice_values,
    holds: Some(slice_begin),
};
const UPDATE: Statement = Statement {
    text: "UPDATE bench.narrow SET v = ? WHERE k = ?",
    values: update_values,
    holds: None,
};
const CONDITIONAL: Statement = Statement {
    text: "UPDATE bench.narrow SET v = ? WHERE k = ? IF EXISTS",
    values: update_values,
    holds: None,
};

pub(super) static PHASES: [Phase; 8] = [
    phase("insert", &[INSERT], Form::Execute, 4),
    phase("read", &[READ], Form::Execute, 24),
    phase("slice", &[SLICE], Form::Execute, 100 * 24),
    phase("update", &[UPDATE], Form::Execute, 4),
    // `[applied]` and its value: a result without rows is shorter.
    phase("conditional", &[CONDITIONAL], Form::Execute, 16),
    phase("half", &[UPDATE, READ], Form::Execute, 4),
    phase("batch", &[UPDATE], Form::Batch(10), 4),
    phase("query", &[READ], Form::Query, 24),
];

impl Phase {
    /// Whether it sends one statement, prepared.
    pub(super) const fn is_of_one_statement(&self) -> bool {
        matches!(self.form, Form::Execute) && self.statements.len() == 1
    }
}

const fn phase(name: &'static str, statements: &'static [Statement], form: Form, answer_bytes_min: usize) -> Phase {
    Phase {
        name,
        statements,
        form,
        answer_bytes_min,
    }
}

/// A value that begins with what names its row, so that an answer can be checked; the rest is random.
fn blob(random: &mut fastrand::Rng, row: &[u8], load: &Load) -> Bound {
    let bytes = load.value_bytes.max(row.len());
    let rest = (row.len()..bytes).map(|_| random.u8(..));
    Bound::Bytes(row.iter().copied().chain(rest).collect())
}

fn bigint(n: i64) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

fn int(n: i32) -> Bound {
    Bound::Bytes(n.to_be_bytes().to_vec())
}

/// A key that [`fill`] has written.
fn known_key(random: &mut fastrand::Rng, load: &Load) -> i64 {
    random.i64(0..i64::from(load.partitions) * 100)
}

fn insert_values(random: &mut fastrand::Rng, load: &Load) -> Vec<Bound> {
    let key = random.i64(..);
    vec![bigint(key), blob(random, &key.to_be_bytes(), load)]
}

fn read_values(random: &mut fastrand::Rng, load: &Load) -> Vec<Bound> {
    vec![bigint(known_key(random, load))]
}

fn slice_values(random: &mut fastrand::Rng, load: &Load) -> Vec<Bound> {
    vec![
        int(random.i32(0..load.partitions)),
        int(random.i32(0..ROWS_PER_PARTITION - 100)),
    ]
}

fn update_values(random: &mut fastrand::Rng, load: &Load) -> Vec<Bound> {
    let key = known_key(random, load);
    vec![blob(random, &key.to_be_bytes(), load), bigint(key)]
}

fn bytes_of(value: Option<&Bound>) -> &[u8] {
    match value {
        Some(Bound::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// The key, which ends its cell, the length of the value, and what the value begins with: the key again.
fn cell_and_value(values: &[Bound], load: &Load) -> Vec<u8> {
    let key = bytes_of(values.first());
    let length = i32::try_from(load.value_bytes.max(key.len())).unwrap_or(i32::MAX);
    [key, &length.to_be_bytes(), key].concat()
}

/// What the value of the first row begins with: both keys, of which the answer has only the last otherwise.
fn slice_begin(values: &[Bound], _: &Load) -> Vec<u8> {
    [bytes_of(values.first()), bytes_of(values.get(1))].concat()
}

/// Writes what the phases read.
pub(super) fn fill(address: &str, load: &Load) -> Outcome<()> {
    let mut connection = Connection::open(address, 4)?;
    let mut random = fastrand::Rng::with_seed(1);
    let (narrow, _) = connection.prepare("INSERT INTO bench.narrow (k, v) VALUES (?, ?)")?;
    let rows =
        (0..i64::from(load.partitions) * 100).map(|k| vec![bigint(k), blob(&mut random, &k.to_be_bytes(), load)]);
    write_all(&mut connection, &narrow, rows)?;
    let (wide, _) = connection.prepare("INSERT INTO bench.wide (k, c, v) VALUES (?, ?, ?)")?;
    let mut random = fastrand::Rng::with_seed(2);
    let keys = (0..load.partitions).flat_map(|k| (0..ROWS_PER_PARTITION).map(move |c| (k, c)));
    let rows = keys.map(|(k, c)| {
        let row = [k.to_be_bytes(), c.to_be_bytes()].concat();
        vec![int(k), int(c), blob(&mut random, &row, load)]
    });
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
pub(super) fn run(address: &str, phase: &'static Phase, load: &Load, until: Until, round: u64) -> Outcome<Figures> {
    let start = clock::now();
    let client_before = server::cpu_micros(std::process::id())?;
    let until = match until {
        Until::Operations(all) => Until::Operations(all.div_ceil(load.connections.max(1) as u64)),
        Until::Elapsed(_) => until,
    };
    let threads = (0..load.connections)
        .map(|seed| {
            let (address, load) = (address.to_owned(), load.clone());
            let seed = seed_of(u64::try_from(seed).unwrap_or(0), round);
            std::thread::spawn(move || Client::new(&address, phase, load, seed)?.run(until))
        })
        .collect::<Vec<_>>();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| Error::failed("a load thread panicked"))??);
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |thousandths: usize| times.get(times.len() * thousandths / 1000).copied().unwrap_or(0).into();
    Ok(Figures {
        operations: u64::try_from(times.len()).unwrap_or(u64::MAX),
        seconds,
        p50_micros: at(500),
        p99_micros: at(990),
        p999_micros: at(999),
        cpu_micros: 0,
        client_micros: server::cpu_micros(std::process::id())?.saturating_sub(client_before),
    })
}

/// One connection, and the requests that are under way on it.
struct Client {
    connection: Connection,
    phase: &'static Phase,
    load: Load,
    random: fastrand::Rng,
    prepared: Vec<Prepared>,
    /// By stream: when its request was sent, and what its answer must hold.
    sent: Vec<(Instant, Option<Vec<u8>>)>,
    asked: u64,
}

impl Client {
    fn new(address: &str, phase: &'static Phase, load: Load, seed: u64) -> Outcome<Self> {
        let mut connection = Connection::open(address, 4)?;
        let prepare = |statement: &Statement| Ok(connection.prepare(statement.text)?.0);
        let prepared = phase.statements.iter().map(prepare).collect::<Outcome<_>>()?;
        Ok(Self {
            connection,
            phase,
            prepared,
            random: fastrand::Rng::with_seed(seed),
            sent: vec![(clock::now(), None); load.in_flight],
            load,
            asked: 0,
        })
    }

    /// Opcode and body of the next request, and what its answer must hold.
    fn request(&mut self) -> (u8, Vec<u8>, Option<Vec<u8>>) {
        let number = if self.phase.statements.len() > 1 {
            self.random.usize(0..self.phase.statements.len())
        } else {
            0
        };
        let (Some(statement), Some(prepared)) = (self.phase.statements.get(number), self.prepared.get(number)) else {
            return (opcode::OPTIONS, Vec::new(), None);
        };
        let mut params = Params {
            skip_metadata: true,
            ..Params::default()
        };
        if let Form::Batch(members) = self.phase.form {
            let member = |_| InBatch::Prepared(prepared.clone(), (statement.values)(&mut self.random, &self.load));
            let members: Vec<_> = (0..members).map(member).collect();
            return (opcode::BATCH, request::batch(4, UNLOGGED, &members, &params), None);
        }
        params.values = (statement.values)(&mut self.random, &self.load);
        self.asked += 1;
        let is_checked = self.load.checks && self.asked % ANSWERS_A_CHECK == 1;
        let holds = statement
            .holds
            .filter(|_| is_checked)
            .map(|holds| holds(&params.values, &self.load));
        match self.phase.form {
            Form::Query => (opcode::QUERY, request::query(4, statement.text, &params), holds),
            _ => (opcode::EXECUTE, request::execute(4, prepared, &params), holds),
        }
    }

    /// Keeps its requests under way; microseconds from sending to answer for each operation.
    fn run(mut self, until: Until) -> Outcome<Vec<u32>> {
        let mut free: Vec<i16> = (0..self.load.in_flight).filter_map(|s| i16::try_from(s).ok()).collect();
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
                    let (op, body, holds) = self.request();
                    self.connection.put(&mut bytes, stream, op, &body);
                    if let Some(sent) = usize::try_from(stream).ok().and_then(|s| self.sent.get_mut(s)) {
                        *sent = (now, holds);
                    }
                    under_way += 1;
                }
                self.connection.send(&bytes)?;
            }
            if under_way == 0 {
                return Ok(times);
            }
            let mut answer = Some(self.connection.receive()?);
            // All that has arrived by now is answered by one write.
            while let Some(envelope) = answer {
                times.push(self.check(&envelope)?);
                free.push(envelope.stream);
                under_way -= 1;
                answer = self.connection.take()?;
            }
        }
    }

    /// Microseconds that an answer took.
    ///
    /// # Errors
    /// When it is a refusal, finds too little, or does not hold what it must.
    fn check(&mut self, answer: &Envelope) -> Outcome<u32> {
        let name = self.phase.name;
        if answer.opcode != opcode::RESULT || answer.body.len() < self.phase.answer_bytes_min {
            return Err(Error::failed(format!(
                "{name} was refused or finds nothing: {answer:?}"
            )));
        }
        let sent = usize::try_from(answer.stream).ok().and_then(|s| self.sent.get_mut(s));
        let Some((at, holds)) = sent else {
            return Err(Error::failed(format!("{name}: an answer on stream {}", answer.stream)));
        };
        if let Some(holds) = holds.take()
            && !answer.body.windows(holds.len()).any(|bytes| bytes == holds)
        {
            return Err(Error::failed(format!("{name}: {answer:?} does not hold {holds:?}")));
        }
        Ok(u32::try_from(at.elapsed().as_micros()).unwrap_or(u32::MAX))
    }
}

/// Different keys on each connection and in each round, the same each time the program runs.
fn seed_of(connection: u64, round: u64) -> u64 {
    0x9E37_79B9_7F4A_7C15u64.wrapping_mul((round << 32) + connection + 1)
}

#[cfg(test)]
mod tests {
    use super::{Form, PHASES};
    use crate::null::Canned;
    use crate::raw::opcode;

    #[test]
    fn the_server_that_does_nothing_answers_as_expected() {
        let canned = Canned::new();
        for phase in &PHASES {
            let statement = phase.statements.last().unwrap();
            let (_, prepared) = canned.answer(opcode::PREPARE, statement.text.as_bytes());
            // The kind of the result, then the id, with which an EXECUTE begins.
            let id = prepared.get(4..).unwrap_or_default();
            let (op, body) = match phase.form {
                Form::Execute => canned.answer(opcode::EXECUTE, id),
                Form::Batch(_) => canned.answer(opcode::BATCH, &[]),
                Form::Query => canned.answer(opcode::QUERY, statement.text.as_bytes()),
            };
            assert_eq!(op, opcode::RESULT, "{}", phase.name);
            assert!(body.len() >= phase.answer_bytes_min, "{}: {body:?}", phase.name);
        }
    }
}
