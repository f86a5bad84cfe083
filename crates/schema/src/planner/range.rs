//! Sets of clustering keys as half-open byte ranges.
//!
//! A clustering key is the concatenation of its columns' ordered encodings, each prefix-free. So the keys that share a
//! prefix `p` are `p ≤ key < successor(p)`, and a bound on the next column cuts that range in two. A bound of several
//! columns `(a, b) > (x, y)` is `a > x`, or `a = x` and `b > y`: one range for each column. These ranges touch if all
//! columns have the same direction, and do not if directions are mixed.

use crate::command::ClusteringRange;

/// The first byte string after all that start with `prefix`; `None` means that no byte string follows them.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix.get(..=last)?.to_vec();
    if let Some(byte) = next.last_mut() {
        *byte += 1;
    }
    Some(next)
}

/// All keys that start with `prefix`.
pub(crate) fn with_prefix(prefix: Vec<u8>) -> ClusteringRange {
    let end = successor(&prefix);
    ClusteringRange { start: prefix, end }
}

/// One column of a bound: the encodings of its value and its direction.
#[derive(Clone, Debug)]
pub(crate) struct BoundPart {
    /// The part of the key encoding that all equal values share; `None` means null, which sorts before every value in
    /// either direction.
    pub(crate) encoded: Option<Vec<u8>>,
    /// The full key encoding of this very value; it begins with `encoded`.
    pub(crate) whole: Vec<u8>,
    /// Sorted from high to low.
    pub(crate) descending: bool,
}

/// Gives the leading columns that are equal in both bounds the same bytes (1.000 and 1.0 are equal). The range of a bound
/// starts with the bound's own bytes, so ranges of bounds with different bytes would not intersect.
pub(crate) fn share_encodings(lower: &[BoundPart], upper: &mut [BoundPart]) {
    for (lower, upper) in lower.iter().zip(upper) {
        if lower.encoded.is_none() || lower.encoded != upper.encoded {
            return;
        }
        upper.whole.clone_from(&lower.whole);
    }
}

/// The keys with this prefix whose next columns satisfy the bound: above a lower bound, below an upper one.
pub(crate) fn beyond(prefix: &[u8], parts: &[BoundPart], lower: bool, inclusive: bool) -> Vec<ClusteringRange> {
    let mut ranges = Vec::with_capacity(parts.len() + 1);
    // `whole` is the key prefix with full encodings; `equal` ends with the part of the last column that equal values
    // share.
    let mut whole = prefix.to_vec();
    let mut equal = prefix.to_vec();
    let mut null = false;
    for part in parts {
        let end = successor(&whole);
        let start = whole.clone();
        equal.clone_from(&whole);
        match &part.encoded {
            Some(encoded) => {
                equal.extend_from_slice(encoded);
                whole.extend_from_slice(&part.whole);
            }
            None => null = true,
        }
        // Byte order is value order, unless the column is descending.
        let up = lower != part.descending;
        if up {
            // Null sorts before every value, so the range starts at the prefix itself.
            let after = if null { Some(start) } else { successor(&equal) };
            if let Some(start) = after {
                ranges.push(ClusteringRange { start, end });
            }
        } else {
            ranges.push(ClusteringRange {
                start,
                end: Some(equal.clone()),
            });
        }
        if null {
            break;
        }
    }
    if inclusive && !null {
        ranges.push(with_prefix(equal));
    }
    sort_and_merge(ranges)
}

/// The keys under `prefix` within both bounds, each with whether it is inclusive; `None` means no bound on that side.
pub(crate) fn between(
    prefix: &[u8],
    lower: Option<&(Vec<BoundPart>, bool)>,
    upper: Option<&(Vec<BoundPart>, bool)>,
) -> Vec<ClusteringRange> {
    let above = lower.map(|(parts, inclusive)| beyond(prefix, parts, true, *inclusive));
    let below = upper.map(|(parts, inclusive)| beyond(prefix, parts, false, *inclusive));
    match (above, below) {
        (Some(above), Some(below)) => intersect(&above, &below),
        (Some(ranges), None) | (None, Some(ranges)) => ranges,
        (None, None) => vec![with_prefix(prefix.to_vec())],
    }
}

/// Sorts ranges, drops empty ones and merges those that touch or overlap.
pub(crate) fn sort_and_merge(mut ranges: Vec<ClusteringRange>) -> Vec<ClusteringRange> {
    ranges.retain(|range| range.end.as_ref().is_none_or(|end| range.start < *end));
    if ranges.len() < 2 {
        return ranges;
    }
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut merged: Vec<ClusteringRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| *end >= range.start) => {
                let longer = match (&last.end, &range.end) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(a), Some(b)) => a < b,
                };
                if longer {
                    last.end = range.end;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// The intersection of two sorted and merged sets.
pub(crate) fn intersect(a: &[ClusteringRange], b: &[ClusteringRange]) -> Vec<ClusteringRange> {
    let mut found = Vec::new();
    for x in a {
        for y in b {
            let start = x.start.clone().max(y.start.clone());
            let end = match (&x.end, &y.end) {
                (None, end) | (end, None) => end.clone(),
                (Some(x), Some(y)) => Some(x.min(y).clone()),
            };
            found.push(ClusteringRange { start, end });
        }
    }
    sort_and_merge(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(ranges: &[ClusteringRange], key: &[u8]) -> bool {
        ranges
            .iter()
            .any(|range| range.start.as_slice() <= key && range.end.as_ref().is_none_or(|end| key < end.as_slice()))
    }

    #[test]
    fn successors_carry() {
        assert_eq!(successor(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(successor(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(successor(&[0xff]), None);
        assert_eq!(successor(&[]), None);
    }

    proptest! {
        /// Ranges hold exactly the keys that a column-by-column comparison of the values accepts, mixed directions
        /// included.
        #[test]
        fn ranges_are_comparisons(
            bound in proptest::collection::vec(any::<u8>(), 1..4),
            key in proptest::collection::vec(any::<u8>(), 3..4),
            near in 0_usize..4,
            descending in proptest::collection::vec(any::<bool>(), 3..4),
            lower in any::<bool>(),
            inclusive in any::<bool>(),
        ) {
            // Values of one byte: their encoding is the byte, inverted where the column descends.
            let mut key = key;
            for (k, b) in key.iter_mut().zip(&bound).take(near) {
                *k = *b;
            }
            let encode = |value: u8, at: usize| if descending[at] { !value } else { value };
            let parts: Vec<BoundPart> = bound
                .iter()
                .enumerate()
                .map(|(at, value)| BoundPart {
                    encoded: Some(vec![encode(*value, at)]),
                    whole: vec![encode(*value, at)],
                    descending: descending[at],
                })
                .collect();
            let prefix = [7_u8];
            let ranges = beyond(&prefix, &parts, lower, inclusive);
            let encoded: Vec<u8> = prefix.iter().copied().chain(key.iter().enumerate().map(|(at, v)| encode(*v, at))).collect();
            let order = key[..bound.len()].cmp(&bound[..]);
            let expected = if lower { order.is_gt() } else { order.is_lt() } || (inclusive && order.is_eq());
            prop_assert_eq!(holds(&ranges, &encoded), expected);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end.as_ref().unwrap() < &pair[1].start));
        }

        #[test]
        fn intersections_hold_what_both_hold(
            cuts in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..5),
            others in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..5),
            key in any::<u8>(),
        ) {
            let set = |cuts: &[(u8, u8)]| {
                sort_and_merge(cuts.iter().map(|(a, b)| ClusteringRange { start: vec![*a], end: Some(vec![*b]) }).collect())
            };
            let (a, b) = (set(&cuts), set(&others));
            prop_assert_eq!(holds(&intersect(&a, &b), &[key]), holds(&a, &[key]) && holds(&b, &[key]));
        }
    }
}
