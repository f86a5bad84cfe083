//! `String`, and what every object has.

use super::{Arguments, Method, collection, count, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{CharSequence, Character, Comparable, Object, Objects, String as Text};
use crate::machine::{Machine, Run};
use crate::value::{Object as Thing, Prim, Text as Units, Value};

pub(super) const METHODS: &[Method] = &[
    instance(Object, "equals", "Object", "boolean", |m, a| {
        Ok(Value::boolean(m.equal(&a.value(0), &a.value(1))?))
    }),
    instance(Object, "hashCode", "", "int", |m, a| {
        Ok(Value::int(m.hash(&a.value(0))?))
    }),
    instance(Object, "toString", "", "String", |m, a| m.text_of(&a.value(0))),
    super::constructor(Object, "", |m, _| m.make(Thing::Bare)),
    instance(Comparable, "compareTo", "Object", "int", |m, a| {
        compare_to(m, &a.value(0), &a.value(1))
    }),
    fixed(Objects, "equals", "Object,Object", "boolean", |m, a| {
        Ok(Value::boolean(m.equal(&a.value(0), &a.value(1))?))
    }),
    fixed(Objects, "hashCode", "Object", "int", |m, a| {
        Ok(Value::int(m.hash(&a.value(0))?))
    }),
    fixed(Objects, "toString", "Object", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Objects, "isNull", "Object", "boolean", |_, a| {
        Ok(Value::boolean(matches!(a.value(0), Value::Null)))
    }),
    fixed(Objects, "nonNull", "Object", "boolean", |_, a| {
        Ok(Value::boolean(!matches!(a.value(0), Value::Null)))
    }),
    fixed(Objects, "requireNonNull", "T", "T", |m, a| match a.value(0) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        value => Ok(value),
    }),
    fixed(Objects, "hash", "Object...", "int", |m, a| {
        if matches!(a.value(0), Value::Null) {
            return Ok(Value::int(0));
        }
        let mut hash = 1_i32;
        for value in m.elements(a.handle(0)?)? {
            hash = hash.wrapping_mul(31).wrapping_add(m.hash(&value)?);
        }
        Ok(Value::int(hash))
    }),
    instance(CharSequence, "length", "", "int", |m, a| {
        let units = text(m, a, 0)?;
        Ok(count(units.len()))
    }),
    instance(CharSequence, "isEmpty", "", "boolean", |m, a| {
        Ok(Value::boolean(text(m, a, 0)?.is_empty()))
    }),
    instance(CharSequence, "charAt", "int", "char", char_at),
    instance(Text, "compareTo", "String", "int", |m, a| {
        let (x, y) = (text(m, a, 0)?, given(m, a, 1, "read field \"value\"", "anotherString")?);
        m.step(x.len().min(y.len()) / 4)?;
        Ok(Value::int(compare(&x, &y)))
    }),
    instance(Text, "compareToIgnoreCase", "String", "int", |m, a| {
        let (x, y) = (folded(m, a, 0)?, folded(m, a, 1)?);
        Ok(Value::int(compare(&x, &y)))
    }),
    instance(Text, "equalsIgnoreCase", "String", "boolean", |m, a| {
        if matches!(a.value(1), Value::Null) {
            return Ok(Value::boolean(false));
        }
        let same = folded(m, a, 0)? == folded(m, a, 1)?;
        Ok(Value::boolean(same))
    }),
    instance(Text, "substring", "int", "String", |m, a| {
        let units = text(m, a, 0)?;
        substring(m, &units, a.int(1)?, i32::try_from(units.len()).unwrap_or(i32::MAX))
    }),
    instance(Text, "substring", "int,int", "String", |m, a| {
        let units = text(m, a, 0)?;
        substring(m, &units, a.int(1)?, a.int(2)?)
    }),
    instance(CharSequence, "subSequence", "int,int", "CharSequence", |m, a| {
        let units = text(m, a, 0)?;
        substring(m, &units, a.int(1)?, a.int(2)?)
    }),
    instance(Text, "indexOf", "String", "int", |m, a| {
        let wanted = given(m, a, 1, "invoke \"String.coder()\"", "str")?;
        find(m, a, &wanted, 0)
    }),
    instance(Text, "indexOf", "String,int", "int", |m, a| {
        let wanted = given(m, a, 1, "invoke \"String.coder()\"", "tgtStr")?;
        find(m, a, &wanted, a.int(2)?)
    }),
    instance(Text, "indexOf", "int", "int", |m, a| find_unit(m, a, 0)),
    instance(Text, "indexOf", "int,int", "int", |m, a| find_unit(m, a, a.int(2)?)),
    instance(Text, "lastIndexOf", "String", "int", |m, a| {
        let (units, wanted) = (text(m, a, 0)?, text(m, a, 1)?);
        m.step(units.len().saturating_mul(wanted.len().max(1)) / 4)?;
        let starts = 0..=units.len().saturating_sub(wanted.len());
        let at = starts
            .rev()
            .find(|at| units.get(*at..).is_some_and(|rest| rest.starts_with(&wanted)));
        Ok(at.map_or(Value::int(-1), count))
    }),
    instance(Text, "lastIndexOf", "int", "int", |m, a| {
        let units = text(m, a, 0)?;
        let wanted = a.int(1)?;
        m.step(units.len() / 4)?;
        Ok(units
            .iter()
            .rposition(|unit| i32::from(*unit) == wanted)
            .map_or(Value::int(-1), count))
    }),
    instance(Text, "contains", "CharSequence", "boolean", |m, a| {
        let wanted = given(m, a, 1, "invoke \"java.lang.CharSequence.toString()\"", "s")?;
        let at = find(m, a, &wanted, 0)?;
        Ok(Value::boolean(matches!(at, Value::Prim(Prim::Int(at)) if at >= 0)))
    }),
    instance(Text, "startsWith", "String", "boolean", |m, a| {
        let units = text(m, a, 0)?;
        let wanted = given(m, a, 1, "invoke \"String.length()\"", "prefix")?;
        Ok(Value::boolean(units.starts_with(&wanted)))
    }),
    instance(Text, "startsWith", "String,int", "boolean", |m, a| {
        let (units, wanted) = (text(m, a, 0)?, text(m, a, 1)?);
        let rest = usize::try_from(a.int(2)?).ok().and_then(|from| units.get(from..));
        Ok(Value::boolean(rest.is_some_and(|rest| rest.starts_with(&wanted))))
    }),
    instance(Text, "endsWith", "String", "boolean", |m, a| {
        let units = text(m, a, 0)?;
        let wanted = given(m, a, 1, "invoke \"String.length()\"", "suffix")?;
        Ok(Value::boolean(units.ends_with(&wanted)))
    }),
    instance(Text, "concat", "String", "String", |m, a| {
        let (x, y) = (text(m, a, 0)?, given(m, a, 1, "invoke \"String.isEmpty()\"", "str")?);
        m.text(&[&x[..], &y[..]].concat())
    }),
    instance(Text, "repeat", "int", "String", |m, a| {
        let units = text(m, a, 0)?;
        let times = a.int(1)?;
        let Ok(times) = usize::try_from(times) else {
            return m.throw(Class::IllegalArgument, format!("count is negative: {times}"));
        };
        m.allocate((units.len() as u64).saturating_mul(times as u64).saturating_mul(2))?;
        m.text(&units.repeat(times))
    }),
    instance(Text, "toUpperCase", "", "String", |m, a| {
        mapped(m, a, |text| text.to_uppercase())
    }),
    instance(Text, "toLowerCase", "", "String", |m, a| {
        mapped(m, a, |text| text.to_lowercase())
    }),
    instance(Text, "toUpperCase", "Locale", "String", |m, a| {
        mapped(m, a, |text| text.to_uppercase())
    }),
    instance(Text, "toLowerCase", "Locale", "String", |m, a| {
        mapped(m, a, |text| text.to_lowercase())
    }),
    instance(Text, "trim", "", "String", |m, a| {
        let units = text(m, a, 0)?;
        trimmed(m, a, &units, |unit| unit <= 32, true)
    }),
    instance(Text, "strip", "", "String", |m, a| {
        let units = text(m, a, 0)?;
        trimmed(m, a, &units, is_white, true)
    }),
    instance(Text, "stripLeading", "", "String", |m, a| {
        let units = text(m, a, 0)?;
        trimmed(m, a, &units, is_white, false)
    }),
    instance(Text, "isBlank", "", "boolean", |m, a| {
        Ok(Value::boolean(text(m, a, 0)?.iter().all(|unit| is_white(*unit))))
    }),
    instance(Text, "replace", "char,char", "String", |m, a| {
        let units = text(m, a, 0)?;
        let (old, new) = (a.char(1)?, a.char(2)?);
        if !units.contains(&old) {
            return Ok(a.value(0));
        }
        let replaced: Vec<u16> = units
            .iter()
            .map(|unit| if *unit == old { new } else { *unit })
            .collect();
        m.text(&replaced)
    }),
    instance(Text, "replace", "CharSequence,CharSequence", "String", |m, a| {
        replace(m, a)
    }),
    instance(Text, "codePointAt", "int", "int", |m, a| {
        let units = text(m, a, 0)?;
        let at = usize::try_from(a.int(1)?).ok();
        match at.and_then(|at| crate::regex::code_at(&units, at)) {
            Some((code, _)) => Ok(Value::int(i32::try_from(code).unwrap_or(0))),
            None => char_at(m, a),
        }
    }),
    instance(Text, "toCharArray", "", "char[]", |m, a| {
        let units = text(m, a, 0)?;
        m.allocate(units.len() as u64 * crate::limits::VALUE_BYTES)?;
        m.step(units.len())?;
        let items = units.iter().map(|unit| Value::Prim(Prim::Char(*unit))).collect();
        m.make(Thing::Array { items })
    }),
    fixed(Text, "valueOf", "Object", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "int", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "long", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "double", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "float", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "boolean", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "char", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Text, "valueOf", "char[]", "String", |m, a| {
        let handle = collection(m, a, 0)?;
        let units = m.elements(handle)?;
        let units: Vec<u16> = units
            .iter()
            .filter_map(|unit| {
                if let Some(Prim::Char(unit)) = unit.prim() {
                    Some(unit)
                } else {
                    None
                }
            })
            .collect();
        m.text(&units)
    }),
    fixed(Text, "join", "CharSequence,Iterable", "String", |m, a| {
        let handle = collection(m, a, 1)?;
        join(m, a, handle)
    }),
    fixed(Text, "join", "CharSequence,CharSequence...", "String", |m, a| {
        let handle = collection(m, a, 1)?;
        join(m, a, handle)
    }),
    super::constructor(Text, "", |m, _| m.text(&[])),
    super::constructor(Text, "String", |m, a| {
        let units = text(m, a, 0)?;
        m.text(&units)
    }),
    fixed(Character, "isDigit", "char", "boolean", |_, a| {
        Ok(Value::boolean(is(a, |c| c.is_ascii_digit())?))
    }),
    fixed(Character, "isLetter", "char", "boolean", |_, a| {
        Ok(Value::boolean(is(a, char::is_alphabetic)?))
    }),
    fixed(Character, "isLetterOrDigit", "char", "boolean", |_, a| {
        Ok(Value::boolean(is(a, char::is_alphanumeric)?))
    }),
    fixed(Character, "isUpperCase", "char", "boolean", |_, a| {
        Ok(Value::boolean(is(a, char::is_uppercase)?))
    }),
    fixed(Character, "isLowerCase", "char", "boolean", |_, a| {
        Ok(Value::boolean(is(a, char::is_lowercase)?))
    }),
    fixed(Character, "isWhitespace", "char", "boolean", |_, a| {
        Ok(Value::boolean(is_white(a.char(0)?)))
    }),
    fixed(Character, "toUpperCase", "char", "char", |_, a| {
        cased(a, |c| c.to_uppercase().collect())
    }),
    fixed(Character, "toLowerCase", "char", "char", |_, a| {
        cased(a, |c| c.to_lowercase().collect())
    }),
    fixed(Character, "toString", "char", "String", |m, a| m.text_of(&a.value(0))),
    fixed(Character, "valueOf", "char", "Character", |m, a| {
        Ok(m.boxed(Prim::Char(a.char(0)?)))
    }),
    fixed(Character, "compare", "char,char", "int", |_, a| {
        Ok(Value::int(a.int(0)? - a.int(1)?))
    }),
    fixed(Character, "getNumericValue", "char", "int", |_, a| {
        let digit = char::from_u32(a.char(0)?.into()).and_then(|c| c.to_digit(36));
        Ok(digit
            .and_then(|digit| i32::try_from(digit).ok())
            .map_or(Value::int(-1), Value::int))
    }),
    instance(Character, "charValue", "", "char", |_, a| {
        Ok(Value::Prim(Prim::Char(a.char(0)?)))
    }),
];

/// An argument. Where it is null: what Java's method does with it, and the name of the parameter there.
fn given(m: &mut Machine<'_>, a: &[Value], at: usize, action: &str, parameter: &str) -> Run<Units> {
    if matches!(a.get(at), Some(Value::Null)) {
        let message = format!("Cannot {action} because \"{parameter}\" is null");
        return m.throw(Class::NullPointer, message);
    }
    text(m, a, at)
}

fn is(a: &[Value], test: impl Fn(char) -> bool) -> Run<bool> {
    Ok(char::from_u32(a.char(0)?.into()).is_some_and(test))
}

fn cased(a: &[Value], change: impl Fn(char) -> Vec<char>) -> Run<Value> {
    let unit = a.char(0)?;
    let changed = char::from_u32(unit.into()).map(change).unwrap_or_default();
    let unit = match changed.as_slice() {
        [only] => u16::try_from(u32::from(*only)).unwrap_or(unit),
        _ => unit,
    };
    Ok(Value::Prim(Prim::Char(unit)))
}

fn is_white(unit: u16) -> bool {
    matches!(unit, 9..=13 | 28..=32 | 0x1680 | 0x2000..=0x2006 | 0x2008..=0x200a | 0x2028 | 0x2029 | 0x205f | 0x3000)
}

pub(super) fn compare_to(m: &mut Machine<'_>, a: &Value, b: &Value) -> Run<Value> {
    if let (Value::Text(x), Value::Text(y)) = (a, b) {
        m.step(x.len().min(y.len()) / 4)?;
        return Ok(Value::int(compare(x, y)));
    }
    m.compare(a, b).map(super::ordering)
}

/// Java's result: the difference of the first units that differ, or of the lengths.
fn compare(x: &[u16], y: &[u16]) -> i32 {
    let different = x.iter().zip(y).find(|(a, b)| a != b);
    let length = |units: &[u16]| i32::try_from(units.len()).unwrap_or(i32::MAX);
    different.map_or_else(|| length(x) - length(y), |(a, b)| i32::from(*a) - i32::from(*b))
}

fn folded(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Vec<u16>> {
    let units = text(m, a, at)?;
    m.step(units.len())?;
    m.allocate(units.len() as u64 * 2)?;
    let fold = |unit: &u16| match char::from_u32((*unit).into()) {
        Some(character) => {
            let mut upper = character.to_uppercase();
            let one = if upper.len() == 1 {
                upper.next().unwrap_or(character)
            } else {
                character
            };
            let mut lower = one.to_lowercase();
            let one = if lower.len() == 1 {
                lower.next().unwrap_or(one)
            } else {
                one
            };
            u16::try_from(u32::from(one)).unwrap_or(*unit)
        }
        None => *unit,
    };
    Ok(units.iter().map(fold).collect())
}

fn char_at(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let at = a.int(1)?;
    let is_text = matches!(a.first(), Some(Value::Text(_)));
    let units = text(m, a, 0)?;
    match usize::try_from(at).ok().and_then(|at| units.get(at)) {
        Some(unit) => Ok(Value::Prim(Prim::Char(*unit))),
        // Java keeps a text with characters beyond Latin-1 in another form, whose check has words of its own.
        None if is_text && units.iter().any(|unit| *unit > 0xff) => {
            m.throw(Class::StringIndex, format!("index {at}, length {}", units.len()))
        }
        None if is_text => m.throw(Class::StringIndex, format!("String index out of range: {at}")),
        None => m.throw(Class::StringIndex, format!("index {at},length {}", units.len())),
    }
}

pub(super) fn substring(m: &mut Machine<'_>, units: &[u16], from: i32, to: i32) -> Run<Value> {
    let slice = match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) => units.get(from..to),
        _ => None,
    };
    match slice {
        Some(slice) => m.text(slice),
        None => m.throw(
            Class::StringIndex,
            format!("begin {from}, end {to}, length {}", units.len()),
        ),
    }
}

fn find(m: &mut Machine<'_>, a: &[Value], wanted: &[u16], from: i32) -> Run<Value> {
    let units = text(m, a, 0)?;
    let from = usize::try_from(from).unwrap_or(0).min(units.len());
    m.step(units.len().saturating_mul(wanted.len().max(1)) / 4)?;
    if wanted.is_empty() {
        return Ok(count(from));
    }
    let rest = units.get(from..).unwrap_or_default();
    let at = rest.windows(wanted.len()).position(|window| window == wanted);
    Ok(at.map_or(Value::int(-1), |at| count(at + from)))
}

fn find_unit(m: &mut Machine<'_>, a: &[Value], from: i32) -> Run<Value> {
    let units = text(m, a, 0)?;
    let (wanted, from) = (a.int(1)?, usize::try_from(from).unwrap_or(0));
    m.step(units.len() / 4)?;
    let rest = units.get(from..).unwrap_or_default();
    let at = rest.iter().position(|unit| i32::from(*unit) == wanted);
    Ok(at.map_or(Value::int(-1), |at| count(at + from)))
}

fn mapped(m: &mut Machine<'_>, a: &[Value], change: impl Fn(&str) -> String) -> Run<Value> {
    let units = text(m, a, 0)?;
    m.step(units.len())?;
    let mut changed: Vec<u16> = Vec::with_capacity(units.len());
    let mut run = String::new();
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(character) => run.push(character),
            // Half of a surrogate pair stays as it is.
            Err(half) => {
                changed.extend(change(&std::mem::take(&mut run)).encode_utf16());
                changed.push(half.unpaired_surrogate());
            }
        }
    }
    changed.extend(change(&run).encode_utf16());
    if *changed == *units {
        return Ok(a.value(0));
    }
    m.text(&changed)
}

fn trimmed(m: &mut Machine<'_>, a: &[Value], units: &[u16], gone: impl Fn(u16) -> bool, both: bool) -> Run<Value> {
    let start = units.iter().position(|unit| !gone(*unit)).unwrap_or(units.len());
    let last = if both {
        units
            .iter()
            .rposition(|unit| !gone(*unit))
            .map_or(start, |last| last + 1)
    } else {
        units.len()
    };
    m.step(units.len() / 4)?;
    if start == 0 && last == units.len() {
        return Ok(a.value(0));
    }
    m.text(units.get(start..last).unwrap_or_default())
}

fn replace(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let units = text(m, a, 0)?;
    let action = "invoke \"java.lang.CharSequence.toString()\"";
    let (old, new) = (
        given(m, a, 1, action, "target")?,
        given(m, a, 2, action, "replacement")?,
    );
    m.step(units.len().saturating_mul(old.len().max(1)) / 4)?;
    let mut replaced = Vec::new();
    let mut at = 0;
    let mut found = false;
    while at <= units.len() {
        let rest = units.get(at..).unwrap_or_default();
        if rest.starts_with(&old) {
            found = true;
            m.allocate(new.len() as u64 * 2)?;
            m.step(1 + new.len() / 4)?;
            replaced.extend_from_slice(&new);
            at += old.len();
            if !old.is_empty() {
                continue;
            }
        }
        replaced.extend(units.get(at));
        at += 1;
    }
    if found { m.text(&replaced) } else { Ok(a.value(0)) }
}

fn join(m: &mut Machine<'_>, a: &[Value], handle: crate::value::Handle) -> Run<Value> {
    let between = Value::Text(text(m, a, 0)?);
    let mut units = Vec::new();
    for (at, item) in m.elements(handle)?.iter().enumerate() {
        if at > 0 {
            m.append(&between, &mut units)?;
        }
        m.append(item, &mut units)?;
    }
    m.text(&units)
}
