//! `system_views.caches`.
//!
//! Differs: only the row cache exists, and its entries are not counted.

use super::super::cells::Cells;
use super::super::view::View;
use super::numbers::{float, long};
use crate::engine::StoreFigures;
use helenus_schema::schema::encode::{double, text};

pub(super) const VIEW: View = View::of("system_views", "caches", |sources| {
    sources.of_services(|figures| vec![row_cache(&figures.store_figures())])
});

fn row_cache(cache: &StoreFigures) -> Cells {
    let requests = cache.row_cache_hits + cache.row_cache_misses;
    Cells::new()
        .set("name", text("rows"))
        .set("capacity_bytes", long(cache.row_cache_bytes_max))
        .set("hit_count", long(cache.row_cache_hits))
        // NaN before the first request, as in Cassandra.
        .set("hit_ratio", double(float(cache.row_cache_hits) / float(requests)))
        .set("request_count", long(requests))
        .set("size_bytes", long(cache.row_cache_bytes))
}
