//! What the bounds of a deleted range say in columns: the inverse of how the planner makes a range of keys of a relation.
//!
//! A bound in storage is a prefix `p` of keys, or the least byte string above all that begin with `p` (its successor). `p`
//! is the encodings of leading clustering columns; the last one may lack its trailer, so that it stands for all values that
//! compare equal. Keys are in the order of values and prefix-free, so a bound that reads back as either of the two holds
//! exactly the rows that the deletion covers.
//!
//! Some bounds read back as both: `c > 5` and `c >= 6` are one range of an int. Then the plainer of the two is told.

use bytes::Bytes;

use helenus_types::types::{CqlType, KeyOrder};

/// Bytes of 0xFF that a successor may have lost, tried one after the other. The last is more than a clustering key has.
const LOST_BYTES: [usize; 3] = [32, 2 * 1024, 128 * 1024];

/// How much shorter the text of the value before must be to be told in place of the value itself: 1.5, not
/// 1.5000000000000002.
const SHORTER_CHARACTERS: usize = 3;

/// A bound as the leading columns that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) values: Vec<Bytes>,
    /// Whether the bound comes after all rows with these values, not before them.
    pub(super) is_behind: bool,
}

/// Tells a bound: the type of each clustering column, and its order. `start` is the other bound, of an end.
///
/// Returns `None` for bytes that are no bound.
pub(super) fn told(bound: &[u8], columns: &[(&CqlType, KeyOrder)], start: Option<&[u8]>) -> Option<Told> {
    let first = leading(bound, bound.len(), columns);
    let behind = last_before(bound, columns);
    let is_behind = match (&first, &behind) {
        (Some((first, _)), Some((behind, length))) => {
            let is_of_start = start.is_some_and(|start| {
                // The prefix is the bound with its last byte lowered and only 0xFF after it.
                let kept = bound.len() - 1;
                start.get(..kept) == bound.get(..kept)
                    && start.get(kept).copied() == bound.last().map(|last| last - 1)
                    && start
                        .get(kept + 1..*length)
                        .is_some_and(|lost| lost.iter().all(|byte| *byte == u8::MAX))
            });
            is_of_start || plainness(behind, columns) < plainness(first, columns)
        }
        (_, behind) => behind.is_some(),
    };
    let (values, _) = if is_behind { behind } else { first }?;
    Some(Told { values, is_behind })
}

/// How plain the last value is; less is plainer. The text counts in steps, so that neighbouring numbers are alike.
fn plainness(values: &[Bytes], columns: &[(&CqlType, KeyOrder)]) -> (bool, bool, usize) {
    let Some((last, (ty, _))) = values.last().zip(columns.get(values.len().wrapping_sub(1))) else {
        return (false, false, 0);
    };
    if ty.validate(last).is_err() {
        return (true, false, 0);
    }
    // JSON has no infinity: its text is null.
    let json = ty.to_json(last);
    (json == "null", last.is_empty(), json.len() / SHORTER_CHARACTERS)
}

/// Reads the prefix that a bound is the successor of.
fn last_before(bound: &[u8], columns: &[(&CqlType, KeyOrder)]) -> Option<(Vec<Bytes>, usize)> {
    let mut lowered = bound.to_vec();
    let last = lowered.last_mut()?;
    *last = last.checked_sub(1)?;
    let length = lowered.len();
    LOST_BYTES.iter().find_map(|lost| {
        lowered.resize(length + lost, u8::MAX);
        leading(&lowered, length, columns)
    })
}

/// Reads leading columns from the bytes until at least `shortest` of them are read. Returns the values and how many bytes
/// they are.
fn leading(bytes: &[u8], shortest: usize, columns: &[(&CqlType, KeyOrder)]) -> Option<(Vec<Bytes>, usize)> {
    let mut values = Vec::with_capacity(columns.len());
    let mut rest = bytes;
    for (ty, order) in columns {
        let encoded = rest;
        // Reading is lax, so only bytes that the value is written as count.
        let is_written = |value: &[u8], after: &[u8], write: fn(&CqlType, &[u8], KeyOrder, &mut Vec<u8>)| {
            let mut written = Vec::new();
            write(ty, value, *order, &mut written);
            encoded.get(..encoded.len() - after.len()) == Some(written.as_slice())
        };
        if let Ok(value) = ty.decode_key_order(&mut rest, *order) {
            let length = bytes.len() - rest.len();
            if length >= shortest && is_written(&value, rest, CqlType::encode_key_order) {
                values.push(value);
                return Some((values, length));
            }
        }
        rest = encoded;
        let value = ty.decode_key(&mut rest, *order).ok()?;
        if !is_written(&value, rest, CqlType::encode_key) {
            return None;
        }
        values.push(value);
        let length = bytes.len() - rest.len();
        if length >= shortest {
            return Some((values, length));
        }
    }
    None
}
