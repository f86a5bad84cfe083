//! `Date`, `UUID`, and Cassandra's `LocalDate` and `Duration`; `InetAddress`.

use md5::{Digest, Md5};

use super::{Arguments, Method, constructor, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{Date, Duration, InetAddress, LocalDate, Uuid};
use crate::days::{DAY_MILLIS, civil, days_of};
use crate::machine::{Machine, Run};
use crate::shown::inet_text;
use crate::value::{Plain, Prim, Value};

pub(super) const METHODS: &[Method] = &[
    constructor(Date, "long", |m, a| date(m, a.long(0)?)),
    constructor(Date, "", |m, _| {
        let now = super::system::now(m);
        date(m, now)
    }),
    instance(Date, "getTime", "", "long", |m, a| Ok(Value::long(millis(m, a, 0)?))),
    instance(Date, "before", "Date", "boolean", |m, a| {
        Ok(Value::boolean(millis(m, a, 0)? < millis(m, a, 1)?))
    }),
    instance(Date, "after", "Date", "boolean", |m, a| {
        Ok(Value::boolean(millis(m, a, 0)? > millis(m, a, 1)?))
    }),
    fixed(Uuid, "nameUUIDFromBytes", "byte[]", "UUID", |m, a| {
        let of = super::collection(m, a, 0)?;
        let bytes = super::buffer::array_bytes(m, of)?;
        m.allocate(64)?;
        let hash = u128::from_be_bytes(Md5::digest(&bytes).into());
        Ok(Value::plain(Plain::Uuid(super::random::versioned(hash, 3))))
    }),
    fixed(Uuid, "fromString", "String", "UUID", |m, a| {
        let written = String::from_utf16_lossy(&text(m, a, 0)?);
        let groups: Vec<&str> = written.split('-').collect();
        let widths = [8, 4, 4, 4, 12];
        let fits = groups.len() == 5 && groups.iter().zip(widths).all(|(group, width)| group.len() == width);
        match u128::from_str_radix(&groups.concat(), 16) {
            Ok(value) if fits => {
                m.allocate(64)?;
                Ok(Value::plain(Plain::Uuid(value)))
            }
            _ => m.throw(Class::IllegalArgument, format!("Invalid UUID string: {written}")),
        }
    }),
    constructor(Uuid, "long,long", |m, a| {
        m.allocate(64)?;
        let half = |value: i64| u128::from(value.cast_unsigned());
        Ok(Value::plain(Plain::Uuid(half(a.long(0)?) << 64 | half(a.long(1)?))))
    }),
    instance(Uuid, "getMostSignificantBits", "", "long", |_, a| {
        Ok(Value::long(half(uuid(a)? >> 64)))
    }),
    instance(Uuid, "getLeastSignificantBits", "", "long", |_, a| {
        Ok(Value::long(half(uuid(a)?)))
    }),
    instance(Uuid, "version", "", "int", |_, a| {
        Ok(Value::int(i32::try_from(uuid(a)? >> 76 & 15).unwrap_or(0)))
    }),
    instance(Uuid, "timestamp", "", "long", |m, a| {
        let value = uuid(a)?;
        if value >> 76 & 15 != 1 {
            return m.throw(Class::Unsupported, "Not a time-based UUID");
        }
        let (low, middle, high) = (value >> 96, value >> 80 & 0xffff, value >> 64 & 0xfff);
        Ok(Value::long(half(high << 48 | middle << 32 | low)))
    }),
    fixed(LocalDate, "fromDaysSinceEpoch", "int", "LocalDate", |m, a| {
        m.allocate(64)?;
        Ok(Value::plain(Plain::LocalDate(a.int(0)?)))
    }),
    fixed(LocalDate, "fromMillisSinceEpoch", "long", "LocalDate", |m, a| {
        m.allocate(64)?;
        match i32::try_from(a.long(0)?.div_euclid(DAY_MILLIS)) {
            Ok(days) => Ok(Value::plain(Plain::LocalDate(days))),
            Err(_) => m.throw(
                Class::IllegalArgument,
                "Date should be in the range [-5877641-06-23; 5881580-07-11]",
            ),
        }
    }),
    fixed(LocalDate, "fromYearMonthDay", "int,int,int", "LocalDate", |m, a| {
        let (year, month, day) = (a.int(0)?, a.int(1)?, a.int(2)?);
        let days = days_of(year.into(), month.into(), day.into());
        m.allocate(64)?;
        match i32::try_from(days) {
            Ok(days) if civil(days.into()) == (year.into(), month.into(), day.into()) => {
                Ok(Value::plain(Plain::LocalDate(days)))
            }
            _ => m.throw(Class::IllegalArgument, "no such day"),
        }
    }),
    instance(LocalDate, "getDaysSinceEpoch", "", "int", |_, a| {
        Ok(Value::int(days(a)?))
    }),
    instance(LocalDate, "getMillisSinceEpoch", "", "long", |_, a| {
        Ok(Value::long(i64::from(days(a)?) * DAY_MILLIS))
    }),
    instance(LocalDate, "getYear", "", "int", |_, a| part(a, |(year, ..)| year)),
    instance(LocalDate, "getMonth", "", "int", |_, a| part(a, |(_, month, _)| month)),
    instance(LocalDate, "getDay", "", "int", |_, a| part(a, |(.., day)| day)),
    instance(Duration, "getMonths", "", "int", |_, a| {
        duration(a, |months, _, _| Prim::Int(months))
    }),
    instance(Duration, "getDays", "", "int", |_, a| {
        duration(a, |_, days, _| Prim::Int(days))
    }),
    instance(Duration, "getNanoseconds", "", "long", |_, a| {
        duration(a, |_, _, nanos| Prim::Long(nanos))
    }),
    fixed(Duration, "newInstance", "int,int,long", "Duration", |m, a| {
        m.allocate(64)?;
        Ok(Value::plain(Plain::Duration {
            months: a.int(0)?,
            days: a.int(1)?,
            nanos: a.long(2)?,
        }))
    }),
    instance(InetAddress, "getHostAddress", "", "String", |m, a| {
        match a.plain(0)? {
            Plain::Inet(address) => {
                let shown = inet_text(*address);
                m.string(&shown)
            }
            _ => Machine::fault("an address was expected"),
        }
    }),
];

/// A date of so many milliseconds since 1970-01-01 UTC.
pub(super) fn date(m: &mut Machine<'_>, millis: i64) -> Run<Value> {
    m.allocate(64)?;
    Ok(Value::plain(Plain::Date(millis)))
}

pub(super) fn millis(m: &mut Machine<'_>, a: &[Value], at: usize) -> Run<i64> {
    match a.value(at) {
        Value::Null => m.throw_with(Class::NullPointer, None),
        _ => match a.plain(at)? {
            Plain::Date(millis) => Ok(*millis),
            _ => Machine::fault("a Date was expected"),
        },
    }
}

fn uuid(a: &[Value]) -> Run<u128> {
    match a.plain(0)? {
        Plain::Uuid(value) => Ok(*value),
        _ => Machine::fault("a UUID was expected"),
    }
}

fn half(value: u128) -> i64 {
    u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0).cast_signed()
}

fn days(a: &[Value]) -> Run<i32> {
    match a.plain(0)? {
        Plain::LocalDate(days) => Ok(*days),
        _ => Machine::fault("a LocalDate was expected"),
    }
}

fn part(a: &[Value], of: impl Fn((i64, i64, i64)) -> i64) -> Run<Value> {
    let value = of(civil(days(a)?.into()));
    Ok(Value::int(i32::try_from(value).unwrap_or(0)))
}

fn duration(a: &[Value], of: impl Fn(i32, i32, i64) -> Prim) -> Run<Value> {
    match a.plain(0)? {
        Plain::Duration { months, days, nanos } => Ok(Value::Prim(of(*months, *days, *nanos))),
        _ => Machine::fault("a Duration was expected"),
    }
}
