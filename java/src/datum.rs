//! The input and output of a call: values of the types that a function declares.

use std::net::IpAddr;
use std::sync::Arc;

use num_bigint::BigInt;

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
    /// Cassandra's `TupleValue`
    Tuple(Arc<[Type]>),
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
    /// Types of the fields.
    pub types: Arc<[Type]>,
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
