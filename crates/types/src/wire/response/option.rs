//! `[option]`: the encoding of a type in metadata (native_protocol_v5.spec §4.2.5.2).
//!
//! The encoding has neither frozen nor descending. A type without an id in a version is CUSTOM, with Cassandra's class
//! name, which clients parse.

use std::fmt::Write as _;

use crate::types::{CqlType, Native};

use super::super::{Version, write};

const CUSTOM: u16 = 0x0000;

/// The id of a native type. `None` means the version has no id for it.
const fn native_id(native: Native, version: Version) -> Option<u16> {
    let v3 = matches!(version, Version::V3);
    Some(match native {
        Native::Ascii => 0x0001,
        Native::Bigint => 0x0002,
        Native::Blob => 0x0003,
        Native::Boolean => 0x0004,
        Native::Counter => 0x0005,
        Native::Decimal => 0x0006,
        Native::Double => 0x0007,
        Native::Float => 0x0008,
        Native::Int => 0x0009,
        Native::Timestamp => 0x000B,
        Native::Uuid => 0x000C,
        // 000A, «text», is obsolete since version 3.
        Native::Text => 0x000D,
        Native::Varint => 0x000E,
        Native::Timeuuid => 0x000F,
        Native::Inet => 0x0010,
        Native::Date if !v3 => 0x0011,
        Native::Time if !v3 => 0x0012,
        Native::Smallint if !v3 => 0x0013,
        Native::Tinyint if !v3 => 0x0014,
        Native::Duration if matches!(version, Version::V5) => 0x0015,
        Native::Date | Native::Time | Native::Smallint | Native::Tinyint | Native::Duration | Native::Empty => {
            return None;
        }
    })
}

/// Writes the type's `[option]`.
pub fn write_option(out: &mut Vec<u8>, version: Version, ty: &CqlType) {
    match ty {
        CqlType::Native(native) => match native_id(*native, version) {
            Some(id) => write::short(out, id),
            None => write_custom(out, ty),
        },
        CqlType::Custom(class) => {
            write::short(out, CUSTOM);
            write::string(out, class);
        }
        CqlType::Vector(..) => write_custom(out, ty),
        CqlType::List(element) => {
            write::short(out, 0x0020);
            write_option(out, version, element);
        }
        CqlType::Map(key, value) => {
            write::short(out, 0x0021);
            write_option(out, version, key);
            write_option(out, version, value);
        }
        CqlType::Set(element) => {
            write::short(out, 0x0022);
            write_option(out, version, element);
        }
        CqlType::User(user) => {
            write::short(out, 0x0030);
            write::string(out, &user.keyspace);
            write::string(out, &user.name);
            let count = write::short_count(out, user.fields.len());
            for (name, ty) in user.fields.iter().take(count) {
                write::string(out, name);
                write_option(out, version, ty);
            }
        }
        CqlType::Tuple(elements) => {
            write::short(out, 0x0031);
            let count = write::short_count(out, elements.len());
            for element in elements.iter().take(count) {
                write_option(out, version, element);
            }
        }
        CqlType::Frozen(inner) => write_option(out, version, inner),
    }
}

fn write_custom(out: &mut Vec<u8>, ty: &CqlType) {
    write::short(out, CUSTOM);
    write::string(out, &class_name(ty));
}

/// The package of Cassandra's type classes.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// The type in Cassandra's marshal notation, as `AbstractType.toString` prints it.
#[must_use]
pub fn class_name(ty: &CqlType) -> String {
    let mut out = String::new();
    print_class(&mut out, ty, false);
    out
}

const fn native_class(native: Native) -> &'static str {
    match native {
        Native::Ascii => "AsciiType",
        Native::Bigint => "LongType",
        Native::Blob => "BytesType",
        Native::Boolean => "BooleanType",
        Native::Counter => "CounterColumnType",
        Native::Date => "SimpleDateType",
        Native::Decimal => "DecimalType",
        Native::Double => "DoubleType",
        Native::Duration => "DurationType",
        Native::Empty => "EmptyType",
        Native::Float => "FloatType",
        Native::Inet => "InetAddressType",
        Native::Int => "Int32Type",
        Native::Smallint => "ShortType",
        Native::Text => "UTF8Type",
        Native::Time => "TimeType",
        Native::Timestamp => "TimestampType",
        Native::Timeuuid => "TimeUUIDType",
        Native::Tinyint => "ByteType",
        Native::Uuid => "UUIDType",
        Native::Varint => "IntegerType",
    }
}

/// `in_frozen`: within a frozen type, where frozen is not printed again.
fn print_class(out: &mut String, ty: &CqlType, in_frozen: bool) {
    let separated = |out: &mut String, class: &str, parts: &[&CqlType], frozen: bool| {
        out.push_str(PACKAGE);
        out.push_str(class);
        out.push('(');
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            print_class(out, part, frozen);
        }
        out.push(')');
    };
    match ty {
        CqlType::Native(native) => {
            out.push_str(PACKAGE);
            out.push_str(native_class(*native));
        }
        CqlType::Custom(class) => out.push_str(class),
        CqlType::List(element) => separated(out, "ListType", &[element], in_frozen),
        CqlType::Set(element) => separated(out, "SetType", &[element], in_frozen),
        CqlType::Map(key, value) => separated(out, "MapType", &[key, value], in_frozen),
        CqlType::Tuple(elements) => {
            let elements: Vec<&CqlType> = elements.iter().collect();
            separated(out, "TupleType", &elements, true);
        }
        CqlType::User(user) => print_user(out, user),
        CqlType::Vector(element, dimension) => {
            out.push_str(PACKAGE);
            out.push_str("VectorType(");
            // A vector's element is always frozen, but Cassandra prints it as frozen only if it was written so.
            print_class(out, element, in_frozen);
            // Writing to a String cannot fail.
            let _ = write!(out, " , {dimension})");
        }
        // Natives, tuples and vectors print the same, frozen or not.
        CqlType::Frozen(inner) if !in_frozen && is_multi_cell(inner) => {
            out.push_str(PACKAGE);
            out.push_str("FrozenType(");
            print_class(out, inner, true);
            out.push(')');
        }
        CqlType::Frozen(inner) => print_class(out, inner, in_frozen),
    }
}

const fn is_multi_cell(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) | CqlType::User(_)
    )
}

/// `UserType(keyspace,hex of name,hex of field:type,…)`
fn print_user(out: &mut String, user: &crate::types::UserType) {
    fn hex(out: &mut String, text: &str) {
        for byte in text.bytes() {
            let _ = write!(out, "{byte:02x}");
        }
    }
    let _ = write!(out, "{PACKAGE}UserType({},", user.keyspace);
    hex(out, &user.name);
    for (name, ty) in &user.fields {
        out.push(',');
        hex(out, name);
        out.push(':');
        print_class(out, ty, true);
    }
    out.push(')');
}
