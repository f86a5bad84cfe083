//! Where the rows of a read end up: filtered, grouped, sorted, cut to limits and pages, and handed to the front end's [`RowSink`].
//!
//! The source walks partitions and rows; the sink says after each whether it wants more ([`Step`]). When a page is full it notes
//! the [`Position`] behind the last row that it has taken in.

mod given;
mod groups;
mod shape;

use bytes::Bytes;

use crate::command::{Clustering, Partitions, Position, Read};
use crate::engine::{Error, Request};
use crate::functions::Context;
use crate::guardrails::Level;
use crate::partition::store::{Damaged, RowView};
use crate::partition::{Consistency, Hosted};
use crate::schema::{StorageId, Table};
use crate::throughput::{Charges, Mark, PartitionRef};
use crate::token::Token;

use super::buffer::RowBuffer;
use super::evaluate::{Scope, looks_at_rows};
use super::room::{AnswerMemory, Room};
use super::row_sink::RowSink;
use super::tombstones::{self, Walked};

use self::given::Given;
use self::groups::Group;
pub use self::shape::Shape;
pub(crate) use self::shape::{Limits, is_grouped, looks_up};

/// What the source does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Go on with the next row.
    Continue,
    /// Nothing more of this partition is wanted.
    SkipPartition,
    /// Nothing more is wanted.
    Stop,
}

/// Takes rows in, gives a page out.
pub(crate) struct Sink<'a, R> {
    table: &'a Table,
    select: &'a Read,
    shape: &'a Shape,
    context: &'a Context,
    now_seconds: i64,
    /// A partition without rows shows its static row.
    shows_static_only: bool,
    buffer: RowBuffer,
    given: Given<'a, R>,
    /// Static rows that count for the page and for LIMIT though they are not given: see [`Sink::count_unseen`].
    unseen_rows: u32,
    limits: Limits,
    partition_left: Option<u32>,
    partition_key: Vec<u8>,
    partition_had_row: bool,
    partition_static_is_live: bool,
    group: Option<Group>,
    last_partition_key: Vec<u8>,
    last_clustering: Option<Vec<u8>>,
    position: Option<Position>,
    walked: Walked,
    warnings: Vec<String>,
    charges: &'a mut Charges,
    /// What it may hold.
    room: Room<'a>,
    /// Bytes of places that an index read has looked up and not visited yet.
    places_bytes: usize,
    /// Rows are looked up by their whole keys.
    looks_up: bool,
    /// The partition was begun by a page before.
    is_resumed: bool,
    /// Of groups: what was charged up to the last row that one took in: what came behind it is the next page's.
    charged_in_group: Option<Mark>,
}

/// What a sink has gathered.
pub(crate) struct Page {
    /// How many rows were given.
    pub(crate) row_count: u32,
    /// Bytes that the front end took for them.
    pub(crate) bytes: usize,
    /// What is reserved for them.
    pub(crate) memory: AnswerMemory,
    /// Where to go on; `None`: there is nothing more.
    pub(crate) position: Option<Position>,
    /// What the client should be warned of.
    pub(crate) warnings: Vec<String>,
}

impl<'a, R: RowSink> Sink<'a, R> {
    pub(crate) fn new(
        select: &'a Read,
        shape: &'a Shape,
        request: &'a Request<'_>,
        limits: Limits,
        charges: &'a mut Charges,
        room: Room<'a>,
        rows: &'a mut R,
    ) -> Self {
        let table = select.table.as_ref();
        let restricts_rows =
            select.rows != Clustering::All || select.filter.any_test(&mut |test| looks_at_rows(table, test));
        Self {
            table,
            select,
            shape,
            context: &request.context,
            now_seconds: request.now_seconds,
            shows_static_only: !restricts_rows && table.has_static(),
            buffer: RowBuffer::new(&shape.layout),
            given: Given::new(select, rows, limits.content_bytes_ahead),
            unseen_rows: 0,
            limits,
            partition_left: None,
            partition_key: Vec::new(),
            partition_had_row: false,
            partition_static_is_live: false,
            group: None,
            last_partition_key: Vec::new(),
            last_clustering: None,
            position: None,
            walked: Walked::default(),
            warnings: Vec::new(),
            looks_up: looks_up(select),
            is_resumed: false,
            charged_in_group: is_grouped(select).then(|| charges.mark()),
            charges,
            room,
            places_bytes: 0,
        }
    }

    /// A read comes to a physical partition, and to a logical one where it is asked for by key. `is_first`: no page before has been
    /// there, nor this one.
    pub(crate) fn enter(&mut self, table: StorageId, partition: &Hosted, key: Option<(Token, &Bytes)>, is_first: bool) {
        self.charges.enter(
            PartitionRef {
                table,
                partition: partition.id.0,
            },
            key.map(|(token, key)| (partition.spread(token, key), key)),
        );
        if is_first && !self.looks_up {
            self.charges.visit();
        }
    }

    /// A row was looked up and is not there.
    pub(crate) fn no_row(&mut self) {
        self.charge_row(false, 0);
    }

    /// Charges a stored row that is judged. What is not there costs only a look by its key; what a limit keeps out, nothing, since
    /// with pages it would not be looked at.
    fn charge_row(&mut self, is_there: bool, row_bytes: usize) {
        if !self.charges.is_on() || (self.partition_left == Some(0) && !self.is_grouped()) {
            return;
        }
        if self.looks_up {
            self.charges.lookup(if is_there { row_bytes } else { 0 });
        } else if is_there {
            self.charges.scan(row_bytes);
        }
    }

    /// Leaves to the next page what was charged behind the last row that a group took in.
    fn take_back(&mut self) {
        if let Some(mark) = self.charged_in_group {
            self.charges.restore(mark);
        }
    }

    /// Whether the source must bring each partition's static row.
    pub(crate) fn wants_static(&self) -> bool {
        self.shape.layout.needs_static || self.shows_static_only || self.select.counts_static
    }

    /// Whether nothing can be wanted at all (LIMIT used up by pages before).
    pub(crate) fn is_exhausted(&self) -> bool {
        self.limits.rows == Some(0)
    }

    /// How many rows the page may still take; `None`: any number, or it is not known, as with groups.
    pub(crate) fn rows_wanted(&self) -> Option<usize> {
        self.limits.rows_wanted(self.select)
    }

    fn is_grouped(&self) -> bool {
        is_grouped(self.select)
    }

    /// Starts a partition; `resumed` where a page before has taken some of it: how many rows that one's PER PARTITION LIMIT left.
    ///
    /// # Errors
    /// When the key has not the form of the table's.
    pub(crate) fn begin_partition(
        &mut self,
        partition_key: &[u8],
        resumed: Option<Option<u32>>,
    ) -> Result<(), Damaged> {
        if matches!(self.select.partitions, Partitions::Keys(_)) {
            self.report_tombstones();
        }
        self.partition_key.clear();
        self.partition_key.extend_from_slice(partition_key);
        let left_before = resumed.flatten();
        self.partition_left = left_before
            .into_iter()
            .chain(self.select.per_partition_limit_rows)
            .min();
        self.partition_had_row = resumed.is_some();
        self.is_resumed = resumed.is_some();
        self.partition_static_is_live = false;
        self.buffer
            .begin_partition(self.table, &self.shape.layout, partition_key)
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
            .set_static(&self.shape.layout, view, shadowed_to, self.now_seconds)?;
        self.partition_static_is_live = live;
        if live && !self.is_resumed && self.charges.is_on() {
            self.charges.scan(row_bytes);
        }
        self.walked.tombstones += self.buffer.take_dead_cells();
        Ok(())
    }

    /// Counts the deleted ranges of a partition, each with a beginning and an end.
    pub(crate) fn note_ranges(&mut self, count: usize) {
        self.walked.tombstones += u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(2);
    }

    fn report_tombstones(&mut self) {
        let walked = std::mem::take(&mut self.walked);
        if let Level::Warn(_) | Level::Refuse(_) = self.limits.tombstones.judge(walked.tombstones) {
            let warning = tombstones::warning(self.select, self.limits.page_rows, &self.partition_key, walked);
            self.warnings.push(warning);
        }
    }

    /// Counts a stored row.
    ///
    /// # Errors
    /// [`Error::TooManyTombstones`] when the read has walked over more than it may.
    fn walk(&mut self, is_there: bool, view: &RowView<'_>, shadowed_to: Option<i64>) -> Result<(), Error> {
        let dead_cells = self.buffer.take_dead_cells();
        self.walked
            .row(is_there, dead_cells, view, shadowed_to, self.now_seconds);
        match self.limits.tombstones.fail {
            Some(fail) if self.walked.tombstones > fail => Err(Error::TooManyTombstones {
                consistency: Consistency::One,
            }),
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
        let layout = &self.shape.layout;
        self.buffer.begin_row(self.table, layout);
        let is_there = self.buffer.set_row(layout, view, shadowed_to, self.now_seconds)?;
        self.walk(is_there, view, shadowed_to)?;
        self.charge_row(is_there, row_bytes);
        if !is_there {
            return Ok(Step::Continue);
        }
        self.buffer.set_clustering(self.table, &self.shape.layout, clustering)?;
        self.accept(Some(clustering))
    }

    /// Takes a row that is not stored: values by place in `table.columns`.
    pub(crate) fn virtual_row(&mut self, clustering: &[u8], values: &[Option<Bytes>]) -> Result<Step, Error> {
        self.buffer.begin_row(self.table, &self.shape.layout);
        for (place, value) in values.iter().enumerate().skip(self.table.partition_key_count) {
            self.buffer.put(place, value.as_deref());
        }
        self.accept(Some(clustering))
    }

    /// Ends a partition: if it had no rows, its static row is one.
    pub(crate) fn end_partition(&mut self) -> Result<Step, Error> {
        if self.partition_had_row || !self.partition_static_is_live {
            return Ok(Step::Continue);
        }
        self.buffer.begin_row(self.table, &self.shape.layout);
        if self.shows_static_only {
            return self.accept(None);
        }
        self.count_unseen()
    }

    /// Counts the static row of a partition of which no rows are asked for (`c IN ()`, the last clustering column): as in
    /// Cassandra it takes a row's place in the page and in LIMIT, and is not given.
    fn count_unseen(&mut self) -> Result<Step, Error> {
        if !self.select.counts_static || self.select.is_one_group() {
            return Ok(Step::Continue);
        }
        if !self.scope().passes(&self.select.filter)? {
            return Ok(Step::Continue);
        }
        self.unseen_rows += 1;
        if let Some(left) = &mut self.limits.rows {
            *left = left.saturating_sub(1);
        }
        Ok(self.after_row(None))
    }

    /// Ends the read: the page.
    pub(crate) fn finish(&mut self) -> Result<Page, Error> {
        if self.position.is_none() {
            if self.group.is_some() {
                self.flush_group()?;
                // Of a partition whose static row alone has been given there is no more.
                let is_done = self.partition_left == Some(0) || self.last_clustering.is_none();
                if self.select.group_by.is_some() && self.is_full() && !(is_done && self.is_last_key()) {
                    // Whether there is another group the full page does not know: the next one, of no rows, says so.
                    self.note_position_of_group(false);
                }
                if self.select.group_by.is_some() && (self.position.is_some() || self.is_exhausted()) {
                    self.take_back();
                }
            } else if !self.select.selection.aggregates.is_empty() && self.select.group_by.is_none() {
                self.buffer = RowBuffer::new(&self.shape.layout);
                self.open_group(Vec::new());
                self.flush_group()?;
            }
        }
        self.give_aside();
        self.report_tombstones();
        Ok(Page {
            row_count: self.given.count,
            bytes: self.given.bytes,
            memory: self.room.keep(),
            position: self.position.take(),
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            table: self.table,
            row: &self.buffer,
            aggregates: &[],
            now_seconds: self.now_seconds,
            context: self.context,
        }
    }

    /// Takes the row in the buffer; `clustering` is `None` for a static row that stands for its partition.
    fn accept(&mut self, clustering: Option<&[u8]>) -> Result<Step, Error> {
        self.partition_had_row = true;
        if !self.scope().passes(&self.select.filter)? {
            return Ok(if self.select.distinct {
                Step::SkipPartition
            } else {
                Step::Continue
            });
        }
        if self.partition_left == Some(0) && self.select.group_by.is_none() {
            return Ok(Step::SkipPartition);
        }
        if self.is_grouped() {
            return self.accept_in_group(clustering);
        }
        self.emit_row()?;
        Ok(self.after_row(clustering))
    }

    fn after_row(&mut self, clustering: Option<&[u8]>) -> Step {
        if let Some(left) = &mut self.partition_left {
            *left = left.saturating_sub(1);
        }
        let partition_is_done = self.select.distinct
            || self.partition_left == Some(0)
            || clustering.is_none()
            || self.table.clustering_count == 0;
        if self.is_full() {
            // As Cassandra's pager: behind the last row that can be there is no page, not even an empty one.
            if !(partition_is_done && self.is_last_key()) {
                self.note_position(clustering.filter(|_| !partition_is_done).map(<[u8]>::to_vec));
            }
            return Step::Stop;
        }
        if self.is_exhausted() {
            return Step::Stop;
        }
        if partition_is_done {
            Step::SkipPartition
        } else {
            Step::Continue
        }
    }

    /// Whether the partition is the last of those that the statement names.
    fn is_last_key(&self) -> bool {
        matches!(&self.select.partitions, Partitions::Keys(keys)
            if keys.last().is_some_and(|key| *key == self.partition_key))
    }

    fn is_full(&self) -> bool {
        let Some(page_rows) = self.limits.page_rows else {
            return false;
        };
        !self.is_exhausted()
            && (self.given.count + self.unseen_rows >= page_rows || self.given.bytes >= self.limits.page_bytes)
    }

    fn note_position(&mut self, clustering: Option<Vec<u8>>) {
        let partition_key = Bytes::copy_from_slice(&self.partition_key);
        self.end_page_at(partition_key, clustering, self.partition_left);
    }

    /// The page ends behind the last row of the group before; `goes_on` where its partition has more groups.
    fn note_position_of_group(&mut self, goes_on: bool) {
        let clustering = self.last_clustering.take().filter(|_| !self.select.distinct);
        let partition_key = std::mem::take(&mut self.last_partition_key).into();
        let left = if goes_on { self.partition_left } else { Some(0) };
        let left = left.filter(|_| self.select.per_partition_limit_rows.is_some());
        self.end_page_at(partition_key, clustering, left);
    }

    fn end_page_at(&mut self, partition_key: Bytes, clustering: Option<Vec<u8>>, partition_limit_rows: Option<u32>) {
        self.position = Some(Position {
            partition_key,
            clustering: clustering.map(Bytes::from),
            limit_rows: self.limits.rows,
            partition_limit_rows,
            charge_left_micros: 0,
        });
    }
}
