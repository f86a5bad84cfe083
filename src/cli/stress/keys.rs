//! The keys of a load, by pattern: pure functions of the number of an entity.
//!
//! A partition key is a place in 0 to 2⁶⁴ as 16 hexadecimal digits, so that keys, numbers and ranges of keys have one order.

/// How the partition keys of a load follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Each key is above all earlier ones, like a time.
    Append,
    /// Each key is below all earlier ones, like a time that runs backwards.
    Prepend,
    /// Keys are spread evenly, like hashes.
    Random,
    /// A few keys take nearly all; the others are spread evenly.
    Hot,
}

impl Pattern {
    /// Each pattern and its name.
    pub(super) const NAMES: &[(&str, Self)] = &[
        ("append", Self::Append),
        ("prepend", Self::Prepend),
        ("random", Self::Random),
        ("hot", Self::Hot),
    ];

    /// The pattern of a name.
    #[must_use]
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, pattern)| *pattern)
    }
}

/// The keys of a load.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) pattern: Pattern,
    /// The place of the first key where keys grow or shrink.
    pub(super) first: u64,
    /// What random keys are made from.
    pub(super) seed: u64,
    /// Consecutive entities that share a partition key. At least 1.
    pub(super) rows_per_key: u64,
    /// How many keys are hot. At least 1.
    pub(super) hot_keys: u64,
    /// Part of the entities that go to hot keys.
    pub(super) hot_percent: u64,
}

/// The key of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) partition: String,
    pub(super) row: String,
}

impl Keys {
    /// The key of the entity of this number.
    #[must_use]
    pub(super) fn of(&self, number: u64) -> Key {
        Key {
            partition: format!("{:016x}", self.place(number / self.rows_per_key.max(1))),
            row: format!("{number:012}"),
        }
    }

    fn place(&self, number: u64) -> u64 {
        match self.pattern {
            Pattern::Append => self.first.wrapping_add(number),
            Pattern::Prepend => (u64::MAX - self.first).wrapping_sub(number),
            Pattern::Random => mixed(self.seed, number),
            Pattern::Hot if mixed(self.seed ^ 1, number) % 100 < self.hot_percent => {
                mixed(self.seed ^ 2, mixed(self.seed ^ 3, number) % self.hot_keys.max(1))
            }
            Pattern::Hot => mixed(self.seed, number),
        }
    }
}

/// A number that looks random (SplitMix64, Steele, Lea and Flood 2014).
#[must_use]
pub(super) fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The ranges of keys that a report tells apart: each begins at a key, the first one at the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges(Vec<String>);

impl Ranges {
    /// So many ranges of equal width.
    #[must_use]
    pub(super) fn equal(count: u64) -> Self {
        let count = count.max(1);
        let begin = |number: u64| (u128::from(number) << 64) / u128::from(count);
        Self((1..count).map(|number| format!("{:016x}", begin(number))).collect())
    }

    /// Ranges that begin at these keys.
    #[must_use]
    pub(super) fn at(mut begins: Vec<String>) -> Self {
        begins.retain(|key| !key.is_empty());
        begins.sort_unstable();
        begins.dedup();
        Self(begins)
    }

    /// How many.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.0.len() + 1
    }

    /// The number of a key's range.
    #[must_use]
    pub(super) fn of(&self, key: &str) -> usize {
        self.0.partition_point(|begin| begin.as_str() <= key)
    }

    /// The first key of a range; empty for the first one.
    #[must_use]
    pub(super) fn begin(&self, number: usize) -> &str {
        number
            .checked_sub(1)
            .and_then(|before| self.0.get(before))
            .map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pattern: Pattern) -> Keys {
        Keys {
            pattern,
            first: 1 << 50,
            seed: 7,
            rows_per_key: 1,
            hot_keys: 3,
            hot_percent: 90,
        }
    }

    fn partitions(pattern: Pattern, count: u64) -> Vec<String> {
        (0..count).map(|number| keys(pattern).of(number).partition).collect()
    }

    #[test]
    fn keys_grow_shrink_or_spread_by_pattern() {
        let ranges = Ranges::equal(8);
        let busy = |pattern| {
            let mut counts = vec![0; ranges.len()];
            for key in partitions(pattern, 4000) {
                counts[ranges.of(&key)] += 1;
            }
            counts
        };
        assert!(partitions(Pattern::Append, 100).is_sorted());
        assert!(partitions(Pattern::Prepend, 100).iter().rev().is_sorted());
        assert_eq!(busy(Pattern::Append), [4000, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(busy(Pattern::Prepend), [0, 0, 0, 0, 0, 0, 0, 4000]);
        assert!(
            busy(Pattern::Random).iter().all(|count| (400..600).contains(count)),
            "{:?}",
            busy(Pattern::Random)
        );
        let mut hot = std::collections::BTreeMap::<String, u32>::new();
        for key in partitions(Pattern::Hot, 4000) {
            *hot.entry(key).or_default() += 1;
        }
        assert_eq!(hot.values().filter(|count| **count > 1000).count(), 3, "{hot:?}");
    }

    #[test]
    fn rows_of_a_key_follow_each_other() {
        let keys = Keys {
            rows_per_key: 10,
            ..keys(Pattern::Random)
        };
        assert_eq!(keys.of(10).partition, keys.of(19).partition);
        assert_ne!(keys.of(19).partition, keys.of(20).partition);
        assert_ne!(keys.of(10).row, keys.of(19).row);
    }

    #[test]
    fn ranges_are_told_by_their_first_keys() {
        let ranges = Ranges::at(vec!["m".to_owned(), "f".to_owned(), String::new(), "m".to_owned()]);
        assert_eq!(ranges.len(), 3);
        assert_eq!(["a", "f", "g", "m", "z"].map(|key| ranges.of(key)), [0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2].map(|number| ranges.begin(number)), ["", "f", "m"]);
        assert_eq!(Ranges::equal(4).begin(1), "4000000000000000");
        assert_eq!(Ranges::equal(1).len(), 1);
    }
}
