//! `java.util.regex`, and the methods of `String` that take a regular expression.

use std::sync::Arc;

use super::{Arguments, Method, count, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{Matcher as Class_, Pattern as Compiled, String as Text};
use crate::machine::{Machine, Run, Stop};
use crate::regex::{Meter, Pattern, Search, Wrong, flag, search};
use crate::value::{Matcher, Object, Text as Units, Value, utf8};

/// A match takes of what the call may take.
impl Meter for Machine<'_> {
    type Stop = Stop;

    fn steps(&mut self, steps: usize) -> Run<()> {
        self.step(steps)
    }

    fn bytes(&mut self, bytes: u64) -> Run<()> {
        self.allocate(bytes)
    }
}

pub(super) const METHODS: &[Method] = &[
    fixed(Compiled, "compile", "String", "java.util.regex.Pattern", |m, a| {
        compiled(m, a, 0, 0)
    }),
    fixed(Compiled, "compile", "String,int", "java.util.regex.Pattern", |m, a| {
        compiled(m, a, 0, a.int(1)?)
    }),
    fixed(Compiled, "matches", "String,CharSequence", "boolean", |m, a| {
        let pattern = pattern(m, a, 0, 0)?;
        let units = text(m, a, 1)?;
        Ok(Value::boolean(whole(m, &pattern, &units)?))
    }),
    fixed(Compiled, "quote", "String", "String", |m, a| {
        let units = text(m, a, 0)?;
        m.step(units.len())?;
        // An end of the quote within the text is quoted by itself.
        let quoted = utf8(&units).replace("\\E", "\\E\\\\E\\Q");
        m.string(&format!("\\Q{quoted}\\E"))
    }),
    instance(
        Compiled,
        "matcher",
        "CharSequence",
        "java.util.regex.Matcher",
        |m, a| {
            let units = text(m, a, 1)?;
            let pattern = own(m, a)?;
            m.make(Object::Matcher(Matcher {
                pattern,
                units,
                groups: Vec::new(),
                last: 0,
                appended: 0,
            }))
        },
    ),
    instance(Compiled, "pattern", "", "String", |m, a| {
        Ok(Value::Text(own(m, a)?.text.clone()))
    }),
    instance(Compiled, "flags", "", "int", |m, a| Ok(Value::int(own(m, a)?.flags))),
    instance(Compiled, "split", "CharSequence", "String[]", |m, a| {
        let (pattern, units) = (own(m, a)?, text(m, a, 1)?);
        split(m, &pattern, &units, 0)
    }),
    instance(Compiled, "split", "CharSequence,int", "String[]", |m, a| {
        let (pattern, units) = (own(m, a)?, text(m, a, 1)?);
        split(m, &pattern, &units, a.int(2)?)
    }),
    instance(Class_, "matches", "", "boolean", |m, a| {
        found(m, a, |_| Search {
            from: 0,
            is_anchored: true,
            to_end: true,
        })
    }),
    instance(Class_, "lookingAt", "", "boolean", |m, a| {
        found(m, a, |_| Search {
            from: 0,
            is_anchored: true,
            to_end: false,
        })
    }),
    instance(Class_, "find", "", "boolean", |m, a| {
        found(m, a, |matcher| {
            let is_empty = matcher.groups.first().copied().flatten() == Some(matcher.last);
            Search {
                from: matcher.last + usize::from(is_empty),
                is_anchored: false,
                to_end: false,
            }
        })
    }),
    instance(Class_, "find", "int", "boolean", |m, a| {
        let length = matcher(m, a)?.units.len();
        match usize::try_from(a.int(1)?) {
            Ok(from) if from <= length => {
                reset(m, a)?;
                found(m, a, |_| Search {
                    from,
                    is_anchored: false,
                    to_end: false,
                })
            }
            _ => m.throw(Class::IndexOutOfBounds, "Illegal start index"),
        }
    }),
    instance(Class_, "reset", "", "java.util.regex.Matcher", |m, a| {
        reset(m, a)?;
        Ok(a.value(0))
    }),
    instance(Class_, "reset", "CharSequence", "java.util.regex.Matcher", |m, a| {
        let units = text(m, a, 1)?;
        reset(m, a)?;
        if let Object::Matcher(matcher) = m.object_mut(a.handle(0)?)? {
            matcher.units = units;
        }
        Ok(a.value(0))
    }),
    instance(Class_, "groupCount", "", "int", |m, a| {
        Ok(count(matcher(m, a)?.pattern.groups - 1))
    }),
    instance(Class_, "group", "", "String", |m, a| group(m, a, 0)),
    instance(Class_, "group", "int", "String", |m, a| group(m, a, a.int(1)?)),
    instance(Class_, "group", "String", "String", |m, a| {
        let number = named(m, a)?;
        group(m, a, number)
    }),
    instance(Class_, "start", "", "int", |m, a| end(m, a, 0, 0)),
    instance(Class_, "start", "int", "int", |m, a| end(m, a, a.int(1)?, 0)),
    instance(Class_, "start", "String", "int", |m, a| {
        let number = named(m, a)?;
        end(m, a, number, 0)
    }),
    instance(Class_, "end", "", "int", |m, a| end(m, a, 0, 1)),
    instance(Class_, "end", "int", "int", |m, a| end(m, a, a.int(1)?, 1)),
    instance(Class_, "end", "String", "int", |m, a| {
        let number = named(m, a)?;
        end(m, a, number, 1)
    }),
    instance(Class_, "replaceAll", "String", "String", |m, a| {
        replaced_in(m, a, false)
    }),
    instance(Class_, "replaceFirst", "String", "String", |m, a| {
        replaced_in(m, a, true)
    }),
    fixed(Class_, "quoteReplacement", "String", "String", |m, a| {
        let units = text(m, a, 0)?;
        m.step(units.len())?;
        let quoted = utf8(&units).replace('\\', "\\\\").replace('$', "\\$");
        m.string(&quoted)
    }),
    instance(
        Class_,
        "appendReplacement",
        "StringBuilder,String",
        "java.util.regex.Matcher",
        |m, a| {
            let own = matcher(m, a)?.clone();
            let replacement = text(m, a, 2)?;
            let (Some(start), Some(stop)) = ends(&own.groups, 0) else {
                return m.throw(Class::IllegalState, "No match available");
            };
            let mut units = own.units.get(own.appended..start).unwrap_or_default().to_vec();
            replacement_of(m, &own.pattern, &own.units, &own.groups, &replacement, &mut units)?;
            build(m, a, &units)?;
            if let Object::Matcher(matcher) = m.object_mut(a.handle(0)?)? {
                matcher.appended = stop;
            }
            Ok(a.value(0))
        },
    ),
    instance(Class_, "appendTail", "StringBuilder", "StringBuilder", |m, a| {
        let own = matcher(m, a)?.clone();
        build(m, a, own.units.get(own.appended..).unwrap_or_default())?;
        Ok(a.value(1))
    }),
    instance(Text, "matches", "String", "boolean", |m, a| {
        let pattern = pattern(m, a, 1, 0)?;
        let units = text(m, a, 0)?;
        Ok(Value::boolean(whole(m, &pattern, &units)?))
    }),
    instance(Text, "replaceAll", "String,String", "String", |m, a| {
        replaced_text(m, a, false)
    }),
    instance(Text, "replaceFirst", "String,String", "String", |m, a| {
        replaced_text(m, a, true)
    }),
    instance(Text, "split", "String", "String[]", |m, a| {
        let (pattern, units) = (pattern(m, a, 1, 0)?, text(m, a, 0)?);
        split(m, &pattern, &units, 0)
    }),
    instance(Text, "split", "String,int", "String[]", |m, a| {
        let (pattern, units) = (pattern(m, a, 1, 0)?, text(m, a, 0)?);
        split(m, &pattern, &units, a.int(2)?)
    }),
];

/// A flag of `Pattern`.
pub(super) fn flag(name: &str) -> Option<i32> {
    Some(match name {
        "UNIX_LINES" => flag::UNIX_LINES,
        "CASE_INSENSITIVE" => flag::CASE_INSENSITIVE,
        "COMMENTS" => flag::COMMENTS,
        "MULTILINE" => flag::MULTILINE,
        "LITERAL" => flag::LITERAL,
        "DOTALL" => flag::DOTALL,
        "UNICODE_CASE" => flag::UNICODE_CASE,
        "CANON_EQ" => 128,
        "UNICODE_CHARACTER_CLASS" => 256,
        _ => return None,
    })
}

fn pattern(m: &mut Machine<'_>, a: &[Value], at: usize, flags: i32) -> Run<Arc<Pattern>> {
    let written = text(m, a, at)?;
    m.step(written.len().saturating_mul(4))?;
    m.allocate((written.len() as u64).saturating_mul(32))?;
    match Pattern::new(&written, flags) {
        Ok(pattern) => {
            let size = pattern.size();
            m.step(size)?;
            m.allocate(size as u64 * 32)?;
            Ok(Arc::new(pattern))
        }
        Err(Wrong::LeftOut(what)) => m.throw(Class::Unsupported, what),
        Err(Wrong::Syntax { what, at }) => {
            let shown = utf8(&written);
            let place = if at >= 0 {
                format!(" near index {at}")
            } else {
                String::new()
            };
            let pointer = match usize::try_from(at) {
                Ok(at) if at < written.len() => format!("\n{}^", " ".repeat(at)),
                _ => String::new(),
            };
            m.throw(Class::PatternSyntax, format!("{what}{place}\n{shown}{pointer}"))
        }
    }
}

fn compiled(m: &mut Machine<'_>, a: &[Value], at: usize, flags: i32) -> Run<Value> {
    let pattern = pattern(m, a, at, flags)?;
    m.make(Object::Pattern(pattern))
}

fn own(m: &Machine<'_>, a: &[Value]) -> Run<Arc<Pattern>> {
    match m.object(a.handle(0)?)? {
        Object::Pattern(pattern) => Ok(Arc::clone(pattern)),
        _ => Machine::fault("a Pattern was expected"),
    }
}

fn matcher<'m>(m: &'m Machine<'_>, a: &[Value]) -> Run<&'m Matcher> {
    match m.object(a.handle(0)?)? {
        Object::Matcher(matcher) => Ok(matcher),
        _ => Machine::fault("a Matcher was expected"),
    }
}

fn reset(m: &mut Machine<'_>, a: &[Value]) -> Run<()> {
    match m.object_mut(a.handle(0)?)? {
        Object::Matcher(matcher) => {
            matcher.groups.clear();
            matcher.last = 0;
            matcher.appended = 0;
            Ok(())
        }
        _ => Machine::fault("a Matcher was expected"),
    }
}

/// Whether the pattern matches all of a text.
fn whole(m: &mut Machine<'_>, pattern: &Pattern, units: &[u16]) -> Run<bool> {
    let all = Search {
        from: 0,
        is_anchored: true,
        to_end: true,
    };
    Ok(search(m, pattern, units, all)?.is_some())
}

fn next(m: &mut Machine<'_>, pattern: &Pattern, units: &[u16], from: usize) -> Run<Option<Vec<Option<usize>>>> {
    let later = Search {
        from,
        is_anchored: false,
        to_end: false,
    };
    search(m, pattern, units, later)
}

fn found(m: &mut Machine<'_>, a: &[Value], wanted: impl FnOnce(&Matcher) -> Search) -> Run<Value> {
    let (own, wanted) = {
        let matcher = matcher(m, a)?;
        (matcher.clone(), wanted(matcher))
    };
    let groups = if wanted.from > own.units.len() {
        None
    } else {
        search(m, &own.pattern, &own.units, wanted)?
    };
    let is_found = groups.is_some();
    if let Object::Matcher(matcher) = m.object_mut(a.handle(0)?)? {
        matcher.groups = groups.unwrap_or_default();
        if let (_, Some(end)) = ends(&matcher.groups, 0) {
            matcher.last = end;
        }
    }
    Ok(Value::boolean(is_found))
}

fn ends(groups: &[Option<usize>], number: usize) -> (Option<usize>, Option<usize>) {
    let at = |slot: usize| groups.get(slot).copied().flatten();
    (at(number * 2), at(number * 2 + 1))
}

/// The number of the group whose name is the first argument.
fn named(m: &mut Machine<'_>, a: &[Value]) -> Run<i32> {
    let name = String::from_utf16_lossy(&text(m, a, 1)?);
    match matcher(m, a)?.pattern.named(&name) {
        Some(number) => Ok(i32::try_from(number).unwrap_or(i32::MAX)),
        None => m.throw(Class::IllegalArgument, format!("No group with name <{name}>")),
    }
}

/// The ends of a group of the last match.
fn group_ends(m: &mut Machine<'_>, a: &[Value], number: i32) -> Run<(Option<usize>, Option<usize>)> {
    let matcher = matcher(m, a)?;
    if matcher.groups.is_empty() {
        let words = if number == 0 || !matches!(a.get(1), None | Some(Value::Text(_))) {
            "No match found"
        } else {
            "No match available"
        };
        return m.throw(Class::IllegalState, words);
    }
    match usize::try_from(number) {
        Ok(number) if number < matcher.pattern.groups => Ok(ends(&matcher.groups, number)),
        _ => m.throw(Class::IndexOutOfBounds, format!("No group {number}")),
    }
}

fn group(m: &mut Machine<'_>, a: &[Value], number: i32) -> Run<Value> {
    let (Some(from), Some(to)) = group_ends(m, a, number)? else {
        return Ok(Value::Null);
    };
    let units = matcher(m, a)?.units.clone();
    m.text(units.get(from..to).unwrap_or_default())
}

fn end(m: &mut Machine<'_>, a: &[Value], number: i32, which: usize) -> Run<Value> {
    if matcher(m, a)?.groups.is_empty() {
        return m.throw(Class::IllegalState, "No match available");
    }
    let (from, to) = group_ends(m, a, number)?;
    let at = if which == 0 { from } else { to };
    Ok(at.map_or(Value::int(-1), count))
}

fn build(m: &mut Machine<'_>, a: &[Value], units: &[u16]) -> Run<()> {
    m.allocate(units.len() as u64 * 2)?;
    m.step(units.len() / 4)?;
    match a.get(1) {
        Some(Value::Ref(builder)) => match m.object_mut(*builder)? {
            Object::Builder(built) => built.extend_from_slice(units),
            _ => return Machine::fault("a StringBuilder was expected"),
        },
        _ => return m.throw_with(Class::NullPointer, None),
    }
    Ok(())
}

fn replaced_in(m: &mut Machine<'_>, a: &[Value], is_first: bool) -> Run<Value> {
    reset(m, a)?;
    let own = matcher(m, a)?.clone();
    let replacement = text(m, a, 1)?;
    replaced(m, &own.pattern, &own.units, &replacement, is_first)
}

fn replaced_text(m: &mut Machine<'_>, a: &[Value], is_first: bool) -> Run<Value> {
    let (pattern, units) = (pattern(m, a, 1, 0)?, text(m, a, 0)?);
    let replacement = text(m, a, 2)?;
    replaced(m, &pattern, &units, &replacement, is_first)
}

fn replaced(m: &mut Machine<'_>, pattern: &Pattern, units: &Units, replacement: &[u16], is_first: bool) -> Run<Value> {
    let mut built: Vec<u16> = Vec::new();
    let (mut from, mut copied) = (0, 0);
    while from <= units.len() {
        let Some(groups) = next(m, pattern, units, from)? else {
            break;
        };
        let (start, stop) = match ends(&groups, 0) {
            (Some(start), Some(stop)) => (start, stop),
            _ => break,
        };
        built.extend_from_slice(units.get(copied..start).unwrap_or_default());
        m.allocate((start.saturating_sub(copied) as u64) * 2)?;
        replacement_of(m, pattern, units, &groups, replacement, &mut built)?;
        copied = stop;
        from = if stop == start { stop + 1 } else { stop };
        if is_first {
            break;
        }
    }
    built.extend_from_slice(units.get(copied..).unwrap_or_default());
    m.text(&built)
}

/// Appends a replacement, with what its `$1` and `${name}` stand for.
#[expect(
    clippy::too_many_lines,
    reason = "one pass over the replacement, whose state is where it stands"
)]
fn replacement_of(
    m: &mut Machine<'_>,
    pattern: &Pattern,
    units: &[u16],
    groups: &[Option<usize>],
    replacement: &[u16],
    to: &mut Vec<u16>,
) -> Run<()> {
    m.step(replacement.len())?;
    let character = |at: usize| replacement.get(at).and_then(|unit| char::from_u32((*unit).into()));
    let mut at = 0;
    while let Some(unit) = replacement.get(at).copied() {
        at += 1;
        match char::from_u32(unit.into()) {
            Some('\\') => match replacement.get(at) {
                Some(escaped) => {
                    to.push(*escaped);
                    at += 1;
                }
                None => return m.throw(Class::IllegalArgument, "character to be escaped is missing"),
            },
            Some('$') => {
                let number = match character(at) {
                    None => {
                        let words = "Illegal group reference: group index is missing";
                        return m.throw(Class::IllegalArgument, words);
                    }
                    Some('{') => {
                        at += 1;
                        let rest = replacement.get(at..).unwrap_or_default();
                        let name: String = rest
                            .iter()
                            .map_while(|unit| char::from_u32((*unit).into()).filter(char::is_ascii_alphanumeric))
                            .collect();
                        at += name.len();
                        if name.is_empty() {
                            let words = "named capturing group is missing trailing '}'";
                            return m.throw(Class::IllegalArgument, words);
                        }
                        if character(at) != Some('}') {
                            let words = "named capturing group is missing trailing '}'";
                            return m.throw(Class::IllegalArgument, words);
                        }
                        at += 1;
                        if name.starts_with(|first: char| first.is_ascii_digit()) {
                            let words = format!("capturing group name {{{name}}} starts with digit character");
                            return m.throw(Class::IllegalArgument, words);
                        }
                        match pattern.named(&name) {
                            Some(number) => number,
                            None => return m.throw(Class::IllegalArgument, format!("No group with name {{{name}}}")),
                        }
                    }
                    Some(digit) => {
                        let value = |digit: char| digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                        let Some(mut number) = value(digit) else {
                            return m.throw(Class::IllegalArgument, "Illegal group reference");
                        };
                        at += 1;
                        // As many digits as make the number of a group.
                        while let Some(digit) = character(at).and_then(value) {
                            let longer = number.saturating_mul(10).saturating_add(digit);
                            if longer >= pattern.groups {
                                break;
                            }
                            number = longer;
                            at += 1;
                        }
                        if number >= pattern.groups {
                            return m.throw(Class::IndexOutOfBounds, format!("No group {number}"));
                        }
                        number
                    }
                };
                if let (Some(from), Some(stop)) = ends(groups, number) {
                    let group = units.get(from..stop).unwrap_or_default();
                    m.allocate(group.len() as u64 * 2)?;
                    m.step(group.len() / 4)?;
                    to.extend_from_slice(group);
                }
            }
            _ => {
                m.allocate(2)?;
                to.push(unit);
            }
        }
    }
    Ok(())
}

/// The parts between matches; empty ones at the end are left out where the limit is 0.
fn split(m: &mut Machine<'_>, pattern: &Pattern, units: &Units, limit: i32) -> Run<Value> {
    let most = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    let mut parts: Vec<&[u16]> = Vec::new();
    let (mut from, mut copied, mut is_found) = (0, 0, false);
    while from <= units.len() && most.is_none_or(|most| parts.len() + 1 < most) {
        let Some(groups) = next(m, pattern, units, from)? else {
            break;
        };
        let (start, stop) = match ends(&groups, 0) {
            (Some(start), Some(stop)) => (start, stop),
            _ => break,
        };
        from = if stop == start { stop + 1 } else { stop };
        // An empty match at the begin makes no empty part.
        if copied == 0 && start == 0 && stop == 0 {
            continue;
        }
        m.allocate(crate::limits::VALUE_BYTES)?;
        is_found = true;
        parts.push(units.get(copied..start).unwrap_or_default());
        copied = stop;
    }
    if !is_found {
        let items = vec![Value::Text(units.clone())];
        return m.make(Object::Array { items });
    }
    parts.push(units.get(copied..).unwrap_or_default());
    if limit == 0 {
        while parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
    }
    let items = parts
        .into_iter()
        .map(|part| m.text(part))
        .collect::<Run<Vec<Value>>>()?;
    m.make(Object::Array { items })
}
