//! User indexes, for the tables that show them.

use super::super::view::Sources;
use crate::engine::shown::IndexBuild;
use helenus_schema::schema::{Index, Table, system};

/// An index with its keyspace and table.
pub(in crate::views) struct Placed<'a> {
    pub(in crate::views) table: &'a Table,
    pub(in crate::views) index: &'a Index,
    /// The progress of the build; `None` means that the index is complete.
    pub(in crate::views) build: Option<IndexBuild>,
}

/// The indexes of the users' keyspaces, by keyspace and name.
pub(in crate::views) fn indexes(sources: Sources<'_>) -> Vec<Placed<'_>> {
    let builds = sources.of_services(|figures| figures.index_builds());
    let mut indexes: Vec<Placed<'_>> = sources
        .schema
        .keyspaces
        .values()
        .filter(|keyspace| !system::is_name(&keyspace.name))
        .flat_map(|keyspace| keyspace.tables.values())
        .flat_map(|table| table.indexes.values().map(move |index| (table, index)))
        .map(|(table, index)| {
            let mut builds = builds.iter();
            let build = builds.find(|build| build.index == index.storage_id && index.storage_id != 0);
            let build = build.copied();
            Placed { table, index, build }
        })
        .collect();
    indexes.sort_by_key(|placed| (&placed.table.keyspace, &placed.index.name));
    indexes
}
