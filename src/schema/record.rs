//! Records: each object of a schema as bytes for the catalog, and the schema made of them again.
//!
//! ```text
//! key   = kind (1 byte: 'k' keyspace, 'y' type, 't' table, 'v' view, 'f' function, 'a' aggregate) · keyspace · 00 · name [ · 00 · argument types ]
//! value = 01 · JSON        (01: the version of this format; fields added later have defaults)
//! ```
//! Indexes, triggers, masks and dropped columns are part of their table's record. Types are written as CQL writes them; a record
//! of a type therefore must be there wherever its name is used, which holds since a used type is never dropped.
//!
//! The generated system keyspaces have no records, except a `k` record where its replication has been altered.
//!
//! The digest of a schema is the sum, mod 2¹²⁸, of the MD5 sums of key and value of all records, numbers in the store left out:
//! TRUNCATE is no change of the schema. So the next digest follows from the last and from what has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Column, ColumnKind, DroppedColumn, Index, Keyspace, Schema, Table, TableOptions, UserAggregate, UserFunction, View,
    system, typename,
};
use crate::types::{CqlType, UserType};

/// The version of the format that is written.
pub const FORMAT: u8 = 1;

/// Why records cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It was written by a later version.
    #[error("catalog record '{key}' has format {format}, of which this version knows nothing (it knows {FORMAT})")]
    Format {
        /// The record's key, readable.
        key: String,
        /// Its version byte.
        format: u8,
    },
    /// It is damaged.
    #[error("catalog record '{key}' cannot be read: {reason}")]
    Damaged {
        /// The record's key, readable.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct KeyspaceRecord {
    name: String,
    durable_writes: bool,
    replication: BTreeMap<String, String>,
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

/// Anything that has a record of its own.
#[derive(Clone, Copy)]
pub enum Object<'a> {
    /// A keyspace, without what it holds.
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

/// One thing to do so that the catalog holds the next schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record's key.
    pub key: Vec<u8>,
    /// Its new value; `None`: it goes.
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
                let types: Vec<String> = function.arguments.iter().map(|(_, ty)| ty.cql_name()).collect();
                (b'f', *keyspace, function.name.as_str(), Some(types.join(",")))
            }
            Object::Aggregate(keyspace, aggregate) => {
                let types: Vec<String> = aggregate.arguments.iter().map(CqlType::cql_name).collect();
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
            }),
            Object::Type(ty) => serde_json::to_vec(&TypeRecord {
                keyspace: ty.keyspace.clone(),
                name: ty.name.clone(),
                fields: ty
                    .fields
                    .iter()
                    .map(|(name, ty)| (name.clone(), ty.cql_name()))
                    .collect(),
            }),
            Object::Table(table) => serde_json::to_vec(&table_record(table, storage_ids)),
            Object::View(view) => serde_json::to_vec(&ViewRecord {
                table: table_record(&view.table, storage_ids),
                base_table: view.base_table.clone(),
                base_id: view.base_id,
                include_all_columns: view.include_all_columns,
                where_clause: view.where_clause.clone(),
            }),
            Object::Function(keyspace, function) => serde_json::to_vec(&FunctionRecord {
                keyspace: (*keyspace).to_owned(),
                name: function.name.clone(),
                arguments: function
                    .arguments
                    .iter()
                    .map(|(name, ty)| (name.clone(), ty.cql_name()))
                    .collect(),
                called_on_null_input: function.called_on_null_input,
                returns: function.returns.cql_name(),
                language: function.language.clone(),
                body: function.body.clone(),
            }),
            Object::Aggregate(keyspace, aggregate) => serde_json::to_vec(&AggregateRecord {
                keyspace: (*keyspace).to_owned(),
                name: aggregate.name.clone(),
                arguments: aggregate.arguments.iter().map(CqlType::cql_name).collect(),
                state_function: aggregate.state_function.clone(),
                state_type: aggregate.state_type.cql_name(),
                final_function: aggregate.final_function.clone(),
                initial_condition: aggregate.initial_condition.clone(),
                returns: aggregate.returns.cql_name(),
            }),
        };
        let mut value = vec![FORMAT];
        value.extend_from_slice(&json.expect("plain structs with text keys are always JSON"));
        value
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
        ty: column.ty.cql_name(),
        kind: column.kind,
        position: column.position,
        descending: column.descending,
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
        options: table.options.clone(),
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

/// Calls `visit` with what was and what is, for every object that differs.
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
        match (was, is) {
            (Some(was), Some(is)) => {
                // Skips what the two share, which is nearly all.
                for change in was.tables.diff(&is.tables) {
                    match change {
                        DiffItem::Add(_, is) => visit(None, Some(Object::Table(is))),
                        DiffItem::Update { old, new } => {
                            visit(Some(Object::Table(old.1)), Some(Object::Table(new.1)));
                        }
                        DiffItem::Remove(_, was) => visit(Some(Object::Table(was)), None),
                    }
                }
            }
            (Some(was), None) => was
                .tables
                .values()
                .for_each(|was| visit(Some(Object::Table(was)), None)),
            (None, Some(is)) => is.tables.values().for_each(|is| visit(None, Some(Object::Table(is)))),
            (None, None) => {}
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

/// What to write so that a catalog which holds `old` holds `new`. In order of nothing; all or none must be written.
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

/// The version that clients see: a name-based uuid of the digest.
pub(super) fn version_of(digest: u128) -> Uuid {
    let mut hash = Md5::new();
    hash.update(digest.to_be_bytes());
    uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid()
}

fn readable(key: &[u8]) -> String {
    String::from_utf8_lossy(key).replace('\0', ".")
}

/// One keyspace's records while they are being put together.
#[derive(Default)]
struct Parts {
    keyspace: Option<KeyspaceRecord>,
    types: BTreeMap<String, TypeRecord>,
    tables: Vec<TableRecord>,
    views: Vec<ViewRecord>,
    functions: Vec<FunctionRecord>,
    aggregates: Vec<AggregateRecord>,
}

fn json<T: for<'de> Deserialize<'de>>(key: &[u8], value: &[u8]) -> Result<T, RecordError> {
    serde_json::from_slice(value).map_err(|error| RecordError::Damaged {
        key: readable(key),
        reason: error.to_string(),
    })
}

/// The schema that a catalog's records make, the system keyspaces included. The order of records does not matter.
///
/// # Errors
/// A record of an unknown format, a damaged one, or one that names a type of which there is no record.
pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(records: impl IntoIterator<Item = (K, V)>) -> Result<Schema, RecordError> {
    let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
    for (key, value) in records {
        let (key, value) = (key.as_ref(), value.as_ref());
        let damaged = |reason: &str| RecordError::Damaged {
            key: readable(key),
            reason: reason.to_owned(),
        };
        let (&format, body) = value.split_first().ok_or_else(|| damaged("it is empty"))?;
        if format != FORMAT {
            return Err(RecordError::Format {
                key: readable(key),
                format,
            });
        }
        match key.first() {
            Some(b'k') => {
                let record: KeyspaceRecord = json(key, body)?;
                let part = parts.entry(record.name.clone()).or_default();
                part.keyspace = Some(record);
            }
            Some(b'y') => {
                let record: TypeRecord = json(key, body)?;
                let part = parts.entry(record.keyspace.clone()).or_default();
                part.types.insert(record.name.clone(), record);
            }
            Some(b't') => {
                let record: TableRecord = json(key, body)?;
                parts.entry(record.keyspace.clone()).or_default().tables.push(record);
            }
            Some(b'v') => {
                let record: ViewRecord = json(key, body)?;
                parts
                    .entry(record.table.keyspace.clone())
                    .or_default()
                    .views
                    .push(record);
            }
            Some(b'f') => {
                let record: FunctionRecord = json(key, body)?;
                parts.entry(record.keyspace.clone()).or_default().functions.push(record);
            }
            Some(b'a') => {
                let record: AggregateRecord = json(key, body)?;
                parts
                    .entry(record.keyspace.clone())
                    .or_default()
                    .aggregates
                    .push(record);
            }
            _ => return Err(damaged("nothing has such a key")),
        }
    }
    let base = system::base();
    let mut next = base.clone();
    for (name, part) in parts {
        let keyspace = build(&name, part, next.keyspaces.get(&name))?;
        next.keyspaces.insert(name, Arc::new(keyspace));
    }
    Ok(next.versioned(&base))
}

fn build(name: &str, part: Parts, system: Option<&Arc<Keyspace>>) -> Result<Keyspace, RecordError> {
    let record = part.keyspace.ok_or_else(|| RecordError::Damaged {
        key: format!("k{name}"),
        reason: "it is missing, yet the keyspace holds something".to_owned(),
    })?;
    let mut keyspace = system.map_or_else(
        || Keyspace::new(name, BTreeMap::new(), true),
        |system| Keyspace::clone(system),
    );
    keyspace.replication = record.replication;
    keyspace.durable_writes = record.durable_writes;

    let mut types = Types {
        records: &part.types,
        made: BTreeMap::new(),
        keyspace: name,
    };
    for name in part.types.keys() {
        if types.user(name, 0).is_none() {
            return Err(types.unknown("type", name));
        }
    }
    for record in part.tables {
        let table = types.table(record)?;
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
    }
    for record in part.views {
        let table = Arc::new(types.table(record.table)?);
        let view = View {
            base_table: record.base_table,
            base_id: record.base_id,
            include_all_columns: record.include_all_columns,
            where_clause: record.where_clause,
            table,
        };
        keyspace.views.insert(view.table.name.clone(), Arc::new(view));
    }
    for record in part.functions {
        let function = types.function(record)?;
        keyspace.functions.push(Arc::new(function));
    }
    for record in part.aggregates {
        let aggregate = types.aggregate(record)?;
        keyspace.aggregates.push(Arc::new(aggregate));
    }
    sort_functions(&mut keyspace);
    keyspace.types = types.made;
    Ok(keyspace)
}

/// Puts functions and aggregates in order of name and arguments.
pub(crate) fn sort_functions(keyspace: &mut Keyspace) {
    let name = keyspace.name.clone();
    keyspace
        .functions
        .sort_by_cached_key(|function| Object::Function(&name, function).key());
    keyspace
        .aggregates
        .sort_by_cached_key(|aggregate| Object::Aggregate(&name, aggregate).key());
}

/// Types may name each other in any order, so each is made when it is first asked for.
struct Types<'a> {
    records: &'a BTreeMap<String, TypeRecord>,
    made: BTreeMap<String, Arc<UserType>>,
    keyspace: &'a str,
}

/// Deeper than this, types that name each other go round in circles.
const TYPE_DEPTH_MAX: usize = 256;

impl Types<'_> {
    fn user(&mut self, name: &str, depth: usize) -> Option<Arc<UserType>> {
        if let Some(made) = self.made.get(name) {
            return Some(Arc::clone(made));
        }
        let record = self.records.get(name).filter(|_| depth < TYPE_DEPTH_MAX)?;
        let mut fields = Vec::with_capacity(record.fields.len());
        for (field, text) in &record.fields {
            fields.push((
                field.clone(),
                typename::parse(text, &mut |inner| self.user(inner, depth + 1))?,
            ));
        }
        let made = Arc::new(UserType {
            keyspace: self.keyspace.to_owned(),
            name: name.to_owned(),
            fields,
        });
        self.made.insert(name.to_owned(), Arc::clone(&made));
        Some(made)
    }

    fn unknown(&self, kind: &str, name: &str) -> RecordError {
        RecordError::Damaged {
            key: format!("{}.{name}", self.keyspace),
            reason: format!("this {kind} is made of a type that there is no record of"),
        }
    }

    fn parse(&mut self, kind: &str, name: &str, text: &str) -> Result<CqlType, RecordError> {
        typename::parse(text, &mut |inner| self.user(inner, 0)).ok_or_else(|| self.unknown(kind, name))
    }

    fn column(&mut self, table: &str, record: ColumnRecord) -> Result<Column, RecordError> {
        Ok(Column {
            id: record.id,
            ty: self.parse("table", table, &record.ty)?,
            name: record.name,
            kind: record.kind,
            position: record.position,
            descending: record.descending,
            mask: record.mask,
        })
    }

    fn table(&mut self, record: TableRecord) -> Result<Table, RecordError> {
        let mut columns = Vec::with_capacity(record.columns.len());
        for column in record.columns {
            columns.push(Arc::new(self.column(&record.name, column)?));
        }
        let mut dropped = BTreeMap::new();
        for record_of in record.dropped {
            let column = self.column(&record.name, record_of.column)?;
            dropped.insert(
                column.name.clone(),
                DroppedColumn {
                    column,
                    dropped_micros: record_of.dropped_micros,
                },
            );
        }
        let count = |kind: ColumnKind| {
            columns
                .iter()
                .filter(|column: &&Arc<Column>| column.kind == kind)
                .count()
        };
        Ok(Table {
            id: record.id,
            storage_id: record.storage_id,
            keyspace: record.keyspace,
            name: record.name,
            partition_key_count: count(ColumnKind::PartitionKey),
            clustering_count: count(ColumnKind::Clustering),
            is_counter: record.is_counter,
            is_virtual: false,
            compact_storage: record.compact_storage,
            options: record.options,
            indexes: record
                .indexes
                .into_iter()
                .map(|index| (index.name.clone(), index))
                .collect(),
            triggers: record.triggers,
            dropped,
            next_column_id: record.next_column_id,
            columns,
        })
    }

    fn function(&mut self, record: FunctionRecord) -> Result<UserFunction, RecordError> {
        let mut arguments = Vec::with_capacity(record.arguments.len());
        for (name, text) in &record.arguments {
            arguments.push((name.clone(), self.parse("function", &record.name, text)?));
        }
        Ok(UserFunction {
            returns: self.parse("function", &record.name, &record.returns)?,
            name: record.name,
            arguments,
            called_on_null_input: record.called_on_null_input,
            language: record.language,
            body: record.body,
        })
    }

    fn aggregate(&mut self, record: AggregateRecord) -> Result<UserAggregate, RecordError> {
        let mut arguments = Vec::with_capacity(record.arguments.len());
        for text in &record.arguments {
            arguments.push(self.parse("aggregate", &record.name, text)?);
        }
        Ok(UserAggregate {
            state_type: self.parse("aggregate", &record.name, &record.state_type)?,
            returns: self.parse("aggregate", &record.name, &record.returns)?,
            name: record.name,
            arguments,
            state_function: record.state_function,
            final_function: record.final_function,
            initial_condition: record.initial_condition,
        })
    }
}
