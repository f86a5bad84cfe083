//! Tests of the frame decoder: segments, versions, lengths, compression.

use proptest::prelude::*;

use super::super::super::request::Request;
use super::super::super::response::{Body, Response};
use super::super::Encoder;
use super::*;

const OPTIONS: [u8; 9] = [5, 0, 0, 1, 5, 0, 0, 0, 0];

fn fed(bytes: &[u8]) -> Decoder {
    let mut decoder = Decoder::new(1 << 20);
    decoder.buffer().extend_from_slice(bytes);
    decoder
}

fn envelope(version: Version, stream: i16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version.number(), 0];
    out.extend(stream.to_be_bytes());
    out.push(7);
    out.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    out.extend(body);
    out
}

fn plain_segment(payload: &[u8], self_contained: bool) -> Vec<u8> {
    let mut out = vec![0; 6];
    let header = SegmentHeader {
        length: payload.len(),
        uncompressed: None,
        self_contained,
    };
    header.write(Form::Plain, &mut out);
    out.extend(payload);
    out.extend(segment::crc32(payload).to_le_bytes());
    out
}

#[test]
fn a_large_envelope_can_be_given_up_on_the_way() {
    let mut decoder = Decoder::new(1 << 20);
    let large = [0x04, 0, 0, 7, 0x05, 0, 0, 0x40, 0];
    decoder.buffer().extend_from_slice(&large[..5]);
    assert_eq!(decoder.awaited_bytes(), None);
    decoder.buffer().extend_from_slice(&large[5..]);
    decoder.buffer().extend_from_slice(&[0; 100]);
    assert!(decoder.next_inbound().unwrap().is_none());
    assert_eq!(decoder.awaited_bytes(), Some(9 + 0x4000));
    assert_eq!(decoder.give_up_awaited().unwrap().stream, 7);
    assert_eq!(decoder.awaited_bytes(), None);
    decoder.buffer().extend_from_slice(&[0; 0x4000 - 100]);
    decoder.buffer().extend_from_slice(&[0x04, 0, 0, 8, 0x05, 0, 0, 0, 0]);
    let Some(Inbound::Envelope(next, _)) = decoder.next_inbound().unwrap() else {
        panic!("what follows is read");
    };
    assert_eq!(next.stream, 8);
}

#[test]
fn golden_segments() {
    let plain = [
        &[0x09, 0, 2, 0xA4, 0xC8, 0xC1],
        OPTIONS.as_slice(),
        &[0xB5, 0x55, 0x74, 0x86],
    ]
    .concat();
    let lz4 = [
        &[0x09, 0, 0, 0, 4, 0xC2, 0xB8, 0x95],
        OPTIONS.as_slice(),
        &[0xB5, 0x55, 0x74, 0x86],
    ]
    .concat();
    for (bytes, compression) in [(plain, None), (lz4, Some(Compression::Lz4))] {
        let mut decoder = fed(&bytes);
        decoder.negotiated(Version::V5, compression);
        let Ok(Some(Inbound::Envelope(header, body))) = decoder.next_inbound() else {
            panic!("no envelope")
        };
        assert_eq!((header.stream, header.opcode_byte, body.len()), (1, 5, 0));
        assert_eq!(decoder.next_inbound(), Ok(None));
        let mut broken = bytes.clone();
        *broken.last_mut().unwrap() ^= 1;
        let mut decoder = fed(&broken);
        decoder.negotiated(Version::V5, compression);
        assert_eq!(decoder.next_inbound(), Err(Fatal::Checksum));
    }
}

#[test]
fn versions_are_checked_by_the_first_byte() {
    for byte in [0, 1, 2, 6, 0x41, 0x42, 0x84, b'G'] {
        assert_eq!(fed(&[byte]).next_inbound(), Err(Fatal::Version(byte)));
    }
    let mut decoder = fed(&[OPTIONS.as_slice(), &[4, 0, 0, 2, 5, 0, 0, 0, 0]].concat());
    assert!(matches!(decoder.next_inbound(), Ok(Some(_))));
    assert!(matches!(
        decoder.next_inbound(),
        Err(Fatal::VersionChanged { stream: 2, .. })
    ));
}

#[test]
fn lengths_are_checked_before_the_body_comes() {
    let fatal = |bytes: [u8; 9]| fed(&bytes).next_inbound();
    assert!(matches!(
        fatal([4, 0, 0, 3, 7, 0xFF, 0xFF, 0xFF, 0xFF]),
        Err(Fatal::Length {
            length: -1,
            stream: 3,
            ..
        })
    ));
    assert!(matches!(
        fatal([4, 0, 0, 3, 7, 0x7F, 0xFF, 0xFF, 0xFF]),
        Err(Fatal::Length { .. })
    ));
}

#[test]
fn what_is_too_big_is_skipped_and_the_next_is_read() {
    for segmented in [false, true] {
        let mut decoder = Decoder::new(100);
        if segmented {
            decoder.negotiated(Version::V5, None);
        }
        let big = envelope(Version::V5, 7, &[0; 1000]);
        let bytes = if segmented {
            [
                plain_segment(&big[..500], false),
                plain_segment(&big[500..], false),
                plain_segment(&OPTIONS, true),
            ]
            .concat()
        } else {
            [big, OPTIONS.to_vec()].concat()
        };
        let mut seen = Vec::new();
        for part in bytes.chunks(13) {
            decoder.buffer().extend_from_slice(part);
            while let Some(inbound) = decoder.next_inbound().unwrap() {
                seen.push(inbound);
            }
            assert!(decoder.buffered() < 600);
        }
        assert!(
            matches!(seen.as_slice(), [Inbound::TooBig(big), Inbound::Envelope(small, _)]
            if big.stream == 7 && big.length == 1000 && small.stream == 1),
            "{seen:?}"
        );
    }
}

#[test]
fn a_compressed_body_needs_a_negotiated_algorithm() {
    let mut frame = envelope(Version::V4, 9, &[0, 0, 0, 1, 0x10, 0x41]);
    frame[1] = flags::COMPRESSED;
    assert!(matches!(fed(&frame).next_inbound(), Ok(Some(Inbound::Unreadable(header, _))) if header.stream == 9));
    let mut decoder = fed(&frame);
    decoder.negotiated(Version::V4, Some(Compression::Lz4));
    assert!(matches!(decoder.next_inbound(), Ok(Some(Inbound::Envelope(_, body))) if body.as_ref() == b"A"));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), segmented: bool, lz4: bool) {
        let mut decoder = fed(&bytes);
        if segmented {
            decoder.negotiated(Version::V5, lz4.then_some(Compression::Lz4));
        }
        for _ in 0..100 {
            match decoder.next_inbound() {
                Ok(Some(Inbound::Envelope(header, body))) => { let _ = Request::parse(&header, &body); }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }

    #[test]
    fn random_bodies_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200), opcode in 0_u8..20, frame_flags: u8, version in 3_u8..6) {
        let body = Bytes::from(body);
        let version = Version::from_byte(version).unwrap();
        let header = Header { version, flags: frame_flags, stream: 0, opcode_byte: opcode, length: body.len() };
        let _ = Request::parse(&header, &body);
    }

    // The encoder's responses become requests when the response bit of their version byte is cleared, so the decoder
    // can read them.
    #[test]
    fn decoder_reads_what_encoder_writes(
        sizes in proptest::collection::vec(0_usize..300_000, 1..6),
        random: bool,
        version in 3_u8..6,
        compression in 0..3,
        cut in 1_usize..70_000,
    ) {
        let version = Version::from_byte(version).unwrap();
        let compression = match compression {
            1 => Some(Compression::Lz4),
            2 if version < Version::V5 => Some(Compression::Snappy),
            _ => None,
        };
        let mut rng = fastrand::Rng::with_seed(sizes.len() as u64);
        let tokens: Vec<Bytes> = sizes.iter().map(|size| {
            (0..*size).map(|at| if random { rng.u8(..) } else { (at / 100 % 251).to_le_bytes()[0] }).collect::<Vec<u8>>().into()
        }).collect();
        let mut encoder = Encoder::new();
        encoder.negotiated(version, compression);
        for (stream, token) in (0_i16..).zip(&tokens) {
            encoder.write(version, stream, &Response::from(Body::AuthChallenge(token.clone())));
        }
        let mut bytes = encoder.flush().to_vec();
        if version < Version::V5 {
            // Bare envelopes: clear each response bit.
            let mut at = 0;
            while at < bytes.len() {
                bytes[at] &= 0x7F;
                let length = u32::from_be_bytes(bytes[at + 5..at + 9].try_into().unwrap());
                at += 9 + usize::try_from(length).unwrap();
            }
        } else {
            bytes = requests_in_segments(&bytes, compression);
        }
        let mut decoder = Decoder::new(1 << 20);
        decoder.negotiated(version, compression);
        let mut seen = Vec::new();
        for part in bytes.chunks(cut) {
            decoder.buffer().extend_from_slice(part);
            while let Some(inbound) = decoder.next_inbound().unwrap() {
                let Inbound::Envelope(header, body) = inbound else { panic!("{inbound:?}") };
                prop_assert_eq!(usize::try_from(header.stream).unwrap(), seen.len());
                seen.push(body.slice(4..));
            }
        }
        prop_assert_eq!(seen, tokens);
    }
}

/// The same segments with the response bit of each envelope cleared, plain payloads with new checksums.
fn requests_in_segments(bytes: &[u8], compression: Option<Compression>) -> Vec<u8> {
    let form = if compression.is_some() { Form::Lz4 } else { Form::Plain };
    let mut payloads = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let header = SegmentHeader::read(form, rest).unwrap().unwrap();
        let sent = &rest[form.header_bytes()..form.header_bytes() + header.length];
        assert_eq!(
            segment::crc32(sent).to_le_bytes(),
            rest[form.header_bytes() + header.length..][..4]
        );
        let payload = match header.uncompressed {
            Some(length) => compression::lz4_block(sent, length, segment::PAYLOAD_BYTES_MAX).unwrap(),
            None => sent.to_vec(),
        };
        payloads.push((header.self_contained, payload));
        rest = &rest[form.header_bytes() + header.length + 4..];
    }
    let mut out = Vec::new();
    let mut left = 0_usize;
    for (self_contained, mut payload) in payloads {
        let mut at = 0;
        while at < payload.len() {
            if left > 0 {
                let here = left.min(payload.len() - at);
                left -= here;
                at += here;
                continue;
            }
            payload[at] &= 0x7F;
            left = 9 + usize::try_from(u32::from_be_bytes(payload[at + 5..at + 9].try_into().unwrap())).unwrap();
        }
        let mut header = vec![0; form.header_bytes()];
        SegmentHeader {
            length: payload.len(),
            uncompressed: None,
            self_contained,
        }
        .write(form, &mut header);
        out.extend(header);
        out.extend(&payload);
        out.extend(segment::crc32(&payload).to_le_bytes());
    }
    out
}
