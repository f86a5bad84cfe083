//! Clients that change the placement of rows and the set of tables.

use super::*;

pub(super) async fn split_or_merge(world: &Rc<World>, server: &Server) {
    let table = ["t", "t", "t", "t", "p", "r", "n", "x", "w", "y", "z", "b"][usize::try_from(world.below(12)).unwrap()];
    let parts = world.parts(&server.database, table);
    let splits = parts.len() < 2 || (parts.len() < 12 && world.chance(550));
    let mut is_apart = false;
    let text = if splits {
        let key = place(world).0;
        let token = match world.below(4) {
            0 => world.random.borrow_mut().i64(..),
            1 => token(key).saturating_add(1),
            _ => token(key),
        };
        if parts.iter().any(|part| part.1 == token) {
            return;
        }
        format!("ALTER TABLE {table} WITH helenus_split_at = {token}")
    } else {
        let left = usize::try_from(world.below(parts.len() as u64 - 1)).unwrap();
        let places = world.places(&server.database, table);
        let store = |id: u64| places.iter().find(|place| place.0 == id).map(|place| place.1);
        is_apart = store(parts[left].0) != store(parts[left + 1].0);
        if is_apart {
            world.note_move(table);
        }
        format!(
            "ALTER TABLE {table} WITH helenus_merge = {{'left': {}, 'right': {}}}",
            parts[left].0,
            parts[left + 1].0
        )
    };
    let in_work = world.enter("split");
    let outcome = server.ask(world, &text, plain()).await;
    drop(in_work);
    if outcome.is_done() && is_apart {
        world.mark(Mark::MergeOfTwoStores);
    }
    if outcome.is_done() {
        world.mark(if splits {
            Mark::SplitByStatement
        } else {
            Mark::MergeByStatement
        });
    }
    world.check_maps(&server.database);
}

pub(super) async fn lift_or_lower_any(world: &Rc<World>, server: &Server) {
    let table = ["t", "t", "p", "p", "p", "r", "n", "x", "w", "z", "b", "b"][usize::try_from(world.below(12)).unwrap()];
    lift_or_lower(world, server, table).await;
}

pub(super) async fn lift_or_lower(world: &Rc<World>, server: &Server, table: &str) {
    let places = world.places(&server.database, table);
    let (id, store) = places[usize::try_from(world.below(places.len() as u64)).unwrap()];
    let lifts = world.is_home(store) || world.chance(200);
    move_part(world, server, table, id, lifts).await;
}

/// Moves a physical partition to a store of its own, or back; returns whether it was done.
pub(super) async fn move_part(world: &Rc<World>, server: &Server, table: &str, id: u64, lifts: bool) -> bool {
    let action = if lifts { "lift" } else { "lower" };
    world.note_move(table);
    let in_work = world.enter("lift");
    let outcome = server
        .ask(
            world,
            &format!("ALTER TABLE {table} WITH helenus_{action} = {id}"),
            plain(),
        )
        .await;
    drop(in_work);
    if outcome.is_done() {
        world.mark(if lifts { Mark::Lifted } else { Mark::Lowered });
    }
    world.check_maps(&server.database);
    outcome.is_done()
}

pub(super) async fn repartition(world: &Rc<World>, server: &Server) {
    let limits = PartitionLimits {
        bytes_max: [400, 1500, 100_000][usize::try_from(world.below(3)).unwrap()],
        merges: true,
    };
    let mut sizes = world.sizes.take();
    world.log.borrow_mut().note(format!("repartition by {limits:?}"));
    let in_work = world.enter("split");
    let outcome = server.database.engine().upkeep().repartition(limits, &mut sizes).await;
    drop(in_work);
    world.log.borrow_mut().note(format!("repartitioned {outcome:?}"));
    if format!("{outcome:?}").contains("with another checksum") {
        world.fail("moves", format!("{outcome:?}"));
    }
    *world.sizes.borrow_mut() = sizes;
    if let Ok(done) = outcome {
        if done.splits > 0 {
            world.mark(Mark::SplitBySize);
        }
        if done.merges > 0 {
            world.mark(Mark::MergeBySize);
        }
    }
}

// Tables that are created and dropped.

pub(super) async fn create_or_drop(world: &Rc<World>, server: &Server) {
    let table = usize::try_from(world.below(2)).unwrap();
    let was = world.tables.borrow()[table];
    let (text, will_be) = match was {
        Existence::Unknown => return,
        Existence::Is => (format!("DROP TABLE d{table}"), Existence::IsNot),
        Existence::IsNot => (
            format!(
                "CREATE TABLE d{table} (k int PRIMARY KEY) WITH helenus_partitions = {}",
                1 + world.below(4)
            ),
            Existence::Is,
        ),
    };
    world.tables.borrow_mut()[table] = Existence::Unknown;
    let outcome = server.ask(world, &text, plain()).await;
    world.tables.borrow_mut()[table] = match outcome {
        Outcome::Done(..) => will_be,
        Outcome::Refused(_) => was,
        Outcome::Unknown(_) => Existence::Unknown,
    };
}
