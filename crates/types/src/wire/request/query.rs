//! QUERY, PREPARE, EXECUTE and the parameters that they share.
//!
//! ```text
//! parameters  consistency u16 · flags u8 (v5: i32) · by flag:
//!   01 values: n u16, each [name, with 40] value      20 default timestamp i64 (µs)
//!   04 page size i32                                  80 keyspace [string]      v5
//!   08 paging state [bytes]                          100 now in seconds i32     v5
//!   10 serial consistency u16                         02 skip metadata: no bytes
//! ```

use bytes::Bytes;

use super::super::cursor::{Malformed, Read, Reader};
use super::super::value::{Consistency, Value};
use super::super::{Version, write};

const VALUES: i32 = 0x01;
const SKIP_METADATA: i32 = 0x02;
const PAGE_SIZE: i32 = 0x04;
const PAGING_STATE: i32 = 0x08;
pub(super) const SERIAL_CONSISTENCY: i32 = 0x10;
pub(super) const DEFAULT_TIMESTAMP: i32 = 0x20;
pub(super) const NAMES: i32 = 0x40;
pub(super) const KEYSPACE: i32 = 0x80;
pub(super) const NOW_IN_SECONDS: i32 = 0x100;

/// The values bound to a statement's markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values<'a> {
    /// In the order of the markers.
    Positional(Vec<Value>),
    /// By name; names match a marker's lower-cased or quoted one.
    Named(Vec<(&'a str, Value)>),
}

impl Values<'_> {
    /// No values.
    pub const NONE: Self = Self::Positional(Vec::new());

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Positional(values) => values.len(),
            Self::Named(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The parameters of a QUERY or EXECUTE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params<'a> {
    /// The consistency level.
    pub consistency: Consistency,
    /// The values of the markers.
    pub values: Values<'a>,
    /// The client has the result's metadata and requests none.
    pub skip_metadata: bool,
    /// Rows in a page. `None`, also when the client sent 0 or less, means not paged.
    pub page_size_rows: Option<u32>,
    /// Where the page before ended; untrusted input.
    pub paging_state: Option<Bytes>,
    /// `None` means the client sent none, which means SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// The timestamp of writes that name none, µs since the epoch. `None` means the server's.
    pub default_timestamp_micros: Option<i64>,
    /// The keyspace of unqualified names, version 5. `None` means the connection's.
    pub keyspace: Option<&'a str>,
    /// The time at which expiry is evaluated, seconds since the epoch, version 5. `None` means now.
    pub now_in_seconds: Option<i32>,
}

impl Default for Params<'_> {
    fn default() -> Self {
        Self {
            consistency: Consistency::One,
            values: Values::NONE,
            skip_metadata: false,
            page_size_rows: None,
            paging_state: None,
            serial_consistency: None,
            default_timestamp_micros: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}

pub(super) fn read_flags(reader: &mut Reader<'_>, version: Version) -> Read<i32> {
    if version >= Version::V5 {
        reader.int("flags")
    } else {
        reader.byte("flags").map(i32::from)
    }
}

pub(super) fn write_flags(out: &mut Vec<u8>, version: Version, flags: i32) {
    if version >= Version::V5 {
        write::int(out, flags);
    } else {
        // Bits above the byte exist in version 5 only; callers mask them out.
        out.extend(u8::try_from(flags & 0xFF));
    }
}

pub(super) fn read_positional(reader: &mut Reader<'_>, version: Version) -> Read<Vec<Value>> {
    let count = usize::from(reader.short("number of values")?);
    // Each value has at least four bytes, so a false count cannot reserve more memory than was sent.
    let mut values = Vec::with_capacity(count.min(reader.remaining() / 4));
    for _ in 0..count {
        values.push(reader.value(version >= Version::V4, "value")?);
    }
    Ok(values)
}

fn read_named<'a>(reader: &mut Reader<'a>, version: Version) -> Read<Vec<(&'a str, Value)>> {
    let count = usize::from(reader.short("number of values")?);
    let mut values = Vec::with_capacity(count.min(reader.remaining() / 6));
    for _ in 0..count {
        let name = reader.string("name of a value")?;
        values.push((name, reader.value(version >= Version::V4, "value")?));
    }
    Ok(values)
}

impl<'a> Params<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        let consistency = reader.consistency("consistency")?;
        let flags = read_flags(reader, version)?;
        let has = |flag: i32| flags & flag != 0;
        let v5 = version >= Version::V5;
        let values = match (has(VALUES), has(NAMES)) {
            (false, _) => Values::NONE,
            (true, false) => Values::Positional(read_positional(reader, version)?),
            (true, true) => Values::Named(read_named(reader, version)?),
        };
        let page_size_rows = if has(PAGE_SIZE) {
            match reader.int("page size")? {
                0 => {
                    return Err(Malformed::Unsupported {
                        what: "The page size cannot be 0",
                    });
                }
                rows => u32::try_from(rows).ok(),
            }
        } else {
            None
        };
        let paging_state = if has(PAGING_STATE) {
            reader.bytes("paging state")?
        } else {
            None
        };
        let serial_consistency = if has(SERIAL_CONSISTENCY) {
            Some(reader.consistency("serial consistency")?)
        } else {
            None
        };
        let default_timestamp_micros = if has(DEFAULT_TIMESTAMP) {
            Some(read_timestamp(reader)?)
        } else {
            None
        };
        let keyspace = if v5 && has(KEYSPACE) {
            Some(reader.string("keyspace")?)
        } else {
            None
        };
        let now_in_seconds = if v5 && has(NOW_IN_SECONDS) {
            Some(reader.int("now in seconds")?)
        } else {
            None
        };
        Ok(Self {
            consistency,
            values,
            skip_metadata: has(SKIP_METADATA),
            page_size_rows,
            paging_state,
            serial_consistency,
            default_timestamp_micros,
            keyspace,
            now_in_seconds,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        let v5 = version >= Version::V5;
        let mut flags = 0;
        let mut set = |flag: i32, when: bool| flags |= if when { flag } else { 0 };
        set(VALUES, !self.values.is_empty());
        set(
            NAMES,
            matches!(&self.values, Values::Named(values) if !values.is_empty()),
        );
        set(SKIP_METADATA, self.skip_metadata);
        set(PAGE_SIZE, self.page_size_rows.is_some());
        set(PAGING_STATE, self.paging_state.is_some());
        set(SERIAL_CONSISTENCY, self.serial_consistency.is_some());
        set(DEFAULT_TIMESTAMP, self.default_timestamp_micros.is_some());
        set(KEYSPACE, v5 && self.keyspace.is_some());
        set(NOW_IN_SECONDS, v5 && self.now_in_seconds.is_some());
        write::short(out, self.consistency.code());
        write_flags(out, version, flags);
        if !self.values.is_empty() {
            write_values(out, &self.values);
        }
        if let Some(rows) = self.page_size_rows {
            write::int(out, i32::try_from(rows).unwrap_or(i32::MAX));
        }
        if let Some(state) = &self.paging_state {
            write::bytes(out, Some(state));
        }
        write_tail(out, self.serial_consistency, self.default_timestamp_micros);
        if v5 {
            write_v5_tail(out, self.keyspace, self.now_in_seconds);
        }
    }
}

pub(super) fn read_timestamp(reader: &mut Reader<'_>) -> Read<i64> {
    match reader.long("default timestamp")? {
        // Cassandra uses this value for «no timestamp» and refuses it (QueryOptions.Codec).
        i64::MIN => Err(Malformed::Unsupported {
            what: "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got \
                   -9223372036854775808)",
        }),
        micros => Ok(micros),
    }
}

pub(super) fn write_values(out: &mut Vec<u8>, values: &Values<'_>) {
    let count = write::short_count(out, values.len());
    match values {
        Values::Positional(values) => {
            for value in values.iter().take(count) {
                write::value(out, value);
            }
        }
        Values::Named(values) => {
            for (name, value) in values.iter().take(count) {
                write::string(out, name);
                write::value(out, value);
            }
        }
    }
}

pub(super) fn write_tail(out: &mut Vec<u8>, serial: Option<Consistency>, timestamp_micros: Option<i64>) {
    if let Some(serial) = serial {
        write::short(out, serial.code());
    }
    if let Some(micros) = timestamp_micros {
        write::long(out, micros);
    }
}

pub(super) fn write_v5_tail(out: &mut Vec<u8>, keyspace: Option<&str>, now_in_seconds: Option<i32>) {
    if let Some(keyspace) = keyspace {
        write::string(out, keyspace);
    }
    if let Some(now) = now_in_seconds {
        write::int(out, now);
    }
}

/// A statement to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// CQL.
    pub text: &'a str,
    /// Its parameters.
    pub params: Params<'a>,
}

impl<'a> Query<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        Ok(Self {
            text: reader.long_string("query")?,
            params: Params::read(reader, version)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::long_string(out, self.text);
        self.params.write(out, version);
    }
}

/// A statement to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// CQL.
    pub text: &'a str,
    /// The keyspace of unqualified names, version 5. `None` means the connection's.
    pub keyspace: Option<&'a str>,
}

/// PREPARE's one flag: a keyspace follows.
const WITH_KEYSPACE: i32 = 0x01;

impl<'a> Prepare<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        let text = reader.long_string("query")?;
        let with_keyspace = version >= Version::V5 && reader.int("flags")? & WITH_KEYSPACE != 0;
        let keyspace = if with_keyspace {
            Some(reader.string("keyspace")?)
        } else {
            None
        };
        Ok(Self { text, keyspace })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::long_string(out, self.text);
        if version >= Version::V5 {
            write::int(out, if self.keyspace.is_some() { WITH_KEYSPACE } else { 0 });
            if let Some(keyspace) = self.keyspace {
                write::string(out, keyspace);
            }
        }
    }
}

/// A prepared statement to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// The id from PREPARED.
    pub id: &'a [u8],
    /// The id of the result's metadata that the client has; `None` before version 5.
    pub result_metadata_id: Option<&'a [u8]>,
    /// Its parameters.
    pub params: Params<'a>,
}

impl<'a> Execute<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        let id = reader.short_bytes("prepared id")?;
        let result_metadata_id = if version >= Version::V5 {
            Some(reader.short_bytes("result metadata id")?)
        } else {
            None
        };
        Ok(Self {
            id,
            result_metadata_id,
            params: Params::read(reader, version)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::short_bytes(out, self.id);
        if version >= Version::V5 {
            write::short_bytes(out, self.result_metadata_id.unwrap_or_default());
        }
        self.params.write(out, version);
    }
}
