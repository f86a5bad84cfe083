//! Checks while no operation is in progress.

use super::*;

/// Checks everything while no operation is in progress; afterwards open outcomes are known, unless the medium is dead.
pub(crate) async fn check_at_rest(world: &Rc<World>, runner: &mut Runner, server: &Rc<Server>) {
    let (of_world, of_server) = (Rc::clone(world), Rc::clone(server));
    world.log.borrow_mut().note("at rest".to_owned());
    runner.spawn("check".to_owned(), async move {
        check(&of_world, &of_server).await;
    });
    rest(world, runner).await;
}

#[expect(clippy::too_many_lines, reason = "one check after another of what must hold at rest")]
async fn check(world: &Rc<World>, server: &Server) {
    // A commit makes late effects visible.
    server
        .database
        .engine()
        .upkeep()
        .probe(&mut helenus_engine::engine::Probe::default())
        .await;
    world.medium.show_late_sides();
    world.check_maps(&server.database);
    let is_at_rest = !world.medium.is_dead();
    let certain = floors(world);
    let Outcome::Done(lines, _) = server.ask(world, "SELECT k, c, v FROM t", plain()).await else {
        return world.fail("t", "cannot be read at rest".to_owned());
    };
    let seen = check_row_read(world, &certain, &lines, |_, _| true);
    if is_at_rest {
        for (row, versions) in world.rows.borrow_mut().iter_mut() {
            let seen = seen.get(row).copied();
            let open = versions.open();
            let never = versions.rest(seen);
            for _ in 0..never {
                world.mark(Mark::UnknownDidNotHappen);
            }
            if open.is_some_and(|open| seen == Some(open)) || (open.is_some() && never == 0) {
                world.mark(Mark::UnknownHappened);
            }
        }
    }
    for ((k, c), v) in &seen {
        let mut texts = vec![format!("SELECT k, c, v FROM t WHERE k = {k} AND c = {c}")];
        if world.is_indexed {
            texts.push(format!("SELECT k, c, v FROM t WHERE v = {v}"));
        }
        for text in texts {
            match server.ask(world, &text, plain()).await {
                Outcome::Done(found, _) if found.len() == 1 && row_of(&found[0]) == Some((*k, *c, *v)) => {}
                Outcome::Done(found, _) => world.fail("t", format!("({k}, {c}, {v}) is there, {text} finds {found:?}")),
                _ => world.fail("t", format!("{text} is refused at rest")),
            }
        }
    }
    if let Outcome::Done(found, _) = server.ask(world, "SELECT count(*) FROM t", plain()).await
        && found[0][0] != i64::try_from(seen.len()).ok()
    {
        world.fail("t", format!("{} rows are there, {found:?} are counted", seen.len()));
    }
    check_wide(world, server, is_at_rest).await;
    check_shapes(world, server, is_at_rest).await;
    if is_at_rest {
        check_views(world, server).await;
    }
    check_pairs(world, server, is_at_rest).await;
    check_registers(world, server, is_at_rest).await;
    for counter in 0..COUNTERS {
        if let Some(value) = counter_value(world, server, counter).await
            && is_at_rest
        {
            let counters = &mut world.counters.borrow_mut()[counter];
            (counters.acknowledged, counters.attempted) = (value, value);
        }
    }
    if let Some(seen) = read_once(world, server).await
        && is_at_rest
    {
        let now = world.number().unsigned_abs();
        let mut truncated = world.truncated.borrow_mut();
        for truncation in &mut truncated.truncations {
            truncation.1.get_or_insert(now);
        }
        truncated.rows.retain(|key, row| row.1.is_some() || seen.contains(key));
    }
    check_tables(world, server, is_at_rest).await;
}

async fn check_pairs(world: &Rc<World>, server: &Server, is_at_rest: bool) {
    let certain: Vec<i64> = world
        .pairs
        .borrow()
        .iter()
        .map(crate::model::RowVersions::floor)
        .collect();
    if let Outcome::Done(lines, _) = server.ask(world, "SELECT k, v FROM p", plain()).await {
        let seen = check_pair_read(world, &certain, &lines, world.pairs_apart.get() && !is_at_rest);
        if is_at_rest {
            for (versions, seen) in world.pairs.borrow_mut().iter_mut().zip(seen) {
                versions.rest(seen);
            }
        }
    }
}

async fn check_registers(world: &Rc<World>, server: &Server, is_at_rest: bool) {
    for register in 0..REGISTERS + PLAIN_REGISTERS {
        if !operate(world, server, register, Ask::Read).await {
            world.fail("r", format!("register {register} cannot be read at rest"));
            continue;
        }
        check_register(world, register);
        if is_at_rest {
            let register = &mut world.registers.borrow_mut()[register];
            register.initial = register.operations.last().and_then(|one| one.shown);
            register.operations.clear();
        }
    }
}

async fn check_tables(world: &Rc<World>, server: &Server, is_at_rest: bool) {
    for table in 0..2 {
        let text = format!("SELECT k FROM d{table}");
        let is = if server.ask(world, &text, plain()).await.is_done() {
            Existence::Is
        } else {
            Existence::IsNot
        };
        let was = world.tables.borrow()[table];
        if was != Existence::Unknown && was != is {
            world.fail("d", format!("table d{table}: {was:?} was acknowledged, now it {is:?}"));
        }
        if is_at_rest {
            world.tables.borrow_mut()[table] = is;
        }
    }
}
