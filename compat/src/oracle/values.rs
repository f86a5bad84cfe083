//! Bound values in scripts: `int(5) text('it''s') hex(00ff) null unset empty list(int(1) int(2)) tuple(int(1) null)`.

use crate::raw::{Bound, unhex};

/// Reads values separated by blanks.
///
/// # Errors
/// What is wrong, for people.
pub fn parse(text: &str) -> Result<Vec<Bound>, String> {
    let mut cursor = Cursor { rest: text };
    let values = cursor.values()?;
    if cursor.rest.is_empty() {
        Ok(values)
    } else {
        Err(format!("cannot read `{}`", cursor.rest))
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn values(&mut self) -> Result<Vec<Bound>, String> {
        let mut values = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                return Ok(values);
            }
            values.push(self.value()?);
        }
    }

    fn value(&mut self) -> Result<Bound, String> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        match name {
            "null" => return Ok(Bound::Null),
            "unset" => return Ok(Bound::Unset),
            "empty" => return Ok(Bound::Bytes(Vec::new())),
            _ => {}
        }
        self.rest = rest
            .strip_prefix('(')
            .ok_or_else(|| format!("`(` expected after `{name}`"))?;
        let bytes = match name {
            "list" | "set" => {
                let values = self.values()?;
                collection(values.len(), &values)
            }
            "map" => {
                let values = self.values()?;
                collection(values.len() / 2, &values)
            }
            "tuple" | "udt" => joined(&self.values()?),
            "vector" => self
                .values()?
                .iter()
                .flat_map(|v| {
                    if let Bound::Bytes(bytes) = v {
                        bytes.clone()
                    } else {
                        Vec::new()
                    }
                })
                .collect(),
            _ => scalar(name, &self.argument()?)?,
        };
        self.rest = self.rest.trim_start().strip_prefix(')').ok_or("`)` expected")?;
        Ok(Bound::Bytes(bytes))
    }

    /// Text up to the closing parenthesis, or between quotes.
    fn argument(&mut self) -> Result<String, String> {
        let Some(mut rest) = self.rest.strip_prefix('\'') else {
            let end = self.rest.find(')').ok_or("`)` expected")?;
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Ok(text.trim().to_owned());
        };
        let mut text = String::new();
        loop {
            let end = rest.find('\'').ok_or("a quote that does not end")?;
            let (part, after) = rest.split_at(end);
            text.push_str(part);
            rest = after.get(1..).unwrap_or_default();
            match rest.strip_prefix('\'') {
                Some(after) => {
                    text.push('\'');
                    rest = after;
                }
                None => {
                    self.rest = rest;
                    return Ok(text);
                }
            }
        }
    }
}

fn joined(values: &[Bound]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        value.put(&mut out);
    }
    out
}

fn collection(count: usize, values: &[Bound]) -> Vec<u8> {
    let mut out = u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend(joined(values));
    out
}

/// Shortest two's complement.
fn varint(n: i128) -> Vec<u8> {
    let bytes = n.to_be_bytes();
    let keep = (1..bytes.len()).rev().find(|&len| {
        let tail = bytes.get(bytes.len() - len..).unwrap_or_default();
        let fill = if n < 0 { 0xFF } else { 0 };
        let head_is_fill = bytes.iter().take(bytes.len() - len).all(|b| *b == fill);
        let sign_kept = tail.first().is_some_and(|b| (b & 0x80 != 0) == (n < 0));
        !(head_is_fill && sign_kept)
    });
    let len = keep.map_or(1, |longest_wrong| longest_wrong + 1);
    bytes.get(bytes.len() - len..).unwrap_or_default().to_vec()
}

/// Unsigned vint of a zigzag number: leading one-bits of the first byte count the bytes that follow.
fn vint(n: i64) -> Vec<u8> {
    let zigzag = ((n << 1) ^ (n >> 63)).cast_unsigned();
    let bits = 64 - zigzag.leading_zeros();
    let extra = (bits.saturating_sub(1) / 7).min(8) as usize;
    let mut bytes = zigzag
        .to_be_bytes()
        .iter()
        .skip(8 - extra)
        .copied()
        .collect::<Vec<u8>>();
    let ones = if extra == 0 {
        0u8
    } else {
        0xFFu8.unbounded_shl(8 - u32::try_from(extra).unwrap_or(8))
    };
    let first = if extra >= 8 {
        0xFF
    } else {
        zigzag.to_be_bytes().get(7 - extra).copied().unwrap_or(0) | ones
    };
    bytes.insert(0, first);
    bytes
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number here: `{text}`"))
}

fn scalar(name: &str, text: &str) -> Result<Vec<u8>, String> {
    Ok(match name {
        "ascii" | "text" | "varchar" => text.as_bytes().to_vec(),
        "hex" | "blob" => unhex(text).ok_or("not hexadecimal")?,
        "uuid" | "timeuuid" => unhex(&text.replace('-', "")).ok_or("not a uuid")?,
        "boolean" => vec![u8::from(text == "true")],
        "tinyint" => number::<i8>(text)?.to_be_bytes().to_vec(),
        "smallint" => number::<i16>(text)?.to_be_bytes().to_vec(),
        "int" => number::<i32>(text)?.to_be_bytes().to_vec(),
        "bigint" | "counter" | "timestamp" | "time" => number::<i64>(text)?.to_be_bytes().to_vec(),
        "date" => number::<u32>(text)?.to_be_bytes().to_vec(),
        "float" => number::<f32>(text)?.to_be_bytes().to_vec(),
        "double" => number::<f64>(text)?.to_be_bytes().to_vec(),
        "varint" => varint(number(text)?),
        "decimal" => {
            let (unscaled, scale) = text.split_once(' ').ok_or("decimal(UNSCALED SCALE)")?;
            let mut bytes = number::<i32>(scale.trim())?.to_be_bytes().to_vec();
            bytes.extend(varint(number(unscaled)?));
            bytes
        }
        "duration" => {
            let parts = text
                .split_whitespace()
                .map(number::<i64>)
                .collect::<Result<Vec<_>, _>>()?;
            parts.iter().flat_map(|n| vint(*n)).collect()
        }
        "inet" => match text
            .parse::<std::net::IpAddr>()
            .map_err(|_| "not an address".to_owned())?
        {
            std::net::IpAddr::V4(a) => a.octets().to_vec(),
            std::net::IpAddr::V6(a) => a.octets().to_vec(),
        },
        _ => return Err(format!("no type `{name}`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex_of(text: &str) -> String {
        match parse(text).unwrap().first().unwrap() {
            Bound::Bytes(bytes) => crate::raw::hex(bytes),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn writes_what_the_protocol_says() {
        assert_eq!(hex_of("varint(0)"), "00");
        assert_eq!(hex_of("varint(128)"), "0080");
        assert_eq!(hex_of("varint(-128)"), "80");
        assert_eq!(hex_of("varint(-129)"), "ff7f");
        assert_eq!(hex_of("decimal(150 2)"), "000000020096");
        assert_eq!(hex_of("duration(1 2 3)"), "020406");
        assert_eq!(hex_of("duration(0 0 128000)"), "0000c3e800");
        assert_eq!(
            hex_of("list(int(1) text('a''b'))"),
            "00000002000000040000000100000003612762"
        );
        assert_eq!(hex_of("map(int(1) null)"), "000000010000000400000001ffffffff");
        assert_eq!(
            parse("null unset empty").unwrap(),
            [Bound::Null, Bound::Unset, Bound::Bytes(vec![])]
        );
    }
}
