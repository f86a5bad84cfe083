//! The `types` room: what a CQL type is and what its bytes mean.
//!
//! A value travels as its wire bytes everywhere: from the request to the store and back nothing decodes it that does not need to.
//! `None` is null. This room validates those bytes, compares them, prints them, makes them from literals, and encodes them as
//! parts of an ordered key.

use std::sync::Arc;

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

/// A CQL type. Cheap to clone.
///
/// A collection or user-defined type outside [`CqlType::Frozen`] is multi-cell: each element is a cell of its own. Tuples and
/// vectors are always one cell. Inside another type everything is one cell, and is written `frozen<…>` in the schema tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    /// A native type.
    Native(Native),
    /// A marshal class we have no name for, by its full class name.
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
