//! From bytes read to whole envelopes.
//!
//! ```text
//! bare        buffer ── envelope
//! segmented   buffer ── segment ── payload: self-contained ── envelope, envelope …
//!                                           part of one ────→ assembled ── envelope
//! ```
//! Memory follows the bytes received: an announced length reserves nothing, and an envelope over the limit is discarded
//! as it arrives.

use bytes::{Buf, Bytes, BytesMut};

use super::super::cursor::Malformed;
use super::super::header::{HEADER_BYTES, Header};
use super::super::{Compression, Version, flags};
use super::segment::{Form, SegmentHeader, TRAILER_BYTES};
use super::{BODY_BYTES_MAX, compression, segment};

/// A decoded item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// A whole envelope, its body no longer compressed.
    Envelope(Header, Bytes),
    /// An envelope whose body cannot be decoded: answered on its stream.
    Unreadable(Header, Malformed),
    /// An envelope over the limit, which has been or will be skipped: answered on its stream.
    TooBig(Header),
}

/// Why no more envelopes can be read from this connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// The first byte is no request of a supported version.
    Version(u8),
    /// The version differs from that of earlier envelopes.
    VersionChanged {
        /// The earlier version.
        from: Version,
        /// The new version.
        to: Version,
        /// The stream of the envelope.
        stream: i16,
    },
    /// A negative length, or one above the limit of the protocol.
    Length {
        /// The length in the header.
        length: i32,
        /// The version of the answer.
        version: Version,
        /// The stream of the envelope.
        stream: i16,
    },
    /// A segment whose header or payload does not match its checksum, or cannot be decompressed: nothing can be answered.
    Checksum,
    /// Segments that do not contain envelopes as the protocol requires.
    Segments(&'static str),
}

/// Bytes to skip of an envelope over the limit.
#[derive(Debug)]
struct Skip(usize);

/// Decodes envelopes from bytes. The caller reads the socket and appends the bytes to [`Decoder::buffer`].
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    body_bytes_max: usize,
    version: Option<Version>,
    compression: Option<Compression>,
    segments: Option<Form>,
    /// The rest of a self-contained segment's payload.
    payload: Bytes,
    /// The received part of an envelope that spans segments.
    assembled: BytesMut,
    skip: Option<Skip>,
}

impl Decoder {
    /// A decoder of bare envelopes with bodies of at most `body_bytes_max` bytes.
    #[must_use]
    pub fn new(body_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            body_bytes_max: body_bytes_max.min(BODY_BYTES_MAX),
            version: None,
            compression: None,
            segments: None,
            payload: Bytes::new(),
            assembled: BytesMut::new(),
            skip: None,
        }
    }

    /// The buffer to whose end the caller appends what it reads.
    pub const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity() + self.payload.len() + self.assembled.capacity()
    }

    /// Releases memory that it does not need now.
    pub fn shrink(&mut self) {
        if !self.has_more() {
            self.buffer = BytesMut::new();
            self.assembled = BytesMut::new();
        }
    }

    /// The size in bytes of the envelope that has arrived in part, header included. `None` means its header is not
    /// complete.
    #[must_use]
    pub fn awaited_bytes(&self) -> Option<usize> {
        let begun = if self.segments.is_some() {
            &self.assembled
        } else {
            &self.buffer
        };
        let [.., l0, l1, l2, l3] = begun.first_chunk::<HEADER_BYTES>().filter(|_| self.skip.is_none())?;
        let length = usize::try_from(u32::from_be_bytes([*l0, *l1, *l2, *l3])).ok()?;
        Some(HEADER_BYTES + length).filter(|whole| *whole > begun.len())
    }

    /// Discards the rest of that envelope; returns its header.
    pub fn give_up_awaited(&mut self) -> Option<Header> {
        let whole = self.awaited_bytes()?;
        let begun = if self.segments.is_some() {
            &mut self.assembled
        } else {
            &mut self.buffer
        };
        let header = header(begun, &mut self.version).ok()??;
        self.skip = Some(Skip(whole - begun.len()));
        *begun = BytesMut::new();
        Some(header)
    }

    /// Whether there are bytes of an envelope that was not returned yet.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !(self.buffer.is_empty() && self.payload.is_empty() && self.assembled.is_empty())
    }

    /// Bytes held of envelopes that were not returned yet.
    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.buffer.len() + self.payload.len() + self.assembled.len()
    }

    /// Changes the limit of bodies (the one before authentication is lower).
    pub fn limit(&mut self, body_bytes_max: usize) {
        self.body_bytes_max = body_bytes_max.min(BODY_BYTES_MAX);
    }

    /// The limit of bodies, in bytes.
    #[must_use]
    pub const fn body_bytes_max(&self) -> usize {
        self.body_bytes_max
    }

    /// Switches after the answer to STARTUP: later bytes are segments in version 5, and bodies may be compressed in the
    /// others.
    pub fn negotiated(&mut self, version: Version, compression: Option<Compression>) {
        self.compression = compression;
        if version >= Version::V5 {
            self.segments = Some(if compression.is_some() { Form::Lz4 } else { Form::Plain });
        }
    }

    /// The next envelope among the bytes received. `None` means it is not complete.
    ///
    /// # Errors
    /// Nothing more can be read from this connection.
    pub fn next_inbound(&mut self) -> Result<Option<Inbound>, Fatal> {
        match self.segments {
            None => self.next_bare(),
            Some(form) => self.next_segmented(form),
        }
    }

    fn next_bare(&mut self) -> Result<Option<Inbound>, Fatal> {
        if let Some(Skip(left)) = &mut self.skip {
            let here = (*left).min(self.buffer.len());
            self.buffer.advance(here);
            *left -= here;
            if *left > 0 {
                return Ok(None);
            }
            self.skip = None;
        }
        let Some(header) = header(&self.buffer, &mut self.version)? else {
            return Ok(None);
        };
        if header.length > self.body_bytes_max {
            self.buffer.advance(HEADER_BYTES);
            self.skip = Some(Skip(header.length));
            return Ok(Some(Inbound::TooBig(header)));
        }
        if self.buffer.len() < HEADER_BYTES + header.length {
            return Ok(None);
        }
        let mut envelope = self.buffer.split_to(HEADER_BYTES + header.length);
        envelope.advance(HEADER_BYTES);
        let body = envelope.freeze();
        if header.flags & flags::COMPRESSED == 0 || header.version >= Version::V5 {
            return Ok(Some(Inbound::Envelope(header, body)));
        }
        let Some(algorithm) = self.compression else {
            let what = "Received a compressed frame, but no compression was negotiated";
            return Ok(Some(Inbound::Unreadable(header, Malformed::Unsupported { what })));
        };
        Ok(Some(
            match compression::decompress(algorithm, &body, self.body_bytes_max) {
                Ok(body) => Inbound::Envelope(header, body.into()),
                Err(malformed) => Inbound::Unreadable(header, malformed),
            },
        ))
    }

    fn next_segmented(&mut self, form: Form) -> Result<Option<Inbound>, Fatal> {
        loop {
            if !self.payload.is_empty() {
                return self.next_in_payload().map(Some);
            }
            let Some((self_contained, payload)) = self.next_segment(form)? else {
                return Ok(None);
            };
            if self_contained {
                if !self.assembled.is_empty() || self.skip.is_some() {
                    return Err(Fatal::Segments("a self-contained segment within a large message"));
                }
                self.payload = payload;
            } else if let Some(inbound) = self.assemble(&payload)? {
                return Ok(Some(inbound));
            }
        }
    }

    /// Cuts the next envelope from a self-contained payload.
    fn next_in_payload(&mut self) -> Result<Inbound, Fatal> {
        let whole = "a self-contained segment that holds no whole message";
        let header = header(&self.payload, &mut self.version)?.ok_or(Fatal::Segments(whole))?;
        self.payload.advance(HEADER_BYTES);
        if self.payload.len() < header.length {
            return Err(Fatal::Segments(whole));
        }
        let body = self.payload.split_to(header.length);
        if header.length > self.body_bytes_max {
            return Ok(Inbound::TooBig(header));
        }
        Ok(Inbound::Envelope(header, body))
    }

    /// Adds a part of an envelope that spans segments; returns the envelope when it is complete.
    fn assemble(&mut self, part: &[u8]) -> Result<Option<Inbound>, Fatal> {
        if let Some(Skip(left)) = &mut self.skip {
            *left = left
                .checked_sub(part.len())
                .ok_or(Fatal::Segments("more bytes than the message has"))?;
            if *left == 0 {
                self.skip = None;
            }
            return Ok(None);
        }
        let first = self.assembled.is_empty();
        self.assembled.extend_from_slice(part);
        let header = header(&self.assembled, &mut self.version)?
            .ok_or(Fatal::Segments("a message whose header is not in its first segment"))?;
        let whole = HEADER_BYTES + header.length;
        if self.assembled.len() > whole {
            return Err(Fatal::Segments("more bytes than the message has"));
        }
        if first && header.length > self.body_bytes_max {
            let left = whole - self.assembled.len();
            self.assembled.clear();
            self.skip = Some(Skip(left)).filter(|Skip(left)| *left > 0);
            return Ok(Some(Inbound::TooBig(header)));
        }
        if self.assembled.len() < whole {
            return Ok(None);
        }
        let mut envelope = std::mem::take(&mut self.assembled).freeze();
        envelope.advance(HEADER_BYTES);
        Ok(Some(Inbound::Envelope(header, envelope)))
    }

    fn next_segment(&mut self, form: Form) -> Result<Option<(bool, Bytes)>, Fatal> {
        let header = SegmentHeader::read(form, &self.buffer).map_err(|_| Fatal::Checksum)?;
        let Some(header) = header else { return Ok(None) };
        let header_bytes = form.header_bytes();
        if self.buffer.len() < header_bytes + header.length + TRAILER_BYTES {
            return Ok(None);
        }
        let mut payload = self.buffer.split_to(header_bytes + header.length);
        payload.advance(header_bytes);
        if self.buffer.get_u32_le() != segment::crc32(&payload) {
            return Err(Fatal::Checksum);
        }
        let payload = match header.uncompressed {
            None => payload.freeze(),
            Some(length) => compression::lz4_block(&payload, length, segment::PAYLOAD_BYTES_MAX)
                .map_err(|_| Fatal::Checksum)?
                .into(),
        };
        Ok(Some((header.self_contained, payload)))
    }
}

/// The header at the beginning of `bytes`. `None` means it is not complete.
fn header(bytes: &[u8], expected: &mut Option<Version>) -> Result<Option<Header>, Fatal> {
    let Some(first) = bytes.first() else { return Ok(None) };
    // Decided by the first byte alone, because versions 1 and 2 have shorter headers and other protocols none.
    let version = Version::from_byte(*first).ok_or(Fatal::Version(*first))?;
    let Some([_, flags, stream @ .., opcode_byte, l0, l1, l2, l3]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let stream = i16::from_be_bytes(*stream);
    match *expected {
        None => *expected = Some(version),
        Some(from) if from != version => {
            return Err(Fatal::VersionChanged {
                from,
                to: version,
                stream,
            });
        }
        Some(_) => {}
    }
    let length = i32::from_be_bytes([*l0, *l1, *l2, *l3]);
    let fatal = Fatal::Length {
        length,
        version,
        stream,
    };
    let length = usize::try_from(length).map_err(|_| fatal.clone())?;
    if length > BODY_BYTES_MAX {
        return Err(fatal);
    }
    Ok(Some(Header {
        version,
        flags: *flags,
        stream,
        opcode_byte: *opcode_byte,
        length,
    }))
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
