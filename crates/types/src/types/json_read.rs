//! Reading JSON: text to a tree, as Java's Jackson does it, and the tree to values.

use super::compound::{encode_list, encode_tuple};
use super::json_error::{JsonError, NUMBER_DIGITS_MAX, place_text, too_long};
use super::{CqlType, Invalid, Native, UserType, double_to_float, java_f64};
use bytes::Bytes;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::fmt;

/// Maximum nesting of a JSON document.
const DEPTH_MAX: usize = 200;

/// A JSON document. Numbers are integers of any size or doubles, as in Java.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// A number without point and exponent.
    Integer(BigInt),
    /// Any other number.
    Double(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object in the order of the text. Of duplicate members the last value stays, at the position of the first.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads the first document of the text; what follows it is ignored, as Cassandra does.
    ///
    /// # Errors
    /// When the text is no JSON, or nests deeper than 200 levels.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Self::parse_first(text).map(|(json, _)| json)
    }

    /// Reads the first document of the text, and returns what follows it.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub fn parse_first(text: &str) -> Result<(Self, &str), JsonError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let json = parser.value()?;
        Ok((json, text.get(parser.at..).unwrap_or_default()))
    }

    /// Reads a document that must be an object, as `INSERT JSON` needs.
    ///
    /// # Errors
    /// The whole message, in Cassandra's words.
    pub fn parse_object(text: &str) -> Result<Vec<(String, Self)>, Invalid> {
        let fail = |what: String| {
            Invalid::JsonText(format!(
                "Could not decode JSON string as a map: {what}. (String was: {text})"
            ))
        };
        match Self::parse(text) {
            Ok(Self::Object(members)) => Ok(members),
            // Cassandra fails on the absent map; this message is ours.
            Ok(Self::Null) => Err(Invalid::JsonText("Got null for INSERT JSON values".to_owned())),
            Ok(Self::String(value)) => Err(fail(format!(
                "{MISMATCH}: Cannot construct instance of `java.util.LinkedHashMap` (although at least one Creator \
                 exists): no String-argument constructor/factory method to deserialize from String value ('{value}'){}",
                place_text(1, Some(1))
            ))),
            Ok(other) => Err(fail(format!(
                "{MISMATCH}: Cannot deserialize value of type \
                 `java.util.LinkedHashMap<java.lang.Object,java.lang.Object>` from {}){}",
                other.token(),
                place_text(1, Some(1))
            ))),
            Err(error) => Err(fail(format!("{}: {error}", error.class))),
        }
    }

    /// Jackson's name of the token that it starts with, up to its closing bracket.
    fn token(&self) -> &'static str {
        match self {
            Self::Null => "Null value (token `JsonToken.VALUE_NULL`",
            Self::Boolean(true) => "Boolean value (token `JsonToken.VALUE_TRUE`",
            Self::Boolean(false) => "Boolean value (token `JsonToken.VALUE_FALSE`",
            Self::Integer(_) => "Integer value (token `JsonToken.VALUE_NUMBER_INT`",
            Self::Double(_) => "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`",
            Self::String(_) => "String value (token `JsonToken.VALUE_STRING`",
            Self::Array(_) => "Array value (token `JsonToken.START_ARRAY`",
            Self::Object(_) => "Object value (token `JsonToken.START_OBJECT`",
        }
    }

    /// The Java class that Jackson decodes it to.
    fn java_class(&self) -> &'static str {
        match self {
            Self::Null => "java.lang.Object",
            Self::Boolean(_) => "java.lang.Boolean",
            Self::Integer(value) if value.to_i32().is_some() => "java.lang.Integer",
            Self::Integer(value) if value.to_i64().is_some() => "java.lang.Long",
            Self::Integer(_) => "java.math.BigInteger",
            Self::Double(_) => "java.lang.Double",
            Self::String(_) => "java.lang.String",
            Self::Array(_) => "java.util.ArrayList",
            Self::Object(_) => "java.util.LinkedHashMap",
        }
    }

    /// Java's class and its article.
    fn class(&self) -> &'static str {
        match self {
            Self::Null => "a null",
            Self::Boolean(_) => "a Boolean",
            Self::Integer(value) if value.to_i32().is_some() => "a Integer",
            Self::Integer(value) if value.to_i64().is_some() => "a Long",
            Self::Integer(_) => "a BigInteger",
            Self::Double(_) => "a Double",
            Self::String(_) => "a String",
            Self::Array(_) => "a ArrayList",
            Self::Object(_) => "a LinkedHashMap",
        }
    }
}

/// As Java's `toString`.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(&java_f64(*value)),
            Self::String(text) => f.write_str(text),
            Self::Array(values) => write!(f, "[{}]", join(values.iter().map(Self::to_string).collect())),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "{{{}}}", join(members))
            }
        }
    }
}

const END_OF_INPUT: &str = "com.fasterxml.jackson.core.io.JsonEOFException";
const MISMATCH: &str = "com.fasterxml.jackson.databind.exc.MismatchedInputException";
const BAD_INPUT: &str = "com.fasterxml.jackson.core.JsonParseException";
const TOKENS: &str = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')";

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        (line, column)
    }

    fn fail(&self, class: &'static str, what: String) -> JsonError {
        let (line, column) = self.place(self.at);
        JsonError {
            what,
            line,
            column: Some(column),
            class,
        }
    }

    /// `close marker for Object`, `for Array`: the text ended inside one that began at `start`.
    fn ended(&self, kind: &str, start: usize) -> JsonError {
        let (line, column) = self.place(start);
        self.fail(
            END_OF_INPUT,
            format!(
                "Unexpected end-of-input: expected close marker for {kind} (start marker at [Source: REDACTED \
                 (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {line}, column: {column}])"
            ),
        )
    }

    fn unexpected(&self, c: char, wanted: &str) -> JsonError {
        self.fail(
            BAD_INPUT,
            format!("Unexpected character ('{c}' (code {})){wanted}", u32::from(c)),
        )
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        self.blanks();
        let Some(c) = self.peek() else {
            return Err(JsonError {
                what: "No content to map due to end-of-input".to_owned(),
                line: self.place(self.at).0,
                column: None,
                class: MISMATCH,
            });
        };
        match c {
            '/' => Err(self.unexpected(
                c,
                ": maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser)",
            )),
            '"' => self.string().map(Json::String),
            '-' | '0'..='9' => self.number(),
            '[' | '{' => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    let what = format!(
                        "Document nesting depth ({}) exceeds the maximum allowed ({DEPTH_MAX})",
                        self.depth
                    );
                    return Err(self.fail(BAD_INPUT, what));
                }
                let value = if c == '[' { self.array() } else { self.object() };
                self.depth -= 1;
                value
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => self.word(),
            '+' => {
                self.at += 1;
                Err(self.unexpected(
                    c,
                    " in numeric value: JSON spec does not allow numbers to have plus signs: enable \
                     `JsonReadFeature.ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow",
                ))
            }
            c => Err(self.unexpected(c, &format!(": expected a valid value {TOKENS}"))),
        }
    }

    fn word(&mut self) -> Result<Json, JsonError> {
        let length = self
            .rest()
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(self.rest().len());
        let word = self.rest().get(..length).unwrap_or_default().to_owned();
        self.at += length;
        match word.as_str() {
            "null" => Ok(Json::Null),
            "true" => Ok(Json::Boolean(true)),
            "false" => Ok(Json::Boolean(false)),
            "NaN" => Err(self.fail(
                BAD_INPUT,
                "Non-standard token 'NaN': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow".to_owned(),
            )),
            _ => Err(self.fail(
                BAD_INPUT,
                format!("Unrecognized token '{word}': was expecting {TOKENS}"),
            )),
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let length = self
            .rest()
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(self.rest().len());
        let text = self.rest().get(..length).unwrap_or_default().to_owned();
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if digits.is_empty() {
            self.at += length;
            let next = self.peek();
            self.at += usize::from(next.is_none());
            return Err(match next {
                Some(c) => self.unexpected(
                    c,
                    " in numeric value: expected digit (0-9) to follow minus sign, for valid numeric value",
                ),
                None => self.fail(
                    END_OF_INPUT,
                    "Unexpected end-of-input within/between Number entries".to_owned(),
                ),
            });
        }
        if digits.len() > 1 && digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            return Err(self.fail(
                BAD_INPUT,
                "Invalid numeric value: Leading zeroes not allowed".to_owned(),
            ));
        }
        self.at += length;
        let length = digits.bytes().filter(u8::is_ascii_digit).count();
        if length > NUMBER_DIGITS_MAX {
            return Err(too_long(length));
        }
        if let Some(value) = super::parse_integer(&text).filter(|_| !text.starts_with('+')) {
            return Ok(Json::Integer(value));
        }
        let well_formed =
            digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.contains(".e") && !digits.ends_with('.');
        text.parse()
            .ok()
            .filter(|_| well_formed)
            .map(Json::Double)
            .ok_or_else(|| self.fail(BAD_INPUT, format!("Invalid numeric value: '{text}'")))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.next();
        let mut out = String::new();
        loop {
            match self.next() {
                None => {
                    let what = "Unexpected end-of-input: was expecting closing quote for a string value";
                    return Err(self.fail(END_OF_INPUT, what.to_owned()));
                }
                Some('"') => return Ok(out),
                Some('\\') => out.push(self.escape()?),
                Some(c) if c < ' ' => {
                    let what = format!(
                        "Illegal unquoted character ((CTRL-CHAR, code {})): has to be escaped using backslash to be included in string value",
                        u32::from(c)
                    );
                    return Err(self.fail(BAD_INPUT, what));
                }
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        Ok(match self.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('u') => {
                let first = self.unit()?;
                // A surrogate needs its other half.
                let pair = if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    vec![first, self.unit()?]
                } else {
                    vec![first]
                };
                char::decode_utf16(pair).next().and_then(Result::ok).unwrap_or('?')
            }
            Some(c) => {
                let what = format!("Unrecognized character escape '{c}' (code {})", u32::from(c));
                self.at -= c.len_utf8();
                return Err(self.fail(BAD_INPUT, what));
            }
            None => {
                let what = "Unexpected end-of-input in character escape sequence";
                return Err(self.fail(END_OF_INPUT, what.to_owned()));
            }
        })
    }

    fn unit(&mut self) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(c) = self.next() else {
                let what = "Unexpected end-of-input in character escape sequence";
                return Err(self.fail(END_OF_INPUT, what.to_owned()));
            };
            let Some(digit) = c.to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else {
                self.at -= c.len_utf8();
                return Err(self.unexpected(c, ": expected a hex-digit for character escape sequence"));
            };
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }

    fn array(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.next();
        let mut values = Vec::new();
        self.blanks();
        if self.peek() == Some(']') {
            self.next();
            return Ok(Json::Array(values));
        }
        loop {
            self.blanks();
            if self.peek().is_none() {
                return Err(self.ended("Array", start));
            }
            values.push(self.value()?);
            self.blanks();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(Json::Array(values));
                }
                Some(c) => return Err(self.unexpected(c, ": was expecting comma to separate Array entries")),
                None => return Err(self.ended("Array", start)),
            }
        }
    }

    fn object(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.next();
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        self.blanks();
        if self.peek() == Some('}') {
            self.next();
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            let name = match self.peek() {
                Some('"') => self.string()?,
                Some(c) => return Err(self.unexpected(c, ": was expecting double-quote to start field name")),
                None => return Err(self.ended("Object", start)),
            };
            self.blanks();
            match self.peek() {
                Some(':') => self.at += 1,
                Some(c) => return Err(self.unexpected(c, ": was expecting a colon to separate field name and value")),
                None => return Err(self.ended("Object", start)),
            }
            let value = self.value()?;
            let place = *places.entry(name.clone()).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.1 = value,
                None => members.push((name, value)),
            }
            self.blanks();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => {
                    self.at += 1;
                    return Ok(Json::Object(members));
                }
                Some(c) => return Err(self.unexpected(c, ": was expecting comma to separate Object entries")),
                None => return Err(self.ended("Object", start)),
            }
        }
    }
}

impl CqlType {
    /// The bytes of a JSON value; `None` for null.
    ///
    /// # Errors
    /// The value has the wrong kind or its text is invalid; the message is in Cassandra's words.
    pub fn from_json(&self, json: &Json) -> Result<Option<Bytes>, Invalid> {
        if *json == Json::Null {
            return Ok(None);
        }
        // A collection, tuple or user-defined type may be a JSON string, since map keys must be strings.
        let nested;
        let json = match json {
            Json::String(text) if !matches!(self.unfrozen(), Self::Native(_) | Self::Custom(_)) => {
                nested =
                    Json::parse(text).map_err(|e| Invalid::JsonText(format!("Error decoding JSON string: {e}")))?;
                &nested
            }
            other => other,
        };
        Ok(Some(match self.unfrozen() {
            Self::Native(native) => native_from_json(*native, json)?.into(),
            Self::Custom(_) | Self::Frozen(_) => return Err(Invalid::Unsupported("a value of this class has no JSON")),
            Self::List(element) => {
                let values = element.all_from_json(json, "a list", "Invalid null element in list")?;
                encode_list(values.iter().map(|value| value.as_ref()))
            }
            Self::Set(element) => {
                let values =
                    element.all_from_json(json, "a list (representing a set)", "Invalid null element in set")?;
                element.encode_set(values.iter().map(|value| value.as_ref()).collect())
            }
            Self::Vector(element, count) => {
                let values = element.all_from_json(json, "a list", "Invalid null element in list")?;
                if values.len() != *count as usize {
                    return Err(Invalid::JsonText(format!(
                        "List had incorrect size: expected {count} but given {}; {json}",
                        values.len()
                    )));
                }
                element.encode_vector(values.iter().map(|value| value.as_ref()))
            }
            Self::Map(key_type, value_type) => map_from_json(key_type, value_type, json)?,
            Self::Tuple(types) => tuple_from_json(types, json)?,
            Self::User(user) => user_from_json(user, json)?,
        }))
    }

    fn all_from_json(&self, json: &Json, expected: &'static str, null: &'static str) -> Result<Vec<Bytes>, Invalid> {
        let Json::Array(values) = json else {
            return Err(wrong(json, expected));
        };
        values
            .iter()
            .map(|value| self.from_json(value)?.ok_or_else(|| Invalid::JsonText(null.to_owned())))
            .collect()
    }
}

/// The refusal of a value of another kind.
fn wrong(json: &Json, expected: &'static str) -> Invalid {
    Invalid::Json {
        expected,
        found: json.class(),
        text: json.to_string(),
    }
}

fn map_from_json(key_type: &CqlType, value_type: &CqlType, json: &Json) -> Result<Bytes, Invalid> {
    let Json::Object(members) = json else {
        return Err(wrong(json, "a map"));
    };
    let null = || Invalid::JsonText("Invalid null value in map".to_owned());
    let entries = members
        .iter()
        .map(|(name, value)| {
            let key = key_type.from_json(&Json::String(name.clone()))?.ok_or_else(null)?;
            Ok((key, value_type.from_json(value)?.ok_or_else(null)?))
        })
        .collect::<Result<Vec<_>, Invalid>>()?;
    Ok(key_type.encode_sorted_map(entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect()))
}

fn tuple_from_json(types: &[CqlType], json: &Json) -> Result<Bytes, Invalid> {
    let Json::Array(values) = json else {
        return Err(wrong(json, "a list representation of a tuple"));
    };
    if values.len() != types.len() {
        let what = if values.len() > types.len() {
            "contains extra"
        } else {
            "is missing"
        };
        let text = format!("Tuple {what} items (expected {}): {json}", types.len());
        return Err(Invalid::JsonText(text));
    }
    let fields = types
        .iter()
        .zip(values)
        .map(|(field, value)| field.from_json(value))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(encode_tuple(fields.iter().map(Option::as_deref)))
}

/// A value of a user-defined type. Of several members with one name the last counts.
fn user_from_json(user: &UserType, json: &Json) -> Result<Bytes, Invalid> {
    let Json::Object(members) = json else {
        return Err(wrong(json, "a map"));
    };
    let members: Vec<(String, &Json)> = members.iter().map(|(name, value)| (folded(name), value)).collect();
    if let Some((name, _)) = members
        .iter()
        .find(|(name, _)| user.fields.iter().all(|(field, _)| field != name))
    {
        return Err(Invalid::JsonText(format!(
            "Unknown field '{name}' in value of user defined type {}",
            user.name
        )));
    }
    let fields = user
        .fields
        .iter()
        .map(|(field, field_type)| {
            let given = members.iter().rev().find(|(name, _)| name == field);
            given.map_or(Ok(None), |(_, value)| field_type.from_json(value))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(encode_tuple(fields.iter().map(Option::as_deref)))
}

/// The CQL name of a JSON member: unchanged in double quotes, otherwise in lower case.
#[must_use]
pub fn folded(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.to_owned(),
        None => name.to_lowercase(),
    }
}

/// Cassandra's name of the expected kind.
fn expected(native: Native) -> &'static str {
    match native {
        Native::Ascii => "an ascii string",
        Native::Text => "a UTF-8 string",
        Native::Bigint | Native::Counter => "a bigint value",
        Native::Boolean => "a boolean value",
        Native::Date => "a string representation of a date value",
        Native::Double => "a double value",
        Native::Duration => "a string representation of a duration",
        Native::Float => "a float value",
        Native::Inet => "a string representation of an inet value",
        Native::Int => "an int value",
        Native::Smallint => "a short value",
        Native::Time => "a string representation of a time value",
        Native::Timestamp => "a long or a datestring representation of a timestamp value",
        Native::Timeuuid => "a string representation of a timeuuid",
        Native::Tinyint => "a byte value",
        Native::Uuid => "a string representation of a uuid",
        Native::Blob | Native::Decimal | Native::Empty | Native::Varint => "a value",
    }
}

fn native_from_json(native: Native, json: &Json) -> Result<Vec<u8>, Invalid> {
    let row = native.row();
    let wrong = || Invalid::Json {
        expected: expected(native),
        found: json.class(),
        text: json.to_string(),
    };
    let bad = |what: &str| Invalid::JsonText(format!("Value '{json}' is not a valid {what}"));
    match (native, json) {
        (Native::Blob, Json::String(text)) => match text.strip_prefix("0x") {
            Some(digits) => (row.parse)(digits).map_err(|e| bad(&format!("blob representation: {e}"))),
            None => Err(bad(&format!(
                "blob representation: String representation of blob is missing 0x prefix: {text}"
            ))),
        },
        (Native::Blob, _) => {
            let class = json.java_class();
            Err(bad(&format!(
                "blob representation: class {class} cannot be cast to class java.lang.String ({class} and \
                 java.lang.String are in module java.base of loader 'bootstrap')"
            )))
        }
        (Native::Empty, Json::String(text)) if text.is_empty() => Ok(Vec::new()),
        (Native::Empty, _) => Err(Invalid::JsonText(format!("Expected an empty string, but got: {json}"))),
        (Native::Decimal, Json::String(text)) if text.is_empty() => Ok(Vec::new()),
        // Decimals and varints are parsed from the text of any JSON value.
        (Native::Decimal, _) => {
            let text = json.to_string();
            super::big::check_digits(&text)?;
            super::Decimal::parse(&text)
                .map(|value| value.encode())
                .ok_or_else(|| bad("representation of a decimal value"))
        }
        (Native::Varint, _) => {
            let text = json.to_string();
            super::big::check_digits(&text)?;
            super::parse_integer(&text)
                .map(|value| super::encode_varint(&value))
                .ok_or_else(|| bad("representation of a varint value"))
        }
        (_, Json::String(text)) => (row.parse)(text),
        (Native::Boolean, Json::Boolean(value)) => Ok(vec![u8::from(*value)]),
        (Native::Int, Json::Integer(value)) => value.to_i32().map(|v| v.to_be_bytes().to_vec()).ok_or_else(wrong),
        (Native::Bigint | Native::Counter, Json::Integer(value)) => {
            value.to_i64().map(|v| v.to_be_bytes().to_vec()).ok_or_else(wrong)
        }
        // A timestamp needs a Java Long; a smaller number is an Integer.
        (Native::Timestamp, Json::Integer(value)) => match value.to_i64() {
            Some(millis) if value.to_i32().is_none() => Ok(millis.to_be_bytes().to_vec()),
            _ => Err(wrong()),
        },
        (Native::Tinyint | Native::Smallint, Json::Integer(_) | Json::Double(_)) => (row.parse)(&json.to_string()),
        (Native::Double, Json::Integer(value)) => Ok(super::encode_f64(value.to_f64().unwrap_or(f64::NAN)).to_vec()),
        (Native::Double, Json::Double(value)) => Ok(super::encode_f64(*value).to_vec()),
        (Native::Float, Json::Integer(value)) => Ok(super::encode_f32(value.to_f32().unwrap_or(f32::NAN)).to_vec()),
        (Native::Float, Json::Double(value)) => Ok(super::encode_f32(double_to_float(*value)).to_vec()),
        _ => Err(wrong()),
    }
}
