//! Durations: months, days and nanoseconds, each a zigzag vint; all of one sign. They sort only by their bytes.

use super::Invalid;
use super::vint;
use std::fmt::Write as _;

/// A duration; its parts have one sign, since a month has no fixed number of days nor a day of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Duration {
    /// Months, 12 a year.
    pub months: i32,
    /// Days, 7 a week.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

const NANOS_MICRO: i64 = 1_000;
const NANOS_MILLI: i64 = 1_000_000;
const NANOS_SECOND: i64 = 1_000_000_000;
const NANOS_MINUTE: i64 = 60 * NANOS_SECOND;
const NANOS_HOUR: i64 = 60 * NANOS_MINUTE;

impl Duration {
    /// The value of wire bytes.
    ///
    /// # Errors
    /// As Cassandra validates: too few bytes, parts out of range, mixed signs.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let short = || Invalid::Length {
            expected: "at least 3 bytes for a duration",
            found: bytes.len(),
        };
        if bytes.len() < 3 {
            return Err(short());
        }
        let mut input = bytes;
        let mut next = || vint::read_signed(&mut input).ok_or_else(short);
        let (months, days, nanoseconds) = (next()?, next()?, next()?);
        let months = i32::try_from(months).map_err(|_| Invalid::DurationRange("months", months))?;
        let days = i32::try_from(days).map_err(|_| Invalid::DurationRange("days", days))?;
        let above = months >= 0 && days >= 0 && nanoseconds >= 0;
        let below = months <= 0 && days <= 0 && nanoseconds <= 0;
        if above || below {
            Ok(Self {
                months,
                days,
                nanoseconds,
            })
        } else {
            Err(Invalid::DurationSigns(months, days, nanoseconds))
        }
    }

    /// Its wire bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12);
        vint::write_signed(self.months.into(), &mut bytes);
        vint::write_signed(self.days.into(), &mut bytes);
        vint::write_signed(self.nanoseconds, &mut bytes);
        bytes
    }

    /// Reads `1y2mo3d`, `P1Y2M3DT4H`, `P2W` and `P0001-02-03T04:05:06`, each perhaps with a minus before it.
    ///
    /// # Errors
    /// In Cassandra's words.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let bad = || Invalid::DurationText(rest.to_owned());
        let parts = match rest.strip_prefix('P') {
            Some(body) if body.ends_with('W') => iso_weeks(body).ok_or_else(bad)?,
            Some(body) if body.contains('-') => iso_alternative(body).ok_or_else(bad)?,
            Some(body) => iso(body).ok_or_else(bad)?,
            None => standard(rest).ok_or_else(bad)?,
        };
        Builder::build(&parts, rest).map(|duration| if negative { duration.negated() } else { duration })
    }

    /// The negated duration.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            months: self.months.wrapping_neg(),
            days: self.days.wrapping_neg(),
            nanoseconds: self.nanoseconds.wrapping_neg(),
        }
    }
}

/// `1y2mo25d5h6m7s8ms9us10ns`; nothing at all for zero.
impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.months < 0 || self.days < 0 || self.nanoseconds < 0 {
            f.write_char('-')?;
        }
        let months = self.months.unsigned_abs();
        let nanos = self.nanoseconds.unsigned_abs();
        let unit = |nanos: i64| nanos.unsigned_abs();
        let parts = [
            (u64::from(months / 12), "y"),
            (u64::from(months % 12), "mo"),
            (u64::from(self.days.unsigned_abs()), "d"),
            (nanos / unit(NANOS_HOUR), "h"),
            (nanos % unit(NANOS_HOUR) / unit(NANOS_MINUTE), "m"),
            (nanos % unit(NANOS_MINUTE) / unit(NANOS_SECOND), "s"),
            (nanos % unit(NANOS_SECOND) / unit(NANOS_MILLI), "ms"),
            (nanos % unit(NANOS_MILLI) / unit(NANOS_MICRO), "us"),
            (nanos % unit(NANOS_MICRO), "ns"),
        ];
        for (count, unit) in parts {
            if count != 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

/// A unit: its rank, its name, and the field that it adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Years,
    Months,
    Weeks,
    Days,
    Hours,
    Minutes,
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Years => "years",
            Self::Months => "months",
            Self::Weeks => "weeks",
            Self::Days => "days",
            Self::Hours => "hours",
            Self::Minutes => "minutes",
            Self::Seconds => "seconds",
            Self::Millis => "milliseconds",
            Self::Micros => "microseconds",
            Self::Nanos => "nanoseconds",
        }
    }

    /// The name of a unit in the standard format. `m` is minutes in either case, `mo` months.
    fn of(symbol: &str) -> Option<Self> {
        Some(match symbol.to_lowercase().as_str() {
            "y" => Self::Years,
            "mo" => Self::Months,
            "w" => Self::Weeks,
            "d" => Self::Days,
            "h" => Self::Hours,
            "m" => Self::Minutes,
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" | "µs" | "μs" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return None,
        })
    }
}

type Part<'a> = (&'a str, Unit);

/// `1y2mo…`; an empty text is invalid.
fn standard(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (symbol, tail) = tail.split_at_checked(letters)?;
        if number.is_empty() {
            return None;
        }
        parts.push((number, Unit::of(symbol)?));
        rest = tail;
    }
    Some(parts)
}

/// Numbers before designators, in their order, each at most once.
fn designated<'a>(text: &'a str, designators: &[(char, Unit)], parts: &mut Vec<Part<'a>>) -> Option<()> {
    let mut rest = text;
    let mut left = designators.iter();
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let designator = tail.chars().next()?;
        let (_, unit) = left.find(|(known, _)| *known == designator)?;
        if number.is_empty() {
            return None;
        }
        parts.push((number, *unit));
        rest = tail.get(designator.len_utf8()..)?;
    }
    Some(())
}

/// `1Y2M3DT4H5M6S`
fn iso(body: &str) -> Option<Vec<Part<'_>>> {
    let (day, time) = body.split_once('T').unwrap_or((body, ""));
    let mut parts = Vec::new();
    designated(
        day,
        &[('Y', Unit::Years), ('M', Unit::Months), ('D', Unit::Days)],
        &mut parts,
    )?;
    designated(
        time,
        &[('H', Unit::Hours), ('M', Unit::Minutes), ('S', Unit::Seconds)],
        &mut parts,
    )?;
    Some(parts)
}

/// `2W`
fn iso_weeks(body: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    designated(body, &[('W', Unit::Weeks)], &mut parts)?;
    Some(parts)
}

/// `0001-02-03T04:05:06`
fn iso_alternative(body: &str) -> Option<Vec<Part<'_>>> {
    let (day, time) = body.split_once('T')?;
    let units = [
        (Unit::Years, 4),
        (Unit::Months, 2),
        (Unit::Days, 2),
        (Unit::Hours, 2),
        (Unit::Minutes, 2),
        (Unit::Seconds, 2),
    ];
    let numbers: Vec<&str> = day.split('-').chain(time.split(':')).collect();
    if day.split('-').count() != 3 || numbers.len() != units.len() {
        return None;
    }
    numbers
        .into_iter()
        .zip(units)
        .map(|(number, (unit, width))| {
            (number.len() == width && number.bytes().all(|b| b.is_ascii_digit())).then_some((number, unit))
        })
        .collect()
}

/// Sums up parts; rejects parts that are out of order, repeated or too large.
#[derive(Default)]
struct Builder {
    months: i64,
    days: i64,
    nanoseconds: i64,
}

impl Builder {
    fn build(parts: &[Part<'_>], text: &str) -> Result<Duration, Invalid> {
        let mut builder = Self::default();
        let mut last: Option<Unit> = None;
        for (number, unit) in parts {
            match last {
                Some(last) if last == *unit => return Err(Invalid::DurationTwice(unit.name())),
                Some(last) if last > *unit => {
                    // Cassandra's message has the two names in the opposite order from what one expects.
                    return Err(Invalid::DurationOrder(last.name(), unit.name()));
                }
                _ => {}
            }
            last = Some(*unit);
            builder.add(number, *unit)?;
        }
        let bad = |_| Invalid::DurationText(text.to_owned());
        Ok(Duration {
            months: i32::try_from(builder.months).map_err(bad)?,
            days: i32::try_from(builder.days).map_err(bad)?,
            nanoseconds: builder.nanoseconds,
        })
    }

    fn add(&mut self, number: &str, unit: Unit) -> Result<(), Invalid> {
        let (total, each, limit, name) = match unit {
            Unit::Years => (&mut self.months, 12, i64::from(i32::MAX), "months"),
            Unit::Months => (&mut self.months, 1, i64::from(i32::MAX), "months"),
            Unit::Weeks => (&mut self.days, 7, i64::from(i32::MAX), "days"),
            Unit::Days => (&mut self.days, 1, i64::from(i32::MAX), "days"),
            Unit::Hours => (&mut self.nanoseconds, NANOS_HOUR, i64::MAX, "nanoseconds"),
            Unit::Minutes => (&mut self.nanoseconds, NANOS_MINUTE, i64::MAX, "nanoseconds"),
            Unit::Seconds => (&mut self.nanoseconds, NANOS_SECOND, i64::MAX, "nanoseconds"),
            Unit::Millis => (&mut self.nanoseconds, NANOS_MILLI, i64::MAX, "nanoseconds"),
            Unit::Micros => (&mut self.nanoseconds, NANOS_MICRO, i64::MAX, "nanoseconds"),
            Unit::Nanos => (&mut self.nanoseconds, 1, i64::MAX, "nanoseconds"),
        };
        *total = number
            .parse::<i64>()
            .ok()
            .and_then(|count| count.checked_mul(each)?.checked_add(*total))
            .filter(|total| *total <= limit)
            .ok_or(Invalid::DurationTotal(name))?;
        Ok(())
    }
}

pub(super) fn validate_duration(bytes: &[u8]) -> Result<(), Invalid> {
    Duration::decode(bytes).map(|_| ())
}

pub(super) fn parse_duration(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Duration::parse(text).map(Duration::encode)
}
