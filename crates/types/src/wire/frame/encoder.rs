//! From responses to the bytes of the socket.
//!
//! Responses are appended to one buffer, in which the open segment (version 5) grows in place: space for its header is
//! reserved, and its checksums are written when it is closed, by [`Encoder::flush`] or because it is full. So responses
//! that are ready together are sent in one segment and one write. A response is copied only if compression was negotiated,
//! or if it does not fit into the open segment.

use super::super::header::{HEADER_BYTES, RESPONSE_BIT, patch_length};
use super::super::response::{ErrorBody, Response};
use super::super::{Compression, Version, flags};
use super::segment::{Form, PAYLOAD_BYTES_MAX, SegmentHeader};
use super::{BODY_BYTES_MAX, compression, segment};

/// Bodies and payloads with fewer bytes are not compressed, since it saves little. Cassandra has no such limit; drivers
/// accept uncompressed ones at any time.
const COMPRESS_BYTES_MIN: usize = 512;

/// Sent bytes at the front of the buffer are removed when there are more than this.
const SENT_BYTES_MAX: usize = 1 << 20;

/// Capacity in bytes to which an empty buffer shrinks after a large response.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Encodes responses into the bytes to send next.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    compression: Option<Compression>,
    segments: Option<Form>,
    /// The start of the open segment.
    open: Option<usize>,
    scratch: Vec<u8>,
}

impl Encoder {
    /// An encoder of bare, plain envelopes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Switches after the answer to STARTUP is written: what follows is in segments (version 5) or may be compressed.
    pub fn negotiated(&mut self, version: Version, compression: Option<Compression>) {
        self.compression = compression;
        if version >= Version::V5 {
            self.segments = Some(if compression.is_some() { Form::Lz4 } else { Form::Plain });
        }
    }

    /// Bytes not sent yet, unfinished segments included.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.out.capacity() + self.scratch.capacity()
    }

    /// Releases memory that it does not need now.
    pub fn shrink(&mut self) {
        if self.queued() == 0 && self.open.is_none() {
            self.out = Vec::new();
            self.sent = 0;
            self.scratch = Vec::new();
        }
    }

    /// Closes the open segment and returns the bytes to send.
    pub fn flush(&mut self) -> &[u8] {
        self.close();
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// Marks the first bytes that [`Encoder::flush`] returned as sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.out.len());
        if self.sent == self.out.len() {
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES_MAX);
            self.sent = 0;
        } else if self.sent > SENT_BYTES_MAX && self.open.is_none() {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Appends raw bytes: the refusal of a version that has other headers.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.close();
        self.out.extend_from_slice(bytes);
    }

    /// Appends a response.
    pub fn write(&mut self, version: Version, stream: i16, response: &Response) {
        if self.segments.is_some() && self.open.is_none() {
            self.open_segment();
        }
        let start = self.out.len();
        let frame_flags = response.flags(version);
        self.out
            .extend_from_slice(&[version.number() | RESPONSE_BIT, frame_flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(&[response.body.opcode().byte(), 0, 0, 0, 0]);
        response.write(&mut self.out, version);
        if self.out.len() - start - HEADER_BYTES > BODY_BYTES_MAX {
            // Clients close the connection on such a frame; an error loses only this response.
            self.out.truncate(start);
            let error = ErrorBody::server("The answer is larger than any frame may be: ask for smaller pages");
            return self.write(version, stream, &error.into());
        }
        if self.segments.is_some() {
            patch_length(&mut self.out, start);
            self.keep_segment_small(start);
        } else {
            self.compress_body(start);
            patch_length(&mut self.out, start);
        }
    }

    /// Compresses the body of the envelope at `start`, versions 3 and 4.
    fn compress_body(&mut self, start: usize) {
        let Some(algorithm) = self.compression else { return };
        let body_at = start + HEADER_BYTES;
        let body = self.out.get(body_at..).unwrap_or_default();
        self.scratch.clear();
        if body.len() < COMPRESS_BYTES_MIN || !compression::compress(algorithm, body, &mut self.scratch) {
            return;
        }
        self.out.truncate(body_at);
        self.out.extend_from_slice(&self.scratch);
        if let Some(frame_flags) = self.out.get_mut(start + 1) {
            *frame_flags |= flags::COMPRESSED;
        }
        self.scratch.shrink_to(KEPT_BYTES_MAX);
    }

    fn open_segment(&mut self) {
        let Some(form) = self.segments else { return };
        self.open = Some(self.out.len());
        self.out.resize(self.out.len() + form.header_bytes(), 0);
    }

    /// Moves the envelope at `start`, the last of the open segment, into segments of its own if it does not fit.
    fn keep_segment_small(&mut self, start: usize) {
        let (Some(form), Some(open)) = (self.segments, self.open) else {
            return;
        };
        let payload_at = open + form.header_bytes();
        if self.out.len() - payload_at <= PAYLOAD_BYTES_MAX {
            return;
        }
        if start > payload_at {
            let envelope = self.out.split_off(start);
            self.close();
            self.open_segment();
            self.out.extend_from_slice(&envelope);
        }
        if self
            .open
            .is_some_and(|open| self.out.len() - open - form.header_bytes() > PAYLOAD_BYTES_MAX)
        {
            self.close();
        }
    }

    /// Closes the open segment.
    fn close(&mut self) {
        let (Some(form), Some(open)) = (self.segments, self.open.take()) else {
            return;
        };
        let payload_at = open + form.header_bytes();
        let length = self.out.len() - payload_at;
        if length == 0 {
            self.out.truncate(open);
            return;
        }
        if length <= PAYLOAD_BYTES_MAX && form == Form::Plain {
            let header = SegmentHeader {
                length,
                uncompressed: None,
                self_contained: true,
            };
            header.write(form, self.out.get_mut(open..).unwrap_or_default());
            let crc = segment::crc32(self.out.get(payload_at..).unwrap_or_default());
            self.out.extend_from_slice(&crc.to_le_bytes());
            return;
        }
        let payload = self.out.split_off(payload_at);
        self.out.truncate(open);
        let self_contained = length <= PAYLOAD_BYTES_MAX;
        for part in payload.chunks(PAYLOAD_BYTES_MAX) {
            self.append_segment(form, part, self_contained);
        }
    }

    /// Appends a whole segment, compressed if that makes it smaller.
    fn append_segment(&mut self, form: Form, part: &[u8], self_contained: bool) {
        let at = self.out.len();
        let payload_at = at + form.header_bytes();
        self.out.resize(payload_at, 0);
        let compressed = form == Form::Lz4
            && part.len() >= COMPRESS_BYTES_MIN
            && compression::lz4_append(part, &mut self.out)
            && self.out.len() - payload_at < part.len();
        if !compressed {
            self.out.truncate(payload_at);
            self.out.extend_from_slice(part);
        }
        let header = SegmentHeader {
            length: self.out.len() - payload_at,
            uncompressed: compressed.then_some(part.len()),
            self_contained,
        };
        header.write(form, self.out.get_mut(at..).unwrap_or_default());
        let crc = segment::crc32(self.out.get(payload_at..).unwrap_or_default());
        self.out.extend_from_slice(&crc.to_le_bytes());
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
