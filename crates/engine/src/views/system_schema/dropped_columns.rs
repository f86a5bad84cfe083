//! `system_schema.dropped_columns`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::{kind, named};
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::{bigint, text};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "dropped_columns",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables_and_views(keyspace).into_iter().flat_map(dropped).collect()
        })
    }),
};

fn dropped(table: &Table) -> Vec<Cells> {
    table
        .dropped
        .values()
        .map(|dropped| {
            named(table)
                .set("column_name", text(&dropped.column.name))
                .set("dropped_time", bigint(dropped.dropped_micros.div_euclid(1000)))
                .set("kind", text(kind(dropped.column.kind)))
                .set("type", text(&dropped.column.ty.cql_name()))
        })
        .collect()
}
