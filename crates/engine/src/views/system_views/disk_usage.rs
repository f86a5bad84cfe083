//! `system_views.disk_usage`: bytes by table.
//!
//! Differs: bytes of keys and values before the engine's compression.

use super::super::cells::Cells;
use super::super::view::View;
use super::numbers::long;
use helenus_schema::schema::encode::text;

pub(super) const VIEW: View = View::of("system_views", "disk_usage", |sources| {
    sources
        .of_services(|figures| figures.disk_usage())
        .iter()
        .map(disk_usage)
        .collect()
});

fn disk_usage((keyspace, table, bytes): &(String, String, u64)) -> Cells {
    Cells::new()
        .set("keyspace_name", text(keyspace))
        .set("table_name", text(table))
        .set("mebibytes", long(bytes.div_ceil(1024 * 1024)))
}
