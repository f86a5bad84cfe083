//! Values as parts of an ordered key: byte order of keys is the type's order of values.
//!
//! ```text
//! key   = order trailer            the trailer only for types that have equal values of different bytes
//! order = 00                       no bytes at all, before everything (not for text, blob, inet: see below)
//!       | 01 …                     the value, transformed so that bytes compare as values do
//!       | 02 escaped               bytes that are no value of the type; validated bytes never get this encoding
//! text, blob, inet: escaped        00 becomes 00 FF, 00 00 ends it
//! trailer = 00                     the order part decodes to the very bytes
//!         | 01 escaped             these are the bytes
//! ```
//! text by UTF-16 unit: the same, with its bytes `raised` (`helenus_base::utf16`)
//! Each is prefix-free, so parts follow one another without a length. Descending is the same bytes inverted.
//!
//! Differs: in Cassandra clustering values that compare equal (decimal 1.5 and 1.50, a varint with needless zeros,
//! NaNs, tuples with and without trailing nulls) are one row, shown as it was first written. Their keys here share the
//! order part ([`super::CqlType::encode_key_order`]) and differ in the trailer, so each reads back as it was written.
//! The writer can search for the order part first.

use super::Corrupt;

/// The order in which the values of a column lie in a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyOrder {
    /// From the greatest value to the least.
    pub descending: bool,
    /// Texts by their UTF-16 units ([`helenus_base::utf16`]) instead of their code points.
    pub by_utf16: bool,
}

impl From<bool> for KeyOrder {
    fn from(descending: bool) -> Self {
        Self {
            descending,
            by_utf16: false,
        }
    }
}

/// Reads a key, ascending or inverted.
pub(super) struct KeyReader<'a> {
    input: &'a [u8],
    mask: u8,
}

impl<'a> KeyReader<'a> {
    pub(super) fn new(input: &'a [u8], descending: bool) -> Self {
        Self {
            input,
            mask: if descending { 0xff } else { 0 },
        }
    }

    /// The unread bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.input
    }

    pub(super) fn byte(&mut self) -> Result<u8, Corrupt> {
        let (first, rest) = self.input.split_first().ok_or(Corrupt("byte"))?;
        self.input = rest;
        Ok(first ^ self.mask)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (first, rest) = self.input.split_first_chunk::<N>().ok_or(Corrupt("fixed width"))?;
        self.input = rest;
        Ok(first.map(|byte| byte ^ self.mask))
    }

    /// Appends so many bytes to `out`.
    pub(super) fn take(&mut self, count: usize, out: &mut Vec<u8>) -> Result<(), Corrupt> {
        let (first, rest) = self.input.split_at_checked(count).ok_or(Corrupt("counted bytes"))?;
        self.input = rest;
        self.append(first, out);
        Ok(())
    }

    fn append(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(bytes);
        if self.mask != 0 {
            for byte in out.iter_mut().skip(start) {
                *byte ^= self.mask;
            }
        }
    }

    /// Appends to `out` what [`escape`] has escaped.
    pub(super) fn escaped(&mut self, out: &mut Vec<u8>) -> Result<(), Corrupt> {
        loop {
            let zero = self.input.iter().position(|byte| byte ^ self.mask == 0);
            self.take(zero.ok_or(Corrupt("byte"))?, out)?;
            self.byte()?;
            match self.byte()? {
                0 => return Ok(()),
                0xff => out.push(0),
                _ => return Err(Corrupt("escaped bytes")),
            }
        }
    }
}

/// Bytes of any length in byte order: 00 becomes 00 FF, 00 00 ends them.
pub(super) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let (head, tail) = rest.split_at(zero);
        out.extend_from_slice(head);
        out.extend_from_slice(&[0, 0xff]);
        rest = tail.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// The value has no bytes.
pub(super) const EMPTY: u8 = 0;
/// A value follows.
pub(super) const VALUE: u8 = 1;
/// Bytes that are no value follow, escaped.
pub(super) const RAW: u8 = 2;

/// A marker, then a value of exactly `N` bytes, transformed.
pub(super) fn order_fixed<const N: usize>(bytes: &[u8], out: &mut Vec<u8>, transform: fn([u8; N]) -> [u8; N]) {
    if bytes.is_empty() {
        out.push(EMPTY);
    } else if let Ok(value) = <[u8; N]>::try_from(bytes) {
        out.push(VALUE);
        out.extend_from_slice(&transform(value));
    } else {
        order_raw(bytes, out);
    }
}

/// Reads what [`order_fixed`] wrote; `transform` must be the inverse.
pub(super) fn read_fixed<const N: usize>(
    reader: &mut KeyReader<'_>,
    out: &mut Vec<u8>,
    transform: fn([u8; N]) -> [u8; N],
) -> Result<(), Corrupt> {
    match reader.byte()? {
        EMPTY => Ok(()),
        VALUE => {
            out.extend_from_slice(&transform(reader.array()?));
            Ok(())
        }
        RAW => reader.escaped(out),
        _ => Err(Corrupt("marker")),
    }
}

/// A marker, then bytes that are no value.
pub(super) fn order_raw(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(RAW);
    escape(bytes, out);
}

/// Sorts negative numbers before the others.
pub(super) fn flip_sign<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    bytes
}

/// The identity transformation.
pub(super) fn same<const N: usize>(bytes: [u8; N]) -> [u8; N] {
    bytes
}
