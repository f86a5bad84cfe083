//! The message of a read: what one physical partition, on another machine, is to read.

use std::sync::Arc;

use bytes::Bytes;

use super::bytes::{Decoder, Encoder, Kind, tags};
use super::error::{DecodeError, EncodeError};
use super::limits::PROBES_MAX;
use super::table::Tables;
use crate::command::{Aggregate, Clustering, Filter, IndexProbe, Partitions, Position, Read, Selection};
use crate::schema::Table;
use helenus_types::token::KeySpan;

/// The section of its physical partition that a part reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// One logical partition, which the statement names.
    Key(Bytes),
    /// A span of the ring.
    Span(KeySpan),
}

/// What becomes of the rows. A part charges and skips accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each is a row of the result.
    None,
    /// All form one group.
    One,
    /// Those with equal leading key columns form groups.
    ByKey,
}

tags!(grouping, Grouping, "grouping", {
    1 = Grouping::None,
    2 = Grouping::One,
    3 = Grouping::ByKey,
});

/// A read restricted to one physical partition. It owns what it says, so that it can travel.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRequest {
    /// The table.
    pub table: Arc<Table>,
    /// Positions in `table.columns` of the columns that the statement needs. Sorted.
    pub needed: Vec<usize>,
    /// Whether write times or expiries are needed.
    pub needs_metadata: bool,
    /// Which logical partitions.
    pub cut: Cut,
    /// Which rows of each.
    pub rows: Clustering,
    /// See [`Read::counts_static`].
    pub counts_static: bool,
    /// Which rows pass.
    pub filter: Filter,
    /// Indexes that may be used. Empty means that the part scans.
    pub probes: Vec<IndexProbe>,
    /// Rows of each logical partition in descending clustering order.
    pub reversed: bool,
    /// DISTINCT: one row for each logical partition.
    pub distinct: bool,
    /// What becomes of the rows.
    pub grouping: Grouping,
    /// PER PARTITION LIMIT, in rows. `None` means no limit.
    pub per_partition_limit_rows: Option<u32>,
    /// The end of the previous page, if it ended inside this part or an earlier one.
    pub resume: Option<Position>,
    /// No page of the read has visited the physical partition yet.
    pub is_first: bool,
    /// Rows that the page may still take. `None` means no limit, or that it is not known.
    pub rows_wanted: Option<u64>,
    /// Tombstones that earlier parts have walked over, where they count together.
    pub tombstones_before: u64,
    /// Tombstones at which the read fails. `None` means no limit.
    pub tombstones_max: Option<u64>,
    /// The moment against which expiry is checked, seconds since 1970-01-01 UTC.
    pub now_seconds: i64,
}

impl ReadRequest {
    /// The first part of a read at this moment, without limits of its own.
    #[must_use]
    pub fn of(read: &Read, cut: Cut, now_seconds: i64) -> Self {
        Self {
            table: Arc::clone(&read.table),
            needed: read.selection.needed.clone(),
            needs_metadata: read.selection.needs_metadata,
            cut,
            rows: read.rows.clone(),
            counts_static: read.counts_static,
            filter: read.filter.clone(),
            probes: read.probes.clone(),
            reversed: read.reversed,
            distinct: read.distinct,
            grouping: match (read.is_one_group(), read.is_grouped()) {
                (true, _) => Grouping::One,
                (false, true) => Grouping::ByKey,
                (false, false) => Grouping::None,
            },
            per_partition_limit_rows: read.per_partition_limit_rows,
            resume: None,
            is_first: true,
            rows_wanted: None,
            tombstones_before: 0,
            tombstones_max: None,
            now_seconds,
        }
    }

    /// The command that a part borrows: of its selection only the needed columns, of its groups only what they are.
    #[must_use]
    pub fn to_read(&self) -> Read {
        let counts_rows = || Aggregate {
            function: None,
            arguments: Vec::new(),
        };
        let (group_by, aggregates) = match self.grouping {
            Grouping::None => (None, Vec::new()),
            Grouping::One => (None, vec![counts_rows()]),
            Grouping::ByKey => (Some(Vec::new()), Vec::new()),
        };
        let selection = Selection {
            columns: Arc::default(),
            expressions: Vec::new(),
            aggregates,
            needed: self.needed.clone(),
            needs_metadata: self.needs_metadata,
            json_columns: None,
            has_system_columns: false,
        };
        let partitions = match &self.cut {
            Cut::Key(key) => Partitions::Keys(vec![key.clone()]),
            Cut::Span(span) => Partitions::Ring(Some(span.clone())),
        };
        Read {
            rows: self.rows.clone(),
            counts_static: self.counts_static,
            filter: self.filter.clone(),
            probes: self.probes.clone(),
            reversed: self.reversed,
            distinct: self.distinct,
            group_by,
            per_partition_limit_rows: self.per_partition_limit_rows,
            ..Read::new(Arc::clone(&self.table), Arc::new(selection), partitions)
        }
    }

    /// The message.
    ///
    /// # Errors
    /// The read is beyond a bound of messages.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        let Self {
            table,
            needed,
            needs_metadata,
            cut,
            rows,
            counts_static,
            filter,
            probes,
            reversed,
            distinct,
            grouping,
            per_partition_limit_rows,
            resume,
            is_first,
            rows_wanted,
            tombstones_before,
            tombstones_max,
            now_seconds,
        } = self;
        let mut encoder = Encoder::new(Kind::Read);
        encoder.table(table);
        encoder.columns(needed);
        encoder.bool(*needs_metadata);
        match cut {
            Cut::Key(key) => {
                encoder.u8(1);
                encoder.bytes(key);
            }
            Cut::Span(span) => {
                encoder.u8(2);
                encoder.span(span);
            }
        }
        encoder.clustering(rows);
        encoder.bool(*counts_static);
        encoder.filter(filter);
        encoder.list(PROBES_MAX, probes, |encoder, probe| {
            let IndexProbe {
                index,
                storage_id,
                ranges,
                is_equality,
            } = probe;
            encoder.text(index);
            encoder.u32(*storage_id);
            encoder.ranges(ranges);
            encoder.bool(*is_equality);
        });
        encoder.bool(*reversed);
        encoder.bool(*distinct);
        encoder.grouping(*grouping);
        encoder.option(*per_partition_limit_rows, Encoder::u32);
        encoder.option(resume.as_ref(), Encoder::position);
        encoder.bool(*is_first);
        encoder.option(*rows_wanted, Encoder::u64);
        encoder.u64(*tombstones_before);
        encoder.option(*tombstones_max, Encoder::u64);
        encoder.i64(*now_seconds);
        encoder.finish()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are no such message, or the receiver's table differs.
    pub fn decode(message: &Bytes, tables: &impl Tables) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(message, Kind::Read)?;
        let table = decoder.table(tables)?;
        decoder.columns = table.columns.len();
        let request = Self {
            table,
            needed: decoder.sorted_columns()?,
            needs_metadata: decoder.bool()?,
            cut: match decoder.u8()? {
                1 => Cut::Key(decoder.bytes()?),
                2 => Cut::Span(decoder.span()?),
                found => return Err(DecodeError::Tag { of: "cut", found }),
            },
            rows: decoder.clustering()?,
            counts_static: decoder.bool()?,
            filter: decoder.filter()?,
            probes: decoder.list(PROBES_MAX, |decoder| {
                Ok(IndexProbe {
                    index: decoder.text()?,
                    storage_id: decoder.u32()?,
                    ranges: decoder.sorted_ranges()?,
                    is_equality: decoder.bool()?,
                })
            })?,
            reversed: decoder.bool()?,
            distinct: decoder.bool()?,
            grouping: decoder.grouping()?,
            per_partition_limit_rows: decoder.option(Decoder::u32)?,
            resume: decoder.option(Decoder::position)?,
            is_first: decoder.bool()?,
            rows_wanted: decoder.option(Decoder::u64)?,
            tombstones_before: decoder.u64()?,
            tombstones_max: decoder.option(Decoder::u64)?,
            now_seconds: decoder.i64()?,
        };
        decoder.finish()?;
        Ok(request)
    }
}
