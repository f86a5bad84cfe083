//! `system_views.sstable_tasks`.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use super::indexes::indexes;
use crate::engine::shown::IndexBuild;
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::{bigint, double, int, text, uuid};

pub(super) const VIEW: View = View::of("system_views", "sstable_tasks", sstable_tasks);

/// Running builds of indexes, the only kind of Cassandra's tasks that Helenus has, and of change feeds.
fn sstable_tasks(sources: Sources<'_>) -> Vec<Cells> {
    let of_indexes = indexes(sources).into_iter();
    let mut building: Vec<(&Table, IndexBuild, &str)> = of_indexes
        .filter_map(|placed| Some((placed.table, placed.build?, "secondary_index_build")))
        .collect();
    let builds = sources.of_services(|figures| figures.index_builds());
    if builds.len() > building.len() {
        let keyspaces = sources.schema.keyspaces.values();
        let fed = keyspaces
            .flat_map(|keyspace| keyspace.tables.values())
            .filter_map(|table| Some((table, table.feed()?)));
        building.extend(fed.filter_map(|(table, feed)| {
            let build = builds.iter().find(|build| build.index == feed)?;
            Some((table.as_ref(), *build, "change_feed_build"))
        }));
    }
    building.sort_by_key(|(table, build, _)| (&table.keyspace, &table.name, build.task));
    let count = |rows: u64| bigint(i64::try_from(rows).unwrap_or(i64::MAX));
    building
        .into_iter()
        .map(|(table, build, kind)| {
            // Row counts are far below the limit of exact integers in a double.
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let ratio = if build.rows_total == 0 {
                0.0
            } else {
                build.rows_passed as f64 / build.rows_total as f64
            };
            Cells::new()
                .set("keyspace_name", text(&table.keyspace))
                .set("table_name", text(&table.name))
                .set("task_id", uuid(build.task))
                .set("completion_ratio", double(ratio))
                .set("kind", text(kind))
                .set("progress", count(build.rows_passed))
                .set("sstables", int(0))
                .set("total", count(build.rows_total))
                .set("unit", text("rows"))
        })
        .collect()
}
