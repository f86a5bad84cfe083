//! The effect of a change of the schema on indexes: the added ones, the removed ones, and the tables whose rows get
//! other entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Record;
use super::rows::IndexedRows;
use helenus_schema::schema::{IndexTarget, Schema, StorageId, Table, system, table_changes};
use helenus_storage::storage::{Both, Derivation, Derivations, LogOnly};

/// An index, or a change feed, that a change of the schema adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddedIndex {
    /// Its number.
    pub(crate) index: StorageId,
    /// That of its table.
    pub(crate) table: StorageId,
    /// Whether it is a change feed.
    pub(crate) is_feed: bool,
}

/// The difference between two schemas, as far as indexes are concerned.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Tables, by number, whose rows had entries before.
    before: BTreeMap<StorageId, Arc<Table>>,
    /// Tables whose rows have entries now.
    after: BTreeMap<StorageId, Arc<Table>>,
    /// The change feeds of tables that did not exist before.
    new_feeds: BTreeSet<StorageId>,
}

impl Difference {
    /// Compares two schemas, and skips what they share.
    pub(crate) fn between(before: &Schema, after: &Schema) -> Self {
        let mut difference = Self::default();
        let names = before.keyspaces.keys().chain(after.keyspaces.keys());
        for name in names.filter(|name| !system::is_local(name)) {
            let (was, is) = (before.keyspaces.get(name), after.keyspaces.get(name));
            if was.zip(is).is_some_and(|(was, is)| Arc::ptr_eq(was, is)) {
                continue;
            }
            for (old, new) in table_changes(was.map(AsRef::as_ref), is.map(AsRef::as_ref)) {
                let put = |tables: &mut BTreeMap<StorageId, Arc<Table>>, table: Option<&Arc<Table>>| {
                    if let Some(table) = table.filter(|table| !table.indexes.is_empty() || table.feed().is_some()) {
                        tables.insert(table.storage_id, Arc::clone(table));
                    }
                };
                put(&mut difference.before, old);
                put(&mut difference.after, new);
                let is_same = |(old, new): (&Arc<Table>, &Arc<Table>)| old.storage_id == new.storage_id;
                if !old.zip(new).is_some_and(is_same) {
                    difference.new_feeds.extend(new.and_then(|new| new.feed()));
                }
            }
        }
        difference
    }

    /// Whether no table with indexes differs.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// The added indexes.
    pub(crate) fn added(&self) -> Vec<AddedIndex> {
        let before = indexes(&self.before);
        let after = indexes(&self.after).into_iter();
        let is_feed = |index, table| self.after.get(&table).is_some_and(|table| table.feed() == Some(index));
        after
            .filter(|(index, _)| !before.contains_key(index))
            .map(|(index, table)| AddedIndex {
                index,
                table,
                is_feed: is_feed(index, table),
            })
            .collect()
    }

    /// The first record of an added index: `begun`, or that of a complete one for the change feed of a new table, if
    /// new tables are empty.
    pub(crate) fn record(&self, index: StorageId, begun: &Record, are_empty: bool) -> Record {
        if are_empty && self.new_feeds.contains(&index) {
            Record::complete()
        } else {
            begun.clone()
        }
    }

    /// The removed indexes.
    pub(crate) fn removed(&self) -> Vec<StorageId> {
        let after = indexes(&self.after);
        let before = indexes(&self.before).into_keys();
        before.filter(|index| !after.contains_key(index)).collect()
    }

    /// The derivations to register while both schemas may be in use, and those for when only the second one is.
    pub(crate) fn derivations(&self, now: &Derivations) -> (Derivations, Derivations) {
        let (mut meanwhile, mut then) = (now.clone(), now.clone());
        for (id, table) in &self.before {
            let log = table.log();
            if self.after.contains_key(id) {
                continue;
            }
            // Until no request uses the old number of a truncated table (Stores::end_derivation).
            match log.filter(|_| self.after.values().any(|after| after.log() == log)) {
                Some(log) => then.insert(*id, Arc::new(LogOnly(log))),
                None => then.remove(id),
            };
        }
        for (id, table) in &self.after {
            match IndexedRows::of(table) {
                Some(rows) => {
                    let rows: Arc<dyn Derivation> = Arc::new(rows);
                    let both: Arc<dyn Derivation> = match now.get(id) {
                        Some(old) => Arc::new(Both(Arc::clone(old), Arc::clone(&rows))),
                        None => Arc::clone(&rows),
                    };
                    meanwhile.insert(*id, both);
                    then.insert(*id, rows);
                }
                None => {
                    then.remove(id);
                }
            }
        }
        (meanwhile, then)
    }
}

/// Indexes that have entries, and change feeds, each with its table's number.
fn indexes(tables: &BTreeMap<StorageId, Arc<Table>>) -> BTreeMap<StorageId, StorageId> {
    let of_table = |table: &Arc<Table>| {
        let table = Arc::clone(table);
        let targets = targets(&table).map(|target| target.storage_id);
        let derived: Vec<StorageId> = targets.chain(table.feed()).collect();
        derived.into_iter().map(move |index| (index, table.storage_id))
    };
    tables.values().flat_map(of_table).collect()
}

fn targets(table: &Table) -> impl Iterator<Item = IndexTarget> {
    table.indexes.values().filter_map(|index| index.target(table))
}

/// The schema with new numbers for indexes whose encoding has changed under the same number: those must be built again.
/// Adding a field to a type causes this. `None` means that there is none.
pub(crate) fn renumbered(before: &Schema, after: &Schema, next_id: &mut StorageId) -> Option<Schema> {
    let difference = Difference::between(before, after);
    let mut changed: Option<Schema> = None;
    for (id, table) in &difference.after {
        let Some(old) = difference.before.get(id) else {
            continue;
        };
        let old_targets: Vec<IndexTarget> = targets(old).collect();
        let mut next = Table::clone(table);
        for index in next.indexes.values_mut() {
            let Some(target) = index.target(table) else { continue };
            let was = old_targets.iter().find(|was| was.storage_id == target.storage_id);
            let differs = was.is_some_and(|was| {
                let mut was = was.clone();
                was.column = target.column;
                was != target
            });
            if differs {
                index.storage_id = *next_id;
                *next_id += 1;
            }
        }
        if next != **table {
            let schema = changed.as_ref().unwrap_or(after);
            let mut keyspace = helenus_schema::schema::Keyspace::clone(schema.keyspaces.get(&next.keyspace)?);
            keyspace.tables.insert(next.name.clone(), Arc::new(next));
            changed = Some(schema.with_keyspace(keyspace));
        }
    }
    changed
}
