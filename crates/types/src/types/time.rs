//! Points in time: date (u32 days, 1970-01-01 is 2³¹), time (ns of the day), timestamp (ms since 1970-01-01 UTC).
//!
//! Calendars here are proleptic Gregorian with a year 0. They cover the whole range of the types, which is wider than
//! that of any library.

use super::Invalid;
use super::number::validate_width;

/// Days of the date type at 1970-01-01.
pub const DATE_EPOCH: u32 = 1 << 31;
/// Milliseconds of a day.
pub const DAY_MILLIS: i64 = 86_400_000;
/// Nanoseconds of a day.
pub const DAY_NANOS: i64 = 86_400_000_000_000;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Astronomical: 0 is 1 BC.
    pub year: i64,
    /// 1 … 12.
    pub month: u8,
    /// 1 … 31.
    pub day: u8,
}

impl Civil {
    /// The day `days` after 1970-01-01.
    #[must_use]
    pub fn from_days(days: i64) -> Self {
        // Years of this computation start on 1 March, so that a year's last day is the leap day; eras are 400 years.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: u8::try_from(month).unwrap_or(1),
            day: u8::try_from(day).unwrap_or(1),
        }
    }

    /// Days after 1970-01-01.
    #[must_use]
    pub fn to_days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The number of days in its month.
    #[must_use]
    pub fn month_length(self) -> u8 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

/// `+10000-01-01`, `-0001-01-01`: Java's `LocalDate.toString`.
impl std::fmt::Display for Civil {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_year(f, self.year)?;
        write!(f, "-{:02}-{:02}", self.month, self.day)
    }
}

fn write_year(f: &mut impl std::fmt::Write, year: i64) -> std::fmt::Result {
    match year {
        10_000.. => write!(f, "+{year}"),
        0..10_000 => write!(f, "{year:04}"),
        _ => write!(f, "-{:04}", -year),
    }
}

pub(super) fn validate_date(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 4, false, "4 byte long for date")
}

pub(super) fn validate_time(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 8, false, "8 byte long for time")
}

pub(super) fn validate_timestamp(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 8, true, "8 or 0 byte long for date")
}

/// Days of a date value since 1970-01-01; `None` if it does not have 4 bytes.
#[must_use]
pub fn decode_date(bytes: &[u8]) -> Option<i64> {
    let days = u32::from_be_bytes(bytes.try_into().ok()?);
    Some(i64::from(days) - i64::from(DATE_EPOCH))
}

/// The date value of days since 1970-01-01; `None` if out of range.
#[must_use]
pub fn encode_date(days: i64) -> Option<[u8; 4]> {
    u32::try_from(days + i64::from(DATE_EPOCH)).ok().map(u32::to_be_bytes)
}

/// `1970-01-01`
#[must_use]
pub fn date_text(days: i64) -> String {
    Civil::from_days(days).to_string()
}

/// `08:12:54.123000000`
#[must_use]
pub fn time_text(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    format!(
        "{:02}:{:02}:{:02}.{:09}",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        nanos % 1_000_000_000
    )
}

/// `2010-01-01T00:00:00.000Z` with the given separator between day and time.
///
/// Java prints the year of the era, so a year before 1 prints like a year after it.
#[must_use]
pub fn timestamp_text(millis: i64, separator: char) -> String {
    let civil = Civil::from_days(millis.div_euclid(DAY_MILLIS));
    let rest = millis.rem_euclid(DAY_MILLIS);
    let year = if civil.year <= 0 { 1 - civil.year } else { civil.year };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_year(&mut text, year);
    text + &format!(
        "-{:02}-{:02}{separator}{:02}:{:02}:{:02}.{:03}Z",
        civil.month,
        civil.day,
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1000 % 60,
        rest % 1000
    )
}

/// Digits with an optional minus.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Most digits of a field of a timestamp with a time: as many as Java's parser reads.
const FIELD_DIGITS_MAX: usize = 19;

/// The last year of a timestamp with a time: that of Java's calendar.
const YEAR_MAX: i64 = 999_999_999;

/// A cursor over text.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn accept(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Between `least` and `most` digits, greedily.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.parse().ok()
    }

    /// Four digits; or a sign and more than four; or a minus and four.
    fn year(&mut self) -> Option<i64> {
        let before = self.0.len();
        if self.accept('-') {
            let year = self.number(4, 10).filter(|year| *year != 0);
            return year.map(|year| -year);
        }
        let plus = self.accept('+');
        let year = if plus { self.number(5, 10) } else { self.number(4, 4) };
        // A year of more than four digits needs its sign.
        if !plus && before > 4 && self.0.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        year
    }

    /// `yyyy-MM-dd`; days up to 31 in every month.
    fn civil(&mut self) -> Option<Civil> {
        let year = self.year()?;
        let month = self.dash_pair()?;
        let day = self.dash_pair()?;
        ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(Civil { year, month, day })
    }

    fn dash_pair(&mut self) -> Option<u8> {
        self.accept('-')
            .then(|| self.number(2, 2))
            .flatten()
            .and_then(|n| u8::try_from(n).ok())
    }
}

/// Reads a date literal: days from −5877641-06-23 on as a number, or `yyyy-MM-dd`.
pub(super) fn parse_date(text: &str) -> Result<Vec<u8>, Invalid> {
    if is_integer(text) {
        return text
            .parse::<u32>()
            .map(|days| days.to_be_bytes().to_vec())
            .map_err(|_| Invalid::Text("Unable to make unsigned int (for date) from:", text.to_owned()));
    }
    let mut scanner = Scanner(text);
    let civil = scanner
        .civil()
        .filter(|civil| scanner.0.is_empty() && civil.day <= civil.month_length())
        .ok_or_else(|| Invalid::Coerce {
            prefix: "",
            text: text.to_owned(),
            what: "date",
        })?;
    encode_date(civil.to_days()).map(Vec::from).ok_or_else(|| {
        let late = civil.year > 0;
        Invalid::DateRange {
            text: text.to_owned(),
            side: if late { "greater than max" } else { "less than min" },
            limit: if late { "+5881580-07-11" } else { "-5877641-06-23" },
        }
    })
}

/// Reads a time literal: nanoseconds, or `hh:mm:ss[.fffffffff]`.
pub(super) fn parse_time(text: &str) -> Result<Vec<u8>, Invalid> {
    let nanos = if is_integer(text) {
        text.parse::<i64>()
            .ok()
            .filter(|nanos| (0..DAY_NANOS).contains(nanos))
            .ok_or_else(|| Invalid::Text("Unable to make long (for time) from:", text.to_owned()))?
    } else {
        clock_time(text).ok_or_else(|| Invalid::Coerce {
            prefix: "(TimeType) ",
            text: text.to_owned(),
            what: "time",
        })?
    };
    Ok(nanos.to_be_bytes().to_vec())
}

fn clock_time(text: &str) -> Option<i64> {
    let mut parts = text.trim().split(':');
    let (hours, minutes, last) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (seconds, fraction) = last.split_once('.').map_or((last, None), |(s, f)| (s, Some(f)));
    let number = |text: &str, limit: i64| text.parse::<i64>().ok().filter(|n| (0..limit).contains(n));
    let nanos = match fraction {
        None => 0,
        Some(digits) if (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{digits:0<9}").parse().ok()?
        }
        Some(_) => return None,
    };
    let seconds = (number(hours, 24)? * 60 + number(minutes, 60)?) * 60 + number(seconds, 60)?;
    Some(seconds * 1_000_000_000 + nanos)
}

/// Reads a timestamp literal other than `now`: milliseconds, or a day, perhaps with time and zone; without a zone it is UTC.
///
/// # Errors
/// [`Invalid::Text`] for anything else.
///
/// Differs: the only known zones are offsets and the names of UTC; Cassandra uses its runtime's whole database.
pub fn parse_timestamp_millis(text: &str) -> Result<i64, Invalid> {
    if is_integer(text) {
        return text
            .parse()
            .map_err(|_| Invalid::Text("Unable to make long (for date) from:", text.to_owned()));
    }
    instant(text).ok_or_else(|| Invalid::Text("Unable to parse a date/time from", text.to_owned()))
}

pub(super) fn parse_timestamp(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse_timestamp_millis(text).map(|millis| millis.to_be_bytes().to_vec())
}

fn instant(text: &str) -> Option<i64> {
    timed_instant(text).or_else(|| day_instant(text))
}

/// A day without a time: its fields have fixed widths. With a colon, the offset behind it may have seconds.
fn day_instant(text: &str) -> Option<i64> {
    let mut scanner = Scanner(text);
    let civil = scanner.civil()?;
    // The forms of ISO 8601, which Java reads in another way than the others, and with years before 1.
    let is_iso = |zone: &str| matches!(zone, "" | "Z" | "z") || !zone.starts_with(' ') && zone.contains(':');
    let offset = match scanner.0 {
        zone if civil.year < 1 && !is_iso(zone) => return None,
        "z" => 0,
        zone => zone_seconds(zone).or_else(|| offset_seconds(zone, Seconds::Allowed))?,
    };
    midnight_millis(civil)?.checked_sub(offset * 1000)
}

/// A day with a time: its fields have any number of digits, and its year is after 0.
fn timed_instant(text: &str) -> Option<i64> {
    let mut scanner = Scanner(text);
    let year = scanner.number(1, FIELD_DIGITS_MAX)?;
    let mut pair = || {
        let field = scanner
            .accept('-')
            .then(|| scanner.number(1, FIELD_DIGITS_MAX))
            .flatten();
        field.and_then(|field| u8::try_from(field).ok())
    };
    let (month, day) = (pair()?, pair()?);
    let is_day = (1..=YEAR_MAX).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_day || !(scanner.accept('T') || scanner.accept(' ')) {
        return None;
    }
    let millis = time_of_day(&mut scanner)?;
    let offset = zone_seconds(scanner.0)?;
    midnight_millis(Civil { year, month, day })?.checked_add(millis - offset * 1000)
}

/// Milliseconds from 1970 to a day. Java resolves 30 February to the month's last day.
fn midnight_millis(mut civil: Civil) -> Option<i64> {
    civil.day = civil.day.min(civil.month_length());
    civil.to_days().checked_mul(DAY_MILLIS)
}

/// `H:m[:s[.fffffffff]]` in milliseconds; 24:00 is the next day's start.
fn time_of_day(scanner: &mut Scanner<'_>) -> Option<i64> {
    let hours = scanner.number(1, FIELD_DIGITS_MAX)?;
    let next = |scanner: &mut Scanner<'_>| {
        let field = scanner.accept(':').then(|| scanner.number(1, FIELD_DIGITS_MAX));
        field.flatten()
    };
    let minutes = next(scanner)?;
    let (mut seconds, mut millis) = (0, 0);
    if scanner.0.starts_with(':') {
        seconds = next(scanner)?;
        if scanner.accept('.') {
            let before = scanner.0;
            scanner.number(0, 9);
            let digits = before.get(..before.len() - scanner.0.len())?;
            millis = format!("{digits:0<3}").get(..3)?.parse().ok()?;
        }
    }
    let end_of_day = hours == 24 && minutes == 0 && seconds == 0 && millis == 0;
    if (hours > 23 && !end_of_day) || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis)
}

/// Seconds east of UTC of nothing, `Z`, `+hh`, `+hhmm`, `+hh:mm`, or of a blank and one of those, `+hh:mm:ss` or a name of UTC,
/// which an offset with a colon may follow.
fn zone_seconds(text: &str) -> Option<i64> {
    match text {
        "" | "Z" => return Some(0),
        _ => {}
    }
    let Some(named) = text.strip_prefix(' ') else {
        return offset_seconds(text, Seconds::Refused);
    };
    match named {
        "Z" | "UTC" | "GMT" | "UT" | "GMT0" | "Etc/UTC" | "Etc/GMT" | "Zulu" | "Universal" | "Greenwich" | "UCT" => {
            Some(0)
        }
        _ => match ["UTC", "GMT", "UT"]
            .iter()
            .find_map(|prefix| named.strip_prefix(prefix))
        {
            Some(offset) if offset.contains(':') => offset_seconds(offset, Seconds::Allowed),
            Some(_) => None,
            None => offset_seconds(named, Seconds::Allowed),
        },
    }
}

/// Whether an offset may have seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seconds {
    Allowed,
    Refused,
}

/// At most 18 hours.
fn offset_seconds(text: &str, allowed: Seconds) -> Option<i64> {
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let mut scanner = Scanner(text.get(1..)?);
    let (hours, mut minutes, mut seconds) = (scanner.number(2, 2)?, 0, 0);
    if !scanner.0.is_empty() {
        let has_colon = scanner.accept(':');
        minutes = scanner.number(2, 2)?;
        if has_colon && allowed == Seconds::Allowed && scanner.accept(':') {
            seconds = scanner.number(2, 2)?;
        }
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    let is_offset = scanner.0.is_empty() && minutes < 60 && seconds < 60 && total <= 18 * 3600;
    is_offset.then_some(sign * total)
}
