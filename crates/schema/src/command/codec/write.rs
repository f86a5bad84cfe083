//! The message of writes: what the owner of their partitions is to check, date and apply.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::bytes::{Decoder, Encoder, Kind, tags};
use super::error::{DecodeError, EncodeError};
use super::limits::{COLUMNS_MAX, ELEMENTS_MAX, FILTERS_MAX, KEYS_MAX, WRITES_MAX};
use super::name::TableName;
use super::table::Tables;
use crate::command::{ColumnChange, Condition, Write, WriteTarget, WriteVerb};
use crate::schema::Table;
use helenus_types::consistency::{Consistency, WriteKind};

/// Writes of one owner, bound and not dated yet: one, or the members of a batch.
#[derive(Clone, Debug)]
pub struct BoundWrites {
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// Whether they came as a batch: a refused one returns the key, too.
    pub is_batch: bool,
    /// The timestamp that the client gave to all, µs since 1970-01-01 UTC. `None` means that the owner assigns it.
    pub timestamp_micros: Option<i64>,
    /// The moment against which expiry is checked, seconds since 1970-01-01 UTC.
    pub now_seconds: i64,
    /// When the request began, µs since 1970-01-01 UTC: the time of functions in masks.
    pub now_micros: i64,
    /// The consistency level.
    pub consistency: Consistency,
    /// The level at which a condition is decided.
    pub serial_consistency: Consistency,
    /// The kind of write, for errors.
    pub write_kind: WriteKind,
}

tags!(write_verb, WriteVerb, "verb", {
    1 = WriteVerb::Insert,
    2 = WriteVerb::Update,
    3 = WriteVerb::Delete,
});

tags!(consistency, Consistency, "consistency level", {
    1 = Consistency::Any,
    2 = Consistency::One,
    3 = Consistency::Two,
    4 = Consistency::Three,
    5 = Consistency::Quorum,
    6 = Consistency::All,
    7 = Consistency::LocalQuorum,
    8 = Consistency::EachQuorum,
    9 = Consistency::Serial,
    10 = Consistency::LocalSerial,
    11 = Consistency::LocalOne,
    12 = Consistency::NodeLocal,
});

tags!(write_kind, WriteKind, "kind of write", {
    1 = WriteKind::Simple,
    2 = WriteKind::Batch,
    3 = WriteKind::UnloggedBatch,
    4 = WriteKind::Counter,
    5 = WriteKind::BatchLog,
    6 = WriteKind::Cas,
    7 = WriteKind::View,
    8 = WriteKind::Cdc,
});

/// The tables of the writes, in the order in which they are named first.
fn tables_of(writes: &[Write]) -> Vec<&Arc<Table>> {
    let mut seen = BTreeSet::new();
    let tables = writes.iter().map(|write| &write.table);
    tables.filter(|table| seen.insert(table.id)).collect()
}

impl BoundWrites {
    /// The message. Writes of one table must be planned for one definition of it.
    ///
    /// # Errors
    /// The writes are beyond a bound of messages.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        let Self {
            writes,
            is_batch,
            timestamp_micros,
            now_seconds,
            now_micros,
            consistency,
            serial_consistency,
            write_kind,
        } = self;
        let mut encoder = Encoder::new(Kind::Writes);
        let tables = tables_of(writes);
        encoder.list(WRITES_MAX, &tables, |encoder, table| encoder.table(table));
        let ids: Vec<Uuid> = tables.iter().map(|table| table.id).collect();
        encoder.list(WRITES_MAX, writes, |encoder, write| {
            let number = ids.iter().position(|id| *id == write.table.id);
            encoder.number(number.unwrap_or_default());
            encoder.write(write);
        });
        encoder.bool(*is_batch);
        encoder.option(*timestamp_micros, Encoder::i64);
        encoder.i64(*now_seconds);
        encoder.i64(*now_micros);
        encoder.consistency(*consistency);
        encoder.consistency(*serial_consistency);
        encoder.write_kind(*write_kind);
        encoder.finish()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are no such message, or the receiver's tables differ.
    pub fn decode(message: &Bytes, tables: &impl Tables) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(message, Kind::Writes)?;
        let named = decoder.list(WRITES_MAX, |decoder| decoder.table(tables))?;
        let distinct: BTreeSet<Uuid> = named.iter().map(|table| table.id).collect();
        let mut used = 0;
        let writes = decoder.list(WRITES_MAX, |decoder| {
            let number = decoder.number()?;
            let table = named.get(number).filter(|_| number <= used);
            let table = table.ok_or(DecodeError::Order("tables"))?;
            used = used.max(number + 1);
            decoder.write(table, tables)
        })?;
        if used < named.len() || distinct.len() < named.len() {
            return Err(DecodeError::Order("tables"));
        }
        let message = Self {
            writes,
            is_batch: decoder.bool()?,
            timestamp_micros: decoder.option(Decoder::i64)?,
            now_seconds: decoder.i64()?,
            now_micros: decoder.i64()?,
            consistency: decoder.consistency()?,
            serial_consistency: decoder.consistency()?,
            write_kind: decoder.write_kind()?,
        };
        decoder.finish()?;
        Ok(message)
    }
}

impl Encoder {
    fn elements(&mut self, elements: &[Bytes]) {
        self.list(ELEMENTS_MAX, elements, |encoder, element| encoder.bytes(element));
    }

    fn change(&mut self, change: &ColumnChange) {
        match change {
            ColumnChange::Set(value) => {
                self.u8(1);
                self.value(value);
            }
            ColumnChange::Replace(elements) => {
                self.u8(2);
                self.list(ELEMENTS_MAX, elements, |encoder, (key, value)| {
                    encoder.option(key.as_deref(), Self::bytes);
                    encoder.bytes(value);
                });
            }
            ColumnChange::Put(elements) => {
                self.u8(3);
                self.list(ELEMENTS_MAX, elements, |encoder, (key, value)| {
                    encoder.bytes(key);
                    encoder.option(value.as_deref(), Self::bytes);
                });
            }
            ColumnChange::Remove(elements) => {
                self.u8(4);
                self.elements(elements);
            }
            ColumnChange::Append(elements) => {
                self.u8(5);
                self.elements(elements);
            }
            ColumnChange::Prepend(elements) => {
                self.u8(6);
                self.elements(elements);
            }
            ColumnChange::SetAt(position, value) => {
                self.u8(7);
                self.i32(*position);
                self.option(value.as_deref(), Self::bytes);
            }
            ColumnChange::Discard(elements) => {
                self.u8(8);
                self.elements(elements);
            }
            ColumnChange::Increment(by) => {
                self.u8(9);
                self.i64(*by);
            }
            ColumnChange::Version => self.u8(10),
            ColumnChange::Sum(addend) => {
                self.u8(11);
                self.option(addend.as_deref(), Self::bytes);
            }
        }
    }

    fn write_target(&mut self, target: &WriteTarget) {
        match target {
            WriteTarget::Rows(rows) => {
                self.u8(1);
                self.rows(rows);
            }
            WriteTarget::Static => self.u8(2),
            WriteTarget::Ranges(ranges) => {
                self.u8(3);
                self.ranges(ranges);
            }
            WriteTarget::Partition => self.u8(4),
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Always => self.u8(1),
            Condition::Exists => self.u8(2),
            Condition::NotExists => self.u8(3),
            Condition::Columns(tests) => {
                self.u8(4);
                self.list(FILTERS_MAX, tests, Self::predicate);
            }
        }
    }

    fn write(&mut self, write: &Write) {
        let Write {
            table: _,
            kind,
            partition_keys,
            target,
            operations,
            names_static,
            timestamp,
            ttl_seconds,
            condition,
            condition_columns,
            masks,
        } = write;
        self.write_verb(*kind);
        self.list(KEYS_MAX, partition_keys, |encoder, key| encoder.bytes(key));
        self.write_target(target);
        self.list(COLUMNS_MAX, operations, |encoder, (place, change)| {
            encoder.column(*place);
            encoder.change(change);
        });
        self.bool(*names_static);
        self.option(*timestamp, Self::i64);
        self.option(*ttl_seconds, Self::i32);
        self.condition(condition);
        self.columns(condition_columns);
        self.bool(masks.is_some());
    }
}

impl Decoder {
    fn elements(&mut self) -> Result<Vec<Bytes>, DecodeError> {
        self.list(ELEMENTS_MAX, Self::bytes)
    }

    fn change(&mut self) -> Result<ColumnChange, DecodeError> {
        Ok(match self.u8()? {
            1 => ColumnChange::Set(self.value()?),
            2 => ColumnChange::Replace(self.list(ELEMENTS_MAX, |decoder| {
                Ok((decoder.option(Self::bytes)?, decoder.bytes()?))
            })?),
            3 => ColumnChange::Put(self.list(ELEMENTS_MAX, |decoder| {
                Ok((decoder.bytes()?, decoder.option(Self::bytes)?))
            })?),
            4 => ColumnChange::Remove(self.elements()?),
            5 => ColumnChange::Append(self.elements()?),
            6 => ColumnChange::Prepend(self.elements()?),
            7 => ColumnChange::SetAt(self.i32()?, self.option(Self::bytes)?),
            8 => ColumnChange::Discard(self.elements()?),
            9 => ColumnChange::Increment(self.i64()?),
            10 => ColumnChange::Version,
            11 => ColumnChange::Sum(self.option(Self::bytes)?),
            found => {
                return Err(DecodeError::Tag {
                    of: "change of a column",
                    found,
                });
            }
        })
    }

    fn write_target(&mut self) -> Result<WriteTarget, DecodeError> {
        match self.u8()? {
            1 => self.rows().map(WriteTarget::Rows),
            2 => Ok(WriteTarget::Static),
            3 => self.ranges().map(WriteTarget::Ranges),
            4 => Ok(WriteTarget::Partition),
            found => Err(DecodeError::Tag {
                of: "target of a write",
                found,
            }),
        }
    }

    fn condition(&mut self) -> Result<Condition, DecodeError> {
        match self.u8()? {
            1 => Ok(Condition::Always),
            2 => Ok(Condition::Exists),
            3 => Ok(Condition::NotExists),
            4 => self.list(FILTERS_MAX, Self::predicate).map(Condition::Columns),
            found => Err(DecodeError::Tag { of: "condition", found }),
        }
    }

    fn partition_keys(&mut self) -> Result<Vec<Bytes>, DecodeError> {
        let keys = self.list(KEYS_MAX, Self::bytes)?;
        if keys.len() > 1 && keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
            return Err(DecodeError::Order("partition keys"));
        }
        Ok(keys)
    }

    fn write(&mut self, table: &Arc<Table>, tables: &impl Tables) -> Result<Write, DecodeError> {
        self.columns = table.columns.len();
        Ok(Write {
            table: Arc::clone(table),
            kind: self.write_verb()?,
            partition_keys: self.partition_keys()?,
            target: self.write_target()?,
            operations: self.list(COLUMNS_MAX, |decoder| Ok((decoder.column()?, decoder.change()?)))?,
            names_static: self.bool()?,
            timestamp: self.option(Self::i64)?,
            ttl_seconds: self.option(Self::i32)?,
            condition: self.condition()?,
            condition_columns: self.columns()?,
            masks: if self.bool()? {
                let masks = tables.masks(table);
                Some(masks.ok_or_else(|| DecodeError::NoMasks(TableName::of(table)))?)
            } else {
                None
            },
        })
    }
}
