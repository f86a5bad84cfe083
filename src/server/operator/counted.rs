//! The partitions of a file whose static counters an import has counted.
//!
//! Each row of an export has the static counters of its partition, and an import increases a counter: from the rows of a
//! partition it takes them once. The partitions are remembered, up to a number of bytes. Further ones are told apart by
//! their tokens, as an export is in their order.

use std::collections::HashMap;

use bytes::Bytes;

use helenus_types::token::Token;

/// Most bytes of keys that are remembered.
const KEYS_BYTES_MAX: usize = 64 << 20;

/// The memory of a key beside its bytes, roughly.
const KEY_BYTES: usize = 56;

/// What is known of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its static counters are to be counted.
    First,
    /// They were counted with an earlier row, which had the same values.
    Before,
    /// They were counted with an earlier row, which had other values.
    Contradicted,
    /// There were too many partitions before it, and it is not in the order of tokens.
    Unknown,
}

/// The partitions whose static counters were counted.
#[derive(Debug)]
pub(super) struct CountedPartitions {
    /// The checksum of the static values of each.
    keys: HashMap<Bytes, u64>,
    /// Bytes left for keys; 0 when one did not fit.
    bytes_left: usize,
    /// The highest token so far.
    highest: Option<Token>,
    /// The last partition that was not remembered.
    last: Option<(Bytes, u64)>,
}

impl CountedPartitions {
    pub(super) fn new() -> Self {
        Self::with_room(KEYS_BYTES_MAX)
    }

    fn with_room(bytes_left: usize) -> Self {
        Self {
            keys: HashMap::new(),
            bytes_left,
            highest: None,
            last: None,
        }
    }

    /// Whether the partition of this serialised key was seen, which it is from now on. `statics` is a checksum of its static
    /// values in this row.
    pub(super) fn see(&mut self, key: &Bytes, statics: u64) -> Seen {
        let last = self
            .last
            .as_ref()
            .filter(|(last, _)| last == key)
            .map(|(_, statics)| statics);
        match self.keys.get(key).or(last) {
            Some(before) if *before == statics => return Seen::Before,
            Some(_) => return Seen::Contradicted,
            None => {}
        }
        let token = Token::of(key);
        match self.bytes_left.checked_sub(key.len() + KEY_BYTES) {
            Some(left) => {
                self.bytes_left = left;
                self.keys.insert(key.clone(), statics);
            }
            None => {
                self.bytes_left = 0;
                if self.highest.is_some_and(|highest| token <= highest) {
                    return Seen::Unknown;
                }
                self.last = Some((key.clone(), statics));
            }
        }
        self.highest = self.highest.max(Some(token));
        Seen::First
    }
}

#[cfg(test)]
mod tests {
    use super::Seen::{Before, Unknown};
    use super::*;

    fn keys(count: u32) -> Vec<Bytes> {
        let mut keys: Vec<Bytes> = (0..count).map(|key| key.to_be_bytes().to_vec().into()).collect();
        keys.sort_by_key(|key| Token::of(key));
        keys
    }

    #[test]
    fn partitions_in_any_order_are_first_once() {
        let mut counted = CountedPartitions::new();
        let keys = keys(10);
        for key in keys.iter().rev() {
            assert_eq!(counted.see(key, 0), Seen::First);
        }
        for key in &keys {
            assert_eq!(counted.see(key, 0), Seen::Before);
        }
    }

    #[test]
    fn other_values_of_a_partition_contradict() {
        let mut counted = CountedPartitions::new();
        let key = Bytes::from_static(b"k");
        let seen: Vec<Seen> = [1, 1, 2, 1].map(|statics| counted.see(&key, statics)).into();
        assert_eq!(seen, [Seen::First, Before, Seen::Contradicted, Before]);
    }

    #[test]
    fn partitions_without_room_are_told_apart_in_the_order_of_tokens() {
        let mut counted = CountedPartitions::with_room(2 * (KEY_BYTES + 4));
        let keys = keys(5);
        for key in &keys {
            assert_eq!(counted.see(key, 0), Seen::First);
            assert_eq!(counted.see(key, 0), Seen::Before);
        }
        let seen: Vec<Seen> = keys.iter().map(|key| counted.see(key, 0)).collect();
        assert_eq!(seen, [Before, Before, Unknown, Unknown, Before]);
    }
}
