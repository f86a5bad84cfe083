//! `system_cosmos.tables`, `/api/tables`: tables and views with stored rows.

use std::collections::BTreeMap;

use super::super::figure::{self, Figure, Kind, Value};
use super::super::printed::{Printed, Row, size, time};
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use crate::throughput::RequestUnits;
use helenus_base::metrics::{Access, Distribution};
use helenus_schema::schema::system;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "tables",
    own: Some(Own {
        comment: "tables, with what was charged to them",
        columns: || figure::columns(FIGURES),
        shows_sizes: true,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, of_users(sources))),
};

/// A table, with the sums of its physical partitions.
pub(in crate::views) struct TableRow {
    keyspace: String,
    table: String,
    partitions: usize,
    bytes: u64,
    rows: u64,
    is_exact: bool,
    latencies: [Distribution; 3],
    pub(in crate::views) request_units: RequestUnits,
}

const ACCESSES: [Access; 3] = [Access::Read, Access::Scan, Access::Write];

impl TableRow {
    fn latency(&self, access: Access) -> Value {
        let known = ACCESSES.iter().zip(&self.latencies).find(|(of, _)| **of == access);
        Value::optional(known, |(_, times)| Value::Times(times.clone()))
    }
}

pub(in crate::views) static FIGURES: &[Figure<TableRow>] = &[
    Figure::new("The table's keyspace.", |of: &TableRow| Value::text(&of.keyspace))
        .keyed(Kind::Partition, "keyspace_name", "text")
        .json("keyspace")
        .label("keyspace"),
    Figure::new("The table.", |of: &TableRow| Value::text(&of.table))
        .keyed(Kind::Clustering, "table_name", "text")
        .json("table")
        .label("table"),
    Figure::new("Whether it is the server's own.", |of: &TableRow| {
        Value::Bool(system::is_name(&of.keyspace))
    })
    .json("is_system"),
    Figure::new("Physical partitions.", |of: &TableRow| Value::size(of.partitions))
        .column("partitions", "int")
        .json("partitions"),
    Figure::new("Bytes of keys and values.", |of: &TableRow| Value::Count(of.bytes))
        .column("bytes", "bigint")
        .json("bytes"),
    Figure::new(
        "Rows as stored, deleted and expired ones until they are cleaned up.",
        |of: &TableRow| Value::Count(of.rows),
    )
    .column("stored_rows", "bigint")
    .json("rows"),
    Figure::new("Whether bytes and rows are exact.", |of: &TableRow| {
        Value::Bool(of.is_exact)
    })
    .json("is_exact"),
    Figure::new("Reads of partitions by key.", |of: &TableRow| of.latency(Access::Read)).json("reads"),
    Figure::new("Reads of a range of the ring.", |of: &TableRow| {
        of.latency(Access::Scan)
    })
    .json("scans"),
    Figure::new("Writes.", |of: &TableRow| of.latency(Access::Write)).json("writes"),
    Figure::new(
        "Request units charged to a table; the 1000 tables with the most.",
        |of: &TableRow| Value::Float(of.request_units.as_f64()),
    )
    .column("request_units", "double")
    .json("request_units")
    .counter("table_request_units_total"),
];

/// All tables and views, by keyspace and name.
pub(in crate::views) fn all(sources: Sources<'_>) -> Vec<TableRow> {
    let Some(figures) = sources.figures else {
        return Vec::new();
    };
    let mut sums: BTreeMap<(String, String), (usize, u64, u64, bool)> = BTreeMap::new();
    for partition in figures.partitions() {
        let sum = sums
            .entry((partition.keyspace, partition.table))
            .or_insert((0, 0, 0, true));
        sum.0 += 1;
        sum.1 += partition.bytes;
        sum.2 += partition.rows;
        sum.3 &= partition.is_exact;
    }
    let row = |(keyspace, table, request_units): (String, String, RequestUnits)| {
        let known = sources
            .schema
            .table_or_view(&keyspace, &table)
            .map(|table| table.id.as_u128());
        let known = known.and_then(|id| figures.statements().known_table(id));
        let latency = |access| {
            known
                .as_ref()
                .map(|known| known.of(access).latency.load())
                .unwrap_or_default()
        };
        let place = (keyspace, table);
        let (partitions, bytes, rows, is_exact) = sums.get(&place).copied().unwrap_or((0, 0, 0, true));
        TableRow {
            keyspace: place.0,
            table: place.1,
            partitions,
            bytes,
            rows,
            is_exact,
            latencies: ACCESSES.map(latency),
            request_units,
        }
    };
    let mut rows: Vec<TableRow> = figures.table_request_units().into_iter().map(row).collect();
    rows.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
    rows
}

fn of_users(sources: Sources<'_>) -> Vec<TableRow> {
    let mut rows = all(sources);
    rows.retain(|row| !system::is_name(&row.keyspace));
    rows
}

fn p99(row: &Row<'_>, latency: &str) -> String {
    match row.count(&format!("{latency}.count")) {
        0 => "-".to_owned(),
        _ => time(row.count(&format!("{latency}.p99_micros"))),
    }
}

/// The `helenus status` table.
pub(in crate::views) const PRINTED: &[Printed] = &[
    Printed::left("table", |row| row.table()),
    Printed::right("parts", |row| row.text("partitions")),
    Printed::right("stored rows", |row| row.text("rows")),
    Printed::right("size", |row| size(row.count("bytes"))),
    Printed::right("reads", |row| row.text("reads.count")),
    Printed::right("p99", |row| p99(row, "reads")),
    Printed::right("scans", |row| row.text("scans.count")),
    Printed::right("p99", |row| p99(row, "scans")),
    Printed::right("writes", |row| row.text("writes.count")),
    Printed::right("p99", |row| p99(row, "writes")),
    Printed::right("RU", |row| format!("{:.2}", row.float("request_units"))),
];
