//! `system_schema.indexes`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::named;
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::{text, text_map};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "indexes",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables(keyspace).into_iter().flat_map(indexes).collect()
        })
    }),
};

fn indexes(table: &Table) -> Vec<Cells> {
    table
        .indexes
        .values()
        .map(|index| {
            named(table)
                .set("index_name", text(&index.name))
                .set("kind", text(&index.kind))
                .set("options", text_map(&index.options))
        })
        .collect()
}
