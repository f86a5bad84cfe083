//! What a statement changes of a round's schema, if the servers take it.

use super::schema::Role;
use super::state::{Effect, Round};

/// Carries out the effect of the last statement.
pub(super) fn apply(round: &mut Round, is_taken: bool) {
    let effect = std::mem::take(&mut round.pending);
    if is_taken {
        carry_out(round, effect);
    }
}

fn carry_out(round: &mut Round, effect: Effect) {
    match effect {
        Effect::None => {}
        Effect::Both(effects) => effects.into_iter().for_each(|effect| carry_out(round, effect)),
        Effect::Index(index) => {
            round.table.indexed.push(index.column.clone());
            round.drops.indexes.push(index);
        }
        Effect::NoIndex(name) => {
            let indexes = &mut round.drops.indexes;
            let place = indexes.iter().position(|index| index.name == name);
            if let Some(dropped) = place.map(|place| indexes.remove(place)) {
                let indexed = &mut round.table.indexed;
                let place = indexed.iter().position(|column| *column == dropped.column);
                place.map(|place| indexed.remove(place));
            }
        }
        Effect::View(view) => round.views.push(view),
        Effect::NoView(name) => round.views.retain(|view| view.name != name),
        Effect::Column(column) => {
            for view in &mut round.views {
                if view.made_by.iter().any(|text| text.contains(" AS SELECT * FROM ")) {
                    view.columns.push(column.in_role(Role::Regular));
                }
            }
            round.drops.columns.retain(|dropped| dropped.name != column.name);
            // With IF NOT EXISTS it may have been there.
            if round.table.columns.iter().all(|other| other.name != column.name) {
                round.table.columns.push(column);
            }
        }
        Effect::NoColumn(name) => {
            let columns = &mut round.table.columns;
            let place = columns.iter().position(|column| column.name == name);
            round.drops.columns.extend(place.map(|place| columns.remove(place)));
            round.table.indexed.retain(|indexed| *indexed != name);
        }
        Effect::Renamed(from, to) => {
            let tables = std::iter::once(&mut round.table).chain(&mut round.views);
            for column in tables.flat_map(|table| &mut table.columns) {
                if column.name == from {
                    column.name.clone_from(&to);
                }
            }
        }
        Effect::Function(function) => {
            round.functions.retain(|other| !other.is_same(&function));
            round.functions.push(function);
        }
        Effect::NoFunction(place) => {
            if place < round.functions.len() {
                round.functions.remove(place);
            }
        }
    }
}
