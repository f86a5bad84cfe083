//! The `types` module: CQL types and the encoding of their values.
//!
//! A value is kept as its wire bytes, from the request to the store and back; it is decoded only where necessary. `None`
//! is null. This module validates those bytes, compares and prints them, makes them from literals, and encodes them as
//! parts of an ordered key.
//!
//! Life of a value: bytes arrive from the wire ([`CqlType::validate`], [`CqlType::normalize`]) or from a literal
//! ([`CqlType::literal`]); they are compared, become part of a key ([`CqlType::encode_key`]) or of another value
//! ([`encode_list`] and the like), and leave as they are or as text ([`CqlType::to_literal`], [`CqlType::to_json`]).
//!
//! Invariants: no bytes cause a panic. `compare` is a total order of valid values, and the byte order of keys is the same
//! order. A key decodes to the very bytes that were encoded. All native types are rows of one table, [`NATIVE_TYPES`].
//!
//! Deliberately absent: frames, and option codes other than their ids; names of tables and columns; computations with
//! values (`functions`). Sources: native_protocol_v4.spec §6; Cassandra 5.0's `db.marshal` and `serializers` as measured.

use std::sync::Arc;

mod big;
mod class_parameters;
mod composite;
mod compound;
mod duration;
mod error;
mod java_float;
mod json;
mod json_error;
mod json_read;
mod key;
mod literal;
mod name;
mod native;
mod number;
mod term;
mod text;
mod time;
mod uuid;
mod value;
mod vint;

#[cfg(test)]
mod tests;

pub use big::{Decimal, NUMBER_BYTES_MAX, decode_varint, encode_varint, parse_integer};
pub use compound::{
    Entry, encode_list, encode_map, encode_tuple, list_elements, map_entries, nullable_list_elements, set_elements,
    tuple_fields, tuple_length,
};
pub use duration::Duration;
pub use error::{Corrupt, Invalid, TypeError};
pub use json::json_string;
pub use json_error::JsonError;
pub use json_read::{Json, folded as folded_json_name};
pub use key::KeyOrder;
pub use literal::{Assignment, LiteralError, constant, preferred_type};
pub use name::quoted;
pub use native::{Constant, NATIVE_TYPES, NativeType};
pub use number::{
    decode_f32, decode_f64, decode_i8, decode_i16, decode_i32, decode_i64, double_to_float, encode_f32, encode_f64,
    java_f32, java_f64, java_order,
};
pub use term::{Leaf, TermError, operator_text, term_text, type_text};
pub use text::{decode_boolean, decode_inet, hex, inet_text, unhex};
pub use time::{
    Civil, DATE_EPOCH, DAY_MILLIS, DAY_NANOS, date_text, decode_date, encode_date, parse_timestamp_millis, time_text,
    timestamp_text,
};
pub use uuid::{
    max_timeuuid, min_timeuuid, parse as parse_uuid, timeuuid, to_text as uuid_text, unix_100ns, unix_millis,
};
pub use vint::{read_signed, read_unsigned, write_signed, write_unsigned};

/// A native type: one without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Native {
    /// ASCII text.
    Ascii,
    /// i64.
    Bigint,
    /// Bytes.
    Blob,
    /// One byte.
    Boolean,
    /// i64 that can only be incremented.
    Counter,
    /// u32 days, 1970-01-01 is 2^31.
    Date,
    /// i32 scale, then a varint.
    Decimal,
    /// f64.
    Double,
    /// Months, days, nanoseconds.
    Duration,
    /// The empty type, which has no values.
    Empty,
    /// f32.
    Float,
    /// 4 or 16 bytes.
    Inet,
    /// i32.
    Int,
    /// i16.
    Smallint,
    /// UTF-8 text; `varchar` too.
    Text,
    /// i64 nanoseconds of the day.
    Time,
    /// i64 milliseconds since 1970-01-01 UTC.
    Timestamp,
    /// A version 1 uuid.
    Timeuuid,
    /// i8.
    Tinyint,
    /// 16 bytes.
    Uuid,
    /// An integer of any size.
    Varint,
}

/// A user-defined type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name, folded.
    pub name: String,
    /// Names and types of its fields, in order.
    pub fields: Vec<(String, CqlType)>,
}

/// Maximum number of types in a user-defined type, counting its fields with all their own fields, as a result's
/// metadata contains them. Without a limit, a type with two fields of a type with two fields, and so on, doubles at
/// each level.
pub const TYPE_PARTS_MAX: usize = 10_000;

/// A CQL type. Cheap to clone.
///
/// A collection or user-defined type outside [`CqlType::Frozen`] is multi-cell: each element is a cell of its own. Tuples and
/// vectors are always one cell. Inside another type everything is one cell, and is written `frozen<…>` in the schema tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    /// A native type.
    Native(Native),
    /// A marshal class that CQL has no name for, by its full class name.
    Custom(Arc<str>),
    /// `list<T>`
    List(Arc<CqlType>),
    /// `set<T>`
    Set(Arc<CqlType>),
    /// `map<K, V>`
    Map(Arc<CqlType>, Arc<CqlType>),
    /// `tuple<…>`
    Tuple(Arc<[CqlType]>),
    /// A user-defined type.
    User(Arc<UserType>),
    /// `vector<T, n>`
    Vector(Arc<CqlType>, u32),
    /// `frozen<T>`
    Frozen(Arc<CqlType>),
}
