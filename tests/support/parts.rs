//! Physical partitions as a client sees them, for tests that split, merge and move them.

use super::{Client, printed};

/// A physical partition, as `system_cosmos.partitions` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) id: u64,
    pub(crate) epoch: u64,
    pub(crate) lower: i64,
    pub(crate) upper: i64,
    pub(crate) store: u32,
    pub(crate) rows: u64,
}

impl Client {
    /// The physical partitions of a table of `ks`, in the order of the ring, which they must cover.
    pub(crate) async fn parts(&self, table: &str) -> Vec<Part> {
        let text = format!(
            "SELECT id, epoch, lower, upper, store, stored_rows FROM system_cosmos.partitions WHERE keyspace_name = 'ks' AND table_name = '{table}'"
        );
        let rows = printed(&self.ok(&text).await);
        let part = |row: &String| {
            let fields: Vec<&str> = row.split(' ').collect();
            Part {
                id: fields[0].parse().unwrap(),
                epoch: fields[1].parse().unwrap(),
                lower: fields[2].parse().unwrap(),
                upper: fields[3].parse().unwrap(),
                store: fields[4].parse().unwrap(),
                rows: fields[5].parse().unwrap(),
            }
        };
        let parts: Vec<Part> = rows.iter().map(part).collect();
        assert_eq!((parts[0].lower, parts[parts.len() - 1].upper), (i64::MIN, i64::MAX));
        assert!(parts.windows(2).all(|pair| pair[0].upper + 1 == pair[1].lower));
        parts
    }
}
