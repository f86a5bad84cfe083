//! The rows of one logical partition, from its store to a reader.

use std::ops::{Bound, ControlFlow};

use super::reader::Reader;
use super::rows::{PartSink, Step};
use crate::engine::{Error, storage_read};
use crate::partition::{LogicalPartition, Moment};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::{Clustering, ClusteringRange, Position, Read};
use helenus_schema::schema::Table;
use helenus_storage::storage::{Deletions, RangeTombstone, RowView};

/// Rows that are looked up one by one before the task yields to other requests.
const ROWS_PER_TURN: usize = 256;

/// One logical partition being read.
pub(crate) struct Logical<'a> {
    /// The partition.
    pub(crate) partition: LogicalPartition<'a>,
    /// The snapshot that is read.
    pub(crate) at: &'a Moment,
    /// The SELECT.
    pub(crate) select: &'a Read,
    /// Its table.
    pub(crate) table: &'a Table,
    /// Its key.
    pub(crate) partition_key: &'a [u8],
}

impl Logical<'_> {
    /// Passes its rows to a reader, starting after `resume` if the previous page ended inside it.
    ///
    /// # Errors
    /// A store or the sink fails.
    pub(crate) async fn run(
        &self,
        resume: Option<&Position>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let deletions = self.partition.deletions(self.at).await;
        let deletions = deletions.map_err(|error| storage_read(&error))?;
        reader.begin_partition(self.partition_key, resume.map(|position| position.partition_limit_rows))?;
        if reader.wants_static() {
            bring_static(&self.partition, self.at, &deletions, reader).await?;
        }
        match &self.select.rows {
            Clustering::All => reader.note_ranges(deletions.ranges.len()),
            Clustering::Ranges(ranges) => {
                let meets = |deleted: &&RangeTombstone| ranges.iter().any(|range| overlaps(range, deleted));
                reader.note_ranges(deletions.ranges.iter().filter(meets).count());
            }
            // Of a single row only its own cells count.
            Clustering::Keys(_) => {}
        }
        let after = resume.and_then(|position| position.clustering.as_deref());
        let step = match &self.select.rows {
            Clustering::All if self.table.clustering_count == 0 => self.get(&[], after, &deletions, reader).await?,
            Clustering::All => {
                let whole = ClusteringRange {
                    start: Vec::new(),
                    end: None,
                };
                self.scan(std::slice::from_ref(&whole), after, &deletions, reader)
                    .await?
            }
            Clustering::Ranges(ranges) => self.scan(ranges, after, &deletions, reader).await?,
            Clustering::Keys(keys) => self.get_all(keys, after, &deletions, reader).await?,
        };
        if step == Step::Stop {
            Ok(step)
        } else {
            reader.end_partition()
        }
    }

    async fn get_all(
        &self,
        keys: &[Vec<u8>],
        after: Option<&[u8]>,
        deletions: &Deletions,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let count = keys.len();
        for number in 0..count {
            let place = if self.select.reversed {
                count - 1 - number
            } else {
                number
            };
            let Some(clustering) = keys.get(place) else { break };
            if number % ROWS_PER_TURN == ROWS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
            let step = self.get(clustering, after, deletions, reader).await?;
            if step != Step::Continue {
                return Ok(step);
            }
        }
        Ok(Step::Continue)
    }

    async fn get(
        &self,
        clustering: &[u8],
        after: Option<&[u8]>,
        deletions: &Deletions,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let is_before = after.is_some_and(|after| {
            if self.select.reversed {
                clustering >= after
            } else {
                clustering <= after
            }
        });
        if is_before {
            return Ok(Step::Continue);
        }
        let key = self.partition.prefix().row(clustering);
        let found = self.partition.get(&key, self.at).await;
        let Some(found) = found.map_err(|error| storage_read(&error))? else {
            reader.no_row();
            return Ok(Step::Continue);
        };
        let view = RowView::parse(&found.value).map_err(|error| storage_read(&error))?;
        reader.row(clustering, found.bytes, &view, deletions.timestamp_covering(clustering))
    }

    async fn scan(
        &self,
        ranges: &[ClusteringRange],
        after: Option<&[u8]>,
        deletions: &Deletions,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let count = ranges.len();
        for number in 0..count {
            let place = if self.select.reversed {
                count - 1 - number
            } else {
                number
            };
            let Some(range) = ranges.get(place) else { break };
            let mut outcome = Ok(Step::Continue);
            let bounds = self.bounds(range, after);
            let scanned = self
                .partition
                .scan(bounds, self.select.reversed, self.at, |clustering, row| {
                    outcome = RowView::parse(row.value)
                        .map_err(|error| storage_read(&error))
                        .and_then(|view| reader.row(clustering, row.bytes(), &view, covering(deletions, clustering)));
                    if matches!(outcome, Ok(Step::Continue)) {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                });
            scanned.await.map_err(|error| storage_read(&error))?;
            let step = outcome?;
            if step != Step::Continue {
                return Ok(step);
            }
        }
        Ok(Step::Continue)
    }

    /// The clustering bounds of the rest of a range.
    fn bounds<'r>(&self, range: &'r ClusteringRange, after: Option<&'r [u8]>) -> (Bound<&'r [u8]>, Bound<&'r [u8]>) {
        let mut start = Bound::Included(range.start.as_slice());
        let mut end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if let Some(after) = after {
            if self.select.reversed {
                if range.end.as_deref().is_none_or(|end| after < end) {
                    end = Bound::Excluded(after);
                }
            } else if after >= range.start.as_slice() {
                start = page_begin(after);
            }
        }
        (start, end)
    }
}

/// The start of a page if the previous page ended with this row.
fn page_begin(last: &[u8]) -> Bound<&[u8]> {
    if mutant::is_on(Mutant::PageRepeatsRow) {
        Bound::Included(last)
    } else {
        Bound::Excluded(last)
    }
}

/// The timestamp up to which partition and range deletions hide a row.
pub(crate) fn covering(deletions: &Deletions, clustering: &[u8]) -> Option<i64> {
    if deletions.is_empty() {
        None
    } else {
        deletions.timestamp_covering(clustering)
    }
}

/// Passes a partition's static row to a reader.
pub(crate) async fn bring_static(
    partition: &LogicalPartition<'_>,
    at: &Moment,
    deletions: &Deletions,
    reader: &mut Reader<'_, impl PartSink>,
) -> Result<(), Error> {
    let found = partition.get(&partition.prefix().static_row(), at).await;
    if let Some(found) = found.map_err(|error| storage_read(&error))? {
        let view = RowView::parse(&found.value).map_err(|error| storage_read(&error))?;
        reader.set_static(found.bytes, &view, deletions.timestamp_covering_static())?;
    }
    Ok(())
}

/// Whether a deleted range reaches into this one.
fn overlaps(range: &ClusteringRange, deleted: &RangeTombstone) -> bool {
    let begins_before_end = match (&deleted.start, range.end.as_deref()) {
        (Bound::Included(start) | Bound::Excluded(start), Some(end)) => start.as_slice() < end,
        _ => true,
    };
    let ends_behind_start = match &deleted.end {
        Bound::Included(end) => range.start <= *end,
        Bound::Excluded(end) => range.start < *end,
        Bound::Unbounded => true,
    };
    begins_before_end && ends_behind_start
}
