//! `system."IndexInfo"`: fully built indexes.

use super::super::cells::Cells;
use super::super::system_views::indexes::indexes;
use super::super::view::{Sources, View};
use helenus_schema::schema::encode::text;

pub(super) const VIEW: View = View::of("system", "IndexInfo", index_info);

/// Fully built indexes, under the keyspace's name (the column's name is older than keyspaces).
fn index_info(sources: Sources<'_>) -> Vec<Cells> {
    let built = indexes(sources).into_iter().filter(|placed| placed.build.is_none());
    built
        .map(|placed| {
            Cells::new()
                .set("table_name", text(&placed.table.keyspace))
                .set("index_name", text(&placed.index.name))
        })
        .collect()
}
