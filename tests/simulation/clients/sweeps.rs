//! Table `y`: rows of two columns that are checked separately, deleted, written with a time to live and swept, with
//! grace or without.
//!
//! Without grace (`is_graceless`) a write in progress during a sweep may become visible after the deletion that hid it
//! was removed, as in Cassandra; an answered write may not. With grace a write always loses against a newer one,
//! however late it takes effect.

use super::*;

/// Logical partitions of `y`, and rows of each.
const WIDE_KEYS: i32 = 3;
const WIDE_ROWS: i32 = 4;

/// The columns of `y`, by position.
const COLUMNS: [&str; 2] = ["a", "b"];

type Cells = Vec<(i32, i32, usize)>;

/// The effect of a write on the cells it names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Sets,
    Expires,
    Deletes,
}

pub(super) async fn ask_wide(world: &Rc<World>, server: &Server) {
    let (k, c) = wide_place(world);
    match world.below(23) {
        0..4 => set_both(world, server, k, c).await,
        4..8 => update_all(world, server, k).await,
        8..10 => delete(world, server, k, c).await,
        10..13 => read(world, server, (world.chance(500)).then_some(k)).await,
        13..15 => sweep(world, server).await,
        15..18 if world.is_graceless => sweep_beside_updates(world, server, k).await,
        15..18 => come_late(world, server, k, c).await,
        18..21 => lower_again(world, server, k).await,
        _ => sweep_beside_a_move(world, server, k).await,
    }
}

fn wide_place(world: &World) -> (i32, i32) {
    let k = i32::try_from(world.below(WIDE_KEYS.unsigned_abs().into())).unwrap();
    let c = i32::try_from(world.below(WIDE_ROWS.unsigned_abs().into())).unwrap();
    (k, c)
}

fn both_of(k: i32, rows: impl Iterator<Item = i32>) -> Cells {
    rows.flat_map(|c| (0..COLUMNS.len()).map(move |column| (k, c, column)))
        .collect()
}

fn is_swept_now(world: &World) -> bool {
    let in_work = world.in_work.borrow();
    in_work.values().any(|(what, _)| *what == "sweep")
}

async fn write(world: &Rc<World>, server: &Server, text: &str, number: i64, cells: &Cells, effect: Effect) {
    for cell in cells {
        let mut wide = world.wide.borrow_mut();
        let versions = wide.entry(*cell).or_default();
        match effect {
            Effect::Sets => versions.begin(number, false),
            Effect::Expires => versions.begin_expiring(number),
            Effect::Deletes => versions.begin(number, true),
        }
        if world.is_graceless && is_swept_now(world) {
            versions.may_come_late();
        }
    }
    let in_work = world.enter("write");
    let outcome = server.ask(world, text, at(number)).await;
    drop(in_work);
    for cell in cells {
        resolve(world.wide.borrow_mut().get_mut(cell), number, &outcome);
    }
}

async fn set_both(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let number = world.number();
    set_both_at(world, server, k, c, number).await;
}

/// `number` may be lower than those of other writes.
async fn set_both_at(world: &Rc<World>, server: &Server, k: i32, c: i32, number: i64) {
    let expires = world.chance(250);
    let (ttl, effect) = if expires {
        ("USING TTL 1 ", Effect::Expires)
    } else {
        ("", Effect::Sets)
    };
    let text = format!("UPDATE y {ttl}SET a = {number}, b = {number} WHERE k = {k} AND c = {c}");
    write(world, server, &text, number, &both_of(k, c..=c), effect).await;
}

/// Writes the first column of all rows of a partition.
async fn update_all(world: &Rc<World>, server: &Server, k: i32) {
    let number = world.number();
    let text = format!("UPDATE y SET a = {number} WHERE k = {k} AND c IN (0, 1, 2, 3)");
    let cells = (0..WIDE_ROWS).map(|c| (k, c, 0)).collect();
    write(world, server, &text, number, &cells, Effect::Sets).await;
}

async fn delete(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let number = world.number();
    let (what, cells): (_, Cells) = match world.below(4) {
        0 => (format!("FROM y WHERE k = {k}"), both_of(k, 0..WIDE_ROWS)),
        1 => (format!("FROM y WHERE k = {k} AND c >= {c}"), both_of(k, c..WIDE_ROWS)),
        2 => (format!("FROM y WHERE k = {k} AND c = {c}"), both_of(k, c..=c)),
        _ => (format!("b FROM y WHERE k = {k} AND c = {c}"), vec![(k, c, 1)]),
    };
    write(
        world,
        server,
        &format!("DELETE {what}"),
        number,
        &cells,
        Effect::Deletes,
    )
    .await;
}

async fn delete_all(world: &Rc<World>, server: &Server, k: i32) {
    let number = world.number();
    let text = format!("DELETE FROM y WHERE k = {k}");
    write(world, server, &text, number, &both_of(k, 0..WIDE_ROWS), Effect::Deletes).await;
}

async fn sweep(world: &Rc<World>, server: &Server) {
    if world.chance(700) {
        world.clock.advance(std::time::Duration::from_secs(1 + world.below(3)));
    }
    if world.is_graceless {
        for versions in world.wide.borrow_mut().values_mut() {
            versions.may_come_late();
        }
    }
    let is_moving = |world: &World| {
        let in_work = world.in_work.borrow();
        in_work.values().any(|(what, _)| *what == "lift")
    };
    let was_moving = is_moving(world);
    let in_work = world.enter("sweep");
    let swept = if world.chance(100) {
        server.database.engine().upkeep().sweep().await
    } else {
        server.database.engine().upkeep().sweep_table("ks", "y").await
    };
    drop(in_work);
    world.log.borrow_mut().note(format!("swept {swept:?}"));
    let Ok(swept) = swept else { return };
    if swept.rows_removed + swept.rows_shrunk > 0 {
        world.mark(Mark::RowsSwept);
    }
    if swept.deletions_removed > 0 {
        world.mark(Mark::DeletionsSwept);
    }
    if was_moving && is_moving(world) {
        world.mark(Mark::SweptDuringLift);
    }
}

/// With grace, a deletion hides a write from before it that takes effect after a sweep.
async fn come_late(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let number = world.number();
    delete(world, server, k, c).await;
    sweep(world, server).await;
    set_both_at(world, server, k, c, number).await;
    world.mark(Mark::CameLate);
    read(world, server, Some(k)).await;
}

/// Deletes a partition's rows, then sweeps it while one column is written.
async fn sweep_beside_updates(world: &Rc<World>, server: &Server, k: i32) {
    for c in 0..WIDE_ROWS {
        set_both(world, server, k, c).await;
    }
    delete_all(world, server, k).await;
    world.clock.advance(std::time::Duration::from_secs(2));
    let updates = async {
        for _ in 0..3 {
            update_all(world, server, k).await;
        }
    };
    tokio::join!(sweep(world, server), updates);
    read(world, server, Some(k)).await;
}

/// Deletes a partition while it is moved, and sweeps.
async fn sweep_beside_a_move(world: &Rc<World>, server: &Server, k: i32) {
    for c in 0..WIDE_ROWS {
        set_both(world, server, k, c).await;
    }
    let deletes = async {
        for _ in 0..world.below(4) {
            pass().await;
        }
        delete_all(world, server, k).await;
        world.clock.advance(std::time::Duration::from_secs(2));
        sweep(world, server).await;
    };
    let is_beside = move_of(world, server, k, true);
    if world.chance(500) {
        tokio::join!(lift_or_lower(world, server, "y"), deletes);
    } else if world.chance(500) {
        tokio::join!(is_beside, deletes);
    } else if is_beside.await {
        tokio::join!(move_of(world, server, k, false), deletes);
    }
    read(world, server, Some(k)).await;
}

/// Starts to move a partition back from its store and fails, or was killed in an earlier run; deletes the copied rows,
/// sweeps, and moves it again.
async fn lower_again(world: &Rc<World>, server: &Server, k: i32) {
    if !move_of(world, server, k, true).await {
        return;
    }
    // The remains of a kill serve as well: nothing needs to be copied first.
    if world.chance(700) {
        for c in 0..WIDE_ROWS {
            set_both(world, server, k, c).await;
        }
        let changes = async {
            for _ in 0..world.below(40) {
                pass().await;
            }
            let text = format!("ALTER TABLE y WITH comment = '{}'", world.number());
            server.ask(world, &text, plain()).await;
        };
        let (is_lowered, ()) = tokio::join!(move_of(world, server, k, false), changes);
        if is_lowered {
            return;
        }
        world.mark(Mark::LowerFailed);
    }
    delete_all(world, server, k).await;
    world.clock.advance(std::time::Duration::from_secs(2));
    sweep(world, server).await;
    if move_of(world, server, k, false).await {
        world.mark(Mark::LoweredAgain);
    }
    read(world, server, Some(k)).await;
}

/// Moves the physical partition of a key to a store of its own, or back. Returns whether it lies there now.
async fn move_of(world: &Rc<World>, server: &Server, k: i32, lifts: bool) -> bool {
    let parts = server.database.engine().figures().partitions().into_iter();
    let found = parts
        .filter(|part| part.keyspace == "ks" && part.table == "y")
        .find(|part| (part.lower..=part.upper).contains(&token(k)));
    let Some(part) = found else { return false };
    (part.store != 0) == lifts || move_part(world, server, "y", part.id, lifts).await
}

fn wide_floors(world: &World) -> BTreeMap<(i32, i32, usize), i64> {
    let wide = world.wide.borrow();
    wide.iter().map(|(cell, versions)| (*cell, versions.floor())).collect()
}

async fn read(world: &Rc<World>, server: &Server, key: Option<i32>) {
    let floors = wide_floors(world);
    let text = match key {
        Some(k) => format!("SELECT k, c, a, b FROM y WHERE k = {k}"),
        None => "SELECT k, c, a, b FROM y".to_owned(),
    };
    let _in_work = world.enter("read");
    if let Outcome::Done(lines, _) = server.ask(world, &text, plain()).await {
        check_wide_read(world, &floors, &lines, |k| key.is_none_or(|key| key == k));
    }
}

/// Checks a read of these keys of `y`, cell by cell. Returns the values seen.
fn check_wide_read(
    world: &World,
    floors: &BTreeMap<(i32, i32, usize), i64>,
    lines: &[Line],
    covers: impl Fn(i32) -> bool,
) -> BTreeMap<(i32, i32, usize), i64> {
    let mut seen = BTreeMap::new();
    for line in lines {
        let [Some(k), Some(c), cells @ ..] = line.as_slice() else {
            world.fail("y", format!("a row is not whole: {line:?}"));
            continue;
        };
        let (k, c) = (i32::try_from(*k).unwrap(), i32::try_from(*c).unwrap());
        for (column, value) in cells.iter().enumerate() {
            if let Some(value) = value
                && seen.insert((k, c, column), *value).is_some()
            {
                world.fail("y", format!("row ({k}, {c}) stands twice"));
            }
        }
    }
    for (k, c, column) in (0..WIDE_KEYS).flat_map(|k| both_of(k, 0..WIDE_ROWS)) {
        if !covers(k) {
            continue;
        }
        let cell = (k, c, column);
        let floor = floors.get(&cell).copied().unwrap_or_default();
        let mut wide = world.wide.borrow_mut();
        let versions = wide.entry(cell).or_default();
        let checked = versions.check(floor, seen.get(&cell).copied());
        if !seen.contains_key(&cell) && versions.is_expiring(floor) {
            world.mark(Mark::Expired);
        }
        drop(wide);
        let name = COLUMNS[column];
        world.check("y", checked.map_err(|what| format!("{name} of ({k}, {c}): {what}")));
    }
    seen
}

/// Checks `y` while no operation is in progress.
pub(super) async fn check_wide(world: &Rc<World>, server: &Server, is_at_rest: bool) {
    let floors = wide_floors(world);
    let Outcome::Done(lines, _) = server.ask(world, "SELECT k, c, a, b FROM y", plain()).await else {
        return world.fail("y", "cannot be read at rest".to_owned());
    };
    let seen = check_wide_read(world, &floors, &lines, |_| true);
    if is_at_rest {
        for (cell, versions) in world.wide.borrow_mut().iter_mut() {
            versions.rest(seen.get(cell).copied());
        }
    }
}
