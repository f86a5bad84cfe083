//! The change feed of a table: the latest version of each row, in the order of the last changes.
//!
//! The feed is kept as one more index of the table ([`crate::engine::index`]): built behind the live table, maintained
//! by the committer, removed with the table. Its value is the position of a row's last change
//! ([`crate::partition::store::Positions`]), after the number of the arc of the ring in which the row lies:
//!
//! ```text
//! entry   feed id u32 · arc u8 · position u64 · the row's key after the table id
//! arc     the highest 6 bits of the token: 0 … 63
//! ```
//! **Life of a sweep.** A reader begins with a position after which it wants changes. The server takes the horizon and
//! walks the arcs of the wanted part of the ring; in each, the entries after the position and up to the horizon. After
//! the last arc the reader has everything up to the horizon, and the next sweep begins there. The paging state names the
//! position, the horizon and the last entry that was passed, and no physical partition. So it stays valid after splits,
//! merges, moves and restarts.
//!
//! **Invariants.**
//! - A change that is acknowledged before a sweep begins is returned by it, unless a later change of the row replaces it.
//! - Rows of a logical partition come in the order of their last changes: they lie in one arc.
//! - A row may be returned more than once, after a failure or when a write changes nothing. None is left out.

mod number;
mod read;

pub(crate) use number::numbered;
pub(crate) use read::Sweep;

use crate::partition::store::key;

/// Bits of the token that make the number of an arc: few enough that a poll visits them all, and enough that a physical
/// partition of a large table need not pass over the changes of many others.
const ARC_BITS: u32 = 6;

/// Bytes of the value of an entry: the arc and the position.
pub(crate) const VALUE_BYTES: usize = 9;

/// The arc in which the row of a key lies. `None` means that it is no key.
pub(crate) fn arc_of(key: &[u8]) -> Option<u8> {
    let place = key::place_of(key)?;
    place.first().map(|first| first >> (8 - ARC_BITS))
}

/// The arc of a token.
fn arc_of_token(token: i64) -> u8 {
    let [first, ..] = (token.cast_unsigned() ^ (1 << 63)).to_be_bytes();
    first >> (8 - ARC_BITS)
}

/// The value of an entry.
pub(crate) fn value(arc: u8, position: i64) -> [u8; VALUE_BYTES] {
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
