//! Compressed bodies of versions 3 and 4, and lz4 payloads of version 5.
//!
//! An lz4 body is preceded by its uncompressed length, 4 bytes big-endian; a snappy body contains it. Both lengths are
//! compared with the limit, and with the most that this many compressed bytes can hold, before anything is allocated.

use super::super::Compression;
use super::super::cursor::Malformed;

/// An lz4 block holds at most 255 bytes for each of its own (a match length grows by 255 a byte), and a few for its tokens.
const LZ4_RATIO_MAX: usize = 255;

fn bad(what: &'static str) -> Malformed {
    Malformed::Compression { what }
}

/// The bytes of an lz4 block of known uncompressed length, `length`.
///
/// # Errors
/// It is no such block, or `length` is above `bytes_max`.
pub fn lz4_block(block: &[u8], length: usize, bytes_max: usize) -> Result<Vec<u8>, Malformed> {
    if length > bytes_max {
        return Err(bad("the uncompressed length exceeds the limit"));
    }
    if length > block.len().saturating_mul(LZ4_RATIO_MAX).saturating_add(64) {
        return Err(bad("the uncompressed length is impossible for so few bytes"));
    }
    let mut bytes = vec![0; length];
    match lz4_flex::block::decompress_into(block, &mut bytes) {
        Ok(written) if written == length => Ok(bytes),
        Ok(_) => Err(bad("the uncompressed length is not the announced one")),
        Err(_) => Err(bad("not an lz4 block of the announced length")),
    }
}

/// Decompresses a body.
pub(super) fn decompress(algorithm: Compression, bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, Malformed> {
    match algorithm {
        Compression::Lz4 => {
            let (length, block) = bytes.split_first_chunk::<4>().ok_or_else(|| bad("no length"))?;
            let length =
                usize::try_from(i32::from_be_bytes(*length)).map_err(|_| bad("a negative uncompressed length"))?;
            if length == 0 {
                return Ok(Vec::new());
            }
            lz4_block(block, length, bytes_max)
        }
        Compression::Snappy => {
            let length = snap::raw::decompress_len(bytes).map_err(|_| bad("not snappy"))?;
            if length > bytes_max {
                return Err(bad("the uncompressed length exceeds the limit"));
            }
            // A snappy copy of three bytes yields at most 64.
            if length > bytes.len().saturating_mul(32).saturating_add(64) {
                return Err(bad("the uncompressed length is impossible for so few bytes"));
            }
            snap::raw::Decoder::new()
                .decompress_vec(bytes)
                .map_err(|_| bad("not snappy"))
        }
    }
}

/// Appends `body` compressed to `out`; `false`, and nothing appended, if that would not make it smaller.
pub(super) fn compress(algorithm: Compression, body: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let smaller = match algorithm {
        Compression::Lz4 => {
            let Ok(length) = i32::try_from(body.len()) else {
                return false;
            };
            out.extend_from_slice(&length.to_be_bytes());
            lz4_append(body, out)
        }
        Compression::Snappy => {
            out.resize(start + snap::raw::max_compress_len(body.len()), 0);
            let space = out.get_mut(start..).unwrap_or_default();
            match snap::raw::Encoder::new().compress(body, space) {
                Ok(written) => {
                    out.truncate(start + written);
                    true
                }
                Err(_) => false,
            }
        }
    };
    if smaller && out.len() - start < body.len() {
        return true;
    }
    out.truncate(start);
    false
}

/// Appends `bytes` as an lz4 block, without any length; `false` means it failed.
pub fn lz4_append(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
    let space = out.get_mut(start..).unwrap_or_default();
    match lz4_flex::block::compress_into(bytes, space) {
        Ok(written) => {
            out.truncate(start + written);
            true
        }
        Err(_) => {
            out.truncate(start);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decompress_undoes_compress(seed in proptest::collection::vec(any::<u8>(), 1..200), times in 2_usize..50) {
            let body = seed.repeat(times);
            for algorithm in [Compression::Lz4, Compression::Snappy] {
                let mut out = Vec::new();
                if compress(algorithm, &body, &mut out) {
                    prop_assert_eq!(decompress(algorithm, &out, body.len()), Ok(body.clone()));
                    prop_assert!(decompress(algorithm, &out, body.len() - 1).is_err());
                }
            }
        }

        #[test]
        fn random_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for algorithm in [Compression::Lz4, Compression::Snappy] {
                if let Ok(body) = decompress(algorithm, &bytes, 10_000) {
                    prop_assert!(body.len() <= 10_000);
                }
            }
        }
    }

    #[test]
    fn bombs_are_refused_before_they_are_allocated() {
        assert!(
            decompress(
                Compression::Lz4,
                &[0x0F, 0xFF, 0xFF, 0xFF, 0],
                super::super::BODY_BYTES_MAX
            )
            .is_err()
        );
        assert!(decompress(Compression::Lz4, &[0xFF, 0xFF, 0xFF, 0xFF, 0], 100).is_err());
        assert!(
            decompress(
                Compression::Snappy,
                &[0xFF, 0xFF, 0xFF, 0x7F, 0],
                super::super::BODY_BYTES_MAX
            )
            .is_err()
        );
    }
}
