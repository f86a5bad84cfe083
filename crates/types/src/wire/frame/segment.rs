//! Segments of version 5 (native_protocol_v5.spec §2.3): a length, a CRC of the header, a payload, a CRC of the payload.
//!
//! ```text
//! plain  length:17 | self-contained:1 | 0:6                                3 bytes ┐
//! lz4    compressed length:17 | length:17 | self-contained:1 | 0:5         5 bytes ┘ little-endian
//! then   CRC24 3 bytes · payload ≤ 131,071 bytes · CRC32 4 bytes, little-endian, of the payload as sent
//! ```
//! In the lz4 format a length of 0 means that the payload is not compressed.

/// Maximum bytes of a payload: 17 bits.
pub const PAYLOAD_BYTES_MAX: usize = (1 << 17) - 1;

/// Bytes of the CRC after a header.
const HEADER_CRC_BYTES: usize = 3;

/// Bytes of the CRC after a payload.
pub const TRAILER_BYTES: usize = 4;

/// The header format of a connection's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No compression was negotiated.
    Plain,
    /// lz4 was negotiated.
    Lz4,
}

impl Form {
    /// Bytes of a header with its CRC.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Plain => 3 + HEADER_CRC_BYTES,
            Self::Lz4 => 5 + HEADER_CRC_BYTES,
        }
    }
}

/// The fields of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Bytes of the payload as sent.
    pub length: usize,
    /// Bytes of the payload before compression. `None` means it is not compressed.
    pub uncompressed: Option<usize>,
    /// The payload holds whole envelopes; otherwise it is part of one.
    pub self_contained: bool,
}

/// CRC-24 of a header: initial value 0x875060, polynomial 0x1974F0B, bytes taken lowest first.
#[must_use]
pub fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0x0087_5060_u32;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0197_4F0B;
            }
        }
    }
    crc
}

/// The state of CRC-32 after `FA 2D 55 CA`, which precedes each payload in the checksum.
const CRC32_SEED: u32 = {
    // The bytewise definition of CRC-32 (IEEE, reflected), evaluated by the compiler.
    let bytes = [0xFA_u8, 0x2D, 0x55, 0xCA];
    let mut crc = u32::MAX;
    let mut at = 0;
    while at < bytes.len() {
        #[expect(clippy::indexing_slicing, reason = "the loop's own bound; iterators are not const")]
        let byte = bytes[at];
        crc ^= byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xEDB8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        at += 1;
    }
    !crc
};

/// CRC-32 of a payload, as segments contain it.
#[must_use]
pub fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(CRC32_SEED);
    hasher.update(payload);
    hasher.finalize()
}

/// A segment header whose CRC does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcMismatch;

fn low_bytes<const N: usize>(value: u64) -> [u8; N] {
    let bytes = value.to_le_bytes();
    let mut low = [0; N];
    for (to, from) in low.iter_mut().zip(bytes) {
        *to = from;
    }
    low
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl SegmentHeader {
    /// Reads a header of [`Form::header_bytes`] bytes. `None` means `bytes` are fewer.
    ///
    /// # Errors
    /// The CRC does not match.
    pub fn read(form: Form, bytes: &[u8]) -> Result<Option<Self>, CrcMismatch> {
        let Some(bytes) = bytes.get(..form.header_bytes()) else {
            return Ok(None);
        };
        let (fields, crc) = bytes.split_at(form.header_bytes() - HEADER_CRC_BYTES);
        if u64::from(crc24(fields)) != number(crc) {
            return Err(CrcMismatch);
        }
        let fields = number(fields);
        let bits17 = |shift: u32| usize::try_from((fields >> shift) & 0x1_FFFF).unwrap_or_default();
        Ok(Some(match form {
            Form::Plain => Self {
                length: bits17(0),
                uncompressed: None,
                self_contained: fields >> 17 & 1 == 1,
            },
            Form::Lz4 => Self {
                length: bits17(0),
                uncompressed: Some(bits17(17)).filter(|length| *length != 0),
                self_contained: fields >> 34 & 1 == 1,
            },
        }))
    }

    /// Writes the header over the first [`Form::header_bytes`] bytes of `place`.
    pub fn write(&self, form: Form, place: &mut [u8]) {
        // Lengths are at most PAYLOAD_BYTES_MAX, so they are lossless in 64 bits.
        let length = self.length as u64;
        let put = |place: &mut [u8], fields: &[u8]| {
            let crc: [u8; HEADER_CRC_BYTES] = low_bytes(crc24(fields).into());
            for (to, from) in place.iter_mut().zip(fields.iter().chain(&crc)) {
                *to = *from;
            }
        };
        match form {
            Form::Plain => put(place, &low_bytes::<3>(length | u64::from(self.self_contained) << 17)),
            Form::Lz4 => {
                let uncompressed = self.uncompressed.unwrap_or(0) as u64;
                put(
                    place,
                    &low_bytes::<5>(length | uncompressed << 17 | u64::from(self.self_contained) << 34),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_checksums() {
        assert_eq!(crc32(&[]), 0x4477_7ED3);
        let mut header = [0; 6];
        SegmentHeader {
            length: 9,
            uncompressed: None,
            self_contained: true,
        }
        .write(Form::Plain, &mut header);
        assert_eq!(header, [0x09, 0x00, 0x02, 0xA4, 0xC8, 0xC1]);
        let mut header = [0; 8];
        SegmentHeader {
            length: 9,
            uncompressed: None,
            self_contained: true,
        }
        .write(Form::Lz4, &mut header);
        assert_eq!(header, [0x09, 0x00, 0x00, 0x00, 0x04, 0xC2, 0xB8, 0x95]);
        assert_eq!(crc32(&[5, 0, 0, 1, 5, 0, 0, 0, 0]), 0x8674_55B5);
    }

    proptest! {
        #[test]
        fn headers_come_back(length in 0..=PAYLOAD_BYTES_MAX, uncompressed in 1..=PAYLOAD_BYTES_MAX, whole: bool) {
            for (form, uncompressed) in [(Form::Plain, None), (Form::Lz4, None), (Form::Lz4, Some(uncompressed))] {
                let header = SegmentHeader { length, uncompressed, self_contained: whole };
                let mut bytes = [0; 8];
                header.write(form, &mut bytes);
                prop_assert_eq!(SegmentHeader::read(form, &bytes), Ok(Some(header)));
                bytes[1] ^= 0x10;
                prop_assert_eq!(SegmentHeader::read(form, &bytes), Err(CrcMismatch));
            }
        }
    }
}
