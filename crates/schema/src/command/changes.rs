//! The events of a schema change: one for each object that differs.
//!
//! The order is Cassandra's (`SchemaChangeNotifier`): in a keyspace first dropped objects, then created, then altered
//! ones. Dependents precede the objects that they depend on when dropped, and follow them when created. Objects of one
//! kind are ordered by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ChangeKind, ChangeTarget, SchemaChange};
use crate::schema::{Keyspace, Schema, UserAggregate, UserFunction, table_changes, typename};

/// The changes between two schemas, in the order of their events. The cost depends on the number of changes, not on the
/// size of the schema.
#[must_use]
pub fn changes_between(before: &Schema, after: &Schema) -> Vec<SchemaChange> {
    let mut changes = Vec::new();
    for (name, was) in &before.keyspaces {
        if !after.keyspaces.contains_key(name) {
            Announcer::new(&mut changes, was).contents(was, &emptied(was));
            Announcer::new(&mut changes, was).add(ChangeKind::Dropped, ChangeTarget::Keyspace, "");
        }
    }
    for (name, is) in &after.keyspaces {
        match before.keyspaces.get(name) {
            Some(was) if Arc::ptr_eq(was, is) => {}
            Some(was) => Announcer::new(&mut changes, is).contents(was, is),
            None => {
                Announcer::new(&mut changes, is).add(ChangeKind::Created, ChangeTarget::Keyspace, "");
                Announcer::new(&mut changes, is).contents(&emptied(is), is);
            }
        }
    }
    changes
}

/// The same keyspace without objects.
fn emptied(keyspace: &Keyspace) -> Keyspace {
    Keyspace {
        throughput: keyspace.throughput,
        ..Keyspace::new(&keyspace.name, keyspace.replication.clone(), keyspace.durable_writes)
    }
}

/// Differences of the objects of one kind: names, and the CQL types of arguments.
#[derive(Default)]
struct Differing {
    dropped: Vec<(String, Vec<String>)>,
    created: Vec<(String, Vec<String>)>,
    altered: Vec<(String, Vec<String>)>,
}

impl Differing {
    fn note(&mut self, was: bool, is: bool, name: &str, arguments: Vec<String>) {
        let list = match (was, is) {
            (true, false) => &mut self.dropped,
            (false, _) => &mut self.created,
            (true, true) => &mut self.altered,
        };
        list.push((name.to_owned(), arguments));
    }

    fn of_maps<T>(
        was: &BTreeMap<String, Arc<T>>,
        is: &BTreeMap<String, Arc<T>>,
        same: impl Fn(&T, &T) -> bool,
    ) -> Self {
        let mut differing = Self::default();
        for name in was.keys().filter(|name| !is.contains_key(*name)) {
            differing.note(true, false, name, Vec::new());
        }
        for (name, new) in is {
            match was.get(name) {
                Some(old) if Arc::ptr_eq(old, new) || same(old, new) => {}
                old => differing.note(old.is_some(), true, name, Vec::new()),
            }
        }
        differing
    }

    /// In the order of the lists.
    fn of_lists<T: PartialEq>(was: &[Arc<T>], is: &[Arc<T>], key: impl Fn(&T) -> (String, Vec<String>)) -> Self {
        let keyed = |item: &Arc<T>| (key(item), Arc::clone(item));
        let [was, is]: [Vec<_>; 2] = [was, is].map(|list| list.iter().map(keyed).collect());
        let [old_ones, new_ones]: [BTreeMap<_, _>; 2] = [&was, &is].map(|list| list.iter().cloned().collect());
        let mut differing = Self::default();
        for ((name, arguments), _) in was.iter().filter(|(key, _)| !new_ones.contains_key(key)) {
            differing.note(true, false, name, arguments.clone());
        }
        for (key, new) in &is {
            match old_ones.get(key) {
                Some(old) if old == new => {}
                old => differing.note(old.is_some(), true, &key.0, key.1.clone()),
            }
        }
        differing
    }

    fn of_tables(was: &Keyspace, is: &Keyspace) -> Self {
        let mut differing = Self::default();
        for (was, is) in table_changes(Some(was), Some(is)) {
            if let Some(table) = is.or(was) {
                differing.note(was.is_some(), is.is_some(), &table.name, Vec::new());
            }
        }
        differing
    }
}

/// Collects the changes of one keyspace.
struct Announcer<'a> {
    changes: &'a mut Vec<SchemaChange>,
    keyspace: &'a str,
}

impl<'a> Announcer<'a> {
    fn new(changes: &'a mut Vec<SchemaChange>, keyspace: &'a Keyspace) -> Self {
        Self {
            changes,
            keyspace: &keyspace.name,
        }
    }

    fn add(&mut self, kind: ChangeKind, target: ChangeTarget, name: &str) {
        self.all(kind, target, &[(name.to_owned(), Vec::new())]);
    }

    fn all(&mut self, kind: ChangeKind, target: ChangeTarget, names: &[(String, Vec<String>)]) {
        let keyspace = self.keyspace;
        self.changes.extend(names.iter().map(|(name, arguments)| SchemaChange {
            kind,
            target,
            keyspace: keyspace.to_owned(),
            name: name.clone(),
            arguments: arguments.clone(),
        }));
    }

    fn contents(&mut self, was: &Keyspace, is: &Keyspace) {
        let types = Differing::of_maps(&was.types, &is.types, |old, new| old == new);
        let tables = Differing::of_tables(was, is);
        let views = Differing::of_maps(&was.views, &is.views, |old, new| {
            old.table == new.table && old.where_clause == new.where_clause
        });
        let functions = Differing::of_lists(&was.functions, &is.functions, |function: &UserFunction| {
            let types = function.argument_types().map(typename::argument_name);
            (function.name.clone(), types.collect())
        });
        let aggregates = Differing::of_lists(&was.aggregates, &is.aggregates, |aggregate: &UserAggregate| {
            let types = aggregate.arguments.iter().map(typename::argument_name);
            (aggregate.name.clone(), types.collect())
        });
        let downwards = [
            (ChangeTarget::Aggregate, &aggregates),
            (ChangeTarget::Function, &functions),
            (ChangeTarget::Table, &views),
            (ChangeTarget::Table, &tables),
            (ChangeTarget::Type, &types),
        ];
        let upwards = [
            (ChangeTarget::Type, &types),
            (ChangeTarget::Table, &tables),
            (ChangeTarget::Table, &views),
            (ChangeTarget::Function, &functions),
            (ChangeTarget::Aggregate, &aggregates),
        ];
        for (target, differing) in downwards {
            self.all(ChangeKind::Dropped, target, &differing.dropped);
        }
        for (target, differing) in upwards {
            self.all(ChangeKind::Created, target, &differing.created);
        }
        let options = |keyspace: &Keyspace| {
            let replication = keyspace.replication.clone();
            (replication, keyspace.durable_writes, keyspace.throughput)
        };
        if options(was) != options(is) {
            self.add(ChangeKind::Updated, ChangeTarget::Keyspace, "");
        }
        for (target, differing) in upwards {
            self.all(ChangeKind::Updated, target, &differing.altered);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::schema::{StorageId, system};
    use helenus_types::types::UserType;

    fn keyspace(name: &str) -> Keyspace {
        Keyspace::new(name, BTreeMap::new(), true)
    }

    fn table(keyspace: &mut Keyspace, name: &str, id: StorageId) {
        let base = system::base();
        let local = base.table("system", "local").unwrap();
        let table = crate::schema::Table {
            keyspace: keyspace.name.clone(),
            name: name.to_owned(),
            storage_id: id,
            id: Uuid::from_u128(u128::from(id)),
            ..crate::schema::Table::clone(local)
        };
        keyspace.tables.insert(name.to_owned(), Arc::new(table));
    }

    fn user_type(keyspace: &mut Keyspace, name: &str, fields: usize) {
        let field = |number| {
            (
                format!("f{number}"),
                helenus_types::types::CqlType::Native(helenus_types::types::Native::Int),
            )
        };
        let user_type = UserType {
            keyspace: keyspace.name.clone(),
            name: name.to_owned(),
            fields: (0..fields).map(field).collect(),
        };
        keyspace.types.insert(name.to_owned(), Arc::new(user_type));
    }

    fn events(before: &Schema, after: &Schema) -> Vec<String> {
        let changes = changes_between(before, after);
        let line = |change: &SchemaChange| format!("{:?} {:?} {}", change.kind, change.target, change.name);
        changes.iter().map(line).collect()
    }

    #[test]
    fn what_a_keyspace_holds_goes_before_it_and_comes_after_it() {
        let mut whole = keyspace("ks");
        user_type(&mut whole, "ty", 1);
        table(&mut whole, "b", 2);
        table(&mut whole, "a", 1);
        let empty = Schema::default();
        let full = empty.with_keyspace(whole);
        let dropped = [
            "Dropped Table a",
            "Dropped Table b",
            "Dropped Type ty",
            "Dropped Keyspace ",
        ];
        assert_eq!(events(&full, &empty), dropped);
        let created = [
            "Created Keyspace ",
            "Created Type ty",
            "Created Table a",
            "Created Table b",
        ];
        assert_eq!(events(&empty, &full), created);
        assert!(events(&full, &full.clone()).is_empty());
    }

    #[test]
    fn what_differs_is_altered_and_nothing_else() {
        let mut was = keyspace("ks");
        user_type(&mut was, "ty", 1);
        table(&mut was, "a", 1);
        table(&mut was, "b", 2);
        let mut is = was.clone();
        user_type(&mut is, "ty", 2);
        Arc::make_mut(is.tables.get_mut("b").unwrap()).next_column_id += 1;
        is.durable_writes = false;
        let (before, after) = (
            Schema::default().with_keyspace(was),
            Schema::default().with_keyspace(is),
        );
        let altered = ["Updated Keyspace ", "Updated Type ty", "Updated Table b"];
        assert_eq!(events(&before, &after), altered);
    }
}
