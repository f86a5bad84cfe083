//! `system_schema.views`: materialized views.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::with_options;
use helenus_schema::schema::Keyspace;
use helenus_schema::schema::encode::{boolean, text, uuid};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "views",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, views)),
};

fn views(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .views
        .values()
        .map(|view| {
            let cells = Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("base_table_id", uuid(view.base_id))
                .set("base_table_name", text(&view.base_table))
                .set("id", uuid(view.table.id))
                .set("include_all_columns", boolean(view.include_all_columns))
                .set("where_clause", text(&view.where_clause));
            with_options(cells, &view.table.options)
        })
        .collect()
}
