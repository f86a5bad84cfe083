//! Reads the protocol's notations (native_protocol_v5.spec §3) from a body, each read checked against the bytes left.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;

use super::value::{Consistency, Value};

/// An error in a body. The response is a protocol error on the request's stream; the connection stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "`field` is always the field being read")]
pub enum Malformed {
    /// The body ends before the field does.
    #[error("Not enough bytes to read {field}: need {need}, have {have}")]
    Short {
        field: &'static str,
        need: usize,
        have: usize,
    },
    /// A length below what its notation allows.
    #[error("Invalid length {length} of {field}")]
    Length { field: &'static str, length: i32 },
    /// Text that is not UTF-8.
    #[error("Cannot decode {field} as UTF-8")]
    NotUtf8 { field: &'static str },
    /// A number that is no known code.
    #[error("Unknown code {code} for a {field}")]
    Code { field: &'static str, code: i64 },
    /// A batch of no known type.
    #[error("Invalid BATCH message type {0}")]
    BatchType(u8),
    /// A field that this version of the protocol, or this message, does not support.
    #[error("{what}")]
    Unsupported { what: &'static str },
    /// A compressed body that does not decompress to what it announces.
    #[error("Cannot decompress the body: {what}")]
    Compression { what: &'static str },
}

/// A result of reading.
pub type Read<T> = Result<T, Malformed>;

/// A reading position in a body. Text is borrowed from the body; values are slices that share its memory.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    body: &'a Bytes,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of `body`.
    #[must_use]
    pub const fn new(body: &'a Bytes) -> Self {
        Self { body, at: 0 }
    }

    /// The number of bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.body.len().saturating_sub(self.at)
    }

    fn take(&mut self, count: usize, field: &'static str) -> Read<&'a [u8]> {
        let have = self.remaining();
        let short = Malformed::Short {
            field,
            need: count,
            have,
        };
        let end = self.at.checked_add(count).ok_or_else(|| short.clone())?;
        let taken = self.body.get(self.at..end).ok_or(short)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Read<[u8; N]> {
        let have = self.remaining();
        let taken = self.take(N, field)?;
        taken.try_into().map_err(|_| Malformed::Short { field, need: N, have })
    }

    /// Reads a `[byte]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn byte(&mut self, field: &'static str) -> Read<u8> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Reads a `[short]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn short(&mut self, field: &'static str) -> Read<u16> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// Reads an `[int]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn int(&mut self, field: &'static str) -> Read<i32> {
        self.array(field).map(i32::from_be_bytes)
    }

    /// Reads a `[long]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn long(&mut self, field: &'static str) -> Read<i64> {
        self.array(field).map(i64::from_be_bytes)
    }

    /// Reads a `[uuid]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn uuid(&mut self, field: &'static str) -> Read<[u8; 16]> {
        self.array(field)
    }

    /// Reads a `[string]`: a `[short]` byte count, then UTF-8.
    ///
    /// # Errors
    /// The body is too short or not UTF-8.
    pub fn string(&mut self, field: &'static str) -> Read<&'a str> {
        let length = self.short(field)?;
        std::str::from_utf8(self.take(length.into(), field)?).map_err(|_| Malformed::NotUtf8 { field })
    }

    /// Reads a `[long string]`: an `[int]` byte count, then UTF-8.
    ///
    /// # Errors
    /// The count is negative, the body is too short or not UTF-8.
    pub fn long_string(&mut self, field: &'static str) -> Read<&'a str> {
        let length = self.int(field)?;
        let length = usize::try_from(length).map_err(|_| Malformed::Length { field, length })?;
        std::str::from_utf8(self.take(length, field)?).map_err(|_| Malformed::NotUtf8 { field })
    }

    /// The announced number of elements of a list, checked against the least bytes that they need.
    fn count(&mut self, element_bytes_min: usize, field: &'static str) -> Read<usize> {
        let count = usize::from(self.short(field)?);
        let (need, have) = (count * element_bytes_min, self.remaining());
        if need > have {
            Err(Malformed::Short { field, need, have })
        } else {
            Ok(count)
        }
    }

    /// Reads a `[string list]`.
    ///
    /// # Errors
    /// As for [`Reader::string`].
    pub fn string_list(&mut self, field: &'static str) -> Read<Vec<&'a str>> {
        let count = self.count(2, field)?;
        (0..count).map(|_| self.string(field)).collect()
    }

    /// Reads a `[string map]`, in the order sent.
    ///
    /// # Errors
    /// As for [`Reader::string`].
    pub fn string_map(&mut self, field: &'static str) -> Read<Vec<(&'a str, &'a str)>> {
        let count = self.count(4, field)?;
        (0..count)
            .map(|_| Ok((self.string(field)?, self.string(field)?)))
            .collect()
    }

    /// Reads a `[bytes map]`, in the order sent; null values are empty.
    ///
    /// # Errors
    /// As for [`Reader::string`] and [`Reader::bytes`].
    pub fn bytes_map(&mut self, field: &'static str) -> Read<Vec<(&'a str, Bytes)>> {
        let count = self.count(6, field)?;
        (0..count)
            .map(|_| Ok((self.string(field)?, self.bytes(field)?.unwrap_or_default())))
            .collect()
    }

    /// Skips a `[bytes map]`.
    ///
    /// # Errors
    /// As for [`Reader::bytes_map`].
    pub fn skip_bytes_map(&mut self, field: &'static str) -> Read<()> {
        for _ in 0..self.count(6, field)? {
            self.string(field)?;
            let length = self.int(field)?;
            self.take(usize::try_from(length).unwrap_or(0), field)?;
        }
        Ok(())
    }

    fn slice(&mut self, length: usize, field: &'static str) -> Read<Bytes> {
        let from = self.at;
        self.take(length, field)?;
        Ok(self.body.slice(from..self.at))
    }

    /// Reads a `[bytes]`. `None` means any negative length.
    ///
    /// # Errors
    /// The body is too short.
    pub fn bytes(&mut self, field: &'static str) -> Read<Option<Bytes>> {
        match usize::try_from(self.int(field)?) {
            Ok(length) => self.slice(length, field).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads a `[short bytes]`.
    ///
    /// # Errors
    /// The body is too short.
    pub fn short_bytes(&mut self, field: &'static str) -> Read<&'a [u8]> {
        let length = self.short(field)?;
        self.take(length.into(), field)
    }

    /// Reads a `[value]`; `unset` tells whether the version supports length −2.
    ///
    /// # Errors
    /// The body is too short, or a length below −2 where there is unset.
    pub fn value(&mut self, unset: bool, field: &'static str) -> Read<Value> {
        match self.int(field)? {
            -1 => Ok(Value::Null),
            -2 if unset => Ok(Value::Unset),
            // Version 3 has no «unset»: there every negative length is null.
            ..=-2 if !unset => Ok(Value::Null),
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed::Length { field, length })?;
                self.slice(length, field).map(Value::Bytes)
            }
        }
    }

    /// Reads a `[consistency]`.
    ///
    /// # Errors
    /// The body is too short, or an unknown code.
    pub fn consistency(&mut self, field: &'static str) -> Read<Consistency> {
        let code = self.short(field)?;
        Consistency::from_code(code).ok_or(Malformed::Code {
            field: "consistency level",
            code: code.into(),
        })
    }

    /// Reads an `[inet]`: a size byte, the address, an `[int]` port.
    ///
    /// # Errors
    /// The body is too short, the size is neither 4 nor 16, or the port is above 65535.
    pub fn inet(&mut self, field: &'static str) -> Read<SocketAddr> {
        let address = match self.byte(field)? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>(field)?)),
            16 => IpAddr::V6(Ipv6Addr::from(self.array::<16>(field)?)),
            size => {
                return Err(Malformed::Length {
                    field,
                    length: size.into(),
                });
            }
        };
        let port = self.int(field)?;
        let port = u16::try_from(port).map_err(|_| Malformed::Code {
            field,
            code: port.into(),
        })?;
        Ok(SocketAddr::new(address, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_checked() {
        let body = Bytes::from_static(&[0, 2, b'h', b'i', 0xFF, 0xFF, 0xFF, 0xFF]);
        let mut reader = Reader::new(&body);
        assert_eq!(reader.string("s"), Ok("hi"));
        assert_eq!(reader.clone().value(true, "v"), Ok(Value::Null));
        assert!(matches!(
            reader.long_string("l"),
            Err(Malformed::Length { length: -1, .. })
        ));
        let short = Bytes::from_static(&[0, 9, b'x']);
        assert_eq!(
            Reader::new(&short).string("s"),
            Err(Malformed::Short {
                field: "s",
                need: 9,
                have: 1
            })
        );
        assert!(matches!(
            Reader::new(&short).string_list("l"),
            Err(Malformed::Short { need: 18, .. })
        ));
    }

    #[test]
    fn unset_is_only_known_when_said() {
        let body = Bytes::from_static(&[0xFF, 0xFF, 0xFF, 0xFE]);
        assert_eq!(Reader::new(&body).value(true, "v"), Ok(Value::Unset));
        assert_eq!(Reader::new(&body).value(false, "v"), Ok(Value::Null));
        let body = Bytes::from_static(&[0xFF, 0xFF, 0xFF, 0xFD]);
        assert!(Reader::new(&body).value(true, "v").is_err());
        assert_eq!(Reader::new(&body).value(false, "v"), Ok(Value::Null));
    }
}
