//! Cassandra's `TupleValue` and `UDTValue`, and `udfContext`, which makes them.

use std::sync::Arc;

use super::{Arguments, Method, instance, text};
use crate::class::Class;
use crate::class::Class::{TupleValue, UdfContext, UdtValue};
use crate::datum::Type;
use crate::run::{Machine, Run, VALUE_BYTES};
use crate::value::{Object, Plain, Prim, Value};

macro_rules! accessors {
    ($([$getter:literal $setter:literal $ty:literal],)*) => {
        /// Getters by position and by name, and setters that return the value itself.
        pub(super) const ACCESSORS: &[Method] = &[$(
            instance(TupleValue, $getter, "int", $ty, get),
            instance(UdtValue, $getter, "int", $ty, get),
            instance(UdtValue, $getter, "String", $ty, get),
            instance(TupleValue, $setter, concat!("int,", $ty), "TupleValue", set),
            instance(UdtValue, $setter, concat!("int,", $ty), "UDTValue", set),
            instance(UdtValue, $setter, concat!("String,", $ty), "UDTValue", set),
        )*];
    };
}

accessors! {
    ["getBool" "setBool" "boolean"],
    ["getByte" "setByte" "byte"],
    ["getShort" "setShort" "short"],
    ["getInt" "setInt" "int"],
    ["getLong" "setLong" "long"],
    ["getTime" "setTime" "long"],
    ["getFloat" "setFloat" "float"],
    ["getDouble" "setDouble" "double"],
    ["getString" "setString" "String"],
    ["getBytes" "setBytes" "ByteBuffer"],
    ["getVarint" "setVarint" "BigInteger"],
    ["getDecimal" "setDecimal" "BigDecimal"],
    ["getUUID" "setUUID" "UUID"],
    ["getTimestamp" "setTimestamp" "Date"],
    ["getDate" "setDate" "LocalDate"],
    ["getInet" "setInet" "InetAddress"],
    ["getTupleValue" "setTupleValue" "TupleValue"],
    ["getUDTValue" "setUDTValue" "UDTValue"],
}

/// The remaining methods.
pub(super) const OTHERS: &[Method] = &[
    instance(TupleValue, "getList", "int,Class<T>", "List<T>", get),
    instance(UdtValue, "getList", "int,Class<T>", "List<T>", get),
    instance(UdtValue, "getList", "String,Class<T>", "List<T>", get),
    instance(TupleValue, "getSet", "int,Class<T>", "Set<T>", get),
    instance(UdtValue, "getSet", "int,Class<T>", "Set<T>", get),
    instance(UdtValue, "getSet", "String,Class<T>", "Set<T>", get),
    instance(TupleValue, "setList", "int,List<T>", "TupleValue", set),
    instance(UdtValue, "setList", "int,List<T>", "UDTValue", set),
    instance(UdtValue, "setList", "String,List<T>", "UDTValue", set),
    instance(TupleValue, "setSet", "int,Set<T>", "TupleValue", set),
    instance(UdtValue, "setSet", "int,Set<T>", "UDTValue", set),
    instance(UdtValue, "setSet", "String,Set<T>", "UDTValue", set),
    instance(TupleValue, "isNull", "int", "boolean", is_null),
    instance(UdtValue, "isNull", "int", "boolean", is_null),
    instance(UdtValue, "isNull", "String", "boolean", is_null),
    instance(TupleValue, "setToNull", "int", "TupleValue", set),
    instance(UdtValue, "setToNull", "int", "UDTValue", set),
    instance(UdtValue, "setToNull", "String", "UDTValue", set),
    instance(UdfContext, "newReturnUDTValue", "", "UDTValue", new_return),
    instance(UdfContext, "newReturnTupleValue", "", "TupleValue", new_return),
    instance(UdfContext, "newArgUDTValue", "int", "UDTValue", new_argument),
    instance(UdfContext, "newArgUDTValue", "String", "UDTValue", new_argument),
    instance(UdfContext, "newArgTupleValue", "int", "TupleValue", new_argument),
    instance(UdfContext, "newArgTupleValue", "String", "TupleValue", new_argument),
];

/// The selected field, by position or name.
fn place(m: &mut Machine<'_>, a: &[Value]) -> Run<usize> {
    let Object::Tuple { types, user, .. } = m.object(a.handle(0)?)? else {
        return Machine::fault("a tuple was expected");
    };
    let (count, user) = (types.len(), user.clone());
    if let Some(Value::Prim(Prim::Int(at))) = a.get(1) {
        return match usize::try_from(*at).ok().filter(|at| *at < count) {
            Some(at) => Ok(at),
            None => m.throw(
                Class::ArrayIndex,
                format!("Index {at} out of bounds for length {count}"),
            ),
        };
    }
    let name = String::from_utf16_lossy(&text(m, a, 1)?);
    let wanted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let (exact, folded) = (wanted, name.to_lowercase());
    let names = user.as_ref().map(|user| user.names.as_slice()).unwrap_or_default();
    let is = |field: &String| exact.map_or_else(|| field.to_lowercase() == folded, |exact| field == exact);
    match names.iter().position(is) {
        Some(at) => Ok(at),
        None => m.throw(
            Class::IllegalArgument,
            format!("{name} is not a field defined in this UDT"),
        ),
    }
}

fn field(m: &mut Machine<'_>, a: &[Value]) -> Run<(Value, Type)> {
    let at = place(m, a)?;
    match m.object(a.handle(0)?)? {
        Object::Tuple { fields, types, .. } => match (fields.get(at), types.get(at)) {
            (Some(value), Some(ty)) => Ok((value.clone(), ty.clone())),
            _ => Machine::fault("a tuple lost a field"),
        },
        _ => Machine::fault("a tuple was expected"),
    }
}

/// A field in its type's Java form; null is zero for getters of primitives.
fn get(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let (value, ty) = field(m, a)?;
    Ok(match (value, ty) {
        (Value::Boxed(value, _), _) => Value::Prim(value),
        (Value::Null, Type::Boolean) => Value::Prim(Prim::Boolean(false)),
        (Value::Null, Type::Byte) => Value::Prim(Prim::Byte(0)),
        (Value::Null, Type::Short) => Value::Prim(Prim::Short(0)),
        (Value::Null, Type::Int) => Value::Prim(Prim::Int(0)),
        (Value::Null, Type::Long) => Value::Prim(Prim::Long(0)),
        (Value::Null, Type::Float) => Value::Prim(Prim::Float(0.0)),
        (Value::Null, Type::Double) => Value::Prim(Prim::Double(0.0)),
        (value, _) => value,
    })
}

fn is_null(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let (value, _) = field(m, a)?;
    Ok(Value::boolean(matches!(value, Value::Null)))
}

fn set(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let at = place(m, a)?;
    let value = match a.value(2) {
        Value::Prim(value) => m.boxed(value),
        value => value,
    };
    let (_, ty) = field(m, a)?;
    if !fits(m, &value, &ty)? {
        return m.throw(Class::IllegalArgument, "the value is not of the type of this field");
    }
    if let Object::Tuple { fields, .. } = m.object_mut(a.handle(0)?)?
        && let Some(place) = fields.get_mut(at)
    {
        *place = value;
    }
    Ok(a.value(0))
}

/// Whether a value is allowed in a field of this type; elements of collections are checked when the value is returned.
fn fits(m: &Machine<'_>, value: &Value, ty: &Type) -> Run<bool> {
    let of = |kind: Prim, value: &Value| matches!(value.prim(), Some(value) if value.kind() == kind.kind());
    Ok(match (value, ty) {
        (Value::Null, _) | (Value::Text(_), Type::Text | Type::Ascii) => true,
        (value, Type::Boolean) => of(Prim::Boolean(false), value),
        (value, Type::Byte) => of(Prim::Byte(0), value),
        (value, Type::Short) => of(Prim::Short(0), value),
        (value, Type::Int) => of(Prim::Int(0), value),
        (value, Type::Long) => of(Prim::Long(0), value),
        (value, Type::Float) => of(Prim::Float(0.0), value),
        (value, Type::Double) => of(Prim::Double(0.0), value),
        (Value::Plain(plain), ty) => matches!(
            (&**plain, ty),
            (Plain::Blob(_), Type::Blob)
                | (Plain::Big(_), Type::BigInteger)
                | (Plain::Decimal(_), Type::BigDecimal)
                | (Plain::Uuid(_), Type::Uuid)
                | (Plain::Date(_), Type::Date)
                | (Plain::LocalDate(_), Type::LocalDate)
                | (Plain::Inet(_), Type::Inet)
                | (Plain::Duration { .. }, Type::Duration)
        ),
        (value @ Value::Ref(_), ty) => {
            let class = m.class_of(value)?;
            match ty {
                Type::List(_) => class.is(Class::List),
                Type::Set(_) => class.is(Class::Set),
                Type::Map(..) => class.is(Class::Map),
                Type::Tuple(_) => class == TupleValue,
                Type::User(_) => class == UdtValue,
                _ => false,
            }
        }
        _ => false,
    })
}

/// A value of a tuple or user type, all of whose fields are null.
pub(crate) fn empty(m: &mut Machine<'_>, ty: &Type) -> Run<Option<Value>> {
    let (types, user) = match ty {
        Type::Tuple(types) => (Arc::clone(types), None),
        Type::User(user) => (Arc::clone(&user.types), Some(Arc::clone(user))),
        _ => return Ok(None),
    };
    m.allocate(types.len() as u64 * VALUE_BYTES)?;
    let fields = vec![Value::Null; types.len()];
    m.make(Object::Tuple { types, fields, user }).map(Some)
}

fn made(m: &mut Machine<'_>, ty: &Type) -> Run<Value> {
    match empty(m, ty)? {
        Some(value) => Ok(value),
        None => m.throw(Class::IllegalState, "Function's type is not a tuple or user type"),
    }
}

fn new_return(m: &mut Machine<'_>, _: &[Value]) -> Run<Value> {
    let ty = m.returns.clone();
    made(m, &ty)
}

fn new_argument(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let found = if let Some(Value::Prim(Prim::Int(at))) = a.get(1) {
        usize::try_from(*at).ok().and_then(|at| m.parameters.get(at))
    } else {
        let name = String::from_utf16_lossy(&text(m, a, 1)?);
        m.parameters.iter().find(|(other, _)| *other == name)
    };
    match found.map(|(_, ty)| ty.clone()) {
        Some(ty) => made(m, &ty),
        None => m.throw(Class::IllegalArgument, "Function defines no such argument"),
    }
}
