//! Wire encoding of the few value types that system tables use.

use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

/// A `text`.
#[must_use]
pub fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// An `int`.
#[must_use]
pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A `bigint`.
#[must_use]
pub fn bigint(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A `double`.
#[must_use]
pub fn double(value: f64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A `boolean`.
#[must_use]
pub fn boolean(value: bool) -> Bytes {
    Bytes::from_static(if value { &[1] } else { &[0] })
}

/// A `uuid`.
#[must_use]
pub fn uuid(value: Uuid) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// An `inet`.
#[must_use]
pub fn inet(value: IpAddr) -> Bytes {
    match value {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

fn length(length: usize) -> i32 {
    i32::try_from(length).expect("what the schema holds came in frames, which are far below 2 GiB")
}

fn put(into: &mut BytesMut, value: &Bytes) {
    into.put_i32(length(value.len()));
    into.put_slice(value);
}

/// A list, or a set whose elements are already sorted.
pub fn list(elements: &[Bytes]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i32(length(elements.len()));
    for element in elements {
        put(&mut bytes, element);
    }
    bytes.freeze()
}

/// A map whose entries are already sorted by key.
pub fn map(entries: &[(Bytes, Bytes)]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i32(length(entries.len()));
    for (key, value) in entries {
        put(&mut bytes, key);
        put(&mut bytes, value);
    }
    bytes.freeze()
}

/// `map<text, text>`
pub fn text_map<'a>(entries: impl IntoIterator<Item = (&'a String, &'a String)>) -> Bytes {
    let mut entries: Vec<(Bytes, Bytes)> = entries
        .into_iter()
        .map(|(key, value)| (text(key), text(value)))
        .collect();
    entries.sort();
    map(&entries)
}

/// `list<text>`
pub fn text_list<'a>(elements: impl IntoIterator<Item = &'a str>) -> Bytes {
    let elements: Vec<Bytes> = elements.into_iter().map(text).collect();
    list(&elements)
}

/// `set<text>`
pub fn text_set<'a>(elements: impl IntoIterator<Item = &'a str>) -> Bytes {
    let mut elements: Vec<Bytes> = elements.into_iter().map(text).collect();
    elements.sort();
    elements.dedup();
    list(&elements)
}
