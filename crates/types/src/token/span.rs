//! Half-open ranges of a table's logical partitions, in the order in which they lie: by token, then by partition key.
//!
//! ```text
//! bound   token i64 · partition key      before every logical partition that is not below it
//!         an empty partition key stands before the whole token, so tokens alone divide a hashed table
//! span    [start, end)                   no end: the end of the ring
//! ```

use std::cmp::Ordering;

use bytes::Bytes;
use helenus_base::utf16;

use super::Token;

/// The order in which logical partitions lie: by token, then by partition key.
#[must_use]
pub fn compare_places(one: (i64, &[u8]), other: (i64, &[u8])) -> Ordering {
    one.0.cmp(&other.0).then_with(|| {
        if one.0 == Token::OF_ORDERED.value() {
            utf16::compare(one.1, other.1)
        } else {
            one.1.cmp(other.1)
        }
    })
}

/// A bound between two logical partitions: it lies directly before each one that is not below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyBound {
    token: i64,
    partition_key: Bytes,
}

impl Ord for KeyBound {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_places(self.parts(), other.parts())
    }
}

impl PartialOrd for KeyBound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl KeyBound {
    /// Before all keys.
    pub const LOWEST: Self = Self::at_token(i64::MIN);

    /// Before every partition key of a token.
    #[must_use]
    pub const fn at_token(token: i64) -> Self {
        Self {
            token,
            partition_key: Bytes::new(),
        }
    }

    /// Before one logical partition.
    #[must_use]
    pub fn at_key(token: Token, partition_key: &[u8]) -> Self {
        Self {
            token: token.value(),
            partition_key: Bytes::copy_from_slice(partition_key),
        }
    }

    /// Directly behind one logical partition.
    #[must_use]
    pub fn behind_key(token: Token, partition_key: &[u8]) -> Self {
        // No key lies between one and the one with a zero byte more.
        Self::at_key(token, &[partition_key, &[0]].concat())
    }

    /// The token before or within which it stands.
    #[must_use]
    pub const fn token(&self) -> i64 {
        self.token
    }

    /// The first partition key after it; empty means that it lies before a whole token.
    #[must_use]
    pub fn partition_key(&self) -> &[u8] {
        &self.partition_key
    }

    /// Whether it divides tokens rather than the keys of one token.
    #[must_use]
    pub fn is_between_tokens(&self) -> bool {
        self.partition_key.is_empty()
    }

    /// Whether a logical partition lies at or after it.
    #[must_use]
    pub fn is_reached_by(&self, token: i64, partition_key: &[u8]) -> bool {
        compare_places(self.parts(), (token, partition_key)).is_le()
    }

    fn parts(&self) -> (i64, &[u8]) {
        (self.token, &self.partition_key)
    }
}

/// The logical partitions from one bound to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySpan {
    start: KeyBound,
    end: Option<KeyBound>,
}

impl KeySpan {
    /// The whole ring.
    #[must_use]
    pub const fn whole() -> Self {
        Self {
            start: KeyBound::LOWEST,
            end: None,
        }
    }

    /// From `start` up to and without `end`, where `None` means the end of the ring. Returns `None` if the span is
    /// empty.
    #[must_use]
    pub fn new(start: KeyBound, end: Option<KeyBound>) -> Option<Self> {
        let is_empty = end.as_ref().is_some_and(|end| *end <= start);
        (!is_empty).then_some(Self { start, end })
    }

    /// The tokens from `lower` to `upper`, both inclusive. Returns `None` if there are none.
    #[must_use]
    pub fn of_tokens(lower: i64, upper: i64) -> Option<Self> {
        Self::new(KeyBound::at_token(lower), upper.checked_add(1).map(KeyBound::at_token))
    }

    /// Its first bound.
    #[must_use]
    pub const fn start(&self) -> &KeyBound {
        &self.start
    }

    /// The bound at its end; `None` means the end of the ring.
    #[must_use]
    pub const fn end(&self) -> Option<&KeyBound> {
        self.end.as_ref()
    }

    /// Its lowest token, even if it contains only some keys of that token.
    #[must_use]
    pub const fn lower(&self) -> i64 {
        self.start.token
    }

    /// Its highest token, even if it contains only some keys of that token.
    #[must_use]
    pub fn upper(&self) -> i64 {
        match &self.end {
            None => i64::MAX,
            // A bound before a whole token is above the start, so there is a token below it.
            Some(end) if end.is_between_tokens() => end.token.saturating_sub(1),
            Some(end) => end.token,
        }
    }

    /// The key of its highest token before which it ends; `None` means that it contains all keys of that token from its
    /// start on.
    #[must_use]
    pub fn end_key(&self) -> Option<&[u8]> {
        let end = self.end.as_ref().filter(|end| !end.is_between_tokens());
        end.map(KeyBound::partition_key)
    }

    /// How many tokens it touches.
    #[must_use]
    pub fn tokens(&self) -> u128 {
        u128::from(self.upper().abs_diff(self.lower())) + 1
    }

    /// Whether a logical partition lies in it.
    #[must_use]
    pub fn contains(&self, token: i64, partition_key: &[u8]) -> bool {
        self.start.is_reached_by(token, partition_key) && self.ends_after(token, partition_key)
    }

    /// Whether it extends beyond the position at which a logical partition begins.
    #[must_use]
    pub fn ends_after(&self, token: i64, partition_key: &[u8]) -> bool {
        let end = self.end.as_ref();
        end.is_none_or(|end| compare_places((token, partition_key), end.parts()).is_lt())
    }

    /// The intersection; `None` means that it is empty.
    #[must_use]
    pub fn and(&self, other: &Self) -> Option<Self> {
        let start = self.start.clone().max(other.start.clone());
        let end = match (&self.end, &other.end) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.as_ref().or(other.as_ref()),
        };
        Self::new(start, end.cloned())
    }

    /// Whether the intersection is not empty.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let begins_before_end = |one: &Self, other: &Self| other.end.as_ref().is_none_or(|end| one.start < *end);
        begins_before_end(self, other) && begins_before_end(other, self)
    }

    /// Whether the other begins where this ends.
    #[must_use]
    pub fn is_followed_by(&self, other: &Self) -> bool {
        self.end.as_ref() == Some(&other.start)
    }

    /// The token at which it splits into two halves by tokens; `None` means that it has only one token.
    #[must_use]
    pub fn middle_token(&self) -> Option<i64> {
        let width = self.upper().abs_diff(self.lower());
        (width > 0).then(|| self.lower().wrapping_add_unsigned(width / 2 + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bound() -> impl Strategy<Value = KeyBound> {
        let key = prop_oneof![Just(Vec::new()), prop::collection::vec(0_u8..3, 0..3)];
        (-2_i64..3, key).prop_map(|(token, key)| KeyBound::at_key(Token::bound(token), &key))
    }

    fn span() -> impl Strategy<Value = KeySpan> {
        (bound(), prop::option::of(bound())).prop_filter_map("empty", |(start, end)| KeySpan::new(start, end))
    }

    proptest! {
        #[test]
        fn a_place_lies_in_both_where_it_lies_in_each(one in span(), other in span(), at in bound()) {
            let inside = |span: &KeySpan| span.contains(at.token(), at.partition_key());
            let both = one.and(&other);
            prop_assert_eq!(both.as_ref().is_some_and(inside), inside(&one) && inside(&other));
            prop_assert_eq!(both.is_some(), one.overlaps(&other));
        }

        #[test]
        fn tokens_are_rounded_outward(one in span(), at in bound()) {
            if one.contains(at.token(), at.partition_key()) {
                prop_assert!((one.lower()..=one.upper()).contains(&at.token()));
            }
            prop_assert!(one.lower() <= one.upper());
            prop_assert!(KeySpan::of_tokens(one.lower(), one.upper()).unwrap().and(&one) == Some(one.clone()));
        }
    }

    #[test]
    fn tokens_make_spans() {
        assert_eq!(KeySpan::of_tokens(i64::MIN, i64::MAX), Some(KeySpan::whole()));
        assert_eq!(KeySpan::of_tokens(2, 1), None);
        let one = KeySpan::of_tokens(3, 3).unwrap();
        assert!(one.contains(3, b"") && one.contains(3, &[0xFF; 9]) && !one.contains(4, b"") && !one.contains(2, b"z"));
        assert_eq!((one.middle_token(), one.tokens()), (None, 1));
        assert_eq!(KeySpan::whole().middle_token(), Some(0));
        assert_eq!(KeySpan::whole().tokens(), 1 << 64);
    }
}
