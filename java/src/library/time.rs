//! `Date`, `UUID`, and Cassandra's `LocalDate` and `Duration`; `InetAddress`.

use md5::{Digest, Md5};

use super::{Arguments, Method, constructor, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{Date, Duration, InetAddress, LocalDate, Uuid};
use crate::run::text::inet_text;
use crate::run::{Machine, Run};
use crate::value::{Plain, Prim, Value};

pub(super) const DAY_MILLIS: i64 = 86_400_000;

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

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    // Years start on 1 March, so that a year's last day is the leap day; eras are 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The first day of the Gregorian calendar, 15 October 1582.
const GREGORIAN: i64 = -141_427;
/// Days of four Julian years.
const OLYMPIAD: i64 = 1_461;

/// As [`civil`], Julian before 15 October 1582.
pub(super) fn hybrid_civil(days: i64) -> (i64, i64, i64) {
    if days >= GREGORIAN {
        return civil(days);
    }
    // Counted from 1 March of the Julian year 0.
    let shifted = days + 719_470;
    let (era, day_of_era) = (shifted.div_euclid(OLYMPIAD), shifted.rem_euclid(OLYMPIAD));
    let year_of_era = (day_of_era - day_of_era / 1_460) / 365;
    let day_of_year = day_of_era - year_of_era * 365;
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 4 + i64::from(month <= 2), month, day)
}

/// The days since 1970-01-01 of a day, which is `day - first` days behind day `first` of the month; Julian before 15
/// October 1582.
pub(super) fn hybrid_days(year: i64, month: i64, first: i64, day: i64) -> i64 {
    // Years beyond these are beyond all timestamps.
    let year = year.clamp(-300_000_000, 300_000_000);
    let start = days_of(year, month, first);
    let gregorian = start.saturating_add(day.saturating_sub(first));
    if gregorian >= GREGORIAN || start >= GREGORIAN {
        return gregorian;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + first - 1;
    let julian = shifted * 365 + shifted.div_euclid(4) + day_of_year - 719_470;
    julian.saturating_add(day.saturating_sub(first))
}

pub(crate) fn local_date_text(days: i32) -> String {
    let (year, month, day) = civil(days.into());
    format!("{year}-{month:02}-{day:02}")
}

/// `Wed Jan 01 00:00:00 UTC 2020`
pub(crate) fn date_text(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, rest) = (millis.div_euclid(DAY_MILLIS), millis.rem_euclid(DAY_MILLIS));
    let (year, month, day) = hybrid_civil(days);
    // Years before the first are told without their era.
    let year = if year > 0 { year } else { 1 - year };
    let named = |names: &[&'static str], at: i64| {
        usize::try_from(at)
            .ok()
            .and_then(|at| names.get(at).copied())
            .unwrap_or("")
    };
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    let (weekday, month) = (named(&DAYS, days.rem_euclid(7)), named(&MONTHS, month - 1));
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
}

/// `1y2mo3d4h5m6s7ms8us9ns`
pub(crate) fn duration_text(months: i32, days: i32, nanos: i64) -> String {
    let mut text = if months < 0 || days < 0 || nanos < 0 {
        "-".to_owned()
    } else {
        String::new()
    };
    let mut push = |amount: u64, unit: &str| {
        if amount > 0 {
            text.push_str(&format!("{amount}{unit}"));
        }
    };
    let (months, days, mut rest) = (
        u64::from(months.unsigned_abs()),
        u64::from(days.unsigned_abs()),
        nanos.unsigned_abs(),
    );
    push(months / 12, "y");
    push(months % 12, "mo");
    push(days, "d");
    for (unit, size) in [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ] {
        push(rest / size, unit);
        rest %= size;
    }
    text
}
