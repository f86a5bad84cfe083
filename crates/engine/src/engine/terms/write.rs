//! A modification in progress: its statement and the partition map of its table.

use crate::partition::TablePartitions;
use helenus_schema::command::Write;
use helenus_schema::schema::Table;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

/// The parts of a request that its writes depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRequest {
    /// µs. `None` means that the node assigns it.
    pub(crate) timestamp_micros: Option<i64>,
    pub(crate) now_seconds: i64,
    pub(crate) consistency: Consistency,
    /// The level at which a condition is decided.
    pub(crate) serial_consistency: Consistency,
    /// The kind of write, for errors.
    pub(crate) write_kind: WriteKind,
}

/// A modification and the partition map of its table.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'a> {
    pub(crate) modification: &'a Write,
    pub(crate) partitions: &'a TablePartitions,
}

impl Routed<'_> {
    pub(in crate::engine) fn table(&self) -> &Table {
        &self.modification.table
    }

    pub(in crate::engine) fn locks(&self) -> impl Iterator<Item = (u32, i64)> {
        let (table, partitions) = (self.modification.table.storage_id, self.partitions);
        let keys = self.modification.partition_keys.iter();
        keys.map(move |key| {
            let spread = partitions.placement().spread(partitions.token(key), key);
            (table, spread)
        })
    }
}

/// Whether writes without conditions are made as those with conditions are: under the lock of their logical partition, and
/// dated above what is there. This is so in tables of entities, since another request may just compare the version of a row.
pub(crate) fn is_serial(writes: &[Write]) -> bool {
    let Some(first) = writes.first() else { return false };
    let is_of_entities = first.table.options.is_ordered && first.table.entity_layout().is_some();
    is_of_entities
        && first.partition_keys.len() == 1
        && writes
            .iter()
            .all(|write| write.table.id == first.table.id && write.partition_keys == first.partition_keys)
}
