//! Which part of an ordered table one server serves: what a scan reads before it comes to another server.

use bytes::Bytes;

use super::fault_injection::place;
use super::figures::Figures;
use crate::partition::{PhysicalPartition, Placed};
use helenus_schema::schema::Table;
use helenus_types::token::Token;

/// Where a scan of an ordered table comes to something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundary {
    /// At each physical partition.
    Range,
    /// Where another node is in charge.
    #[default]
    Server,
}

impl Figures<'_> {
    /// The first partition key behind a key that lies beyond a boundary; `None` means that there is none, or no such table.
    #[must_use]
    pub fn served_until(&self, table: &Table, partition_key: &[u8], boundary: Boundary) -> Option<Bytes> {
        if boundary == Boundary::Server && self.nodes.count() == 1 {
            return None;
        }
        let snapshot = self.catalog.load();
        let map = snapshot.partitions(table).ok()?;
        let token = Token::OF_ORDERED.value();
        let is_passed = |partition: &Placed| !partition.span.ends_after(token, partition_key);
        let mut rest = map.all().get(map.all().partition_point(is_passed)..)?.iter();
        let mut last = rest.next()?;
        if boundary == Boundary::Server {
            let node = self.in_charge(table, last);
            last = rest
                .take_while(|next| self.in_charge(table, next) == node)
                .last()
                .unwrap_or(last);
        }
        let end = last.span.end()?;
        Some(Bytes::copy_from_slice(end.partition_key()))
    }

    /// The physical partition of a key of an ordered table: its number, and the epoch since which it is what and where it is. `None` means
    /// that there is no such table.
    #[must_use]
    pub fn range_of(&self, table: &Table, partition_key: &[u8]) -> Option<(u64, u64)> {
        let snapshot = self.catalog.load();
        let map = snapshot.partitions(table).ok()?;
        let partition = map.place(partition_key).1;
        Some((partition.id.0, partition.epoch))
    }

    /// The greatest epoch of the physical partitions of a table; 0 means that none was ever split, merged or moved.
    #[must_use]
    pub fn last_change_of_ranges(&self, table: &Table) -> u64 {
        let snapshot = self.catalog.load();
        let map = snapshot.partitions(table).ok();
        let epochs = map
            .into_iter()
            .flat_map(|map| map.all().iter().map(|partition| partition.epoch));
        epochs.max().unwrap_or_default()
    }

    /// The node that is in charge of a partition, from 0; `None` means that too few are alive.
    fn in_charge(&self, table: &Table, partition: &PhysicalPartition) -> Option<usize> {
        let shown = self.nodes.shown(&place(table, partition));
        let writer = shown.replicas.iter().find(|replica| replica.is_writer);
        writer.map(|replica| replica.node)
    }
}
