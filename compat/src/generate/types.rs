//! Types and values: a value is kept in the three forms in which it can be sent, as a CQL literal, as a bound value in
//! the words of [`crate::oracle::values`], and as JSON.

use fastrand::Rng;
use std::fmt::Write as _;

use super::constants::{self, Constants};

/// The native types, but for counters, which cannot be written as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    /// Text of ASCII only.
    Ascii,
    /// 64 bits.
    Bigint,
    /// Bytes.
    Blob,
    /// True or false.
    Boolean,
    /// Days.
    Date,
    /// Unscaled number and scale.
    Decimal,
    /// 64 bits of IEEE 754.
    Double,
    /// Months, days, nanoseconds.
    Duration,
    /// 32 bits of IEEE 754.
    Float,
    /// An address of version 4 or 6.
    Inet,
    /// 32 bits.
    Int,
    /// 16 bits.
    Smallint,
    /// UTF-8.
    Text,
    /// Nanoseconds of a day.
    Time,
    /// Milliseconds.
    Timestamp,
    /// UUID of version 1.
    Timeuuid,
    /// 8 bits.
    Tinyint,
    /// UUID.
    Uuid,
    /// UTF-8 by its other name.
    Varchar,
    /// Any number of bits.
    Varint,
}

/// All of them.
pub(super) const NATIVES: [Native; 20] = [
    Native::Int,
    Native::Text,
    Native::Bigint,
    Native::Ascii,
    Native::Blob,
    Native::Boolean,
    Native::Date,
    Native::Decimal,
    Native::Double,
    Native::Duration,
    Native::Float,
    Native::Inet,
    Native::Smallint,
    Native::Time,
    Native::Timestamp,
    Native::Timeuuid,
    Native::Tinyint,
    Native::Uuid,
    Native::Varchar,
    Native::Varint,
];

impl Native {
    /// Its CQL name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Bigint => "bigint",
            Self::Blob => "blob",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Duration => "duration",
            Self::Float => "float",
            Self::Inet => "inet",
            Self::Int => "int",
            Self::Smallint => "smallint",
            Self::Text => "text",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timeuuid => "timeuuid",
            Self::Tinyint => "tinyint",
            Self::Uuid => "uuid",
            Self::Varchar => "varchar",
            Self::Varint => "varint",
        }
    }

    /// Whether numbers can be added.
    pub(super) fn is_number(self) -> bool {
        matches!(
            self,
            Self::Bigint
                | Self::Decimal
                | Self::Double
                | Self::Float
                | Self::Int
                | Self::Smallint
                | Self::Tinyint
                | Self::Varint
        )
    }

    /// Whether all its values have one length, so that a vector of them is their plain concatenation.
    pub(super) fn is_fixed(self) -> bool {
        matches!(
            self,
            Self::Bigint
                | Self::Boolean
                | Self::Double
                | Self::Float
                | Self::Int
                | Self::Timestamp
                | Self::Timeuuid
                | Self::Uuid
        )
    }

    /// Values that occur.
    fn constants(self) -> Constants {
        match self {
            Self::Ascii => constants::ASCII,
            Self::Text | Self::Varchar => constants::TEXT,
            Self::Tinyint => constants::TINYINT,
            Self::Smallint => constants::SMALLINT,
            Self::Int => constants::INT,
            Self::Bigint => constants::BIGINT,
            Self::Varint => constants::VARINT,
            Self::Decimal => constants::DECIMAL,
            Self::Double => constants::DOUBLE,
            Self::Float => constants::FLOAT,
            Self::Boolean => constants::BOOLEAN,
            Self::Blob => constants::BLOB,
            Self::Date => constants::DATE,
            Self::Time => constants::TIME,
            Self::Timestamp => constants::TIMESTAMP,
            Self::Timeuuid => constants::TIMEUUID,
            Self::Uuid => constants::UUID,
            Self::Inet => constants::INET,
            Self::Duration => constants::DURATION,
        }
    }
}

/// A type of a column or of a part of one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    /// A native type.
    Native(Native),
    /// A counter.
    Counter,
    /// A list.
    List(Box<Self>),
    /// A set.
    Set(Box<Self>),
    /// A map.
    Map(Box<Self>, Box<Self>),
    /// A tuple.
    Tuple(Vec<Self>),
    /// A type of the user: name, names and types of its fields.
    Udt(String, Vec<(String, Self)>),
    /// A vector of so many.
    Vector(Box<Self>, usize),
}

/// A value, in the forms in which it can be sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Val {
    /// As a CQL literal.
    pub(super) literal: String,
    /// As a bound value; `None` when scripts have no words for it.
    pub(super) bound: Option<String>,
    /// As JSON.
    pub(super) json: String,
}

impl Val {
    /// Null.
    pub(super) fn null() -> Self {
        Self {
            literal: "null".to_owned(),
            bound: Some("null".to_owned()),
            json: "null".to_owned(),
        }
    }

    /// An int.
    pub(super) fn int(n: i64) -> Self {
        Self {
            literal: n.to_string(),
            bound: Some(format!("int({n})")),
            json: n.to_string(),
        }
    }

    /// A bigint.
    pub(super) fn bigint(n: i64) -> Self {
        Self {
            literal: n.to_string(),
            bound: Some(format!("bigint({n})")),
            json: n.to_string(),
        }
    }

    /// As a key of a JSON object: a string, which is the JSON of the value unless that is one already.
    fn json_key(&self) -> String {
        if self.json.starts_with('"') {
            self.json.clone()
        } else {
            serde_json::Value::from(self.json.clone()).to_string()
        }
    }
}

/// Several values between brackets, as one of the kind that `bound` names.
pub(super) fn several(open: &str, close: &str, bound: &str, values: &[Val]) -> Val {
    let literals = values.iter().map(|v| v.literal.as_str()).collect::<Vec<_>>();
    let jsons = values.iter().map(|v| v.json.as_str()).collect::<Vec<_>>();
    let bounds = values
        .iter()
        .map(|v| v.bound.as_deref())
        .collect::<Option<Vec<_>>>()
        .map(|parts| format!("{bound}({})", parts.join(" ")));
    Val {
        literal: format!("{open}{}{close}", literals.join(", ")),
        bound: bounds,
        json: format!("[{}]", jsons.join(", ")),
    }
}

impl Type {
    /// Whether it is a list, set or map.
    pub(super) fn is_collection(&self) -> bool {
        matches!(self, Self::List(_) | Self::Set(_) | Self::Map(..))
    }

    /// Whether it needs the word `frozen` within another type.
    pub(super) fn can_be_multicell(&self) -> bool {
        self.is_collection() || matches!(self, Self::Udt(..))
    }

    /// Whether a duration is in it, which has no order.
    pub(super) fn has_duration(&self) -> bool {
        match self {
            Self::Native(native) => *native == Native::Duration,
            Self::Counter => false,
            Self::List(of) | Self::Set(of) | Self::Vector(of, _) => of.has_duration(),
            Self::Map(key, value) => key.has_duration() || value.has_duration(),
            Self::Tuple(of) => of.iter().any(Self::has_duration),
            Self::Udt(_, fields) => fields.iter().any(|(_, ty)| ty.has_duration()),
        }
    }

    /// The native type it is.
    pub(super) fn native(&self) -> Option<Native> {
        match self {
            Self::Native(native) => Some(*native),
            _ => None,
        }
    }

    /// In CQL, as a whole column that is not frozen.
    pub(super) fn cql(&self) -> String {
        match self {
            Self::Native(native) => native.name().to_owned(),
            Self::Counter => "counter".to_owned(),
            Self::List(of) => format!("list<{}>", of.cql_within()),
            Self::Set(of) => format!("set<{}>", of.cql_within()),
            Self::Map(key, value) => format!("map<{}, {}>", key.cql_within(), value.cql_within()),
            Self::Tuple(of) => {
                let parts = of.iter().map(Self::cql_within).collect::<Vec<_>>();
                format!("tuple<{}>", parts.join(", "))
            }
            Self::Udt(name, _) => name.clone(),
            Self::Vector(of, len) => format!("vector<{}, {len}>", of.cql_within()),
        }
    }

    /// In CQL, within another type or frozen.
    pub(super) fn cql_within(&self) -> String {
        if self.can_be_multicell() {
            format!("frozen<{}>", self.cql())
        } else {
            self.cql()
        }
    }

    /// A value of it; small collections, the plain constants more often than the others.
    pub(super) fn value(&self, rng: &mut Rng) -> Val {
        match self {
            Self::Counter => Val::bigint(rng.i64(-3..10)),
            Self::Native(native) => {
                let all = native.constants();
                let among = if rng.bool() { 4 } else { usize::MAX };
                let at = rng.usize(0..all.len().min(among));
                all.get(at).map_or_else(Val::null, |(literal, bound, json)| Val {
                    literal: (*literal).to_owned(),
                    bound: Some((*bound).to_owned()),
                    json: (*json).to_owned(),
                })
            }
            Self::List(of) => several("[", "]", "list", &of.values(rng)),
            Self::Set(of) => {
                // Bound sets have to be sorted and without doubles, which would need the order of the type here.
                let values = of.values(rng);
                let mut set = several("{", "}", "set", &values);
                if values.len() > 1 {
                    set.bound = None;
                }
                set
            }
            Self::Map(key, value) => {
                let mut keys = key.values(rng);
                // No key twice, in whatever form: of two equal keys in one literal Cassandra keeps now the first, now the last
                // (asked six times, it did each three times). A JSON object and a bound map would say something about parsers.
                let mut seen = Vec::new();
                keys.retain(|k| {
                    let json = serde_json::from_str(&k.json).unwrap_or_default();
                    let form = key.one_form(&json);
                    let first = !seen.contains(&form);
                    seen.push(form);
                    first
                });
                let pairs = keys.into_iter().map(|k| (k, value.value(rng))).collect::<Vec<_>>();
                map(&pairs)
            }
            Self::Tuple(of) => {
                let mut values = of.iter().map(|ty| ty.value(rng)).collect::<Vec<_>>();
                if let (1, Some(last)) = (rng.u8(0..8), values.last_mut()) {
                    *last = Val::null();
                }
                several("(", ")", "tuple", &values)
            }
            Self::Udt(_, fields) => {
                let values = fields
                    .iter()
                    .map(|(name, ty)| {
                        let value = if rng.u8(0..6) == 0 { Val::null() } else { ty.value(rng) };
                        (name.as_str(), value)
                    })
                    .collect::<Vec<_>>();
                udt(&values)
            }
            Self::Vector(of, len) => {
                let values = (0..*len).map(|_| of.value(rng)).collect::<Vec<_>>();
                let mut vector = several("[", "]", "vector", &values);
                if !of.native().is_some_and(Native::is_fixed) {
                    vector.bound = None;
                }
                vector
            }
        }
    }

    /// A value in JSON in a form that equal values share: of moments the number, of sets the elements in order and once.
    fn one_form(&self, value: &serde_json::Value) -> String {
        let elements = |of: &Self| {
            let values = value.as_array().map_or(&[][..], Vec::as_slice);
            values.iter().map(|value| of.one_form(value)).collect::<Vec<_>>()
        };
        match (self, value) {
            (Self::Native(Native::Timestamp), serde_json::Value::String(text)) => {
                let all = Native::Timestamp.constants().iter();
                let mut same = all.filter(|(_, _, json)| json.trim_matches('"') == text);
                same.next()
                    .map_or_else(|| text.clone(), |(_, bound, _)| (*bound).to_owned())
            }
            (Self::Native(Native::Timestamp), value) => format!("timestamp({value})"),
            (Self::List(of) | Self::Vector(of, _), _) => format!("{:?}", elements(of)),
            (Self::Set(of), _) => {
                let mut all = elements(of);
                all.sort_unstable();
                all.dedup();
                format!("{all:?}")
            }
            (Self::Map(of, to), serde_json::Value::Object(entries)) => {
                let mut all = entries
                    .iter()
                    .map(|(name, value)| {
                        // A name is the JSON of its key, or the text of one that is a string.
                        let text = serde_json::Value::from(name.as_str());
                        let name = serde_json::from_str(name).unwrap_or(text);
                        (of.one_form(&name), to.one_form(value))
                    })
                    .collect::<Vec<_>>();
                all.sort_unstable();
                format!("{all:?}")
            }
            (Self::Tuple(of), serde_json::Value::Array(values)) => {
                let all = of.iter().zip(values).map(|(ty, value)| ty.one_form(value));
                format!("{:?}", all.collect::<Vec<_>>())
            }
            (Self::Udt(_, fields), serde_json::Value::Object(values)) => {
                let all = fields
                    .iter()
                    .map(|(name, ty)| values.get(name).map(|value| ty.one_form(value)));
                format!("{:?}", all.collect::<Vec<_>>())
            }
            (_, value) => value.to_string(),
        }
    }

    /// None to three values.
    pub(super) fn values(&self, rng: &mut Rng) -> Vec<Val> {
        let count = [0, 1, 1, 2, 2, 3].get(rng.usize(0..6)).copied().unwrap_or(1);
        (0..count).map(|_| self.value(rng)).collect()
    }
}

/// A map of these pairs; it can be bound when it has one at most, since bound maps are sorted by their keys' types.
pub(super) fn map(pairs: &[(Val, Val)]) -> Val {
    let mut literal = String::new();
    let mut json = String::new();
    let mut bound = Some(String::new());
    for (i, (key, value)) in pairs.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        // Writing to a String cannot fail.
        let _infallible = write!(literal, "{comma}{}: {}", key.literal, value.literal);
        let _infallible = write!(json, "{comma}{}: {}", key.json_key(), value.json);
        bound = match (bound, &key.bound, &value.bound) {
            (Some(so_far), Some(key), Some(value)) if i == 0 => Some(format!("{so_far}{key} {value}")),
            _ => None,
        };
    }
    Val {
        literal: format!("{{{literal}}}"),
        bound: bound.map(|inner| format!("map({inner})")),
        json: format!("{{{json}}}"),
    }
}

fn udt(fields: &[(&str, Val)]) -> Val {
    let literals = fields
        .iter()
        .map(|(name, v)| format!("{name}: {}", v.literal))
        .collect::<Vec<_>>();
    let jsons = fields
        .iter()
        .map(|(name, v)| format!("\"{name}\": {}", v.json))
        .collect::<Vec<_>>();
    let bounds = fields
        .iter()
        .map(|(_, v)| v.bound.as_deref())
        .collect::<Option<Vec<_>>>();
    Val {
        literal: format!("{{{}}}", literals.join(", ")),
        bound: bounds.map(|parts| format!("udt({})", parts.join(" "))),
        json: format!("{{{}}}", jsons.join(", ")),
    }
}

/// A random native type; plain ones more often.
pub(super) fn random_native(rng: &mut Rng) -> Native {
    let among = if rng.u8(0..3) == 0 { 3 } else { NATIVES.len() };
    NATIVES.get(rng.usize(0..among)).copied().unwrap_or(Native::Int)
}

/// A random native type with an order.
pub(super) fn random_ordered(rng: &mut Rng) -> Native {
    loop {
        let native = random_native(rng);
        if native != Native::Duration {
            return native;
        }
    }
}

/// A random type, nested `depth` deep at most. `ordered`: it can be a key, so nowhere a duration.
pub(super) fn random_type(rng: &mut Rng, udts: &[Type], depth: u32, ordered: bool) -> Type {
    let native = |rng: &mut Rng| {
        Type::Native(if ordered {
            random_ordered(rng)
        } else {
            random_native(rng)
        })
    };
    if depth == 0 {
        return native(rng);
    }
    match rng.u32(0..20) {
        0..=8 => native(rng),
        9..=10 => Type::List(Box::new(random_type(rng, udts, depth - 1, ordered))),
        11..=12 => Type::Set(Box::new(random_type(rng, udts, depth - 1, true))),
        13..=15 => Type::Map(
            Box::new(random_type(rng, udts, depth - 1, true)),
            Box::new(random_type(rng, udts, depth - 1, ordered)),
        ),
        16 => {
            let count = rng.usize(1..4);
            Type::Tuple((0..count).map(|_| random_type(rng, udts, depth - 1, ordered)).collect())
        }
        17 => {
            let of = match rng.u8(0..4) {
                0 => Type::Native(random_ordered(rng)),
                1 => Type::Native(Native::Int),
                _ => Type::Native(Native::Float),
            };
            Type::Vector(Box::new(of), rng.usize(1..4))
        }
        _ => match rng.choice(udts) {
            Some(udt) if !ordered || !udt.has_duration() => udt.clone(),
            _ => native(rng),
        },
    }
}
