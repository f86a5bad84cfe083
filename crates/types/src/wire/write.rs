//! Writes the protocol's notations (native_protocol_v5.spec §3) at the end of a buffer.
//!
//! Values that do not fit their notation are cut: a `[string]` at the last character that ends within 65,535 bytes, a
//! list at 65,535 elements. Values that may be longer have an `[int]` length.

use std::net::SocketAddr;

use super::value::Value;

/// Writes a `[short]`.
pub fn short(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Writes an `[int]`.
pub fn int(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Writes a `[long]`.
pub fn long(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Writes a count as an `[int]`; a larger one is impossible within a frame.
pub fn count(out: &mut Vec<u8>, value: usize) {
    int(out, i32::try_from(value).unwrap_or(i32::MAX));
}

/// Writes a count as a `[short]` and returns how many elements may follow.
pub fn short_count(out: &mut Vec<u8>, value: usize) -> usize {
    let count = u16::try_from(value).unwrap_or(u16::MAX);
    short(out, count);
    count.into()
}

/// Writes a `[string]`, cut at 65,535 bytes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    short_count(out, end);
    out.extend_from_slice(text.as_bytes().get(..end).unwrap_or_default());
}

/// Writes a `[long string]`.
pub fn long_string(out: &mut Vec<u8>, text: &str) {
    count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Writes a `[string list]`.
pub fn string_list<T: AsRef<str>>(out: &mut Vec<u8>, list: &[T]) {
    let count = short_count(out, list.len());
    for text in list.iter().take(count) {
        string(out, text.as_ref());
    }
}

/// Writes a `[bytes]`; `None` as length −1.
pub fn bytes(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => int(out, -1),
        Some(value) => {
            count(out, value.len());
            out.extend_from_slice(value);
        }
    }
}

/// Writes a `[value]`.
pub fn value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => int(out, -1),
        Value::Unset => int(out, -2),
        Value::Bytes(value) => bytes(out, Some(value)),
    }
}

/// Writes a `[short bytes]`, cut at 65,535 bytes.
pub fn short_bytes(out: &mut Vec<u8>, value: &[u8]) {
    let count = short_count(out, value.len());
    out.extend_from_slice(value.get(..count).unwrap_or(value));
}

/// Writes a `[bytes map]`.
pub fn bytes_map<K: AsRef<str>, V: AsRef<[u8]>>(out: &mut Vec<u8>, map: &[(K, V)]) {
    let count = short_count(out, map.len());
    for (key, value) in map.iter().take(count) {
        string(out, key.as_ref());
        bytes(out, Some(value.as_ref()));
    }
}

/// Writes an `[inetaddr]`: a size byte and the address.
pub fn inetaddr(out: &mut Vec<u8>, address: std::net::IpAddr) {
    match address {
        std::net::IpAddr::V4(address) => {
            out.push(4);
            out.extend_from_slice(&address.octets());
        }
        std::net::IpAddr::V6(address) => {
            out.push(16);
            out.extend_from_slice(&address.octets());
        }
    }
}

/// Writes an `[inet]`: an `[inetaddr]` and an `[int]` port.
pub fn inet(out: &mut Vec<u8>, address: SocketAddr) {
    inetaddr(out, address.ip());
    int(out, address.port().into());
}
