//! Text and bytes: ascii, text, blob; also boolean, inet and the empty type.

use super::key::{self, KeyReader};
use super::number::validate_width;
use super::{Corrupt, Invalid};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn validate_ascii(bytes: &[u8]) -> Result<(), Invalid> {
    match bytes.iter().find(|byte| !byte.is_ascii()) {
        Some(byte) => Err(Invalid::AsciiByte(byte.cast_signed())),
        None => Ok(()),
    }
}

/// Differs: Cassandra's own check accepts surrogates and over-long encodings, and cannot read them back.
pub(super) fn validate_text(bytes: &[u8]) -> Result<(), Invalid> {
    std::str::from_utf8(bytes).map(|_| ()).map_err(|_| Invalid::Utf8)
}

pub(super) fn validate_blob(_: &[u8]) -> Result<(), Invalid> {
    Ok(())
}

pub(super) fn validate_boolean(bytes: &[u8]) -> Result<(), Invalid> {
    validate_width(bytes, 1, true, "1 or 0 byte value")
}

pub(super) fn validate_empty(bytes: &[u8]) -> Result<(), Invalid> {
    if bytes.is_empty() {
        Ok(())
    } else {
        Err(Invalid::NotEmpty)
    }
}

pub(super) fn validate_inet(bytes: &[u8]) -> Result<(), Invalid> {
    match bytes.len() {
        0 | 4 | 16 => Ok(()),
        _ => Err(Invalid::InetLength(hex(bytes))),
    }
}

/// Order of unsigned bytes.
pub(super) fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

/// The value of a boolean: anything but 0 is true. `None` when empty or not one byte.
#[must_use]
pub fn decode_boolean(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [byte] => Some(*byte != 0),
        _ => None,
    }
}

pub(super) fn compare_boolean(a: &[u8], b: &[u8]) -> Ordering {
    super::number::compare_by(a, b, decode_boolean, Ord::cmp)
}

pub(super) fn order_boolean(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<1>(bytes, out, |[byte]| [u8::from(byte != 0)]);
}

pub(super) fn read_boolean(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<1>(reader, out, key::same)
}

pub(super) fn order_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    key::escape(bytes, out);
}

pub(super) fn read_bytes(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    reader.escaped(out)
}

pub(super) fn parse_ascii(text: &str) -> Result<Vec<u8>, Invalid> {
    match text.chars().find(|c| !c.is_ascii()) {
        Some(c) => Err(Invalid::AsciiCharacter(c.len_utf16())),
        None => Ok(text.as_bytes().to_vec()),
    }
}

pub(super) fn parse_text(text: &str) -> Result<Vec<u8>, Invalid> {
    Ok(text.as_bytes().to_vec())
}

pub(super) fn parse_boolean(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() || text.eq_ignore_ascii_case("false") {
        Ok(vec![0])
    } else if text.eq_ignore_ascii_case("true") {
        Ok(vec![1])
    } else {
        Err(Invalid::Text("Unable to make boolean from", text.to_owned()))
    }
}

pub(super) fn parse_empty(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        Ok(Vec::new())
    } else {
        Err(Invalid::EmptyText(text.to_owned()))
    }
}

/// Hexadecimal digits without `0x`.
pub(super) fn parse_blob(text: &str) -> Result<Vec<u8>, Invalid> {
    unhex(text).ok_or_else(|| Invalid::Hex(text.to_owned()))
}

/// Lower-case hexadecimal digits, two a byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// The bytes of hexadecimal digits; `None` for an odd number of them or anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => {
                let high = char::from(*high).to_digit(16)?;
                let low = char::from(*low).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()
            }
            _ => None,
        })
        .collect()
}

/// The address of 4 or 16 bytes; an IPv4 address mapped into IPv6 becomes IPv4, as in Java.
#[must_use]
pub fn decode_inet(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::V4(Ipv4Addr::from(v4)));
    }
    let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
    Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4))
}

/// As Java prints it: IPv6 in eight groups, nothing abbreviated.
#[must_use]
pub fn inet_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => v6.segments().map(|group| format!("{group:x}")).join(":"),
    }
}

/// Differs: Cassandra resolves any other text as a host name; here only `localhost` is known.
pub(super) fn parse_inet(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(v6) = inner.parse::<Ipv6Addr>() {
        return Ok(match v6.to_ipv4_mapped() {
            Some(v4) => v4.octets().to_vec(),
            None => v6.octets().to_vec(),
        });
    }
    if text == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.octets().to_vec());
    }
    java_ipv4(text).ok_or_else(|| Invalid::Text("Unable to make inet address from", text.to_owned()))
}

/// One to four decimal numbers, the last of which fills what is left, as Java reads them.
fn java_ipv4(text: &str) -> Option<Vec<u8>> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 {
        return None;
    }
    let number = |part: &str| -> Option<u64> {
        (!part.is_empty() && part.len() <= 10 && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse().ok())
            .flatten()
    };
    let mut bytes = heads
        .iter()
        .map(|part| u8::try_from(number(part)?).ok())
        .collect::<Option<Vec<u8>>>()?;
    let width = 4 - heads.len();
    let value = number(last)?.to_be_bytes();
    let (high, low) = value.split_at(8 - width);
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    bytes.extend_from_slice(low);
    Some(bytes)
}
