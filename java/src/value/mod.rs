//! Values of a run, and the heap objects for mutable values.

mod buffer;
mod calendar;
mod matcher;
mod random;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use num_bigint::BigInt;

pub(crate) use self::buffer::Buffer;
pub(crate) use self::calendar::Calendar;
pub(crate) use self::matcher::Matcher;
pub(crate) use self::random::Random;
use crate::class::{Class, Kind};
use crate::datum::{Datum, Type};
use crate::regex::Pattern;

/// A primitive value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prim {
    Boolean(bool),
    Byte(i8),
    Short(i16),
    Char(u16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
}

impl Prim {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Boolean(_) => Kind::Boolean,
            Self::Byte(_) => Kind::Byte,
            Self::Short(_) => Kind::Short,
            Self::Char(_) => Kind::Char,
            Self::Int(_) => Kind::Int,
            Self::Long(_) => Kind::Long,
            Self::Float(_) => Kind::Float,
            Self::Double(_) => Kind::Double,
        }
    }

    pub(crate) fn zero(kind: Kind) -> Self {
        match kind {
            Kind::Boolean => Self::Boolean(false),
            Kind::Byte => Self::Byte(0),
            Kind::Short => Self::Short(0),
            Kind::Char => Self::Char(0),
            Kind::Int => Self::Int(0),
            Kind::Long => Self::Long(0),
            Kind::Float => Self::Float(0.0),
            Kind::Double => Self::Double(0.0),
        }
    }

    /// Whether Java caches one box of this value (JLS §5.1.7).
    pub(crate) fn is_cached(self) -> bool {
        match self {
            Self::Boolean(_) | Self::Byte(_) => true,
            Self::Short(value) => (-128..=127).contains(&value),
            Self::Char(value) => value <= 127,
            Self::Int(value) => (-128..=127).contains(&value),
            Self::Long(value) => (-128..=127).contains(&value),
            Self::Float(_) | Self::Double(_) => false,
        }
    }

    /// Equality as in `equals` of boxes: NaN equals itself, 0.0 and -0.0 differ.
    pub(crate) fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            _ => false,
        }
    }
}

/// A decimal: `unscaled` · 10^-`scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) unscaled: BigInt,
    pub(crate) scale: i32,
}

/// An immutable value that has no syntax of its own in the language.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Uuid(u128),
    /// Milliseconds since 1970-01-01 UTC.
    Date(i64),
    /// Days since 1970-01-01.
    LocalDate(i32),
    Inet(IpAddr),
    Duration {
        months: i32,
        days: i32,
        nanos: i64,
    },
    /// A day of `java.time`, counted from 1970-01-01.
    Day(i64),
    Instant {
        seconds: i64,
        nanos: u32,
    },
    /// A constant of an enum, by its ordinal.
    Constant(Class, u8),
    Zone(Zone),
    Coder(Coder),
    Big(BigInt),
    Decimal(Decimal),
    Rounding(Rounding),
    Class(Class),
}

/// A time zone of a fixed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) id: String,
    pub(crate) offset_seconds: i32,
}

/// An encoder or decoder of `java.util.Base64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coder {
    pub(crate) decodes: bool,
    /// Whether it has the alphabet of URLs.
    pub(crate) url: bool,
    /// Whether it writes lines of 76 characters, and reads over all that is not in its alphabet.
    pub(crate) mime: bool,
    pub(crate) padded: bool,
}

/// Rounding modes of `setScale` and `divide`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
    Ceiling,
    Floor,
    HalfUp,
    HalfDown,
    HalfEven,
    Unnecessary,
}

pub(crate) type Text = Arc<[u16]>;

/// A text in UTF-8, as Java encodes it: half of a surrogate pair becomes `?`.
pub(crate) fn utf8(units: &[u16]) -> String {
    char::decode_utf16(units.iter().copied())
        .map(|decoded| decoded.unwrap_or('?'))
        .collect()
}

/// An address on the heap.
pub(crate) type Handle = u32;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Prim(Prim),
    /// A boxed primitive. The number distinguishes boxes of the same value; it is 0 for values that Java caches in one box.
    Boxed(Prim, u32),
    Text(Text),
    Plain(Arc<Plain>),
    /// The value of `udfContext`.
    Context,
    Ref(Handle),
}

impl Value {
    pub(crate) fn int(value: i32) -> Self {
        Self::Prim(Prim::Int(value))
    }

    pub(crate) fn boolean(value: bool) -> Self {
        Self::Prim(Prim::Boolean(value))
    }

    pub(crate) fn long(value: i64) -> Self {
        Self::Prim(Prim::Long(value))
    }

    pub(crate) fn plain(value: Plain) -> Self {
        Self::Plain(Arc::new(value))
    }

    pub(crate) fn big(value: BigInt) -> Self {
        Self::plain(Plain::Big(value))
    }

    pub(crate) fn prim(&self) -> Option<Prim> {
        match self {
            Self::Prim(value) | Self::Boxed(value, _) => Some(*value),
            _ => None,
        }
    }
}

/// The iteration order of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// By bucket, as `java.util.HashMap` with that many buckets.
    Hash { buckets: u32 },
    /// In insertion order.
    Linked,
    /// Sorted by key.
    Sorted,
}

/// A map, or a set, whose values are null.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) class: Class,
    pub(crate) order: Order,
    /// In insertion order, or sorted; `None` means removed.
    pub(crate) slots: Vec<Option<(i32, Value, Value)>>,
    /// Positions in `slots` by hash.
    pub(crate) index: HashMap<i32, Vec<u32>>,
    pub(crate) live: usize,
    /// Counts additions and removals, so that iterators detect a change.
    pub(crate) changes: u32,
}

/// The part of a map that a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Keys,
    Values,
    Entries,
}

/// A mutable value.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    List {
        class: Class,
        items: Vec<Value>,
        changes: u32,
        /// Whether its size is fixed.
        fixed: bool,
        /// Whether it is immutable.
        frozen: bool,
    },
    Table(Table),
    View {
        of: Handle,
        shown: Shown,
    },
    Entry(Value, Value),
    Builder(Vec<u16>),
    Array {
        items: Vec<Value>,
    },
    Iterator {
        of: Handle,
        items: Vec<Value>,
        at: usize,
        changes: u32,
    },
    Tuple {
        /// A tuple or user type.
        ty: Type,
        fields: Vec<Option<Datum>>,
        /// Whether it is an argument, whose type Cassandra takes for another than that of a new value.
        is_argument: bool,
    },
    Exception {
        class: Class,
        message: Option<Text>,
    },
    /// The content of a buffer until a body asks for it as an array.
    Bytes(Vec<u8>),
    Buffer(Buffer),
    Random(Random),
    Optional(Value),
    Tokenizer {
        units: Text,
        by: Text,
        at: usize,
    },
    Calendar(Calendar),
    DateFormat {
        pattern: Text,
        zone: Zone,
    },
    Pattern(Arc<Pattern>),
    Matcher(Matcher),
    /// An object without fields: `new Object()`.
    Bare,
}
