//! Table `b`, two materialized views of it, and its change feed: at rest each view holds exactly the rows that its
//! definition gives, a new reader of the feed gets exactly the rows of the table, and one that has followed the feed
//! over all runs knows the latest version of each.
//!
//! Rows move between the keys of `bv` as their `v` changes; `bk` has the keys of `b` in another order. Both lie in other
//! partitions than the base, and in other stores once a partition of `b` was moved: then the batch log keeps them together.

use super::*;

/// Logical partitions of `b`, rows of each, and values of the column that `bv` has as its key.
const KEYS_OF_BASE: u64 = 4;
const ROWS_OF_BASE: u64 = 3;
const GROUPS: u64 = 3;

/// The logical partition whose writes the server dates, so that conditional ones may be among them.
const DATED_BY_SERVER: i64 = 0;

/// `is_graceless`: sweeps remove what was deleted a second ago. A base of views may not have less.
pub(crate) fn schema(is_graceless: bool) -> [String; 3] {
    let grace = if is_graceless { " AND gc_grace_seconds = 1" } else { "" };
    [
        format!(
            "CREATE TABLE ks.b (k int, c int, v bigint, w bigint, PRIMARY KEY (k, c)) WITH helenus_partitions = 3 AND cdc = true{grace}"
        ),
        "CREATE MATERIALIZED VIEW ks.bv AS SELECT k, c, v, w FROM ks.b \
         WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k, c)"
            .to_owned(),
        "CREATE MATERIALIZED VIEW ks.bk AS SELECT k, c, w FROM ks.b \
         WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)"
            .to_owned(),
    ]
}

pub(super) async fn ask_views(world: &Rc<World>, server: &Server) {
    match world.below(24) {
        0..16 => {
            let (k, text) = change(world);
            write(world, server, k, &text).await;
        }
        16..19 => batch(world, server).await,
        19..21 => condition(world, server).await,
        21 => read(world, server).await,
        22 => drop(follow(world, server).await),
        _ => sweep(world, server).await,
    }
}

fn draw(world: &World, end: u64) -> i64 {
    i64::try_from(world.below(end)).unwrap()
}

/// A change of one row or of several of one logical partition, and this partition.
fn change(world: &World) -> (i64, String) {
    let (k, c) = (draw(world, KEYS_OF_BASE), draw(world, ROWS_OF_BASE));
    let (v, w) = (draw(world, GROUPS), world.number());
    let ttl = if world.views_expire && world.chance(250) {
        " USING TTL 2"
    } else {
        ""
    };
    let row = format!("WHERE k = {k} AND c = {c}");
    let text = match world.below(16) {
        0..6 => format!("INSERT INTO b (k, c, v, w) VALUES ({k}, {c}, {v}, {w}){ttl}"),
        6..9 => format!("UPDATE b{ttl} SET v = {v} {row}"),
        9..11 => format!("UPDATE b{ttl} SET w = {w} {row}"),
        11 => format!("DELETE v FROM b {row}"),
        12 => format!("DELETE FROM b WHERE k = {k}"),
        13 => format!("DELETE FROM b WHERE k = {k} AND c >= {c}"),
        _ => format!("DELETE FROM b {row}"),
    };
    (k, text)
}

async fn write(world: &Rc<World>, server: &Server, k: i64, text: &str) {
    let params = if k == DATED_BY_SERVER {
        plain()
    } else {
        at(world.number())
    };
    let in_work = world.enter("write");
    let outcome = server.ask(world, text, params).await;
    drop(in_work);
    if outcome.is_done() && apart(world, server) {
        world.mark(Mark::ViewWhileApart);
    }
}

/// Whether a partition of the base lies in a store of its own.
fn apart(world: &World, server: &Server) -> bool {
    world.places(&server.database, "b").iter().any(|place| place.1 != 0)
}

async fn batch(world: &Rc<World>, server: &Server) {
    // Never the one that the server dates: one timestamp is given for all statements.
    let mut changes = Vec::new();
    while changes.len() < 3 {
        let (k, text) = change(world);
        if k != DATED_BY_SERVER {
            changes.push(text);
        }
    }
    let text = format!("BEGIN BATCH {}; APPLY BATCH", changes.join("; "));
    write(world, server, DATED_BY_SERVER + 1, &text).await;
}

async fn condition(world: &Rc<World>, server: &Server) {
    let (c, from, to) = (draw(world, ROWS_OF_BASE), draw(world, GROUPS), draw(world, GROUPS));
    let text = format!("UPDATE b SET v = {to} WHERE k = {DATED_BY_SERVER} AND c = {c} IF v = {from}");
    write(world, server, DATED_BY_SERVER, &text).await;
}

/// Reads a partition of a view: whatever goes on, it has only rows of its key, each once.
async fn read(world: &Rc<World>, server: &Server) {
    let v = draw(world, GROUPS);
    let text = format!("SELECT v, k, c FROM bv WHERE v = {v}");
    let Outcome::Done(lines, _) = server.ask(world, &text, plain()).await else {
        return;
    };
    let distinct: BTreeSet<&Line> = lines.iter().collect();
    if distinct.len() < lines.len() || lines.iter().any(|line| line[0] != Some(v)) {
        world.fail("bv", format!("{text} finds {lines:?}"));
    }
}

async fn sweep(world: &Rc<World>, server: &Server) {
    world.clock.advance(std::time::Duration::from_secs(1 + world.below(3)));
    let in_work = world.enter("sweep");
    for table in ["b", "bv", "bk"] {
        let swept = server.database.engine().upkeep().sweep_table("ks", table).await;
        world.log.borrow_mut().note(format!("swept {table} {swept:?}"));
    }
    drop(in_work);
}

/// A reader of the change feed of `b` that lives as long as its seed.
#[derive(Default)]
pub(crate) struct Follower {
    /// The paging state of its last page.
    state: Option<Bytes>,
    /// The last version that it was given of each row.
    rows: BTreeMap<(Option<i64>, Option<i64>), Line>,
    is_busy: bool,
}

/// Reads a page of the change feed. `None` means that it was refused.
async fn page(world: &Rc<World>, server: &Server, state: Option<Bytes>) -> Option<(Vec<Line>, Option<Bytes>)> {
    let params = QueryParams {
        page_size_rows: Some(u32::try_from(1 + world.below(8)).unwrap()),
        paging_state: state,
        ..plain()
    };
    let text = "SELECT k, c, v, w FROM b WHERE COSMOS_CHANGEFEED_FROM_START() = true";
    match server.ask(world, text, params).await {
        Outcome::Done(lines, Some(state)) => Some((lines, Some(state))),
        Outcome::Done(..) => {
            world.fail("feed", "a page has no paging state".to_owned());
            None
        }
        _ => None,
    }
}

/// The follower reads one page. Returns whether there were changes; `None` means that it was refused, or is reading already.
async fn follow(world: &Rc<World>, server: &Server) -> Option<bool> {
    let state = {
        let mut follower = world.follower.borrow_mut();
        if std::mem::replace(&mut follower.is_busy, true) {
            return None;
        }
        follower.state.clone()
    };
    let is_first = state.is_none();
    let read = page(world, server, state).await;
    let mut follower = world.follower.borrow_mut();
    follower.is_busy = false;
    let (lines, state) = read?;
    let has_more = !lines.is_empty();
    if has_more && !is_first {
        world.mark(Mark::FeedFollowed);
    }
    for line in lines {
        follower.rows.insert((line[0], line[1]), line);
    }
    follower.state = state;
    Some(has_more)
}

/// Reads the change feed from its start while no operation is in progress, and lets the follower read to the end.
async fn check_feed(world: &Rc<World>, server: &Server, base: &[Line]) {
    let (mut found, mut state) = (Vec::new(), None);
    loop {
        let Some((lines, next)) = page(world, server, state).await else {
            return world.fail("feed", "cannot be read at rest".to_owned());
        };
        if lines.is_empty() {
            break;
        }
        found.extend(lines);
        state = next;
    }
    found.sort();
    if found != base {
        world.fail("feed", format!("the table has {base:?}, a new reader gets {found:?}"));
    }
    // A request that was dropped is no longer reading.
    world.follower.borrow_mut().is_busy = false;
    while let Some(true) = follow(world, server).await {}
    // What expires is not told.
    if world.views_expire {
        return;
    }
    let follower = world.follower.borrow();
    for line in base {
        let known = follower.rows.get(&(line[0], line[1]));
        if known != Some(line) {
            world.fail("feed", format!("the table has {line:?}, the follower knows {known:?}"));
        }
    }
}

/// Compares the views and the feed with their base while no operation is in progress.
///
/// Where rows expire and the clock was set back nothing is compared: a row that one table's sweep took is seen again in the other.
pub(super) async fn check_views(world: &Rc<World>, server: &Server) {
    if world.views_expire && world.marks.borrow().count(Mark::ClockSetBack) > 0 {
        return;
    }
    let mut found = Vec::new();
    for columns in ["k, c, v, w FROM b", "k, c, v, w FROM bv", "k, c, w FROM bk"] {
        let Outcome::Done(lines, _) = server.ask(world, &format!("SELECT {columns}"), plain()).await else {
            return world.fail("b", format!("{columns} cannot be read at rest"));
        };
        found.push(lines);
    }
    let mut base = found.remove(0);
    base.sort();
    check_feed(world, server, &base).await;
    let mut of_values: Vec<Line> = base.iter().filter(|line| line[2].is_some()).cloned().collect();
    let mut of_keys: Vec<Line> = base.iter().map(|line| vec![line[0], line[1], line[3]]).collect();
    for (view, wanted, seen) in [("bv", &mut of_values, 0), ("bk", &mut of_keys, 1)] {
        wanted.sort();
        found[seen].sort();
        if *wanted != found[seen] {
            world.fail(view, format!("its base gives {wanted:?}, it holds {:?}", found[seen]));
        }
        if !wanted.is_empty() {
            world.mark(Mark::ViewCompared);
        }
    }
}
