//! `StringBuilder` and `StringBuffer`, which is one here.

use super::{Arguments, Method, constructor, count, instance, text};
use crate::class::Class;
use crate::class::Class::{StringBuffer, StringBuilder as Builder};
use crate::machine::{Machine, Run};
use crate::value::{Object, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(Builder, "", |m, _| m.make(Object::Builder(Vec::new()))),
    constructor(Builder, "int", sized),
    constructor(Builder, "String", copied),
    constructor(StringBuffer, "", |m, _| m.make(Object::Builder(Vec::new()))),
    constructor(StringBuffer, "int", sized),
    constructor(StringBuffer, "String", copied),
    instance(Builder, "append", "String", "StringBuilder", append),
    instance(Builder, "append", "int", "StringBuilder", append),
    instance(Builder, "append", "long", "StringBuilder", append),
    instance(Builder, "append", "char", "StringBuilder", append),
    instance(Builder, "append", "boolean", "StringBuilder", append),
    instance(Builder, "append", "float", "StringBuilder", append),
    instance(Builder, "append", "double", "StringBuilder", append),
    instance(Builder, "append", "Object", "StringBuilder", append),
    instance(Builder, "reverse", "", "StringBuilder", |m, a| {
        let length = units(m, a)?.len();
        m.step(length / 4)?;
        let units = units(m, a)?;
        // Surrogate pairs keep their order.
        let decoded: Vec<_> = char::decode_utf16(units.iter().copied()).collect();
        units.clear();
        for character in decoded.into_iter().rev() {
            match character {
                Ok(character) => units.extend_from_slice(character.encode_utf16(&mut [0; 2])),
                Err(half) => units.push(half.unpaired_surrogate()),
            }
        }
        Ok(a.value(0))
    }),
    instance(Builder, "insert", "int,Object", "StringBuilder", insert),
    instance(Builder, "insert", "int,int", "StringBuilder", insert),
    instance(Builder, "insert", "int,long", "StringBuilder", insert),
    instance(Builder, "insert", "int,char", "StringBuilder", insert),
    instance(Builder, "deleteCharAt", "int", "StringBuilder", |m, a| {
        let at = a.int(1)?;
        let units = units(m, a)?;
        let length = units.len();
        match usize::try_from(at).ok().filter(|at| *at < length) {
            Some(at) => {
                units.remove(at);
                m.step(length / 16)?;
                Ok(a.value(0))
            }
            None => m.throw(Class::StringIndex, format!("index {at},length {length}")),
        }
    }),
    instance(Builder, "setCharAt", "int,char", "void", |m, a| {
        let (at, unit) = (a.int(1)?, a.char(2)?);
        let units = units(m, a)?;
        let length = units.len();
        match usize::try_from(at).ok().and_then(|at| units.get_mut(at)) {
            Some(place) => {
                *place = unit;
                Ok(Value::Null)
            }
            None => m.throw(Class::StringIndex, format!("index {at},length {length}")),
        }
    }),
    instance(Builder, "length", "", "int", |m, a| Ok(count(units(m, a)?.len()))),
    instance(Builder, "charAt", "int", "char", |m, a| {
        let at = a.int(1)?;
        let units = units(m, a)?;
        let length = units.len();
        match usize::try_from(at).ok().and_then(|at| units.get(at)) {
            Some(unit) => Ok(Value::Prim(crate::value::Prim::Char(*unit))),
            None => m.throw(Class::StringIndex, format!("index {at},length {length}")),
        }
    }),
    instance(Builder, "indexOf", "String", "int", |m, a| {
        let (units, wanted) = (text(m, a, 0)?, text(m, a, 1)?);
        m.step(units.len().saturating_mul(wanted.len().max(1)) / 4)?;
        if wanted.is_empty() {
            return Ok(Value::int(0));
        }
        Ok(units
            .windows(wanted.len())
            .position(|window| *window == *wanted)
            .map_or(Value::int(-1), count))
    }),
    instance(Builder, "substring", "int,int", "String", |m, a| {
        let units = text(m, a, 0)?;
        let (from, to) = (a.int(1)?, a.int(2)?);
        builder_slice(m, &units, from, to)
    }),
    instance(Builder, "substring", "int", "String", |m, a| {
        let units = text(m, a, 0)?;
        let (from, to) = (a.int(1)?, i32::try_from(units.len()).unwrap_or(i32::MAX));
        builder_slice(m, &units, from, to)
    }),
];

fn sized(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    match a.int(0)? {
        size if size < 0 => m.throw(Class::NegativeSize, size.to_string()),
        _ => m.make(Object::Builder(Vec::new())),
    }
}

fn copied(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    if matches!(a.first(), Some(Value::Null)) {
        // The words are those of Java 17, whose constructor asks for the length first.
        return m.throw(
            Class::NullPointer,
            "Cannot invoke \"String.length()\" because \"str\" is null",
        );
    }
    let units = text(m, a, 0)?;
    m.allocate(units.len() as u64 * 2)?;
    m.make(Object::Builder(units.to_vec()))
}

fn builder_slice(m: &mut Machine<'_>, units: &[u16], from: i32, to: i32) -> Run<Value> {
    let slice = match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) => units.get(from..to),
        _ => None,
    };
    match slice {
        Some(slice) => m.text(slice),
        None => m.throw(
            Class::StringIndex,
            format!("start {from}, end {to}, length {}", units.len()),
        ),
    }
}

fn units<'m>(m: &'m mut Machine<'_>, a: &[Value]) -> Run<&'m mut Vec<u16>> {
    match m.object_mut(a.handle(0)?)? {
        Object::Builder(units) => Ok(units),
        _ => Machine::fault("a StringBuilder was expected"),
    }
}

fn append(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let mut more = Vec::new();
    m.append(&a.value(1), &mut more)?;
    units(m, a)?.append(&mut more);
    Ok(a.value(0))
}

fn insert(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let at = a.int(1)?;
    let mut more = Vec::new();
    m.append(&a.value(2), &mut more)?;
    let length = units(m, a)?.len();
    match usize::try_from(at).ok().filter(|at| *at <= length) {
        Some(at) => {
            m.step(length / 16)?;
            units(m, a)?.splice(at..at, more);
            Ok(a.value(0))
        }
        None => m.throw(Class::StringIndex, format!("offset {at}, length {length}")),
    }
}
