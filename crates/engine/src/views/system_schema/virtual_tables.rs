//! `system_virtual_schema.tables`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::named;
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::text;

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_virtual_schema",
    name: "tables",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, true, |keyspace| {
            asked.tables(keyspace).into_iter().map(row).collect()
        })
    }),
};

fn row(table: &Table) -> Cells {
    named(table).set("comment", text(&table.options.comment))
}
