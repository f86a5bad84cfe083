//! Reads a page of the change feed.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use super::lesser;
use crate::engine::part::{PartRead, PartSink, Reader, Scratch, Step, bring_static, covering};
use crate::engine::{Error, storage_read};
use crate::partition::entries::{EntryRange, Located, Place};
use crate::partition::feed::{arc_of_token, value};
use crate::partition::{Hosted, LogicalPartition, PhysicalPartitionId, ReadView, TablePartitions};
use helenus_schema::command::{FeedPage, FeedPosition, FeedStart, FeedSweep, Partitions, Read};
use helenus_schema::schema::StorageId;
use helenus_storage::storage::{Deletions, RowView};
use helenus_types::token::{KeySpan, Token};

/// Entries of one store that are taken at once.
const TAKEN_ENTRIES: usize = 256;

/// Bytes of places that are taken at once.
const TAKEN_BYTES: usize = 256 * 1024;

/// Entries that a page passes at most, those of other partitions included. Then it ends, perhaps without a row.
const PASSED_ENTRIES_MAX: usize = 16 * 1024;

/// Memory of an entry that is kept, excluding its bytes.
const ENTRY_BYTES: usize = 64;

/// A sweep over part of a table's feed, or the rest of one.
pub(crate) struct Sweep<'a> {
    partitions: &'a TablePartitions,
    read: &'a Read,
    feed: StorageId,
    after: i64,
    until: i64,
    /// Up to which position the snapshots of this page are complete.
    horizon: i64,
    /// The last entry that was passed, without the number of the feed; empty means none.
    reached: Bytes,
    passed: usize,
    /// The physical partitions that this page has visited.
    visited: BTreeSet<PhysicalPartitionId>,
    /// The position after each row of the page. `None` means that the reader does not want them.
    after_rows: Option<Vec<FeedPosition>>,
}

/// An entry: its key without the number of the feed, its row's place, and the physical partition of the row.
struct Entry {
    suffix: Vec<u8>,
    place: Place,
    partition: Arc<Hosted>,
}

/// The entries taken next, and what follows them.
struct Taken {
    entries: Vec<Entry>,
    /// Everything up to this entry was taken. `None` means that the arc has no more.
    complete_to: Option<Vec<u8>>,
}

/// The logical partition whose rows are brought.
struct Current<'a> {
    partition: LogicalPartition<'a>,
    deletions: Deletions,
}

impl<'a> Sweep<'a> {
    /// Begins a sweep, or continues one. `horizon`: up to which position the snapshots, which are taken later, are
    /// complete.
    pub(crate) fn new(
        partitions: &'a TablePartitions,
        read: &'a Read,
        feed: StorageId,
        start: FeedStart,
        resume: Option<&FeedPosition>,
        horizon: i64,
    ) -> Self {
        let (after, sweep) = match resume {
            Some(position) => (position.after, position.sweep.clone()),
            None => (start.after(horizon), None),
        };
        let (until, reached) = sweep.map_or((horizon, Bytes::new()), |sweep| (sweep.until, sweep.reached));
        Self {
            partitions,
            read,
            feed,
            after,
            until,
            horizon,
            reached,
            passed: 0,
            visited: BTreeSet::new(),
            after_rows: None,
        }
    }

    /// Keeps the position after each row.
    pub(crate) fn with_positions(mut self) -> Self {
        self.after_rows = Some(Vec::new());
        self
    }

    /// Brings rows until the sweep or the page ends. After the rest of a sweep comes the next one: else a page would be empty
    /// although there is something new.
    ///
    /// # Errors
    /// A store or the sink fails.
    pub(crate) async fn run(
        mut self,
        bound: &PartRead<'_>,
        view: &mut ReadView,
        scratch: &mut Scratch<'_>,
        sink: &mut impl PartSink,
    ) -> Result<(FeedPosition, FeedPage), Error> {
        let mut reader = Reader::new(bound, 0, scratch, sink);
        let mut outcome = self.walk(view, &mut reader).await;
        if matches!(outcome, Ok(true)) && self.until < self.horizon {
            self.after = self.after.max(self.until);
            self.until = self.horizon;
            self.reached = Bytes::new();
            outcome = self.walk(view, &mut reader).await;
        }
        let walked = reader.receipt(Ok(Step::Continue), None).walked;
        sink.walked(walked);
        let is_at_end = outcome?;
        let position = FeedPosition {
            after: if is_at_end {
                self.after.max(self.until)
            } else {
                self.after
            },
            sweep: (!is_at_end).then(|| self.sweep()),
        };
        let after_rows = self.after_rows.unwrap_or_default();
        let page = FeedPage {
            after_rows,
            changes: Vec::new(),
            is_at_end,
        };
        Ok((position, page))
    }

    /// The place that it has reached.
    fn sweep(&self) -> FeedSweep {
        FeedSweep {
            until: self.until,
            reached: self.reached.clone(),
        }
    }

    /// Returns whether the sweep is whole.
    async fn walk(&mut self, view: &mut ReadView, reader: &mut Reader<'_, impl PartSink>) -> Result<bool, Error> {
        let span = match &self.read.partitions {
            Partitions::Ring(span) => span.clone(),
            Partitions::Keys(keys) => keys.first().and_then(|key| {
                let token = self.partitions.token(key).value();
                KeySpan::of_tokens(token, token)
            }),
        };
        let Some(span) = span else { return Ok(true) };
        let (lower, upper) = (span.lower(), span.upper());
        let partitions = self.partitions;
        for partition in partitions.all() {
            let is_read = partition.span.lower() <= upper && partition.span.upper() >= lower;
            if is_read && self.visited.insert(partition.id) {
                reader.enter(partition, None, true);
            }
        }
        if self.after >= self.until {
            return Ok(true);
        }
        let first = self.reached.first().copied().unwrap_or(0).max(arc_of_token(lower));
        for arc in first..=arc_of_token(upper) {
            let mut start = if self.reached.first() == Some(&arc) {
                Bound::Excluded(self.reached.to_vec())
            } else {
                Bound::Included(value(arc, self.after.saturating_add(1)).to_vec())
            };
            loop {
                let taken = self.take(view, arc, start, &span).await?;
                reader.hold_places(
                    taken
                        .entries
                        .iter()
                        .map(|entry| entry.suffix.len() + entry.place.as_ref().len() + ENTRY_BYTES)
                        .sum(),
                )?;
                if self.bring(taken.entries, view, reader).await? == Step::Stop {
                    return Ok(false);
                }
                let Some(complete_to) = taken.complete_to else { break };
                self.reached = complete_to.clone().into();
                if self.passed >= PASSED_ENTRIES_MAX {
                    return Ok(false);
                }
                start = Bound::Excluded(complete_to);
            }
        }
        reader.hold_places(0)?;
        Ok(true)
    }

    /// Takes the next entries of an arc from all stores, in the order of positions.
    async fn take(
        &mut self,
        view: &mut ReadView,
        arc: u8,
        start: Bound<Vec<u8>>,
        span: &KeySpan,
    ) -> Result<Taken, Error> {
        let end = value(arc, self.until.saturating_add(1));
        let range = EntryRange::between(self.feed, start.as_ref().map(Vec::as_slice), &end);
        let key = match &self.read.partitions {
            Partitions::Keys(keys) => keys.first(),
            Partitions::Ring(_) => None,
        };
        let mut entries = Vec::new();
        let mut complete_to: Option<Vec<u8>> = None;
        let partitions = self.partitions;
        for (id, _) in partitions.stores() {
            let (mut passed, mut taken, mut bytes, mut last) = (0, 0, 0, None);
            let visit = |entry: Located<'_>| {
                passed += 1;
                let is_wanted = span.contains(entry.token.value(), entry.partition_key.as_ref())
                    && key.is_none_or(|key| key.as_ref() == entry.partition_key.as_ref());
                if let Some(partition) = entry.partition.filter(|_| is_wanted) {
                    taken += 1;
                    bytes += entry.place.len();
                    entries.push(Entry {
                        suffix: entry.suffix(),
                        place: entry.place.to_place(),
                        partition: Arc::clone(partition),
                    });
                }
                if taken < TAKEN_ENTRIES && bytes < TAKEN_BYTES && passed < PASSED_ENTRIES_MAX {
                    return ControlFlow::Continue(());
                }
                last = Some(entry.suffix());
                ControlFlow::Break(())
            };
            let walked = partitions.located_in(id, &range, view, visit).await;
            walked.map_err(|error| storage_read(&error))?;
            self.passed += passed;
            complete_to = lesser(complete_to, last);
        }
        if let Some(complete_to) = &complete_to {
            entries.retain(|entry: &Entry| entry.suffix <= *complete_to);
        }
        entries.sort_unstable_by(|one, other| one.suffix.cmp(&other.suffix));
        Ok(Taken { entries, complete_to })
    }

    /// Brings the rows of entries. Stops after the one that fills the page.
    async fn bring(
        &mut self,
        entries: Vec<Entry>,
        view: &mut ReadView,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let mut charged: Option<PhysicalPartitionId> = None;
        for entry in &entries {
            if charged.replace(entry.partition.id) != Some(entry.partition.id) {
                let is_first = self.visited.insert(entry.partition.id);
                reader.enter(&entry.partition, None, is_first);
            }
            let rows_before = reader.rows_given();
            let step = self.bring_row(entry, view, reader).await?;
            self.reached = Bytes::copy_from_slice(&entry.suffix);
            if reader.rows_given() > rows_before {
                let sweep = self.sweep();
                if let Some(after_rows) = &mut self.after_rows {
                    after_rows.push(FeedPosition {
                        after: self.after,
                        sweep: Some(sweep),
                    });
                }
            }
            if step == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        Ok(Step::Continue)
    }

    async fn bring_row(
        &self,
        entry: &Entry,
        view: &mut ReadView,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let at = view.lend(&entry.partition);
        let (token, partition_key): (Token, _) = entry.place.logical().map_err(|error| storage_read(&error))?;
        let table = self.read.table.storage_id;
        let partition = entry.partition.logical(table, token, &partition_key)?;
        let deletions = partition.deletions(at).await.map_err(|error| storage_read(&error))?;
        let current = Current { partition, deletions };
        reader.begin_partition(&partition_key, None)?;
        let Some(key) = current
            .partition
            .row_at(&entry.place)
            .map_err(|error| storage_read(&error))?
        else {
            // A change of static columns: a row of its own, if the partition still has static values.
            bring_static(&current.partition, at, &current.deletions, reader).await?;
            return reader.end_partition();
        };
        if reader.wants_static() {
            bring_static(&current.partition, at, &current.deletions, reader).await?;
        }
        let Some(found) = current
            .partition
            .get(&key, at)
            .await
            .map_err(|error| storage_read(&error))?
        else {
            return Ok(Step::Continue);
        };
        let row = RowView::parse(&found.value).map_err(|error| storage_read(&error))?;
        let clustering = key.clustering();
        let step = reader.row(clustering, found.bytes, &row, covering(&current.deletions, clustering))?;
        Ok(if step == Step::Stop { step } else { Step::Continue })
    }
}
