//! Reads stored rows: decides which are live and which pass the filter, and charges the reads.

use bytes::Bytes;

use super::part_read::PartRead;
use super::receipt::{Ended, Receipt, Walked};
use super::rows::{PartSink, Reply, Step};
use crate::engine::Error;
use crate::engine::row::buffer::RowBuffer;
use crate::engine::row::evaluate::{Scope, looks_at_rows};
use crate::engine::row::layout::Layout;
use crate::partition::PhysicalPartition;
use crate::throughput::{Charges, Mark, PartitionRef};
use helenus_schema::command::{Clustering, Partitions};
use helenus_storage::storage::{Damaged, RowView};
use helenus_types::consistency::Consistency;

/// Buffers that the parts of a read borrow, one after the other.
pub(crate) struct Scratch<'c> {
    /// The current row.
    buffer: RowBuffer,
    /// The request's sheet of charges.
    charges: &'c mut Charges,
    /// With groups: the charges up to the last row that joined a group. Later charges belong to the next page.
    taken: Option<Mark>,
}

impl<'c> Scratch<'c> {
    /// Buffers for the parts of a read with this layout.
    pub(crate) fn new(layout: &Layout, is_grouped: bool, charges: &'c mut Charges) -> Self {
        Self {
            buffer: RowBuffer::new(layout),
            taken: is_grouped.then(|| charges.mark()),
            charges,
        }
    }

    /// Takes back the charges after the last row that joined a group: they belong to the next page.
    pub(crate) fn take_back(&mut self) {
        if let Some(mark) = self.taken {
            self.charges.restore(mark);
        }
    }
}

impl Scratch<'_> {
    /// The current row, for a row that another machine has read.
    pub(crate) const fn buffer_mut(&mut self) -> &mut RowBuffer {
        &mut self.buffer
    }

    /// The request's sheet of charges.
    pub(crate) const fn charges_mut(&mut self) -> &mut Charges {
        self.charges
    }

    /// Passes the current row on; `clustering` is `None` for a static row that stands for its partition.
    ///
    /// # Errors
    /// As [`PartSink::row`].
    pub(crate) fn pass(&mut self, rows: &mut impl PartSink, clustering: Option<&[u8]>) -> Result<Step, Error> {
        pass(rows, &self.buffer, clustering, self.charges, &mut self.taken)
    }
}

/// Passes a row on, and keeps or takes back charges as the statement replies.
#[inline]
fn pass(
    rows: &mut impl PartSink,
    row: &RowBuffer,
    clustering: Option<&[u8]>,
    charges: &mut Charges,
    taken: &mut Option<Mark>,
) -> Result<Step, Error> {
    match rows.row(row, clustering)? {
        Reply::Plain(step) => Ok(step),
        Reply::Grouped(step) => {
            *taken = Some(charges.mark());
            Ok(step)
        }
        Reply::Later(step) => {
            if let Some(mark) = *taken {
                charges.restore(mark);
            }
            Ok(step)
        }
    }
}

/// Reads the rows of one part.
pub(crate) struct Reader<'a, S> {
    bound: &'a PartRead<'a>,
    rows: &'a mut S,
    buffer: &'a mut RowBuffer,
    charges: &'a mut Charges,
    taken: &'a mut Option<Mark>,
    charged_before_micros: u64,
    /// Whether a partition without rows shows its static row.
    shows_static_only: bool,
    /// Whether the filter accepts every row, as in most reads. Evaluating it for each row would cost as much as a cell.
    takes_all: bool,
    /// Whether rows are looked up by their whole keys.
    looks_up: bool,
    /// Whether an earlier page began the logical partition.
    is_resumed: bool,
    /// Whether PER PARTITION LIMIT of the logical partition is used up.
    is_spent: bool,
    had_row: bool,
    static_is_live: bool,
    walked: Walked,
    /// Tombstones of earlier parts that count together with those of this part.
    tombstones_before: u64,
    rows_given: u64,
}

impl<'a, S: PartSink> Reader<'a, S> {
    pub(crate) fn new(
        bound: &'a PartRead<'a>,
        tombstones_before: u64,
        scratch: &'a mut Scratch<'_>,
        rows: &'a mut S,
    ) -> Self {
        let (read, table) = (bound.read, bound.read.table.as_ref());
        let restricts_rows =
            read.rows != Clustering::All || read.filter.any_test(&mut |test| looks_at_rows(table, test));
        Self {
            bound,
            rows,
            buffer: &mut scratch.buffer,
            charged_before_micros: scratch.charges.micros(),
            charges: scratch.charges,
            taken: &mut scratch.taken,
            shows_static_only: !restricts_rows && table.has_static(),
            takes_all: read.filter.is_none(),
            looks_up: read.looks_up(),
            is_resumed: false,
            is_spent: false,
            had_row: false,
            static_is_live: false,
            walked: Walked::default(),
            tombstones_before,
            rows_given: 0,
        }
    }

    /// The outcome of the part.
    pub(crate) fn receipt<'i>(self, ended: Result<Step, Error>, index: Option<&'i str>) -> Receipt<'i> {
        self.rows.charged(self.charges);
        Receipt {
            ended: ended.map(|step| match step {
                Step::Stop => Ended::Stopped,
                Step::Continue | Step::SkipPartition => Ended::Whole,
            }),
            rows: self.rows_given,
            walked: self.walked,
            charged_micros: self.charges.micros().saturating_sub(self.charged_before_micros),
            index,
        }
    }

    /// How many rows it has passed on.
    pub(crate) const fn rows_given(&self) -> u64 {
        self.rows_given
    }

    /// Charges everything that follows to this physical partition, and to the logical one of this key if it is known;
    /// `spread` is its number ([`crate::partition::Placement::spread`]). `is_first`: no page of the read has visited
    /// the physical partition yet.
    pub(crate) fn enter(&mut self, partition: &PhysicalPartition, key: Option<(i64, &Bytes)>, is_first: bool) {
        self.charges.enter(
            PartitionRef {
                table: self.bound.read.table.storage_id,
                partition: partition.id.0,
            },
            key,
        );
        if is_first && !self.looks_up {
            self.charges.visit();
        }
    }

    /// Charges the lookup of a row that does not exist.
    pub(super) fn no_row(&mut self) {
        self.charge_row(false, 0);
    }

    /// Charges a stored row that the filter has checked. A missing row costs only its lookup by key. A row that a limit
    /// excludes is free: with pages it would not be read.
    fn charge_row(&mut self, is_there: bool, row_bytes: usize) {
        if !self.charges.is_on() || self.is_spent {
            return;
        }
        if self.looks_up {
            self.charges.lookup(if is_there { row_bytes } else { 0 });
        } else if is_there {
            self.charges.scan(row_bytes);
        }
    }

    /// Whether each partition's static row must be read.
    pub(crate) fn wants_static(&self) -> bool {
        self.bound.layout.needs_static || self.shows_static_only || self.bound.read.counts_static
    }

    /// Starts a logical partition. `resumed` is set if an earlier page has read some of it: the rows that PER PARTITION
    /// LIMIT still allowed then.
    ///
    /// # Errors
    /// The key does not have the structure of the table's.
    pub(crate) fn begin_partition(
        &mut self,
        partition_key: &[u8],
        resumed: Option<Option<u32>>,
    ) -> Result<(), Damaged> {
        let read = self.bound.read;
        if matches!(read.partitions, Partitions::Keys(_)) {
            // The tombstones of the previous partition, which the statement counts separately.
            self.rows.walked(std::mem::take(&mut self.walked));
        }
        self.rows.charged(self.charges);
        let left_before = resumed.flatten();
        let left = left_before.into_iter().chain(read.per_partition_limit_rows).min();
        self.rows.begin_partition(partition_key, left);
        self.is_spent = left == Some(0) && !read.is_grouped();
        self.had_row = resumed.is_some();
        self.is_resumed = resumed.is_some();
        self.static_is_live = false;
        self.buffer
            .begin_partition(&read.table, self.bound.layout, partition_key)
    }

    /// Takes the partition's static row.
    pub(crate) fn set_static(
        &mut self,
        row_bytes: usize,
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
    ) -> Result<(), Error> {
        let live = self
            .buffer
            .set_static(self.bound.layout, view, shadowed_to, self.bound.now_seconds)?;
        self.static_is_live = live;
        if live && !self.is_resumed && self.charges.is_on() {
            self.charges.scan(row_bytes);
        }
        self.walked.tombstones += self.buffer.take_dead_cells();
        Ok(())
    }

    /// Counts the deleted ranges of a partition: two tombstones each, for the start and the end.
    pub(super) fn note_ranges(&mut self, count: usize) {
        self.walked.tombstones += u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(2);
    }

    /// Counts a stored row.
    ///
    /// # Errors
    /// [`Error::TooManyTombstones`] when the read has walked over more than it may; when the client has disconnected.
    fn walk(&mut self, is_there: bool, view: &RowView<'_>, shadowed_to: Option<i64>) -> Result<(), Error> {
        self.rows.check_client()?;
        let dead_cells = self.buffer.take_dead_cells();
        self.walked
            .row(is_there, dead_cells, view, shadowed_to, self.bound.now_seconds);
        match self.bound.tombstones_max {
            Some(most) if self.walked.tombstones.saturating_add(self.tombstones_before) > most => {
                Err(Error::TooManyTombstones {
                    consistency: Consistency::One,
                })
            }
            _ => Ok(()),
        }
    }

    /// Takes a stored row; `row_bytes` are those of its key and value.
    pub(crate) fn row(
        &mut self,
        clustering: &[u8],
        row_bytes: usize,
        view: &RowView<'_>,
        shadowed_to: Option<i64>,
    ) -> Result<Step, Error> {
        let (table, layout) = (self.bound.read.table.as_ref(), self.bound.layout);
        self.buffer.begin_row(table, layout);
        let is_there = self.buffer.set_row(layout, view, shadowed_to, self.bound.now_seconds)?;
        self.walk(is_there, view, shadowed_to)?;
        self.charge_row(is_there, row_bytes);
        if !is_there {
            return Ok(Step::Continue);
        }
        self.buffer.set_clustering(table, layout, clustering)?;
        self.accept(Some(clustering))
    }

    /// Takes a row that is not stored: values by place in `table.columns`.
    pub(crate) fn virtual_row(&mut self, clustering: &[u8], values: &[Option<Bytes>]) -> Result<Step, Error> {
        let table = self.bound.read.table.as_ref();
        self.buffer.begin_row(table, self.bound.layout);
        for (place, value) in values.iter().enumerate().skip(table.partition_key_count) {
            self.buffer.put(place, value.as_deref());
        }
        self.accept(Some(clustering))
    }

    /// Ends a logical partition: if it had no rows, its static row is one.
    pub(crate) fn end_partition(&mut self) -> Result<Step, Error> {
        if self.had_row || !self.static_is_live {
            return Ok(Step::Continue);
        }
        let read = self.bound.read;
        self.buffer.begin_row(&read.table, self.bound.layout);
        if self.shows_static_only {
            return self.accept(None);
        }
        if !read.counts_static || read.is_one_group() || !self.scope().passes(&read.filter)? {
            return Ok(Step::Continue);
        }
        self.rows.charged(self.charges);
        Ok(self.rows.unseen_row())
    }

    /// Records the bytes that the part holds of places to visit.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn hold_places(&mut self, bytes: usize) -> Result<(), Error> {
        self.rows.hold_places(bytes)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            table: &self.bound.read.table,
            row: self.buffer,
            aggregates: &[],
            now_seconds: self.bound.now_seconds,
            context: self.bound.context,
        }
    }

    /// Passes the row in the buffer on; `clustering` is `None` for a static row that stands for its partition.
    fn accept(&mut self, clustering: Option<&[u8]>) -> Result<Step, Error> {
        let read = self.bound.read;
        self.had_row = true;
        if !self.takes_all && !self.scope().passes(&read.filter)? {
            return Ok(if read.distinct {
                Step::SkipPartition
            } else {
                Step::Continue
            });
        }
        self.rows_given += 1;
        self.rows.charged(self.charges);
        pass(self.rows, self.buffer, clustering, self.charges, self.taken)
    }
}
