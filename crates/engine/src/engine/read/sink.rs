//! Collects the rows of a read: groups and sorts them, applies limits, divides them into pages, and passes them to the
//! front end's [`RowSink`].
//!
//! Parts supply rows that their filter accepted (`PartSink`); after each, the sink returns whether it needs more
//! (`Step`). When a page is full, it records the [`Position`] after the last accepted row.

mod given;
mod groups;
mod shape;

use bytes::Bytes;

use crate::engine::Error;
use crate::engine::part::{PartSink, Reply, Step, Walked};
use crate::engine::terms::request::Request;
use helenus_schema::command::{Partitions, Position, Read};
use helenus_schema::guardrails::Level;
use helenus_schema::schema::Table;
use helenus_types::functions::Context;

use super::row_sink::RowSink;
use super::tombstones;
use crate::engine::row::buffer::RowBuffer;
use crate::engine::row::evaluate::Scope;
use crate::engine::terms::room::{AnswerMemory, Room};

use self::given::Given;
use self::groups::Group;
pub(crate) use self::shape::Limits;
pub use self::shape::Shape;

/// The logical partition begun last.
enum Current {
    /// One that the read names: its position among the keys, so that a point read copies no key.
    Named(usize),
    /// One that a scan met: its key.
    Met(Vec<u8>),
}

impl Current {
    fn begin(&mut self, partitions: &Partitions, partition_key: &[u8]) {
        if let Partitions::Keys(keys) = partitions {
            // Keys are visited in their order, so the search begins at the last one.
            let from = match self {
                Self::Named(position) => *position,
                Self::Met(_) => 0,
            };
            if let Some(steps) = keys.iter().skip(from).position(|key| *key == partition_key) {
                *self = Self::Named(from + steps);
                return;
            }
        }
        match self {
            Self::Met(key) => {
                key.clear();
                key.extend_from_slice(partition_key);
            }
            Self::Named(_) => *self = Self::Met(partition_key.to_vec()),
        }
    }

    fn key<'k>(&'k self, partitions: &'k Partitions) -> &'k [u8] {
        match (self, partitions) {
            (Self::Met(key), _) => key,
            (Self::Named(position), Partitions::Keys(keys)) => keys.get(*position).map_or(&[], |key| key),
            (Self::Named(_), Partitions::Ring(_)) => &[],
        }
    }
}

/// Takes rows in, and makes a page of them.
pub(crate) struct Sink<'a, R> {
    table: &'a Table,
    select: &'a Read,
    shape: &'a Shape,
    context: &'a Context,
    now_seconds: i64,
    given: Given<'a, R>,
    /// Static rows that count for the page and for LIMIT though they are not returned: see [`PartSink::unseen_row`].
    unseen_rows: u32,
    limits: Limits,
    partition_left: Option<u32>,
    partition: Current,
    group: Option<Group>,
    last_partition_key: Vec<u8>,
    last_clustering: Option<Vec<u8>>,
    /// Boxed, like a page's, since most reads end without one and would move it several times.
    position: Option<Box<Position>>,
    walked: Walked,
    warnings: Vec<String>,
    /// The memory that it may hold.
    room: Room<'a>,
    /// Bytes of places that a part has looked up in an index and not visited yet.
    places_bytes: usize,
    /// Whether each row's JSON has the system columns of the change feed.
    shows_system_columns: bool,
}

/// The page that a sink has gathered.
pub(crate) struct Page {
    /// How many rows were given.
    pub(crate) row_count: u32,
    /// Bytes that the front end took for them.
    pub(crate) bytes: usize,
    /// The memory reserved for them.
    pub(crate) memory: AnswerMemory,
    /// Where to continue. `None` means that there are no more rows.
    pub(crate) position: Option<Box<Position>>,
    /// Warnings to the client.
    pub(crate) warnings: Vec<String>,
    /// Charges since the last row that joined a group belong to the next page.
    pub(crate) leaves_rest: bool,
}

impl<'a, R: RowSink> Sink<'a, R> {
    pub(crate) fn new(
        select: &'a Read,
        shape: &'a Shape,
        request: &'a Request<'_>,
        limits: Limits,
        room: Room<'a>,
        rows: &'a mut R,
    ) -> Self {
        let table = select.table.as_ref();
        Self {
            table,
            select,
            shape,
            context: &request.context,
            now_seconds: request.now_seconds,
            given: Given::new(select, rows, limits.content_bytes_ahead),
            unseen_rows: 0,
            limits,
            partition_left: None,
            partition: Current::Met(Vec::new()),
            group: None,
            last_partition_key: Vec::new(),
            last_clustering: None,
            position: None,
            walked: Walked::default(),
            warnings: Vec::new(),
            room,
            places_bytes: 0,
            shows_system_columns: false,
        }
    }

    /// Adds the system columns of the change feed to rows of JSON, if the selection has them.
    pub(crate) fn show_system_columns(&mut self) {
        self.shows_system_columns = self.select.selection.has_system_columns;
    }

    /// Whether no row can be wanted at all (earlier pages have used up LIMIT).
    pub(crate) fn is_exhausted(&self) -> bool {
        self.limits.rows == Some(0)
    }

    /// How many rows the page may still take. `None` means no limit, or that it is not known, as with groups.
    pub(crate) fn rows_wanted(&self) -> Option<usize> {
        self.limits.rows_wanted(self.select)
    }

    /// Tombstones that earlier parts have walked over and that count with those of the next one.
    pub(crate) const fn tombstones(&self) -> u64 {
        self.walked.tombstones
    }

    /// Counts what a part walked over at its end.
    pub(crate) fn add_walked(&mut self, walked: Walked) {
        self.walked.add(walked);
    }

    fn report_tombstones(&mut self) {
        let walked = std::mem::take(&mut self.walked);
        if let Level::Warn(_) | Level::Refuse(_) = self.limits.tombstones.level(walked.tombstones) {
            let warning = tombstones::warning(self.select, self.limits.page_rows, self.partition_key(), walked);
            self.warnings.push(warning);
        }
    }

    /// Ends the read: the page.
    pub(crate) fn finish(&mut self) -> Result<Page, Error> {
        let mut leaves_rest = false;
        if self.position.is_none() {
            if self.group.is_some() {
                self.flush_group()?;
                // A partition that has emitted only its static row has no more rows.
                let is_done = self.partition_left == Some(0) || self.last_clustering.is_none();
                if self.select.group_by.is_some() && self.is_full() && !(is_done && self.is_last_key()) {
                    // It is unknown whether another group follows the full page: the next page, which has no rows,
                    // shows it.
                    self.note_position_of_group(false);
                }
                leaves_rest = self.select.group_by.is_some() && (self.position.is_some() || self.is_exhausted());
            } else if !self.select.selection.aggregates.is_empty() && self.select.group_by.is_none() {
                let nothing = RowBuffer::new(&self.shape.layout);
                self.open_group(&nothing, Vec::new());
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
            leaves_rest,
        })
    }

    fn scope<'r>(&'r self, row: &'r RowBuffer) -> Scope<'r> {
        Scope {
            table: self.table,
            row,
            aggregates: &[],
            now_seconds: self.now_seconds,
            context: self.context,
        }
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
            // As Cassandra's pager: after the last possible row there is no further page, not even an empty one.
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
            if keys.last().is_some_and(|key| *key == self.partition_key()))
    }

    fn is_full(&self) -> bool {
        let Some(page_rows) = self.limits.page_rows else {
            return false;
        };
        !self.is_exhausted()
            && (self.given.count + self.unseen_rows >= page_rows || self.given.bytes >= self.limits.page_bytes)
    }

    /// The key of the logical partition begun last; empty before the first.
    fn partition_key(&self) -> &[u8] {
        self.partition.key(&self.select.partitions)
    }

    fn note_position(&mut self, clustering: Option<Vec<u8>>) {
        let partition_key = Bytes::copy_from_slice(self.partition_key());
        self.end_page_at(partition_key, clustering, self.partition_left);
    }

    /// The page ends after the last row of the previous group; `goes_on` if its partition has more groups.
    fn note_position_of_group(&mut self, goes_on: bool) {
        let clustering = self.last_clustering.take().filter(|_| !self.select.distinct);
        let partition_key = std::mem::take(&mut self.last_partition_key).into();
        let left = if goes_on { self.partition_left } else { Some(0) };
        let left = left.filter(|_| self.select.per_partition_limit_rows.is_some());
        self.end_page_at(partition_key, clustering, left);
    }

    fn end_page_at(&mut self, partition_key: Bytes, clustering: Option<Vec<u8>>, partition_limit_rows: Option<u32>) {
        self.position = Some(Box::new(Position {
            partition_key,
            clustering: clustering.map(Bytes::from),
            of_one_partition: matches!(&self.select.partitions, Partitions::Keys(keys) if keys.len() == 1),
            limit_rows: self.limits.rows,
            partition_limit_rows,
            charge_left_micros: 0,
            feed: None,
        }));
    }
}

impl<R: RowSink> PartSink for Sink<'_, R> {
    fn begin_partition(&mut self, partition_key: &[u8], left: Option<u32>) {
        if matches!(self.select.partitions, Partitions::Keys(_)) {
            self.report_tombstones();
        }
        self.partition.begin(&self.select.partitions, partition_key);
        self.partition_left = left;
    }

    fn row(&mut self, row: &RowBuffer, clustering: Option<&[u8]>) -> Result<Reply, Error> {
        if self.partition_left == Some(0) && self.select.group_by.is_none() {
            return Ok(Reply::Plain(Step::SkipPartition));
        }
        if self.select.is_grouped() {
            return self.accept_in_group(row, clustering);
        }
        self.emit_row(row)?;
        Ok(Reply::Plain(self.after_row(clustering)))
    }

    fn unseen_row(&mut self) -> Step {
        self.unseen_rows += 1;
        if let Some(left) = &mut self.limits.rows {
            *left = left.saturating_sub(1);
        }
        self.after_row(None)
    }

    fn walked(&mut self, walked: Walked) {
        self.walked.add(walked);
    }

    fn check_client(&self) -> Result<(), Error> {
        self.room.check_client()
    }

    fn hold_places(&mut self, bytes: usize) -> Result<(), Error> {
        self.places_bytes = bytes;
        self.need_room()
    }
}
