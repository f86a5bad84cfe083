//! `system.size_estimates` and `system.table_estimates`: the size of each table in this node's primary token ranges.
//! Tools that read a table in parallel (DSBulk, the Spark connector) split it by them.
//!
//! Ranges are those of Cassandra's `SizeEstimatesRecorder`: from the previous token, exclusive, to each of the node's
//! tokens. The range that wraps around the ring is split at the lowest token. A physical partition's data counts as
//! spread evenly over its tokens.
//!
//! Differs: `partitions_count` counts rows, since logical partitions are not counted, so `mean_partition_size` is the
//! mean size of a row. Tools choose their splits by the product of the two, which is the bytes of the range. Estimates
//! are as of the read, not of the last five minutes. SlateDB knows the bytes of its tables and no rows: the rows are
//! then those of an assumed size.

use super::super::cells::Cells;
use super::super::view::{Rows, Sources, View};
use crate::engine::PartitionFigures;
use helenus_schema::schema::encode::{bigint, text};
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::system;

pub(super) const OF_SIZES: View = View {
    keyspace: "system",
    name: "size_estimates",
    own: None,
    rows: Rows::Counted(|sources| {
        let stored = stored(sources);
        let estimates = estimates(sources.node, &stored);
        estimates.iter().map(|of| of.cells(Cells::new())).collect()
    }),
};

pub(super) const OF_TABLES: View = View {
    keyspace: "system",
    name: "table_estimates",
    own: None,
    rows: Rows::Counted(|sources| {
        let stored = stored(sources);
        let estimates = estimates(sources.node, &stored);
        let by_table = estimates.chunk_by(|a, b| (a.keyspace, a.table) == (b.keyspace, b.table));
        // With one data center, its ranges are those of the whole ring.
        let of_type = |kind, of: &[Estimate<'_>]| -> Vec<Cells> {
            let cells = of.iter().map(|of| of.cells(Cells::new().set("range_type", text(kind))));
            cells.collect()
        };
        by_table
            .flat_map(|of| [of_type("local_primary", of), of_type("primary", of)])
            .flatten()
            .collect()
    }),
};

/// Part of a table.
#[derive(Debug, PartialEq, Eq)]
struct Estimate<'a> {
    keyspace: &'a str,
    table: &'a str,
    start: i64,
    end: i64,
    rows: u64,
    bytes: u64,
}

impl Estimate<'_> {
    fn cells(&self, cells: Cells) -> Cells {
        let count = |number: u64| bigint(i64::try_from(number).unwrap_or(i64::MAX));
        cells
            .set("keyspace_name", text(self.keyspace))
            .set("table_name", text(self.table))
            .set("range_start", text(&self.start.to_string()))
            .set("range_end", text(&self.end.to_string()))
            .set(
                "mean_partition_size",
                count(self.bytes.checked_div(self.rows).unwrap_or(0)),
            )
            .set("partitions_count", count(self.rows))
    }
}

/// The size of a row, in bytes, where nothing is known of the rows. Gap: cql-10.
const ROW_BYTES: u64 = 128;

/// The rows of a physical partition: those that were counted, or as many as its bytes may be.
fn rows(partition: &PartitionFigures) -> u64 {
    if partition.rows == 0 && !partition.is_exact {
        return partition.bytes.div_ceil(ROW_BYTES);
    }
    partition.rows
}

/// The physical partitions of the tables that have estimates: all but Cassandra's local ones.
fn stored(sources: Sources<'_>) -> Vec<PartitionFigures> {
    let mut stored = sources.of_services(|figures| figures.partitions());
    stored.retain(|partition| !system::is_local(&partition.keyspace));
    stored.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
    stored
}

/// A node's primary token ranges, start exclusive, end inclusive. A range that ends at the lowest token ends with the
/// ring.
fn primary_ranges(node: &NodeInfo) -> Vec<(i64, i64)> {
    let of_peers = node.peers.iter().flat_map(|peer| &peer.tokens);
    let mut ring: Vec<i64> = node.tokens.iter().chain(of_peers).copied().collect();
    ring.sort_unstable();
    ring.dedup();
    let mut ranges = Vec::with_capacity(node.tokens.len() + 1);
    for token in &node.tokens {
        let place = ring.partition_point(|other| other < token);
        match place.checked_sub(1).and_then(|before| ring.get(before)) {
            Some(before) => ranges.push((*before, *token)),
            None => {
                let last = ring.last().copied().unwrap_or(i64::MIN);
                ranges.push((last, i64::MIN));
                ranges.push((i64::MIN, *token));
            }
        }
    }
    ranges.retain(|(start, end)| start != end);
    // Sorted as text, because the tables cluster by the text.
    ranges.sort_by_cached_key(|(start, end)| (start.to_string(), end.to_string()));
    ranges
}

/// By table, then by range; `stored` is in the order of tables.
fn estimates<'a>(node: &NodeInfo, stored: &'a [PartitionFigures]) -> Vec<Estimate<'a>> {
    let ranges = primary_ranges(node);
    let mut estimates = Vec::new();
    for partitions in stored.chunk_by(|a, b| (&a.keyspace, &a.table) == (&b.keyspace, &b.table)) {
        let Some(first) = partitions.first() else { continue };
        for (start, end) in ranges.iter().copied() {
            let (mut rows, mut bytes) = (0_u64, 0_u64);
            for partition in partitions {
                rows += share(partition, start, end, self::rows(partition));
                bytes += share(partition, start, end, partition.bytes);
            }
            // A range with bytes has a row, or a product of both would be nothing.
            let rows = rows.max(bytes.min(1));
            estimates.push(Estimate {
                keyspace: &first.keyspace,
                table: &first.table,
                start,
                end,
                rows,
                bytes,
            });
        }
    }
    estimates
}

/// The share of a partition's amount between two tokens, start exclusive, end inclusive.
fn share(partition: &PartitionFigures, start: i64, end: i64, amount: u64) -> u64 {
    let end = if end == i64::MIN { i64::MAX } else { end };
    let from = (i128::from(start) + 1).max(partition.lower.into());
    let to = i128::from(end).min(partition.upper.into());
    let width = i128::from(partition.upper) - i128::from(partition.lower) + 1;
    // At most 2⁶⁴ tokens and 2⁶² rows or bytes.
    let share = (to - from + 1).max(0) * i128::from(amount.min(1 << 62)) / width.max(1);
    u64::try_from(share).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use uuid::Uuid;

    use super::*;
    use crate::throughput::RequestUnits;
    use helenus_schema::schema::node::Peer;

    fn node(tokens: &[i64], peer: &[i64]) -> NodeInfo {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut node = NodeInfo::single(Uuid::nil(), address, 9042);
        node.tokens = tokens.to_vec();
        if !peer.is_empty() {
            node.peers = vec![Peer {
                address,
                native_address: address,
                host_id: Uuid::nil(),
                data_center: String::new(),
                rack: String::new(),
                tokens: peer.to_vec(),
                port: 7000,
                native_port: 9042,
            }];
        }
        node
    }

    fn partition(lower: i64, upper: i64, rows: u64) -> PartitionFigures {
        PartitionFigures {
            id: 0,
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            lower,
            upper,
            lower_key: Vec::new(),
            upper_key: None,
            epoch: 0,
            store: 0,
            replicas: 4,
            replicas_alive: 4,
            bytes: rows * 10,
            rows,
            is_exact: true,
            per_second: RequestUnits::default(),
            budget: None,
            request_units: RequestUnits::default(),
        }
    }

    #[test]
    fn ranges_are_those_of_cassandra() {
        // As Cassandra 5.0.9 shows them for such tokens: the range around the ring is split in two.
        let ranges = primary_ranges(&node(&[-50, 60], &[]));
        assert_eq!(ranges, [(-50, 60), (i64::MIN, -50), (60, i64::MIN)]);
        assert_eq!(primary_ranges(&node(&[0], &[])), [(i64::MIN, 0), (0, i64::MIN)]);
        // A range begins at the previous token, which may belong to any node.
        assert_eq!(primary_ranges(&node(&[60], &[-50, 10])), [(10, 60)]);
        assert_eq!(primary_ranges(&node(&[i64::MAX], &[i64::MIN])), [(i64::MIN, i64::MAX)]);
    }

    #[test]
    fn rows_that_nobody_counted_are_reckoned_from_their_bytes() {
        let node = node(&[0], &[]);
        let of = |rows, bytes, is_exact| PartitionFigures {
            bytes,
            is_exact,
            ..partition(i64::MIN, i64::MAX, rows)
        };
        let products = |figures: PartitionFigures| -> u64 {
            let stored = [figures];
            let found = estimates(&node, &stored);
            let product = |of: &Estimate<'_>| of.bytes.checked_div(of.rows).unwrap_or(0) * of.rows;
            found.iter().map(product).sum()
        };
        // SlateDB has bytes only: a tool that splits by the product sees them, but for what rounding takes of each range.
        let seen = products(of(0, 1 << 30, false));
        assert!((1 << 30) - seen < 1024, "{seen}");
        assert!(products(of(0, 100, false)) > 0);
        // What is exact stays so.
        assert_eq!(products(of(0, 0, true)), 0);
        assert_eq!(products(of(0, 0, false)), 0);
    }

    #[test]
    fn what_a_table_holds_is_shared_out_by_tokens() {
        let node = node(&[-(1 << 62), 1 << 62], &[]);
        let halves = [partition(i64::MIN, -1, 1000), partition(0, i64::MAX, 400)];
        let found = estimates(&node, &halves);
        let shares: Vec<_> = found.iter().map(|of| (of.start, of.rows, of.bytes)).collect();
        assert_eq!(
            shares,
            [
                (-(1 << 62), 499 + 200, 4999 + 2000),
                (i64::MIN, 500, 5000),
                (1 << 62, 199, 1999)
            ]
        );
        // A range of one token, and the largest possible amounts.
        let one = [partition(5, 5, 1 << 58)];
        let rows: Vec<_> = estimates(&node, &one).iter().map(|of| of.rows).collect();
        assert_eq!(rows, [1 << 58, 0, 0]);
    }
}
