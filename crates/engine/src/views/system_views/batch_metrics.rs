//! `system_views.batch_metrics`: partitions that batches wrote.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use super::numbers::{float, long};
use helenus_schema::schema::encode::{double, text};

pub(super) const VIEW: View = View::of("system_views", "batch_metrics", batch_metrics);

fn batch_metrics(sources: Sources<'_>) -> Vec<Cells> {
    let Some(statements) = sources.figures.map(|figures| figures.statements()) else {
        return Vec::new();
    };
    [
        ("partitions_per_counter_batch", &statements.counter_batch_partitions),
        ("partitions_per_logged_batch", &statements.logged_batch_partitions),
        ("partitions_per_unlogged_batch", &statements.unlogged_batch_partitions),
    ]
    .map(|(name, partitions)| {
        let partitions = partitions.load();
        let quantile = |part| double(float(partitions.quantile(part)));
        Cells::new()
            .set("name", text(name))
            .set("max", long(partitions.max()))
            .set("p50th", quantile(0.5))
            .set("p999th", quantile(0.999))
            .set("p99th", quantile(0.99))
    })
    .into()
}
