//! One seed: a database that runs, crashes and runs again on one medium, its clients, and the answers they may receive.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_base::clock::Clock;
use helenus_cql::cql::{self, AnswerKind, Database, QueryParams, SessionState};
use helenus_engine::engine::{Engine, Error, FailureCause, Options, PartitionSizes, Terms};
use helenus_storage::storage::{self as store, Medium, MediumFaults};
use helenus_types::token::Token;
use helenus_types::wire::response::ErrorCode;

use super::clients::shapes;
use super::clients::views::Follower;
use super::commands::{self, Command};
use super::marks::{Mark, Marks};
use super::model::{Counter, Register, RowVersions, Truncated};
use super::runner::{Log, Runner, Turn};
use super::support::Client;

pub(crate) const NOW_MICROS: i64 = 1_700_000_000_000_000;

/// Logical partitions and rows of each in table `t`.
pub(crate) const KEYS: i32 = 10;
pub(crate) const ROWS: i32 = 5;
/// Pairs of rows of table `p`, registers of table `r`, registers of table `w`, which are numbered after those of `r`,
/// counters.
pub(crate) const PAIRS: usize = 4;
pub(crate) const REGISTERS: usize = 3;
pub(crate) const PLAIN_REGISTERS: usize = 2;
pub(crate) const COUNTERS: usize = 3;

/// Polls within which all operations in progress must end once clients are idle.
const TURNS_TO_REST_MAX: u32 = 200_000;

/// A scan that proceeds page by page, whatever happens between pages.
pub(crate) struct Scan {
    pub(crate) number: u64,
    pub(crate) text: String,
    /// Keys of `t` that it covers.
    pub(crate) covers: Box<dyn Fn(i32) -> bool>,
    pub(crate) page_rows: u32,
    pub(crate) state: Option<Bytes>,
    pub(crate) seen: Vec<(i64, i32, i32)>,
    /// What was certain of each row when it began.
    pub(crate) floors: BTreeMap<(i32, i32), i64>,
    pub(crate) epoch: u64,
    pub(crate) run: u32,
    pub(crate) is_busy: bool,
}

/// A physical partition as it was served: id, epoch, lower, upper, store.
type Range = (u64, u64, i64, i64, u32);

/// The partition maps seen of a table.
#[derive(Default)]
struct Seen {
    epoch: u64,
    /// The partition maps by epoch, as they were published.
    lists: BTreeMap<u64, Vec<Range>>,
    ranges: BTreeMap<u64, Range>,
}

/// A table that is created and dropped repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    Is,
    IsNot,
    Unknown,
}

/// State that all tasks of a seed share.
pub(crate) struct World {
    pub(crate) random: RefCell<fastrand::Rng>,
    pub(crate) log: Rc<RefCell<Log>>,
    pub(crate) marks: RefCell<Marks>,
    pub(crate) clock: Clock,
    pub(crate) medium: Medium,
    pub(crate) run: Cell<u32>,
    pub(crate) turn: Cell<u64>,
    pub(crate) stopping: Cell<bool>,
    failure: RefCell<Option<String>>,
    numbers: Cell<i64>,
    pub(crate) is_indexed: bool,
    /// Most requests concern one register, and more of them are dropped.
    pub(crate) is_narrow: bool,
    /// Table `y` has no grace: the next sweep removes what is deleted or expired there.
    pub(crate) is_graceless: bool,
    /// Rows of table `b` are written with a time to live, too.
    pub(crate) views_expire: bool,

    pub(crate) rows: RefCell<BTreeMap<(i32, i32), RowVersions>>,
    /// Cells of table `y`, by key, row and column.
    pub(crate) wide: RefCell<BTreeMap<(i32, i32, usize), RowVersions>>,
    /// Cells of table `z`.
    pub(crate) shapes: RefCell<BTreeMap<shapes::Cell, RowVersions>>,
    pub(crate) pairs: RefCell<Vec<RowVersions>>,
    pub(crate) registers: RefCell<Vec<Register>>,
    pub(crate) counters: RefCell<Vec<Counter>>,
    pub(crate) truncated: RefCell<Truncated>,
    pub(crate) tables: RefCell<[Existence; 2]>,
    pub(crate) scans: RefCell<Vec<Scan>>,
    pub(crate) follower: RefCell<Follower>,
    maps: RefCell<BTreeMap<String, Seen>>,
    /// Operations in progress: what each does, its client, and the epoch of `t` when it began.
    pub(crate) in_work: RefCell<BTreeMap<u64, (&'static str, u64)>>,
    pub(crate) sizes: RefCell<PartitionSizes>,
    /// Tables of which a physical partition may have been moved to another store.
    pub(crate) moved: RefCell<BTreeSet<String>>,
    /// Whether the rows of a batch may lie in several stores in this run; then they are seen together only at rest.
    pub(crate) pairs_apart: Cell<bool>,
    /// Stores over which tables are spread; none: they lie in the main store.
    data_stores: usize,
    /// Whether another server has taken the medium over: what is asked from then on must not be answered.
    taken_over: Cell<bool>,
}

/// One open database and a session with it.
pub(crate) struct Server {
    pub(crate) database: Database,
    pub(crate) session: SessionState,
}

/// An operation in progress; removed when it ends or is dropped.
pub(crate) struct InWork {
    world: Rc<World>,
    number: u64,
    pub(crate) epoch: u64,
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.world.in_work.borrow_mut().remove(&self.number);
    }
}

/// The cells of one row of a result: all columns are whole numbers or booleans.
pub(crate) type Line = Vec<Option<i64>>;

/// How a statement ended.
pub(crate) enum Outcome {
    Done(Vec<Line>, Option<Bytes>),
    /// It had no effect.
    Refused(String),
    /// It may have had an effect.
    Unknown(String),
}

impl Outcome {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(..))
    }
}

impl World {
    pub(crate) fn new(seed: u64, is_loud: bool) -> Rc<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let medium = Medium::new(random.u64(..));
        let data_stores = [0, 0, 2, 3][random.usize(..4)];
        Rc::new(Self {
            is_indexed: random.bool(),
            is_narrow: random.u8(..4) == 0,
            is_graceless: random.bool(),
            views_expire: random.u8(..3) == 0,
            random: RefCell::new(random),
            log: Rc::new(RefCell::new(Log::new(is_loud))),
            marks: RefCell::default(),
            clock: Clock::manual(NOW_MICROS),
            medium,
            run: Cell::new(0),
            turn: Cell::new(0),
            stopping: Cell::new(false),
            failure: RefCell::default(),
            numbers: Cell::new(0),
            rows: RefCell::default(),
            wide: RefCell::default(),
            shapes: RefCell::default(),
            pairs: RefCell::new(vec![RowVersions::default(); PAIRS]),
            registers: RefCell::new(vec![Register::default(); REGISTERS + PLAIN_REGISTERS]),
            counters: RefCell::new(vec![Counter::default(); COUNTERS]),
            truncated: RefCell::default(),
            tables: RefCell::new([Existence::IsNot; 2]),
            scans: RefCell::default(),
            follower: RefCell::default(),
            maps: RefCell::default(),
            in_work: RefCell::default(),
            sizes: RefCell::default(),
            moved: RefCell::default(),
            pairs_apart: Cell::new(false),
            data_stores,
            taken_over: Cell::new(false),
        })
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.random.borrow_mut().u64(..end)
    }

    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn mark(&self, mark: Mark) {
        self.marks.borrow_mut().note(mark);
    }

    /// A number that was never used before: a write's timestamp and value.
    pub(crate) fn number(&self) -> i64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// Records a failure; only the first one counts.
    pub(crate) fn fail(&self, about: &str, what: String) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_none() {
            self.log.borrow_mut().note(format!("WRONG {about}: {what}"));
            *failure = Some(format!("{about}: {what}"));
        }
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(crate) fn check(&self, about: &str, outcome: Result<(), String>) {
        if let Err(what) = outcome {
            self.fail(about, what);
        }
    }

    /// The epoch in which table `t` was seen last.
    pub(crate) fn epoch(&self) -> u64 {
        self.maps.borrow().get("t").map_or(0, |seen| seen.epoch)
    }

    pub(crate) fn enter(self: &Rc<Self>, what: &'static str) -> InWork {
        let number = self.number().unsigned_abs();
        let epoch = self.epoch();
        self.in_work.borrow_mut().insert(number, (what, epoch));
        InWork {
            world: Rc::clone(self),
            number,
            epoch,
        }
    }

    /// Checks the maps of all tables that stay: cover, epochs, owners.
    pub(crate) fn check_maps(&self, database: &Database) {
        let mut tables: BTreeMap<String, Vec<Range>> = BTreeMap::new();
        for part in database
            .engine()
            .figures()
            .partitions()
            .into_iter()
            .filter(|part| part.keyspace == "ks")
        {
            let list = tables.entry(part.table).or_default();
            list.push((part.id, part.epoch, part.lower, part.upper, part.store));
        }
        let mut maps = self.maps.borrow_mut();
        for (table, mut list) in tables {
            list.sort_by_key(|range| range.2);
            let ends = (list[0].2, list[list.len() - 1].3);
            let meet = list.windows(2).all(|pair| pair[0].3.checked_add(1) == Some(pair[1].2));
            if ends != (i64::MIN, i64::MAX) || !meet || list.iter().any(|range| range.2 > range.3) {
                self.fail(&table, format!("a token has no owner, or several: {list:?}"));
            }
            if table.starts_with('d') {
                continue;
            }
            let epoch = list.iter().map(|range| range.1).max().unwrap_or_default();
            let seen = maps.entry(table.clone()).or_default();
            if epoch < seen.epoch {
                self.fail(&table, format!("epoch {} was in force, now it is {epoch}", seen.epoch));
            }
            if seen.lists.get(&epoch).is_some_and(|before| *before != list) {
                self.fail(&table, format!("epoch {epoch} had other ranges before"));
            }
            for range in &list {
                let before = seen.ranges.insert(range.0, *range);
                // A move keeps the id and range, and starts an epoch.
                let is_same = |before: &Range| {
                    let is_moved = before.1 < range.1 && self.moved.borrow().contains(&table);
                    *before == *range || (is_moved && (before.2, before.3) == (range.2, range.3))
                };
                if before.is_some_and(|before| !is_same(&before)) {
                    self.fail(&table, format!("partition {} was {before:?} and is {range:?}", range.0));
                }
            }
            if epoch > seen.epoch {
                self.log
                    .borrow_mut()
                    .note(format!("{table} has epoch {epoch}, {} partitions", list.len()));
                let writes = self
                    .in_work
                    .borrow()
                    .values()
                    .filter(|(what, _)| *what == "write")
                    .count();
                if table == "t" && writes > 0 {
                    self.mark(Mark::SplitDuringWrite);
                }
                seen.epoch = epoch;
            }
            seen.lists.insert(epoch, list);
        }
    }

    /// The ranges of a table: (id, lower).
    pub(crate) fn parts(&self, database: &Database, table: &str) -> Vec<(u64, i64)> {
        let mut parts: Vec<(u64, i64)> = database
            .engine()
            .figures()
            .partitions()
            .into_iter()
            .filter(|part| part.keyspace == "ks" && part.table == table)
            .map(|part| (part.id, part.lower))
            .collect();
        parts.sort_by_key(|part| part.1);
        parts
    }

    /// The physical partitions of a table: (id, store).
    pub(crate) fn places(&self, database: &Database, table: &str) -> Vec<(u64, u32)> {
        let of_table = database.engine().figures().partitions().into_iter();
        let of_table = of_table.filter(|part| part.keyspace == "ks" && part.table == table);
        of_table.map(|part| (part.id, part.store)).collect()
    }

    /// A physical partition of the table may be moved to another store from now on.
    pub(crate) fn note_move(&self, table: &str) {
        self.moved.borrow_mut().insert(table.to_owned());
        if table == "p" {
            self.pairs_apart.set(true);
        }
    }

    /// Whether it is the main store, or one over which tables are spread.
    pub(crate) fn is_home(&self, store: u32) -> bool {
        store as usize <= self.data_stores
    }

    /// Checks the stores of a database that was just opened and is at rest: exactly those in the partition maps exist,
    /// and those over which tables are spread, which were made first.
    fn check_stores(&self, database: &Database) {
        let named: BTreeSet<u32> = database
            .engine()
            .figures()
            .partitions()
            .iter()
            .map(|part| part.store)
            .collect();
        let data = 1..=u32::try_from(self.data_stores).unwrap();
        let named: BTreeSet<u32> = named.into_iter().filter(|store| *store != 0).chain(data).collect();
        let there = self.medium.side_numbers();
        if named != there {
            self.fail("stores", format!("lists name {named:?}, there are {there:?}"));
        }
    }

    /// Checks that a server which another one has replaced answers nothing that it was asked since.
    fn check_owner(&self, is_taken_over: bool, text: &str, is_answered: bool) {
        if !is_taken_over {
            return;
        }
        self.mark(Mark::AskedFormerOwner);
        if is_answered {
            self.fail("owner", format!("the former owner answered {text}"));
        }
    }

    fn options(&self) -> Options {
        self.options_on(&self.medium)
    }

    pub(crate) fn options_on(&self, medium: &Medium) -> Options {
        Options {
            store: store::Options {
                medium: Some(medium.clone()),
                data_stores: Some(self.data_stores),
                ..store::Options::default()
            },
            seed: self.below(u64::MAX),
            request_log_max: 0,
            count_at_once_rows_max: helenus_engine::engine::Options::COUNT_AT_ONCE_ROWS_MAX,
            ..Client::options("memory:", self.clock.clone())
        }
    }
}

impl Server {
    /// Runs a statement as a driver that sends timestamps.
    pub(crate) async fn ask(&self, world: &Rc<World>, text: &str, params: QueryParams) -> Outcome {
        let number = world.number();
        world
            .log
            .borrow_mut()
            .note(format!("ask {number} {text} at {:?}", params.timestamp_micros));
        let is_taken_over = world.taken_over.get();
        let answer = self.database.query(&self.session, text, &params).await;
        world.check_owner(is_taken_over, text, answer.is_ok());
        let answer = answer.map(|answer| match answer.kind {
            AnswerKind::Rows(rows) => (lines(&rows), rows.paging_state),
            _ => (Vec::new(), None),
        });
        self.answered(world, number, answer)
    }

    /// Asks what the catalog in memory answers, and no store.
    pub(crate) async fn ask_catalog(&self, world: &Rc<World>) {
        let texts = [
            "DESCRIBE TABLE t",
            "SELECT table_name FROM system_schema.tables",
            "SELECT * FROM system_cosmos.partitions",
            "EXPLAIN SELECT k FROM t",
            "DROP TABLE IF EXISTS not_there",
            "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)",
        ];
        let text = texts[usize::try_from(world.below(texts.len() as u64)).unwrap()];
        let is_taken_over = world.taken_over.get();
        let answer = self.database.query(&self.session, text, &QueryParams::default()).await;
        world.check_owner(is_taken_over, text, answer.is_ok());
        if let Err(error) = answer
            && !is_taken_over
        {
            world.log.borrow_mut().note(format!("{text}: {error}"));
        }
    }

    /// Sends a request by one of the two front ends: as text, or as the command that means the same.
    pub(crate) async fn ask_either(
        &self,
        world: &Rc<World>,
        text: &str,
        params: QueryParams,
        command: impl FnOnce(&Engine) -> Command,
    ) -> Outcome {
        if !commands::is_drawn(world) {
            return self.ask(world, text, params).await;
        }
        world.mark(Mark::Command);
        let number = world.number();
        let timestamp = params.timestamp_micros;
        let line = format!("command {number} {text} at {timestamp:?}");
        world.log.borrow_mut().note(line);
        let terms = Terms {
            consistency: params.consistency,
            serial_consistency: params.serial_consistency,
            timestamp_micros: timestamp,
            now_seconds: params.now_seconds,
            node: self.session.node,
            ..Terms::default()
        };
        let (engine, is_taken_over) = (self.database.engine(), world.taken_over.get());
        let answer = commands::run(engine, &command(engine), terms).await;
        world.check_owner(is_taken_over, text, answer.is_ok());
        self.answered(
            world,
            number,
            answer.map(|lines| (lines, None)).map_err(cql::Error::from),
        )
    }

    fn answered(
        &self,
        world: &Rc<World>,
        number: i64,
        answer: Result<(Vec<Line>, Option<Bytes>), cql::Error>,
    ) -> Outcome {
        let outcome = match answer {
            Ok((lines, state)) => Outcome::Done(lines, state),
            Err(error) => {
                let text = error.to_string();
                // A copy differs from its source only if something else lay in the target.
                if text.contains("with another checksum") {
                    world.fail("moves", text.clone());
                }
                match error {
                    cql::Error::Engine(Error::WriteFailure {
                        cause: FailureCause::WritesRefused,
                        ..
                    }) => Outcome::Refused(text),
                    cql::Error::Engine(Error::WriteFailure { .. } | Error::WriteTimeout { .. } | Error::Fault(_)) => {
                        Outcome::Unknown(text)
                    }
                    cql::Error::Engine(Error::Unavailable(_)) => {
                        world.mark(Mark::ReplicasMissed);
                        Outcome::Refused(text)
                    }
                    cql::Error::Engine(
                        Error::ReadFailure { .. } | Error::ReadTimeout { .. } | Error::Throttled { .. },
                    ) => Outcome::Refused(text),
                    error if matches!(error.code(), ErrorCode::Invalid | ErrorCode::AlreadyExists) => {
                        Outcome::Refused(text)
                    }
                    other => {
                        world.fail("answers", format!("{text}: {other:?}"));
                        Outcome::Refused(other.to_string())
                    }
                }
            }
        };
        let shown = match &outcome {
            Outcome::Done(lines, state) => format!("{lines:?}{}", if state.is_some() { " …" } else { "" }),
            Outcome::Refused(text) => format!("refused: {text}"),
            Outcome::Unknown(text) => format!("unknown: {text}"),
        };
        world.log.borrow_mut().note(format!("answered {number} {shown}"));
        outcome
    }
}

/// Rows as numbers: for a collection (a count, then elements of eight bytes, each after its length) the count and
/// these.
fn lines(rows: &helenus_cql::cql::Rows) -> Vec<Line> {
    let mut content = rows.content.as_ref();
    let mut lines = Vec::new();
    for _ in 0..rows.row_count {
        let mut line = Vec::new();
        for _ in rows.metadata.columns.iter() {
            let (length, rest) = content.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            if length < 0 {
                content = rest;
                line.push(None);
                continue;
            }
            let (value, rest) = rest.split_at(length as usize);
            content = rest;
            let number = |bytes: &[u8]| Some(i64::from_be_bytes(bytes.try_into().unwrap()));
            match value.len() {
                1 => line.push(Some(i64::from(value[0]))),
                4 => line.push(Some(i64::from(i32::from_be_bytes(value.try_into().unwrap())))),
                8 => line.push(number(value)),
                _ => {
                    let elements = value[4..].chunks(12);
                    line.push(i64::try_from(elements.len()).ok());
                    line.extend(elements.map(|element| number(&element[4..])));
                }
            }
        }
        lines.push(line);
    }
    lines
}

pub(crate) fn token(key: i32) -> i64 {
    Token::of(&key.to_be_bytes()).value()
}

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) is_loud: bool,
}

/// The result of a simulation.
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) failure: Option<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) turns: u64,
    pub(crate) marks: Marks,
}

/// Runs one seed to its end, or to the first failure.
pub(crate) fn simulate(plan: Plan) -> Report {
    let world = World::new(plan.seed, plan.is_loud);
    let runs = 2 + world.below(4);
    for run in 0..runs {
        world.run.set(u32::try_from(run).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let is_last = run + 1 == runs;
        runtime.block_on(one_run(&world, is_last));
        // Tasks that the database spawned end here, wherever they are.
        drop(runtime);
        if world.failure().is_some() {
            break;
        }
        crash(&world);
    }
    if world.failure().is_none() {
        super::budgets::overload(&world);
    }
    let failure = world.failure();
    let about = failure
        .as_deref()
        .and_then(|text| text.split(':').next())
        .unwrap_or_default();
    let trace = if failure.is_some() {
        world.log.borrow().trace(&format!("#{about}#"), 60)
    } else {
        Vec::new()
    };
    let digest = world.medium.digest();
    world.log.borrow_mut().note(format!("medium {digest:08x}"));
    let report = Report {
        seed: plan.seed,
        failure,
        trace,
        hash: world.log.borrow().hash(),
        turns: world.turn.get(),
        marks: world.marks.borrow().clone(),
    };
    drop(world.scans.take());
    report
}

fn crash(world: &Rc<World>) {
    if world.medium.has_work() {
        world.mark(Mark::CrashWithWritesQueued);
    }
    world.log.borrow_mut().note("crash".to_owned());
    world.medium.crash();
    (0..world.medium.torn()).for_each(|_| world.mark(Mark::WriteTorn));
}

/// One run, from one start of the database to its end.
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn one_run(world: &Rc<World>, is_last: bool) {
    let log = Rc::clone(&world.log);
    let mut runner = Runner::new(world.medium.clone(), world.below(u64::MAX), log);
    world.stopping.set(false);
    let faults = world.below(3);
    world.medium.set_faults(MediumFaults::default());
    let opened: Rc<RefCell<Option<Rc<Server>>>> = Rc::default();
    {
        let (world, opened) = (Rc::clone(world), Rc::clone(&opened));
        let opening = async move {
            match Database::open(world.options()).await {
                Ok(database) => {
                    let session = SessionState {
                        keyspace: (world.run.get() > 0).then(|| Arc::from("ks")),
                        ..SessionState::default()
                    };
                    *opened.borrow_mut() = Some(Rc::new(Server { database, session }));
                }
                Err(error) => world.fail("open", error.to_string()),
            }
        };
        runner.spawn("open".to_owned(), opening);
    }
    if world.run.get() > 0 && !is_last && world.chance(150) {
        // Killed again during its start.
        for _ in 0..world.below(12) {
            turn(world, &mut runner).await;
        }
        world.mark(Mark::CrashInRecovery);
        return;
    }
    rest(world, &mut runner).await;
    let Some(server) = opened.borrow_mut().take() else {
        return;
    };
    let server = if world.run.get() == 0 {
        let Some(server) = Rc::into_inner(server) else { return };
        super::clients::begin(world, &mut runner, server).await
    } else {
        server
    };
    world.check_stores(&server.database);
    let places = world.places(&server.database, "p");
    world.pairs_apart.set(places.iter().any(|place| place.1 != places[0].1));
    super::clients::check_at_rest(world, &mut runner, &server).await;
    if world.failure().is_some() {
        return;
    }
    // With few registers, later operations are likely to depend on an effect that was answered as failed.
    let done_but_failed_per_mille = |usually| if world.is_narrow { 200 } else { usually };
    world.medium.set_faults(match faults {
        0 => MediumFaults::default(),
        1 => MediumFaults {
            failed_per_mille: 30,
            done_but_failed_per_mille: done_but_failed_per_mille(30),
            dead_per_mille: 0,
            hang_per_mille: 5,
        },
        _ => MediumFaults {
            failed_per_mille: 5,
            done_but_failed_per_mille: done_but_failed_per_mille(20),
            dead_per_mille: 8,
            hang_per_mille: 0,
        },
    });
    let clients = 3 + world.below(4);
    for client in 0..clients {
        super::clients::spawn(world, &mut runner, &server, client);
    }
    let turns = 100 + world.below(900);
    for _ in 0..turns {
        if turn(world, &mut runner).await == Turn::Idle && runner.len() == 0 {
            break;
        }
        let changes = world.in_work.borrow().values().any(|(what, _)| *what == "split");
        if changes || world.turn.get().is_multiple_of(16) {
            world.check_maps(&server.database);
        }
        if world.failure().is_some() {
            return;
        }
        if world.medium.is_dead() {
            world.mark(Mark::MediumDied);
        }
        if world.chance(if world.is_narrow { 40 } else { 8 }) {
            let name = runner.cancel_one();
            if let Some(name) = name {
                world.log.borrow_mut().note(format!("cancel {name}"));
                world.mark(Mark::RequestDropped);
                super::clients::spawn(world, &mut runner, &server, world.below(1000) + 10);
            }
        }
        if world.chance(20) {
            let ended = world.medium.end_pauses();
            world.log.borrow_mut().note(format!("{ended} pauses end"));
        }
        if world.chance(6) {
            disturb(world, &server.database);
        }
        if world.chance(50) {
            world.clock.advance(Duration::from_millis(world.below(400)));
        }
        if world.chance(4) {
            let back = world.chance(500);
            let hour = 3_600_000_000;
            world.clock.set_wall_by(if back { -hour } else { hour });
            world
                .log
                .borrow_mut()
                .note(format!("the clock is set {}", if back { "back" } else { "forward" }));
            world.mark(if back {
                Mark::ClockSetBack
            } else {
                Mark::ClockSetForward
            });
        }
    }
    if !is_last && world.chance(600) {
        for (what, _) in world.in_work.borrow().values() {
            match *what {
                "split" => world.mark(Mark::CrashInSplit),
                "write" => world.mark(Mark::CrashInWrite),
                "truncate" => world.mark(Mark::CrashInTruncate),
                "lift" => world.mark(Mark::CrashInLift),
                _ => {}
            }
        }
        if world.chance(300) {
            take_over(world, &mut runner).await;
        }
        return;
    }
    world.stopping.set(true);
    server.database.engine().nodes().clear();
    world.medium.set_faults(MediumFaults::default());
    rest(world, &mut runner).await;
    if world.failure().is_none() {
        super::clients::check_at_rest(world, &mut runner, &server).await;
    }
    if is_last && world.failure().is_none() {
        super::clients::finish_scans(world, &mut runner, &server).await;
    }
}

/// Another server takes the medium over, and this one goes on as if nothing had happened.
async fn take_over(world: &Rc<World>, runner: &mut Runner) {
    world.log.borrow_mut().note("another server takes over".to_owned());
    world.medium.crash();
    world.taken_over.set(true);
    for _ in 0..world.below(300) {
        let is_idle = turn(world, runner).await == Turn::Idle;
        if world.failure().is_some() || is_idle && runner.len() == 0 {
            break;
        }
    }
    world.taken_over.set(false);
}

/// Takes replicas down, makes writes time out that took effect, splits under requests that have resolved their
/// partition; or ends all faults.
fn disturb(world: &World, database: &Database) {
    let seed = world.below(1 << 30);
    let text = match world.below(6) {
        0 => (1..=1 + world.below(4))
            .map(|node| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n"))
            .collect(),
        1 => "[[fault]]\naction = \"timeout-after\"\nkeyspace = \"ks\"\nstatement = \"write\"\nprobability = 0.3\ncount = 5\n".to_owned(),
        2 => (1..=1 + world.below(4))
            .map(|node| {
                let bound = ["commits = 3", "commits = 20", "ms = 2000"][usize::try_from(world.below(3)).unwrap()];
                world.mark(Mark::ReplicasLagged);
                format!("[[fault]]\naction = \"lag\"\nkeyspace = \"ks\"\ntable = \"z\"\nnode = {node}\n{bound}\n")
            })
            .collect(),
        3 => "[[fault]]\naction = \"split\"\nkeyspace = \"ks\"\ntable = \"t\"\nprobability = 0.5\ncount = 2\n".to_owned(),
        _ => {
            world.log.borrow_mut().note("nothing is disturbed".to_owned());
            return database.engine().nodes().clear();
        }
    };
    let plan = helenus_engine::partition::faults::Plan::from_toml(&format!("seed = {seed}\n{text}"));
    let set = plan.map_err(|error| error.to_string()).and_then(|plan| {
        let set = database.engine().nodes().set_plan(plan);
        set.map_err(|error| error.to_string())
    });
    world.log.borrow_mut().note(format!("disturbed by {text:?}"));
    world.check("faults", set);
}

async fn turn(world: &Rc<World>, runner: &mut Runner) -> Turn {
    world.turn.set(world.turn.get() + 1);
    runner.turn().await
}

/// Runs until every operation in progress is answered.
pub(crate) async fn rest(world: &Rc<World>, runner: &mut Runner) {
    for _ in 0..TURNS_TO_REST_MAX {
        if turn(world, runner).await == Turn::Idle {
            let is_dead = world.medium.is_dead();
            if !is_dead && world.medium.end_pauses() > 0 {
                continue;
            }
            // A removal that must come first stays pending on a dead medium until the next start.
            let moves = world
                .in_work
                .borrow()
                .values()
                .filter(|(what, _)| *what == "lift")
                .count();
            if runner.len() > if is_dead { moves } else { 0 } {
                world.fail("liveness", format!("{} requests wait for ever", runner.len()));
            }
            return;
        }
        if world.failure().is_some() {
            return;
        }
    }
    world.fail("liveness", "requests never come to an end".to_owned());
}
