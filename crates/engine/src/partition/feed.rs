//! The entries of the change feed, an index of a table: which value leads to a row.
//!
//! ```text
//! value   arc u8 · position u64 with its sign flipped, big-endian
//! arc     the highest 6 bits of the token: 0 … 63
//! ```

use helenus_storage::storage::{KEY_BYTES_MAX, key};

/// Bits of the token that make the number of an arc: few enough that a poll visits them all, and enough that a physical
/// partition of a large table need not pass over the changes of many others.
const ARC_BITS: u32 = 6;

/// Bytes of the longest key of a row that can have an entry.
pub const ROW_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - VALUE_BYTES;

/// Bytes of the value of an entry: the arc and the position.
pub const VALUE_BYTES: usize = 9;

/// The arc in which the row of a key lies. `None` means that it is no key.
#[must_use]
pub fn arc_of(key: &[u8]) -> Option<u8> {
    let place = key::place_of(key)?;
    place.first().map(|first| first >> (8 - ARC_BITS))
}

/// The arc of a token.
#[must_use]
pub fn arc_of_token(token: i64) -> u8 {
    let [first, ..] = (token.cast_unsigned() ^ (1 << 63)).to_be_bytes();
    first >> (8 - ARC_BITS)
}

/// The value of an entry.
#[must_use]
pub fn value(arc: u8, position: i64) -> [u8; VALUE_BYTES] {
    let mut value = [arc; VALUE_BYTES];
    if let Some((_, to)) = value.split_first_mut() {
        // Positions are never negative; the flipped sign keeps the order in any case.
        to.copy_from_slice(&(position.cast_unsigned() ^ (1 << 63)).to_be_bytes());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_lies_in_the_arc_of_its_token() {
        for token in [i64::MIN, -1, 0, 1, i64::MAX, 1 << 58, -(1 << 58)] {
            let key = key::partition_prefix(7, token, b"k");
            assert_eq!(arc_of(&key), Some(arc_of_token(token)), "{token}");
        }
        assert_eq!((arc_of_token(i64::MIN), arc_of_token(i64::MAX)), (0, 63));
    }

    #[test]
    fn values_sort_by_arc_and_then_by_position() {
        assert!(value(1, 5) < value(1, 6));
        assert!(value(1, i64::MAX) < value(2, 0));
    }
}
