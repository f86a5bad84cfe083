//! The schema after changed records: what a follower makes of a change that another server has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::load::{build, parts_of};
use super::rename::place;
use super::{Change, RecordError, changes, readable};
use crate::schema::{Keyspace, Schema, system};

/// The schema after these changes, which [`changes`] gave for its writer. What did not change is shared with `before`: so the cost is that
/// of the keyspaces that changed.
///
/// # Errors
/// A record of an unknown format, a damaged record, or a record that names a type without a record.
pub fn applied(before: &Schema, changed: &[Change]) -> Result<Schema, RecordError> {
    let mut of_keyspaces: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in changed {
        let (_, keyspace, _) = place(&change.key).ok_or_else(|| RecordError::Damaged {
            key: readable(&change.key),
            reason: "nothing has such a key".to_owned(),
        })?;
        of_keyspaces.entry(keyspace).or_default().push(change);
    }
    let mut next = before.clone();
    for (name, changed) in of_keyspaces {
        match keyspace_after(before.keyspaces.get(name), name, &changed)? {
            Some(keyspace) => next.keyspaces.insert(name.to_owned(), Arc::new(keyspace)),
            None => next.keyspaces.remove(name),
        };
    }
    Ok(next.versioned(before))
}

/// A keyspace after changes of its records. `None` means that it is gone.
fn keyspace_after(
    before: Option<&Arc<Keyspace>>,
    name: &str,
    changed: &[&Change],
) -> Result<Option<Keyspace>, RecordError> {
    let is_system = system::is_name(name);
    let mut records: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    if let Some(before) = before.filter(|_| !is_system) {
        let mut only = Schema::default();
        only.keyspaces.insert(name.to_owned(), Arc::clone(before));
        let all = changes(&Schema::default(), &only).into_iter();
        records.extend(all.filter_map(|change| Some((change.key, change.value?))));
    }
    for change in changed {
        match &change.value {
            Some(value) => records.insert(change.key.clone(), value.clone()),
            None => records.remove(&change.key),
        };
    }
    let Some(parts) = parts_of(records)?.remove(name) else {
        // A system keyspace without a record is as it was generated.
        let generated = before.filter(|_| is_system).map(|before| {
            let base = system::base().keyspaces.remove(name);
            let mut keyspace = Keyspace::clone(before);
            if let Some(base) = base {
                keyspace.replication = base.replication.clone();
                keyspace.durable_writes = base.durable_writes;
            }
            keyspace
        });
        return Ok(generated);
    };
    let mut keyspace = build(name, parts, before.filter(|_| is_system))?;
    if let Some(before) = before {
        share(before, &mut keyspace);
    }
    Ok(Some(keyspace))
}

/// Takes from the keyspace before what is the same, so that later comparisons skip it.
fn share(before: &Keyspace, keyspace: &mut Keyspace) {
    let names: BTreeSet<String> = keyspace.tables.keys().cloned().collect();
    for name in names {
        let same = before
            .tables
            .get(&name)
            .filter(|was| keyspace.tables.get(&name) == Some(*was));
        if let Some(same) = same {
            keyspace.tables.insert(name, Arc::clone(same));
        }
    }
    for (name, view) in &mut keyspace.views {
        let same = before.views.get(name);
        if let Some(same) = same.filter(|was| super::Object::View(was).encode() == super::Object::View(view).encode()) {
            *view = Arc::clone(same);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::system;

    #[test]
    fn changed_records_make_the_schema_of_which_they_tell() {
        let base = system::base();
        let keyspace = |throughput| {
            let mut keyspace = Keyspace::new("k", BTreeMap::new(), true);
            keyspace.throughput = throughput;
            keyspace
        };
        let mut altered = Keyspace::clone(base.keyspace("system_auth").unwrap());
        altered
            .replication
            .insert("replication_factor".to_owned(), "3".to_owned());
        let with_one = base.with_keyspace(keyspace(None));
        let with_two = with_one.with_keyspace(Keyspace::new("l", BTreeMap::new(), false));
        let steps = [
            with_one.clone(),
            with_two.clone(),
            with_two.with_keyspace(altered.clone()),
            with_one.with_keyspace(altered),
            with_one,
            base.clone(),
        ];
        let mut current = base;
        for next in steps {
            let followed = applied(&current, &changes(&current, &next)).unwrap();
            assert_eq!(followed.version, next.version);
            assert!(changes(&followed, &next).is_empty());
            assert!(followed.keyspaces.keys().eq(next.keyspaces.keys()));
            let is_shared = |of: &Schema, name: &String| {
                let was = current.keyspaces.get(name);
                was.is_some_and(|was| Arc::ptr_eq(was, &of.keyspaces[name]))
            };
            // What the writer shares, the follower shares too.
            let mut shared = next.keyspaces.keys().filter(|name| is_shared(&next, name));
            assert!(shared.all(|name| is_shared(&followed, name)));
            current = next;
        }
        let damaged = [Change {
            key: b"x".to_vec(),
            value: None,
        }];
        assert!(applied(&current, &damaged).is_err());
    }
}
