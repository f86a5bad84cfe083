//! `System`: the time that the host passes in, and copies of arrays.

use super::{Arguments, Method, fixed};
use crate::class::Class;
use crate::class::Class::{ArrayIndex, ArrayStore, System};
use crate::machine::{Machine, Run};
use crate::value::{Handle, Object, Value};

/// Nanoseconds by which a step moves `nanoTime` on: about what it takes.
const STEP_NANOS: i64 = 20;

pub(super) const METHODS: &[Method] = &[
    fixed(System, "currentTimeMillis", "", "long", |m, _| Ok(Value::long(now(m)))),
    fixed(System, "nanoTime", "", "long", |m, _| {
        let steps = i64::try_from(m.steps).unwrap_or(i64::MAX);
        let nanos = m.limits.now_micros.wrapping_mul(1000);
        Ok(Value::long(nanos.wrapping_add(steps.wrapping_mul(STEP_NANOS))))
    }),
    fixed(System, "lineSeparator", "", "String", |m, _| m.string("\n")),
    fixed(System, "arraycopy", "Object,int,Object,int,int", "void", arraycopy),
];

/// Milliseconds since 1970-01-01 UTC.
pub(super) fn now(m: &Machine<'_>) -> i64 {
    m.limits.now_micros.div_euclid(1000)
}

/// The kind of elements, as messages name it; none where there is no element that tells.
fn elements(m: &Machine<'_>, of: Handle) -> Run<Option<&'static str>> {
    Ok(match m.object(of)? {
        Object::Array { items } => items.first().map(|item| match item {
            Value::Prim(prim) => prim.kind().name(),
            _ => "object array",
        }),
        _ => None,
    })
}

fn array(m: &mut Machine<'_>, a: &[Value], at: usize, role: &str) -> Run<Handle> {
    let value = a.value(at);
    match &value {
        Value::Null => return m.throw_with(Class::NullPointer, None),
        Value::Ref(handle) if matches!(m.object(*handle)?, Object::Array { .. }) => return Ok(*handle),
        _ => {}
    }
    let class = m.class_of(&value)?.full_name();
    m.throw(ArrayStore, format!("arraycopy: {role} type {class} is not an array"))
}

fn arraycopy(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let (from, to) = (array(m, a, 0, "source")?, array(m, a, 2, "destination")?);
    let (kind, other) = (elements(m, from)?, elements(m, to)?);
    let shown = |kind: Option<&str>, length: usize| match kind {
        None | Some("object array") => format!("object array[{length}]"),
        Some(kind) => format!("{kind}[{length}]"),
    };
    if let (Some(kind), Some(other)) = (kind, other)
        && kind != other
    {
        let shown = |kind: &str| {
            if kind == "object array" {
                kind.to_owned()
            } else {
                format!("{kind}[]")
            }
        };
        let message = format!(
            "arraycopy: type mismatch: can not copy {} into {}",
            shown(kind),
            shown(other)
        );
        return m.throw(ArrayStore, message);
    }
    let (source, target) = (m.size(from)?, m.size(to)?);
    let (start, at, length) = (a.int(1)?, a.int(3)?, a.int(4)?);
    for (place, role, size) in [(start, "source", source), (at, "destination", target)] {
        if place < 0 {
            let of = shown(kind, size);
            return m.throw(
                ArrayIndex,
                format!("arraycopy: {role} index {place} out of bounds for {of}"),
            );
        }
    }
    let Ok(count) = usize::try_from(length) else {
        return m.throw(ArrayIndex, format!("arraycopy: length {length} is negative"));
    };
    let (start, at) = (usize::try_from(start).unwrap_or(0), usize::try_from(at).unwrap_or(0));
    for (place, role, size) in [(start, "source", source), (at, "destination", target)] {
        let last = place.saturating_add(count);
        if last > size {
            let of = shown(kind, size);
            let message = format!("arraycopy: last {role} index {last} out of bounds for {of}");
            return m.throw(ArrayIndex, message);
        }
    }
    m.step(count)?;
    let copied: Vec<Value> = match m.object(from)? {
        Object::Array { items } => items.iter().skip(start).take(count).cloned().collect(),
        _ => Vec::new(),
    };
    if let Object::Array { items } = m.object_mut(to)? {
        for (place, value) in items.iter_mut().skip(at).zip(copied) {
            *place = value;
        }
    }
    Ok(Value::Null)
}
