//! `java.util.StringTokenizer`.

use super::{Arguments, Method, constructor, count, instance, text};
use crate::class::Class;
use crate::class::Class::StringTokenizer as Tokenizer;
use crate::machine::{Machine, Run};
use crate::value::{Object, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(Tokenizer, "String", |m, a| {
        let units = text(m, a, 0)?;
        let by = " \t\n\r\u{c}".encode_utf16().collect();
        m.make(Object::Tokenizer { units, by, at: 0 })
    }),
    constructor(Tokenizer, "String,String", |m, a| {
        let (units, by) = (text(m, a, 0)?, text(m, a, 1)?);
        m.make(Object::Tokenizer { units, by, at: 0 })
    }),
    instance(Tokenizer, "hasMoreTokens", "", "boolean", has_more),
    instance(Tokenizer, "hasMoreElements", "", "boolean", has_more),
    instance(Tokenizer, "nextToken", "", "String", next),
    instance(Tokenizer, "nextElement", "", "Object", next),
    instance(Tokenizer, "countTokens", "", "int", |m, a| {
        let mut found = 0;
        let mut from = None;
        while let Some((_, end)) = token(m, a, from)? {
            found += 1;
            from = Some(end);
        }
        Ok(count(found))
    }),
];

fn has_more(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    Ok(Value::boolean(token(m, a, None)?.is_some()))
}

fn next(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let Some((from, end)) = token(m, a, None)? else {
        return m.throw_with(Class::NoSuchElement, None);
    };
    let Object::Tokenizer { units, at, .. } = m.object_mut(a.handle(0)?)? else {
        return Machine::fault("a StringTokenizer was expected");
    };
    *at = end;
    let units = units.clone();
    m.text(units.get(from..end).unwrap_or_default())
}

/// Where the next token begins and ends, from a place on or from where the last one ended.
fn token(m: &mut Machine<'_>, a: &[Value], from: Option<usize>) -> Run<Option<(usize, usize)>> {
    let Object::Tokenizer { units, by, at } = m.object(a.handle(0)?)? else {
        return Machine::fault("a StringTokenizer was expected");
    };
    let (units, by, from) = (units.clone(), by.clone(), from.unwrap_or(*at));
    let rest = units.get(from..).unwrap_or_default();
    let start = rest.iter().position(|unit| !by.contains(unit));
    let word = start.and_then(|start| rest.get(start..)).unwrap_or_default();
    let length = word.iter().position(|unit| by.contains(unit)).unwrap_or(word.len());
    let seen = start.unwrap_or(rest.len()) + length;
    m.step((1 + seen).saturating_mul(1 + by.len()) / 4)?;
    Ok(start.map(|start| (from + start, from + start + length)))
}
