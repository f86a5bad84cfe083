//! Table `b` and two materialized views of it: at rest each view holds exactly the rows that its definition gives.
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
            "CREATE TABLE ks.b (k int, c int, v bigint, w bigint, PRIMARY KEY (k, c)) WITH helenus_partitions = 3{grace}"
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
        21..23 => read(world, server).await,
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
        let swept = server.database.upkeep().sweep_table("ks", table).await;
        world.log.borrow_mut().note(format!("swept {table} {swept:?}"));
    }
    drop(in_work);
}

/// Compares the views with their base while no operation is in progress.
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
    let base = found.remove(0);
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
