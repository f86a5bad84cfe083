//! `java.util.Optional`.

use super::{Arguments, Method, fixed, instance};
use crate::class::Class;
use crate::class::Class::Optional;
use crate::machine::{Machine, Run};
use crate::value::{Object, Value};

pub(super) const METHODS: &[Method] = &[
    fixed(Optional, "of", "T", "Optional<T>", |m, a| match a.value(0) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        value => m.make(Object::Optional(value)),
    }),
    fixed(Optional, "ofNullable", "T", "Optional<T>", |m, a| {
        m.make(Object::Optional(a.value(0)))
    }),
    fixed(Optional, "empty", "", "Optional", |m, _| {
        m.make(Object::Optional(Value::Null))
    }),
    instance(Optional, "isPresent", "", "boolean", |m, a| {
        Ok(Value::boolean(!matches!(held(m, a)?, Value::Null)))
    }),
    instance(Optional, "isEmpty", "", "boolean", |m, a| {
        Ok(Value::boolean(matches!(held(m, a)?, Value::Null)))
    }),
    instance(Optional, "get", "", "E", |m, a| match held(m, a)? {
        Value::Null => m.throw(Class::NoSuchElement, "No value present"),
        value => Ok(value),
    }),
    instance(Optional, "orElse", "E", "E", |m, a| match held(m, a)? {
        Value::Null => Ok(a.value(1)),
        value => Ok(value),
    }),
];

fn held(m: &Machine<'_>, a: &[Value]) -> Run<Value> {
    match m.object(a.handle(0)?)? {
        Object::Optional(value) => Ok(value.clone()),
        _ => Machine::fault("an Optional was expected"),
    }
}
