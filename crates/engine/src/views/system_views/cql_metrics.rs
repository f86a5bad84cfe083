//! `system_views.cql_metrics`: prepared and other statements.

use std::sync::atomic::Ordering;

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use super::numbers::float;
use helenus_base::metrics;
use helenus_schema::schema::encode::{double, text};

pub(super) const VIEW: View = View::of("system_views", "cql_metrics", cql_metrics);

fn cql_metrics(sources: Sources<'_>) -> Vec<Cells> {
    let statements = sources.figures.map(|figures| figures.statements());
    let prepared = statements.map_or(0, |statements| statements.prepared.load(Ordering::Relaxed));
    let regular = statements.map_or(0, |statements| statements.executed().saturating_sub(prepared));
    let (prepared, regular) = (float(prepared), float(regular));
    let ratio = if prepared + regular > 0.0 {
        prepared / (prepared + regular)
    } else {
        0.0
    };
    [
        ("prepared_statements_count", float(sources.live.prepared as u64)),
        (
            "prepared_statements_evicted",
            float(metrics::STATEMENTS_EVICTED.value()),
        ),
        ("prepared_statements_executed", prepared),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", regular),
    ]
    .map(|(name, value)| Cells::new().set("name", text(name)).set("value", double(value)))
    .into()
}
