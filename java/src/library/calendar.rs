//! `Calendar` and `TimeZone`. A calendar is Julian before 15 October 1582, as Java's is; zones have fixed offsets.

use super::day::number;
use super::time::{date, millis};
use super::{Arguments, Method, constructor, fixed, instance, ordering};
use crate::class::Class;
use crate::class::Class::{Calendar as Class_, GregorianCalendar as Gregorian, TimeZone};
use crate::days::{hybrid_days, month_days};
use crate::machine::{Machine, Run};
use crate::value::{Calendar, Object, Plain, Value, Zone};

const FIELDS: [&str; 17] = [
    "ERA",
    "YEAR",
    "MONTH",
    "WEEK_OF_YEAR",
    "WEEK_OF_MONTH",
    "DATE",
    "DAY_OF_YEAR",
    "DAY_OF_WEEK",
    "DAY_OF_WEEK_IN_MONTH",
    "AM_PM",
    "HOUR",
    "HOUR_OF_DAY",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "ZONE_OFFSET",
    "DST_OFFSET",
];
const MONTHS: [&str; 13] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
    "UNDECIMBER",
];
const WEEKDAYS: [&str; 7] = [
    "SUNDAY",
    "MONDAY",
    "TUESDAY",
    "WEDNESDAY",
    "THURSDAY",
    "FRIDAY",
    "SATURDAY",
];

/// A constant of the class.
pub(super) fn field(name: &str) -> Option<i32> {
    let at = |names: &[&str], first: usize| names.iter().position(|known| *known == name).map(|at| at + first);
    let found = at(&FIELDS, 0).or_else(|| at(&MONTHS, 0)).or_else(|| at(&WEEKDAYS, 1));
    let found = found.or(match name {
        "DAY_OF_MONTH" => Some(5),
        "AM" | "BC" => Some(0),
        "PM" | "AD" => Some(1),
        _ => None,
    });
    found.and_then(|at| i32::try_from(at).ok())
}

pub(super) const METHODS: &[Method] = &[
    fixed(Class_, "getInstance", "", "Calendar", |m, _| now(m, utc())),
    fixed(Class_, "getInstance", "TimeZone", "Calendar", |m, a| {
        let zone = zone(m, a, 0)?;
        now(m, zone)
    }),
    constructor(Gregorian, "", |m, _| now(m, utc())),
    constructor(Gregorian, "TimeZone", |m, a| {
        let zone = zone(m, a, 0)?;
        now(m, zone)
    }),
    constructor(Gregorian, "int,int,int", |m, a| of_fields(m, a, 0)),
    constructor(Gregorian, "int,int,int,int,int", |m, a| of_fields(m, a, 0)),
    constructor(Gregorian, "int,int,int,int,int,int", |m, a| of_fields(m, a, 0)),
    instance(Class_, "setTime", "Date", "void", |m, a| {
        let millis = millis(m, a, 1)?;
        set_millis(m, a, millis)
    }),
    instance(Class_, "setTimeInMillis", "long", "void", |m, a| {
        set_millis(m, a, a.long(1)?)
    }),
    instance(Class_, "getTime", "", "Date", |m, a| {
        let millis = calendar(m, a)?.millis();
        date(m, millis)
    }),
    instance(Class_, "getTimeInMillis", "", "long", |m, a| {
        Ok(Value::long(calendar(m, a)?.millis()))
    }),
    instance(Class_, "toInstant", "", "java.time.Instant", |m, a| {
        let millis = calendar(m, a)?.millis();
        let nanos = u32::try_from(millis.rem_euclid(1000) * 1_000_000).unwrap_or(0);
        Ok(Value::plain(Plain::Instant {
            seconds: millis.div_euclid(1000),
            nanos,
        }))
    }),
    instance(Class_, "get", "int", "int", |m, a| {
        let field = a.int(1)?;
        let calendar = calendar(m, a)?;
        calendar.normalize();
        match calendar.get(field) {
            Some(value) => number(value),
            None => no_field(m, field),
        }
    }),
    instance(Class_, "set", "int,int", "void", |m, a| {
        let (field, value) = (a.int(1)?, a.int(2)?);
        if calendar(m, a)?.set(field, value.into()) {
            Ok(Value::Null)
        } else {
            left_out(m, "sets", field)
        }
    }),
    instance(Class_, "set", "int,int,int", "void", set_all),
    instance(Class_, "set", "int,int,int,int,int", "void", set_all),
    instance(Class_, "set", "int,int,int,int,int,int", "void", set_all),
    instance(Class_, "add", "int,int", "void", |m, a| {
        let (field, amount) = (a.int(1)?, a.int(2)?);
        if calendar(m, a)?.add(field, amount.into()) {
            Ok(Value::Null)
        } else {
            left_out(m, "adds to", field)
        }
    }),
    instance(Class_, "getActualMaximum", "int", "int", |m, a| {
        let field = a.int(1)?;
        let calendar = calendar(m, a)?;
        calendar.normalize();
        let [year, month, _] = calendar.date;
        match field {
            2 => Ok(Value::int(11)),
            5 => number(month_days(year, month)),
            6 => number(hybrid_days(year + 1, 1, 1, 1) - hybrid_days(year, 1, 1, 1)),
            7 => Ok(Value::int(7)),
            11 => Ok(Value::int(23)),
            12 | 13 => Ok(Value::int(59)),
            14 => Ok(Value::int(999)),
            _ => left_out(m, "knows the maximum of", field),
        }
    }),
    instance(Class_, "clear", "", "void", |m, a| {
        let calendar = calendar(m, a)?;
        calendar.date = [1970, 0, 1];
        calendar.time = [0; 4];
        calendar.is_stale = true;
        Ok(Value::Null)
    }),
    instance(Class_, "getTimeZone", "", "TimeZone", |m, a| {
        Ok(Value::plain(Plain::Zone(calendar(m, a)?.zone.clone())))
    }),
    instance(Class_, "setTimeZone", "TimeZone", "void", |m, a| {
        let zone = zone(m, a, 1)?;
        let calendar = calendar(m, a)?;
        calendar.zone = zone;
        // Fields that were set keep their values; the others follow the zone.
        if !calendar.is_stale {
            calendar.spread();
        }
        Ok(Value::Null)
    }),
    instance(Class_, "getFirstDayOfWeek", "", "int", |_, _| Ok(Value::int(1))),
    instance(Class_, "getMinimalDaysInFirstWeek", "", "int", |_, _| Ok(Value::int(1))),
    instance(Class_, "before", "Object", "boolean", |m, a| {
        let order = compared(m, a)?;
        Ok(Value::boolean(order == Some(std::cmp::Ordering::Less)))
    }),
    instance(Class_, "after", "Object", "boolean", |m, a| {
        let order = compared(m, a)?;
        Ok(Value::boolean(order == Some(std::cmp::Ordering::Greater)))
    }),
    instance(Class_, "compareTo", "Calendar", "int", |m, a| match compared(m, a)? {
        Some(order) => Ok(ordering(order)),
        None => m.throw_with(Class::NullPointer, None),
    }),
    fixed(TimeZone, "getTimeZone", "String", "TimeZone", |m, a| {
        let id = String::from_utf16_lossy(&super::text(m, a, 0)?);
        m.allocate(64)?;
        match zone_of(&id) {
            Some(zone) => Ok(Value::plain(Plain::Zone(zone))),
            None => m.throw(
                Class::Unsupported,
                format!("Helenus knows no time zone {id} in a function's body, only UTC and GMT with an offset"),
            ),
        }
    }),
    fixed(TimeZone, "getDefault", "", "TimeZone", |_, _| {
        Ok(Value::plain(Plain::Zone(utc())))
    }),
    instance(TimeZone, "getID", "", "String", |m, a| {
        let zone = zone(m, a, 0)?;
        m.string(&zone.id)
    }),
    instance(TimeZone, "getRawOffset", "", "int", |m, a| {
        let zone = zone(m, a, 0)?;
        Ok(Value::int(zone.offset_seconds * 1000))
    }),
    instance(TimeZone, "getOffset", "long", "int", |m, a| {
        let zone = zone(m, a, 0)?;
        Ok(Value::int(zone.offset_seconds * 1000))
    }),
];

/// The zone of a body that names none.
pub(super) fn utc() -> Zone {
    Zone {
        id: "Etc/UTC".to_owned(),
        offset_seconds: 0,
    }
}

/// A zone without rules: UTC, or GMT with an offset as in `GMT+2`, `GMT+02:00` and `GMT-0330`.
pub(super) fn zone_of(id: &str) -> Option<Zone> {
    if matches!(id, "UTC" | "GMT" | "Etc/UTC" | "Etc/GMT" | "UCT" | "Zulu") {
        let (id, offset_seconds) = (id.to_owned(), 0);
        return Some(Zone { id, offset_seconds });
    }
    let offset = id.strip_prefix("GMT")?;
    let sign = match offset.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = offset.get(1..)?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 && matches!(hours.len(), 1 | 2) => (hours, minutes),
        None if matches!(digits.len(), 1 | 2) => (digits, "0"),
        None if matches!(digits.len(), 3 | 4) => digits.split_at_checked(digits.len() - 2)?,
        _ => return None,
    };
    let of = |digits: &str, max: i32| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|value| is_number && *value <= max)
    };
    let (hours, minutes) = (of(hours, 23)?, of(minutes, 59)?);
    let sign_text = if sign < 0 { '-' } else { '+' };
    let id = if hours == 0 && minutes == 0 {
        "GMT".to_owned()
    } else {
        format!("GMT{sign_text}{hours:02}:{minutes:02}")
    };
    Some(Zone {
        id,
        offset_seconds: sign * (hours * 3600 + minutes * 60),
    })
}

pub(super) fn zone(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<Zone> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => match a.plain(at)? {
            Plain::Zone(zone) => Ok(zone.clone()),
            _ => Machine::fault("a TimeZone was expected"),
        },
    }
}

fn now(m: &mut Machine<'_>, zone: Zone) -> Run<Value> {
    let calendar = Calendar::at(super::system::now(m), zone);
    m.make(Object::Calendar(calendar))
}

fn calendar<'m>(m: &'m mut Machine<'_>, a: &[Value]) -> Run<&'m mut Calendar> {
    m.step(4)?;
    match m.object_mut(a.handle(0)?)? {
        Object::Calendar(calendar) => Ok(calendar),
        _ => Machine::fault("a Calendar was expected"),
    }
}

fn set_millis(m: &mut Machine<'_>, a: &[Value], millis: i64) -> Run<Value> {
    let calendar = calendar(m, a)?;
    *calendar = Calendar::at(millis, calendar.zone.clone());
    Ok(Value::Null)
}

/// The fields that the arguments from `first` on set: year, month, day, hour, minute, second.
const IN_ORDER: [i32; 6] = [1, 2, 5, 11, 12, 13];

fn set_all(m: &mut Machine<'_>, a: &[Value]) -> Run<Value> {
    for (at, field) in (1..a.len()).zip(IN_ORDER) {
        let value = a.int(at)?;
        calendar(m, a)?.set(field, value.into());
    }
    Ok(Value::Null)
}

fn of_fields(m: &mut Machine<'_>, a: &[Value], first: usize) -> Run<Value> {
    let mut calendar = Calendar::at(0, utc());
    for (at, field) in (first..a.len()).zip(IN_ORDER) {
        calendar.set(field, a.int(at)?.into());
    }
    calendar.normalize();
    m.make(Object::Calendar(calendar))
}

fn compared(m: &mut Machine<'_>, a: &[Value]) -> Run<Option<std::cmp::Ordering>> {
    let own = calendar(m, a)?.millis();
    match a.get(1) {
        Some(Value::Ref(other)) => match m.object_mut(*other)? {
            Object::Calendar(other) => Ok(Some(own.cmp(&other.millis()))),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn no_field(m: &mut Machine<'_>, field: i32) -> Run<Value> {
    let count = FIELDS.len();
    m.throw(
        Class::ArrayIndex,
        format!("Index {field} out of bounds for length {count}"),
    )
}

fn left_out(m: &mut Machine<'_>, does: &str, field: i32) -> Run<Value> {
    match usize::try_from(field).ok().and_then(|at| FIELDS.get(at)) {
        Some(name) => m.throw(
            Class::Unsupported,
            format!("No calendar of Helenus {does} {name} in a function's body"),
        ),
        None => no_field(m, field),
    }
}
