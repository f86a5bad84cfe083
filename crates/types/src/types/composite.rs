//! Literals of marshal classes that CQL has no name for: `CompositeType(A,B)` and `DynamicCompositeType(a=>A,b=>B)`.
//!
//! ```text
//! composite   per component: u16 length, bytes, 00
//! dynamic     per component: u16 0x8000 | alias, u16 length, bytes, 00
//! ```
//! Their values are compared as bytes. Differs: Cassandra compares them component by component.

use super::{CqlType, Invalid};
use std::fmt;

/// The parameters of such a class.
pub(super) enum Parameters {
    /// Types of the components.
    Types(Vec<CqlType>),
    /// Types by their alias, a letter.
    Aliases(Vec<(u8, CqlType)>),
    /// An unknown class, as written.
    Other(String),
}

impl Parameters {
    pub(super) fn read(text: &str, class: &str) -> Option<Self> {
        match class {
            "CompositeType" => split(text)
                .into_iter()
                .map(|part| CqlType::parse_marshal(part).ok())
                .collect::<Option<Vec<_>>>()
                .filter(|types| !types.is_empty())
                .map(Self::Types),
            "DynamicCompositeType" => {
                let mut aliases = split(text)
                    .into_iter()
                    .map(|part| {
                        let (alias, class) = part.split_once("=>")?;
                        let &[alias] = alias.trim().as_bytes() else {
                            return None;
                        };
                        Some((alias, CqlType::parse_marshal(class).ok()?))
                    })
                    .collect::<Option<Vec<_>>>()?;
                // The iteration order of Java's hash table with 16 buckets.
                aliases.sort_by_key(|(alias, _)| alias & 15);
                Some(Self::Aliases(aliases))
            }
            _ => Some(Self::Other(text.to_owned())),
        }
    }

    /// Of a class written in full.
    fn of_class(class: &str) -> Option<Self> {
        let (head, tail) = class.split_once('(').unwrap_or((class, ")"));
        Self::read(tail.strip_suffix(')')?, head.rsplit('.').next()?)
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Types(types) => {
                let types: Vec<String> = types.iter().map(CqlType::marshal_name).collect();
                write!(f, "({})", types.join(","))
            }
            Self::Aliases(aliases) => {
                let aliases: Vec<String> = aliases
                    .iter()
                    .map(|(alias, class)| format!("{}=>{}", char::from(*alias), class.marshal_name()))
                    .collect();
                write!(f, "({})", aliases.join(","))
            }
            Self::Other(text) if text.is_empty() => Ok(()),
            Self::Other(text) => write!(f, "({text})"),
        }
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let mut parts: Vec<&str> = text
        .split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        })
        .map(str::trim)
        .collect();
    if parts == [""] {
        parts.clear();
    }
    parts
}

/// Splits at colons; `\:` is an escaped colon.
pub(super) fn components(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, characters.peek()) {
            ('\\', Some(':')) => {
                characters.next();
                if let Some(last) = parts.last_mut() {
                    last.push(':');
                }
            }
            (':', _) => parts.push(String::new()),
            _ => {
                if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    parts
}

/// Encodes a literal's text for a class with its full name.
pub(super) fn parse(class: &str, text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    match Parameters::of_class(class) {
        Some(Parameters::Types(types)) => {
            let parts = components(text);
            if parts.len() > types.len() {
                return Err(Invalid::Unsupported("too many components"));
            }
            for (part, component) in parts.iter().zip(types) {
                put(&component.parse_text(part)?, &mut out)?;
            }
        }
        Some(Parameters::Aliases(aliases)) => {
            for part in components(text) {
                let (alias, value) = part
                    .split_once('@')
                    .ok_or(Invalid::Unsupported("a component needs an alias and @"))?;
                let component = aliases
                    .iter()
                    .find(|(known, _)| alias.as_bytes() == [*known])
                    .ok_or(Invalid::Unsupported("unknown alias of a component"))?;
                out.extend_from_slice(&[0x80, component.0]);
                put(&component.1.parse_text(value)?, &mut out)?;
            }
        }
        Some(Parameters::Other(_)) | None => return Err(Invalid::Unsupported("a value of this class has no literal")),
    }
    Ok(out)
}

fn put(value: &[u8], out: &mut Vec<u8>) -> Result<(), Invalid> {
    let length = u16::try_from(value.len()).map_err(|_| Invalid::Unsupported("a component has at most 65535 bytes"))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    out.push(0);
    Ok(())
}
