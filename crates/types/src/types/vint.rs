//! Variable-length integers: the leading one-bits of the first byte count the bytes that follow, 0 … 8; big-endian.

/// Reads an unsigned vint and advances `input` past it; `None` if it ends too soon.
pub fn read_unsigned(input: &mut &[u8]) -> Option<u64> {
    let (first, rest) = input.split_first()?;
    let extra = first.leading_ones() as usize;
    let (bytes, rest) = rest.split_at_checked(extra)?;
    *input = rest;
    let head = if extra >= 7 {
        0
    } else {
        u64::from(first & (0xff >> (extra + 1)))
    };
    Some(bytes.iter().fold(head, |value, byte| (value << 8) | u64::from(*byte)))
}

/// Reads a signed (zigzag) vint.
pub fn read_signed(input: &mut &[u8]) -> Option<i64> {
    let value = read_unsigned(input)?;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}

/// Writes an unsigned vint in as few bytes as possible.
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    let bits = (64 - value.leading_zeros()).max(1);
    let extra = if bits > 56 { 8 } else { (bits - 1) / 7 };
    let bytes = value.to_be_bytes();
    if extra == 8 {
        out.push(0xff);
        out.extend_from_slice(&bytes);
        return;
    }
    // `extra` ones, a zero, then the value, which leaves that many bits free in its first byte.
    let start = 7 - extra as usize;
    let mark = !(0xff_u8 >> extra);
    for (index, byte) in bytes.iter().skip(start).enumerate() {
        out.push(if index == 0 { byte | mark } else { *byte });
    }
}

/// Writes a signed (zigzag) vint.
pub fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_unsigned(((value << 1) ^ (value >> 63)).cast_unsigned(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_bytes() {
        let mut out = Vec::new();
        write_unsigned(256_000, &mut out);
        assert_eq!(out, [0xc3, 0xe8, 0x00]);
    }

    proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            write_unsigned(value, &mut out);
            write_signed(value.cast_signed(), &mut out);
            let mut input = out.as_slice();
            prop_assert_eq!(read_unsigned(&mut input), Some(value));
            prop_assert_eq!(read_signed(&mut input), Some(value.cast_signed()));
            prop_assert!(input.is_empty());
        }
    }
}
