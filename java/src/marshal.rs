//! Converts the result of a call from a Java value.

use crate::class::Class;
use crate::datum::{Datum, Type};
use crate::machine::{Machine, Run, buffer};
use crate::shown::plain_text;
use crate::value::{Object, Plain, Prim, Value, utf8};

/// A result as a datum of its type. Values of other classes, which unchecked generics allow, throw a
/// ClassCastException.
pub(crate) fn datum_of(m: &mut Machine<'_>, value: &Value, ty: &Type) -> Run<Option<Datum>> {
    m.step(1)?;
    if matches!(value, Value::Null) {
        return Ok(None);
    }
    let datum = match (value, ty) {
        (Value::Prim(prim) | Value::Boxed(prim, _), ty) => match (prim, ty) {
            (Prim::Boolean(value), Type::Boolean) => Some(Datum::Boolean(*value)),
            (Prim::Byte(value), Type::Byte) => Some(Datum::Byte(*value)),
            (Prim::Short(value), Type::Short) => Some(Datum::Short(*value)),
            (Prim::Int(value), Type::Int) => Some(Datum::Int(*value)),
            (Prim::Long(value), Type::Long | Type::Time) => Some(Datum::Long(*value)),
            (Prim::Float(value), Type::Float) => Some(Datum::Float(*value)),
            (Prim::Double(value), Type::Double) => Some(Datum::Double(*value)),
            _ => None,
        },
        (Value::Text(text), Type::Text) => Some(Datum::Text(utf8(text))),
        (Value::Text(text), Type::Ascii) => {
            // Judged before it is encoded: half of a surrogate pair is not ASCII, its `?` would be.
            if text.iter().any(|unit| *unit > 0x7f) {
                let message = format!("{} is not a valid ASCII String", utf8(text));
                return m.throw(Class::InvalidType, message);
            }
            Some(Datum::Text(utf8(text)))
        }
        (Value::Plain(plain), ty) => match (&**plain, ty) {
            (Plain::Big(value), Type::BigInteger) => Some(Datum::BigInteger(value.clone())),
            (Plain::Decimal(value), Type::BigDecimal) => Some(Datum::BigDecimal {
                unscaled: value.unscaled.clone(),
                scale: value.scale,
            }),
            (Plain::Uuid(value), Type::Uuid) => Some(Datum::Uuid(*value)),
            (Plain::Uuid(value), Type::Timeuuid) => {
                if (value >> 76) & 0xf != 1 {
                    let uuid = plain_text(plain);
                    return m.throw(Class::InvalidType, format!("{uuid} is not a Type 1 (time-based) UUID"));
                }
                Some(Datum::Uuid(*value))
            }
            (Plain::Date(millis), Type::Date) => Some(Datum::Date(*millis)),
            (Plain::LocalDate(days), Type::LocalDate) => Some(Datum::LocalDate(*days)),
            (Plain::Inet(address), Type::Inet) => Some(Datum::Inet(*address)),
            (Plain::Duration { months, days, nanos }, Type::Duration) => Some(Datum::Duration {
                months: *months,
                days: *days,
                nanos: *nanos,
            }),
            _ => None,
        },
        (Value::Ref(handle), ty) => {
            let handle = *handle;
            m.deeper(|m| object_datum(m, handle, ty))?
        }
        _ => None,
    };
    match datum {
        Some(datum) => Ok(Some(datum)),
        None => {
            let class = m.class_of(value)?.full_name();
            m.throw(
                Class::ClassCast,
                format!("class {class} cannot be cast to the type of the result"),
            )
        }
    }
}

fn object_datum(m: &mut Machine<'_>, handle: u32, ty: &Type) -> Run<Option<Datum>> {
    let class = m.class_of(&Value::Ref(handle))?;
    Ok(match ty {
        Type::List(of) | Type::Vector(of, _) if class.is(Class::List) => Some(Datum::List(all(m, handle, of)?)),
        Type::Set(of) if class.is(Class::Set) => Some(Datum::List(all(m, handle, of)?)),
        Type::Map(key_type, value_type) if class.is(Class::Map) => {
            let mut entries = Vec::new();
            for (key, value) in m.table(handle)?.entries() {
                entries.push((datum_of(m, &key, key_type)?, datum_of(m, &value, value_type)?));
            }
            Some(Datum::Map(entries))
        }
        Type::Blob if class == Class::ByteBuffer => Some(Datum::Blob(buffer::remaining(m, handle)?)),
        // An empty collection of one kind is bytes of the other.
        Type::List(_) | Type::Set(_) if class.is(Class::Collection) && m.size(handle)? == 0 => {
            Some(Datum::List(Vec::new()))
        }
        Type::Tuple(_) if class == Class::TupleValue => Some(Datum::Tuple(fields(m, handle, ty)?)),
        Type::User(_) if class == Class::UdtValue => Some(Datum::Tuple(fields(m, handle, ty)?)),
        _ => None,
    })
}

fn all(m: &mut Machine<'_>, handle: u32, ty: &Type) -> Run<Vec<Option<Datum>>> {
    let items = m.elements(handle)?;
    items.iter().map(|item| datum_of(m, item, ty)).collect()
}

/// The fields of a tuple for a tuple type, by position; those of a user type for another, by name.
fn fields(m: &mut Machine<'_>, handle: u32, ty: &Type) -> Run<Vec<Option<Datum>>> {
    let Object::Tuple { ty: own, fields, .. } = m.object(handle)? else {
        return Machine::fault("a tuple was expected");
    };
    let (own, fields) = (own.clone(), fields.clone());
    m.step(fields.len())?;
    match (ty, &own) {
        (Type::User(user), Type::User(own)) => {
            let mut found = Vec::with_capacity(user.names.len());
            for name in &user.names {
                match own.names.iter().position(|other| other == name) {
                    Some(at) => found.push(fields.get(at).cloned().flatten()),
                    None => return no_field(m, name),
                }
            }
            Ok(found)
        }
        (Type::Tuple(of), _) => {
            let mut fields = fields;
            fields.resize(of.types.len(), None);
            Ok(fields)
        }
        _ => Machine::fault("a tuple was expected"),
    }
}

pub(crate) fn no_field<T>(m: &mut Machine<'_>, name: &str) -> Run<T> {
    let message = format!("{name} is not a field defined in this UDT");
    m.throw(Class::IllegalArgument, message)
}
