//! Tests of the frame encoder: shared segments, sent bytes.

use super::super::super::response::{Body, Response};
use super::*;

#[test]
fn answers_that_are_ready_together_share_a_segment() {
    let mut encoder = Encoder::new();
    encoder.write(Version::V5, 0, &Response::from(Body::Ready));
    encoder.negotiated(Version::V5, None);
    for stream in 1..4 {
        encoder.write(Version::V5, stream, &Response::from(Body::Void));
    }
    let bytes = encoder.flush().to_vec();
    assert_eq!(bytes.len(), 9 + 6 + 3 * 13 + 4);
    assert_eq!(&bytes[..9], &[0x85, 0, 0, 0, 2, 0, 0, 0, 0]);
    let header = SegmentHeader::read(Form::Plain, &bytes[9..]).unwrap().unwrap();
    assert_eq!((header.length, header.self_contained), (39, true));
}

#[test]
fn sent_bytes_leave() {
    let mut encoder = Encoder::new();
    encoder.negotiated(Version::V5, None);
    encoder.write(Version::V5, 1, &Response::from(Body::Void));
    assert_eq!(encoder.flush().len(), 23);
    encoder.sent(10);
    assert_eq!(encoder.queued(), 13);
    encoder.write(Version::V5, 2, &Response::from(Body::Void));
    assert_eq!(encoder.flush().len(), 13 + 23);
    encoder.sent(36);
    assert_eq!(encoder.queued(), 0);
    assert!(encoder.flush().is_empty());
}
