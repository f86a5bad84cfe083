//! The memory of the process by holder: `system_cosmos.memory`, `/api/status`, a family of Prometheus, and a line of
//! `helenus status`.
//!
//! Each holder counts its own bytes; the sum of all is the memory of the process as the kernel counts it. `other` is
//! what no holder counts: free pages of the allocator, and figures of requests. Without the kernel's figure it is left
//! out.

use super::figure::{Figure, Kind, Value};
use super::printed::{Row, size};
use super::view::Sources;
use crate::engine::{Figures, StoreFigures};
use helenus_base::memory::Resident;

/// A holder of memory.
pub(super) struct Holder {
    name: &'static str,
    bytes: u64,
    /// `None` means that it has no bound of its own.
    bytes_max: Option<u64>,
}

pub(super) static FIGURES: &[Figure<Holder>] = &[
    Figure::new("What holds it.", |of: &Holder| Value::text(of.name))
        .keyed(Kind::Partition, "holder", "text")
        .json("holder")
        .label("holder"),
    Figure::new("Memory of the process by holder.", |of: &Holder| Value::Count(of.bytes))
        .column("bytes", "bigint")
        .json("bytes")
        .gauge("memory_bytes"),
    Figure::new("The most that it may take.", |of: &Holder| {
        Value::optional(of.bytes_max, Value::Count)
    })
    .column("bytes_max", "bigint")
    .json("bytes_max")
    .gauge("memory_bytes_max"),
];

/// All holders. Their sum is the memory of the process, where the kernel tells it.
pub(super) fn holders(sources: Sources<'_>) -> Vec<Holder> {
    let live = sources.live;
    let store = sources.figures.map(|figures: Figures<'_>| figures.store_figures());
    let store = store.unwrap_or_default();
    let resident = Resident::read();
    let mut holders = of_stores(&store);
    let counted = [
        ("prepared_statements", live.prepared_bytes, None),
        (
            "connections",
            live.load.memory_bytes,
            Some(live.load.memory_bytes_max as u64),
        ),
    ];
    holders.extend(counted.map(|(name, bytes, bytes_max)| Holder {
        name,
        bytes: bytes as u64,
        bytes_max,
    }));
    let unbound = |name, bytes| Holder {
        name,
        bytes,
        bytes_max: None,
    };
    holders.push(unbound("start", live.facts.started_bytes));
    if let Some(resident) = resident {
        holders.push(unbound("program", resident.files));
        let counted: u64 = holders.iter().map(|holder| holder.bytes).sum();
        holders.push(unbound("other", resident.all.saturating_sub(counted)));
    }
    holders
}

fn of_stores(store: &StoreFigures) -> Vec<Holder> {
    let holder = |name, bytes, bytes_max| Holder { name, bytes, bytes_max };
    vec![
        holder("row_cache", store.row_cache_bytes, Some(store.row_cache_bytes_max)),
        holder("memtables", store.held.memtables, None),
        holder("block_cache", store.held.block_cache, None),
        holder("table_indexes", store.held.table_indexes, None),
        holder("key_filter", store.held.key_filter, None),
    ]
}

/// The line of `helenus status`: the largest holders, and the sum.
pub(super) fn line(row: &Row<'_>) -> Option<String> {
    let holders = row.get("memory").as_array()?;
    let mut holders: Vec<(String, u64)> = holders
        .iter()
        .map(|holder| (Row(holder).text("holder"), Row(holder).count("bytes")))
        .collect();
    holders.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let all: u64 = holders.iter().map(|(_, bytes)| bytes).sum();
    let largest: Vec<String> = holders
        .iter()
        .filter(|(_, bytes)| *bytes >= all / 50)
        .map(|(name, bytes)| format!("{} {}", name.replace('_', " "), size(*bytes)))
        .collect();
    Some(format!("{}: {}", size(all), largest.join(", ")))
}
