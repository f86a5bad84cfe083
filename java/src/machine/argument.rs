//! Arguments as Java values.

use num_bigint::BigInt;

use super::{Machine, Run, buffer};
use crate::class::Class;
use crate::datum::{Datum, Fields, Type};
use crate::limits::VALUE_BYTES;
use crate::value::{Decimal, Object, Plain, Prim, Table, Value};

/// An argument as a value of its type, boxed.
#[expect(clippy::too_many_lines, reason = "one arm for each type")]
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
