//! Overload of a table with throughput, while its partitions split and merge: admission must be neither too generous
//! nor too strict.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::cql;
use helenus_cql::cql::{Database, QueryParams, SessionState, Values};
use helenus_engine::engine::Error;
use helenus_schema::command::Value;
use helenus_storage::storage::Medium;

use super::marks::Mark;
use super::runner::{Runner, Turn, pass};
use super::world::{Server, World, rest, token};

/// The table's throughput, RU/s.
const PER_SECOND: u64 = 400;

/// The most partitions; more are merged.
const PARTITIONS_MAX: usize = 6;

/// A row of one partition key costs up to this, in hundredths of a unit: a write of 60 KiB over an old one.
const COST_MAX: u64 = 12_000;

const KEYS: u64 = 40;

/// Spent request units, in hundredths of a unit.
struct Spent {
    began: Duration,
    total: Cell<u64>,
    /// The largest number of partitions so far.
    partitions: Cell<usize>,
    /// Requests refused for lack of budget.
    throttled: Cell<u64>,
    value: Bytes,
}

/// One run of a separate database, in memory that does not fail.
pub(crate) fn overload(world: &Rc<World>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(one_run(world));
}

#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn one_run(world: &Rc<World>) {
    let medium = Medium::new(world.below(u64::MAX));
    let mut runner = Runner::new(medium.clone(), world.below(u64::MAX), Rc::clone(&world.log));
    let opened: Rc<RefCell<Option<Rc<Server>>>> = Rc::default();
    world.stopping.set(false);
    {
        let (world, opened) = (Rc::clone(world), Rc::clone(&opened));
        runner.spawn("open".to_owned(), async move {
            let partitions = 1 + world.below(3);
            let options = world.options_on(&medium);
            let Ok(database) = Database::open(options).await else {
                return world.fail("b", "a new database cannot be opened".to_owned());
            };
            for text in [
                "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
                format!(
                    "CREATE TABLE ks.b (k int PRIMARY KEY, v text) WITH helenus_partitions = {partitions} AND \
                     cosmosdb_provisioned_throughput = {PER_SECOND}"
                ),
            ] {
                let session = SessionState::default();
                if let Err(error) = database.query(&session, &text, &QueryParams::default()).await {
                    world.fail("b", format!("{text}: {error}"));
                }
            }
            let session = SessionState {
                keyspace: Some(Arc::from("ks")),
                ..SessionState::default()
            };
            *opened.borrow_mut() = Some(Rc::new(Server { database, session }));
        });
    }
    rest(world, &mut runner).await;
    let Some(server) = opened.borrow_mut().take() else {
        return;
    };
    let spent = Rc::new(Spent {
        began: world.clock.monotonic(),
        total: Cell::new(0),
        partitions: Cell::new(world.parts(&server.database, "b").len()),
        throttled: Cell::new(0),
        value: Bytes::from(vec![b'x'; 1024 * usize::try_from(1 + world.below(60)).unwrap()]),
    });
    let clients = 2 + world.below(4);
    for client in 0..clients {
        spawn(world, &mut runner, &server, &spent, client);
    }
    for _ in 0..1000 {
        if runner.turn().await == Turn::Idle || world.failure().is_some() {
            break;
        }
        if world.chance(20) && runner.cancel_one().is_some() {
            spawn(world, &mut runner, &server, &spent, 100);
        }
        if world.chance(200) {
            world.clock.advance(Duration::from_millis(1 + world.below(20)));
        }
        if world.chance(10) {
            let back = world.chance(500);
            world
                .clock
                .set_wall_by(if back { -3_600_000_000 } else { 3_600_000_000 });
        }
    }
    world.stopping.set(true);
    rest(world, &mut runner).await;
    for _ in 0..6 {
        stand_still(world, &mut runner, &server, &spent).await;
    }
    starve(world, &mut runner, &server, &spent).await;
}

fn spawn(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>, spent: &Rc<Spent>, number: u64) {
    let (world, server, spent) = (Rc::clone(world), Rc::clone(server), Rc::clone(spent));
    runner.spawn(format!("buyer {number}"), async move {
        while !world.stopping.get() && world.failure().is_none() {
            pass().await;
            if world.chance(30) {
                split_or_merge(&world, &server, &spent).await;
            } else {
                buy(&world, &server, &spent).await;
            }
        }
    });
}

async fn buy(world: &Rc<World>, server: &Server, spent: &Spent) {
    // Some keys are hot.
    let key = if world.chance(500) {
        world.below(3)
    } else {
        world.below(KEYS)
    };
    let place = Value::Bytes(Bytes::copy_from_slice(&i32::try_from(key).unwrap().to_be_bytes()));
    // Values are bound: such long texts take time to parse.
    let (text, values) = if world.chance(600) {
        let value = Value::Bytes(spent.value.clone());
        ("INSERT INTO b (k, v) VALUES (?, ?)", vec![place, value])
    } else {
        ("SELECT k FROM b WHERE k = ?", vec![place])
    };
    let params = QueryParams {
        values: Values::Positional(values),
        ..QueryParams::default()
    };
    let epoch = server
        .database
        .engine()
        .figures()
        .partitions()
        .iter()
        .map(|part| part.epoch)
        .max();
    let answer = server.database.query(&server.session, text, &params).await;
    let shown = match &answer {
        Ok(answer) => {
            let cost = answer.charge.in_hundredths();
            spent.total.set(spent.total.get() + cost);
            if cost > COST_MAX {
                world.fail("b", format!("one request costs {cost} hundredths"));
            }
            format!("cost {cost}")
        }
        Err(error @ cql::Error::Engine(Error::Throttled { .. })) => {
            let text = error.to_string();
            spent.throttled.set(spent.throttled.get() + 1);
            world.mark(Mark::Throttled);
            if !text.contains("RetryAfterMs=") {
                world.fail("b", format!("a refusal does not say how long: {text}"));
            }
            "throttled".to_owned()
        }
        Err(error) => return world.fail("b", error.to_string()),
    };
    if server
        .database
        .engine()
        .figures()
        .partitions()
        .iter()
        .map(|part| part.epoch)
        .max()
        > epoch
        && answer.is_ok()
    {
        world.mark(Mark::SpentByOldList);
    }
    world.log.borrow_mut().note(format!("buy {key} {shown}"));
    check_spent(world, spent);
}

/// Spent units must equal the granted ones (units a second, and a second's worth at the start) except for overdrafts:
/// for each partition that existed, the requests that it admitted while it had budget left.
fn check_spent(world: &World, spent: &Spent) {
    let passed = world.clock.monotonic().saturating_sub(spent.began);
    let given = PER_SECOND * 100 * (u64::try_from(passed.as_millis()).unwrap() + 1_000) / 1_000;
    // An admitted request costs at most as much as the most expensive one; in addition there are requests whose cost
    // was underestimated.
    let debt = COST_MAX * 3 * spent.partitions.get() as u64;
    let total = spent.total.get();
    if total > given {
        world.mark(Mark::DebtCarried);
    }
    if total > given + debt {
        world.fail(
            "b",
            format!("{total} hundredths of a unit were admitted in {passed:?}, {given} were given, {debt} may be owed"),
        );
    }
}

async fn split_or_merge(world: &Rc<World>, server: &Server, spent: &Spent) {
    let parts = world.parts(&server.database, "b");
    let splits = parts.len() < 2 || (parts.len() < PARTITIONS_MAX && world.chance(550));
    let text = if splits {
        let token = token(i32::try_from(world.below(KEYS)).unwrap());
        if parts.iter().any(|part| part.1 == token) {
            return;
        }
        format!("ALTER TABLE b WITH helenus_split_at = {token}")
    } else {
        let left = usize::try_from(world.below(parts.len() as u64 - 1)).unwrap();
        let (left, right) = (parts[left].0, parts[left + 1].0);
        format!("ALTER TABLE b WITH helenus_merge = {{'left': {left}, 'right': {right}}}")
    };
    // Another client may have changed the partition map meanwhile.
    let changed = server
        .database
        .query(&server.session, &text, &QueryParams::default())
        .await;
    world.log.borrow_mut().note(format!("{text}: {}", changed.is_ok()));
    let parts = world.parts(&server.database, "b").len();
    spent.partitions.set(spent.partitions.get().max(parts));
}

/// The balance of all accounts of the table, in hundredths of a unit.
fn balance(server: &Server) -> i64 {
    let tables = server.database.engine().figures().throughput().into_iter();
    let accounts = tables
        .filter(|shown| shown.table == "b")
        .flat_map(|shown| shown.partitions);
    accounts.map(|account| account.balance_hundredths).sum()
}

/// While time stands still nothing is granted: what requests cost is taken from the accounts, whatever happens to the
/// partitions meanwhile.
async fn stand_still(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>, spent: &Rc<Spent>) {
    if world.failure().is_some() {
        return;
    }
    world.clock.advance(Duration::from_millis(1 + world.below(3000)));
    let (before, total) = (balance(server), spent.total.get());
    let (of_world, of_server, of_spent) = (Rc::clone(world), Rc::clone(server), Rc::clone(spent));
    runner.spawn("splitter".to_owned(), async move {
        split_or_merge(&of_world, &of_server, &of_spent).await;
    });
    for number in 0..4 {
        let (world, server, spent) = (Rc::clone(world), Rc::clone(server), Rc::clone(spent));
        runner.spawn(format!("buyer {number} of a moment"), async move {
            buy(&world, &server, &spent).await;
        });
    }
    rest(world, runner).await;
    let (after, cost) = (balance(server), spent.total.get() - total);
    // Each change of the partition map rounds once for each partition, and each charge that is divided rounds once.
    if after > before - i64::try_from(cost).unwrap() + 100 {
        world.fail(
            "b",
            format!("accounts had {before}, requests cost {cost}, and {after} is left"),
        );
    }
}

/// After a long rest every client is admitted: nothing stays reserved for dropped requests, and every overdraft is
/// repaid.
async fn starve(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>, spent: &Rc<Spent>) {
    world.clock.advance(Duration::from_secs(600));
    let (of_world, of_server) = (Rc::clone(world), Rc::clone(server));
    runner.spawn("last".to_owned(), async move {
        for key in 0..KEYS {
            let text = format!("SELECT k FROM b WHERE k = {key}");
            let answer = of_server
                .database
                .query(&of_server.session, &text, &QueryParams::default())
                .await;
            if let Err(error) = answer {
                of_world.fail("b", format!("key {key} is refused after a long rest: {error}"));
            }
            of_world.clock.advance(Duration::from_secs(1));
        }
    });
    rest(world, runner).await;
    world.log.borrow_mut().note(format!(
        "spent {} of which {} were refused",
        spent.total.get(),
        spent.throttled.get()
    ));
}
