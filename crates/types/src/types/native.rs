//! The table of native types: one row each, with all properties of the type.

use super::key::KeyReader;
use super::{Corrupt, Invalid, Native};
use super::{big, duration, number, text, time, uuid};
use std::cmp::Ordering;

/// The quoting of a native type's text in a CQL literal and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// `1`, `true`, a uuid: bare in both, quoted in JSON if not a number or boolean.
    Bare,
    /// Bare in CQL, quoted in JSON.
    QuotedInJson,
    /// Quoted in both.
    Quoted,
    /// `0x…`, quoted in JSON.
    Hexadecimal,
}

/// Kinds of constants, as Cassandra names them in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// `'text'`
    String,
    /// `1`
    Integer,
    /// `1.5`, `NaN`
    Float,
    /// `true`
    Boolean,
    /// A uuid.
    Uuid,
    /// `0x00`
    Hex,
    /// `1y2mo`
    Duration,
}

impl Constant {
    /// `STRING`, `INTEGER`, …
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Integer => "INTEGER",
            Self::Float => "FLOAT",
            Self::Boolean => "BOOLEAN",
            Self::Uuid => "UUID",
            Self::Hex => "HEX",
            Self::Duration => "DURATION",
        }
    }
}

/// The properties of a native type.
#[derive(Debug)]
pub struct NativeType {
    /// The type.
    pub native: Native,
    /// Its CQL name.
    pub name: &'static str,
    /// Its class in `org.apache.cassandra.db.marshal`.
    pub class: &'static str,
    /// Its option id in the protocol; 0 means a custom type, which is named by its class.
    pub option_id: u16,
    /// The fixed width of a vector element in bytes; `None` means that each element has its own length.
    pub vector_width: Option<usize>,
    /// The kinds of constants that a value may be written as.
    pub constants: &'static [Constant],
    /// Whether values of different bytes may compare equal.
    pub(super) equal_forms: bool,
    pub(super) quoting: Quoting,
    pub(super) validate: fn(&[u8]) -> Result<(), Invalid>,
    pub(super) compare: fn(&[u8], &[u8]) -> Ordering,
    pub(super) order: fn(&[u8], &mut Vec<u8>),
    pub(super) read_order: fn(&mut KeyReader<'_>, &mut Vec<u8>) -> Result<(), Corrupt>,
    /// Parses a literal's text, without quotes or `0x`.
    pub(super) parse: fn(&str) -> Result<Vec<u8>, Invalid>,
    /// Prints a valid value that is not empty.
    pub(super) print: fn(&[u8]) -> Option<String>,
}

macro_rules! rows {
    ($($variant:ident $row:ident = $name:literal $class:literal $id:literal, vector $width:expr, constants [$($constant:ident)*],
        equal_forms $equal:literal, $quoting:ident, $validate:path, $compare:path, $order:path, $read:path, $parse:path, $print:expr;)*) => {
        $(static $row: NativeType = NativeType {
            native: Native::$variant,
            name: $name,
            class: $class,
            option_id: $id,
            vector_width: $width,
            constants: &[$(Constant::$constant),*],
            equal_forms: $equal,
            quoting: Quoting::$quoting,
            validate: $validate,
            compare: $compare,
            order: $order,
            read_order: $read,
            parse: $parse,
            print: $print,
        };)*

        /// Every native type.
        pub static NATIVE_TYPES: &[&NativeType] = &[$(&$row),*];

        impl Native {
            /// The type's row in [`NATIVE_TYPES`].
            #[must_use]
            pub fn row(self) -> &'static NativeType {
                match self {
                    $(Self::$variant => &$row,)*
                }
            }
        }
    };
}

fn utf8(bytes: &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(bytes).into_owned())
}

rows! {
    Ascii ASCII = "ascii" "AsciiType" 0x01, vector None, constants [String], equal_forms false, Quoted,
        text::validate_ascii, text::compare_bytes, text::order_bytes, text::read_bytes, text::parse_ascii, utf8;
    Bigint BIGINT = "bigint" "LongType" 0x02, vector Some(8), constants [Integer], equal_forms false, Bare,
        number::validate_i64, number::compare_i64, number::order_i64, number::read_i64, number::parse_i64,
        |b| number::decode_i64(b).map(|v| v.to_string());
    Blob BLOB = "blob" "BytesType" 0x03, vector None, constants [Hex], equal_forms false, Hexadecimal,
        text::validate_blob, text::compare_bytes, text::order_bytes, text::read_bytes, text::parse_blob,
        |b| Some(text::hex(b));
    Boolean BOOLEAN = "boolean" "BooleanType" 0x04, vector Some(1), constants [Boolean], equal_forms true, Bare,
        text::validate_boolean, text::compare_boolean, text::order_boolean, text::read_boolean, text::parse_boolean,
        |b| text::decode_boolean(b).map(|v| v.to_string());
    Counter COUNTER = "counter" "CounterColumnType" 0x05, vector None, constants [Integer], equal_forms false, Bare,
        number::validate_i64, number::compare_i64, number::order_i64, number::read_i64, number::parse_i64,
        |b| number::decode_i64(b).map(|v| v.to_string());
    Date DATE = "date" "SimpleDateType" 0x11, vector None, constants [String Integer], equal_forms false, Quoted,
        time::validate_date, text::compare_bytes, order_plain::<4>, read_plain::<4>, time::parse_date,
        |b| time::decode_date(b).map(time::date_text);
    Decimal DECIMAL = "decimal" "DecimalType" 0x06, vector None, constants [Integer Float], equal_forms true, Bare,
        big::validate_decimal, big::compare_decimal, big::order_decimal, big::read_decimal, big::parse_decimal,
        |b| big::Decimal::decode(b).map(|v| v.to_string());
    Double DOUBLE = "double" "DoubleType" 0x07, vector Some(8), constants [Integer Float], equal_forms true, Bare,
        number::validate_f64, number::compare_f64, number::order_f64, number::read_f64, number::parse_f64,
        |b| number::decode_f64(b).map(number::java_f64);
    Duration DURATION = "duration" "DurationType" 0x15, vector None, constants [Duration Integer], equal_forms false, QuotedInJson,
        duration::validate_duration, text::compare_bytes, text::order_bytes, text::read_bytes, duration::parse_duration,
        |b| duration::Duration::decode(b).ok().map(|v| v.to_string());
    Empty EMPTY = "empty" "EmptyType" 0x00, vector Some(0), constants [], equal_forms false, Bare,
        text::validate_empty, text::compare_bytes, text::order_bytes, text::read_bytes, text::parse_empty, |_| None;
    Float FLOAT = "float" "FloatType" 0x08, vector Some(4), constants [Integer Float], equal_forms true, Bare,
        number::validate_f32, number::compare_f32, number::order_f32, number::read_f32, number::parse_f32,
        |b| number::decode_f32(b).map(number::java_f32);
    Inet INET = "inet" "InetAddressType" 0x10, vector None, constants [String], equal_forms false, Quoted,
        text::validate_inet, text::compare_bytes, text::order_bytes, text::read_bytes, text::parse_inet,
        |b| text::decode_inet(b).map(text::inet_text);
    Int INT = "int" "Int32Type" 0x09, vector Some(4), constants [Integer], equal_forms false, Bare,
        number::validate_i32, number::compare_i32, number::order_i32, number::read_i32, number::parse_i32,
        |b| number::decode_i32(b).map(|v| v.to_string());
    Smallint SMALLINT = "smallint" "ShortType" 0x13, vector None, constants [Integer], equal_forms false, Bare,
        number::validate_i16, number::compare_i16, number::order_i16, number::read_i16, number::parse_i16,
        |b| number::decode_i16(b).map(|v| v.to_string());
    Text TEXT = "text" "UTF8Type" 0x0d, vector None, constants [String], equal_forms false, Quoted,
        text::validate_text, text::compare_bytes, text::order_bytes, text::read_bytes, text::parse_text, utf8;
    Time TIME = "time" "TimeType" 0x12, vector None, constants [String Integer], equal_forms false, Quoted,
        time::validate_time, text::compare_bytes, order_plain::<8>, read_plain::<8>, time::parse_time,
        |b| number::decode_i64(b).map(time::time_text);
    Timestamp TIMESTAMP = "timestamp" "TimestampType" 0x0b, vector Some(8), constants [String Integer], equal_forms false, Quoted,
        time::validate_timestamp, number::compare_i64, number::order_i64, number::read_i64, time::parse_timestamp,
        |b| number::decode_i64(b).map(|v| time::timestamp_text(v, 'T'));
    Timeuuid TIMEUUID = "timeuuid" "TimeUUIDType" 0x0f, vector Some(16), constants [Uuid], equal_forms false, QuotedInJson,
        uuid::validate_timeuuid, uuid::compare_timeuuid, uuid::order_timeuuid, uuid::read_timeuuid, uuid::parse_timeuuid,
        |b| b.try_into().ok().map(uuid::to_text);
    Tinyint TINYINT = "tinyint" "ByteType" 0x14, vector None, constants [Integer], equal_forms false, Bare,
        number::validate_i8, number::compare_i8, number::order_i8, number::read_i8, number::parse_i8,
        |b| number::decode_i8(b).map(|v| v.to_string());
    Uuid UUID = "uuid" "UUIDType" 0x0c, vector Some(16), constants [Uuid], equal_forms false, QuotedInJson,
        uuid::validate_uuid, uuid::compare_uuid, uuid::order_uuid, uuid::read_uuid, uuid::parse_uuid,
        |b| b.try_into().ok().map(uuid::to_text);
    Varint VARINT = "varint" "IntegerType" 0x0e, vector None, constants [Integer], equal_forms true, Bare,
        big::validate_varint, big::compare_varint, big::order_varint, big::read_varint, big::parse_varint,
        |b| big::decode_varint(b).map(|v| v.to_string());
}

/// A fixed-width value whose bytes already sort correctly.
fn order_plain<const N: usize>(bytes: &[u8], out: &mut Vec<u8>) {
    super::key::order_fixed::<N>(bytes, out, super::key::same);
}

fn read_plain<const N: usize>(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    super::key::read_fixed::<N>(reader, out, super::key::same)
}
