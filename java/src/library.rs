//! The classes that a body may use: their methods, constructors and constants. All others are absent: no files, no
//! threads, no reflection. Time and randomness are inputs of the call.
//!
//! A method is a row: its class, name, parameters and result in Java syntax, and its body. `E`, `K` and `V` are the
//! type arguments of the receiver; `T` and `U` are the method's
//! own.

mod array;
mod base64;
mod boxes;
pub(crate) mod buffer;
pub(crate) mod calendar;
pub(crate) mod collection;
mod date_format;
pub(crate) mod day;
mod exception;
pub(crate) mod format;
pub(crate) mod instant;
mod map;
mod math;
pub(crate) mod number;
mod optional;
mod parse;
pub(crate) mod pattern;
pub(crate) mod random;
mod sequence;
mod system;
pub(crate) mod text;
pub(crate) mod time;
mod tokenizer;
pub(crate) mod tuple;

use std::fmt;

use crate::class::{Class, Kind, Ty};
use crate::machine::{Body, Machine, Run};
use crate::value::{Handle, Plain, Prim, Text, Value};

/// A method or constructor.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) class: Class,
    /// Empty for a constructor.
    pub(crate) name: &'static str,
    pub(crate) is_static: bool,
    parameters: &'static str,
    returns: &'static str,
    pub(crate) body: Body,
}

const fn instance(
    class: Class,
    name: &'static str,
    parameters: &'static str,
    returns: &'static str,
    body: Body,
) -> Method {
    Method {
        class,
        name,
        is_static: false,
        parameters,
        returns,
        body,
    }
}

const fn fixed(
    class: Class,
    name: &'static str,
    parameters: &'static str,
    returns: &'static str,
    body: Body,
) -> Method {
    Method {
        class,
        name,
        is_static: true,
        parameters,
        returns,
        body,
    }
}

const fn constructor(class: Class, parameters: &'static str, body: Body) -> Method {
    Method {
        class,
        name: "",
        is_static: true,
        parameters,
        returns: "void",
        body,
    }
}

/// The types of a method's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) fixed: Vec<Ty>,
    /// The type of the variable arguments, if there are any.
    pub(crate) variable: Option<Ty>,
}

/// As messages have them: `int, String`.
impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<String> = self.fixed.iter().map(Ty::to_string).collect();
        shown.extend(self.variable.as_ref().map(|ty| format!("{ty}...")));
        f.write_str(&shown.join(", "))
    }
}

/// A method's types for a given receiver and arguments.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) parameters: Parameters,
    pub(crate) returns: Ty,
}

impl Method {
    pub(crate) fn signature(&self, on: &Ty, arguments: &[Ty]) -> Signature {
        // A StringBuffer is a StringBuilder here, whose methods give the receiver.
        let buffer = (self.returns == "StringBuilder" && *on == Ty::class(Class::StringBuffer)).then(|| on.clone());
        let on: &[Ty] = if let Ty::Ref(_, given) = on { given } else { &[] };
        let written: Vec<&str> = split(self.parameters);
        // An array may stand for all variable arguments (JLS §15.12.2.2: no method with a variable number of them is then looked for).
        let array = match (arguments.last(), written.last()) {
            (Some(Ty::Array(element)), Some(text))
                if text.ends_with("...") && arguments.len() == written.len() && element.is_reference() =>
            {
                Some(element.as_ref())
            }
            _ => None,
        };
        let mut own = [None, None];
        for (index, text) in written.iter().enumerate() {
            let rest = arguments.get(index..).unwrap_or_default();
            let given = if text.ends_with("...") {
                rest
            } else {
                rest.get(..1).unwrap_or_default()
            };
            for argument in given {
                let argument = array.filter(|_| text.ends_with("...")).unwrap_or(argument);
                bind(text.trim_end_matches("..."), argument, &mut own);
            }
        }
        let own = own.map(|own| own.unwrap_or_else(Ty::object));
        let mut parameters = Parameters {
            fixed: Vec::new(),
            variable: None,
        };
        for text in written {
            match text.strip_suffix("...") {
                Some(element) if array.is_some() => parameters.fixed.push(Ty::Array(ty(element, on, &own).into())),
                Some(element) => parameters.variable = Some(ty(element, on, &own)),
                None => parameters.fixed.push(ty(text, on, &own)),
            }
        }
        Signature {
            parameters,
            returns: buffer.unwrap_or_else(|| ty(self.returns, on, &own)),
        }
    }

    /// As in Java's messages about null: `java.util.Map.get(Object)`.
    pub(crate) fn shown_of(&self, class: Class) -> String {
        let shown = |text: &&'static str| {
            let text = text.trim_end_matches("...");
            let bare = text.split('<').next().unwrap_or(text);
            match ty(bare, &[], &[Ty::object(), Ty::object()]) {
                Ty::Ref(class, _) => class.null_name().to_owned(),
                other => other.to_string(),
            }
        };
        let parameters: Vec<String> = split(self.parameters).iter().map(shown).collect();
        format!("{}.{}({})", class.null_name(), self.name, parameters.join(", "))
    }
}

/// Splits at commas outside `<…>`.
fn split(text: &'static str) -> Vec<&'static str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    parts
}

/// Infers `T` and `U` from an argument where `text` has them.
fn bind(text: &'static str, argument: &Ty, own: &mut [Option<Ty>; 2]) {
    let [first, second] = own;
    let of = match text {
        "T" => Some(first),
        "U" => Some(second),
        _ => None,
    };
    if let Some(own) = of {
        let boxed = argument.boxed();
        *own = Some(match own.take() {
            Some(before) if before == boxed || boxed == Ty::Null => before,
            Some(Ty::Null) => boxed,
            Some(before) if before.is_subtype(&boxed) => boxed,
            Some(before) if boxed.is_subtype(&before) => before,
            Some(_) => Ty::object(),
            None => boxed,
        });
        return;
    }
    if let (Some(element), Ty::Array(of)) = (text.strip_suffix("[]"), argument) {
        bind(element, of, own);
    }
    if let Some((_, inside)) = text.strip_suffix('>').and_then(|text| text.split_once('<'))
        && let Ty::Ref(_, given) = argument
    {
        for (text, argument) in split(inside).into_iter().zip(given) {
            bind(text, argument, own);
        }
    }
}

/// Parses a type in a signature's text.
fn ty(text: &'static str, on: &[Ty], own: &[Ty; 2]) -> Ty {
    let [first, second] = own;
    let argument = |index: usize| on.get(index).cloned().unwrap_or_else(Ty::object);
    if let Some(element) = text.strip_suffix("[]") {
        return Ty::Array(Box::new(ty(element, on, own)));
    }
    match text {
        "void" => return Ty::Void,
        "E" | "K" => return argument(0),
        "V" => return argument(1),
        "T" => return first.clone(),
        "U" => return second.clone(),
        _ => {}
    }
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == text) {
        return Ty::Prim(kind);
    }
    let (name, arguments) = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, inside)) => (
            name,
            split(inside).into_iter().map(|inner| ty(inner, on, own)).collect(),
        ),
        None => (text, Vec::new()),
    };
    let short = |class: &&Class| {
        let full = class.full_name();
        let inner = full.rsplit_once('.').map_or(full, |(_, inner)| inner);
        full == name || (inner.replace('$', ".") == name && **class != Class::Day)
    };
    let class = Class::ALL.iter().find(short).copied().unwrap_or(Class::Object);
    // All types of a raw receiver are raw.
    let is_raw = on.is_empty() && text.contains(['E', 'K', 'V']) && !arguments.is_empty() && !text.contains('T');
    Ty::Ref(class, if is_raw { Vec::new() } else { arguments })
}

const TABLES: [&[Method]; 27] = [
    text::METHODS,
    sequence::METHODS,
    number::METHODS,
    number::BIG_METHODS,
    boxes::METHODS,
    math::METHODS,
    collection::METHODS,
    map::METHODS,
    time::METHODS,
    array::METHODS,
    base64::METHODS,
    buffer::METHODS,
    calendar::METHODS,
    date_format::METHODS,
    day::METHODS,
    format::METHODS,
    instant::METHODS,
    optional::METHODS,
    pattern::METHODS,
    random::METHODS,
    system::METHODS,
    tokenizer::METHODS,
    tuple::ACCESSORS,
    tuple::OTHERS,
    tuple::SETTERS,
    tuple::CONTEXT,
    exception::METHODS,
];

fn all() -> impl Iterator<Item = &'static Method> {
    TABLES.into_iter().flatten()
}

/// The methods of a class and of its supertypes.
pub(crate) fn methods(class: Class, name: &str) -> impl Iterator<Item = &'static Method> {
    all().filter(move |method| !method.name.is_empty() && method.name == name && class.is(method.class))
}

/// The constructors of a class.
pub(crate) fn constructors(class: Class) -> impl Iterator<Item = &'static Method> {
    all()
        .filter(move |method| {
            let is_same = method.class == class || (method.class == Class::Throwable && class.is(Class::Throwable));
            method.name.is_empty() && is_same && exception::has(class, method.parameters)
        })
        .map(move |method| exception::constructor_of(class, method))
}

/// Common Java methods that this library lacks, so that the error can say so.
pub(crate) fn is_left_out(class: Class, name: &str) -> bool {
    const NAMES: &[&str] = &[
        "stream",
        "atStartOfDay",
        "getErrorOffset",
        "format",
        "chars",
        "forEach",
        "merge",
        "compute",
        "computeIfAbsent",
        "computeIfPresent",
        "removeIf",
        "replace",
        "sort",
        "spliterator",
        "listIterator",
        "getClass",
        "printStackTrace",
        "intern",
        "getHostName",
        "getByName",
        "lines",
        "parallelStream",
        "setLength",
        "subMap",
        "toGMTString",
        "toLocaleString",
    ];
    let _ = class;
    NAMES.contains(&name)
}

/// A constant of a class.
pub(crate) fn field(class: Class, name: &str) -> Option<(Ty, Value)> {
    let prim = |value: Prim| Some((Ty::Prim(value.kind()), Value::Prim(value)));
    match (class, name) {
        (Class::Integer, "MAX_VALUE") => prim(Prim::Int(i32::MAX)),
        (Class::Integer, "MIN_VALUE") => prim(Prim::Int(i32::MIN)),
        (Class::Long, "MAX_VALUE") => prim(Prim::Long(i64::MAX)),
        (Class::Long, "MIN_VALUE") => prim(Prim::Long(i64::MIN)),
        (Class::Short, "MAX_VALUE") => prim(Prim::Short(i16::MAX)),
        (Class::Short, "MIN_VALUE") => prim(Prim::Short(i16::MIN)),
        (Class::Byte, "MAX_VALUE") => prim(Prim::Byte(i8::MAX)),
        (Class::Byte, "MIN_VALUE") => prim(Prim::Byte(i8::MIN)),
        (Class::Character, "MAX_VALUE") => prim(Prim::Char(u16::MAX)),
        (Class::Character, "MIN_VALUE") => prim(Prim::Char(0)),
        (Class::Integer, "SIZE") => prim(Prim::Int(32)),
        (Class::Long, "SIZE") => prim(Prim::Int(64)),
        (Class::Double, "MAX_VALUE") => prim(Prim::Double(f64::MAX)),
        (Class::Double, "MIN_VALUE") => prim(Prim::Double(5e-324)),
        (Class::Double, "NaN") => prim(Prim::Double(f64::NAN)),
        (Class::Double, "POSITIVE_INFINITY") => prim(Prim::Double(f64::INFINITY)),
        (Class::Double, "NEGATIVE_INFINITY") => prim(Prim::Double(f64::NEG_INFINITY)),
        (Class::Float, "MAX_VALUE") => prim(Prim::Float(f32::MAX)),
        (Class::Float, "MIN_VALUE") => prim(Prim::Float(f32::from_bits(1))),
        (Class::Float, "NaN") => prim(Prim::Float(f32::NAN)),
        (Class::Float, "POSITIVE_INFINITY") => prim(Prim::Float(f32::INFINITY)),
        (Class::Float, "NEGATIVE_INFINITY") => prim(Prim::Float(f32::NEG_INFINITY)),
        (Class::Boolean, "TRUE") => Some((Ty::class(class), Value::Boxed(Prim::Boolean(true), 0))),
        (Class::Boolean, "FALSE") => Some((Ty::class(class), Value::Boxed(Prim::Boolean(false), 0))),
        (Class::Calendar | Class::GregorianCalendar, name) => {
            calendar::field(name).map(|value| (Ty::INT, Value::int(value)))
        }
        (Class::Pattern, name) => pattern::flag(name).map(|value| (Ty::INT, Value::int(value))),
        (Class::DayOfWeek | Class::Month | Class::ChronoUnit, name) => {
            day::constant(class, name).map(|value| (Ty::class(class), value))
        }
        (Class::Locale, name) => format::locale(name).map(|value| (Ty::class(class), value)),
        (Class::Instant, "EPOCH") => Some((Ty::class(class), Value::plain(Plain::Instant { seconds: 0, nanos: 0 }))),
        (Class::Math, "PI") => prim(Prim::Double(std::f64::consts::PI)),
        (Class::Math, "E") => prim(Prim::Double(std::f64::consts::E)),
        (Class::BigInteger | Class::BigDecimal | Class::RoundingMode, name) => {
            number::constant(class, name).map(|value| (Ty::class(class), value))
        }
        _ => None,
    }
}

/// The checked exception that a method declares.
pub(crate) fn throws(method: &Method) -> Option<Class> {
    (method.class == Class::DateFormat && method.name == "parse").then_some(Class::Parse)
}

/// The argument at a position, by kind. Each accessor fails with a fault if the checker has accepted a wrong type.
pub(crate) trait Arguments {
    fn value(&self, at: usize) -> Value;
    fn int(&self, at: usize) -> Run<i32>;
    fn long(&self, at: usize) -> Run<i64>;
    fn double(&self, at: usize) -> Run<f64>;
    fn float(&self, at: usize) -> Run<f32>;
    fn char(&self, at: usize) -> Run<u16>;
    fn boolean(&self, at: usize) -> Run<bool>;
    fn handle(&self, at: usize) -> Run<Handle>;
    fn plain(&self, at: usize) -> Run<&Plain>;
}

impl Arguments for [Value] {
    fn value(&self, at: usize) -> Value {
        self.get(at).cloned().unwrap_or(Value::Null)
    }

    fn int(&self, at: usize) -> Run<i32> {
        match self.value(at).prim() {
            Some(Prim::Int(value)) => Ok(value),
            Some(Prim::Short(value)) => Ok(value.into()),
            Some(Prim::Byte(value)) => Ok(value.into()),
            Some(Prim::Char(value)) => Ok(value.into()),
            _ => Machine::fault("an int was expected"),
        }
    }

    fn long(&self, at: usize) -> Run<i64> {
        match self.value(at).prim() {
            Some(Prim::Long(value)) => Ok(value),
            _ => self.int(at).map(i64::from),
        }
    }

    fn double(&self, at: usize) -> Run<f64> {
        match self.value(at).prim() {
            Some(Prim::Double(value)) => Ok(value),
            Some(Prim::Float(value)) => Ok(value.into()),
            _ => Machine::fault("a double was expected"),
        }
    }

    fn float(&self, at: usize) -> Run<f32> {
        match self.value(at).prim() {
            Some(Prim::Float(value)) => Ok(value),
            _ => Machine::fault("a float was expected"),
        }
    }

    fn char(&self, at: usize) -> Run<u16> {
        match self.value(at).prim() {
            Some(Prim::Char(value)) => Ok(value),
            _ => Machine::fault("a char was expected"),
        }
    }

    fn boolean(&self, at: usize) -> Run<bool> {
        match self.value(at).prim() {
            Some(Prim::Boolean(value)) => Ok(value),
            _ => Machine::fault("a boolean was expected"),
        }
    }

    fn handle(&self, at: usize) -> Run<Handle> {
        match self.get(at) {
            Some(Value::Ref(handle)) => Ok(*handle),
            _ => Machine::fault("a reference was expected"),
        }
    }

    fn plain(&self, at: usize) -> Run<&Plain> {
        match self.get(at) {
            Some(Value::Plain(plain)) => Ok(plain),
            _ => Machine::fault("a value of another class was expected"),
        }
    }
}

/// The text at a position; a NullPointerException if it is null.
pub(crate) fn text(machine: &mut Machine<'_>, arguments: &[Value], at: usize) -> Run<Text> {
    match arguments.get(at) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(Value::Null) | None => machine.throw_with(Class::NullPointer, None),
        // Any other CharSequence.
        Some(other) => match machine.text_of(other)? {
            Value::Text(text) => Ok(text),
            _ => Machine::fault("a text was expected"),
        },
    }
}

/// A collection at a position; a NullPointerException if it is null.
pub(crate) fn collection(machine: &mut Machine<'_>, arguments: &[Value], at: usize) -> Run<Handle> {
    match arguments.get(at) {
        Some(Value::Ref(handle)) => Ok(*handle),
        _ => machine.throw_with(Class::NullPointer, None),
    }
}

pub(crate) fn count(value: usize) -> Value {
    Value::int(i32::try_from(value).unwrap_or(i32::MAX))
}

pub(crate) fn ordering(order: std::cmp::Ordering) -> Value {
    Value::int(match order {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    })
}
