//! Errors in a value, a literal or a type, with Cassandra's messages.

use grammar::ast::QualifiedName;
use thiserror::Error;

/// Bytes or text that are no value of the type. The text is that of Cassandra's `MarshalException`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Invalid {
    /// A fixed-width value of another width: `Expected 4 or 0 byte int (3)`.
    #[error("Expected {expected} ({found})")]
    Length {
        /// What was expected, in Cassandra's words.
        expected: &'static str,
        /// The number of bytes received.
        found: usize,
    },
    /// A varint or a decimal that is too long.
    #[error("A number of {found} bytes is longer than the maximum of {bytes_max}")]
    NumberLength {
        /// The number of bytes it has, at least.
        found: usize,
        /// The maximum number of bytes.
        bytes_max: usize,
    },
    /// Text that is not UTF-8.
    #[error("String didn't validate.")]
    Utf8,
    /// A byte above 127 in ASCII text, as Java's signed byte.
    #[error("Invalid byte for ascii: {0}")]
    AsciiByte(i8),
    /// A character above 127 in a literal for ASCII text; `0` is its length in UTF-16 units, as Java counts.
    #[error(
        "Invalid ASCII character in string literal: java.nio.charset.UnmappableCharacterException: Input length = {0}"
    )]
    AsciiCharacter(usize),
    /// An address that is neither IPv4 nor IPv6, in hexadecimal.
    #[error("Expected 4 or 16 byte inetaddress; got {0}")]
    InetLength(String),
    /// Neither empty nor 16 bytes.
    #[error("UUID should be 16 or 0 bytes ({0})")]
    UuidLength(usize),
    /// A timeuuid whose version is not 1; Cassandra prints the first byte's high half, in hexadecimal.
    #[error("Invalid version for TimeUUID type: 0x{0:x}")]
    TimeuuidVersion(i8),
    /// A duration of mixed signs.
    #[error("The duration months, days and nanoseconds must be all of the same sign ({0}, {1}, {2})")]
    DurationSigns(i32, i32, i64),
    /// Months or days outside the range of 32 bits.
    #[error("The duration {0} must be a 32 bits integer but was: {1}")]
    DurationRange(&'static str, i64),
    /// A value of the empty type.
    #[error("EmptyType only accept empty values")]
    NotEmpty,
    /// A collection or vector that ends too soon; its kind, or its whole type for a vector.
    #[error("Not enough bytes to read a {0}")]
    Short(String),
    /// Bytes after the last element of a collection.
    #[error("Unexpected extraneous bytes after {0} value")]
    Extra(&'static str),
    /// Bytes after the last element of a vector.
    #[error("Unexpected {count} extraneous bytes after {vector} value")]
    VectorExtra {
        /// The number of extra bytes.
        count: usize,
        /// The vector's type.
        vector: String,
    },
    /// A vector of no bytes.
    #[error("Invalid empty vector value")]
    VectorEmpty,
    /// Null inside a collection.
    #[error("Null value read when not allowed")]
    NullElement,
    /// A bound collection that cannot be decoded at all.
    #[error("The data cannot be deserialized as a {0}")]
    Undecodable(&'static str),
    /// A tuple or user-defined type that ends in a length; `1th component`, `1th field street`.
    #[error("Not enough bytes to read size of {0}")]
    ShortSize(String),
    /// A tuple or user-defined type that ends in a field.
    #[error("Not enough bytes to read {0}")]
    ShortField(String),
    /// Bytes after the last field: `tuple`, `UDT`.
    #[error("Invalid remaining data after end of {0} value")]
    Remaining(&'static str),
    /// A field of a user-defined type that is invalid.
    #[error("Failure validating the {index}th field {field}; {cause}")]
    Field {
        /// Its position, from 0.
        index: usize,
        /// Its name.
        field: String,
        /// The error in it.
        cause: Box<Invalid>,
    },
    /// Text that is no number, address and so on: `Unable to make int from 'x'`. The first part is the text before the
    /// quote.
    #[error("{0} '{1}'")]
    Text(&'static str, String),
    /// Text that is no date: `Unable to coerce 'x' to a formatted date (long)`.
    #[error("{prefix}Unable to coerce '{text}' to a formatted {what} (long)")]
    Coerce {
        /// `(TimeType) ` or nothing.
        prefix: &'static str,
        /// The text.
        text: String,
        /// `date` or `time`.
        what: &'static str,
    },
    /// A date outside the range of the type.
    #[error("Input date {text} is {side} supported date {limit}T00:00Z")]
    DateRange {
        /// The text.
        text: String,
        /// `greater than max` or `less than min`.
        side: &'static str,
        /// The limit.
        limit: &'static str,
    },
    /// Text that is no hexadecimal: the digits.
    #[error("cannot parse '{0}' as hex bytes")]
    Hex(String),
    /// Text that is no timeuuid.
    #[error("Unknown timeuuid representation: {0}")]
    TimeuuidText(String),
    /// A uuid of another version as a timeuuid literal.
    #[error("TimeUUID supports only version 1 UUIDs")]
    TimeuuidLiteral,
    /// Text for the empty type.
    #[error("'{0}' is not empty")]
    EmptyText(String),
    /// Text that is no duration.
    #[error("Unable to convert '{0}' to a duration")]
    DurationText(String),
    /// Units out of order: the later one, and the one that it must follow.
    #[error("Invalid duration. The {0} should be after {1}")]
    DurationOrder(&'static str, &'static str),
    /// A repeated unit.
    #[error("Invalid duration. The {0} are specified multiple times")]
    DurationTwice(&'static str),
    /// Too many of a unit; Cassandra names this limit for nanoseconds too.
    #[error("Invalid duration. The total number of {0} must be less or equal to 2147483647")]
    DurationTotal(&'static str),
    /// A tuple's text with too many elements.
    #[error("Invalid tuple literal: too many elements. Type {tuple} expects {expected} but got {found}")]
    TupleText {
        /// The tuple's type.
        tuple: String,
        /// Its size.
        expected: usize,
        /// The number of elements received.
        found: usize,
    },
    /// JSON of the wrong kind: what was expected with its article, what came with its article, its text.
    #[error("Expected {expected}, but got {found}: {text}")]
    Json {
        /// `an int value`, `a list`, …
        expected: &'static str,
        /// `a Double`, …
        found: &'static str,
        /// As Java prints it.
        text: String,
    },
    /// Other JSON errors, as whole messages.
    #[error("{0}")]
    JsonText(String),
    /// A type that cannot be written as a literal of this kind.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Bytes that are no ordered key of the type: the stored data is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the key is not one of type {0}")]
pub struct Corrupt(
    /// The type family that was being decoded.
    pub &'static str,
);

/// A type that is invalid or not allowed at its position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TypeError {
    /// A name that is neither native nor a user-defined type: `Unknown type ks.name`. If the name has no keyspace, the
    /// caller adds the statement's.
    #[error("Unknown type {}{}", .0.keyspace.as_ref().map(|k| format!("{}.", k.0)).unwrap_or_default(), .0.name.0)]
    Unknown(QualifiedName),
    /// Multi-cell inside a collection; `collections` or `UDTs`, the collection as written.
    #[error("Non-frozen {0} are not allowed inside collections: {1}")]
    NotFrozen(&'static str, String),
    /// `frozen<int>` and the like. Cassandra reports this as a syntax error.
    #[error("frozen<> is only allowed on collections, tuples, and user-defined types (got {0})")]
    Freeze(String),
    /// A counter inside a collection.
    #[error("Counters are not allowed inside collections: {0}")]
    CounterInCollection(String),
    /// A counter inside a tuple.
    #[error("Counters are not allowed inside tuples")]
    CounterInTuple,
    /// A duration as an element of a set.
    #[error("Durations are not allowed inside sets: {0}")]
    DurationInSet(String),
    /// A duration as a key of a map.
    #[error("Durations are not allowed as map keys: {0}")]
    DurationAsKey(String),
    /// `vector<T, 0>`, or fewer
    #[error("vectors may only have positive dimensions; given {0}")]
    Dimension(i32),
    /// A class that is no type: its text as written, and its full name. Cassandra reports this as a syntax error.
    #[error("Error setting type {0}: Unable to find abstract-type class '{1}'")]
    Class(String, String),
    /// A class whose parameters are wrong: its text as written, and its full name. A syntax error in Cassandra, too.
    #[error("Error setting type {0}: Invalid definition for comparator {1}.")]
    Definition(String, String),
    /// A class followed by parameters that cannot be read. A syntax error in Cassandra, too.
    #[error("Cannot parse type {written}: Syntax error parsing '{written}' at char {at}: {what}")]
    ClassSyntax {
        /// The text as written.
        written: String,
        /// The place in it, in UTF-16 units from 0.
        at: usize,
        /// What is wrong there.
        what: String,
    },
}

impl TypeError {
    /// Whether Cassandra reports it as a syntax error rather than as an invalid request.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(
            self,
            Self::Freeze(_) | Self::Class(..) | Self::Definition(..) | Self::ClassSyntax { .. }
        )
    }
}
