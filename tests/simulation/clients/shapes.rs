//! Table `z`: static columns, collections, and batches of many rows; read at QUORUM and at ONE, where replicas lag.
//!
//! ```text
//! z: k · s static │ c · g, h · m map · e set · l list
//! ```
//! Every write stores its number in everything that it writes. `g` and `h` are written only by batches over all rows of
//! one or two logical partitions, and deleted only with the whole partition: so in each partition all are equal,
//! whatever happens. An entry of a map shows its write; an element of a set or list is the number of the write that
//! added it, and occurs once.
//!
//! A read at ONE may miss the newest writes; what it shows was written, and the rows of a batch in one partition are
//! atomic in it too.

use super::*;

/// Logical partitions of `z`, rows of each, entries of a map.
const SHAPE_KEYS: i32 = 3;
const SHAPE_ROWS: i32 = 3;
const ENTRIES: i64 = 3;

/// Most elements of one set or list before it is emptied.
const ELEMENTS_MAX: usize = 6;

const ALL: &str = "SELECT k, c, s, g, h, m[0], m[1], m[2], e, l FROM z";

/// The part of a row to which a cell belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Static,
    /// `g` and `h`, which always agree.
    Together,
    Entry,
    Element,
    Item,
}

/// A cell: key, row (0 for static), part, and the key of the entry or the element.
pub(crate) type Cell = (i32, i32, Part, i64);

/// The values seen of each cell.
type Shown = BTreeMap<Cell, i64>;

pub(super) async fn ask_shapes(world: &Rc<World>, server: &Server) {
    let k = i32::try_from(world.below(SHAPE_KEYS.unsigned_abs().into())).unwrap();
    let c = i32::try_from(world.below(SHAPE_ROWS.unsigned_abs().into())).unwrap();
    match world.below(24) {
        0..2 => set_static(world, server, k).await,
        2..6 => grow(world, server, k, c).await,
        6..9 => shrink(world, server, k, c).await,
        9..11 => set_map(world, server, k, c).await,
        11..16 => write_many(world, server, k).await,
        16 => delete_partition(world, server, k).await,
        17..21 => read(world, server, world.chance(700).then_some(k), Consistency::Quorum).await,
        _ => read(world, server, world.chance(700).then_some(k), Consistency::One).await,
    }
}

/// Writes, with the effects on cells: `(cell, whether it deletes)`.
async fn write(world: &Rc<World>, server: &Server, text: &str, number: i64, cells: &[(Cell, bool)]) {
    for (cell, deletes) in cells {
        let mut shapes = world.shapes.borrow_mut();
        shapes.entry(*cell).or_default().begin(number, *deletes);
    }
    let in_work = world.enter("write");
    // The list is read before an item is removed; at ONE a replica that lags could serve that read.
    let params = QueryParams {
        consistency: Consistency::Quorum,
        ..at(number)
    };
    let outcome = server.ask(world, text, params).await;
    drop(in_work);
    // Rows of a batch that one store refuses are in the batch log of another.
    if let Outcome::Refused(refused) = &outcome
        && text.starts_with("BEGIN")
        && refused.contains("takes no writes since")
    {
        return;
    }
    for (cell, _) in cells {
        resolve(world.shapes.borrow_mut().get_mut(cell), number, &outcome);
    }
}

async fn set_static(world: &Rc<World>, server: &Server, k: i32) {
    let number = world.number();
    let cell = (k, 0, Part::Static, 0);
    if world.chance(200) {
        let text = format!("DELETE s FROM z WHERE k = {k}");
        return write(world, server, &text, number, &[(cell, true)]).await;
    }
    let text = format!("UPDATE z SET s = {number} WHERE k = {k}");
    write(world, server, &text, number, &[(cell, false)]).await;
}

/// The elements of a set or list that may exist.
fn elements(world: &World, k: i32, c: i32, part: Part) -> Vec<i64> {
    let shapes = world.shapes.borrow();
    let of = shapes.range((k, c, part, i64::MIN)..=(k, c, part, i64::MAX));
    let may_be_there = of.filter(|(_, versions)| !versions.is_deletion(versions.floor()));
    may_be_there.map(|(cell, _)| cell.3).collect()
}

/// Adds to a collection; a collection that has grown too large is emptied.
async fn grow(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let number = world.number();
    let place = format!("WHERE k = {k} AND c = {c}");
    let (name, part) = if world.chance(500) {
        ("e", Part::Element)
    } else {
        ("l", Part::Item)
    };
    let there = elements(world, k, c, part);
    if there.len() >= ELEMENTS_MAX {
        let cells: Vec<_> = there.into_iter().map(|one| ((k, c, part, one), true)).collect();
        let text = format!("DELETE {name} FROM z {place}");
        return write(world, server, &text, number, &cells).await;
    }
    let sets = match part {
        Part::Element => format!("e = e + {{{number}}}"),
        _ if world.chance(500) => format!("l = [{number}] + l"),
        _ => format!("l = l + [{number}]"),
    };
    let cell = (k, c, part, number);
    write(
        world,
        server,
        &format!("UPDATE z SET {sets} {place}"),
        number,
        &[(cell, false)],
    )
    .await;
    world.mark(Mark::CollectionGrown);
}

/// Removes an element or an entry.
async fn shrink(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let place = format!("WHERE k = {k} AND c = {c}");
    let part = [Part::Element, Part::Item, Part::Entry][usize::try_from(world.below(3)).unwrap()];
    if part == Part::Entry {
        let number = world.number();
        let entry = world.random.borrow_mut().i64(0..ENTRIES);
        let text = format!("DELETE m[{entry}] FROM z {place}");
        return write(world, server, &text, number, &[((k, c, part, entry), true)]).await;
    }
    // To remove an item the list is read first: only elements that were certain then are certainly removed.
    let certain: Vec<i64> = {
        let there = elements(world, k, c, part);
        let shapes = world.shapes.borrow();
        let is_certain = |one: &i64| shapes.get(&(k, c, part, *one)).is_some_and(|of| of.floor() == *one);
        there.into_iter().filter(is_certain).collect()
    };
    let Some(one) = world.random.borrow_mut().choice(certain) else {
        return;
    };
    let number = world.number();
    let sets = match part {
        Part::Element => format!("e = e - {{{one}}}"),
        _ => format!("l = l - [{one}]"),
    };
    let cell = (k, c, part, one);
    write(
        world,
        server,
        &format!("UPDATE z SET {sets} {place}"),
        number,
        &[(cell, true)],
    )
    .await;
    world.mark(Mark::CollectionShrunk);
}

/// Overwrites a map, or one entry of it.
async fn set_map(world: &Rc<World>, server: &Server, k: i32, c: i32) {
    let number = world.number();
    let place = format!("WHERE k = {k} AND c = {c}");
    let entry = world.random.borrow_mut().i64(0..ENTRIES);
    if world.chance(500) {
        let text = format!("UPDATE z SET m[{entry}] = {number} {place}");
        return write(world, server, &text, number, &[((k, c, Part::Entry, entry), false)]).await;
    }
    let text = format!("UPDATE z SET m = {{{entry}: {number}}} {place}");
    let cells: Vec<_> = (0..ENTRIES).map(|of| ((k, c, Part::Entry, of), of != entry)).collect();
    write(world, server, &text, number, &cells).await;
}

/// A batch over all rows of one partition or two: columns, a static one, an entry of a map, an element, an item.
async fn write_many(world: &Rc<World>, server: &Server, k: i32) {
    let number = world.number();
    let other = (k + 1) % SHAPE_KEYS;
    let keys = if world.chance(500) { vec![k] } else { vec![k, other] };
    let mut texts = Vec::new();
    let mut cells = Vec::new();
    for k in keys {
        for c in 0..SHAPE_ROWS {
            texts.push(format!(
                "UPDATE z SET g = {number}, h = {number} WHERE k = {k} AND c = {c}"
            ));
            cells.push(((k, c, Part::Together, 0), false));
        }
        let c = i32::try_from(world.below(SHAPE_ROWS.unsigned_abs().into())).unwrap();
        match world.below(4) {
            0 => {
                texts.push(format!("UPDATE z SET s = {number} WHERE k = {k}"));
                cells.push(((k, 0, Part::Static, 0), false));
            }
            1 if elements(world, k, c, Part::Item).len() < ELEMENTS_MAX => {
                texts.push(format!("UPDATE z SET l = l + [{number}] WHERE k = {k} AND c = {c}"));
                cells.push(((k, c, Part::Item, number), false));
            }
            2 => {
                texts.push(format!("UPDATE z SET m[1] = {number} WHERE k = {k} AND c = {c}"));
                cells.push(((k, c, Part::Entry, 1), false));
            }
            _ => {}
        }
    }
    let text = format!("BEGIN BATCH {}; APPLY BATCH", texts.join("; "));
    write(world, server, &text, number, &cells).await;
    world.mark(Mark::BatchOfManyRows);
}

async fn delete_partition(world: &Rc<World>, server: &Server, k: i32) {
    let number = world.number();
    let mut cells = vec![(k, 0, Part::Static, 0)];
    for c in 0..SHAPE_ROWS {
        cells.push((k, c, Part::Together, 0));
        cells.extend((0..ENTRIES).map(|entry| (k, c, Part::Entry, entry)));
        for part in [Part::Element, Part::Item] {
            cells.extend(elements(world, k, c, part).into_iter().map(|one| (k, c, part, one)));
        }
    }
    let cells: Vec<_> = cells.into_iter().map(|cell| (cell, true)).collect();
    let text = format!("DELETE FROM z WHERE k = {k}");
    write(world, server, &text, number, &cells).await;
}

fn shape_floors(world: &World) -> BTreeMap<Cell, i64> {
    let shapes = world.shapes.borrow();
    shapes.iter().map(|(cell, of)| (*cell, of.floor())).collect()
}

async fn read(world: &Rc<World>, server: &Server, key: Option<i32>, consistency: Consistency) {
    let floors = match consistency {
        Consistency::One => BTreeMap::new(),
        _ => shape_floors(world),
    };
    let text = key.map_or_else(|| ALL.to_owned(), |k| format!("{ALL} WHERE k = {k}"));
    let params = QueryParams {
        consistency,
        ..QueryParams::default()
    };
    let _in_work = world.enter("read");
    if let Outcome::Done(lines, _) = server.ask(world, &text, params).await {
        check_read(world, &floors, &lines, |k| key.is_none_or(|key| key == k));
    }
}

/// The values in the lines, each cell once.
fn shown(world: &World, lines: &[Line]) -> Shown {
    let mut shown = Shown::new();
    for line in lines {
        let [Some(k), c, s, g, h, entries @ ..] = line.as_slice() else {
            world.fail("z", format!("a row is not whole: {line:?}"));
            continue;
        };
        let k = i32::try_from(*k).unwrap();
        if let Some(s) = s
            && shown
                .insert((k, 0, Part::Static, 0), *s)
                .is_some_and(|before| before != *s)
        {
            world.fail("z", format!("the rows of {k} have several static values: {line:?}"));
        }
        let Some(c) = c.map(|c| i32::try_from(c).unwrap()) else {
            continue;
        };
        if g != h {
            world.fail("z", format!("half of row ({k}, {c}) is seen: {line:?}"));
        }
        let mut cells: Vec<(Cell, i64)> = g.iter().map(|g| ((k, c, Part::Together, 0), *g)).collect();
        let (entries, rest) = entries.split_at(3);
        for (entry, value) in (0..).zip(entries) {
            cells.extend(value.map(|value| ((k, c, Part::Entry, entry), value)));
        }
        let mut rest = rest.iter();
        for part in [Part::Element, Part::Item] {
            let count = rest.next().copied().flatten().unwrap_or_default();
            let of = rest.by_ref().take(usize::try_from(count).unwrap());
            cells.extend(of.map(|one| ((k, c, part, one.unwrap()), one.unwrap())));
        }
        for (cell, value) in cells {
            if shown.insert(cell, value).is_some() {
                world.fail("z", format!("{cell:?} stands twice: {line:?}"));
            }
        }
    }
    shown
}

/// Checks a read of these keys of `z`. Returns the values seen.
fn check_read(world: &World, floors: &BTreeMap<Cell, i64>, lines: &[Line], covers: impl Fn(i32) -> bool) -> Shown {
    let seen = shown(world, lines);
    for k in (0..SHAPE_KEYS).filter(|k| covers(*k)) {
        let of_row = |c| seen.get(&(k, c, Part::Together, 0));
        if (1..SHAPE_ROWS).any(|c| of_row(c) != of_row(0)) {
            world.fail("z", format!("half of a batch is seen in partition {k}: {lines:?}"));
        }
    }
    let mut shapes = world.shapes.borrow_mut();
    for cell in seen.keys().filter(|cell| !covers(cell.0)) {
        world.fail("z", format!("{cell:?} was not asked for"));
    }
    for cell in seen.keys() {
        if !shapes.contains_key(cell) {
            world.fail("z", format!("{cell:?} was never asked for"));
        }
    }
    let known: Vec<Cell> = shapes.keys().filter(|cell| covers(cell.0)).copied().collect();
    for cell in known {
        let floor = floors.get(&cell).copied().unwrap_or_default();
        if let Some(versions) = shapes.get_mut(&cell) {
            let checked = versions.check(floor, seen.get(&cell).copied());
            world.check("z", checked.map_err(|what| format!("{cell:?}: {what}")));
        }
    }
    seen
}

/// Checks `z` while no operation is in progress.
pub(super) async fn check_shapes(world: &Rc<World>, server: &Server, is_at_rest: bool) {
    let floors = shape_floors(world);
    let params = QueryParams {
        consistency: Consistency::Quorum,
        ..QueryParams::default()
    };
    let Outcome::Done(lines, _) = server.ask(world, ALL, params).await else {
        return world.fail("z", "cannot be read at rest".to_owned());
    };
    let seen = check_read(world, &floors, &lines, |_| true);
    if is_at_rest {
        for (cell, versions) in world.shapes.borrow_mut().iter_mut() {
            versions.rest(seen.get(cell).copied());
        }
    }
}
