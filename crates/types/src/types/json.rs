//! Values as JSON, the way `SELECT JSON` prints them and `INSERT JSON` reads them.

use super::compound::{map_entries, nullable_list_elements, set_elements, tuple_fields};
use super::native::Quoting;
use super::{CqlType, Native};
use std::fmt::Write as _;

/// A string in JSON, with quotes: control characters, quotes and backslashes escaped as Jackson does.
#[must_use]
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut rest = text;
    // Only single bytes are escaped. What lies between them is copied whole, since a text may be of megabytes.
    while let Some(at) = rest
        .bytes()
        .position(|byte| byte < b' ' || byte == b'"' || byte == b'\\')
    {
        let (before, escaped) = rest.split_at(at);
        out.push_str(before);
        let (byte, behind) = escaped.split_at(1);
        rest = behind;
        match byte {
            "\"" => out.push_str("\\\""),
            "\\" => out.push_str("\\\\"),
            "\u{8}" => out.push_str("\\b"),
            "\u{c}" => out.push_str("\\f"),
            "\n" => out.push_str("\\n"),
            "\r" => out.push_str("\\r"),
            "\t" => out.push_str("\\t"),
            control => {
                for byte in control.bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{byte:04X}");
                }
            }
        }
    }
    out.push_str(rest);
    out.push('"');
    out
}

impl CqlType {
    /// The value as JSON; the caller prints null. Empty bytes are an empty string for most native types.
    #[must_use]
    pub fn to_json(&self, bytes: &[u8]) -> String {
        let raw = || format!("\"0x{}\"", super::hex(bytes));
        match self {
            Self::Frozen(inner) => inner.to_json(bytes),
            Self::Custom(_) => raw(),
            Self::Native(native) => native_json(*native, bytes),
            // Differs: Cassandra fails on nulls that its own selections put into lists; Helenus prints them.
            Self::List(element) => nullable_list_elements(bytes).map_or_else(
                |_| raw(),
                |values| {
                    let values: Vec<String> = values.into_iter().map(|value| element.optional_json(value)).collect();
                    format!("[{}]", values.join(", "))
                },
            ),
            Self::Set(element) => set_elements(bytes).map_or_else(|_| raw(), |values| element.array(values)),
            Self::Vector(element, _) => self
                .vector_elements(bytes)
                .map_or_else(|_| raw(), |values| element.array(values)),
            Self::Map(key_type, value_type) => map_entries(bytes).map_or_else(
                |_| raw(),
                |entries| {
                    let entries: Vec<String> = entries
                        .iter()
                        .map(|(key, value)| {
                            // A key that is no string is quoted.
                            let key = key_type.to_json(key);
                            let key = if key.starts_with('"') { key } else { json_string(&key) };
                            format!("{key}: {}", value_type.to_json(value))
                        })
                        .collect();
                    format!("{{{}}}", entries.join(", "))
                },
            ),
            Self::Tuple(types) => {
                // Differs: Cassandra fails on a tuple with fewer fields than its type; Helenus prints nulls.
                let fields = types.iter().zip(tuple_fields(bytes, types.len()));
                let fields: Vec<String> = fields.map(|(field, value)| field.optional_json(value)).collect();
                format!("[{}]", fields.join(", "))
            }
            Self::User(user) => {
                let fields = user.fields.iter().zip(tuple_fields(bytes, user.fields.len()));
                let fields: Vec<String> = fields
                    .map(|((name, field), value)| {
                        // A name that is not lower case keeps its double quotes inside the string.
                        let name = if name.to_lowercase() == *name {
                            name.clone()
                        } else {
                            format!("\"{name}\"")
                        };
                        format!("{}: {}", json_string(&name), field.optional_json(value))
                    })
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }

    fn optional_json(&self, bytes: Option<&[u8]>) -> String {
        bytes.map_or_else(|| "null".to_owned(), |bytes| self.to_json(bytes))
    }

    fn array(&self, values: Vec<&[u8]>) -> String {
        let values: Vec<String> = values.into_iter().map(|value| self.to_json(value)).collect();
        format!("[{}]", values.join(", "))
    }
}

fn native_json(native: Native, bytes: &[u8]) -> String {
    let row = native.row();
    let raw = || format!("\"0x{}\"", super::hex(bytes));
    if row.quoting == Quoting::Hexadecimal {
        return raw();
    }
    if bytes.is_empty() {
        return "\"\"".to_owned();
    }
    let Some(text) = (row.print)(bytes) else {
        return raw();
    };
    match native {
        Native::Timestamp => match super::decode_i64(bytes) {
            Some(millis) => json_string(&super::timestamp_text(millis, ' ')),
            None => raw(),
        },
        Native::Float | Native::Double if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            "null".to_owned()
        }
        _ if row.quoting == Quoting::Bare => text,
        _ => json_string(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_jackson_does() {
        for (text, expected) in [
            ("", r#""""#),
            ("plain, 'é' and 😀\u{7f}", "\"plain, 'é' and 😀\u{7f}\""),
            ("\"a\\b\"", r#""\"a\\b\"""#),
            ("é\n\r\t\u{8}\u{c}é", r#""é\n\r\t\b\fé""#),
            ("\u{0}\u{1f}\u{1b}x", r#""\u0000\u001F\u001Bx""#),
        ] {
            assert_eq!(json_string(text), expected);
            assert_eq!(serde_json::from_str::<String>(expected).unwrap(), text);
        }
    }
}
