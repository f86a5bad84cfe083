//! Numbers, bytes and lists of messages.

use bytes::Bytes;

use super::error::{DecodeError, EncodeError};
use super::limits::{Limit, MESSAGE_BYTES_MAX, NAME_BYTES_MAX};

/// The version of the format.
pub(super) const VERSION: u8 = 1;

/// Items for which memory is taken before the first is read. More are added as they come.
const ITEMS_AHEAD: usize = 256;

/// The kind of a message: its second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Writes,
}

/// Gives an enum without fields stable tags, for both directions.
macro_rules! tags {
    ($method:ident, $type:ty, $of:literal, { $($tag:literal = $variant:path),+ $(,)? }) => {
        impl Encoder {
            pub(super) fn $method(&mut self, value: $type) {
                self.u8(match value { $($variant => $tag),+ });
            }
        }

        impl Decoder {
            pub(super) fn $method(&mut self) -> Result<$type, DecodeError> {
                match self.u8()? {
                    $($tag => Ok($variant),)+
                    found => Err(DecodeError::Tag { of: $of, found }),
                }
            }
        }
    };
}
pub(super) use tags;

tags!(kind, Kind, "kind of message", { 1 = Kind::Read, 2 = Kind::Writes });

/// Writes a message.
pub(super) struct Encoder {
    out: Vec<u8>,
    /// The first bound that was passed.
    refused: Option<EncodeError>,
}

impl Encoder {
    /// Begins a message.
    pub(super) fn new(kind: Kind) -> Self {
        let mut encoder = Self::bare();
        encoder.u8(VERSION);
        encoder.kind(kind);
        encoder
    }

    /// Begins bytes that are no message.
    pub(super) const fn bare() -> Self {
        Self {
            out: Vec::new(),
            refused: None,
        }
    }

    /// The message.
    ///
    /// # Errors
    /// The command is beyond a bound.
    pub(super) fn finish(mut self) -> Result<Bytes, EncodeError> {
        let bytes = Limit {
            items: "bytes",
            most: MESSAGE_BYTES_MAX,
        };
        self.check(bytes, self.out.len());
        match self.refused {
            None => Ok(self.out.into()),
            Some(error) => Err(error),
        }
    }

    /// What was written, whatever its bounds.
    pub(super) fn unbounded(self) -> Vec<u8> {
        self.out
    }

    /// Notes that a command has so many items. Returns whether it may.
    pub(super) fn check(&mut self, limit: Limit, found: usize) -> bool {
        let Limit { items, most } = limit;
        if found <= most {
            return true;
        }
        self.refused.get_or_insert(EncodeError { items, found, most });
        false
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn u128(&mut self, value: u128) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn i32(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    /// A position or a length.
    pub(super) fn number(&mut self, value: usize) {
        let most = Limit {
            items: "of something that is counted in 32 bits",
            most: u32::MAX as usize,
        };
        self.check(most, value);
        self.u32(u32::try_from(value).unwrap_or(u32::MAX));
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.number(value.len());
        self.out.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, value: &str) {
        let limit = Limit {
            items: "bytes in a name",
            most: NAME_BYTES_MAX,
        };
        self.check(limit, value.len());
        self.bytes(value.as_bytes());
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(super) fn list<T>(&mut self, limit: Limit, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(items.len());
        if self.check(limit, items.len()) {
            for item in items {
                write(self, item);
            }
        }
    }
}

/// Reads a message.
pub(super) struct Decoder {
    rest: Bytes,
    /// How many columns the table has whose columns are named next.
    pub(super) columns: usize,
}

impl Decoder {
    /// Begins a message of this kind.
    pub(super) fn new(message: &Bytes, kind: Kind) -> Result<Self, DecodeError> {
        let found = message.len();
        if found > MESSAGE_BYTES_MAX {
            return Err(DecodeError::TooMany {
                items: "bytes",
                found,
                most: MESSAGE_BYTES_MAX,
            });
        }
        let mut decoder = Self {
            rest: message.clone(),
            columns: 0,
        };
        let found = decoder.u8()?;
        if found != VERSION {
            return Err(DecodeError::Version { found, known: VERSION });
        }
        let tag = decoder.rest.first().copied().unwrap_or_default();
        if decoder.kind()? != kind {
            return Err(DecodeError::Tag {
                of: "kind of message here",
                found: tag,
            });
        }
        Ok(decoder)
    }

    /// Ends a message.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(DecodeError::Trailing { bytes }),
        }
    }

    fn take(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        if length > self.rest.len() {
            return Err(DecodeError::Short);
        }
        Ok(self.rest.split_to(length))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.take(N)?.first_chunk().copied().ok_or(DecodeError::Short)
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn u128(&mut self) -> Result<u128, DecodeError> {
        self.array().map(u128::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(DecodeError::Tag { of: "yes or no", found }),
        }
    }

    pub(super) fn number(&mut self) -> Result<usize, DecodeError> {
        // Where it does not fit, no such length is there.
        usize::try_from(self.u32()?).map_err(|_| DecodeError::Short)
    }

    /// A slice of the message, which it keeps in memory.
    pub(super) fn bytes(&mut self) -> Result<Bytes, DecodeError> {
        let length = self.number()?;
        self.take(length)
    }

    pub(super) fn vec(&mut self) -> Result<Vec<u8>, DecodeError> {
        self.bytes().map(|bytes| bytes.to_vec())
    }

    pub(super) fn text(&mut self) -> Result<String, DecodeError> {
        let bytes = self.bytes()?;
        if bytes.len() > NAME_BYTES_MAX {
            return Err(DecodeError::TooMany {
                items: "bytes in a name",
                found: bytes.len(),
                most: NAME_BYTES_MAX,
            });
        }
        String::from_utf8(bytes.into()).map_err(|_| DecodeError::Text)
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    /// A list. Every item takes at least one byte.
    pub(super) fn list<T>(
        &mut self,
        limit: Limit,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let found = self.number()?;
        let Limit { items, most } = limit;
        if found > most {
            return Err(DecodeError::TooMany { items, found, most });
        }
        if found > self.rest.len() {
            return Err(DecodeError::Short);
        }
        let mut list = Vec::with_capacity(found.min(ITEMS_AHEAD));
        for _ in 0..found {
            list.push(read(self)?);
        }
        Ok(list)
    }
}
