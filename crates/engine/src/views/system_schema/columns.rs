//! `system_schema.columns`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use std::collections::BTreeMap;

use super::shared::{kind, named};
use helenus_schema::schema::encode::{int, text};
use helenus_schema::schema::{Column, ColumnKind, Table};
use helenus_types::types::{CqlType, Native};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "columns",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables_and_views(keyspace).into_iter().flat_map(columns).collect()
        })
    }),
};

/// The columns of a table by name. As in Cassandra, tables with compact storage have columns that only this table
/// shows.
pub(super) fn columns(table: &Table) -> Vec<Cells> {
    let mut all: BTreeMap<String, Column> = table
        .columns
        .iter()
        .map(|column| (column.name.clone(), Column::clone(column)))
        .collect();
    if table.compact_storage {
        add_hidden(table, &mut all);
    }
    all.values()
        .map(|column| {
            let order = match (column.kind, column.descending) {
                (ColumnKind::Clustering, true) => "desc",
                (ColumnKind::Clustering, false) => "asc",
                _ => "none",
            };
            let position = match column.kind {
                ColumnKind::PartitionKey | ColumnKind::Clustering => i32::try_from(column.position).unwrap_or(i32::MAX),
                ColumnKind::Static | ColumnKind::Regular => -1,
            };
            named(table)
                .set("column_name", text(&column.name))
                .set("clustering_order", text(order))
                .set("column_name_bytes", text(&column.name))
                .set("kind", text(kind(column.kind)))
                .set("position", int(position))
                .set("type", text(&column.ty.cql_name()))
        })
        .collect()
}

fn add_hidden(table: &Table, all: &mut BTreeMap<String, Column>) {
    let hidden = |name: &str, ty: Native, kind: ColumnKind| Column {
        id: 0,
        name: name.to_owned(),
        ty: CqlType::Native(ty),
        kind,
        position: 0,
        descending: false,
        by_utf16: false,
        mask: None,
    };
    if table.clustering_count == 0 {
        for column in all.values_mut().filter(|column| column.kind == ColumnKind::Regular) {
            column.kind = ColumnKind::Static;
        }
        let value = if table.is_counter {
            Native::Counter
        } else {
            Native::Blob
        };
        let (clustering_name, value_name) = table.hidden_names();
        let clustering = hidden(&clustering_name, Native::Text, ColumnKind::Clustering);
        all.insert(clustering_name, clustering);
        let values = hidden(&value_name, value, ColumnKind::Regular);
        all.insert(value_name, values);
    } else if table.others().is_empty() {
        let (_, value_name) = table.hidden_names();
        let values = hidden(&value_name, Native::Empty, ColumnKind::Regular);
        all.insert(value_name, values);
    }
}
