//! Texts of values that have no parts, as Java prints them.

use num_traits::{Signed, Zero};

use crate::class::Class;
use crate::days::{DAY_MILLIS, civil, hybrid_civil};
use crate::value::{Decimal, Plain};

pub(crate) const DAYS: [&str; 7] = [
    "MONDAY",
    "TUESDAY",
    "WEDNESDAY",
    "THURSDAY",
    "FRIDAY",
    "SATURDAY",
    "SUNDAY",
];

pub(crate) const MONTHS: [&str; 12] = [
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
];

/// The units that dates and instants are counted in, with their names in texts.
pub(crate) const UNITS: [(&str, &str); 9] = [
    ("NANOS", "Nanos"),
    ("MILLIS", "Millis"),
    ("SECONDS", "Seconds"),
    ("MINUTES", "Minutes"),
    ("HOURS", "Hours"),
    ("DAYS", "Days"),
    ("WEEKS", "Weeks"),
    ("MONTHS", "Months"),
    ("YEARS", "Years"),
];

/// Locales by the names of their constants, with their texts.
pub(crate) const LOCALES: [(&str, &str); 4] = [("ROOT", ""), ("ENGLISH", "en"), ("US", "en_US"), ("UK", "en_GB")];

pub(crate) fn locale_text(ordinal: u8) -> &'static str {
    LOCALES.get(usize::from(ordinal)).map_or("", |(_, shown)| *shown)
}

/// The text of a constant.
pub(crate) fn constant_text(class: Class, ordinal: u8) -> &'static str {
    let at = usize::from(ordinal);
    match class {
        Class::DayOfWeek => DAYS.get(at).copied(),
        Class::Month => MONTHS.get(at).copied(),
        Class::Locale => Some(locale_text(ordinal)),
        _ => UNITS.get(at).map(|(_, shown)| *shown),
    }
    .unwrap_or_default()
}

/// `2020-02-29`
pub(crate) fn day_text(days: i64) -> String {
    let (year, month, day) = civil(days);
    let sign = match year {
        ..0 => "-",
        10_000.. => "+",
        _ => "",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

/// `2020-09-13T12:26:40.123Z`
pub(crate) fn instant_text(seconds: i64, nanos: u32) -> String {
    let day = day_text(seconds.div_euclid(86_400));
    let rest = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let part = match nanos {
        0 => String::new(),
        nanos if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        nanos if nanos % 1000 == 0 => format!(".{:06}", nanos / 1000),
        nanos => format!(".{nanos:09}"),
    };
    format!("{day}T{hour:02}:{minute:02}:{second:02}{part}Z")
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

/// As Java prints it: with an exponent if Java uses one, or plainly.
pub(crate) fn decimal_text(value: &Decimal, may_have_exponent: bool) -> String {
    let sign = if value.unscaled.is_negative() { "-" } else { "" };
    let digits = value.unscaled.abs().to_string();
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let scale = i64::from(value.scale);
    let adjusted = length - 1 - scale;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if may_have_exponent && (scale < 0 || adjusted < -6) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent = if adjusted == 0 {
            String::new()
        } else {
            format!("E{adjusted:+}")
        };
        return format!("{sign}{first}{point}{rest}{exponent}");
    }
    if scale < 0 {
        let zeros = usize::try_from(if value.unscaled.is_zero() { 0 } else { -scale }).unwrap_or(0);
        return format!("{sign}{digits}{}", "0".repeat(zeros));
    }
    let behind = usize::try_from(scale).unwrap_or(0);
    let padded = format!("{digits:0>width$}", width = behind + 1);
    let (whole, fraction) = padded.split_at(padded.len() - behind);
    format!("{sign}{whole}.{fraction}")
}

pub(crate) fn plain_text(plain: &Plain) -> String {
    match plain {
        Plain::Uuid(value) => {
            let hex = format!("{value:032x}");
            let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
            format!(
                "{}-{}-{}-{}-{}",
                part(0, 8),
                part(8, 12),
                part(12, 16),
                part(16, 20),
                part(20, 32)
            )
        }
        Plain::Date(millis) => date_text(*millis),
        Plain::LocalDate(days) => local_date_text(*days),
        Plain::Inet(address) => format!("/{}", inet_text(*address)),
        Plain::Duration { months, days, nanos } => duration_text(*months, *days, *nanos),
        Plain::Day(days) => day_text(*days),
        Plain::Instant { seconds, nanos } => instant_text(*seconds, *nanos),
        Plain::Constant(class, ordinal) => constant_text(*class, *ordinal).to_owned(),
        Plain::Zone(zone) => zone.id.clone(),
        Plain::Coder(_) => "java.util.Base64".to_owned(),
        Plain::Big(value) => value.to_string(),
        Plain::Decimal(value) => decimal_text(value, true),
        Plain::Rounding(rounding) => format!("{rounding:?}").to_uppercase(),
        Plain::Class(class) if class.is_interface() => format!("interface {}", class.full_name()),
        Plain::Class(class) => format!("class {}", class.full_name()),
    }
}

/// A name as CQL writes it: in quotes unless it is lower-case letters, digits and `_`.
pub(crate) fn name_text(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Nanoseconds of a day as `01:02:03.000000000`.
pub(crate) fn time_text(nanos: i64) -> String {
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!(
        "{:02}:{:02}:{:02}.{nanos:09}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Java writes all eight groups of an IPv6 address.
pub(crate) fn inet_text(address: std::net::IpAddr) -> String {
    match address {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => {
            let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:x}")).collect();
            groups.join(":")
        }
    }
}
