//! The outer framing of protocol version 5, uncompressed: native_protocol_v5.spec §2.2.
//!
//! ```text
//! 3 bytes little-endian: payload length:17 | self-contained:1 | padding:6
//! 3 bytes                CRC24 of those
//! payload                ≤ 131 071 bytes
//! 4 bytes                CRC32 of the payload, seeded with FA 2D 55 CA
//! ```

use crate::{Error, Outcome};
use std::io::Read;

/// Most a segment carries, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 131_071;

/// CRC24 over three header bytes, fed low byte first.
pub fn crc24(header: u32) -> u32 {
    let mut crc: u32 = 0x87_5060;
    for shift in [0, 8, 16] {
        crc ^= ((header >> shift) & 0xFF) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= 0x197_4F0B;
            }
        }
    }
    crc
}

/// CRC-32 (IEEE) of the payload after the four seed bytes.
pub fn crc32(payload: &[u8]) -> u32 {
    let seed = [0xFA, 0x2D, 0x55, 0xCA];
    let crc = seed.iter().chain(payload).fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xEDB8_8320
            } else {
                crc >> 1
            }
        })
    });
    !crc
}

/// Appends one segment.
pub fn put(out: &mut Vec<u8>, payload: &[u8], self_contained: bool) {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX) & 0x1_FFFF;
    let header = len | (u32::from(self_contained) << 17);
    out.extend(header.to_le_bytes().iter().take(3));
    out.extend(crc24(header).to_le_bytes().iter().take(3));
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
}

/// Appends an envelope as one self-contained segment, or as several when it is too long for one.
pub fn put_envelope(out: &mut Vec<u8>, envelope: &[u8]) {
    if envelope.len() <= PAYLOAD_BYTES_MAX {
        put(out, envelope, true);
    } else {
        for part in envelope.chunks(PAYLOAD_BYTES_MAX) {
            put(out, part, false);
        }
    }
}

/// Reads one segment and appends its payload.
///
/// # Errors
/// When the stream ends or a checksum is wrong.
pub fn read(from: &mut impl Read, payload: &mut Vec<u8>) -> Outcome<()> {
    let mut head = [0u8; 6];
    from.read_exact(&mut head)?;
    let [a, b, c, d, e, f] = head;
    let header = u32::from_le_bytes([a, b, c, 0]);
    if crc24(header) != u32::from_le_bytes([d, e, f, 0]) {
        return Err(Error::Malformed("CRC24 of a segment header"));
    }
    let len = usize::try_from(header & 0x1_FFFF).unwrap_or(0);
    let mut body = vec![0u8; len];
    from.read_exact(&mut body)?;
    let mut sum = [0u8; 4];
    from.read_exact(&mut sum)?;
    if crc32(&body) != u32::from_le_bytes(sum) {
        return Err(Error::Malformed("CRC32 of a segment payload"));
    }
    payload.extend_from_slice(&body);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_golden_bytes() {
        let mut out = Vec::new();
        super::put(&mut out, &[5, 0, 0, 1, 5, 0, 0, 0, 0], true);
        assert_eq!(super::super::hex(&out), "090002a4c8c1050000010500000000b5557486");
    }
}
