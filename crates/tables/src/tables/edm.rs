//! Values of properties, in the types of the Entity Data Model.

use std::cmp::Ordering;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use uuid::Uuid;

/// One value of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum Edm {
    /// `Edm.String`, at most 32 Ki units of UTF-16.
    String(String),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`.
    DateTime(Ticks),
    /// `Edm.Guid`.
    Guid(Uuid),
    /// `Edm.Binary`, at most 64 KiB.
    Binary(Bytes),
}

/// A type of the Entity Data Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdmType {
    /// `Edm.String`.
    String,
    /// `Edm.Int32`.
    Int32,
    /// `Edm.Int64`.
    Int64,
    /// `Edm.Double`.
    Double,
    /// `Edm.Boolean`.
    Boolean,
    /// `Edm.DateTime`.
    DateTime,
    /// `Edm.Guid`.
    Guid,
    /// `Edm.Binary`.
    Binary,
}

impl EdmType {
    /// All types.
    pub const ALL: [Self; 8] = [
        Self::String,
        Self::Int32,
        Self::Int64,
        Self::Double,
        Self::Boolean,
        Self::DateTime,
        Self::Guid,
        Self::Binary,
    ];

    /// The name in annotations: `Edm.Int64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    /// The type with a name of an annotation; `None` means that there is none.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// The value of this type that a text stands for, as bodies write it; `None` means that it is of another form.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Edm> {
        Some(match self {
            Self::String => Edm::String(text.to_owned()),
            Self::Int32 => Edm::Int32(text.parse().ok()?),
            Self::Int64 => Edm::Int64(text.parse().ok()?),
            Self::Double => Edm::Double(parse_double(text)?),
            Self::Boolean if text.eq_ignore_ascii_case("true") => Edm::Boolean(true),
            Self::Boolean if text.eq_ignore_ascii_case("false") => Edm::Boolean(false),
            Self::Boolean => return None,
            Self::DateTime => Edm::DateTime(Ticks::parse(text)?),
            Self::Guid => Edm::Guid(parse_guid(text)?),
            Self::Binary => Edm::Binary(STANDARD.decode(text).ok()?.into()),
        })
    }
}

/// A double as bodies write it: a number, `NaN`, `Infinity` or `-Infinity`.
fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "INF" => Some(f64::INFINITY),
        "-Infinity" | "-INF" => Some(f64::NEG_INFINITY),
        _ if text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) =>
        {
            text.parse().ok().filter(|value: &f64| value.is_finite())
        }
        _ => None,
    }
}

/// A Guid with hyphens, in upper or lower case.
pub(super) fn parse_guid(text: &str) -> Option<Uuid> {
    // The other forms that the crate reads (braces, `urn:`, no hyphens) are refused by the service.
    if text.len() == 36 {
        Uuid::try_parse(text).ok()
    } else {
        None
    }
}

impl Edm {
    /// The type.
    #[must_use]
    pub const fn ty(&self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::Boolean(_) => EdmType::Boolean,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    /// Bytes that Azure counts for the value (Understanding the Table service data model): lengths of texts are in UTF-16.
    #[must_use]
    pub fn counted_bytes(&self) -> usize {
        match self {
            Self::String(text) => 4 + 2 * utf16_units(text),
            Self::Int32(_) => 4,
            Self::Int64(_) | Self::Double(_) | Self::DateTime(_) => 8,
            Self::Boolean(_) => 1,
            Self::Guid(_) => 16,
            Self::Binary(bytes) => 4 + bytes.len(),
        }
    }

    /// The text that bodies have in quotes for it; doubles with a dot or an exponent.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            Self::Int32(value) => value.to_string(),
            Self::Int64(value) => value.to_string(),
            Self::Double(value) => double_text(*value),
            Self::Boolean(value) => value.to_string(),
            Self::DateTime(ticks) => ticks.to_string(),
            Self::Guid(value) => value.hyphenated().to_string(),
            Self::Binary(bytes) => STANDARD.encode(bytes),
        }
    }
}

/// A double with a dot or an exponent, so that it is read as a double again.
#[must_use]
pub fn double_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        // Rust's debug form has a dot or an exponent always, and reads back to the same bits.
        format!("{value:?}")
    }
}

/// The length of a text in units of UTF-16, by which Azure counts.
#[must_use]
pub fn utf16_units(text: &str) -> usize {
    // Four bytes of UTF-8 are two units; every other character is one.
    text.bytes()
        .map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0))
        .sum()
}

/// Orders texts by units of UTF-16, as the service does. It differs from the order of bytes only where a character above U+FFFF meets
/// one of U+E000 to U+FFFF.
#[must_use]
pub fn compare_utf16(left: &str, right: &str) -> Ordering {
    let same = left
        .bytes()
        .zip(right.bytes())
        .take_while(|(left, right)| left == right)
        .count();
    let rank = |text: &str| text.as_bytes().get(same).map(|byte| rank_of(*byte));
    rank(left).cmp(&rank(right))
}

/// The rank of the first byte that differs: lead bytes of U+E000 to U+FFFF (EE, EF) come after those of four bytes (F0 to F4), which are
/// surrogates (D800 to DFFF) in UTF-16. Bytes inside of a character differ within one lead byte, where both orders agree.
const fn rank_of(byte: u8) -> u16 {
    match byte {
        0xEE | 0xEF => byte as u16 + 0x100,
        _ => byte as u16,
    }
}

/// A moment: steps of 100 ns since 1601-01-01T00:00:00Z, up to the end of 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(i64);

/// Days from 1601-01-01 to 1970-01-01.
const DAYS_TO_UNIX: i64 = 134_774;
const TICKS_A_SECOND: i64 = 10_000_000;
const SECONDS_A_DAY: i64 = 86_400;

impl Ticks {
    /// The earliest moment: 1601-01-01T00:00:00Z.
    pub const MIN: Self = Self(0);
    /// The latest moment: 9999-12-31T23:59:59.9999999Z.
    pub const MAX: Self = Self((2_932_896 + 1 + DAYS_TO_UNIX) * SECONDS_A_DAY * TICKS_A_SECOND - 1);

    /// The moment so many steps after 1601; `None` means that it is out of range.
    #[must_use]
    pub const fn new(ticks: i64) -> Option<Self> {
        if ticks < 0 || ticks > Self::MAX.0 {
            None
        } else {
            Some(Self(ticks))
        }
    }

    /// Steps of 100 ns since 1601.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The moment of microseconds since 1970, cut to the range.
    #[must_use]
    pub fn of_unix_micros(micros: i64) -> Self {
        let ticks = i128::from(micros) * 10 + i128::from(DAYS_TO_UNIX * SECONDS_A_DAY * TICKS_A_SECOND);
        Self(
            i64::try_from(ticks)
                .unwrap_or(if micros < 0 { 0 } else { i64::MAX })
                .clamp(0, Self::MAX.0),
        )
    }

    /// Microseconds since 1970; what is below a microsecond is cut.
    #[must_use]
    pub const fn unix_micros(self) -> i64 {
        (self.0 - DAYS_TO_UNIX * SECONDS_A_DAY * TICKS_A_SECOND).div_euclid(10)
    }

    /// Reads `YYYY-MM-DD[THH:MM[:SS[.fraction]]][Z|±HH:MM]`. Without a zone it is UTC; digits below 100 ns are cut. `None` means that
    /// the text is of another form, or out of range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let mut parts = date.split('-').map(|part| number(part.as_bytes()));
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if parts.next().is_some() || !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
            return None;
        }
        let mut ticks = (days_from_1601(year, month, day)) * SECONDS_A_DAY * TICKS_A_SECOND;
        let mut rest = rest.as_bytes();
        if let [b'T' | b't' | b' ', time @ ..] = rest {
            let hours = time.get(..2)?;
            let hours = number(hours)?;
            if time.get(2) != Some(&b':') {
                return None;
            }
            let minutes = number(time.get(3..5)?)?;
            rest = time.get(5..)?;
            let mut seconds = 0;
            if let [b':', after @ ..] = rest {
                seconds = number(after.get(..2)?)?;
                rest = after.get(2..)?;
                if let [b'.', after @ ..] = rest {
                    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    if digits == 0 {
                        return None;
                    }
                    let mut fraction = 0;
                    for place in 0..7 {
                        let digit = after.get(place).filter(|_| place < digits);
                        fraction = fraction * 10 + digit.map_or(0, |byte| i64::from(byte - b'0'));
                    }
                    ticks += fraction;
                    rest = after.get(digits..)?;
                }
            }
            if hours > 23 || minutes > 59 || seconds > 59 {
                return None;
            }
            ticks += (hours * 3_600 + minutes * 60 + seconds) * TICKS_A_SECOND;
        }
        Self::new(ticks - offset(rest)? * TICKS_A_SECOND)
    }
}

/// Seconds that a zone is ahead of UTC; `None` means that it is no zone.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [] | [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), hours @ ..] => {
            let minutes = hours.get(2..)?;
            let minutes = number(minutes.strip_prefix(b":").unwrap_or(minutes))?;
            let hours = number(hours.get(..2)?)?;
            let seconds = hours * 3_600 + minutes * 60;
            (hours <= 14 && minutes <= 59).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

/// A number of digits alone.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 4 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1601-01-01 to a date; below zero for dates before.
const fn days_from_1601(year: i64, month: i64, day: i64) -> i64 {
    // Howard Hinnant's days_from_civil: years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + days - 719_468 + DAYS_TO_UNIX
}

/// Year, month and day of the day so many days after 1601-01-01.
pub(super) const fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days - DAYS_TO_UNIX + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + if month <= 2 { 1 } else { 0 }, month, day)
}

/// `2020-11-07T01:23:12.25Z`: zeros at the end of the fraction are cut, as the service does.
impl fmt::Display for Ticks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0.div_euclid(TICKS_A_SECOND), self.0.rem_euclid(TICKS_A_SECOND));
        let (days, of_day) = (seconds.div_euclid(SECONDS_A_DAY), seconds.rem_euclid(SECONDS_A_DAY));
        let (year, month, day) = date_of(days);
        let (hours, minutes, seconds) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}"
        )?;
        if fraction != 0 {
            let digits = format!("{fraction:07}");
            write!(formatter, ".{}", digits.trim_end_matches('0'))?;
        }
        formatter.write_str("Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn texts_are_ordered_and_counted_as_utf16(left in "\\PC{0,6}|[\u{1F600}\u{E000}\u{FFFD}a]{0,4}", right in "\\PC{0,6}|[\u{1F600}\u{E000}\u{FFFD}a]{0,4}") {
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            prop_assert_eq!(compare_utf16(&left, &right), units(&left).cmp(&units(&right)));
            prop_assert_eq!(utf16_units(&left), units(&left).len());
        }

        #[test]
        fn moment_is_read_as_it_was_written(ticks in 0..=Ticks::MAX.get()) {
            let moment = Ticks::new(ticks).unwrap();
            prop_assert_eq!(Ticks::parse(&moment.to_string()), Some(moment));
            prop_assert_eq!(Ticks::of_unix_micros(moment.unix_micros()).get(), ticks / 10 * 10);
        }

        #[test]
        fn any_text_is_checked_as_a_moment(text in "\\PC{0,30}|[0-9T:.Z+-]{0,30}") {
            let _ = Ticks::parse(&text);
        }
    }

    #[test]
    fn moments_have_the_forms_of_the_service() {
        let ticks = |text: &str| Ticks::parse(text).map(|ticks| ticks.to_string());
        for (text, shown) in [
            ("2020-11-07T01:23:12Z", Some("2020-11-07T01:23:12Z")),
            ("2020-11-07T01:23:12.2500000Z", Some("2020-11-07T01:23:12.25Z")),
            ("2020-11-07T01:23:12.123456789Z", Some("2020-11-07T01:23:12.1234567Z")),
            ("2020-11-07T01:23+02:00", Some("2020-11-06T23:23:00Z")),
            ("2020-11-07", Some("2020-11-07T00:00:00Z")),
            ("1601-01-01T00:00:00Z", Some("1601-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.9999999Z")),
            ("1600-12-31T23:59:59Z", None),
            ("2021-02-29T00:00:00Z", None),
            ("2020-02-29T24:00:00Z", None),
            ("2020-13-01", None),
            ("2020-01-01T", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(ticks(text).as_deref(), shown, "{text}");
        }
        assert_eq!(Ticks::of_unix_micros(0).to_string(), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn doubles_are_read_as_doubles_again() {
        for (value, text) in [
            (3.0, "3.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (f64::INFINITY, "Infinity"),
            (1e300, "1e300"),
        ] {
            assert_eq!(double_text(value), text);
            assert_eq!(EdmType::Double.parse(text), Some(Edm::Double(value)));
        }
    }
}
