//! `system.built_views`: materialized views; each is complete.

use super::super::cells::Cells;
use super::super::view::View;
use crate::schema::Schema;
use crate::schema::encode::{boolean, text};

pub(super) const VIEW: View = View::of("system", "built_views", |sources| built_views(sources.schema));

fn built_views(schema: &Schema) -> Vec<Cells> {
    let views = schema.keyspaces.values().flat_map(|keyspace| keyspace.views.values());
    views
        .map(|view| {
            Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("status_replicated", boolean(true))
        })
        .collect()
}
