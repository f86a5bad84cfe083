//! The bytes of a row, and a view that reads them in place.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Cell, CellState, ColumnId, Deletion, Expiry, Marker, Row};
use crate::storage::{Damaged, Error, Result};

/// The format that this version writes, and the only one so far.
const VERSION: u8 = 1;

const HAS_MARKER: u8 = 0x01;
const MARKER_EXPIRES: u8 = 0x02;
const HAS_DELETION: u8 = 0x04;
const HAS_COMPLEX: u8 = 0x08;
const HAS_POSITION: u8 = 0x10;
const ROW_FLAGS: u8 = HAS_MARKER | MARKER_EXPIRES | HAS_DELETION | HAS_COMPLEX | HAS_POSITION;

/// Bytes of a row with a position and nothing else: version, flags, base and position.
const NOTHING_BYTES_MAX: usize = 2 + 10 + 10;

const CELL_TOMBSTONE: u8 = 0x01;
const CELL_EXPIRES: u8 = 0x02;
const CELL_HAS_PATH: u8 = 0x04;
const CELL_OWN_TIMESTAMP: u8 = 0x08;
const CELL_STEP_SHIFT: u32 = 4;
/// A column step that does not fit beside the flags follows as a varint.
const CELL_STEP_LONG: u8 = 0x0F;

fn damaged(what: &'static str) -> Error {
    Error::Damaged(Damaged::row(what))
}

// Varints are little-endian base 128; signed numbers are zigzag-encoded so that small ones stay short.

/// Appends an unsigned varint: 7 bits a byte, low bits first.
pub(in crate::storage) fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.put_u8(value.to_le_bytes()[0]);
}

fn put_signed(out: &mut impl BufMut, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn put_bytes(out: &mut impl BufMut, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// Reads an unsigned varint off the front of `bytes`; `None` means it is cut short or longer than 64 bits.
pub(in crate::storage) fn get_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn get_signed(bytes: &mut &[u8]) -> Option<i64> {
    let folded = get_varint(bytes)?;
    Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
}

fn get_u32(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(get_varint(bytes)?).ok()
}

fn get_u8(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

fn get_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(get_varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn put_expiry(out: &mut impl BufMut, expiry: Expiry) {
    put_signed(out, expiry.at_seconds);
    put_varint(out, u64::from(expiry.ttl_seconds));
}

fn get_expiry(bytes: &mut &[u8]) -> Option<Expiry> {
    Some(Expiry {
        at_seconds: get_signed(bytes)?,
        ttl_seconds: get_u32(bytes)?,
    })
}

/// The value of a deletion record: `version · timestamp · at_seconds`.
pub(in crate::storage) fn encode_deletion(deletion: Deletion) -> Bytes {
    let mut out = BytesMut::with_capacity(20);
    out.put_u8(VERSION);
    put_signed(&mut out, deletion.timestamp);
    put_signed(&mut out, deletion.at_seconds);
    out.freeze()
}

/// Reads what [`encode_deletion`] wrote.
pub(in crate::storage) fn decode_deletion(mut bytes: &[u8]) -> Result<Deletion> {
    let bytes = &mut bytes;
    let deletion = (|| {
        (get_u8(bytes)? == VERSION).then_some(())?;
        Some(Deletion {
            timestamp: get_signed(bytes)?,
            at_seconds: get_signed(bytes)?,
        })
    })();
    deletion
        .filter(|_| bytes.is_empty())
        .ok_or_else(|| damaged("deletion record"))
}

/// Encodes a canonical row.
pub(super) fn encode(row: &Row) -> Bytes {
    let cells = row.cells.iter().map(CellRef::of);
    encode_parts(row.marker, row.deletion, &row.complex, cells, row.position)
}

/// Encodes the parts of a canonical row.
pub(super) fn encode_parts<'a>(
    marker: Option<Marker>,
    deletion: Option<Deletion>,
    complex: &[(ColumnId, Deletion)],
    cells: impl Iterator<Item = CellRef<'a>> + Clone,
    position: Option<i64>,
) -> Bytes {
    let values: usize = cells.clone().map(|cell| cell_bytes_at_most(&cell)).sum();
    let mut out = BytesMut::with_capacity(32 + 24 * complex.len() + values);
    out.put_u8(VERSION);
    let mut flags = 0;
    if let Some(marker) = marker {
        flags |= HAS_MARKER | if marker.expiry.is_some() { MARKER_EXPIRES } else { 0 };
    }
    flags |= if deletion.is_some() { HAS_DELETION } else { 0 };
    flags |= if complex.is_empty() { 0 } else { HAS_COMPLEX };
    flags |= if position.is_some() { HAS_POSITION } else { 0 };
    out.put_u8(flags);
    // Most rows are written at one timestamp, so it is stored once: the marker's if there is one.
    let base = marker
        .map(|marker| marker.timestamp)
        .or_else(|| cells.clone().next().map(|cell| cell.timestamp))
        .or_else(|| deletion.map(|deletion| deletion.timestamp))
        .or_else(|| complex.first().map(|(_, deletion)| deletion.timestamp))
        .unwrap_or(0);
    put_signed(&mut out, base);
    if let Some(position) = position {
        put_signed(&mut out, position.wrapping_sub(base));
    }
    if let Some(expiry) = marker.and_then(|marker| marker.expiry) {
        put_expiry(&mut out, expiry);
    }
    if let Some(deletion) = deletion {
        put_signed(&mut out, deletion.timestamp.wrapping_sub(base));
        put_signed(&mut out, deletion.at_seconds);
    }
    if !complex.is_empty() {
        put_varint(&mut out, complex.len() as u64);
        let mut before = 0;
        for (column, deletion) in complex {
            put_varint(&mut out, u64::from(column.0.wrapping_sub(before)));
            before = column.0;
            put_signed(&mut out, deletion.timestamp.wrapping_sub(base));
            put_signed(&mut out, deletion.at_seconds);
        }
    }
    let mut before = 0;
    for cell in cells {
        encode_cell(&mut out, &cell, base, before);
        before = cell.column.0;
    }
    out.freeze()
}

fn cell_bytes_at_most(cell: &CellRef<'_>) -> usize {
    let value = match cell.state {
        CellStateRef::Live { value, .. } => value.len(),
        CellStateRef::Tombstone { .. } => 0,
    };
    16 + value + cell.path.map_or(0, <[u8]>::len)
}

fn encode_cell(out: &mut BytesMut, cell: &CellRef<'_>, base: i64, column_before: u32) {
    let mut flags = match cell.state {
        CellStateRef::Tombstone { .. } => CELL_TOMBSTONE,
        CellStateRef::Live { expiry: Some(_), .. } => CELL_EXPIRES,
        CellStateRef::Live { expiry: None, .. } => 0,
    };
    flags |= if cell.path.is_some() { CELL_HAS_PATH } else { 0 };
    flags |= if cell.timestamp == base { 0 } else { CELL_OWN_TIMESTAMP };
    let step = cell.column.0.wrapping_sub(column_before);
    let short_step = u8::try_from(step).ok().filter(|step| *step < CELL_STEP_LONG);
    out.put_u8(flags | short_step.unwrap_or(CELL_STEP_LONG) << CELL_STEP_SHIFT);
    if short_step.is_none() {
        put_varint(out, u64::from(step));
    }
    if cell.timestamp != base {
        put_signed(out, cell.timestamp.wrapping_sub(base));
    }
    match cell.state {
        CellStateRef::Tombstone { at_seconds } => put_signed(out, at_seconds),
        CellStateRef::Live {
            expiry: Some(expiry), ..
        } => put_expiry(out, expiry),
        CellStateRef::Live { expiry: None, .. } => {}
    }
    if let Some(path) = cell.path {
        put_bytes(out, path);
    }
    if let CellStateRef::Live { value, .. } = cell.state {
        put_bytes(out, value);
    }
}

/// A row read in place: nothing is allocated, values are slices of the encoded bytes.
///
/// ```text
/// row      version u8 = 1 · flags u8 · base · [position] · [expiry] · [deletion] · [complex count · complex…] · cell… (to the end)
///          flags: 01 marker (its timestamp is the base) · 02 marker expires · 04 deletion · 08 complex · 10 position
/// base     signed varint: a timestamp in µs; the others are given by their distance from it
/// position in the change feed − base, signed varint       (only in rows of tables that have a feed)
/// expiry   at_seconds signed varint · ttl_seconds varint
/// deletion timestamp − base, signed varint · at_seconds signed varint
/// complex  column − column before, varint · deletion                                  (sorted by column)
/// cell     head u8 · [step varint] · [timestamp − base] · [at_seconds | expiry] · [path bytes] · [value bytes]
///          head: 01 tombstone · 02 expires · 04 has a path · 08 timestamp is not the base
///                high four bits: column − column before; 15 = it follows as a varint   (sorted by column, path)
/// bytes    length varint · bytes
/// varint   7 bits a byte, low bits first; signed ones folded (zigzag)
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    base: i64,
    position: Option<i64>,
    marker: Option<Marker>,
    deletion: Option<Deletion>,
    complex_count: u64,
    /// From the first complex deletion to the end of the row.
    complex: &'a [u8],
    cells: &'a [u8],
}

impl<'a> RowView<'a> {
    /// Reads the head of an encoded row; the cells are checked as they are walked.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the head is cut or has a format that this version cannot read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut rest = bytes;
        match get_u8(&mut rest) {
            Some(VERSION) => {}
            Some(_) => return Err(damaged("format version")),
            None => return Err(damaged("empty value")),
        }
        Self::parse_head(&mut rest).ok_or_else(|| damaged("head"))
    }

    fn parse_head(rest: &mut &'a [u8]) -> Option<Self> {
        let flags = get_u8(rest)?;
        if flags & !ROW_FLAGS != 0 || flags & (HAS_MARKER | MARKER_EXPIRES) == MARKER_EXPIRES {
            return None;
        }
        let base = get_signed(rest)?;
        let position = if flags & HAS_POSITION == 0 {
            None
        } else {
            Some(get_signed(rest)?.wrapping_add(base))
        };
        let expiry = if flags & MARKER_EXPIRES == 0 {
            None
        } else {
            Some(get_expiry(rest)?)
        };
        let marker = (flags & HAS_MARKER != 0).then_some(Marker {
            timestamp: base,
            expiry,
        });
        let deletion = if flags & HAS_DELETION == 0 {
            None
        } else {
            Some(get_deletion(rest, base)?)
        };
        let complex_count = if flags & HAS_COMPLEX == 0 { 0 } else { get_varint(rest)? };
        let complex = *rest;
        for _ in 0..complex_count {
            get_u32(rest)?;
            get_deletion(rest, base)?;
        }
        Some(Self {
            base,
            position,
            marker,
            deletion,
            complex_count,
            complex,
            cells: rest,
        })
    }

    /// The marker an INSERT left.
    #[must_use]
    pub fn marker(&self) -> Option<Marker> {
        self.marker
    }

    /// The position of its last change in the change feed. `None` means that it has none.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        self.position
    }

    /// The deletion of the whole row.
    #[must_use]
    pub fn deletion(&self) -> Option<Deletion> {
        self.deletion
    }

    /// The collections deleted as a whole, sorted by column.
    #[must_use]
    pub fn complex(&self) -> ComplexDeletions<'a> {
        ComplexDeletions {
            base: self.base,
            left: self.complex_count,
            column: 0,
            rest: self.complex,
        }
    }

    /// The cells, sorted by column and path. Each item is an error when the bytes are damaged, and then it ends.
    #[must_use]
    pub fn cells(&self) -> Cells<'a> {
        Cells {
            base: self.base,
            before: None,
            rest: self.cells,
        }
    }

    /// The newest timestamp in the row, whether visible or not; `None` means the row is empty.
    ///
    /// # Errors
    /// [`Error::Damaged`] when something in it is damaged.
    pub fn newest_timestamp(&self) -> Result<Option<i64>> {
        let marker = self.marker.map(|marker| marker.timestamp);
        let mut newest = marker.max(self.deletion.map(|deletion| deletion.timestamp));
        for complex in self.complex() {
            newest = newest.max(Some(complex?.1.timestamp));
        }
        for cell in self.cells() {
            newest = newest.max(Some(cell?.timestamp));
        }
        Ok(newest)
    }

    /// Whether a reader sees the row at `now_seconds`; cells up to `shadowed_to` (µs) are hidden by a partition or
    /// range deletion.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a cell is damaged.
    pub fn is_live(&self, now_seconds: i64, shadowed_to: Option<i64>) -> Result<bool> {
        let shows = |timestamp: i64| shadowed_to.is_none_or(|to| timestamp > to);
        if self
            .marker
            .is_some_and(|marker| shows(marker.timestamp) && marker.is_live(now_seconds))
        {
            return Ok(true);
        }
        for cell in self.cells() {
            let cell = cell?;
            if shows(cell.timestamp) && cell.is_live(now_seconds) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The row with values that it owns.
    ///
    /// # Errors
    /// [`Error::Damaged`] when a cell is damaged.
    pub fn to_row(&self) -> Result<Row> {
        let mut complex = Vec::new();
        for entry in self.complex() {
            let entry = entry?;
            if complex.last().is_some_and(|(column, _)| *column >= entry.0) {
                return Err(damaged("collections out of order"));
            }
            complex.push(entry);
        }
        let cells = self
            .cells()
            .map(|cell| cell.map(|cell| cell.to_cell()))
            .collect::<Result<_>>()?;
        Ok(Row {
            marker: self.marker,
            deletion: self.deletion,
            complex,
            cells,
            position: self.position,
        })
    }
}

/// The same encoded row with this position, or without one. `None` means that its head is damaged.
pub(in crate::storage) fn with_position(row: &[u8], position: Option<i64>) -> Option<Bytes> {
    let mut rest = row;
    let version = get_u8(&mut rest).filter(|version| *version == VERSION)?;
    let flags = get_u8(&mut rest)?;
    let base = get_signed(&mut rest)?;
    if flags & HAS_POSITION != 0 {
        get_signed(&mut rest)?;
    }
    let mut out = BytesMut::with_capacity(row.len() + 10);
    out.put_u8(version);
    match position {
        Some(position) => {
            out.put_u8(flags | HAS_POSITION);
            put_signed(&mut out, base);
            put_signed(&mut out, position.wrapping_sub(base));
        }
        None => {
            out.put_u8(flags & !HAS_POSITION);
            put_signed(&mut out, base);
        }
    }
    out.put_slice(rest);
    Some(out.freeze())
}

/// Whether an encoded partial row has no marker, deletion or cell.
pub(in crate::storage) fn changes_nothing(row: &[u8]) -> bool {
    row.len() <= NOTHING_BYTES_MAX && Row::decode(row).is_ok_and(|row| row.is_empty())
}

fn get_deletion(rest: &mut &[u8], base: i64) -> Option<Deletion> {
    Some(Deletion {
        timestamp: get_signed(rest)?.wrapping_add(base),
        at_seconds: get_signed(rest)?,
    })
}

/// Walks the collections deleted as a whole, in a row's bytes.
#[derive(Clone, Debug)]
pub struct ComplexDeletions<'a> {
    base: i64,
    left: u64,
    column: u32,
    rest: &'a [u8],
}

impl Iterator for ComplexDeletions<'_> {
    type Item = Result<(ColumnId, Deletion)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let read = |this: &mut Self| {
            this.column = this.column.checked_add(get_u32(&mut this.rest)?)?;
            Some((ColumnId(this.column), get_deletion(&mut this.rest, this.base)?))
        };
        let entry = read(self);
        if entry.is_none() {
            self.left = 0;
        }
        Some(entry.ok_or_else(|| damaged("collection deletion")))
    }
}

/// A cell in a row's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// The column.
    pub column: ColumnId,
    /// The element of a collection. `None` means a plain column.
    pub path: Option<&'a [u8]>,
    /// Microseconds, the write's timestamp.
    pub timestamp: i64,
    /// Value or tombstone.
    pub state: CellStateRef<'a>,
}

/// The content of a cell in a row's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStateRef<'a> {
    /// A value, possibly with an expiry.
    Live {
        /// The value's bytes.
        value: &'a [u8],
        /// `None` means it does not expire.
        expiry: Option<Expiry>,
    },
    /// A deleted value.
    Tombstone {
        /// Seconds since 1970 UTC when it was written.
        at_seconds: i64,
    },
}

impl<'a> CellRef<'a> {
    /// A view of a cell.
    pub(super) fn of(cell: &'a Cell) -> Self {
        Self {
            column: cell.column,
            path: cell.path.as_deref(),
            timestamp: cell.timestamp,
            state: match &cell.state {
                CellState::Live { value, expiry } => CellStateRef::Live { value, expiry: *expiry },
                CellState::Tombstone { at_seconds } => CellStateRef::Tombstone {
                    at_seconds: *at_seconds,
                },
            },
        }
    }

    /// Whether the cell has a value at `now_seconds`.
    #[must_use]
    pub fn is_live(&self, now_seconds: i64) -> bool {
        self.live_value(now_seconds).is_some()
    }

    /// The value that a reader sees at `now_seconds`.
    #[must_use]
    pub fn live_value(&self, now_seconds: i64) -> Option<&'a [u8]> {
        match self.state {
            CellStateRef::Live { value, expiry } => expiry
                .is_none_or(|expiry| !expiry.is_expired(now_seconds))
                .then_some(value),
            CellStateRef::Tombstone { .. } => None,
        }
    }

    fn to_cell(self) -> Cell {
        Cell {
            column: self.column,
            path: self.path.map(Bytes::copy_from_slice),
            timestamp: self.timestamp,
            state: match self.state {
                CellStateRef::Live { value, expiry } => CellState::Live {
                    value: Bytes::copy_from_slice(value),
                    expiry,
                },
                CellStateRef::Tombstone { at_seconds } => CellState::Tombstone { at_seconds },
            },
        }
    }
}

/// Walks the cells in a row's bytes, checking them as it goes.
#[derive(Clone, Debug)]
pub struct Cells<'a> {
    base: i64,
    before: Option<(ColumnId, Option<&'a [u8]>)>,
    rest: &'a [u8],
}

impl<'a> Cells<'a> {
    fn read(&mut self) -> Option<CellRef<'a>> {
        let rest = &mut self.rest;
        let head = get_u8(rest)?;
        let step = match head >> CELL_STEP_SHIFT {
            CELL_STEP_LONG => get_u32(rest)?,
            step => u32::from(step),
        };
        let column = ColumnId(self.before.map_or(0, |(column, _)| column.0).checked_add(step)?);
        let distance = if head & CELL_OWN_TIMESTAMP == 0 {
            0
        } else {
            get_signed(rest)?
        };
        let (at_seconds, expiry) = match head & (CELL_TOMBSTONE | CELL_EXPIRES) {
            0 => (None, None),
            CELL_TOMBSTONE => (Some(get_signed(rest)?), None),
            CELL_EXPIRES => (None, Some(get_expiry(rest)?)),
            _ => return None,
        };
        let path = if head & CELL_HAS_PATH == 0 {
            None
        } else {
            Some(get_bytes(rest)?)
        };
        let state = match at_seconds {
            Some(at_seconds) => CellStateRef::Tombstone { at_seconds },
            None => CellStateRef::Live {
                value: get_bytes(rest)?,
                expiry,
            },
        };
        if self.before.is_some_and(|before| before >= (column, path)) {
            return None;
        }
        self.before = Some((column, path));
        Some(CellRef {
            column,
            path,
            timestamp: self.base.wrapping_add(distance),
            state,
        })
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<CellRef<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let cell = self.read();
        if cell.is_none() {
            self.rest = &[];
        }
        Some(cell.ok_or_else(|| damaged("cell")))
    }
}
