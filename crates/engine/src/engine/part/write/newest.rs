//! The newest timestamp that a conditional request reads or writes, so that the request can be dated above it.
//!
//! Expired and hidden data counts too: it would hide a later write that is dated below it.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use crate::engine::{Error, storage_read};
use crate::partition::{LogicalPartition, Moment, RowKey};
use helenus_schema::command::{ClusteringRange, Write, WriteTarget};
use helenus_storage::storage::{Deletions, RangeTombstone, RowView};

use super::asked::rows_asked;

/// The rows and deletions that a request reads and writes in one logical partition.
#[derive(Default)]
struct Concerned<'a> {
    of_static: bool,
    rows: BTreeSet<&'a [u8]>,
    ranges: Vec<ClusteringRange>,
}

/// The newest timestamp of the rows, static rows and deletions that modifications of one logical partition check or
/// write. `None` means that there is none. `at` is the snapshot under which the conditions were checked. A plain write
/// that comes later with a newer timestamp must win. Costs a lookup for each row, and a scan for each range that is
/// deleted.
///
/// # Errors
/// The store fails.
pub(super) async fn of(writes: &[&Write], partition: &LogicalPartition<'_>, at: &Moment) -> Result<Option<i64>, Error> {
    let mut concerned = Concerned::default();
    for write in writes {
        concerned.add(write);
    }
    let deletions = partition.deletions(at).await;
    let deletions = deletions.map_err(|error| storage_read(&error))?;
    let prefix = partition.prefix();
    // It covers whatever is concerned.
    let mut newest = deletions.timestamp_covering_static();
    if concerned.of_static {
        newest = newest.max(in_row(partition, &prefix.static_row(), at).await?);
    }
    for row in &concerned.rows {
        newest = newest.max(deletions.timestamp_covering(row));
        newest = newest.max(in_row(partition, &prefix.row(row), at).await?);
    }
    for range in &concerned.ranges {
        newest = newest.max(covering(&deletions, range));
        newest = newest.max(in_range(partition, range, at).await?);
    }
    Ok(newest)
}

impl<'a> Concerned<'a> {
    fn add(&mut self, modification: &'a Write) {
        for row in rows_asked(modification) {
            match row {
                Some(row) => drop(self.rows.insert(row)),
                None => self.of_static = true,
            }
        }
        self.of_static |= modification.names_static;
        match &modification.target {
            WriteTarget::Static => self.of_static = true,
            WriteTarget::Rows(rows) => self.rows.extend(rows.iter().map(Vec::as_slice)),
            WriteTarget::Ranges(ranges) => self.ranges.extend(ranges.iter().cloned()),
            WriteTarget::Partition => {
                self.of_static = true;
                self.ranges.push(ClusteringRange {
                    start: Vec::new(),
                    end: None,
                });
            }
        }
    }
}

/// The newest timestamp in the row of a key.
async fn in_row(partition: &LogicalPartition<'_>, key: &RowKey, at: &Moment) -> Result<Option<i64>, Error> {
    let found = partition.get(key, at).await;
    let Some(found) = found.map_err(|error| storage_read(&error))? else {
        return Ok(None);
    };
    let newest = RowView::parse(&found.value).and_then(|row| row.newest_timestamp());
    newest.map_err(|error| storage_read(&error))
}

/// The newest timestamp in the rows of a range.
async fn in_range(
    partition: &LogicalPartition<'_>,
    range: &ClusteringRange,
    at: &Moment,
) -> Result<Option<i64>, Error> {
    let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let bounds = (Bound::Included(range.start.as_slice()), end);
    let mut newest = Ok(None);
    let scanned = partition.scan(bounds, false, at, |_, row| {
        let of_row = RowView::parse(row.value).and_then(|row| row.newest_timestamp());
        match (&mut newest, of_row) {
            (Ok(newest), Ok(of_row)) => {
                *newest = (*newest).max(of_row);
                ControlFlow::Continue(())
            }
            (_, Err(error)) => {
                newest = Err(error);
                ControlFlow::Break(())
            }
            (Err(_), _) => ControlFlow::Break(()),
        }
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    newest.map_err(|error| storage_read(&error))
}

/// The newest of the range deletions that overlap this range.
fn covering(deletions: &Deletions, range: &ClusteringRange) -> Option<i64> {
    let meets = |other: &&RangeTombstone| {
        let begins_before = match &range.end {
            None => true,
            Some(end) => match &other.start {
                Bound::Unbounded => true,
                Bound::Included(start) | Bound::Excluded(start) => start < end,
            },
        };
        let ends_after = match &other.end {
            Bound::Unbounded => true,
            Bound::Included(end) => *end >= range.start,
            Bound::Excluded(end) => *end > range.start,
        };
        begins_before && ends_after
    };
    let meeting = deletions.ranges.iter().filter(meets);
    meeting.map(|range| range.deletion.timestamp).max()
}
