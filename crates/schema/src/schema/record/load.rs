//! Builds the schema from the catalog's records.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{
    AggregateRecord, ColumnRecord, FORMAT, FORMAT_WITH_LOG, FunctionRecord, KeyspaceRecord, RecordError, TableRecord,
    TypeRecord, ViewRecord, readable, sort_functions,
};
use crate::schema::{
    Column, ColumnKind, DroppedColumn, Keyspace, Schema, Table, UserAggregate, UserFunction, View, system, typename,
};
use helenus_types::types::{CqlType, UserType};

/// One keyspace's records during loading.
#[derive(Default)]
pub(super) struct Parts {
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

/// Builds the schema from the catalog's records, and adds the system keyspaces. The order of records does not matter.
///
/// # Errors
/// A record of an unknown format, a damaged record, or a record that names a type without a record.
pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(records: impl IntoIterator<Item = (K, V)>) -> Result<Schema, RecordError> {
    let base = system::base();
    let mut next = base.clone();
    for (name, part) in parts_of(records)? {
        let keyspace = build(&name, part, next.keyspaces.get(&name))?;
        next.keyspaces.insert(name, Arc::new(keyspace));
    }
    Ok(next.versioned(&base))
}

/// Records by keyspace.
pub(super) fn parts_of<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    records: impl IntoIterator<Item = (K, V)>,
) -> Result<BTreeMap<String, Parts>, RecordError> {
    let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
    for (key, value) in records {
        let (key, value) = (key.as_ref(), value.as_ref());
        let damaged = |reason: &str| RecordError::Damaged {
            key: readable(key),
            reason: reason.to_owned(),
        };
        let (&format, body) = value.split_first().ok_or_else(|| damaged("it is empty"))?;
        if !(FORMAT..=FORMAT_WITH_LOG).contains(&format) {
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
    Ok(parts)
}

/// A keyspace of its records. `system` is the generated one.
pub(super) fn build(name: &str, part: Parts, system: Option<&Arc<Keyspace>>) -> Result<Keyspace, RecordError> {
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
    keyspace.throughput = record.throughput;
    keyspace.throughput_highest = record.throughput_highest.unwrap_or_default();

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
            tests: record.tests,
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

/// Resolves types on first use, because their records may refer to each other in any order.
struct Types<'a> {
    records: &'a BTreeMap<String, TypeRecord>,
    made: BTreeMap<String, Arc<UserType>>,
    keyspace: &'a str,
}

/// Maximum depth of nested types; anything deeper is a cycle.
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
            by_utf16: record.by_utf16,
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
