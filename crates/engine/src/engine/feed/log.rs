//! Reads a page of the full fidelity change feed: the change log of a table.
//!
//! A sweep and its positions are those of the incremental feed (mod.rs), but the entries are of
//! [`crate::partition::log`]. Each change brings the rows that [`FeedChange`] names, evaluated at the time of the change:
//! what had expired then does not show.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::{bounds, lesser};
use crate::engine::part::{PartRead, PartSink, Reader, Scratch, Step};
use crate::engine::{Error, storage_read, value};
use crate::partition::TablePartitions;
use crate::partition::feed::arc_of_token;
use crate::partition::log::{self, Change, Images, LogEntry, LogMoment, What};
use helenus_schema::command::{
    FeedBound, FeedChange, FeedChanged, FeedOperation, FeedPage, FeedPosition, FeedStart, FeedSweep, Partitions, Read,
};
use helenus_schema::schema::{StorageId, Table};
use helenus_storage::storage::deletion::Covered;
use helenus_storage::storage::{Damaged, Record, RowView};
use helenus_types::token::KeySpan;

/// Entries of one store that are taken at once.
const TAKEN_ENTRIES: usize = 64;

/// Bytes of entries of one store that are taken at once.
const TAKEN_BYTES: usize = 256 * 1024;

/// Entries that a page passes at most, those of other partitions included.
const PASSED_ENTRIES_MAX: usize = 4 * 1024;

/// Changes of a page: those that bring no image do not fill it.
const CHANGES_MAX: usize = 1000;

/// A sweep over part of a table's change log, or the rest of one.
pub(crate) struct LogSweep<'a> {
    pub(crate) partitions: &'a TablePartitions,
    pub(crate) read: &'a Read,
    pub(crate) log: StorageId,
    /// The stores that may have entries, each at one moment.
    pub(crate) stores: Vec<LogMoment>,
    after: i64,
    until: i64,
    horizon: i64,
    /// The place of the last entry that was passed; empty means none.
    reached: Bytes,
    passed: usize,
    changes: Vec<FeedChange>,
    after_rows: Vec<FeedPosition>,
}

/// The entries taken next, and what follows them.
struct Taken {
    entries: Vec<LogEntry>,
    /// Everything up to this place was taken. `None` means that the arc has no more.
    complete_to: Option<Bytes>,
}

impl<'a> LogSweep<'a> {
    /// Begins a sweep, or continues one. `horizon`: up to which position the snapshots of the stores are complete.
    /// `floor`: up to which position the log has no changes.
    ///
    /// Returns `None` if the reader wants changes up to the floor.
    pub(crate) fn new(
        (partitions, stores): (&'a TablePartitions, Vec<LogMoment>),
        read: &'a Read,
        log: StorageId,
        start: FeedStart,
        resume: Option<&FeedPosition>,
        (floor, horizon): (i64, i64),
    ) -> Option<Self> {
        let (after, sweep) = match (resume, start) {
            (Some(position), _) => (position.after, position.sweep.clone()),
            (None, FeedStart::Beginning) => (floor, None),
            (None, FeedStart::Now) => (horizon.max(floor), None),
            (None, FeedStart::At(_)) => (start.after(horizon), None),
        };
        let horizon = horizon.max(floor);
        let (until, reached) = sweep.map_or((horizon, Bytes::new()), |sweep| (sweep.until, sweep.reached));
        (after >= floor).then_some(Self {
            partitions,
            read,
            log,
            stores,
            after,
            until,
            horizon,
            reached,
            passed: 0,
            changes: Vec::new(),
            after_rows: Vec::new(),
        })
    }

    /// Brings changes until the sweep or the page ends.
    ///
    /// # Errors
    /// A store or the sink fails.
    pub(crate) async fn run(
        mut self,
        bound: &PartRead<'_>,
        scratch: &mut Scratch<'_>,
        sink: &mut impl PartSink,
    ) -> Result<(FeedPosition, FeedPage), Error> {
        let mut is_at_end = self.walk(bound, scratch, sink).await?;
        if is_at_end && self.until < self.horizon {
            self.after = self.after.max(self.until);
            self.until = self.horizon;
            self.reached = Bytes::new();
            is_at_end = self.walk(bound, scratch, sink).await?;
        }
        let position = if is_at_end {
            FeedPosition {
                after: self.after.max(self.until),
                sweep: None,
            }
        } else {
            self.position()
        };
        let page = FeedPage {
            after_rows: self.after_rows,
            changes: self.changes,
            is_at_end,
        };
        Ok((position, page))
    }

    /// The place that it has reached.
    fn position(&self) -> FeedPosition {
        FeedPosition {
            after: self.after,
            sweep: Some(FeedSweep {
                until: self.until,
                reached: self.reached.clone(),
            }),
        }
    }

    /// Returns whether the sweep is whole.
    async fn walk(
        &mut self,
        bound: &PartRead<'_>,
        scratch: &mut Scratch<'_>,
        sink: &mut impl PartSink,
    ) -> Result<bool, Error> {
        let span = match &self.read.partitions {
            Partitions::Ring(span) => span.clone(),
            Partitions::Keys(keys) => keys.first().and_then(|key| {
                let token = self.partitions.token(key).value();
                KeySpan::of_tokens(token, token)
            }),
        };
        let Some(span) = span else { return Ok(true) };
        let (lower, upper) = (span.lower(), span.upper());
        {
            let mut reader = Reader::new(bound, 0, scratch, sink);
            for partition in self.partitions.all() {
                if partition.span.lower() <= upper && partition.span.upper() >= lower {
                    reader.enter(partition, None, true);
                }
            }
        }
        if self.after >= self.until {
            return Ok(true);
        }
        let reached_arc = log::arc_of_place(&self.reached);
        let first = reached_arc.unwrap_or(0).max(arc_of_token(lower));
        for arc in first..=arc_of_token(upper) {
            let mut behind = (reached_arc == Some(arc)).then(|| self.reached.clone());
            loop {
                let taken = self.take(arc, behind.as_deref(), &span).await?;
                sink.hold_places(taken.entries.iter().map(LogEntry::bytes).sum())?;
                for entry in &taken.entries {
                    let step = self.bring(entry, bound, scratch, sink)?;
                    if step == Step::Stop || self.changes.len() >= CHANGES_MAX {
                        return Ok(false);
                    }
                }
                let Some(complete_to) = taken.complete_to else { break };
                self.reached = complete_to.clone();
                if self.passed >= PASSED_ENTRIES_MAX {
                    return Ok(false);
                }
                behind = Some(complete_to);
            }
        }
        sink.hold_places(0)?;
        Ok(true)
    }

    /// Takes the next entries of an arc from all stores, in order.
    async fn take(&mut self, arc: u8, behind: Option<&[u8]>, span: &KeySpan) -> Result<Taken, Error> {
        let mut entries = Vec::new();
        let mut complete_to: Option<Bytes> = None;
        for store in &self.stores {
            let (mut passed, mut taken, mut bytes, mut last) = (0, 0, 0, None);
            let visit = |entry: LogEntry| {
                passed += 1;
                let place = entry.place.clone();
                if (span.lower()..=span.upper()).contains(&entry.token) {
                    taken += 1;
                    bytes += entry.bytes();
                    entries.push(entry);
                }
                if taken < TAKEN_ENTRIES && bytes < TAKEN_BYTES && passed < PASSED_ENTRIES_MAX {
                    return ControlFlow::Continue(());
                }
                last = Some(place);
                ControlFlow::Break(())
            };
            let walked = store.walk(self.log, (arc, self.after, self.until), behind, visit).await;
            walked.map_err(|error| storage_read(&error))?;
            self.passed += passed;
            complete_to = lesser(complete_to, last);
        }
        if let Some(complete_to) = &complete_to {
            entries.retain(|entry: &LogEntry| entry.place <= *complete_to);
        }
        entries.sort_unstable();
        // An entry that was copied may be in two stores.
        entries.dedup_by(|next, kept| next.place == kept.place);
        Ok(Taken { entries, complete_to })
    }

    /// Brings one change.
    fn bring(
        &mut self,
        entry: &LogEntry,
        bound: &PartRead<'_>,
        scratch: &mut Scratch<'_>,
        sink: &mut impl PartSink,
    ) -> Result<Step, Error> {
        let change = entry.change().map_err(|error| storage_read(&error))?;
        self.reached = entry.place.clone();
        let is_read = match &self.read.partitions {
            Partitions::Keys(keys) => keys.contains(&change.partition_key),
            Partitions::Ring(span) => {
                let span = span.as_ref();
                span.is_some_and(|span| span.contains(change.token.value(), &change.partition_key))
            }
        };
        if !is_read {
            return Ok(Step::Continue);
        }
        let bound = PartRead {
            read: bound.read,
            layout: bound.layout,
            context: bound.context,
            now_seconds: entry.position.div_euclid(1_000_000),
            tombstones_max: None,
        };
        let mut reader = Reader::new(&bound, 0, scratch, sink);
        let partition = self.partitions.of_token(change.token, &change.partition_key);
        reader.enter(partition, None, false);
        let mut rows = Rows {
            reader,
            table: &self.read.table,
            partition_key: &change.partition_key,
            is_full: false,
        };
        let described = rows.describe(&change, entry.position)?;
        let is_full = rows.is_full;
        self.changes.push(described);
        let position = self.position();
        self.after_rows.push(position);
        Ok(if is_full { Step::Stop } else { Step::Continue })
    }
}

/// Brings the rows of one change.
struct Rows<'r, S> {
    reader: Reader<'r, S>,
    table: &'r Table,
    partition_key: &'r [u8],
    /// Whether the page is full. The rows of the change still belong to it.
    is_full: bool,
}

impl<S: PartSink> Rows<'_, S> {
    fn describe(&mut self, change: &Change, position: i64) -> Result<FeedChange, Error> {
        match &change.what {
            What::Row {
                clustering,
                images,
                written_micros,
            } => {
                let clustering = clustering.as_deref();
                self.key(clustering.unwrap_or_default())?;
                let mut of = FeedChange {
                    operation: FeedOperation::Replace,
                    of: if clustering.is_some() {
                        FeedChanged::Row
                    } else {
                        FeedChanged::Static
                    },
                    position,
                    previous_position: None,
                    written_micros: *written_micros,
                    has_previous: false,
                    has_current: false,
                    has_images: images.is_some(),
                };
                let Some(images) = images else { return Ok(of) };
                if let Some(before) = &images.before {
                    of.has_previous = self.image(clustering, before, images)?;
                    of.previous_position = log::position_of(before).filter(|_| of.has_previous);
                }
                of.has_current = self.image(clustering, &images.after, images)?;
                of.operation = match (of.has_previous, of.has_current) {
                    (_, false) => FeedOperation::Delete,
                    (true, true) => FeedOperation::Replace,
                    (false, true) => FeedOperation::Create,
                };
                Ok(of)
            }
            What::Deletion { covered, deletion } => {
                self.key(&[])?;
                let of = match covered {
                    Covered::Partition => FeedChanged::Partition,
                    Covered::Range { start, end } => FeedChanged::Range {
                        start: self.bound(start, None)?,
                        end: self.bound(end, Some(start))?,
                    },
                };
                Ok(FeedChange {
                    operation: FeedOperation::Delete,
                    of,
                    position,
                    previous_position: None,
                    written_micros: Some(deletion.timestamp),
                    has_previous: false,
                    has_current: false,
                    has_images: false,
                })
            }
        }
    }

    /// Brings a row that has only its key.
    fn key(&mut self, clustering: &[u8]) -> Result<(), Error> {
        let mut values = Vec::new();
        let mut rest = clustering;
        for column in self.table.clustering() {
            if rest.is_empty() {
                break;
            }
            let mut bytes = Vec::new();
            value::decode_key(&column.ty, &mut rest, column.key_order(), &mut bytes)?;
            values.push(bytes.into());
        }
        self.key_of(clustering, values)
    }

    /// Brings a row that has only these leading columns of its key.
    fn key_of(&mut self, clustering: &[u8], leading: Vec<Bytes>) -> Result<(), Error> {
        let mut values: Vec<Option<Bytes>> = vec![None; self.table.columns.len()];
        let places = values.iter_mut().skip(self.table.partition_key_count);
        for (place, value) in places.zip(leading) {
            *place = Some(value);
        }
        self.reader.begin_partition(self.partition_key, None)?;
        let step = self.reader.virtual_row(clustering, &values)?;
        self.is_full |= step == Step::Stop;
        Ok(())
    }

    /// Brings a stored row as it was. Returns whether it shows.
    fn image(&mut self, clustering: Option<&[u8]>, row: &[u8], images: &Images) -> Result<bool, Error> {
        let view = RowView::parse(row).map_err(|error| storage_read(&error))?;
        let before = self.reader.rows_given();
        self.reader.begin_partition(self.partition_key, None)?;
        let step = match clustering {
            Some(clustering) => self.reader.row(clustering, row.len(), &view, images.hidden_up_to)?,
            None => {
                self.reader.set_static(row.len(), &view, images.hidden_up_to)?;
                self.reader.end_partition()?
            }
        };
        self.is_full |= step == Step::Stop;
        Ok(self.reader.rows_given() > before)
    }

    /// Brings the key of a bound; `start` is the bound at the other side, of an end.
    ///
    /// # Errors
    /// When the bytes are no bound: an open one would delete rows at the reader that are still here.
    fn bound(&mut self, bound: &Bound<Vec<u8>>, start: Option<&Bound<Vec<u8>>>) -> Result<FeedBound, Error> {
        let is_start = start.is_none();
        let bytes = match bound {
            // A start that is included and an end that is left out name the first key with the bytes as its beginning.
            Bound::Included(bytes) if is_start => bytes,
            Bound::Excluded(bytes) if !is_start => bytes,
            Bound::Unbounded => return Ok(FeedBound::Open),
            Bound::Included(_) | Bound::Excluded(_) => return Err(not_a_bound()),
        };
        if bytes.is_empty() && is_start {
            return Ok(FeedBound::Open);
        }
        let columns: Vec<_> = self
            .table
            .clustering()
            .iter()
            .map(|column| (&column.ty, column.key_order()))
            .collect();
        let start = match start {
            Some(Bound::Included(start)) => Some(start.as_slice()),
            _ => None,
        };
        let told = bounds::told(bytes, &columns, start).ok_or_else(not_a_bound)?;
        let columns = told.values.len();
        self.key_of(bytes, told.values)?;
        Ok(if told.is_behind == is_start {
            FeedBound::Excluded { columns }
        } else {
            FeedBound::Included { columns }
        })
    }
}

fn not_a_bound() -> Error {
    let what = "bound of a range";
    Error::from(Damaged {
        record: Record::Key,
        what,
    })
}
