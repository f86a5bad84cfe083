//! `java.time.Instant`, and what leads to it from `Date`.

use super::day::{Unit, unit};
use super::time::{date, millis};
use super::{Arguments, Method, fixed, instance, ordering};
use crate::class::Class;
use crate::class::Class::{ChronoUnit, Date, Instant};
use crate::days::DAY_MILLIS;
use crate::machine::{Machine, Run};
use crate::value::{Plain, Value};

const NANOS: i128 = 1_000_000_000;
/// The first and the last second that Java knows.
const SECONDS: (i64, i64) = (-31_557_014_167_219_200, 31_556_889_864_403_199);

pub(super) const METHODS: &[Method] = &[
    instance(
        ChronoUnit,
        "between",
        "java.time.Instant,java.time.Instant",
        "long",
        between,
    ),
    fixed(Instant, "now", "", "java.time.Instant", |m, _| {
        let micros = m.limits.now_micros;
        made(m, i128::from(micros) * 1000)
    }),
    fixed(Instant, "ofEpochMilli", "long", "java.time.Instant", |m, a| {
        made(m, i128::from(a.long(0)?) * 1_000_000)
    }),
    fixed(Instant, "ofEpochSecond", "long", "java.time.Instant", |m, a| {
        made(m, i128::from(a.long(0)?) * NANOS)
    }),
    fixed(Instant, "ofEpochSecond", "long,long", "java.time.Instant", |m, a| {
        made(m, i128::from(a.long(0)?) * NANOS + i128::from(a.long(1)?))
    }),
    instance(Instant, "toEpochMilli", "", "long", |m, a| {
        match i64::try_from(nanos(a, 0)?.div_euclid(1_000_000)) {
            Ok(millis) => Ok(Value::long(millis)),
            Err(_) => m.throw(Class::Arithmetic, "long overflow"),
        }
    }),
    instance(Instant, "getEpochSecond", "", "long", |_, a| {
        Ok(Value::long(i64::try_from(nanos(a, 0)?.div_euclid(NANOS)).unwrap_or(0)))
    }),
    instance(Instant, "getNano", "", "int", |_, a| {
        Ok(Value::int(i32::try_from(nanos(a, 0)?.rem_euclid(NANOS)).unwrap_or(0)))
    }),
    instance(Instant, "plusNanos", "long", "java.time.Instant", |m, a| plus(m, a, 1)),
    instance(Instant, "plusMillis", "long", "java.time.Instant", |m, a| {
        plus(m, a, 1_000_000)
    }),
    instance(Instant, "plusSeconds", "long", "java.time.Instant", |m, a| {
        plus(m, a, NANOS)
    }),
    instance(Instant, "minusNanos", "long", "java.time.Instant", |m, a| {
        plus(m, a, -1)
    }),
    instance(Instant, "minusMillis", "long", "java.time.Instant", |m, a| {
        plus(m, a, -1_000_000)
    }),
    instance(Instant, "minusSeconds", "long", "java.time.Instant", |m, a| {
        plus(m, a, -NANOS)
    }),
    instance(Instant, "isBefore", "java.time.Instant", "boolean", |m, a| {
        Ok(Value::boolean(nanos(a, 0)? < other(m, a, 1)?))
    }),
    instance(Instant, "isAfter", "java.time.Instant", "boolean", |m, a| {
        Ok(Value::boolean(nanos(a, 0)? > other(m, a, 1)?))
    }),
    instance(Instant, "compareTo", "java.time.Instant", "int", |m, a| {
        Ok(ordering(nanos(a, 0)?.cmp(&other(m, a, 1)?)))
    }),
    instance(Date, "toInstant", "", "java.time.Instant", |m, a| {
        let millis = millis(m, a, 0)?;
        made(m, i128::from(millis) * 1_000_000)
    }),
    fixed(Date, "from", "java.time.Instant", "Date", |m, a| {
        match i64::try_from(other(m, a, 0)?.div_euclid(1_000_000)) {
            Ok(millis) => date(m, millis),
            Err(_) => m.throw(Class::IllegalArgument, "java.lang.ArithmeticException: long overflow"),
        }
    }),
];

fn made(m: &mut Machine<'_>, nanos: i128) -> Run<Value> {
    m.allocate(64)?;
    let (first, last) = SECONDS;
    let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok();
    match seconds.filter(|seconds| (first..=last).contains(seconds)) {
        Some(seconds) => Ok(Value::plain(Plain::Instant {
            seconds,
            nanos: u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or(0),
        })),
        None => m.throw(Class::DateTime, "Instant exceeds minimum or maximum instant"),
    }
}

fn nanos(a: &[Value], at: usize) -> Run<i128> {
    match a.plain(at)? {
        Plain::Instant { seconds, nanos } => Ok(i128::from(*seconds) * NANOS + i128::from(*nanos)),
        _ => Machine::fault("an Instant was expected"),
    }
}

fn other(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<i128> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => nanos(a, at),
    }
}

fn plus(m: &mut Machine<'_>, a: &[Value], unit: i128) -> Run<Value> {
    let sum = nanos(a, 0)? + i128::from(a.long(1)?) * unit;
    made(m, sum)
}

/// How many whole units of `ChronoUnit` are between two instants.
fn between(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let passed = other(m, a, 2)? - other(m, a, 1)?;
    let of = match unit(a)? {
        Unit::Nanos(nanos) => nanos,
        Unit::Days(1) => i128::from(DAY_MILLIS) * 1_000_000,
        Unit::Days(_) => return m.throw(Class::DateTime, "Unsupported unit: Weeks"),
        Unit::Months(1) => return m.throw(Class::DateTime, "Unsupported unit: Months"),
        Unit::Months(_) => return m.throw(Class::DateTime, "Unsupported unit: Years"),
    };
    match i64::try_from(passed / of) {
        Ok(units) => Ok(Value::long(units)),
        Err(_) => m.throw(Class::Arithmetic, "long overflow"),
    }
}
