//! Converts wire bytes of CQL types to the values of a function's body, and back.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use java::{Datum, Type};

use crate::types::{self, CqlType, Decimal, Duration, Native, UserType};

/// The offset of a CQL date from days since 1970-01-01.
fn epoch_days(bytes: &[u8]) -> Option<i32> {
    i32::try_from(types::decode_date(bytes)?).ok()
}

/// The Java type for a CQL type; `None` means that there is none.
pub(super) fn java_type(ty: &CqlType) -> Option<Type> {
    let inner = |ty: &Arc<CqlType>| java_type(ty).map(Arc::new);
    Some(match ty {
        CqlType::Native(native) => match native {
            Native::Ascii => Type::Ascii,
            Native::Text => Type::Text,
            Native::Bigint | Native::Counter => Type::Long,
            Native::Time => Type::Time,
            Native::Blob => Type::Blob,
            Native::Boolean => Type::Boolean,
            Native::Date => Type::LocalDate,
            Native::Decimal => Type::BigDecimal,
            Native::Double => Type::Double,
            Native::Duration => Type::Duration,
            Native::Empty => return None,
            Native::Float => Type::Float,
            Native::Inet => Type::Inet,
            Native::Int => Type::Int,
            Native::Smallint => Type::Short,
            Native::Timestamp => Type::Date,
            Native::Timeuuid => Type::Timeuuid,
            Native::Uuid => Type::Uuid,
            Native::Tinyint => Type::Byte,
            Native::Varint => Type::BigInteger,
        },
        CqlType::Custom(_) => return None,
        CqlType::Frozen(of) => return java_type(of),
        CqlType::List(of) => Type::List(inner(of)?),
        CqlType::Vector(of, count) => Type::Vector(inner(of)?, *count),
        CqlType::Set(of) => Type::Set(inner(of)?),
        CqlType::Map(key, value) => Type::Map(inner(key)?, inner(value)?),
        CqlType::Tuple(of) => Type::Tuple(fields_type(of.iter())?),
        CqlType::User(user) => Type::User(user_type(user)?),
    })
}

fn fields_type<'a>(of: impl IntoIterator<Item = &'a CqlType> + Clone) -> Option<Arc<java::Fields>> {
    let frozen = of.clone().into_iter().map(|ty| matches!(ty, CqlType::Frozen(_)));
    Some(Arc::new(java::Fields {
        frozen: frozen.collect(),
        types: of.into_iter().map(java_type).collect::<Option<_>>()?,
    }))
}

/// A user type for a body.
pub(super) fn user_type(user: &UserType) -> Option<Arc<java::UserType>> {
    let types: Vec<&CqlType> = user.fields.iter().map(|(_, ty)| ty).collect();
    Some(Arc::new(java::UserType {
        name: format!("{}.{}", user.keyspace, user.name),
        names: user.fields.iter().map(|(name, _)| name.clone()).collect(),
        fields: fields_type(types)?,
    }))
}

/// A value in Java's form. `None` is null; empty bytes are null for types without an empty value.
pub(super) fn datum(ty: &CqlType, bytes: Option<&[u8]>) -> Option<Datum> {
    let bytes = bytes?;
    let all = |ty: &CqlType, items: Vec<&[u8]>| items.into_iter().map(|item| datum(ty, Some(item))).collect();
    match ty {
        CqlType::Native(native) => native_datum(*native, bytes),
        CqlType::Custom(_) => None,
        CqlType::Frozen(of) => datum(of, Some(bytes)),
        CqlType::List(of) | CqlType::Set(of) => types::list_elements(bytes)
            .ok()
            .map(|items| Datum::List(all(of, items))),
        CqlType::Vector(of, _) => ty.vector_elements(bytes).ok().map(|items| Datum::List(all(of, items))),
        CqlType::Map(key, value) => {
            let entry = |(k, v): (&[u8], &[u8])| (datum(key, Some(k)), datum(value, Some(v)));
            types::map_entries(bytes)
                .ok()
                .map(|entries| Datum::Map(entries.into_iter().map(entry).collect()))
        }
        CqlType::Tuple(of) => Some(values(of.iter(), of.len(), bytes)),
        CqlType::User(user) => Some(values(user.fields.iter().map(|(_, ty)| ty), user.fields.len(), bytes)),
    }
}

fn values<'a>(of: impl Iterator<Item = &'a CqlType>, count: usize, bytes: &[u8]) -> Datum {
    let values = types::tuple_fields(bytes, count);
    Datum::Tuple(of.zip(values).map(|(ty, value)| datum(ty, value)).collect())
}

fn native_datum(native: Native, bytes: &[u8]) -> Option<Datum> {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match native {
        Native::Ascii | Native::Text => Some(Datum::Text(text())),
        Native::Bigint | Native::Counter | Native::Time => types::decode_i64(bytes).map(Datum::Long),
        Native::Blob => Some(Datum::Blob(bytes.to_vec())),
        Native::Boolean => types::decode_boolean(bytes).map(Datum::Boolean),
        Native::Date => epoch_days(bytes).map(Datum::LocalDate),
        Native::Decimal => Decimal::decode(bytes).map(|value| Datum::BigDecimal {
            unscaled: value.unscaled,
            scale: value.scale,
        }),
        Native::Double => types::decode_f64(bytes).map(Datum::Double),
        Native::Duration => Duration::decode(bytes).ok().map(|value| Datum::Duration {
            months: value.months,
            days: value.days,
            nanos: value.nanoseconds,
        }),
        Native::Empty => None,
        Native::Float => types::decode_f32(bytes).map(Datum::Float),
        Native::Inet => types::decode_inet(bytes).map(Datum::Inet),
        Native::Int => types::decode_i32(bytes).map(Datum::Int),
        Native::Smallint => types::decode_i16(bytes).map(Datum::Short),
        Native::Timestamp => types::decode_i64(bytes).map(Datum::Date),
        Native::Timeuuid | Native::Uuid => <[u8; 16]>::try_from(bytes)
            .ok()
            .map(|uuid| Datum::Uuid(u128::from_be_bytes(uuid))),
        Native::Tinyint => types::decode_i8(bytes).map(Datum::Byte),
        Native::Varint => types::decode_varint(bytes).map(Datum::BigInteger),
    }
}

/// A result as wire bytes. `Err`: it has a null where its type allows none, or is no value of its type.
pub(super) fn encoded(ty: &CqlType, datum: &Datum) -> Result<Bytes, &'static str> {
    const OTHER: &str = "the result is not of the function's type";
    let all = |of: &CqlType, items: &[Option<Datum>]| -> Result<Vec<Bytes>, &'static str> {
        let element = |item: &Option<Datum>| {
            item.as_ref()
                .ok_or("a collection has null in it")
                .and_then(|item| encoded(of, item))
        };
        items.iter().map(element).collect()
    };
    fn slices(items: &[Bytes]) -> Vec<&[u8]> {
        items.iter().map(Bytes::as_ref).collect()
    }
    match (ty, datum) {
        (CqlType::Frozen(of), datum) => encoded(of, datum),
        (CqlType::List(of), Datum::List(items)) => Ok(types::encode_list(slices(&all(of, items)?))),
        // Not sorted: Java's order is seen by the next function. The planner sorts what is stored.
        (CqlType::Set(of), Datum::List(items)) => Ok(types::encode_list(slices(&all(of, items)?))),
        (CqlType::Vector(of, size), Datum::List(items)) if items.len() == *size as usize => {
            Ok(of.encode_vector(slices(&all(of, items)?)))
        }
        (CqlType::Map(key, value), Datum::Map(entries)) => {
            let mut pairs = Vec::with_capacity(entries.len());
            for (k, v) in entries {
                let (Some(k), Some(v)) = (k, v) else {
                    return Err("a collection has null in it");
                };
                pairs.push((encoded(key, k)?, encoded(value, v)?));
            }
            Ok(types::encode_map(pairs.iter().map(|(k, v)| (k.as_ref(), v.as_ref()))))
        }
        (CqlType::Tuple(of), Datum::Tuple(items)) => encoded_fields(of.iter(), items),
        (CqlType::User(user), Datum::Tuple(items)) => encoded_fields(user.fields.iter().map(|(_, ty)| ty), items),
        (CqlType::Native(native), datum) => native_bytes(*native, datum).ok_or(OTHER),
        _ => Err(OTHER),
    }
}

fn encoded_fields<'a>(of: impl Iterator<Item = &'a CqlType>, items: &[Option<Datum>]) -> Result<Bytes, &'static str> {
    let field = |(ty, item): (&CqlType, &Option<Datum>)| item.as_ref().map(|item| encoded(ty, item)).transpose();
    let fields = of.zip(items).map(field).collect::<Result<Vec<Option<Bytes>>, _>>()?;
    Ok(types::encode_tuple(fields.iter().map(Option::as_deref)))
}

fn native_bytes(native: Native, datum: &Datum) -> Option<Bytes> {
    let bytes = match (native, datum) {
        (Native::Ascii | Native::Text, Datum::Text(text)) => text.clone().into_bytes(),
        (Native::Bigint | Native::Counter | Native::Time, Datum::Long(value)) => value.to_be_bytes().to_vec(),
        (Native::Timestamp, Datum::Date(value)) => value.to_be_bytes().to_vec(),
        (Native::Blob, Datum::Blob(bytes)) => bytes.clone(),
        (Native::Boolean, Datum::Boolean(value)) => vec![u8::from(*value)],
        (Native::Date, Datum::LocalDate(days)) => types::encode_date((*days).into())?.to_vec(),
        (Native::Decimal, Datum::BigDecimal { unscaled, scale }) => {
            let (unscaled, scale) = (unscaled.clone(), *scale);
            Decimal { unscaled, scale }.encode()
        }
        (Native::Double, Datum::Double(value)) => types::encode_f64(*value).to_vec(),
        (Native::Float, Datum::Float(value)) => types::encode_f32(*value).to_vec(),
        (Native::Duration, Datum::Duration { months, days, nanos }) => {
            let (months, days, nanoseconds) = (*months, *days, *nanos);
            Duration {
                months,
                days,
                nanoseconds,
            }
            .encode()
        }
        (Native::Inet, Datum::Inet(IpAddr::V4(address))) => address.octets().to_vec(),
        (Native::Inet, Datum::Inet(IpAddr::V6(address))) => address.octets().to_vec(),
        (Native::Int, Datum::Int(value)) => value.to_be_bytes().to_vec(),
        (Native::Smallint, Datum::Short(value)) => value.to_be_bytes().to_vec(),
        (Native::Tinyint, Datum::Byte(value)) => value.to_be_bytes().to_vec(),
        (Native::Timeuuid | Native::Uuid, Datum::Uuid(value)) => value.to_be_bytes().to_vec(),
        (Native::Varint, Datum::BigInteger(value)) => types::encode_varint(value),
        _ => return None,
    };
    CqlType::Native(native).validate(&bytes).ok()?;
    Some(bytes.into())
}
