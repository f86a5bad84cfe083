//! A position on the ring: Cassandra's Murmur3 token of a partition key; and ranges of the ring.

mod span;

pub use span::{KeyBound, KeySpan, compare_places};

/// A position on the ring, −2^63+1 … 2^63−1. −2^63 itself is no token: it sorts before every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(i64);

impl Token {
    /// The lowest bound of the ring, before every key.
    pub const MIN: Self = Self(i64::MIN);
    /// The highest token.
    pub const MAX: Self = Self(i64::MAX);

    /// The one token of all keys of a table that is ordered by partition key. Keys of this token lie in the order of their UTF-16 units
    /// ([`helenus_base::utf16`]); those of any other token, which only a hash gives, in the order of their bytes.
    pub const OF_ORDERED: Self = Self(0);

    /// The token of a hash: −2^63 is mapped to 2^63−1 (Murmur3Partitioner.normalize).
    #[must_use]
    pub const fn new(hash: i64) -> Self {
        Self(if hash == i64::MIN { i64::MAX } else { hash })
    }

    /// A bound of a token range as a client gave it; unlike [`Token::new`] it may be −2^63.
    #[must_use]
    pub const fn bound(value: i64) -> Self {
        Self(value)
    }

    /// The token of a serialised partition key: its one component's bytes, or the composite form
    /// `{u16 length, bytes, 0x00}…` of several.
    ///
    /// Murmur3 x64-128 with seed 0, first half. Cassandra sign-extends the tail bytes, so for a tail byte ≥ 0x80 this
    /// is not the published hash. An empty key, which no partition has but `token('')` needs, has −2^63.
    #[must_use]
    pub fn of(partition_key: &[u8]) -> Self {
        if partition_key.is_empty() {
            return Self::MIN;
        }
        Self::new(murmur3_h1(partition_key))
    }

    /// The token's number.
    #[must_use]
    pub const fn value(self) -> i64 {
        self.0
    }
}

const C1: i64 = 0x87c3_7b91_1142_53d5_u64.cast_signed();
const C2: i64 = 0x4cf5_ad43_2745_937f;

/// First 64 bits of MurmurHash3 x64-128 with seed 0 and sign-extended tail bytes (MurmurHash.hash3_x64_128).
fn murmur3_h1(key: &[u8]) -> i64 {
    let (mut h1, mut h2) = (0_i64, 0_i64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (low, high) = block.split_at(8);
        let k1 = low.iter().rev().fold(0_i64, |acc, byte| (acc << 8) | i64::from(*byte));
        let k2 = high.iter().rev().fold(0_i64, |acc, byte| (acc << 8) | i64::from(*byte));
        h1 ^= mix_k1(k1);
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 ^= mix_k2(k2);
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    // Sign-extension: a high tail byte smears ones over the lanes above it, and XOR keeps them.
    let lane = |bytes: &[u8]| {
        bytes.iter().enumerate().fold(0_i64, |acc, (index, byte)| {
            acc ^ (i64::from(byte.cast_signed()) << (8 * index))
        })
    };
    let (first, second) = tail.split_at(tail.len().min(8));
    if !second.is_empty() {
        h2 ^= mix_k2(lane(second));
    }
    if !first.is_empty() {
        h1 ^= mix_k1(lane(first));
    }
    let length = key.len() as i64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = fmix(h1);
    h2 = fmix(h2);
    h1.wrapping_add(h2)
}

fn mix_k1(k: i64) -> i64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k: i64) -> i64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn fmix(value: i64) -> i64 {
    let mut k = value.cast_unsigned();
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^= k >> 33;
    k.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Vectors on which two independent implementations and Cassandra agree.
    #[test]
    fn known_tokens() {
        let cases: [(&[u8], i64); 6] = [
            (b"a", -8_839_064_797_231_613_815),
            (b"hello", -3_758_069_500_696_749_310),
            (&[0, 0, 0, 1], -4_069_959_284_402_364_209),
            (&[0xff; 16], -2_824_192_546_314_762_522),
            (b"123456789012345678", -1_519_150_012_378_291_793),
            (b"", i64::MIN),
        ];
        for (key, token) in cases {
            assert_eq!(Token::of(key).value(), token, "{key:?}");
        }
    }

    proptest! {
        /// Where no tail byte is high, Cassandra's hash is the published one.
        #[test]
        fn agrees_with_the_published_hash(key in proptest::collection::vec(0_u8..0x80, 1..100)) {
            let published = murmur3::murmur3_x64_128(&mut std::io::Cursor::new(&key), 0).unwrap();
            let h1 = u64::try_from(published & u128::from(u64::MAX)).unwrap();
            prop_assert_eq!(Token::of(&key), Token::new(h1.cast_signed()));
        }
    }
}
