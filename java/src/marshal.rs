//! Converts the arguments of a call to Java values, and its result back.

use num_bigint::BigInt;

use crate::class::Class;
use crate::datum::{Datum, Fields, Type};
use crate::library::{buffer, tuple};
use crate::run::text::plain_text;
use crate::run::{Machine, Run, VALUE_BYTES};
use crate::value::{Decimal, Object, Plain, Prim, Table, Value, utf8};

/// An argument as a value of its type, boxed.
pub(crate) fn value_of(m: &mut Machine<'_>, datum: Option<&Datum>, ty: &Type) -> Run<Value> {
    let Some(datum) = datum else { return Ok(Value::Null) };
    m.step(1)?;
    m.allocate(VALUE_BYTES)?;
    Ok(match (datum, ty) {
        (Datum::Boolean(value), Type::Boolean) => m.boxed(Prim::Boolean(*value)),
        (Datum::Byte(value), Type::Byte) => m.boxed(Prim::Byte(*value)),
        (Datum::Short(value), Type::Short) => m.boxed(Prim::Short(*value)),
        (Datum::Int(value), Type::Int) => m.boxed(Prim::Int(*value)),
        (Datum::Long(value), Type::Long | Type::Time) => m.boxed(Prim::Long(*value)),
        (Datum::Float(value), Type::Float) => m.boxed(Prim::Float(*value)),
        (Datum::Double(value), Type::Double) => m.boxed(Prim::Double(*value)),
        (Datum::Text(text), Type::Text | Type::Ascii) => m.string(text)?,
        (Datum::Blob(bytes), Type::Blob) => {
            m.allocate(bytes.len() as u64)?;
            buffer::of_bytes(m, bytes.clone())?
        }
        (Datum::BigInteger(value), Type::BigInteger) => big(m, value)?,
        (Datum::BigDecimal { unscaled, scale }, Type::BigDecimal) => {
            m.allocate(unscaled.bits() / 8)?;
            Value::plain(Plain::Decimal(Decimal {
                unscaled: unscaled.clone(),
                scale: *scale,
            }))
        }
        (Datum::Uuid(value), Type::Uuid | Type::Timeuuid) => Value::plain(Plain::Uuid(*value)),
        (Datum::Date(millis), Type::Date) => Value::plain(Plain::Date(*millis)),
        (Datum::LocalDate(days), Type::LocalDate) => Value::plain(Plain::LocalDate(*days)),
        (Datum::Inet(address), Type::Inet) => Value::plain(Plain::Inet(*address)),
        (Datum::Duration { months, days, nanos }, Type::Duration) => Value::plain(Plain::Duration {
            months: *months,
            days: *days,
            nanos: *nanos,
        }),
        (Datum::List(items), Type::List(of) | Type::Vector(of, _)) => {
            let items = items
                .iter()
                .map(|item| value_of(m, item.as_ref(), of))
                .collect::<Run<Vec<Value>>>()?;
            m.make(Object::List {
                class: Class::ArrayList,
                items,
                changes: 0,
                fixed: false,
                frozen: false,
            })?
        }
        (Datum::List(items), Type::Set(of)) => {
            let set = m.make(Object::Table(Table::new(Class::LinkedHashSet)))?;
            for item in items {
                let item = value_of(m, item.as_ref(), of)?;
                if let Value::Ref(handle) = &set {
                    m.put(*handle, item, Value::Null)?;
                }
            }
            set
        }
        (Datum::Map(entries), Type::Map(key_type, value_type)) => {
            let map = m.make(Object::Table(Table::new(Class::LinkedHashMap)))?;
            for (key, value) in entries {
                let (key, value) = (
                    value_of(m, key.as_ref(), key_type)?,
                    value_of(m, value.as_ref(), value_type)?,
                );
                if let Value::Ref(handle) = &map {
                    m.put(*handle, key, value)?;
                }
            }
            map
        }
        (Datum::Tuple(given), Type::Tuple(of)) => tuple_of(m, given, of, ty)?,
        (Datum::Tuple(given), Type::User(user)) => tuple_of(m, given, &user.fields, ty)?,
        _ => return Machine::fault("an argument is not of its type"),
    })
}

fn tuple_of(m: &mut Machine<'_>, given: &[Option<Datum>], of: &Fields, ty: &Type) -> Run<Value> {
    let bytes: u64 = given.iter().flatten().map(Datum::bytes).sum();
    m.allocate(bytes + VALUE_BYTES * of.types.len() as u64)?;
    m.step(given.len())?;
    let mut fields = given.to_vec();
    fields.resize(of.types.len(), None);
    m.make(Object::Tuple {
        ty: ty.clone(),
        fields,
        is_argument: false,
    })
}

fn big(m: &mut Machine<'_>, value: &BigInt) -> Run<Value> {
    m.allocate(value.bits() / 8)?;
    Ok(Value::big(value.clone()))
}

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
                    None => return tuple::no_field(m, name),
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
