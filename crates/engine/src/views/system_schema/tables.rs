//! `system_schema.tables`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::{named, with_options};
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::{text_set, uuid};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "tables",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables(keyspace).into_iter().map(table_row).collect()
        })
    }),
};

fn table_row(table: &Table) -> Cells {
    let mut flags = Vec::new();
    if !table.compact_storage || table.clustering_count > 1 {
        flags.push("compound");
    }
    if table.is_counter {
        flags.push("counter");
    }
    if table.compact_storage && table.clustering_count > 0 {
        flags.push("dense");
    }
    with_options(named(table), &table.options)
        .set("flags", text_set(flags))
        .set("id", uuid(table.id))
}
