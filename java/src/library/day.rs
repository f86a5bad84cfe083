//! `java.time.LocalDate`, and the enums `DayOfWeek`, `Month` and `ChronoUnit`.

use super::{Arguments, Method, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{ChronoUnit, Day, DayOfWeek, Month};
use crate::days::{civil, days_of};
use crate::machine::{Machine, Run};
use crate::shown::{DAYS, MONTHS, UNITS, constant_text};
use crate::value::{Plain, Value};

const YEAR_MAX: i64 = 999_999_999;
/// What a unit counts.
pub(super) enum Unit {
    Nanos(i128),
    Days(i64),
    Months(i64),
}

pub(super) const METHODS: &[Method] = &[
    fixed(Day, "of", "int,int,int", "java.time.LocalDate", |m, a| {
        let (year, month, day) = (a.int(0)?, a.int(1)?, a.int(2)?);
        let of = checked(year.into(), month.into(), day.into());
        match of {
            Ok(days) => made(m, days),
            Err(wrong) => m.throw(Class::DateTime, wrong),
        }
    }),
    fixed(Day, "ofEpochDay", "long", "java.time.LocalDate", |m, a| {
        made(m, a.long(0)?)
    }),
    fixed(Day, "ofYearDay", "int,int", "java.time.LocalDate", |m, a| {
        let (year, day) = (i64::from(a.int(0)?), i64::from(a.int(1)?));
        let length = if is_leap(year) { 366 } else { 365 };
        if !(1..=366).contains(&day) {
            let message = format!("Invalid value for DayOfYear (valid values 1 - 365/366): {day}");
            return m.throw(Class::DateTime, message);
        }
        if day > length {
            let message = format!("Invalid date 'DayOfYear 366' as '{year}' is not a leap year");
            return m.throw(Class::DateTime, message);
        }
        made(m, days_of(year, 1, 1) + day - 1)
    }),
    fixed(Day, "now", "", "java.time.LocalDate", |m, _| {
        let days = super::system::now(m).div_euclid(crate::days::DAY_MILLIS);
        made(m, days)
    }),
    fixed(Day, "parse", "CharSequence", "java.time.LocalDate", |m, a| {
        let written = String::from_utf16_lossy(&text(m, a, 0)?);
        match parsed(&written) {
            Ok(days) => made(m, days),
            Err(wrong) => m.throw(
                Class::DateTimeParse,
                format!("Text '{written}' could not be parsed{wrong}"),
            ),
        }
    }),
    instance(Day, "getYear", "", "int", |_, a| number(civil(day(a, 0)?).0)),
    instance(Day, "getMonthValue", "", "int", |_, a| number(civil(day(a, 0)?).1)),
    instance(Day, "getDayOfMonth", "", "int", |_, a| number(civil(day(a, 0)?).2)),
    instance(Day, "getDayOfYear", "", "int", |_, a| {
        let days = day(a, 0)?;
        number(days - days_of(civil(days).0, 1, 1) + 1)
    }),
    instance(Day, "getDayOfWeek", "", "DayOfWeek", |_, a| {
        Ok(enum_value(DayOfWeek, (day(a, 0)? + 3).rem_euclid(7)))
    }),
    instance(Day, "getMonth", "", "Month", |_, a| {
        Ok(enum_value(Month, civil(day(a, 0)?).1 - 1))
    }),
    instance(Day, "lengthOfMonth", "", "int", |_, a| {
        let (year, month, _) = civil(day(a, 0)?);
        number(month_length(year, month))
    }),
    instance(Day, "lengthOfYear", "", "int", |_, a| {
        Ok(Value::int(if is_leap(civil(day(a, 0)?).0) { 366 } else { 365 }))
    }),
    instance(Day, "isLeapYear", "", "boolean", |_, a| {
        Ok(Value::boolean(is_leap(civil(day(a, 0)?).0)))
    }),
    instance(Day, "toEpochDay", "", "long", |_, a| Ok(Value::long(day(a, 0)?))),
    instance(Day, "plusDays", "long", "java.time.LocalDate", |m, a| {
        plus_days(m, a, 1)
    }),
    instance(Day, "plusWeeks", "long", "java.time.LocalDate", |m, a| {
        plus_days(m, a, 7)
    }),
    instance(Day, "plusMonths", "long", "java.time.LocalDate", |m, a| {
        plus_months(m, a, 1)
    }),
    instance(Day, "plusYears", "long", "java.time.LocalDate", |m, a| {
        plus_months(m, a, 12)
    }),
    instance(Day, "minusDays", "long", "java.time.LocalDate", |m, a| {
        plus_days(m, a, -1)
    }),
    instance(Day, "minusWeeks", "long", "java.time.LocalDate", |m, a| {
        plus_days(m, a, -7)
    }),
    instance(Day, "minusMonths", "long", "java.time.LocalDate", |m, a| {
        plus_months(m, a, -1)
    }),
    instance(Day, "minusYears", "long", "java.time.LocalDate", |m, a| {
        plus_months(m, a, -12)
    }),
    instance(Day, "withDayOfMonth", "int", "java.time.LocalDate", |m, a| {
        let (year, month, _) = civil(day(a, 0)?);
        match checked(year, month, a.int(1)?.into()) {
            Ok(days) => made(m, days),
            Err(wrong) => m.throw(Class::DateTime, wrong),
        }
    }),
    instance(Day, "withMonth", "int", "java.time.LocalDate", |m, a| {
        let (year, _, day) = civil(day(a, 0)?);
        pinned(m, year, a.int(1)?.into(), day)
    }),
    instance(Day, "withYear", "int", "java.time.LocalDate", |m, a| {
        let (_, month, day) = civil(day(a, 0)?);
        pinned(m, a.int(1)?.into(), month, day)
    }),
    instance(Day, "isBefore", "java.time.LocalDate", "boolean", |m, a| {
        Ok(Value::boolean(day(a, 0)? < other(m, a, 1)?))
    }),
    instance(Day, "isAfter", "java.time.LocalDate", "boolean", |m, a| {
        Ok(Value::boolean(day(a, 0)? > other(m, a, 1)?))
    }),
    instance(Day, "isEqual", "java.time.LocalDate", "boolean", |m, a| {
        Ok(Value::boolean(day(a, 0)? == other(m, a, 1)?))
    }),
    instance(Day, "compareTo", "java.time.LocalDate", "int", |m, a| {
        let ((year, month, day), (y, mo, d)) = (civil(day(a, 0)?), civil(other(m, a, 1)?));
        let differences = [year - y, month - mo, day - d];
        number(differences.into_iter().find(|difference| *difference != 0).unwrap_or(0))
    }),
    instance(
        Day,
        "until",
        "java.time.LocalDate,java.time.temporal.ChronoUnit",
        "long",
        |m, a| between(m, &[a.value(2), a.value(0), a.value(1)]),
    ),
    fixed(DayOfWeek, "of", "int", "java.time.DayOfWeek", |m, a| {
        match a.int(0)? {
            day @ 1..=7 => Ok(enum_value(DayOfWeek, i64::from(day) - 1)),
            day => m.throw(Class::DateTime, format!("Invalid value for DayOfWeek: {day}")),
        }
    }),
    fixed(Month, "of", "int", "java.time.Month", |m, a| match a.int(0)? {
        month @ 1..=12 => Ok(enum_value(Month, i64::from(month) - 1)),
        month => m.throw(Class::DateTime, format!("Invalid value for MonthOfYear: {month}")),
    }),
    instance(DayOfWeek, "getValue", "", "int", |_, a| Ok(Value::int(ordinal(a)? + 1))),
    instance(Month, "getValue", "", "int", |_, a| Ok(Value::int(ordinal(a)? + 1))),
    instance(DayOfWeek, "ordinal", "", "int", |_, a| Ok(Value::int(ordinal(a)?))),
    instance(Month, "ordinal", "", "int", |_, a| Ok(Value::int(ordinal(a)?))),
    instance(DayOfWeek, "name", "", "String", |m, a| m.text_of(&a.value(0))),
    instance(Month, "name", "", "String", |m, a| m.text_of(&a.value(0))),
    instance(DayOfWeek, "plus", "long", "java.time.DayOfWeek", |_, a| {
        let moved = (i64::from(ordinal(a)?) + a.long(1)? % 7).rem_euclid(7);
        Ok(enum_value(DayOfWeek, moved))
    }),
    instance(Month, "plus", "long", "java.time.Month", |_, a| {
        let moved = (i64::from(ordinal(a)?) + a.long(1)? % 12).rem_euclid(12);
        Ok(enum_value(Month, moved))
    }),
    instance(
        ChronoUnit,
        "between",
        "java.time.LocalDate,java.time.LocalDate",
        "long",
        between,
    ),
];

pub(super) fn number(value: i64) -> Run<Value> {
    Ok(Value::int(i32::try_from(value).unwrap_or(0)))
}

fn enum_value(class: Class, ordinal: i64) -> Value {
    Value::plain(Plain::Constant(class, u8::try_from(ordinal).unwrap_or(0)))
}

/// A constant of an enum.
pub(super) fn constant(class: Class, name: &str) -> Option<Value> {
    let at = match class {
        Class::DayOfWeek => DAYS.iter().position(|day| *day == name),
        Class::Month => MONTHS.iter().position(|month| *month == name),
        _ => UNITS.iter().position(|(unit, _)| *unit == name),
    };
    at.and_then(|at| i64::try_from(at).ok()).map(|at| enum_value(class, at))
}

fn ordinal(a: &[Value]) -> Run<i32> {
    match a.plain(0)? {
        Plain::Constant(_, ordinal) => Ok((*ordinal).into()),
        _ => Machine::fault("a constant was expected"),
    }
}

/// The unit that is the receiver.
pub(super) fn unit(a: &[Value]) -> Run<Unit> {
    Ok(
        match constant_text(ChronoUnit, u8::try_from(ordinal(a)?).unwrap_or(0)) {
            "Nanos" => Unit::Nanos(1),
            "Millis" => Unit::Nanos(1_000_000),
            "Seconds" => Unit::Nanos(1_000_000_000),
            "Minutes" => Unit::Nanos(60_000_000_000),
            "Hours" => Unit::Nanos(3_600_000_000_000),
            "Days" => Unit::Days(1),
            "Weeks" => Unit::Days(7),
            "Months" => Unit::Months(1),
            _ => Unit::Months(12),
        },
    )
}

fn between(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    let (from, to) = (other(m, a, 1)?, other(m, a, 2)?);
    match unit(a)? {
        Unit::Days(days) => Ok(Value::long((to - from) / days)),
        Unit::Months(months) => {
            // Months and days in one number, so that a part of a month does not count.
            let packed = |days: i64| {
                let (year, month, day) = civil(days);
                (year * 12 + month - 1) * 32 + day
            };
            Ok(Value::long((packed(to) - packed(from)) / 32 / months))
        }
        Unit::Nanos(_) => {
            let unit = m.text_of(&a.value(0))?;
            let shown = match &unit {
                Value::Text(units) => String::from_utf16_lossy(units),
                _ => String::new(),
            };
            m.throw(Class::DateTime, format!("Unsupported unit: {shown}"))
        }
    }
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of a year, month and day, or Java's words on why there is none.
fn checked(year: i64, month: i64, day: i64) -> Result<i64, String> {
    let range =
        |what: &str, range: &str, value: i64| format!("Invalid value for {what} (valid values {range}): {value}");
    if year.abs() > YEAR_MAX {
        return Err(range("Year", "-999999999 - 999999999", year));
    }
    if !(1..=12).contains(&month) {
        return Err(range("MonthOfYear", "1 - 12", month));
    }
    if !(1..=31).contains(&day) {
        return Err(range("DayOfMonth", "1 - 28/31", day));
    }
    if day > month_length(year, month) {
        if day == 29 {
            return Err(format!("Invalid date 'February 29' as '{year}' is not a leap year"));
        }
        let month = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).copied();
        return Err(format!("Invalid date '{} {day}'", month.unwrap_or_default()));
    }
    Ok(days_of(year, month, day))
}

/// The day of a text such as `2020-02-29`, or the end of Java's message.
fn parsed(written: &str) -> Result<i64, String> {
    let at = |index: usize| format!(" at index {index}");
    let bytes = written.as_bytes();
    let sign = bytes.first().copied().filter(|byte| matches!(byte, b'+' | b'-'));
    let start = usize::from(sign.is_some());
    let digits = bytes
        .iter()
        .skip(start)
        .take(10)
        .take_while(|byte| byte.is_ascii_digit());
    let width = digits.count();
    let fits = match sign {
        Some(b'+') => width > 4,
        Some(_) => width >= 4,
        None => width == 4,
    };
    let number = |from: usize, to: usize| written.get(from..to).and_then(|digits| digits.parse::<i64>().ok());
    let year = number(start, start + width).map(|year| if sign == Some(b'-') { -year } else { year });
    let Some(year) = year.filter(|year| fits && (sign != Some(b'-') || *year != 0)) else {
        return Err(at(0));
    };
    let mut place = start + width;
    let mut parts = [0_i64; 2];
    for part in &mut parts {
        if bytes.get(place) != Some(&b'-') {
            return Err(at(place));
        }
        place += 1;
        let two = bytes
            .get(place..place + 2)
            .filter(|two| two.iter().all(u8::is_ascii_digit));
        match two.and_then(|_| number(place, place + 2)) {
            Some(value) => *part = value,
            None => return Err(at(place)),
        }
        place += 2;
    }
    if place < bytes.len() {
        return Err(format!(", unparsed text found at index {place}"));
    }
    let [month, day] = parts;
    checked(year, month, day).map_err(|wrong| format!(": {wrong}"))
}

/// A day, within the years that Java knows.
fn made(m: &mut Machine<'_>, days: i64) -> Run<Value> {
    m.allocate(64)?;
    let (first, last) = (days_of(-YEAR_MAX, 1, 1), days_of(YEAR_MAX, 12, 31));
    if (first..=last).contains(&days) {
        return Ok(Value::plain(Plain::Day(days)));
    }
    m.throw(
        Class::DateTime,
        format!("Invalid value for EpochDay (valid values {first} - {last}): {days}"),
    )
}

fn pinned(m: &mut Machine<'_>, year: i64, month: i64, day: i64) -> Run<Value> {
    let day = day.min(month_length(year, month));
    match checked(year, month, day) {
        Ok(days) => made(m, days),
        Err(wrong) => m.throw(Class::DateTime, wrong),
    }
}

fn day(a: &[Value], at: usize) -> Run<i64> {
    match a.plain(at)? {
        Plain::Day(days) => Ok(*days),
        _ => Machine::fault("a LocalDate was expected"),
    }
}

fn other(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<i64> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => day(a, at),
    }
}

fn plus_days(m: &mut Machine<'_>, a: &[Value], factor: i64) -> Run<Value> {
    let moved = a
        .long(1)?
        .checked_mul(factor)
        .and_then(|more| more.checked_add(day(a, 0).ok()?));
    match moved {
        Some(days) => made(m, days),
        None => m.throw(Class::Arithmetic, "long overflow"),
    }
}

fn plus_months(m: &mut Machine<'_>, a: &[Value], factor: i64) -> Run<Value> {
    let (year, month, day) = civil(day(a, 0)?);
    let months = a
        .long(1)?
        .checked_mul(factor)
        .and_then(|more| more.checked_add(year * 12 + month - 1));
    match months {
        Some(months) => pinned(m, months.div_euclid(12), months.rem_euclid(12) + 1, day),
        None => m.throw(Class::Arithmetic, "long overflow"),
    }
}
