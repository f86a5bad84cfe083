//! Columns that several of these tables share.

use super::super::cells::Cells;
use helenus_schema::schema::encode::{boolean, double, int, map, text, text_map};
use helenus_schema::schema::{ColumnKind, Table, TableOptions};
use helenus_types::types::CqlType;

pub(super) fn named(table: &Table) -> Cells {
    Cells::new()
        .set("keyspace_name", text(&table.keyspace))
        .set("table_name", text(&table.name))
}

/// The options. Those that equal the node's configuration are null, as in Cassandra, which does that for older nodes.
pub(super) fn with_options(cells: Cells, o: &TableOptions) -> Cells {
    let extensions: Vec<_> = o
        .extensions
        .iter()
        .map(|(name, value)| (text(name), bytes::Bytes::copy_from_slice(value)))
        .collect();
    cells
        .set("additional_write_policy", text(&o.additional_write_policy))
        .set_if("allow_auto_snapshot", (!o.allow_auto_snapshot).then(|| boolean(false)))
        .set("bloom_filter_fp_chance", double(o.bloom_filter_fp_chance))
        .set("caching", text_map(&o.caching))
        .set("comment", text(&o.comment))
        .set("compaction", text_map(&o.compaction))
        .set("compression", text_map(&o.compression))
        .set("crc_check_chance", double(o.crc_check_chance))
        .set("dclocal_read_repair_chance", double(o.dclocal_read_repair_chance))
        .set("default_time_to_live", int(o.default_time_to_live))
        .set("extensions", map(&extensions))
        .set("gc_grace_seconds", int(o.gc_grace_seconds))
        .set_if("incremental_backups", (!o.incremental_backups).then(|| boolean(false)))
        .set("max_index_interval", int(o.max_index_interval))
        .set_if("memtable", (o.memtable != "default").then(|| text(&o.memtable)))
        .set("memtable_flush_period_in_ms", int(o.memtable_flush_period_in_ms))
        .set("min_index_interval", int(o.min_index_interval))
        .set("read_repair", text(&o.read_repair))
        .set("read_repair_chance", double(o.read_repair_chance))
        .set("speculative_retry", text(&o.speculative_retry))
}

pub(super) fn kind(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey => "partition_key",
        ColumnKind::Clustering => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

/// Argument types are written without `frozen`, although values are single-cell; those of tuples with it.
pub(super) fn argument(ty: &CqlType) -> String {
    helenus_schema::schema::typename::argument_name(ty)
}
