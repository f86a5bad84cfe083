//! Clients: their requests, and the checks of the answers.

mod at_rest;
mod changes;
mod scans;
pub(crate) mod shapes;
mod sweeps;
pub(crate) mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::cql::{QueryParams, SessionState};
use helenus_engine::engine::{Engine, PartitionLimits};
use helenus_schema::command::{Clustering, Write};
use helenus_types::consistency::Consistency;

use super::commands::{self, Command, Maker};
use super::marks::Mark;
use super::model::{Ask, Operation, State};
use super::runner::{Runner, pass};
use super::world::{
    COUNTERS, Existence, KEYS, Line, NOW_MICROS, Outcome, PAIRS, PLAIN_REGISTERS, REGISTERS, ROWS, Scan, Server, World,
    rest, token,
};

pub(crate) use at_rest::check_at_rest;
use changes::{create_or_drop, lift_or_lower, lift_or_lower_any, move_part, repartition, split_or_merge};
pub(crate) use scans::finish_scans;
use scans::next_page;
use shapes::{ask_shapes, check_shapes};
use sweeps::{ask_wide, check_wide};
use views::{ask_views, check_views};

/// Client timestamps ahead of all that the server issues, however often the clock is set forward: from ten years on, a
/// millisecond for each number, so that conditional writes fit between two.
const AHEAD_MICROS: i64 = 10 * 365 * 86_400 * 1_000_000;
const AHEAD_STEP_MICROS: i64 = 1000;

/// Most operations of one register's history between two rests.
const HISTORY_MAX: usize = 90;

fn at(number: i64) -> QueryParams {
    QueryParams {
        timestamp_micros: Some(number),
        ..QueryParams::default()
    }
}

fn plain() -> QueryParams {
    QueryParams::default()
}

/// Creates the schema of a new database.
pub(crate) async fn begin(world: &Rc<World>, runner: &mut Runner, server: Server) -> Rc<Server> {
    let server = Rc::new(Server {
        session: SessionState {
            keyspace: Some(Arc::from("ks")),
            ..SessionState::default()
        },
        ..server
    });
    let (of_world, of_server) = (Rc::clone(world), Rc::clone(&server));
    runner.spawn("schema".to_owned(), async move {
        let partitions = 1 + of_world.below(4);
        let mut texts = vec![
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
            format!(
                "CREATE TABLE ks.t (k int, c int, v bigint, PRIMARY KEY (k, c)) WITH helenus_partitions = {partitions}"
            ),
            "CREATE TABLE ks.p (k int PRIMARY KEY, v bigint) WITH helenus_partitions = 3".to_owned(),
            "CREATE TABLE ks.r (k int PRIMARY KEY, v bigint) WITH helenus_partitions = 2".to_owned(),
            "CREATE TABLE ks.w (k int PRIMARY KEY, v bigint) WITH helenus_partitions = 2".to_owned(),
            "CREATE TABLE ks.n (k int PRIMARY KEY, n counter)".to_owned(),
            format!(
                "CREATE TABLE ks.y (k int, c int, a bigint, b bigint, PRIMARY KEY (k, c)) WITH helenus_partitions = 2{}",
                if of_world.is_graceless { " AND gc_grace_seconds = 0" } else { "" }
            ),
            "CREATE TABLE ks.z (k int, c int, s bigint static, g bigint, h bigint, m map<int, bigint>, e set<bigint>, l list<bigint>, \
             PRIMARY KEY (k, c)) WITH helenus_partitions = 2"
                .to_owned(),
            "CREATE TABLE ks.x (k bigint PRIMARY KEY) WITH helenus_partitions = 2".to_owned(),
        ];
        texts.extend(views::schema(of_world.is_graceless));
        if of_world.is_indexed {
            texts.push("CREATE INDEX ON ks.t (v)".to_owned());
        }
        for text in &texts {
            // The keyspace does not exist yet, so a session cannot use it.
            let session = SessionState::default();
            if let Err(error) = of_server.database.query(&session, text, &plain()).await {
                of_world.fail("schema", format!("{text}: {error}"));
            }
        }
    });
    rest(world, runner).await;
    server
}

/// A client that sends requests until the run stops.
pub(crate) fn spawn(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>, number: u64) {
    let (world, server) = (Rc::clone(world), Rc::clone(server));
    runner.spawn(format!("client {number}"), async move {
        let asks = 5 + world.below(60);
        for _ in 0..asks {
            pass().await;
            if world.stopping.get() || world.failure().is_some() {
                return;
            }
            ask_something(&world, &server).await;
        }
    });
}

async fn ask_something(world: &Rc<World>, server: &Server) {
    if world.is_narrow && world.chance(700) {
        return ask_register(world, server).await;
    }
    match world.below(182) {
        0..25 => insert(world, server).await,
        25..29 => delete(world, server, Extent::Row).await,
        29..31 => delete(world, server, Extent::Partition).await,
        31..33 => delete(world, server, Extent::Range).await,
        33..42 => read_partition(world, server).await,
        42..45 => read_all(world, server).await,
        45..48 => read_by_index(world, server).await,
        48..63 => next_page(world, server).await,
        63..70 => write_pair(world, server).await,
        70..75 => read_pairs(world, server).await,
        75..91 => ask_register(world, server).await,
        91..97 => count(world, server).await,
        97..100 => read_counter(world, server).await,
        100..105 => insert_once(world, server).await,
        105..107 => drop(read_once(world, server).await),
        107..108 => truncate(world, server).await,
        108..114 => split_or_merge(world, server).await,
        114..116 => repartition(world, server).await,
        116..122 => lift_or_lower_any(world, server).await,
        122..130 => ask_plain(world, server).await,
        130..146 => ask_wide(world, server).await,
        146..162 => ask_shapes(world, server).await,
        162..178 => ask_views(world, server).await,
        178..180 => create_or_drop(world, server).await,
        _ => server.ask_catalog(world).await,
    }
}

// Rows of `t`.

enum Extent {
    Row,
    Partition,
    Range,
}

async fn insert(world: &Rc<World>, server: &Server) {
    let (k, c) = place(world);
    let number = world.number();
    let text = format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, {number})");
    let command = |of: &Maker| of.insert(k.into(), Some(c), &[("v", number)]);
    write_rows(world, server, (&text, command), number, &[(k, c)], false).await;
}

async fn delete(world: &Rc<World>, server: &Server, extent: Extent) {
    let (k, c) = place(world);
    let number = world.number();
    let (text, rows): (_, Vec<(i32, i32)>) = match extent {
        Extent::Row => (format!("DELETE FROM t WHERE k = {k} AND c = {c}"), vec![(k, c)]),
        Extent::Partition => (
            format!("DELETE FROM t WHERE k = {k}"),
            (0..ROWS).map(|c| (k, c)).collect(),
        ),
        Extent::Range => (
            format!("DELETE FROM t WHERE k = {k} AND c >= {c}"),
            (c..ROWS).map(|c| (k, c)).collect(),
        ),
    };
    let command = |of: &Maker| match extent {
        Extent::Row => of.delete_row(k.into(), Some(c)),
        Extent::Partition => of.delete_partition(k.into()),
        Extent::Range => of.delete_from(k.into(), c),
    };
    write_rows(world, server, (&text, command), number, &rows, true).await;
}

/// Writes to `t`, by text or by the command that means the same.
async fn write_rows(
    world: &Rc<World>,
    server: &Server,
    (text, command): (&str, impl FnOnce(&Maker) -> Write),
    number: i64,
    rows: &[(i32, i32)],
    deletes: bool,
) {
    for row in rows {
        world.rows.borrow_mut().entry(*row).or_default().begin(number, deletes);
    }
    let in_work = world.enter("write");
    let command = |engine: &Engine| Command::Write(command(&Maker::of(engine, "t")));
    let outcome = server.ask_either(world, text, at(number), command).await;
    if world.epoch() > in_work.epoch {
        world.mark(Mark::StaleRoute);
    }
    drop(in_work);
    for row in rows {
        resolve(world.rows.borrow_mut().get_mut(row), number, &outcome);
    }
}

fn resolve(versions: Option<&mut super::model::RowVersions>, number: i64, outcome: &Outcome) {
    let Some(versions) = versions else { return };
    match outcome {
        Outcome::Done(..) => versions.set(number, State::Done),
        Outcome::Refused(_) => versions.set(number, State::Never),
        Outcome::Unknown(_) => {}
    }
}

fn place(world: &World) -> (i32, i32) {
    let k = i32::try_from(world.below(KEYS.unsigned_abs().into())).unwrap();
    let c = i32::try_from(world.below(ROWS.unsigned_abs().into())).unwrap();
    (k, c)
}

/// The certain values of the rows of `t` now.
fn floors(world: &World) -> BTreeMap<(i32, i32), i64> {
    let rows = world.rows.borrow();
    rows.iter().map(|(row, versions)| (*row, versions.floor())).collect()
}

fn row_of(line: &Line) -> Option<(i32, i32, i64)> {
    match line.as_slice() {
        [Some(k), Some(c), Some(v)] => Some((i32::try_from(*k).ok()?, i32::try_from(*c).ok()?, *v)),
        _ => None,
    }
}

/// Checks a read that covers all of these keys of `t`.
fn check_row_read(
    world: &World,
    floors: &BTreeMap<(i32, i32), i64>,
    lines: &[Line],
    covers: impl Fn(i32, i32) -> bool,
) -> BTreeMap<(i32, i32), i64> {
    let mut seen = BTreeMap::new();
    let mut last = None;
    for line in lines {
        let Some((k, c, v)) = row_of(line) else {
            world.fail("t", format!("a row is not whole: {line:?}"));
            continue;
        };
        let here = (token(k), k, c);
        if last.is_some_and(|last| last >= here) {
            world.fail("t", format!("row ({k}, {c}) stands out of order, or twice"));
        }
        last = Some(here);
        if !covers(k, c) {
            world.fail("t", format!("row ({k}, {c}) was not asked for"));
        }
        seen.insert((k, c), v);
    }
    for k in 0..KEYS {
        for c in (0..ROWS).filter(|c| covers(k, *c)) {
            let floor = floors.get(&(k, c)).copied().unwrap_or_default();
            let mut rows = world.rows.borrow_mut();
            let checked = rows.entry((k, c)).or_default().check(floor, seen.get(&(k, c)).copied());
            drop(rows);
            world.check("t", checked.map_err(|what| format!("row ({k}, {c}): {what}")));
        }
    }
    seen
}

async fn read_partition(world: &Rc<World>, server: &Server) {
    let (k, c) = place(world);
    let floors = floors(world);
    let (text, rows) = match world.below(3) {
        0 => (format!("SELECT k, c, v FROM t WHERE k = {k}"), Clustering::All),
        1 => (
            format!("SELECT k, c, v FROM t WHERE k = {k} AND c <= {c}"),
            commands::up_to(c),
        ),
        _ => (
            format!("SELECT k, c, v FROM t WHERE k = {k} AND c = {c}"),
            Clustering::Keys(vec![commands::at(c)]),
        ),
    };
    let command = |engine: &Engine| Command::Read(Maker::of(engine, "t").read_key(&["k", "c", "v"], k.into(), rows));
    let covers = {
        let (up_to, only) = (text.contains("<="), text.contains("c = "));
        move |of: i32, row: i32| of == k && (!up_to || row <= c) && (!only || row == c)
    };
    let _in_work = world.enter("read");
    if let Outcome::Done(lines, _) = server.ask_either(world, &text, plain(), command).await {
        check_row_read(world, &floors, &lines, covers);
    }
}

async fn read_all(world: &Rc<World>, server: &Server) {
    let floors = floors(world);
    let in_work = world.enter("read");
    let command = |engine: &Engine| Command::Read(Maker::of(engine, "t").read_all(&["k", "c", "v"]));
    let outcome = server
        .ask_either(world, "SELECT k, c, v FROM t", plain(), command)
        .await;
    if let Outcome::Done(lines, _) = outcome {
        check_row_read(world, &floors, &lines, |_, _| true);
    }
    if world.epoch() > in_work.epoch {
        world.mark(Mark::StaleRoute);
    }
}

/// Finds a row by its value through the index: it must be found as long as it has that value.
async fn read_by_index(world: &Rc<World>, server: &Server) {
    if !world.is_indexed {
        return;
    }
    let (k, c) = place(world);
    let floor = world
        .rows
        .borrow()
        .get(&(k, c))
        .map_or(0, super::model::RowVersions::floor);
    if floor == 0 {
        return;
    }
    let text = format!("SELECT k, c, v FROM t WHERE v = {floor}");
    let Outcome::Done(lines, _) = server.ask(world, &text, plain()).await else {
        return;
    };
    world.mark(Mark::IndexRead);
    let mut rows = world.rows.borrow_mut();
    let versions = rows.entry((k, c)).or_default();
    match lines.as_slice() {
        [line] if row_of(line) == Some((k, c, floor)) => {
            let checked = versions.check(floor, Some(floor));
            drop(rows);
            world.check("t", checked);
        }
        [] if versions.has_after(floor) || versions.is_deletion(floor) => {}
        other => {
            drop(rows);
            world.fail(
                "t",
                format!("write {floor} of ({k}, {c}) is certain, its index finds {other:?}"),
            );
        }
    }
}

// Pairs of `p`: two rows, probably in two physical partitions, that are written together.

async fn write_pair(world: &Rc<World>, server: &Server) {
    let pair = usize::try_from(world.below(PAIRS as u64)).unwrap();
    let number = world.number();
    let (one, other) = (2 * pair, 2 * pair + 1);
    let text = format!(
        "BEGIN BATCH INSERT INTO p (k, v) VALUES ({one}, {number}); INSERT INTO p (k, v) VALUES ({other}, {number}); APPLY BATCH"
    );
    world.pairs.borrow_mut()[pair].begin(number, false);
    let in_work = world.enter("write");
    let command = |engine: &Engine| {
        let of = Maker::of(engine, "p");
        let rows = [one, other].map(|key| of.insert(i64::try_from(key).unwrap(), None, &[("v", number)]));
        Command::Batch(rows.into())
    };
    let outcome = server.ask_either(world, &text, at(number), command).await;
    drop(in_work);
    if world.pairs_apart.get() {
        let places = world.places(&server.database, "p");
        if outcome.is_done() && places.iter().any(|place| place.1 != places[0].1) {
            world.mark(Mark::BatchWhileApart);
        }
        // Rows that one store refuses are in the batch log of the other.
        if let Outcome::Refused(text) = &outcome
            && text.contains("takes no writes since")
        {
            return;
        }
    }
    resolve(world.pairs.borrow_mut().get_mut(pair), number, &outcome);
}

async fn read_pairs(world: &Rc<World>, server: &Server) {
    let floors: Vec<i64> = world
        .pairs
        .borrow()
        .iter()
        .map(super::model::RowVersions::floor)
        .collect();
    let command = |engine: &Engine| Command::Read(Maker::of(engine, "p").read_all(&["k", "v"]));
    if let Outcome::Done(lines, _) = server.ask_either(world, "SELECT k, v FROM p", plain(), command).await {
        check_pair_read(world, &floors, &lines, world.pairs_apart.get());
    }
}

/// `apart`: a batch may be seen in part, because it is written to several stores in turn.
fn check_pair_read(world: &World, floors: &[i64], lines: &[Line], apart: bool) -> Vec<Option<i64>> {
    let values: BTreeMap<i64, i64> = lines.iter().filter_map(|line| Some((line[0]?, line[1]?))).collect();
    if values.len() != lines.len() {
        world.fail("p", format!("a row stands twice, or is not whole: {lines:?}"));
    }
    let mut seen = Vec::new();
    for (pair, floor) in floors.iter().enumerate() {
        let key = i64::try_from(2 * pair).unwrap();
        let (one, other) = (values.get(&key).copied(), values.get(&(key + 1)).copied());
        if apart {
            // A value seen in one row is not certain for the other.
            for value in [one, other] {
                let checked = world.pairs.borrow()[pair].clone().check(*floor, value);
                world.check("p", checked.map_err(|what| format!("pair {pair}: {what}")));
            }
            seen.push(one);
            continue;
        }
        if one != other {
            world.fail(
                "p",
                format!("half of a batch is seen: {key} has {one:?}, its twin {other:?}"),
            );
        }
        let checked = world.pairs.borrow_mut()[pair].check(*floor, one);
        world.check("p", checked.map_err(|what| format!("pair {pair}: {what}")));
        seen.push(one);
    }
    seen
}

// Registers of `r`.

async fn ask_register(world: &Rc<World>, server: &Server) {
    let registers = if world.is_narrow { 1 } else { REGISTERS };
    let register = usize::try_from(world.below(registers as u64)).unwrap();
    let guess = {
        let registers = world.registers.borrow();
        let operations = &registers[register].operations;
        if operations.len() >= HISTORY_MAX {
            return;
        }
        let known = operations.iter().rev().find_map(|one| match one.ask {
            Ask::Insert(value) | Ask::Swap(_, value) | Ask::PutAhead(value) if one.applied => Some(value),
            _ => one.shown,
        });
        known.or(registers[register].initial).unwrap_or(-1)
    };
    let number = world.number();
    let ask = match world.below(10) {
        0..3 => Ask::Read,
        3..5 => Ask::Insert(number),
        5..8 => Ask::Swap(guess, number),
        8 => Ask::PutAhead(number),
        _ => Ask::Delete(guess),
    };
    operate(world, server, register, ask).await;
}

/// A register with server timestamps: a write that was acknowledged before another was requested is never read after
/// that one.
async fn ask_plain(world: &Rc<World>, server: &Server) {
    let register = REGISTERS + usize::try_from(world.below(PLAIN_REGISTERS as u64)).unwrap();
    if world.registers.borrow()[register].operations.len() >= HISTORY_MAX {
        return;
    }
    let number = world.number();
    let ask = match world.below(10) {
        0..4 => Ask::Read,
        4..8 => Ask::Put(number),
        _ => Ask::Erase,
    };
    operate(world, server, register, ask).await;
}

#[expect(clippy::too_many_lines, reason = "one arm for each request of a client")]
async fn operate(world: &Rc<World>, server: &Server, register: usize, ask: Ask) -> bool {
    let text = match ask {
        Ask::Read if register >= REGISTERS => format!("SELECT v FROM w WHERE k = {register}"),
        Ask::Read => format!("SELECT v FROM r WHERE k = {register}"),
        Ask::PutAhead(value) => format!("UPDATE r SET v = {value} WHERE k = {register}"),
        Ask::Put(value) => format!("UPDATE w SET v = {value} WHERE k = {register}"),
        Ask::Erase => format!("DELETE FROM w WHERE k = {register}"),
        Ask::Insert(value) => format!("INSERT INTO r (k, v) VALUES ({register}, {value}) IF NOT EXISTS"),
        Ask::Swap(from, to) => format!("UPDATE r SET v = {to} WHERE k = {register} IF v = {from}"),
        Ask::Delete(from) => format!("DELETE FROM r WHERE k = {register} IF v = {from}"),
    };
    let params = QueryParams {
        consistency: if ask == Ask::Read {
            Consistency::Serial
        } else {
            Consistency::Quorum
        },
        timestamp_micros: match ask {
            Ask::PutAhead(number) => Some(NOW_MICROS + AHEAD_MICROS + number * AHEAD_STEP_MICROS),
            _ => None,
        },
        ..QueryParams::default()
    };
    let begin = world.number().unsigned_abs();
    let place = {
        let mut registers = world.registers.borrow_mut();
        let operations = &mut registers[register].operations;
        operations.push(Operation {
            ask,
            begin,
            end: None,
            applied: false,
            shown: None,
        });
        operations.len() - 1
    };
    let in_work = world.enter(if ask == Ask::Read { "read" } else { "write" });
    let key = i64::try_from(register).unwrap();
    let command = |engine: &Engine| register_command(engine, key, ask);
    let outcome = server.ask_either(world, &text, params, command).await;
    drop(in_work);
    let end = world.number().unsigned_abs();
    let mut registers = world.registers.borrow_mut();
    let Some(one) = registers[register]
        .operations
        .get_mut(place)
        .filter(|one| one.begin == begin)
    else {
        return false;
    };
    match outcome {
        Outcome::Done(lines, _) if ask == Ask::Read => {
            one.end = Some(end);
            one.applied = true;
            one.shown = lines.first().and_then(|line| line[0]);
            true
        }
        Outcome::Done(..) if matches!(ask, Ask::Put(_) | Ask::Erase | Ask::PutAhead(_)) => {
            one.end = Some(end);
            one.applied = true;
            world.mark(match ask {
                Ask::PutAhead(_) => Mark::DatedAhead,
                _ => Mark::DatedByServer,
            });
            true
        }
        Outcome::Done(lines, _) => {
            let line = lines.first().cloned().unwrap_or_default();
            one.end = Some(end);
            one.applied = line.first() == Some(&Some(1));
            one.shown = if one.applied || line.len() < 2 {
                None
            } else {
                line.last().copied().flatten()
            };
            world.mark(if one.applied {
                Mark::ConditionMet
            } else {
                Mark::ConditionNotMet
            });
            true
        }
        Outcome::Refused(_) => {
            // It had no effect, so it is not part of the history: it counts as a read without a result.
            one.ask = Ask::Read;
            false
        }
        Outcome::Unknown(_) => false,
    }
}

/// What an operation on a register means without text.
fn register_command(engine: &Engine, key: i64, ask: Ask) -> Command {
    let is_plain = usize::try_from(key).unwrap() >= REGISTERS;
    let of = Maker::of(engine, if is_plain { "w" } else { "r" });
    let update = |value| of.update(key, None, &[("v", value)]);
    Command::Write(match ask {
        Ask::Read => return Command::Read(of.read_key(&["v"], key, Clustering::Keys(vec![Vec::new()]))),
        Ask::PutAhead(value) | Ask::Put(value) => update(value),
        Ask::Erase => of.delete_row(key, None),
        Ask::Insert(value) => of.if_not_exists(of.insert(key, None, &[("v", value)])),
        Ask::Swap(from, to) => of.if_is(update(to), "v", from),
        Ask::Delete(from) => of.if_is(of.delete_row(key, None), "v", from),
    })
}

fn check_register(world: &World, register: usize) {
    let registers = world.registers.borrow();
    let history = &registers[register];
    if !history.is_linearizable() {
        let listed: Vec<String> = history.operations.iter().map(|one| format!("{one:?}")).collect();
        world.fail(
            "r",
            format!(
                "register {register} (first {:?}): no order explains the answers\n    {}",
                history.initial,
                listed.join("\n    ")
            ),
        );
    }
}

// Counters of `n`.

async fn count(world: &Rc<World>, server: &Server) {
    let counter = usize::try_from(world.below(COUNTERS as u64)).unwrap();
    world.counters.borrow_mut()[counter].attempted += 1;
    let text = format!("UPDATE n SET n = n + 1 WHERE k = {counter}");
    let in_work = world.enter("write");
    let outcome = server.ask(world, &text, plain()).await;
    drop(in_work);
    match outcome {
        Outcome::Done(..) => world.counters.borrow_mut()[counter].acknowledged += 1,
        // Still counted as attempted: reads that saw the attempt have allowed for it, and one more only widens the
        // interval.
        Outcome::Refused(_) | Outcome::Unknown(_) => {}
    }
}

async fn read_counter(world: &Rc<World>, server: &Server) {
    let counter = usize::try_from(world.below(COUNTERS as u64)).unwrap();
    counter_value(world, server, counter).await;
}

async fn counter_value(world: &Rc<World>, server: &Server, counter: usize) -> Option<i64> {
    let least = world.counters.borrow()[counter].acknowledged;
    let text = format!("SELECT n FROM n WHERE k = {counter}");
    let Outcome::Done(lines, _) = server.ask(world, &text, plain()).await else {
        return None;
    };
    let value = lines.first().and_then(|line| line[0]).unwrap_or_default();
    let most = world.counters.borrow()[counter].attempted;
    if value < least || value > most {
        world.fail(
            "n",
            format!("counter {counter} is {value}, not within {least} and {most}"),
        );
    }
    Some(value)
}

// Table `x`: rows that are written once, and TRUNCATE.

async fn insert_once(world: &Rc<World>, server: &Server) {
    let key = world.number();
    world
        .truncated
        .borrow_mut()
        .rows
        .insert(key, (key.unsigned_abs(), None));
    let in_work = world.enter("write");
    let text = format!("INSERT INTO x (k) VALUES ({key})");
    let command = |engine: &Engine| Command::Write(Maker::of(engine, "x").insert(key, None, &[]));
    let outcome = server.ask_either(world, &text, plain(), command).await;
    drop(in_work);
    let now = world.number().unsigned_abs();
    if outcome.is_done()
        && let Some(row) = world.truncated.borrow_mut().rows.get_mut(&key)
    {
        row.1 = Some(now);
    }
}

async fn read_once(world: &Rc<World>, server: &Server) -> Option<BTreeSet<i64>> {
    let began = world.number().unsigned_abs();
    let command = |engine: &Engine| Command::Read(Maker::of(engine, "x").read_all(&["k"]));
    let Outcome::Done(lines, _) = server.ask_either(world, "SELECT k FROM x", plain(), command).await else {
        return None;
    };
    let seen: BTreeSet<i64> = lines.iter().filter_map(|line| line[0]).collect();
    if seen.len() != lines.len() {
        world.fail("x", "a row stands twice".to_owned());
    }
    let checked = world.truncated.borrow().check(began, &seen);
    world.check("x", checked);
    // Rows seen exist until the next TRUNCATE.
    let now = world.number().unsigned_abs();
    for key in &seen {
        if let Some(row) = world.truncated.borrow_mut().rows.get_mut(key) {
            row.1.get_or_insert(now);
        }
    }
    Some(seen)
}

async fn truncate(world: &Rc<World>, server: &Server) {
    let begin = world.number().unsigned_abs();
    world.truncated.borrow_mut().truncations.push((begin, None, false));
    let in_work = world.enter("truncate");
    let command = |engine: &Engine| Maker::of(engine, "x").truncate();
    let outcome = server.ask_either(world, "TRUNCATE x", plain(), command).await;
    drop(in_work);
    let end = world.number().unsigned_abs();
    let mut truncated = world.truncated.borrow_mut();
    let Some(of) = truncated.truncations.iter().position(|of| of.0 == begin) else {
        return;
    };
    match outcome {
        Outcome::Done(..) => truncated.truncations[of] = (begin, Some(end), true),
        Outcome::Refused(_) => drop(truncated.truncations.remove(of)),
        Outcome::Unknown(_) => {}
    }
}
