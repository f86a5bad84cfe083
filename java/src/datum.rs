//! The input and output of a call: values of the types that a function declares.

use std::net::IpAddr;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::class::Class;
use crate::limits::VALUE_BYTES;

/// The type of an argument or a result, by its Java class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `Boolean`
    Boolean,
    /// `Byte`
    Byte,
    /// `Short`
    Short,
    /// `Integer`
    Int,
    /// `Long`
    Long,
    /// `Long`: nanoseconds of a day
    Time,
    /// `Float`
    Float,
    /// `Double`
    Double,
    /// `String`
    Text,
    /// `String` of ASCII characters only
    Ascii,
    /// `java.nio.ByteBuffer`
    Blob,
    /// `java.math.BigInteger`
    BigInteger,
    /// `java.math.BigDecimal`
    BigDecimal,
    /// `java.util.UUID`
    Uuid,
    /// `java.util.UUID` of version 1
    Timeuuid,
    /// `java.util.Date`
    Date,
    /// Cassandra's `LocalDate`
    LocalDate,
    /// `java.net.InetAddress`
    Inet,
    /// Cassandra's `Duration`
    Duration,
    /// `java.util.List`
    List(Arc<Type>),
    /// `java.util.Set`
    Set(Arc<Type>),
    /// `java.util.Map`
    Map(Arc<Type>, Arc<Type>),
    /// `java.util.List` of so many elements
    Vector(Arc<Type>, u32),
    /// Cassandra's `TupleValue`
    Tuple(Arc<Fields>),
    /// Cassandra's `UDTValue`
    User(Arc<UserType>),
}

/// A user type: its fields in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserType {
    /// With its keyspace: `ks.name`.
    pub name: String,
    /// Names of the fields.
    pub names: Vec<String>,
    /// The fields.
    pub fields: Arc<Fields>,
}

/// The fields of a tuple or user type, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Their types.
    pub types: Vec<Type>,
    /// Which of these are written `frozen<…>`, for messages.
    pub frozen: Vec<bool>,
}

/// The types that `udfContext` finds by name.
pub trait Types {
    /// The keyspace of the function.
    fn keyspace(&self) -> &str;
    /// The keyspace's user type of this name.
    fn user_type(&self, name: &str) -> Option<Arc<UserType>>;
    /// The type of a CQL text; `None` means that the text is no type.
    fn parsed(&self, text: &str) -> Option<Type>;
}

impl Type {
    /// The class of its values; `None` if it is a generic one.
    pub(crate) fn class(&self) -> Option<Class> {
        Some(match self {
            Self::Boolean => Class::Boolean,
            Self::Byte => Class::Byte,
            Self::Short => Class::Short,
            Self::Int => Class::Integer,
            Self::Long | Self::Time => Class::Long,
            Self::Float => Class::Float,
            Self::Double => Class::Double,
            Self::Text | Self::Ascii => Class::String,
            Self::Blob => Class::ByteBuffer,
            Self::BigInteger => Class::BigInteger,
            Self::BigDecimal => Class::BigDecimal,
            Self::Uuid | Self::Timeuuid => Class::Uuid,
            Self::Date => Class::Date,
            Self::LocalDate => Class::LocalDate,
            Self::Inet => Class::InetAddress,
            Self::Duration => Class::Duration,
            Self::List(_) | Self::Set(_) | Self::Map(..) | Self::Vector(..) => return None,
            Self::Tuple(_) => Class::TupleValue,
            Self::User(_) => Class::UdtValue,
        })
    }

    /// Whether values of this class may be of this type.
    pub(crate) fn is_of(&self, class: Class) -> bool {
        match self {
            Self::List(_) | Self::Vector(..) => class.is(Class::List),
            Self::Set(_) => class.is(Class::Set),
            Self::Map(..) => class.is(Class::Map),
            other => other.class() == Some(class),
        }
    }

    /// Its Java type: `java.util.List<java.lang.Integer>`.
    pub(crate) fn java_name(&self) -> String {
        match self {
            Self::List(of) | Self::Vector(of, _) => format!("java.util.List<{}>", of.java_name()),
            Self::Set(of) => format!("java.util.Set<{}>", of.java_name()),
            Self::Map(key, value) => format!("java.util.Map<{}, {}>", key.java_name(), value.java_name()),
            other => other.class().map_or("", Class::full_name).to_owned(),
        }
    }

    /// The kind of type in messages: `list`, `udt`, `varchar`.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "tinyint",
            Self::Short => "smallint",
            Self::Int => "int",
            Self::Long => "bigint",
            Self::Time => "time",
            Self::Float => "float",
            Self::Double => "double",
            Self::Text => "varchar",
            Self::Ascii => "ascii",
            Self::Blob => "blob",
            Self::BigInteger => "varint",
            Self::BigDecimal => "decimal",
            Self::Uuid => "uuid",
            Self::Timeuuid => "timeuuid",
            Self::Date => "timestamp",
            Self::LocalDate => "date",
            Self::Inet => "inet",
            Self::Duration => "duration",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Map(..) => "map",
            Self::Vector(..) => "vector",
            Self::Tuple(_) => "tuple",
            Self::User(_) => "udt",
        }
    }

    /// Its CQL name in messages about a field or element. Elements are frozen; so are tuples and user types always.
    pub(crate) fn cql_name(&self, frozen: bool) -> String {
        let name = match self {
            Self::Text => return "text".to_owned(),
            Self::List(of) => format!("list<{}>", of.cql_name(true)),
            Self::Set(of) => format!("set<{}>", of.cql_name(true)),
            Self::Map(key, value) => format!("map<{}, {}>", key.cql_name(true), value.cql_name(true)),
            Self::Vector(of, count) => return format!("vector<{}, {count}>", of.cql_name(true)),
            Self::Tuple(of) => {
                let names = of.types.iter().zip(&of.frozen).map(|(ty, frozen)| match ty {
                    Self::User(user) => user.name.rsplit('.').next().unwrap_or_default().to_owned(),
                    ty => ty.cql_name(*frozen),
                });
                return format!("frozen<tuple<{}>>", names.collect::<Vec<_>>().join(", "));
            }
            Self::User(user) => return format!("frozen<{}>", user.name),
            other => return other.kind_name().to_owned(),
        };
        if frozen { format!("frozen<{name}>") } else { name }
    }

    /// The same without `frozen`, with `varchar` for `text`.
    pub(crate) fn plain_name(&self) -> String {
        match self {
            Self::List(of) => format!("list<{}>", of.plain_name()),
            Self::Set(of) => format!("set<{}>", of.plain_name()),
            Self::Map(key, value) => format!("map<{}, {}>", key.plain_name(), value.plain_name()),
            Self::Vector(of, count) => format!("vector<{}, {count}>", of.plain_name()),
            Self::User(_) | Self::Tuple(_) => self.cql_name(true),
            other => other.kind_name().to_owned(),
        }
    }
}

impl Datum {
    /// Bytes charged for it.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |item: &Option<Self>| item.as_ref().map_or(0, Self::bytes);
        VALUE_BYTES
            + match self {
                Self::Text(text) => text.len() as u64,
                Self::Blob(bytes) => bytes.len() as u64,
                Self::BigInteger(value) => value.bits() / 8,
                Self::BigDecimal { unscaled, .. } => unscaled.bits() / 8,
                Self::List(items) | Self::Tuple(items) => items.iter().map(of).sum(),
                Self::Map(entries) => entries.iter().map(|(key, value)| of(key) + of(value)).sum(),
                _ => 0,
            }
    }
}

/// A value; `None` of an `Option<Datum>` is null.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is a value of the type of its name")]
pub enum Datum {
    Boolean(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Text(String),
    Blob(Vec<u8>),
    BigInteger(BigInt),
    BigDecimal {
        unscaled: BigInt,
        scale: i32,
    },
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
    /// A list, or a set in its order.
    List(Vec<Option<Datum>>),
    Map(Vec<(Option<Datum>, Option<Datum>)>),
    /// A tuple, or a user type's fields.
    Tuple(Vec<Option<Datum>>),
}
