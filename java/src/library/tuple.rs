//! Cassandra's `TupleValue` and `UDTValue`, and `udfContext`, which makes them.
//!
//! A field holds a copy of what was set, as Cassandra's classes hold its bytes: each getter makes a new value.

use std::sync::Arc;

use super::{Arguments, Method, instance, text};
use crate::class::Class;
use crate::class::Class::{TupleValue, UdfContext, UdtValue};
use crate::datum::{Datum, Fields, Type};
use crate::limits::VALUE_BYTES;
use crate::machine::{Machine, Run, value_of};
use crate::marshal;
use crate::value::{Object, Plain, Prim, Value};

/// The Java type that a getter or setter is called for.
enum Want {
    Class(Class),
    List(Class),
    Set(Class),
    Map(Class, Class),
}

impl Want {
    fn text(&self) -> String {
        match self {
            Self::Class(class) => class.full_name().to_owned(),
            Self::List(of) => format!("java.util.List<{}>", of.full_name()),
            Self::Set(of) => format!("java.util.Set<{}>", of.full_name()),
            Self::Map(key, value) => format!("java.util.Map<{}, {}>", key.full_name(), value.full_name()),
        }
    }
}

macro_rules! accessors {
    ($([$getter:literal $setter:literal $ty:literal $class:ident],)*) => {
        /// Getters by position and by name, and setters that return the value itself.
        pub(super) const ACCESSORS: &[Method] = &[$(
            instance(TupleValue, $getter, "int", $ty, |m, a| get(m, a, &Want::Class(Class::$class))),
            instance(UdtValue, $getter, "int", $ty, |m, a| get(m, a, &Want::Class(Class::$class))),
            instance(UdtValue, $getter, "String", $ty, |m, a| get(m, a, &Want::Class(Class::$class))),
            instance(TupleValue, $setter, concat!("int,", $ty), "TupleValue", |m, a| {
                set(m, a, Some(&Want::Class(Class::$class)))
            }),
            instance(UdtValue, $setter, concat!("int,", $ty), "UDTValue", |m, a| {
                set(m, a, Some(&Want::Class(Class::$class)))
            }),
            instance(UdtValue, $setter, concat!("String,", $ty), "UDTValue", |m, a| {
                set(m, a, Some(&Want::Class(Class::$class)))
            }),
        )*];
    };
}

accessors! {
    ["getBool" "setBool" "boolean" Boolean],
    ["getByte" "setByte" "byte" Byte],
    ["getShort" "setShort" "short" Short],
    ["getInt" "setInt" "int" Integer],
    ["getLong" "setLong" "long" Long],
    ["getTime" "setTime" "long" Long],
    ["getFloat" "setFloat" "float" Float],
    ["getDouble" "setDouble" "double" Double],
    ["getString" "setString" "String" String],
    ["getBytes" "setBytes" "ByteBuffer" ByteBuffer],
    ["getVarint" "setVarint" "BigInteger" BigInteger],
    ["getDecimal" "setDecimal" "BigDecimal" BigDecimal],
    ["getUUID" "setUUID" "UUID" Uuid],
    ["getTimestamp" "setTimestamp" "Date" Date],
    ["getDate" "setDate" "LocalDate" LocalDate],
    ["getInet" "setInet" "InetAddress" InetAddress],
    ["getTupleValue" "setTupleValue" "TupleValue" TupleValue],
    ["getUDTValue" "setUDTValue" "UDTValue" UdtValue],
}

/// A method by position of both classes, and by name of `UDTValue`.
macro_rules! of_both {
    ($([$name:literal $parameters:literal $returns:literal $body:expr],)*) => {
        /// Methods that take or give values of any type.
        pub(super) const OTHERS: &[Method] = &[$(
            instance(TupleValue, $name, concat!("int", $parameters), $returns, $body),
            instance(UdtValue, $name, concat!("int", $parameters), $returns, $body),
            instance(UdtValue, $name, concat!("String", $parameters), $returns, $body),
        )*];
    };
}

of_both! {
    ["getList" ",Class<T>" "List<T>" |m, a| { let want = Want::List(class(m, a, 2)?); get(m, a, &want) }],
    ["getVector" ",Class<T>" "List<T>" |m, a| { let want = Want::List(class(m, a, 2)?); get(m, a, &want) }],
    ["getSet" ",Class<T>" "Set<T>" |m, a| { let want = Want::Set(class(m, a, 2)?); get(m, a, &want) }],
    ["getMap" ",Class<T>,Class<U>" "Map<T,U>" |m, a| {
        let want = Want::Map(class(m, a, 2)?, class(m, a, 3)?);
        get(m, a, &want)
    }],
    ["get" ",Class<T>" "T" |m, a| {
        let want = Want::Class(class(m, a, 2)?);
        let (at, ty, frozen) = field(m, a)?;
        codec(m, &ty, frozen, &want)?;
        read(m, a, at, &ty)
    }],
    ["getObject" "" "Object" |m, a| { let (at, ty, _) = field(m, a)?; read(m, a, at, &ty) }],
    ["isNull" "" "boolean" |m, a| {
        let (at, ..) = field(m, a)?;
        Ok(Value::boolean(stored(m, a, at)?.is_none()))
    }],
}

macro_rules! setters {
    ($([$name:literal $parameters:literal $body:expr],)*) => {
        /// Setters of values of any type.
        pub(super) const SETTERS: &[Method] = &[$(
            instance(TupleValue, $name, concat!("int", $parameters), "TupleValue", $body),
            instance(UdtValue, $name, concat!("int", $parameters), "UDTValue", $body),
            instance(UdtValue, $name, concat!("String", $parameters), "UDTValue", $body),
        )*];
    };
}

setters! {
    ["setList" ",List<T>" |m, a| set(m, a, None)],
    ["setVector" ",List<T>" |m, a| set(m, a, None)],
    ["setSet" ",Set<T>" |m, a| set(m, a, None)],
    ["setMap" ",Map<T,U>" |m, a| set(m, a, None)],
    ["setList" ",List<T>,Class<T>" |m, a| { let want = Want::List(class(m, a, 3)?); set(m, a, Some(&want)) }],
    ["setSet" ",Set<T>,Class<T>" |m, a| { let want = Want::Set(class(m, a, 3)?); set(m, a, Some(&want)) }],
    ["setMap" ",Map<T,U>,Class<T>,Class<U>" |m, a| {
        let want = Want::Map(class(m, a, 3)?, class(m, a, 4)?);
        set(m, a, Some(&want))
    }],
    ["set" ",T,Class<T>" |m, a| { let want = Want::Class(class(m, a, 3)?); set(m, a, Some(&want)) }],
    ["setToNull" "" |m, a| { let (at, ..) = field(m, a)?; store(m, a, at, None) }],
}

/// The methods of `udfContext`.
pub(super) const CONTEXT: &[Method] = &[
    instance(UdfContext, "newReturnUDTValue", "", "UDTValue", |m, _| {
        new_return(m, UdtValue)
    }),
    instance(UdfContext, "newReturnTupleValue", "", "TupleValue", |m, _| {
        new_return(m, TupleValue)
    }),
    instance(UdfContext, "newArgUDTValue", "int", "UDTValue", |m, a| {
        new_argument(m, a, UdtValue)
    }),
    instance(UdfContext, "newArgUDTValue", "String", "UDTValue", |m, a| {
        new_argument(m, a, UdtValue)
    }),
    instance(UdfContext, "newArgTupleValue", "int", "TupleValue", |m, a| {
        new_argument(m, a, TupleValue)
    }),
    instance(UdfContext, "newArgTupleValue", "String", "TupleValue", |m, a| {
        new_argument(m, a, TupleValue)
    }),
    instance(UdfContext, "newUDTValue", "String", "UDTValue", new_user_type),
    instance(UdfContext, "newTupleValue", "String", "TupleValue", new_tuple),
];

/// The class that an argument names.
fn class(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Class> {
    match a.get(at) {
        Some(Value::Plain(plain)) if let Plain::Class(class) = &**plain => Ok(*class),
        _ => m.throw_with(Class::NullPointer, None),
    }
}

/// The selected field, by position or name: its place, its type, and whether that is frozen.
fn field(m: &mut Machine<'_>, a: &[Value]) -> Run<(usize, Type, bool)> {
    let Object::Tuple { ty, .. } = m.object(a.handle(0)?)? else {
        return Machine::fault("a tuple was expected");
    };
    let ty = ty.clone();
    let (of, names): (&Fields, &[String]) = match &ty {
        Type::Tuple(of) => (of, &[]),
        Type::User(user) => (&user.fields, &user.names),
        _ => return Machine::fault("a tuple was expected"),
    };
    let at = if let Some(Value::Prim(Prim::Int(at))) = a.get(1) {
        let count = of.types.len();
        match usize::try_from(*at).ok().filter(|at| *at < count) {
            Some(at) => at,
            None => {
                let message = format!("Index {at} out of bounds for length {count}");
                return m.throw(Class::ArrayIndex, message);
            }
        }
    } else {
        let name = String::from_utf16_lossy(&text(m, a, 1)?);
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let wanted = quoted.map_or_else(|| name.to_lowercase(), str::to_owned);
        match names.iter().position(|field| *field == wanted) {
            Some(at) => at,
            None => return marshal::no_field(m, &name),
        }
    };
    match (of.types.get(at), of.frozen.get(at)) {
        (Some(of), Some(frozen)) => Ok((at, of.clone(), *frozen)),
        _ => Machine::fault("a tuple lost a field"),
    }
}

/// Checks that a field's type has this Java type.
fn codec(m: &mut Machine<'_>, ty: &Type, frozen: bool, want: &Want) -> Run<()> {
    match (want, ty) {
        (Want::List(of), Type::List(element) | Type::Vector(element, _)) | (Want::Set(of), Type::Set(element)) => {
            return codec(m, element, true, &Want::Class(*of));
        }
        (Want::Map(key, value), Type::Map(key_type, value_type)) => {
            codec(m, key_type, true, &Want::Class(*key))?;
            return codec(m, value_type, true, &Want::Class(*value));
        }
        (Want::Class(class), ty) if ty.class() == Some(*class) => return Ok(()),
        _ => {}
    }
    let (ty, want) = (ty.cql_name(frozen), want.text());
    let message = format!("Codec not found for requested operation: [{ty} <-> {want}]");
    m.throw(Class::CodecNotFound, message)
}

/// The stored value of a field.
fn stored(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Option<Datum>> {
    match m.object(a.handle(0)?)? {
        Object::Tuple { fields, .. } => Ok(fields.get(at).cloned().flatten()),
        _ => Machine::fault("a tuple was expected"),
    }
}

/// A field's value; null of a collection is an empty one.
fn read(m: &mut Machine<'_>, a: &[Value], at: usize, ty: &Type) -> Run<Value> {
    let value = stored(m, a, at)?.or_else(|| match ty {
        Type::List(_) | Type::Set(_) => Some(Datum::List(Vec::new())),
        Type::Map(..) => Some(Datum::Map(Vec::new())),
        _ => None,
    });
    value_of(m, value.as_ref(), ty)
}

/// A field's value in this Java type; null is zero for getters of primitives.
fn get(m: &mut Machine<'_>, a: &[Value], want: &Want) -> Run<Value> {
    let (at, ty, frozen) = field(m, a)?;
    codec(m, &ty, frozen, want)?;
    let value = read(m, a, at, &ty)?;
    let kind = match want {
        Want::Class(class) => class.unboxed(),
        _ => None,
    };
    Ok(match (value, kind) {
        (Value::Boxed(value, _), Some(_)) => Value::Prim(value),
        (Value::Null, Some(kind)) => Value::Prim(Prim::zero(kind)),
        (value, _) => value,
    })
}

fn set(m: &mut Machine<'_>, a: &[Value], want: Option<&Want>) -> Run<Value> {
    let (at, ty, frozen) = field(m, a)?;
    if let Some(want) = want {
        codec(m, &ty, frozen, want)?;
    }
    let value = match a.value(2) {
        Value::Prim(value) => m.boxed(value),
        value => value,
    };
    check_elements(m, &value, &ty)?;
    let datum = marshal::datum_of(m, &value, &ty)?;
    store(m, a, at, datum)
}

/// Puts a value into a field; gives the tuple.
fn store(m: &mut Machine<'_>, a: &[Value], at: usize, datum: Option<Datum>) -> Run<Value> {
    m.allocate(datum.as_ref().map_or(0, Datum::bytes))?;
    if let Object::Tuple { fields, .. } = m.object_mut(a.handle(0)?)?
        && let Some(place) = fields.get_mut(at)
    {
        *place = datum;
    }
    Ok(a.value(0))
}

/// Refuses elements that are null or of another class than the type's, which unchecked generics allow.
fn check_elements(m: &mut Machine<'_>, value: &Value, ty: &Type) -> Run<()> {
    let Value::Ref(handle) = value else { return Ok(()) };
    match ty {
        Type::List(of) | Type::Set(of) | Type::Vector(of, _) if m.class_of(value)?.is(Class::Collection) => {
            let what = format!("{} element", ty.plain_name());
            for element in m.elements(*handle)? {
                check_element(m, &element, of, &what, "Collection elements")?;
            }
            Ok(())
        }
        Type::Map(key_type, value_type) if m.class_of(value)?.is(Class::Map) => {
            for (key, value) in m.table(*handle)?.entries() {
                check_element(m, &key, key_type, "map key", "Map keys")?;
                check_element(m, &value, value_type, "map value", "Map values")?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_element(m: &mut Machine<'_>, element: &Value, of: &Type, what: &str, plural: &str) -> Run<()> {
    m.step(1)?;
    if matches!(element, Value::Null) {
        return m.throw(Class::NullPointer, format!("{plural} cannot be null"));
    }
    let class = m.class_of(element)?;
    if !of.is_of(class) {
        let (wanted, found) = (of.java_name(), class.full_name());
        let message = format!("Invalid type for {what}, expecting {wanted} but got class {found}");
        return m.throw(Class::InvalidType, message);
    }
    m.deeper(|m| check_elements(m, element, of))
}

/// A value of a tuple or user type, all of whose fields are null.
fn made(m: &mut Machine<'_>, ty: &Type, class: Class) -> Run<Value> {
    let count = match (ty, class) {
        (Type::Tuple(of), TupleValue) => of.types.len(),
        (Type::User(user), UdtValue) => user.fields.types.len(),
        _ => {
            let wanted = if class == UdtValue { "UDT" } else { "tuple type" };
            let message = format!("Function argument is not a {wanted} but a {}", ty.kind_name());
            return m.throw(Class::IllegalState, message);
        }
    };
    m.allocate(count as u64 * VALUE_BYTES)?;
    m.make(Object::Tuple {
        ty: ty.clone(),
        fields: vec![None; count],
        is_argument: false,
    })
}

fn new_return(m: &mut Machine<'_>, class: Class) -> Run<Value> {
    let ty = m.returns.clone();
    made(m, &ty, class)
}

fn new_argument(m: &mut Machine<'_>, a: &[Value], class: Class) -> Run<Value> {
    let (found, which) = if let Some(Value::Prim(Prim::Int(at))) = a.get(1) {
        let found = usize::try_from(*at).ok().and_then(|at| m.parameters.get(at));
        (found, format!("with index {at}"))
    } else {
        let name = String::from_utf16_lossy(&text(m, a, 1)?);
        let found = m.parameters.iter().find(|(other, _)| *other == name);
        (found, format!("named '{name}'"))
    };
    match found.map(|(_, ty)| ty.clone()) {
        Some(ty) => made(m, &ty, class),
        None => m.throw(
            Class::IllegalArgument,
            format!("Function does not declare an argument {which}"),
        ),
    }
}

fn new_user_type(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let name = String::from_utf16_lossy(&text(m, a, 1)?);
    match m.types.user_type(&name) {
        Some(user) => made(m, &Type::User(Arc::clone(&user)), UdtValue),
        None => {
            let message = format!("No UDT named {name} in keyspace {}", m.types.keyspace());
            m.throw(Class::IllegalArgument, message)
        }
    }
}

/// Differs: a text that is no type is an IllegalArgumentException with a text of ours. Gap: function-37.
fn new_tuple(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let written = String::from_utf16_lossy(&text(m, a, 1)?);
    m.step(written.len())?;
    match m.types.parsed(&written) {
        Some(ty) => made(m, &ty, TupleValue),
        None => m.throw(Class::IllegalArgument, format!("Unknown type {written}")),
    }
}
