//! `system.built_views`: materialized views that are fully built.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use helenus_schema::schema::encode::{boolean, text};

pub(super) const VIEW: View = View::of("system", "built_views", built_views);

fn built_views(sources: Sources<'_>) -> Vec<Cells> {
    let views = sources
        .schema
        .keyspaces
        .values()
        .flat_map(|keyspace| keyspace.views.values());
    let is_built = |id| sources.figures.is_none_or(|figures| figures.is_built(id));
    views
        .filter(|view| is_built(view.table.storage_id))
        .map(|view| {
            Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("status_replicated", boolean(true))
        })
        .collect()
}
