//! BATCH: several statements as one.
//!
//! ```text
//! type u8 · n u16 · n × { kind u8 · text [long string] | id [short bytes] · values n u16 value… }
//! consistency u16 · flags u8 (v5: i32) · 10 serial · 20 timestamp · 80 keyspace (v5) · 100 now (v5)
//! ```

use super::super::cursor::{Malformed, Read, Reader};
use super::super::value::{BatchType, Consistency, Value};
use super::super::{Version, write};
use super::query::{
    DEFAULT_TIMESTAMP, KEYSPACE, NAMES, NOW_IN_SECONDS, SERIAL_CONSISTENCY, read_flags, read_positional,
    read_timestamp, write_flags, write_tail, write_v5_tail,
};

/// Several statements as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Its atomicity.
    pub batch_type: BatchType,
    /// In the order sent.
    pub statements: Vec<BatchStatement<'a>>,
    /// The consistency level.
    pub consistency: Consistency,
    /// `None` means the client sent none, which means SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// The timestamp of writes that name none, µs since the epoch. `None` means the server's.
    pub default_timestamp_micros: Option<i64>,
    /// The keyspace of unqualified names, version 5. `None` means the connection's.
    pub keyspace: Option<&'a str>,
    /// The time at which expiry is evaluated, seconds since the epoch, version 5. `None` means now.
    pub now_in_seconds: Option<i32>,
}

/// One statement of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStatement<'a> {
    /// The text or id.
    pub subject: Subject<'a>,
    /// The values of its markers, in order.
    pub values: Vec<Value>,
}

/// How a batch names a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// CQL.
    Text(&'a str),
    /// The id from PREPARED.
    Prepared(&'a [u8]),
}

impl<'a> BatchStatement<'a> {
    fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        let subject = match reader.byte("kind of statement")? {
            0 => Subject::Text(reader.long_string("query")?),
            1 => Subject::Prepared(reader.short_bytes("prepared id")?),
            kind => {
                return Err(Malformed::Code {
                    field: "kind of statement",
                    code: kind.into(),
                });
            }
        };
        let values = read_positional(reader, version)?;
        Ok(Self { subject, values })
    }
}

impl<'a> Batch<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Read<Self> {
        let code = reader.byte("batch type")?;
        let batch_type = BatchType::from_code(code).ok_or(Malformed::BatchType(code))?;
        let count = usize::from(reader.short("number of statements")?);
        // A statement has at least five bytes: kind, id length, number of values.
        let mut statements = Vec::with_capacity(count.min(reader.remaining() / 5));
        for _ in 0..count {
            statements.push(BatchStatement::read(reader, version)?);
        }
        let consistency = reader.consistency("consistency")?;
        let flags = read_flags(reader, version)?;
        let has = |flag: i32| flags & flag != 0;
        if has(NAMES) {
            // The flag for names follows the values that would have names, so they cannot be parsed (CASSANDRA-10246).
            return Err(Malformed::Unsupported {
                what: "Named values are not supported in a batch",
            });
        }
        let v5 = version >= Version::V5;
        Ok(Self {
            batch_type,
            statements,
            consistency,
            serial_consistency: if has(SERIAL_CONSISTENCY) {
                Some(reader.consistency("serial consistency")?)
            } else {
                None
            },
            default_timestamp_micros: if has(DEFAULT_TIMESTAMP) {
                Some(read_timestamp(reader)?)
            } else {
                None
            },
            keyspace: if v5 && has(KEYSPACE) {
                Some(reader.string("keyspace")?)
            } else {
                None
            },
            now_in_seconds: if v5 && has(NOW_IN_SECONDS) {
                Some(reader.int("now in seconds")?)
            } else {
                None
            },
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        out.push(self.batch_type.code());
        let count = write::short_count(out, self.statements.len());
        for statement in self.statements.iter().take(count) {
            match statement.subject {
                Subject::Text(text) => {
                    out.push(0);
                    write::long_string(out, text);
                }
                Subject::Prepared(id) => {
                    out.push(1);
                    write::short_bytes(out, id);
                }
            }
            let values = write::short_count(out, statement.values.len());
            for value in statement.values.iter().take(values) {
                write::value(out, value);
            }
        }
        let v5 = version >= Version::V5;
        let mut flags = 0;
        let mut set = |flag: i32, when: bool| flags |= if when { flag } else { 0 };
        set(SERIAL_CONSISTENCY, self.serial_consistency.is_some());
        set(DEFAULT_TIMESTAMP, self.default_timestamp_micros.is_some());
        set(KEYSPACE, v5 && self.keyspace.is_some());
        set(NOW_IN_SECONDS, v5 && self.now_in_seconds.is_some());
        write::short(out, self.consistency.code());
        write_flags(out, version, flags);
        write_tail(out, self.serial_consistency, self.default_timestamp_micros);
        if v5 {
            write_v5_tail(out, self.keyspace, self.now_in_seconds);
        }
    }
}
