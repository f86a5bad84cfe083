//! Selects the tables to restore and their new names. Pure: uses the backup's schema and the current one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::BackupError;
use helenus_schema::schema::record::{self, rename};
use helenus_schema::schema::{Keyspace, Schema, StorageId, Table, View, names, system};
use helenus_storage::backup::{Manifest, TableEntry};
use helenus_types::types::{CqlType, UserType};

/// A record of the schema.
type KeyAndValue = (Vec<u8>, Vec<u8>);

/// The part of a backup to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// All of it.
    All,
    /// One keyspace.
    Keyspace {
        /// Its name in the backup.
        keyspace: String,
        /// Its name from now on.
        to: String,
    },
    /// One table.
    Table {
        /// Its keyspace and name in the backup.
        from: (String, String),
        /// Its target keyspace, which must exist, and its new name.
        to: (String, String),
    },
}

impl What {
    /// Refuses names that no statement accepts.
    fn check_names(&self) -> Result<(), BackupError> {
        let (keyspace, table) = match self {
            Self::All => return Ok(()),
            Self::Keyspace { to, .. } => (to, None),
            Self::Table { to, .. } => (&to.0, Some(&to.1)),
        };
        if system::is_name(keyspace) {
            return Err(BackupError::NotByItself {
                name: keyspace.clone(),
                why: "nothing is restored into a system keyspace: give another name (--as)",
            });
        }
        let check = |what, name: &str, characters_max: usize| {
            if names::has_name_characters(name) && name.len() <= characters_max {
                return Ok(());
            }
            Err(BackupError::Name {
                what,
                name: name.to_owned(),
                characters_max,
            })
        };
        check("a keyspace", keyspace, names::KEYSPACE_NAME_CHARACTERS_MAX)?;
        table.map_or(Ok(()), |table| {
            check("a table", table, names::TABLE_NAME_CHARACTERS_MAX)
        })
    }
}

/// The tables, indexes and names of a restore.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    what: What,
    /// The restored keyspaces, under their new names.
    keyspaces: Vec<Keyspace>,
    /// Tables and views of these keyspaces that have rows in the backup, each with its index in the manifest.
    pub(super) tables: Vec<(usize, StorageId)>,
    /// How many numbers the tables and indexes use.
    pub(super) numbers: u32,
}

impl Plan {
    /// Reads the schema of a backup and numbers its tables and indexes from 0.
    pub(super) fn new(manifest: &Manifest, what: &What) -> Result<Self, BackupError> {
        what.check_names()?;
        let mut records = Vec::new();
        for entry in &manifest.records {
            let mut value = vec![entry.format];
            value.extend_from_slice(entry.record.as_bytes());
            records.extend(what.record(entry.key.as_bytes(), value)?);
        }
        let schema = record::load(records)?;
        let keyspaces = schema.keyspaces.values();
        let keyspaces = keyspaces.filter(|keyspace| match what {
            What::All => !system::is_name(&keyspace.name) || !is_as_made(keyspace),
            What::Keyspace { to, .. } => keyspace.name == *to,
            What::Table { to, .. } => keyspace.name == to.0,
        });
        let mut plan = Self {
            what: what.clone(),
            keyspaces: keyspaces.map(|keyspace| Keyspace::clone(keyspace)).collect(),
            tables: Vec::new(),
            numbers: 0,
        };
        if let Some(absent) = plan.absent() {
            return Err(absent);
        }
        for keyspace in plan.keyspaces.iter_mut().filter(|one| !system::is_name(&one.name)) {
            let mut number = |table: &Arc<Table>| {
                let table = Arc::new(numbered(table, &mut plan.numbers));
                let name = what.name_before(&table.keyspace, &table.name);
                let place = manifest.tables.iter().position(|entry| is_of(entry, &name));
                plan.tables.extend(place.map(|place| (place, table.storage_id)));
                table
            };
            let tables: Vec<_> = keyspace.tables.values().map(&mut number).collect();
            keyspace.tables = tables.into_iter().map(|table| (table.name.clone(), table)).collect();
            let views = keyspace.views.values();
            let views = views.map(|view| View {
                table: number(&view.table),
                ..View::clone(view)
            });
            let views: Vec<View> = views.collect();
            keyspace.views = views
                .into_iter()
                .map(|view| (view.table.name.clone(), Arc::new(view)))
                .collect();
        }
        Ok(plan)
    }

    fn absent(&self) -> Option<BackupError> {
        let (what, name) = match &self.what {
            What::All => return None,
            What::Keyspace { keyspace, .. } if self.keyspaces.is_empty() => ("keyspace", keyspace.clone()),
            What::Table { from, to } if !self.keyspaces.iter().any(|one| one.tables.contains_key(&to.1)) => {
                ("table", format!("{}.{}", from.0, from.1))
            }
            What::Keyspace { .. } | What::Table { .. } => return None,
        };
        Some(BackupError::Absent {
            what,
            name,
            place: "backup",
        })
    }

    /// The schema with the restored tables, whose numbers begin with the first of these.
    pub(super) fn next(
        &self,
        before: &Schema,
        numbers: &Range<StorageId>,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<Schema, BackupError> {
        let mut next = before.clone();
        for keyspace in &self.keyspaces {
            let keyspace = keyspace.clone();
            let keyspace = match (&self.what, before.keyspaces.get(&keyspace.name)) {
                (What::Table { to, .. }, there) => self.with_table(there, keyspace, to, numbers.start)?,
                (_, Some(there)) if system::is_name(&keyspace.name) => Keyspace {
                    replication: keyspace.replication,
                    durable_writes: keyspace.durable_writes,
                    ..Keyspace::clone(there)
                },
                (_, Some(there)) => {
                    return Err(BackupError::Exists {
                        what: "the keyspace",
                        name: there.name.clone(),
                    });
                }
                (_, None) => moved(keyspace, numbers.start),
            };
            next = next.with_keyspace(with_own_ids(keyspace, before, new_id));
        }
        Ok(next)
    }

    /// An existing keyspace with the restored table, and the types that it needs.
    fn with_table(
        &self,
        there: Option<&Arc<Keyspace>>,
        restored: Keyspace,
        (keyspace, name): &(String, String),
        first: StorageId,
    ) -> Result<Keyspace, BackupError> {
        let there = there.filter(|_| !system::is_name(keyspace));
        let there = there.ok_or_else(|| BackupError::Absent {
            what: "keyspace",
            name: keyspace.clone(),
            place: "database",
        })?;
        if there.table_or_view(name).is_some() {
            return Err(BackupError::Exists {
                what: "the table",
                name: format!("{keyspace}.{name}"),
            });
        }
        let (What::Table { from, .. }, Some(table)) = (&self.what, moved(restored, first).tables.remove(name)) else {
            return Err(BackupError::Absent {
                what: "table",
                name: name.clone(),
                place: "backup",
            });
        };
        let mut next = Keyspace::clone(there);
        let mut needed = BTreeMap::new();
        for column in &table.columns {
            user_types(&column.ty, &mut needed);
        }
        for (name, of_table) in needed {
            match next.types.get(&name) {
                Some(known) if *known != of_table => {
                    return Err(BackupError::TypeDiffers {
                        keyspace: keyspace.clone(),
                        name,
                    });
                }
                Some(_) => {}
                None => {
                    next.types.insert(name, of_table);
                }
            }
        }
        let mut table = Table::clone(&table);
        let taken: BTreeSet<String> = next
            .tables
            .values()
            .flat_map(|table| table.indexes.keys())
            .cloned()
            .collect();
        let indexes = std::mem::take(&mut table.indexes).into_values();
        table.indexes = indexes
            .map(|mut index| {
                index.name = free_name(&taken, &index.name, &from.1, &table.name);
                (index.name.clone(), index)
            })
            .collect();
        next.tables.insert(table.name.clone(), Arc::new(table));
        Ok(next)
    }

    /// The splits of the tables, once their numbers are taken.
    pub(super) fn splits(&self, manifest: &Manifest, first: StorageId) -> Vec<(StorageId, Vec<i64>)> {
        let tables = self.tables.iter();
        let tables = tables.filter_map(|(place, id)| Some((first + id, manifest.tables.get(*place)?.splits.clone())));
        tables.collect()
    }
}

impl What {
    /// A record under its new name. `None` means that it is not restored.
    fn record(&self, key: &[u8], value: Vec<u8>) -> Result<Option<KeyAndValue>, BackupError> {
        let Some((kind, of, name)) = rename::place(key) else {
            return Ok(Some((key.to_vec(), value)));
        };
        Ok(match self {
            Self::All => Some((key.to_vec(), value)),
            Self::Keyspace { keyspace, to } if of == keyspace => Some(rename::renamed(key, &value, to, None)?),
            Self::Table { from, to } if of == from.0 && (kind != b't' || name == from.1) => match kind {
                b'k' | b'y' | b't' => Some(rename::renamed(key, &value, &to.0, Some(&to.1))?),
                _ => None,
            },
            Self::Keyspace { .. } | Self::Table { .. } => None,
        })
    }

    /// The keyspace and name that a table has in the backup.
    fn name_before(&self, keyspace: &str, table: &str) -> (String, String) {
        match self {
            Self::All => (keyspace.to_owned(), table.to_owned()),
            Self::Keyspace { keyspace, .. } => (keyspace.clone(), table.to_owned()),
            Self::Table { from, .. } => from.clone(),
        }
    }
}

fn is_of(entry: &TableEntry, (keyspace, table): &(String, String)) -> bool {
    entry.keyspace == *keyspace && entry.table == *table
}

/// Whether a system keyspace has the definition that the server creates.
fn is_as_made(keyspace: &Keyspace) -> bool {
    let base = system::base();
    let made = base.keyspaces.get(&keyspace.name);
    made.is_some_and(|made| made.replication == keyspace.replication && made.durable_writes == keyspace.durable_writes)
}

/// A table with numbers from `next` on.
fn numbered(table: &Table, next: &mut u32) -> Table {
    let mut number = || {
        *next += 1;
        *next - 1
    };
    let mut table = Table {
        storage_id: number(),
        ..table.clone()
    };
    for index in table.indexes.values_mut().filter(|index| index.storage_id != 0) {
        index.storage_id = number();
    }
    if table.options.feed != 0 {
        table.options.feed = number();
    }
    if let Some(of) = &mut table.options.full_fidelity {
        of.log = number();
    }
    table
}

/// A keyspace whose numbers begin with `first` instead of 0.
fn moved(mut keyspace: Keyspace, first: StorageId) -> Keyspace {
    let moved = |table: &Arc<Table>| {
        let mut table = Table::clone(table);
        table.storage_id += first;
        for index in table.indexes.values_mut().filter(|index| index.storage_id != 0) {
            index.storage_id += first;
        }
        if table.options.feed != 0 {
            table.options.feed += first;
        }
        if let Some(of) = &mut table.options.full_fidelity {
            of.log += first;
        }
        Arc::new(table)
    };
    let tables: Vec<_> = keyspace.tables.values().map(moved).collect();
    keyspace.tables = tables.into_iter().map(|table| (table.name.clone(), table)).collect();
    for view in keyspace.views.values_mut() {
        let table = moved(&view.table);
        Arc::make_mut(view).table = table;
    }
    keyspace
}

/// Gives the tables of a keyspace new ids if existing tables use theirs.
fn with_own_ids(mut keyspace: Keyspace, before: &Schema, new_id: &mut dyn FnMut() -> Uuid) -> Keyspace {
    let others = before
        .keyspaces
        .values()
        .flat_map(|of| of.all_tables().map(move |table| (of, table)));
    let taken: BTreeMap<Uuid, (String, String)> = others
        .map(|(of, table)| (table.id, (of.name.clone(), table.name.clone())))
        .collect();
    let mut renewed: BTreeMap<Uuid, Uuid> = BTreeMap::new();
    let mut own = |table: &Arc<Table>| {
        let is_itself = |place: &(String, String)| *place == (table.keyspace.clone(), table.name.clone());
        if taken.get(&table.id).is_none_or(is_itself) {
            return Arc::clone(table);
        }
        let id = new_id();
        renewed.insert(table.id, id);
        Arc::new(Table {
            id,
            ..Table::clone(table)
        })
    };
    let tables: Vec<_> = keyspace.tables.values().map(&mut own).collect();
    let views: Vec<_> = keyspace.views.values().map(|view| own(&view.table)).collect();
    keyspace.tables = tables.into_iter().map(|table| (table.name.clone(), table)).collect();
    for (view, table) in keyspace.views.values_mut().zip(views) {
        let view = Arc::make_mut(view);
        view.table = table;
        view.base_id = renewed.get(&view.base_id).copied().unwrap_or(view.base_id);
    }
    keyspace
}

/// A name for an index of a renamed table that no other index of the keyspace has.
fn free_name(taken: &BTreeSet<String>, index: &str, from: &str, to: &str) -> String {
    let renamed = match index.strip_prefix(from) {
        Some(rest) => format!("{to}{rest}"),
        None => index.to_owned(),
    };
    let mut names = std::iter::once(renamed.clone()).chain((2_u32..).map(|number| format!("{renamed}_{number}")));
    names.find(|name| !taken.contains(name)).unwrap_or(renamed)
}

/// The user-defined types that a type is made of.
fn user_types(ty: &CqlType, found: &mut BTreeMap<String, Arc<UserType>>) {
    match ty {
        CqlType::Native(_) | CqlType::Custom(_) => {}
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Frozen(inner) | CqlType::Vector(inner, _) => {
            user_types(inner, found);
        }
        CqlType::Map(keys, values) => {
            user_types(keys, found);
            user_types(values, found);
        }
        CqlType::Tuple(parts) => parts.iter().for_each(|part| user_types(part, found)),
        CqlType::User(of) => {
            found.insert(of.name.clone(), Arc::clone(of));
            of.fields.iter().for_each(|(_, field)| user_types(field, found));
        }
    }
}
