//! Where the rows of a read end up: filtered, grouped, sorted, cut to limits and pages, encoded as the frame wants them.
//!
//! The source walks partitions and rows; the sink says after each whether it wants more ([`Step`]). When a page is full it notes
//! the [`Position`] behind the last row that it has taken in.

mod held;

use bytes::Bytes;

use crate::command::{Aggregate, Clustering, Expression, Partitions, Position, Predicate, Read};
use crate::engine::{Error, value};
use crate::functions::{Accumulator, Context};
use crate::guardrails::{Level, Threshold};
use crate::partition::store::RowView;
use crate::partition::{Consistency, Hosted};
use crate::schema::{StorageId, Table};
use crate::throughput::{Charges, Mark, PartitionRef};
use crate::token::Token;

use super::buffer::RowBuffer;
use super::evaluate::{Scope, looks_at_rows};
use super::layout::Layout;
use super::nearest::NearestRows;
use super::order::{self, Sortable};
use super::room::Room;
use super::tombstones::{self, Walked};

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

/// How much may be given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rows that LIMIT still allows; `None`: no limit.
    pub(crate) rows: Option<u32>,
    /// Rows of a page; `None`: not paged.
    pub(crate) page_rows: Option<u32>,
    /// Bytes after which a page ends, where there are pages.
    pub(crate) page_bytes: usize,
    /// Bytes to make room for at once.
    pub(crate) content_bytes_ahead: usize,
    /// Tombstones that are warned of, and at which the read fails.
    pub(crate) tombstones: Threshold,
}

/// A SELECT as far as it does not depend on values: made once for a plan.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What is read of each row.
    pub(crate) layout: Layout,
    /// The places of the columns, when the result is nothing but columns.
    plain: Option<Vec<usize>>,
}

impl Shape {
    /// The shape of a SELECT.
    #[must_use]
    pub fn of(select: &Read) -> Self {
        let selection = &select.selection;
        let columns_only = || {
            let places = selection.expressions.iter().map(|expression| match expression {
                Expression::Column(place) => Some(*place),
                _ => None,
            });
            places.collect::<Option<Vec<_>>>()
        };
        let is_plain = selection.json_columns.is_none() && selection.aggregates.is_empty() && select.group_by.is_none();
        let needed = selection.needed.iter().copied();
        Self {
            layout: Layout::new(&select.table, needed, selection.needs_metadata),
            plain: if is_plain { columns_only() } else { None },
        }
    }
}

/// Memory of a row that is put aside, besides its bytes: its place, and the heads of its allocations.
const ASIDE_BYTES: usize = 96;

/// Rows of one group being aggregated.
struct Group {
    key: Vec<Option<Bytes>>,
    first: RowBuffer,
    accumulators: Vec<Option<Accumulator>>,
    counts: Vec<i64>,
}

/// Whether a read looks rows up by their whole keys, rather than visiting ranges of them.
pub(crate) fn looks_up(select: &Read) -> bool {
    matches!(select.partitions, Partitions::Keys(_))
        && (select.table.clustering_count == 0 || matches!(select.rows, Clustering::Keys(_)))
}

/// Takes rows in, gives a page out.
pub(crate) struct Sink<'a> {
    table: &'a Table,
    select: &'a Read,
    shape: &'a Shape,
    context: &'a Context,
    now_seconds: i64,
    filters: Vec<&'a Predicate>,
    /// A partition without rows shows its static row.
    shows_static_only: bool,
    buffer: RowBuffer,
    out: Vec<u8>,
    rows: u32,
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
    sorted: Vec<Sortable>,
    /// The rows nearest to a vector, where those are asked for.
    nearest: Option<NearestRows<'a>>,
    position: Option<Position>,
    walked: Walked,
    warnings: Vec<String>,
    charges: &'a mut Charges,
    /// What it may hold.
    room: Room<'a>,
    /// Bytes of rows in `sorted` or `nearest`.
    aside_bytes: usize,
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
    /// Encoded rows.
    pub(crate) content: Bytes,
    /// How many.
    pub(crate) row_count: u32,
    /// Where to go on; `None`: there is nothing more.
    pub(crate) position: Option<Position>,
    /// What the client should be warned of.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        select: &'a Read,
        shape: &'a Shape,
        context: &'a Context,
        now_seconds: i64,
        limits: Limits,
        charges: &'a mut Charges,
        room: Room<'a>,
    ) -> Self {
        let table = select.table.as_ref();
        let restricts_rows =
            select.rows != Clustering::All || select.filters.iter().any(|filter| looks_at_rows(table, filter));
        Self {
            table,
            select,
            shape,
            context,
            now_seconds,
            filters: select.filters.iter().collect(),
            shows_static_only: !restricts_rows && table.has_static(),
            buffer: RowBuffer::new(&shape.layout),
            out: Vec::with_capacity(limits.content_bytes_ahead),
            rows: 0,
            unseen_rows: 0,
            limits,
            partition_left: None,
            partition_key: Vec::new(),
            partition_had_row: false,
            partition_static_is_live: false,
            group: None,
            last_partition_key: Vec::new(),
            last_clustering: None,
            sorted: Vec::new(),
            nearest: NearestRows::of(select),
            position: None,
            walked: Walked::default(),
            warnings: Vec::new(),
            looks_up: looks_up(select),
            is_resumed: false,
            charged_in_group: (select.group_by.is_some() || !select.selection.aggregates.is_empty())
                .then(|| charges.mark()),
            charges,
            room,
            aside_bytes: 0,
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
    /// with pages nobody would look at it.
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
        if self.is_grouped() || !self.select.sort.is_empty() || self.nearest.is_some() {
            return None;
        }
        let wanted = self.limits.page_rows.into_iter().chain(self.limits.rows).min()?;
        usize::try_from(wanted).ok()
    }

    fn is_grouped(&self) -> bool {
        self.select.group_by.is_some() || !self.select.selection.aggregates.is_empty()
    }

    /// Starts a partition; `resumed` where a page before has taken some of it: how many rows that one's PER PARTITION LIMIT left.
    pub(crate) fn begin_partition(&mut self, partition_key: &[u8], resumed: Option<Option<u32>>) {
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
            .begin_partition(self.table, &self.shape.layout, partition_key);
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
        for filter in &self.filters {
            if !self.scope().passes(filter)? {
                return Ok(Step::Continue);
            }
        }
        self.unseen_rows += 1;
        if let Some(left) = &mut self.limits.rows {
            *left = left.saturating_sub(1);
        }
        Ok(self.after_row(None))
    }

    /// Ends the read: the page.
    pub(crate) fn finish(mut self) -> Result<Page, Error> {
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
        self.sort();
        for row in self.nearest.take().into_iter().flat_map(NearestRows::rows) {
            self.out.extend_from_slice(&row);
            self.rows += 1;
        }
        self.report_tombstones();
        Ok(Page {
            content: self.room.hold(self.out),
            row_count: self.rows,
            position: self.position,
            warnings: self.warnings,
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
        for filter in &self.filters {
            if !self.scope().passes(filter)? {
                return Ok(if self.select.distinct {
                    Step::SkipPartition
                } else {
                    Step::Continue
                });
            }
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
        !self.is_exhausted() && (self.rows + self.unseen_rows >= page_rows || self.out.len() >= self.limits.page_bytes)
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

    fn count_row(&mut self) {
        self.rows += 1;
        if let Some(left) = &mut self.limits.rows
            && self.select.sort.is_empty()
        {
            *left = left.saturating_sub(1);
        }
    }

    fn emit_row(&mut self) -> Result<(), Error> {
        let started = self.out.len();
        let score = match &self.nearest {
            None => None,
            Some(nearest) => match nearest.score(self.buffer.get(nearest.column())) {
                None => return Ok(()),
                near => near,
            },
        };
        if let Some(places) = &self.shape.plain {
            for place in places {
                self.buffer.encode_into(*place, &mut self.out);
            }
        } else {
            let values = self.scope().evaluate_all(&self.select.selection.expressions)?;
            self.put_values(&values)?;
        }
        if let (Some(nearest), Some(score)) = (&mut self.nearest, score) {
            let row = self.out.split_off(started);
            self.aside_bytes += ASIDE_BYTES + 2 * row.len();
            self.aside_bytes -= nearest.keep(score, row).map_or(0, |row| ASIDE_BYTES + 2 * row.len());
            return self.need_room();
        }
        let keys = self.sort_keys(&self.buffer);
        self.keep(started, keys)
    }

    /// What the row is sorted by.
    fn sort_keys(&self, row: &RowBuffer) -> Vec<Option<Bytes>> {
        let places = self.select.sort.iter().map(|(place, _)| *place);
        places.map(|place| row.get(place).map(Bytes::copy_from_slice)).collect()
    }

    /// Counts the row encoded since `started`, and puts it aside where it has to be sorted.
    ///
    /// # Errors
    /// When there is no memory for it.
    fn keep(&mut self, started: usize, keys: Vec<Option<Bytes>>) -> Result<(), Error> {
        if !self.select.sort.is_empty() {
            let row = self.out.split_off(started);
            let keys_bytes: usize = keys.iter().flatten().map(Bytes::len).sum();
            // It is there once more when all are put together.
            self.aside_bytes += ASIDE_BYTES + keys_bytes + 2 * row.len();
            self.sorted.push((keys, row));
        }
        self.count_row();
        self.need_room()
    }

    fn put_values(&mut self, values: &[Option<Bytes>]) -> Result<(), Error> {
        if let Some(columns) = &self.select.selection.json_columns {
            let row = super::json::row(columns, values);
            value::put_bytes(&mut self.out, Some(row.as_bytes()));
        } else {
            for value in values {
                value::put_bytes(&mut self.out, value.as_deref());
            }
        }
        Ok(())
    }

    // Groups.

    fn accept_in_group(&mut self, clustering: Option<&[u8]>) -> Result<Step, Error> {
        let Some(expressions) = &self.select.group_by else {
            // One group of everything; PER PARTITION LIMIT counts the rows that go in.
            if self.group.is_none() {
                self.open_group(Vec::new());
            }
            self.feed_group()?;
            if let Some(left) = &mut self.partition_left {
                *left = left.saturating_sub(1);
            }
            return Ok(if self.partition_left == Some(0) || self.select.distinct {
                Step::SkipPartition
            } else {
                Step::Continue
            });
        };
        let key = self.scope().evaluate_all(expressions)?;
        let is_same =
            self.group.as_ref().is_some_and(|group| group.key == key) && self.last_partition_key == self.partition_key;
        if !is_same {
            if self.group.is_some() {
                self.flush_group()?;
                if self.is_full() || self.is_exhausted() {
                    self.take_back();
                }
                if self.is_full() {
                    // The page ends behind the rows of the finished group; the last that there may be of the last partition
                    // ends the pages too.
                    let same_partition = self.last_partition_key == self.partition_key;
                    if !(same_partition && self.partition_left == Some(0) && self.is_last_key()) {
                        self.note_position_of_group(same_partition);
                    }
                    return Ok(Step::Stop);
                }
                if self.is_exhausted() {
                    return Ok(Step::Stop);
                }
            }
            if self.partition_left == Some(0) {
                self.take_back();
                return Ok(Step::SkipPartition);
            }
            if let Some(left) = &mut self.partition_left {
                *left = left.saturating_sub(1);
            }
            self.open_group(key);
        }
        self.last_partition_key.clone_from(&self.partition_key);
        self.last_clustering = clustering.map(<[u8]>::to_vec);
        self.charged_in_group = Some(self.charges.mark());
        self.feed_group()?;
        Ok(if self.select.distinct {
            Step::SkipPartition
        } else {
            Step::Continue
        })
    }

    fn open_group(&mut self, key: Vec<Option<Bytes>>) {
        let aggregates = &self.select.selection.aggregates;
        self.group = Some(Group {
            key,
            first: self.buffer.clone(),
            accumulators: aggregates
                .iter()
                .map(|aggregate| aggregate.function.as_ref().map(Accumulator::new))
                .collect(),
            counts: vec![0; aggregates.len()],
        });
    }

    fn feed_group(&mut self) -> Result<(), Error> {
        let Some(mut group) = self.group.take() else {
            return Ok(());
        };
        let aggregates: &[Aggregate] = &self.select.selection.aggregates;
        for ((aggregate, accumulator), count) in aggregates.iter().zip(&mut group.accumulators).zip(&mut group.counts) {
            match accumulator {
                None => *count += 1,
                Some(accumulator) => {
                    let arguments = self.scope().evaluate_all(&aggregate.arguments)?;
                    accumulator.add(&arguments)?;
                }
            }
        }
        self.group = Some(group);
        Ok(())
    }

    fn flush_group(&mut self) -> Result<(), Error> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut results = Vec::with_capacity(group.counts.len());
        for (accumulator, count) in group.accumulators.into_iter().zip(group.counts) {
            results.push(match accumulator {
                None => Some(Bytes::copy_from_slice(&count.to_be_bytes())),
                Some(accumulator) => accumulator.finish()?,
            });
        }
        let scope = Scope {
            row: &group.first,
            aggregates: &results,
            ..self.scope()
        };
        let values = scope.evaluate_all(&self.select.selection.expressions)?;
        let keys = self.sort_keys(&group.first);
        let started = self.out.len();
        self.put_values(&values)?;
        self.keep(started, keys)
    }

    // ORDER BY over several partitions.

    fn sort(&mut self) {
        if self.select.sort.is_empty() {
            return;
        }
        order::sort(&mut self.sorted, self.table, &self.select.sort);
        let wanted = self.limits.rows.and_then(|rows| usize::try_from(rows).ok());
        self.sorted.truncate(wanted.unwrap_or(usize::MAX));
        self.rows = u32::try_from(self.sorted.len()).unwrap_or(u32::MAX);
        for (_, row) in &self.sorted {
            self.out.extend_from_slice(row);
        }
    }
}
