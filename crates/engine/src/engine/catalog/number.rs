//! Which tables have a feed, and the numbers of new ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::index::change::renumbered;
use helenus_schema::profile::Profile;
use helenus_schema::schema::{FullFidelity, Keyspace, Schema, StorageId, Table, system, table_changes};

/// The schema with new numbers for changed indexes ([`renumbered`]), a number for each table that begins to have a
/// feed, and none for each that no longer has one.
///
/// A table has a feed if `cdc` is on or if it has a change log, and in the profile `cosmos` if it is created there.
/// Switching `cdc` off ends the feed of a table without a change log. The end of a change log ends the feed of a table
/// without `cdc`, but for the profile `cosmos`.
pub(crate) fn numbered(before: &Schema, after: Schema, profile: Profile, next_id: &mut StorageId) -> Schema {
    let after = renumbered(before, &after, next_id).unwrap_or(after);
    let mut changed = after.clone();
    for (name, keyspace) in after.keyspaces.iter().filter(|(name, _)| !system::is_name(name)) {
        let was = before.keyspaces.get(name);
        if was.is_some_and(|was| Arc::ptr_eq(was, keyspace)) {
            continue;
        }
        let mut next = Keyspace::clone(keyspace);
        let mut is_changed = false;
        for (was, table) in table_changes(was.map(AsRef::as_ref), Some(keyspace)) {
            let Some(table) = table else { continue };
            let was = was.filter(|was| was.id == table.id);
            let feed = match (
                wants(was.map(AsRef::as_ref), table, profile),
                was.and_then(|was| was.feed()),
            ) {
                (false, _) => 0,
                (true, Some(_)) => table.options.feed,
                (true, None) => {
                    *next_id += 1;
                    *next_id - 1
                }
            };
            let full_fidelity = table
                .options
                .full_fidelity
                .map(|of| match was.and_then(|was| was.log()) {
                    Some(log) => FullFidelity { log, ..of },
                    None => {
                        *next_id += 1;
                        FullFidelity {
                            log: *next_id - 1,
                            ..of
                        }
                    }
                });
            if feed != table.options.feed || full_fidelity != table.options.full_fidelity {
                let mut table = Table::clone(table);
                table.options.feed = feed;
                table.options.full_fidelity = full_fidelity;
                next.tables.insert(table.name.clone(), Arc::new(table));
                is_changed = true;
            }
        }
        if is_changed {
            changed = changed.with_keyspace(next);
        }
    }
    changed
}

/// The change logs that a change of the schema begins and ends.
pub(crate) struct ChangedLogs {
    /// Begun with their tables: no row is written before the log.
    pub(crate) of_new_tables: BTreeSet<StorageId>,
    /// Begun for tables that were there.
    pub(crate) begun: BTreeSet<StorageId>,
    pub(crate) ended: BTreeSet<StorageId>,
}

impl ChangedLogs {
    pub(crate) fn between(before: &Schema, after: &Schema) -> Self {
        let (mut old, mut new, mut of_new_tables) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let names = before.keyspaces.keys().chain(after.keyspaces.keys());
        for name in names.filter(|name| !system::is_name(name)) {
            let (was, is) = (before.keyspaces.get(name), after.keyspaces.get(name));
            if was.zip(is).is_some_and(|(was, is)| Arc::ptr_eq(was, is)) {
                continue;
            }
            for (was, is) in table_changes(was.map(AsRef::as_ref), is.map(AsRef::as_ref)) {
                let log = is.and_then(|table| table.log());
                if was.map(|was| was.id) == is.map(|is| is.id) {
                    new.extend(log);
                } else {
                    of_new_tables.extend(log);
                }
                old.extend(was.and_then(|table| table.log()));
            }
        }
        Self {
            of_new_tables: &of_new_tables - &old,
            begun: &new - &old,
            ended: &(&old - &new) - &of_new_tables,
        }
    }
}

/// Whether a table that was this one is to have a feed.
fn wants(was: Option<&Table>, table: &Table, profile: Profile) -> bool {
    match was {
        _ if table.is_virtual => false,
        _ if table.options.cdc || table.options.full_fidelity.is_some() => true,
        None => profile == Profile::Cosmos,
        Some(was) if was.options.full_fidelity.is_some() => profile == Profile::Cosmos,
        Some(was) => was.feed().is_some() && !was.options.cdc,
    }
}
