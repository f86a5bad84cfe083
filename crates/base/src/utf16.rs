//! The order of texts by their UTF-16 units, kept in UTF-8: one byte for another, so that bytes compare as units do.
//!
//! UTF-8 bytes are in the order of code points. UTF-16 units are not: a character above U+FFFF begins with D800–DBFF, below U+E000–FFFF.
//! In UTF-8 the former begin with F0–F4 and the latter with EE or EF, so these lead bytes change places:
//!
//! ```text
//! UTF-8    EE EF F0 F1 F2 F3 F4        no other byte changes; each keeps its length, and no byte becomes 00 or FF
//! raised   F3 F4 EE EF F0 F1 F2
//! ```
//! Source: the order of PartitionKey and RowKey in Azure Table storage, ordinal by UTF-16 unit.

use std::cmp::Ordering;

/// The byte that stands for a byte of UTF-8 text.
#[must_use]
pub const fn raised(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte + 5,
        0xF0..=0xF4 => byte - 2,
        _ => byte,
    }
}

/// The byte for which [`raised`] made this one.
#[must_use]
pub const fn lowered(byte: u8) -> u8 {
    match byte {
        0xF3 | 0xF4 => byte - 5,
        0xEE..=0xF2 => byte + 2,
        _ => byte,
    }
}

/// Compares two UTF-8 texts by their UTF-16 units.
#[must_use]
pub fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    match differs {
        Some((one, other)) => raised(*one).cmp(&raised(*other)),
        None => one.len().cmp(&other.len()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_compare_as_their_units(one: String, other: String, shared: String) {
            for (one, other) in [(one.clone(), other.clone()), (shared.clone() + &one, shared + &other)] {
                let units = one.encode_utf16().cmp(other.encode_utf16());
                prop_assert_eq!(compare(one.as_bytes(), other.as_bytes()), units);
                let raise = |text: &str| text.bytes().map(raised).collect::<Vec<_>>();
                prop_assert_eq!(raise(&one).cmp(&raise(&other)), units);
            }
        }
    }

    #[test]
    fn every_byte_comes_back() {
        assert!((0..=u8::MAX).all(|byte| lowered(raised(byte)) == byte));
        assert_eq!(compare("\u{1F600}".as_bytes(), "\u{E000}".as_bytes()), Ordering::Less);
    }
}
