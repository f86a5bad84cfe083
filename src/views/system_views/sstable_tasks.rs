//! `system_views.sstable_tasks`.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use super::indexes::{Placed, indexes};
use crate::engine::shown::IndexBuild;
use crate::schema::encode::{bigint, double, int, text, uuid};

pub(super) const VIEW: View = View::of("system_views", "sstable_tasks", sstable_tasks);

/// Running index builds: the only kind of Cassandra's tasks that Helenus has.
fn sstable_tasks(sources: Sources<'_>) -> Vec<Cells> {
    let mut building: Vec<(Placed<'_>, IndexBuild)> = indexes(sources)
        .into_iter()
        .filter_map(|placed| placed.build.map(|build| (placed, build)))
        .collect();
    building.sort_by_key(|(placed, build)| (&placed.table.keyspace, &placed.table.name, build.task));
    let count = |rows: u64| bigint(i64::try_from(rows).unwrap_or(i64::MAX));
    building
        .into_iter()
        .map(|(placed, build)| {
            // Row counts are far below the limit of exact integers in a double.
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let ratio = if build.rows_total == 0 {
                0.0
            } else {
                build.rows_passed as f64 / build.rows_total as f64
            };
            Cells::new()
                .set("keyspace_name", text(&placed.table.keyspace))
                .set("table_name", text(&placed.table.name))
                .set("task_id", uuid(build.task))
                .set("completion_ratio", double(ratio))
                .set("kind", text("secondary_index_build"))
                .set("progress", count(build.rows_passed))
                .set("sstables", int(0))
                .set("total", count(build.rows_total))
                .set("unit", text("rows"))
        })
        .collect()
}
