//! Rows of the system tables that the server makes: `system_schema`, `system_virtual_schema`, `system`, `system_views` and
//! `system_cosmos`.
//!
//! ```text
//! rows(table, …)  →  None: the table has stored rows (system_auth, system_traces, system_distributed, the users' own)
//!                    Some(rows × columns in the order of `table.columns`), in token order, each partition in clustering order
//! ```
//! Drivers ask for one keyspace or one table at a time, so a caller that knows the partition key says so, and only that partition
//! is made. What a table would tell that we have nothing true to say about (compactions, streams, caches …) is left out: such a
//! table is empty.

mod cosmos_tables;
pub(super) mod encode;
mod figures;
mod schema_tables;
mod system_tables;

use bytes::Bytes;

use super::node::{Live, NodeInfo};
use super::{Schema, Table, system};

/// A row in the making: values by column name. Columns that are not named are null.
pub(super) struct Cells(Vec<(&'static str, Option<Bytes>)>);

impl Cells {
    fn new() -> Self {
        Self(Vec::with_capacity(16))
    }

    fn set(mut self, column: &'static str, value: Bytes) -> Self {
        self.0.push((column, Some(value)));
        self
    }

    fn set_if(mut self, column: &'static str, value: Option<Bytes>) -> Self {
        self.0.push((column, value));
        self
    }

    fn into_row(mut self, table: &Table) -> Vec<Option<Bytes>> {
        let mut at = 0;
        let mut of = |name: &str| {
            // Cells are mostly made in the order of the columns, so the next one is looked at first.
            let place = (at..self.0.len())
                .chain(0..at)
                .find(|&place| self.0.get(place).is_some_and(|(column, _)| *column == name))?;
            at = place + 1;
            self.0.get_mut(place).and_then(|(_, value)| value.take())
        };
        table.columns.iter().map(|column| of(&column.name)).collect()
    }
}

/// Everything a view is made of.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// What is defined.
    pub schema: &'a Schema,
    /// The nodes.
    pub node: &'a NodeInfo,
    /// What only the server knows.
    pub live: &'a Live,
    /// The partitioner: bytes of a partition key → its place on the ring.
    pub token: fn(&[u8]) -> i64,
}

/// Whether a view shows what physical partitions hold.
#[must_use]
pub fn show_sizes(view: &Table) -> bool {
    view.keyspace == system::COSMOS && matches!(view.name.as_str(), "partitions" | "tables")
}

/// Which rows a caller wants. What is left open is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The values of the partition key's columns.
    pub partition_key: Option<&'a [Bytes]>,
    /// The value of the first clustering column. Only spares work: rows of other values may come all the same.
    pub first_clustering: Option<&'a [u8]>,
}

/// The rows of a system table that is made by the server; `None` if the table has stored rows.
#[must_use]
pub fn rows(table: &Table, sources: Sources<'_>, wanted: Wanted<'_>) -> Option<Vec<Vec<Option<Bytes>>>> {
    if !system::is_local(&table.keyspace) {
        return None;
    }
    let text = |bytes: &'_ [u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let keyspace = wanted
        .partition_key
        .and_then(|key| key.first())
        .and_then(|first| text(first));
    let of_table = wanted.first_clustering.and_then(text);
    let asked = schema_tables::Asked {
        keyspace: keyspace.as_deref(),
        table: of_table.as_deref(),
    };
    let cells = match table.keyspace.as_str() {
        "system_schema" => schema_tables::stored(&table.name, sources.schema, asked),
        "system_virtual_schema" => schema_tables::made(&table.name, sources.schema, asked),
        "system" => system_tables::system(&table.name, sources),
        system::COSMOS => cosmos_tables::system_cosmos(&table.name, sources),
        _ => system_tables::system_views(&table.name, sources),
    };
    let mut rows: Vec<Vec<Option<Bytes>>> = cells.into_iter().map(|cells| cells.into_row(table)).collect();
    let count = table.partition_key_count;
    // Rows of a partition are made in clustering order; partitions are yet to be put in order.
    match wanted.partition_key {
        Some(key) => rows.retain(|row| row.iter().take(count).map(Option::as_ref).eq(key.iter().map(Some))),
        None => rows.sort_by_cached_key(|row| {
            let key = serialized(row.get(..count).unwrap_or_default());
            ((sources.token)(&key), key)
        }),
    }
    Some(rows)
}

/// The bytes of a partition key: its one value, or each with its length before and a zero behind.
fn serialized(values: &[Option<Bytes>]) -> Vec<u8> {
    if let [Some(only)] = values {
        return only.to_vec();
    }
    let mut bytes = Vec::new();
    for value in values {
        let value = value.as_deref().unwrap_or_default();
        bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(value);
        bytes.push(0);
    }
    bytes
}
