//! Records: each schema object as bytes for the catalog, and back.
//!
//! ```text
//! key   = kind (1 byte: 'k' keyspace, 'y' type, 't' table, 'v' view, 'f' function, 'a' aggregate) · keyspace · 00 · name [ · 00 · argument types ]
//! value = 01 · JSON        (01: the version of this format; fields added later have defaults. 02: a table with a change log)
//! ```
//! Indexes, triggers, masks and dropped columns are part of their table's record. Types are written as CQL writes them.
//! So a type's record must exist wherever its name is used, which holds because a type in use is never dropped.
//!
//! The generated system keyspaces have no records. The exception is a `k` record for one whose replication was altered.
//!
//! The digest of a schema is the sum, mod 2¹²⁸, of the MD5 sums of key and value of all records, without the numbers in
//! the store: TRUNCATE does not change the schema. So the next digest follows from the last one and the changes.

mod applied;
mod load;
pub mod rename;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::applied::applied;
pub use self::load::load;
use super::typename::recorded_name;
use super::{
    Column, ColumnKind, FullFidelity, Index, Keyspace, Schema, Table, TableOptions, Throughput, UserAggregate,
    UserFunction, View, ViewTest, system, table_changes,
};
use helenus_types::types::UserType;

/// The format version that this program writes.
pub const FORMAT: u8 = 1;

/// The format version of a table with a change log. Programs that know only [`FORMAT`] would write no log, so they must
/// not open it.
const FORMAT_WITH_LOG: u8 = 2;

/// Why records cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A later version wrote the record.
    #[error(
        "catalog record '{key}' has format {format}, of which this version knows nothing (it knows {FORMAT_WITH_LOG})"
    )]
    Format {
        /// The record's key, readable.
        key: String,
        /// Its version byte.
        format: u8,
    },
    /// The record is damaged.
    #[error("catalog record '{key}' cannot be read: {reason}")]
    Damaged {
        /// The record's key, readable.
        key: String,
        /// The damage.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct KeyspaceRecord {
    name: String,
    durable_writes: bool,
    replication: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    throughput: Option<Throughput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    throughput_highest: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct TypeRecord {
    keyspace: String,
    name: String,
    fields: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct ColumnRecord {
    id: u32,
    name: String,
    #[serde(rename = "type")]
    ty: String,
    kind: ColumnKind,
    position: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    descending: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_utf16: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mask: Option<(String, Vec<String>)>,
}

#[derive(Serialize, Deserialize)]
struct DroppedRecord {
    column: ColumnRecord,
    dropped_micros: i64,
}

#[derive(Serialize, Deserialize)]
struct TableRecord {
    keyspace: String,
    name: String,
    id: Uuid,
    storage_id: u32,
    columns: Vec<ColumnRecord>,
    #[serde(default)]
    is_counter: bool,
    #[serde(default)]
    compact_storage: bool,
    options: TableOptions,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<Index>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    triggers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<DroppedRecord>,
    next_column_id: u32,
}

#[derive(Serialize, Deserialize)]
struct ViewRecord {
    table: TableRecord,
    base_table: String,
    base_id: Uuid,
    include_all_columns: bool,
    where_clause: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tests: Vec<ViewTest>,
}

#[derive(Serialize, Deserialize)]
struct FunctionRecord {
    keyspace: String,
    name: String,
    arguments: Vec<(String, String)>,
    called_on_null_input: bool,
    returns: String,
    language: String,
    body: String,
}

#[derive(Serialize, Deserialize)]
struct AggregateRecord {
    keyspace: String,
    name: String,
    arguments: Vec<String>,
    state_function: String,
    state_type: String,
    final_function: Option<String>,
    initial_condition: Option<String>,
    returns: String,
}

/// Any object that has a record of its own.
#[derive(Clone, Copy)]
pub enum Object<'a> {
    /// A keyspace, without its tables, types and functions.
    Keyspace(&'a Keyspace),
    /// A user-defined type.
    Type(&'a UserType),
    /// A table.
    Table(&'a Table),
    /// A materialized view.
    View(&'a View),
    /// A function and its keyspace.
    Function(&'a str, &'a UserFunction),
    /// An aggregate and its keyspace.
    Aggregate(&'a str, &'a UserAggregate),
}

/// One change to the catalog's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record's key.
    pub key: Vec<u8>,
    /// The new value; `None` deletes the record.
    pub value: Option<Vec<u8>>,
}

impl Object<'_> {
    /// The record's key.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        let (kind, keyspace, name, arguments) = match self {
            Object::Keyspace(keyspace) => (b'k', keyspace.name.as_str(), "", None),
            Object::Type(ty) => (b'y', ty.keyspace.as_str(), ty.name.as_str(), None),
            Object::Table(table) => (b't', table.keyspace.as_str(), table.name.as_str(), None),
            Object::View(view) => (b'v', view.table.keyspace.as_str(), view.table.name.as_str(), None),
            Object::Function(keyspace, function) => {
                let types: Vec<String> = function.arguments.iter().map(|(_, ty)| recorded_name(ty)).collect();
                (b'f', *keyspace, function.name.as_str(), Some(types.join(",")))
            }
            Object::Aggregate(keyspace, aggregate) => {
                let types: Vec<String> = aggregate.arguments.iter().map(recorded_name).collect();
                (b'a', *keyspace, aggregate.name.as_str(), Some(types.join(",")))
            }
        };
        let mut key = vec![kind];
        key.extend_from_slice(keyspace.as_bytes());
        key.push(0);
        key.extend_from_slice(name.as_bytes());
        if let Some(arguments) = arguments {
            key.push(0);
            key.extend_from_slice(arguments.as_bytes());
        }
        key
    }

    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with(true)
    }

    fn encode_with(&self, storage_ids: bool) -> Vec<u8> {
        let json = match self {
            Object::Keyspace(keyspace) => serde_json::to_vec(&KeyspaceRecord {
                name: keyspace.name.clone(),
                durable_writes: keyspace.durable_writes,
                replication: keyspace.replication.clone(),
                throughput: keyspace.throughput,
                throughput_highest: Some(keyspace.throughput_highest).filter(|highest| *highest > 0),
            }),
            Object::Type(ty) => serde_json::to_vec(&TypeRecord {
                keyspace: ty.keyspace.clone(),
                name: ty.name.clone(),
                fields: ty
                    .fields
                    .iter()
                    .map(|(name, ty)| (name.clone(), recorded_name(ty)))
                    .collect(),
            }),
            Object::Table(table) => serde_json::to_vec(&table_record(table, storage_ids)),
            Object::View(view) => serde_json::to_vec(&ViewRecord {
                table: table_record(&view.table, storage_ids),
                base_table: view.base_table.clone(),
                base_id: view.base_id,
                include_all_columns: view.include_all_columns,
                where_clause: view.where_clause.clone(),
                tests: view.tests.clone(),
            }),
            Object::Function(keyspace, function) => serde_json::to_vec(&FunctionRecord {
                keyspace: (*keyspace).to_owned(),
                name: function.name.clone(),
                arguments: function
                    .arguments
                    .iter()
                    .map(|(name, ty)| (name.clone(), recorded_name(ty)))
                    .collect(),
                called_on_null_input: function.called_on_null_input,
                returns: recorded_name(&function.returns),
                language: function.language.clone(),
                body: function.body.clone(),
            }),
            Object::Aggregate(keyspace, aggregate) => serde_json::to_vec(&AggregateRecord {
                keyspace: (*keyspace).to_owned(),
                name: aggregate.name.clone(),
                arguments: aggregate.arguments.iter().map(recorded_name).collect(),
                state_function: aggregate.state_function.clone(),
                state_type: recorded_name(&aggregate.state_type),
                final_function: aggregate.final_function.clone(),
                initial_condition: aggregate.initial_condition.clone(),
                returns: recorded_name(&aggregate.returns),
            }),
        };
        let mut value = vec![self.format()];
        value.extend_from_slice(&json.expect("plain structs with text keys are always JSON"));
        value
    }

    /// The version of its record.
    fn format(&self) -> u8 {
        match self {
            Object::Table(table) if table.options.full_fidelity.is_some() => FORMAT_WITH_LOG,
            _ => FORMAT,
        }
    }

    fn digest(&self) -> u128 {
        let mut hash = Md5::new();
        hash.update(self.key());
        hash.update(self.encode_with(false));
        u128::from_be_bytes(hash.finalize().into())
    }
}

fn column_record(column: &Column) -> ColumnRecord {
    ColumnRecord {
        id: column.id,
        name: column.name.clone(),
        ty: recorded_name(&column.ty),
        kind: column.kind,
        position: column.position,
        descending: column.descending,
        by_utf16: column.by_utf16,
        mask: column.mask.clone(),
    }
}

fn table_record(table: &Table, storage_ids: bool) -> TableRecord {
    TableRecord {
        keyspace: table.keyspace.clone(),
        name: table.name.clone(),
        id: table.id,
        storage_id: if storage_ids { table.storage_id } else { 0 },
        columns: table.columns.iter().map(|column| column_record(column)).collect(),
        is_counter: table.is_counter,
        compact_storage: table.compact_storage,
        options: TableOptions {
            feed: if storage_ids { table.options.feed } else { 0 },
            full_fidelity: table.options.full_fidelity.map(|of| FullFidelity {
                log: if storage_ids { of.log } else { 0 },
                ..of
            }),
            ..table.options.clone()
        },
        indexes: table
            .indexes
            .values()
            .map(|index| Index {
                storage_id: if storage_ids { index.storage_id } else { 0 },
                ..index.clone()
            })
            .collect(),
        triggers: table.triggers.clone(),
        dropped: table
            .dropped
            .values()
            .map(|dropped| DroppedRecord {
                column: column_record(&dropped.column),
                dropped_micros: dropped.dropped_micros,
            })
            .collect(),
        next_column_id: table.next_column_id,
    }
}

/// Calls `visit` with the old and the new object, for every object that differs.
fn differences<'a>(old: &'a Schema, new: &'a Schema, visit: &mut dyn FnMut(Option<Object<'a>>, Option<Object<'a>>)) {
    let names: BTreeSet<&String> = old.keyspaces.keys().chain(new.keyspaces.keys()).collect();
    for name in names {
        let (was, is) = (old.keyspaces.get(name), new.keyspaces.get(name));
        if let (Some(was), Some(is)) = (was, is)
            && Arc::ptr_eq(was, is)
        {
            continue;
        }
        let kept = |keyspace: Option<&'a Arc<Keyspace>>| -> Option<&'a Keyspace> {
            keyspace
                .filter(|keyspace| !system::is_base(keyspace))
                .map(AsRef::as_ref)
        };
        let (was_kept, is_kept) = (kept(was), kept(is));
        if was_kept.map(|keyspace| Object::Keyspace(keyspace).encode())
            != is_kept.map(|keyspace| Object::Keyspace(keyspace).encode())
        {
            visit(was_kept.map(Object::Keyspace), is_kept.map(Object::Keyspace));
        }
        if system::is_name(name) {
            continue;
        }
        map_differences(was.map(|k| &k.types), is.map(|k| &k.types), &mut |was, is| {
            visit(was.map(Object::Type), is.map(Object::Type));
        });
        for (was, is) in table_changes(was.map(AsRef::as_ref), is.map(AsRef::as_ref)) {
            visit(was.map(|was| Object::Table(was)), is.map(|is| Object::Table(is)));
        }
        map_differences(was.map(|k| &k.views), is.map(|k| &k.views), &mut |was, is| {
            visit(was.map(Object::View), is.map(Object::View));
        });
        let functions = |keyspace: Option<&'a Arc<Keyspace>>| -> BTreeMap<Vec<u8>, Object<'a>> {
            let keyspace = keyspace.map(AsRef::as_ref);
            let functions = keyspace
                .into_iter()
                .flat_map(|k: &Keyspace| k.functions.iter().map(|function| Object::Function(&k.name, function)));
            let aggregates = keyspace.into_iter().flat_map(|k: &Keyspace| {
                k.aggregates
                    .iter()
                    .map(|aggregate| Object::Aggregate(&k.name, aggregate))
            });
            functions
                .chain(aggregates)
                .map(|object| (object.key(), object))
                .collect()
        };
        let (was, is) = (functions(was), functions(is));
        let keys: BTreeSet<&Vec<u8>> = was.keys().chain(is.keys()).collect();
        for key in keys {
            let (was, is) = (was.get(key).copied(), is.get(key).copied());
            if was.map(|object| object.encode()) != is.map(|object| object.encode()) {
                visit(was, is);
            }
        }
    }
}

fn map_differences<'a, T>(
    old: Option<&'a BTreeMap<String, Arc<T>>>,
    new: Option<&'a BTreeMap<String, Arc<T>>>,
    visit: &mut dyn FnMut(Option<&'a T>, Option<&'a T>),
) {
    for (name, was) in old.into_iter().flatten() {
        match new.and_then(|new| new.get(name)) {
            Some(is) if Arc::ptr_eq(was, is) => {}
            is => visit(Some(was), is.map(AsRef::as_ref)),
        }
    }
    for (name, is) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            visit(None, Some(is));
        }
    }
}

/// The writes that turn a catalog holding `old` into one holding `new`. Unordered; they must be applied all or not at
/// all.
#[must_use]
pub fn changes(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut changes = Vec::new();
    differences(old, new, &mut |was, is| match (was, is) {
        (_, Some(is)) => {
            let (key, value) = (is.key(), is.encode());
            if was.is_none_or(|was| was.encode() != value) {
                changes.push(Change {
                    key,
                    value: Some(value),
                });
            }
        }
        (Some(was), None) => changes.push(Change {
            key: was.key(),
            value: None,
        }),
        (None, None) => {}
    });
    changes
}

/// The digest of `new`, given that of `old`.
pub(super) fn digest_after(digest: u128, old: &Schema, new: &Schema) -> u128 {
    let mut digest = digest;
    differences(old, new, &mut |was, is| {
        digest = digest
            .wrapping_sub(was.map_or(0, |was| was.digest()))
            .wrapping_add(is.map_or(0, |is| is.digest()));
    });
    digest
}

fn readable(key: &[u8]) -> String {
    String::from_utf8_lossy(key).replace('\0', ".")
}

/// Sorts functions and aggregates by name and arguments.
pub fn sort_functions(keyspace: &mut Keyspace) {
    let name = keyspace.name.clone();
    keyspace
        .functions
        .sort_by_cached_key(|function| Object::Function(&name, function).key());
    keyspace
        .aggregates
        .sort_by_cached_key(|aggregate| Object::Aggregate(&name, aggregate).key());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema with the table `k.t`.
    fn schema(full_fidelity: Option<FullFidelity>) -> Schema {
        let base = system::base();
        let of_system = base.table("system_auth", "roles").unwrap();
        let mut table = Table {
            keyspace: "k".to_owned(),
            name: "t".to_owned(),
            ..Table::clone(of_system)
        };
        table.options.full_fidelity = full_fidelity;
        let mut keyspace = Keyspace::new("k", BTreeMap::new(), true);
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
        base.with_keyspace(keyspace)
    }

    /// The records of a schema: keys, readable, and values.
    fn records(schema: &Schema) -> BTreeMap<String, Vec<u8>> {
        let changes = changes(&system::base(), schema).into_iter();
        changes
            .filter_map(|change| Some((readable(&change.key), change.value?)))
            .collect()
    }

    fn formats(schema: &Schema) -> Vec<(String, u8)> {
        records(schema)
            .into_iter()
            .map(|(key, value)| (key, value[0]))
            .collect()
    }

    #[test]
    fn only_a_table_with_a_change_log_has_a_record_that_older_programs_refuse() {
        let plain = schema(None);
        let of_both = |of_table: u8| [("kk.".to_owned(), FORMAT), ("tk.t".to_owned(), of_table)];
        assert_eq!(formats(&plain), of_both(1));
        let text = String::from_utf8(records(&plain)["tk.t"].clone()).unwrap();
        assert!(!text.contains("full_fidelity"), "{text}");

        let logged = FullFidelity {
            log: 2000,
            ..FullFidelity::default()
        };
        let with_log = schema(Some(logged));
        assert_eq!(formats(&with_log), of_both(2));
        let loaded = load(
            changes(&system::base(), &with_log)
                .into_iter()
                .map(|change| (change.key, change.value.unwrap())),
        );
        assert_eq!(loaded.unwrap().table("k", "t").unwrap().log(), Some(2000));

        // The change that ends the log writes the record that older programs read.
        let ended = changes(&with_log, &plain);
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].value, records(&plain).get("tk.t").cloned());
    }

    #[test]
    fn a_record_of_a_later_format_is_refused_by_name() {
        let of_schema = changes(&system::base(), &schema(None));
        for place in 0..of_schema.len() {
            for format in [0, FORMAT_WITH_LOG + 1, u8::MAX] {
                let mut records: Vec<(Vec<u8>, Vec<u8>)> = of_schema
                    .iter()
                    .map(|change| (change.key.clone(), change.value.clone().unwrap()))
                    .collect();
                records[place].1[0] = format;
                let (key, value) = records[place].clone();
                let expected = format!(
                    "catalog record '{}' has format {format}, of which this version knows nothing (it knows 2)",
                    readable(&key)
                );
                assert_eq!(load(records).unwrap_err().to_string(), expected);
                let renamed = rename::renamed(&key, &value, "other", None);
                assert_eq!(renamed.unwrap_err().to_string(), expected);
            }
        }
    }
}
