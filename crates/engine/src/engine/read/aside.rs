//! Rows that are kept until the order of all rows is known.
//!
//! ```text
//! row    { length i32 (−1: null), value }…    one allocation of exactly its size
//! ```

use crate::engine::value;

/// Packs the cells of a row.
pub(super) fn pack<'c>(cells: impl Iterator<Item = Option<&'c [u8]>> + Clone) -> Vec<u8> {
    let bytes = cells.clone().map(|cell| 4 + cell.map_or(0, <[u8]>::len)).sum();
    let mut row = Vec::with_capacity(bytes);
    for cell in cells {
        value::put_bytes(&mut row, cell);
    }
    row
}

/// The cells of a packed row.
pub(super) fn cells(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            return Some(None);
        };
        let (cell, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(cell))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_row_comes_apart_again() {
        let row: [Option<&[u8]>; 4] = [Some(b"ab"), None, Some(b""), Some(b"\xff\xff\xff\xff")];
        let packed = pack(row.into_iter());
        assert_eq!(packed.capacity(), packed.len());
        assert_eq!(cells(&packed).collect::<Vec<_>>(), row);
        assert_eq!(cells(&pack(std::iter::empty())).count(), 0);
    }
}
