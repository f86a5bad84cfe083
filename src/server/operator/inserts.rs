//! The statements that write the rows of a file.
//!
//! | row | statement |
//! |---|---|
//! | with all clustering columns | INSERT of all columns |
//! | of a table with COMPACT STORAGE, without the last clustering columns | INSERT of the others |
//! | without clustering columns | INSERT of the partition key and the static columns |
//! | of counters | UPDATE of the static counters, once a partition, and UPDATE of the others |

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::counted::{CountedPartitions, Seen};
use helenus_cql::cql::{Database, Error, Statement};
use helenus_schema::command::value::Value;
use helenus_schema::planner::partition_key;
use helenus_schema::schema::{Column, ColumnKind, Table};
use helenus_types::types::quoted;

/// A statement, and the columns of its markers.
struct Insert {
    statement: Statement,
    places: Vec<usize>,
}

/// A statement with its values.
pub(super) type Bound<'i> = (&'i Statement, Vec<Value>);

/// The statements for imported rows.
pub(super) struct Inserts {
    table: Arc<Table>,
    /// For rows of this number of clustering columns; for counters, without static ones.
    rows: BTreeMap<usize, Insert>,
    /// For static columns. `None` means the table has none.
    statics: Option<Insert>,
}

fn is_key(column: &Column) -> bool {
    matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
}

impl Inserts {
    pub(super) fn new(database: &Database, table: Arc<Table>) -> Result<Self, Error> {
        let insert = |places: Vec<usize>| -> Result<Insert, Error> {
            let columns: Vec<&Column> = places.iter().filter_map(|place| column_at(&table, *place)).collect();
            let statement = database.prepare(None, &statement(&table, &columns))?;
            Ok(Insert { statement, places })
        };
        let of = |is_of: &dyn Fn(usize, ColumnKind) -> bool| -> Vec<usize> {
            let columns = table.columns.iter().enumerate();
            let columns = columns.filter(|(place, column)| is_of(*place, column.kind));
            let mut places: Vec<usize> = columns.map(|(place, _)| place).collect();
            // UPDATE has its values before its key.
            if table.is_counter {
                places.sort_by_key(|place| column_at(&table, *place).is_some_and(is_key));
            }
            places
        };
        let has = |kind: ColumnKind| table.columns.iter().any(|column| column.kind == kind);
        // Rows of other tables have all their clustering columns.
        let is_prefix_key = table.compact_storage && table.clustering_count > 0;
        let fewest = if is_prefix_key { 1 } else { table.clustering_count };
        let mut rows = BTreeMap::new();
        if !table.is_counter || has(ColumnKind::Regular) {
            for count in fewest..=table.clustering_count {
                let clustering_end = table.partition_key_count + count;
                let names_row = |place: usize, kind: ColumnKind| match kind {
                    ColumnKind::PartitionKey | ColumnKind::Regular => true,
                    ColumnKind::Static => !table.is_counter,
                    ColumnKind::Clustering => place < clustering_end,
                };
                rows.insert(count, insert(of(&names_row))?);
            }
        }
        let is_static = |_, kind: ColumnKind| matches!(kind, ColumnKind::PartitionKey | ColumnKind::Static);
        let statics = has(ColumnKind::Static).then(|| insert(of(&is_static))).transpose()?;
        Ok(Self { table, rows, statics })
    }

    /// The statements for a row with these values, one for each column.
    ///
    /// # Errors
    /// The row lacks a part of its key, or has nothing to write.
    pub(super) fn of(
        &self,
        values: &[Option<Bytes>],
        counted: &mut CountedPartitions,
    ) -> Result<Vec<Bound<'_>>, String> {
        let table = &self.table;
        let given = |kind: ColumnKind| {
            let cells = table.columns.iter().zip(values);
            cells.filter(move |(column, value)| column.kind == kind && value.is_some())
        };
        let clustering = given(ColumnKind::Clustering).count();
        let has_statics = given(ColumnKind::Static).next().is_some();
        let key = self.key(values)?;
        if let Some(statics) = &self.statics
            && has_statics
            && clustering == 0
        {
            return Ok(match self.is_to_be_counted(&key, values, counted)? {
                true => vec![statics.bind(values)],
                false => Vec::new(),
            });
        }
        if !table.has_markers() && !has_statics && given(ColumnKind::Regular).next().is_none() {
            return Err("no column beside the primary key has a value, so that there is no row".to_owned());
        }
        let Some(row) = self.rows.get(&clustering).filter(|row| row.is_prefix(table, values)) else {
            return Err(self.missing(values));
        };
        if !table.is_counter {
            return Ok(vec![row.bind(values)]);
        }
        let mut bound = Vec::new();
        if given(ColumnKind::Regular).next().is_some() {
            bound.push(row.bind(values));
        }
        if let Some(statics) = &self.statics
            && has_statics
            && self.is_to_be_counted(&key, values, counted)?
        {
            bound.push(statics.bind(values));
        }
        Ok(bound)
    }

    /// Whether static columns of this partition are written with this row.
    fn is_to_be_counted(
        &self,
        key: &Bytes,
        values: &[Option<Bytes>],
        counted: &mut CountedPartitions,
    ) -> Result<bool, String> {
        if !self.table.is_counter {
            return Ok(true);
        }
        let mut statics = Vec::new();
        for (column, value) in self.table.columns.iter().zip(values) {
            if column.kind == ColumnKind::Static {
                statics.push(u8::from(value.is_some()));
                statics.extend_from_slice(value.as_deref().unwrap_or_default());
            }
        }
        match counted.see(key, xxh3_64(&statics)) {
            Seen::First => Ok(true),
            Seen::Before => Ok(false),
            Seen::Contradicted => Err(
                "the static counters of its partition have other values in an earlier line, and were counted with those".to_owned(),
            ),
            Seen::Unknown => Err(
                "the file has too many partitions with static counters to tell whether this one is counted already: sort it by token, as an export is, or divide it"
                    .to_owned(),
            ),
        }
    }

    /// The serialised partition key.
    fn key(&self, values: &[Option<Bytes>]) -> Result<Bytes, String> {
        let components = values.iter().take(self.table.partition_key_count).cloned();
        match components.collect::<Option<Vec<Bytes>>>() {
            Some(components) => partition_key(&components).map_err(|error| error.to_string()),
            None => Err(self.missing(values)),
        }
    }

    /// What the row lacks.
    fn missing(&self, values: &[Option<Bytes>]) -> String {
        let mut cells = self.table.columns.iter().zip(values);
        match cells.find(|(column, value)| is_key(column) && value.is_none()) {
            Some((column, _)) => format!("column {} is part of the primary key and has no value", column.name),
            None => "the table has no column that a row could have a value for".to_owned(),
        }
    }
}

impl Insert {
    /// Whether the clustering columns that have values are those of this statement.
    fn is_prefix(&self, table: &Table, values: &[Option<Bytes>]) -> bool {
        let keys = self
            .places
            .iter()
            .filter(|place| column_at(table, **place).is_some_and(is_key));
        keys.copied()
            .all(|place| values.get(place).is_some_and(Option::is_some))
    }

    fn bind(&self, values: &[Option<Bytes>]) -> Bound<'_> {
        let value = |place: &usize| match values.get(*place) {
            Some(Some(bytes)) => Value::Bytes(bytes.clone()),
            _ => Value::Unset,
        };
        (&self.statement, self.places.iter().map(value).collect())
    }
}

fn column_at(table: &Table, place: usize) -> Option<&Column> {
    table.columns.get(place).map(Arc::as_ref)
}

/// INSERT, or for a counter table UPDATE, with a marker for each of these columns.
fn statement(table: &Table, columns: &[&Column]) -> String {
    let place = format!("{}.{}", quoted(&table.keyspace), quoted(&table.name));
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    if !table.is_counter {
        let markers = vec!["?"; names.len()].join(", ");
        return format!("INSERT INTO {place} ({}) VALUES ({markers})", names.join(", "));
    }
    let of = |keys: bool| {
        columns
            .iter()
            .zip(&names)
            .filter(move |(column, _)| is_key(column) == keys)
    };
    let values: Vec<String> = of(false).map(|(_, name)| format!("{name} = {name} + ?")).collect();
    let keys: Vec<String> = of(true).map(|(_, name)| format!("{name} = ?")).collect();
    format!("UPDATE {place} SET {} WHERE {}", values.join(", "), keys.join(" AND "))
}
