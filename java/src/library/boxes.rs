//! Constructors of boxes. They make a box of its own each, also of values that `valueOf` and boxing share.

use super::number::is_true;
use super::parse::{parse, parse_double};
use super::{Arguments, Method, constructor};
use crate::class::Class::{Boolean, Byte, Character, Double, Float, Integer, Long, Short};
use crate::class::Kind;
use crate::machine::{Machine, Run};
use crate::value::{Prim, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(Boolean, "boolean", |m, a| own(m, &a.value(0))),
    constructor(Boolean, "String", |m, a| Ok(m.boxed_anew(Prim::Boolean(is_true(a))))),
    constructor(Byte, "byte", |m, a| own(m, &a.value(0))),
    constructor(Byte, "String", |m, a| of_text(m, a, Kind::Byte)),
    constructor(Short, "short", |m, a| own(m, &a.value(0))),
    constructor(Short, "String", |m, a| of_text(m, a, Kind::Short)),
    constructor(Character, "char", |m, a| own(m, &a.value(0))),
    constructor(Integer, "int", |m, a| own(m, &a.value(0))),
    constructor(Integer, "String", |m, a| of_text(m, a, Kind::Int)),
    constructor(Long, "long", |m, a| own(m, &a.value(0))),
    constructor(Long, "String", |m, a| of_text(m, a, Kind::Long)),
    constructor(Float, "float", |m, a| own(m, &a.value(0))),
    constructor(Float, "double", |m, a| match a.value(0).prim() {
        #[expect(clippy::cast_possible_truncation, reason = "Java narrows a double so, too")]
        Some(Prim::Double(value)) => Ok(m.boxed_anew(Prim::Float(value as f32))),
        _ => Machine::fault("a double was expected"),
    }),
    constructor(Float, "String", |m, a| {
        let value = parse_double(m, a, Kind::Float)?;
        own(m, &value)
    }),
    constructor(Double, "double", |m, a| own(m, &a.value(0))),
    constructor(Double, "String", |m, a| {
        let value = parse_double(m, a, Kind::Double)?;
        own(m, &value)
    }),
];

fn of_text(m: &mut Machine<'_>, a: &[Value], kind: Kind) -> Run<Value> {
    let value = parse(m, a, kind, 10)?;
    own(m, &value)
}

fn own(m: &mut Machine<'_>, value: &Value) -> Run<Value> {
    match value.prim() {
        Some(value) => Ok(m.boxed_anew(value)),
        None => Machine::fault("a primitive was expected"),
    }
}
