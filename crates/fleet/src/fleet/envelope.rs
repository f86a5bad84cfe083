//! Envelopes: where messages between nodes begin and end in a stream of bytes.
//!
//! ```text
//! segment    as in protocol version 5 with lz4: header, CRC24, payload ≤ 131,071 bytes, CRC32
//! payload    envelope, envelope, …        self-contained: messages that were ready together
//!            part of one envelope         a large one, alone
//! envelope   version u8 · kind u8 · of u8 · flags u8 · stream u32 · number u32 · length u32 · body
//! ```
//! Integers are big-endian. `of` is the caller's kind of a question; `number` is its time left in microseconds, or the
//! bytes of a window. A message with a body of [`APART_BYTES_MIN`] bytes gets segments of its own, which are compressed
//! where that makes them smaller. Smaller ones share a segment and are not compressed, so that a point read costs one copy.
//!
//! Memory follows the bytes that arrived: an announced length reserves at most as much again. Each body is an allocation
//! of its own: a piece that waits keeps no buffer with others in it.

use bytes::{Buf, Bytes, BytesMut};
use helenus_types::wire::frame::segment::{self, Form, PAYLOAD_BYTES_MAX, SegmentHeader, TRAILER_BYTES};
use helenus_types::wire::frame::{lz4_append, lz4_block};

use super::transport::Cause;

/// The version of the envelopes and of their kinds.
const VERSION: u8 = 1;

/// Bytes of an envelope before its body.
pub(super) const HEADER_BYTES: usize = 16;

/// The most that a body may have before the peer has proved itself, in bytes.
pub(super) const HANDSHAKE_BODY_BYTES_MAX: usize = 2 * 1024;

/// Bodies of this many bytes get segments of their own.
const APART_BYTES_MIN: usize = 8 * 1024;

/// Bytes reserved for an arriving body beyond those that arrived, at most as many as these or as arrived.
const AHEAD_BYTES: usize = 256 * 1024;

/// Capacity in bytes to which empty buffers shrink.
const KEPT_BYTES_MAX: usize = 256 * 1024;

const FORM: Form = Form::Lz4;

/// What an envelope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The asking side's name and nonce.
    Hello,
    /// The answering side's name, nonce and proofs.
    Challenge,
    /// The asking side's proofs.
    Proof,
    /// The answering side accepts.
    Welcome,
    /// The two do not talk.
    Refused,
    /// A question; `number` is its time left, the flag says that its first window is wide.
    Question,
    /// The asker takes no more of an answer.
    Cancel,
    /// More of an answer may be sent: `number` bytes.
    Grant,
    /// Asks for a sign of life; `number` is the time until the next, in microseconds.
    Ping,
    /// A piece of an answer; the flag says that it is the last.
    Piece,
    /// The answer is complete.
    End,
    /// The answer was given up.
    Broken,
    /// The next piece needs a window of `number` bytes.
    Want,
    /// A sign of life.
    Pong,
    /// No question after stream `stream` is answered on this connection.
    Leaving,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Hello,
        Self::Challenge,
        Self::Proof,
        Self::Welcome,
        Self::Refused,
        Self::Question,
        Self::Cancel,
        Self::Grant,
        Self::Ping,
        Self::Piece,
        Self::End,
        Self::Broken,
        Self::Want,
        Self::Pong,
        Self::Leaving,
    ];

    const fn byte(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Challenge => 2,
            Self::Proof => 3,
            Self::Welcome => 4,
            Self::Refused => 5,
            Self::Question => 16,
            Self::Cancel => 17,
            Self::Grant => 18,
            Self::Ping => 19,
            Self::Piece => 32,
            Self::End => 33,
            Self::Broken => 34,
            Self::Want => 35,
            Self::Pong => 36,
            Self::Leaving => 37,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// An envelope without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The caller's kind of a question; 0 in other envelopes.
    pub(super) of: u8,
    pub(super) flag: bool,
    pub(super) stream: u32,
    pub(super) number: u32,
}

impl Header {
    /// An envelope of one stream, or of the connection: stream 0.
    pub(super) const fn new(kind: Kind, stream: u32) -> Self {
        Self {
            kind,
            of: 0,
            flag: false,
            stream,
            number: 0,
        }
    }

    fn bytes(self, length: usize) -> [u8; HEADER_BYTES] {
        // Bodies above `BODY_BYTES_MAX` are refused before they are queued.
        let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        let (stream, number) = (self.stream.to_be_bytes(), self.number.to_be_bytes());
        let mut bytes = [0; HEADER_BYTES];
        let fields = [VERSION, self.kind.byte(), self.of, u8::from(self.flag)];
        let all = fields.iter().chain(&stream).chain(&number).chain(&length);
        for (to, from) in bytes.iter_mut().zip(all) {
            *to = *from;
        }
        bytes
    }

    /// Reads a header and the length of the body. `None` means `bytes` are fewer.
    fn read(bytes: &[u8], body_bytes_max: usize) -> Result<Option<(Self, usize)>, Cause> {
        let Some([version, kind, of, flags, s0, s1, s2, s3, n0, n1, n2, n3, l0, l1, l2, l3]) =
            bytes.first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        if *version != VERSION {
            return Err(Cause::Damaged("an envelope of another version"));
        }
        let kind = Kind::from_byte(*kind).ok_or(Cause::Damaged("an envelope of an unknown kind"))?;
        let flag = match flags {
            0 => false,
            1 => true,
            _ => return Err(Cause::Damaged("an envelope with unknown flags")),
        };
        let length = usize::try_from(u32::from_be_bytes([*l0, *l1, *l2, *l3])).unwrap_or(usize::MAX);
        if length > body_bytes_max {
            return Err(Cause::Damaged("a body above the limit"));
        }
        let header = Self {
            kind,
            of: *of,
            flag,
            stream: u32::from_be_bytes([*s0, *s1, *s2, *s3]),
            number: u32::from_be_bytes([*n0, *n1, *n2, *n3]),
        };
        Ok(Some((header, length)))
    }
}

/// An envelope that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) header: Header,
    pub(super) body: Bytes,
}

/// Writes envelopes into the bytes to send next.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    /// Bytes that were sent and are no longer in `out`.
    gone: u64,
    /// The start of the open segment in `out`.
    open: Option<usize>,
    /// A chunk that is being compressed.
    scratch: Vec<u8>,
    /// Whether large bodies are compressed.
    compresses: bool,
}

impl Encoder {
    pub(super) fn new(compresses: bool) -> Self {
        Self {
            compresses,
            ..Self::default()
        }
    }

    /// Bytes not sent yet.
    pub(super) fn queued(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Bytes written since the connection began, sent or not.
    pub(super) fn written(&self) -> u64 {
        self.gone + self.out.len() as u64
    }

    /// Bytes sent since the connection began.
    pub(super) fn sent_total(&self) -> u64 {
        self.gone + self.sent as u64
    }

    /// Appends an envelope.
    pub(super) fn write(&mut self, header: Header, body: &[u8]) {
        let head = header.bytes(body.len());
        if body.len() >= APART_BYTES_MIN {
            self.close();
            self.write_apart(&head, body);
            return;
        }
        let whole = HEADER_BYTES + body.len();
        let is_full = |open: usize| self.out.len() - open - FORM.header_bytes() + whole > PAYLOAD_BYTES_MAX;
        if self.open.is_some_and(is_full) {
            self.close();
        }
        if self.open.is_none() {
            self.open = Some(self.out.len());
            self.out.resize(self.out.len() + FORM.header_bytes(), 0);
        }
        self.out.extend_from_slice(&head);
        self.out.extend_from_slice(body);
    }

    fn write_apart(&mut self, head: &[u8], body: &[u8]) {
        let self_contained = head.len() + body.len() <= PAYLOAD_BYTES_MAX;
        let (mut head, mut body) = (head, body);
        while !(head.is_empty() && body.is_empty()) {
            let (now, later) = body.split_at(body.len().min(PAYLOAD_BYTES_MAX - head.len()));
            self.append_segment(head, now, self_contained);
            (head, body) = (&[], later);
        }
    }

    /// Appends a whole segment, compressed if that makes it smaller.
    fn append_segment(&mut self, head: &[u8], body: &[u8], self_contained: bool) {
        let at = self.out.len();
        let payload_at = at + FORM.header_bytes();
        let length = head.len() + body.len();
        self.out.resize(payload_at, 0);
        let compressed = self.compresses && self.append_compressed(head, body) && {
            let is_smaller = self.out.len() - payload_at < length;
            self.out.truncate(if is_smaller { self.out.len() } else { payload_at });
            is_smaller
        };
        if !compressed {
            self.out.extend_from_slice(head);
            self.out.extend_from_slice(body);
        }
        self.seal(at, compressed.then_some(length), self_contained);
    }

    fn append_compressed(&mut self, head: &[u8], body: &[u8]) -> bool {
        if head.is_empty() {
            return lz4_append(body, &mut self.out);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(head);
        self.scratch.extend_from_slice(body);
        lz4_append(&self.scratch, &mut self.out)
    }

    /// Writes the header of the segment at `at`, and its trailer.
    fn seal(&mut self, at: usize, uncompressed: Option<usize>, self_contained: bool) {
        let payload_at = at + FORM.header_bytes();
        let header = SegmentHeader {
            length: self.out.len() - payload_at,
            uncompressed,
            self_contained,
        };
        header.write(FORM, self.out.get_mut(at..).unwrap_or_default());
        let crc = segment::crc32(self.out.get(payload_at..).unwrap_or_default());
        self.out.extend_from_slice(&crc.to_le_bytes());
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.seal(open, None, true);
        }
    }

    /// Closes the open segment and returns the bytes to send.
    pub(super) fn flush(&mut self) -> &[u8] {
        self.close();
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// Marks the first bytes that [`Encoder::flush`] returned as sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent = (self.sent + bytes).min(self.out.len());
        if self.sent == self.out.len() {
            self.gone += self.sent as u64;
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES_MAX);
            self.sent = 0;
        }
    }
}

/// Reads envelopes from bytes. The caller appends what it reads to [`Decoder::buffer`].
#[derive(Debug)]
pub(super) struct Decoder {
    buffer: BytesMut,
    body_bytes_max: usize,
    /// The rest of a self-contained segment's payload.
    payload: Bytes,
    /// The part that arrived of an envelope that spans segments.
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    header: Header,
    length: usize,
    body: BytesMut,
}

impl Decoder {
    /// A decoder of bodies of at most this many bytes.
    pub(super) fn new(body_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            body_bytes_max,
            payload: Bytes::new(),
            begun: None,
        }
    }

    /// Changes the limit of bodies.
    pub(super) fn limit(&mut self, body_bytes_max: usize) {
        self.body_bytes_max = body_bytes_max;
    }

    /// The buffer to whose end the caller appends what it reads.
    pub(super) const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next envelope among the bytes received. `None` means it is not complete.
    ///
    /// # Errors
    /// The bytes are damaged: nothing more can be read from this connection.
    pub(super) fn next_envelope(&mut self) -> Result<Option<Envelope>, Cause> {
        loop {
            if !self.payload.is_empty() {
                return self.next_in_payload().map(Some);
            }
            let Some((self_contained, payload)) = self.next_segment()? else {
                return Ok(None);
            };
            if payload.is_empty() {
                return Err(Cause::Damaged("an empty segment"));
            }
            if self_contained {
                if self.begun.is_some() {
                    return Err(Cause::Damaged("a self-contained segment within a message"));
                }
                self.payload = payload;
            } else if let Some(envelope) = self.assemble(&payload)? {
                return Ok(Some(envelope));
            }
        }
    }

    fn next_in_payload(&mut self) -> Result<Envelope, Cause> {
        let damaged = Cause::Damaged("a self-contained segment that ends within a message");
        let read = Header::read(&self.payload, self.body_bytes_max)?;
        let Some((header, length)) = read else {
            return Err(damaged);
        };
        self.payload.advance(HEADER_BYTES);
        let body = self.payload.get(..length).ok_or(damaged)?;
        let body = Bytes::copy_from_slice(body);
        self.payload.advance(length);
        Ok(Envelope { header, body })
    }

    /// Adds a part of an envelope that spans segments; returns the envelope when it is complete.
    fn assemble(&mut self, part: &[u8]) -> Result<Option<Envelope>, Cause> {
        let (mut begun, part) = match self.begun.take() {
            Some(begun) => (begun, part),
            None => {
                let (header, length) = Header::read(part, self.body_bytes_max)?
                    .ok_or(Cause::Damaged("a message whose header is not in its first segment"))?;
                let body = BytesMut::new();
                let rest = part.get(HEADER_BYTES..).unwrap_or_default();
                (Begun { header, length, body }, rest)
            }
        };
        let left = begun.length - begun.body.len();
        if part.len() > left {
            return Err(Cause::Damaged("more bytes than the message has"));
        }
        let spare = begun.body.capacity() - begun.body.len();
        if spare < part.len() {
            let ahead = begun.body.len().max(AHEAD_BYTES).max(part.len());
            // Into a new allocation, since `reserve` would round up beyond the length of the message.
            let mut larger = BytesMut::with_capacity(begun.body.len() + ahead.min(left));
            larger.extend_from_slice(&begun.body);
            begun.body = larger;
        }
        begun.body.extend_from_slice(part);
        if begun.body.len() < begun.length {
            self.begun = Some(begun);
            return Ok(None);
        }
        let body = begun.body.freeze();
        let header = begun.header;
        Ok(Some(Envelope { header, body }))
    }

    fn next_segment(&mut self) -> Result<Option<(bool, Bytes)>, Cause> {
        let damaged = |_| Cause::Damaged("a segment header with a wrong checksum");
        let Some(header) = SegmentHeader::read(FORM, &self.buffer).map_err(damaged)? else {
            return Ok(None);
        };
        if self.buffer.len() < FORM.header_bytes() + header.length + TRAILER_BYTES {
            return Ok(None);
        }
        let mut payload = self.buffer.split_to(FORM.header_bytes() + header.length);
        payload.advance(FORM.header_bytes());
        if self.buffer.get_u32_le() != segment::crc32(&payload) {
            return Err(Cause::Damaged("a segment with a wrong checksum"));
        }
        let payload = match header.uncompressed {
            None => payload.freeze(),
            Some(length) => lz4_block(&payload, length, PAYLOAD_BYTES_MAX)
                .map_err(|_| Cause::Damaged("a segment that cannot be decompressed"))?
                .into(),
        };
        Ok(Some((header.self_contained, payload)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::transport::BODY_BYTES_MAX;
    use super::*;

    fn question(stream: u32) -> Header {
        Header {
            of: 7,
            flag: stream.is_multiple_of(2),
            number: 1_000_000,
            ..Header::new(Kind::Question, stream)
        }
    }

    fn decode(bytes: &[u8], step: usize) -> Result<Vec<Envelope>, Cause> {
        let mut decoder = Decoder::new(BODY_BYTES_MAX);
        let mut envelopes = Vec::new();
        for chunk in bytes.chunks(step) {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(envelope) = decoder.next_envelope()? {
                envelopes.push(envelope);
            }
        }
        Ok(envelopes)
    }

    /// A body that compresses, or one that does not.
    fn body(length: usize, is_random: bool) -> Bytes {
        let mut rng = fastrand::Rng::with_seed(length as u64);
        (0..length)
            .map(|at| {
                if is_random {
                    rng.u8(..)
                } else {
                    u8::try_from(at / 1000 % 256).unwrap()
                }
            })
            .collect()
    }

    #[test]
    fn messages_that_are_ready_together_share_a_segment() {
        let mut encoder = Encoder::new(true);
        for stream in 0..100 {
            encoder.write(question(stream), b"a small body");
        }
        let bytes = encoder.flush().to_vec();
        let overhead = FORM.header_bytes() + TRAILER_BYTES;
        assert_eq!(bytes.len(), 100 * (HEADER_BYTES + 12) + overhead);
        encoder.sent(bytes.len());
        assert_eq!((encoder.queued(), encoder.sent_total()), (0, bytes.len() as u64));
        let envelopes = decode(&bytes, 17).unwrap();
        assert_eq!(envelopes.len(), 100);
        assert_eq!(envelopes[3].header, question(3));
    }

    #[test]
    fn the_largest_body_comes_back_and_a_larger_one_is_refused() {
        let largest = body(BODY_BYTES_MAX, false);
        let mut encoder = Encoder::new(true);
        encoder.write(question(1), &largest);
        assert!(encoder.queued() < BODY_BYTES_MAX / 10, "it is compressed");
        let mut decoder = Decoder::new(BODY_BYTES_MAX);
        decoder.buffer().extend_from_slice(encoder.flush());
        let envelope = decoder.next_envelope().unwrap().unwrap();
        assert!(envelope.body == largest);
        let mut decoder = Decoder::new(BODY_BYTES_MAX - 1);
        decoder.buffer().extend_from_slice(encoder.flush());
        assert_eq!(decoder.next_envelope(), Err(Cause::Damaged("a body above the limit")));
    }

    #[test]
    fn an_announced_length_reserves_little() {
        let mut encoder = Encoder::new(false);
        encoder.write(question(1), &body(BODY_BYTES_MAX, true));
        let mut decoder = Decoder::new(BODY_BYTES_MAX);
        let first = encoder.flush().get(..PAYLOAD_BYTES_MAX + 100).unwrap();
        decoder.buffer().extend_from_slice(first);
        assert_eq!(decoder.next_envelope(), Ok(None));
        assert!(decoder.begun.unwrap().body.capacity() <= AHEAD_BYTES + PAYLOAD_BYTES_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn envelopes_come_back(
            lengths in proptest::collection::vec((0_usize..400_000, any::<bool>(), any::<bool>()), 1..12),
            compresses: bool,
            step in 1_usize..100_000,
        ) {
            let mut encoder = Encoder::new(compresses);
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (number, (length, is_small, is_random)) in lengths.into_iter().enumerate() {
                let body = body(if is_small { length / 1000 } else { length }, is_random);
                let header = question(u32::try_from(number).unwrap());
                encoder.write(header, &body);
                expected.push(Envelope { header, body });
                if number % 3 == 0 {
                    bytes.extend_from_slice(encoder.flush());
                    encoder.sent(usize::MAX / 2);
                }
            }
            bytes.extend_from_slice(encoder.flush());
            prop_assert!(decode(&bytes, step).unwrap() == expected);
        }

        #[test]
        fn a_changed_byte_is_seen(length in 0_usize..300_000, at: proptest::sample::Index, change in 1_u8..) {
            let mut encoder = Encoder::new(true);
            encoder.write(question(9), &body(length, true));
            let mut bytes = encoder.flush().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            let read = decode(&bytes, 1 << 20);
            prop_assert!(matches!(&read, Err(Cause::Damaged(_))) || read == Ok(Vec::new()), "{:?}", read.map(|r| r.len()));
        }

        #[test]
        fn random_payloads_never_panic(payload in proptest::collection::vec(any::<u8>(), 1..400), whole: bool, head: bool) {
            // With right checksums, so that the envelopes themselves are read.
            let mut encoder = Encoder::new(false);
            let start = if head { question(1).bytes(200).to_vec() } else { Vec::new() };
            encoder.append_segment(&start, &payload, whole);
            encoder.append_segment(&[], &payload, false);
            let _ = decode(encoder.flush(), 1 << 20);
            let _ = decode(&payload, 7);
        }
    }
}
