//! `SimpleDateFormat`: texts of dates, and dates of texts, by a pattern, in English.

use super::calendar::{utc, zone, zone_of};
use super::time::{date, millis};
use super::{Arguments, Method, constructor, instance, text};
use crate::class::Class;
use crate::class::Class::{DateFormat, SimpleDateFormat};
use crate::machine::{Machine, Run};
use crate::value::Calendar;
use crate::value::{Object, Text, Value, Zone};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// The letters that a pattern may have.
const LETTERS: &str = "GyMdkHmsSEDFwWahKzZYuXL";

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(u16),
    Field(char, usize),
}

pub(super) const METHODS: &[Method] = &[
    constructor(SimpleDateFormat, "String", |m, a| {
        let pattern = text(m, a, 0)?;
        m.step(pattern.len())?;
        match parts(&pattern) {
            Ok(_) => m.make(Object::DateFormat { pattern, zone: utc() }),
            Err(wrong) => m.throw(Class::IllegalArgument, wrong),
        }
    }),
    constructor(SimpleDateFormat, "String,Locale", |m, a| {
        let pattern = text(m, a, 0)?;
        m.step(pattern.len())?;
        match (parts(&pattern), m.text_of(&a.value(1))?) {
            (Ok(_), Value::Text(locale)) if locale.is_empty() => m.throw(
                Class::Unsupported,
                "Helenus has no SimpleDateFormat of Locale.ROOT in a function's body",
            ),
            (Ok(_), _) => m.make(Object::DateFormat { pattern, zone: utc() }),
            (Err(wrong), _) => m.throw(Class::IllegalArgument, wrong),
        }
    }),
    instance(DateFormat, "setTimeZone", "TimeZone", "void", |m, a| {
        let new = zone(m, a, 1)?;
        match m.object_mut(a.handle(0)?)? {
            Object::DateFormat { zone, .. } => *zone = new,
            _ => return Machine::fault("a date format was expected"),
        }
        Ok(Value::Null)
    }),
    instance(DateFormat, "format", "Date", "String", |m, a| {
        let (pattern, zone) = of(m, a)?;
        let mut calendar = Calendar::at(millis(m, a, 1)?, zone);
        calendar.normalize();
        let mut units = Vec::new();
        for part in parts(&pattern).unwrap_or_default() {
            m.step(2)?;
            match part {
                Part::Literal(unit) => units.push(unit),
                Part::Field(letter, count) => match field(&calendar, letter, count) {
                    Some(shown) => units.extend(shown.encode_utf16()),
                    None => return left_out(m, letter, count),
                },
            }
        }
        m.text(&units)
    }),
    instance(DateFormat, "parse", "String", "Date", |m, a| {
        let (pattern, zone) = of(m, a)?;
        let written = text(m, a, 1)?;
        m.step(written.len() + pattern.len())?;
        let parts = parts(&pattern).unwrap_or_default();
        let read = Reader {
            units: &written,
            at: 0,
            calendar: Calendar::at(0, utc()),
            zone,
            fields: Vec::new(),
            now: super::system::now(m),
        };
        match read.date(&parts) {
            Ok(Some(millis)) => date(m, millis),
            Ok(None) => {
                let written = String::from_utf16_lossy(&written);
                m.throw(Class::Parse, format!("Unparseable date: \"{written}\""))
            }
            Err((letter, count)) => left_out(m, letter, count),
        }
    }),
];

fn of(m: &Machine<'_>, a: &[Value]) -> Run<(Text, Zone)> {
    match m.object(a.handle(0)?)? {
        Object::DateFormat { pattern, zone } => Ok((pattern.clone(), zone.clone())),
        _ => Machine::fault("a date format was expected"),
    }
}

fn left_out(m: &mut Machine<'_>, letter: char, count: usize) -> Run<Value> {
    let field = letter.to_string().repeat(count);
    m.throw(
        Class::Unsupported,
        format!("Helenus has no field {field} of SimpleDateFormat in a function's body"),
    )
}

/// The parts of a pattern, or Java's words on what is wrong with it.
fn parts(pattern: &[u16]) -> Result<Vec<Part>, String> {
    let quote = u16::from(b'\'');
    let mut found: Vec<Part> = Vec::new();
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(unit) = pattern.get(at).copied() {
        at += 1;
        if unit == quote {
            if pattern.get(at) == Some(&quote) {
                at += 1;
                found.push(Part::Literal(quote));
            } else {
                is_quoted = !is_quoted;
            }
            continue;
        }
        let letter = char::from_u32(unit.into()).filter(|letter| !is_quoted && letter.is_ascii_alphabetic());
        let Some(letter) = letter else {
            found.push(Part::Literal(unit));
            continue;
        };
        if !LETTERS.contains(letter) {
            return Err(format!("Illegal pattern character '{letter}'"));
        }
        let rest = pattern.get(at..).unwrap_or_default();
        let more = rest.iter().take_while(|other| **other == unit).count();
        if letter == 'X' && more > 2 {
            return Err("invalid ISO 8601 format: length=4".to_owned());
        }
        at += more;
        found.push(Part::Field(letter, more + 1));
    }
    if is_quoted {
        return Err("Unterminated quote".to_owned());
    }
    Ok(found)
}

fn offset(seconds: i32, form: &str) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match form {
        "hh" => format!("{sign}{hours:02}"),
        "hhmm" => format!("{sign}{hours:02}{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}"),
    }
}

/// The text of a field; none where this server has no such text.
fn field(calendar: &Calendar, letter: char, count: usize) -> Option<String> {
    let get = |field: i32| calendar.get(field).unwrap_or(0);
    let padded = |value: i64| format!("{value:0count$}");
    let named = |names: &[&str], at: i64, width: usize| {
        let name = usize::try_from(at)
            .ok()
            .and_then(|at| names.get(at))
            .copied()
            .unwrap_or_default();
        name.get(..width.min(name.len())).unwrap_or(name).to_owned()
    };
    let width = if count >= 4 { usize::MAX } else { 3 };
    let year = |value: i64| match count {
        2 => format!("{:02}", value % 100),
        _ => padded(value),
    };
    Some(match letter {
        'G' => if get(0) == 0 { "BC" } else { "AD" }.to_owned(),
        'y' => year(get(1)),
        'Y' => year(get(1) + i64::from(get(3) == 1 && get(2) == 11)),
        'M' | 'L' if count >= 3 => named(&MONTHS, get(2), width),
        'M' | 'L' => padded(get(2) + 1),
        'E' => named(&WEEKDAYS, get(7) - 1, width),
        'u' => padded((get(7) + 5) % 7 + 1),
        'd' => padded(get(5)),
        'D' => padded(get(6)),
        'F' => padded(get(8)),
        'w' => padded(get(3)),
        'W' => padded(get(4)),
        'a' => if get(9) == 0 { "AM" } else { "PM" }.to_owned(),
        'H' => padded(get(11)),
        'k' => padded(if get(11) == 0 { 24 } else { get(11) }),
        'K' => padded(get(10)),
        'h' => padded(if get(10) == 0 { 12 } else { get(10) }),
        'm' => padded(get(12)),
        's' => padded(get(13)),
        'S' => padded(get(14)),
        'z' if count < 4 => match calendar.zone.id.as_str() {
            "Etc/UTC" | "UTC" | "UCT" | "Zulu" => "UTC".to_owned(),
            "Etc/GMT" => "GMT".to_owned(),
            id => id.to_owned(),
        },
        'Z' => offset(calendar.zone.offset_seconds, "hhmm"),
        'X' if calendar.zone.offset_seconds == 0 => "Z".to_owned(),
        'X' => offset(
            calendar.zone.offset_seconds,
            match count {
                1 => "hh",
                2 => "hhmm",
                _ => "hh:mm",
            },
        ),
        _ => return None,
    })
}

/// Reads a date by a pattern.
struct Reader<'a> {
    units: &'a [u16],
    at: usize,
    calendar: Calendar,
    zone: Zone,
    /// Fields by Java's numbers, and their values.
    fields: Vec<(i32, i64)>,
    now: i64,
}

impl Reader<'_> {
    /// The date; none where the text is of another form. `Err`: a field that is not read here.
    fn date(mut self, parts: &[Part]) -> Result<Option<i64>, (char, usize)> {
        for (number, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(unit) => {
                    if self.units.get(self.at) != Some(unit) {
                        return Ok(None);
                    }
                    self.at += 1;
                }
                Part::Field(letter, count) => {
                    // Digits that another field follows at once are as many as the pattern has letters.
                    let is_next = matches!(parts.get(number + 1), Some(Part::Field(..)));
                    let width = if is_next { *count } else { usize::MAX };
                    match self.field(*letter, *count, width) {
                        Some(true) => {}
                        Some(false) => return Ok(None),
                        None => return Err((*letter, *count)),
                    }
                }
            }
        }
        let order = |field: &i32| match field {
            // A day of the year is measured from what the others give.
            6 | 9 => 2,
            10 => 1,
            _ => 0,
        };
        self.fields.sort_by_key(|(field, _)| order(field));
        self.calendar.zone = self.zone.clone();
        for field in [11, 12, 13, 14] {
            self.calendar.set(field, 0);
        }
        for (field, value) in &self.fields {
            self.calendar.set(*field, *value);
        }
        Ok(Some(self.calendar.millis()))
    }

    /// Reads a field: whether it is there; none where it is not read here.
    fn field(&mut self, letter: char, count: usize, width: usize) -> Option<bool> {
        while matches!(self.units.get(self.at), Some(9 | 32)) {
            self.at += 1;
        }
        let field = match letter {
            'y' => return Some(self.year(count, width)),
            'M' if count >= 3 => {
                return Some(match self.name(&MONTHS) {
                    Some(month) => {
                        self.fields.push((2, month));
                        true
                    }
                    None => false,
                });
            }
            'E' => return Some(self.name(&WEEKDAYS).is_some()),
            'a' => {
                return Some(match self.name(&["AM", "PM"]) {
                    Some(half) => {
                        self.fields.push((9, half));
                        true
                    }
                    None => false,
                });
            }
            'Z' | 'X' => return Some(self.offset(letter == 'X')),
            'z' if count < 4 => return Some(self.zone_name()),
            'M' => 2,
            'd' => 5,
            'D' => 6,
            'H' | 'k' => 11,
            'K' | 'h' => 10,
            'm' => 12,
            's' => 13,
            'S' => 14,
            _ => return None,
        };
        let Some((value, _)) = self.number(width) else {
            return Some(false);
        };
        let value = match (letter, value) {
            ('M', value) => value - 1,
            ('k', 24) | ('h', 12) => 0,
            (_, value) => value,
        };
        self.fields.push((field, value));
        Some(true)
    }

    /// Digits, and how many they are.
    fn number(&mut self, width: usize) -> Option<(i64, usize)> {
        let rest = self.units.get(self.at..)?;
        let digit = |unit: &u16| char::from_u32((*unit).into()).and_then(|digit| digit.to_digit(10));
        let digits: Vec<u32> = rest.iter().take(width.min(18)).map_while(digit).collect();
        if digits.is_empty() || (width != usize::MAX && digits.len() < width.min(1)) {
            return None;
        }
        self.at += digits.len();
        let value = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(*digit));
        Some((value, digits.len()))
    }

    fn year(&mut self, count: usize, width: usize) -> bool {
        let Some((value, digits)) = self.number(width) else {
            return false;
        };
        let value = if count <= 2 && digits == 2 {
            // Two digits are of the hundred years that began eighty years ago.
            let calendar = Calendar::at(self.now, utc());
            let first = calendar.get(1).unwrap_or(1970) - 80;
            let same = first - first.rem_euclid(100) + value;
            if same < first { same + 100 } else { same }
        } else {
            value
        };
        self.fields.push((1, value));
        true
    }

    /// The longest of these names, or of their first three letters, in any case of letters.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        let rest: String = String::from_utf16_lossy(self.units.get(self.at..)?).to_lowercase();
        let forms = |name: &str| [name.to_lowercase(), name.to_lowercase().chars().take(3).collect()];
        let found = names.iter().enumerate().find_map(|(number, name)| {
            let form = forms(name).into_iter().find(|form| rest.starts_with(form.as_str()))?;
            Some((number, form.len()))
        });
        let (number, length) = found?;
        self.at += length;
        i64::try_from(number).ok()
    }

    fn offset(&mut self, may_be_z: bool) -> bool {
        let rest = String::from_utf16_lossy(self.units.get(self.at..).unwrap_or_default());
        if may_be_z && rest.starts_with('Z') {
            self.at += 1;
            (self.zone.id, self.zone.offset_seconds) = ("UTC".to_owned(), 0);
            return true;
        }
        let sign = match rest.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return self.zone_name(),
        };
        let shape: String = rest
            .chars()
            .skip(1)
            .take_while(|c| c.is_ascii_digit() || *c == ':')
            .collect();
        let digits: String = shape.chars().filter(|c| *c != ':').take(4).collect();
        let of = |from: usize, to: usize| digits.get(from..to).and_then(|two| two.parse::<i32>().ok());
        let (hours, minutes) = match digits.len() {
            2 if may_be_z => (of(0, 2), Some(0)),
            4 => (of(0, 2), of(2, 4)),
            _ => (None, None),
        };
        let (Some(hours), Some(minutes)) = (hours, minutes) else {
            return false;
        };
        self.at += 1 + digits.len() + usize::from(shape.contains(':'));
        self.zone.offset_seconds = sign * (hours * 3600 + minutes * 60);
        true
    }

    fn zone_name(&mut self) -> bool {
        let rest = String::from_utf16_lossy(self.units.get(self.at..).unwrap_or_default());
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | ':');
        let name: String = rest.chars().take_while(is_part).collect();
        match zone_of(&name) {
            Some(zone) => {
                self.at += name.len();
                self.zone = zone;
                true
            }
            None => false,
        }
    }
}
