//! uuid and timeuuid: order, text, and the parts of a version 1 uuid.

use super::key::{self, KeyReader};
use super::{Corrupt, Invalid};
use std::cmp::Ordering;

/// 100 ns steps between the start of the Gregorian calendar, 1582-10-15, and 1970-01-01.
const GREGORIAN_OFFSET_100NS: i64 = 0x01b2_1dd2_1381_4000;

pub(super) fn validate_uuid(bytes: &[u8]) -> Result<(), Invalid> {
    match bytes.len() {
        0 | 16 => Ok(()),
        length => Err(Invalid::UuidLength(length)),
    }
}

pub(super) fn validate_timeuuid(bytes: &[u8]) -> Result<(), Invalid> {
    validate_uuid(bytes)?;
    match (bytes.first(), bytes.get(6)) {
        (Some(first), Some(seventh)) if seventh >> 4 != 1 => Err(Invalid::TimeuuidVersion(first.cast_signed() >> 4)),
        _ => Ok(()),
    }
}

/// Version and time first: time_hi, time_mid, time_low.
fn time_first(b: [u8; 16]) -> [u8; 16] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, rest @ ..] = b;
    let [r0, r1, r2, r3, r4, r5, r6, r7] = rest;
    [b6, b7, b4, b5, b0, b1, b2, b3, r0, r1, r2, r3, r4, r5, r6, r7]
}

/// The inverse of [`time_first`].
fn time_last(b: [u8; 16]) -> [u8; 16] {
    let [b0, b1, b2, b3, b4, b5, b6, b7, rest @ ..] = b;
    let [r0, r1, r2, r3, r4, r5, r6, r7] = rest;
    [b4, b5, b6, b7, b2, b3, b0, b1, r0, r1, r2, r3, r4, r5, r6, r7]
}

/// The second half as signed bytes.
fn signed_half(mut b: [u8; 16]) -> [u8; 16] {
    for byte in b.iter_mut().skip(8) {
        *byte ^= 0x80;
    }
    b
}

fn array(bytes: &[u8]) -> Option<[u8; 16]> {
    bytes.try_into().ok()
}

/// The first half of byte 6.
fn version(b: &[u8; 16]) -> u8 {
    let [_, _, _, _, _, _, seventh, ..] = b;
    seventh >> 4
}

/// A timeuuid's order: time, then the rest as signed bytes.
pub(super) fn compare_timeuuid(a: &[u8], b: &[u8]) -> Ordering {
    super::number::compare_by(a, b, array, |x, y| {
        signed_half(time_first(*x)).cmp(&signed_half(time_first(*y)))
    })
}

/// A uuid's order: version; then time for version 1; then bytes.
pub(super) fn compare_uuid(a: &[u8], b: &[u8]) -> Ordering {
    super::number::compare_by(a, b, array, |x, y| {
        version(x).cmp(&version(y)).then_with(|| {
            if version(x) == 1 {
                time_first(*x).cmp(&time_first(*y))
            } else {
                x.cmp(y)
            }
        })
    })
}

pub(super) fn order_timeuuid(bytes: &[u8], out: &mut Vec<u8>) {
    key::order_fixed::<16>(bytes, out, |b| signed_half(time_first(b)));
}

pub(super) fn read_timeuuid(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    key::read_fixed::<16>(reader, out, |b| time_last(signed_half(b)))
}

/// Marker, version, then the bytes in order of significance.
pub(super) fn order_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    match array(bytes) {
        Some(b) => {
            out.extend_from_slice(&[key::VALUE, version(&b)]);
            out.extend_from_slice(&if version(&b) == 1 { time_first(b) } else { b });
        }
        None if bytes.is_empty() => out.push(key::EMPTY),
        None => key::order_raw(bytes, out),
    }
}

pub(super) fn read_uuid(reader: &mut KeyReader<'_>, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    match reader.byte()? {
        key::EMPTY => Ok(()),
        key::VALUE => {
            let version = reader.byte()?;
            let b = reader.array()?;
            out.extend_from_slice(&if version == 1 { time_last(b) } else { b });
            Ok(())
        }
        key::RAW => reader.escaped(out),
        _ => Err(Corrupt("uuid")),
    }
}

/// The 16 bytes of 8-4-4-4-12 hexadecimal digits.
#[must_use]
pub fn parse(text: &str) -> Option<[u8; 16]> {
    let groups: Vec<&str> = text.split('-').collect();
    let shape = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    if !shape {
        return None;
    }
    super::text::unhex(&groups.concat())?.try_into().ok()
}

/// Lower case, 8-4-4-4-12.
#[must_use]
pub fn to_text(b: [u8; 16]) -> String {
    uuid::Uuid::from_bytes(b).to_string()
}

pub(super) fn parse_uuid(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse(text)
        .map(Vec::from)
        .ok_or_else(|| Invalid::Text("Unable to make UUID from", text.to_owned()))
}

pub(super) fn parse_timeuuid(text: &str) -> Result<Vec<u8>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let b = parse(text).ok_or_else(|| Invalid::TimeuuidText(text.to_owned()))?;
    if version(&b) == 1 {
        Ok(b.to_vec())
    } else {
        Err(Invalid::TimeuuidLiteral)
    }
}

/// The time of a version 1 uuid in 100 ns steps since 1970-01-01; `None` for other versions and other lengths.
#[must_use]
pub fn unix_100ns(bytes: &[u8]) -> Option<i64> {
    let b = array(bytes)?;
    if version(&b) != 1 {
        return None;
    }
    let (time, _) = time_first(b)
        .split_first_chunk::<8>()
        .map(|(time, rest)| (*time, rest))?;
    Some((i64::from_be_bytes(time) & 0x0fff_ffff_ffff_ffff) - GREGORIAN_OFFSET_100NS)
}

/// The time of a version 1 uuid in milliseconds since 1970-01-01, rounded down.
#[must_use]
pub fn unix_millis(bytes: &[u8]) -> Option<i64> {
    // Java divides towards zero after subtracting the offset.
    unix_100ns(bytes).map(|steps| steps / 10_000)
}

/// A version 1 uuid of a time in 100 ns steps since 1970-01-01, with the given clock sequence and node as its second half.
#[must_use]
pub fn timeuuid(unix_100ns: i64, clock_and_node: u64) -> [u8; 16] {
    let time = unix_100ns.wrapping_add(GREGORIAN_OFFSET_100NS).cast_unsigned() & 0x0fff_ffff_ffff_ffff;
    let [t0, t1, t2, t3, t4, t5, t6, t7] = (time | 0x1000_0000_0000_0000).to_be_bytes();
    let [n0, n1, n2, n3, n4, n5, n6, n7] = clock_and_node.to_be_bytes();
    [t4, t5, t6, t7, t2, t3, t0, t1, n0, n1, n2, n3, n4, n5, n6, n7]
}

/// The least timeuuid of a millisecond, as `minTimeuuid` returns it.
#[must_use]
pub fn min_timeuuid(unix_millis: i64) -> [u8; 16] {
    timeuuid(unix_millis.wrapping_mul(10_000), 0x8080_8080_8080_8080)
}

/// The greatest timeuuid of a millisecond, as `maxTimeuuid` returns it.
#[must_use]
pub fn max_timeuuid(unix_millis: i64) -> [u8; 16] {
    let last = unix_millis.wrapping_add(1).wrapping_mul(10_000).wrapping_sub(1);
    timeuuid(last, 0x7f7f_7f7f_7f7f_7f7f)
}
