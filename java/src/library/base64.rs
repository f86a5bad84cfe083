//! `java.util.Base64`.

use super::buffer::{array_bytes, byte_array};
use super::{Arguments, Method, collection, fixed, instance, text};
use crate::class::Class;
use crate::class::Class::{Base64, Decoder, Encoder};
use crate::machine::buffer::{of_bytes, remaining};
use crate::machine::{Machine, Run};
use crate::value::{Coder, Plain, Value};

const PLAIN: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Groups of four characters in a line of MIME.
const LINE_GROUPS: usize = 19;

const BASIC: Coder = Coder {
    decodes: false,
    url: false,
    mime: false,
    padded: true,
};

pub(super) const METHODS: &[Method] = &[
    fixed(Base64, "getEncoder", "", "Base64.Encoder", |_, _| Ok(coder(BASIC))),
    fixed(Base64, "getUrlEncoder", "", "Base64.Encoder", |_, _| {
        Ok(coder(Coder { url: true, ..BASIC }))
    }),
    fixed(Base64, "getMimeEncoder", "", "Base64.Encoder", |_, _| {
        Ok(coder(Coder { mime: true, ..BASIC }))
    }),
    fixed(Base64, "getDecoder", "", "Base64.Decoder", |_, _| {
        Ok(coder(Coder { decodes: true, ..BASIC }))
    }),
    fixed(Base64, "getUrlDecoder", "", "Base64.Decoder", |_, _| {
        Ok(coder(Coder {
            decodes: true,
            url: true,
            ..BASIC
        }))
    }),
    fixed(Base64, "getMimeDecoder", "", "Base64.Decoder", |_, _| {
        Ok(coder(Coder {
            decodes: true,
            mime: true,
            ..BASIC
        }))
    }),
    instance(Encoder, "withoutPadding", "", "Base64.Encoder", |_, a| {
        let of = given(a)?;
        Ok(coder(Coder { padded: false, ..of }))
    }),
    instance(Encoder, "encodeToString", "byte[]", "String", |m, a| {
        let bytes = bytes(m, a)?;
        let encoded = encoded(given(a)?, &bytes);
        m.string(&String::from_utf8_lossy(&encoded))
    }),
    instance(Encoder, "encode", "byte[]", "byte[]", |m, a| {
        let bytes = bytes(m, a)?;
        let encoded = encoded(given(a)?, &bytes);
        byte_array(m, &encoded)
    }),
    instance(Encoder, "encode", "ByteBuffer", "ByteBuffer", |m, a| {
        let bytes = buffered(m, a)?;
        let encoded = encoded(given(a)?, &bytes);
        m.allocate(encoded.len() as u64)?;
        of_bytes(m, encoded)
    }),
    instance(Decoder, "decode", "byte[]", "byte[]", |m, a| {
        let bytes = bytes(m, a)?;
        let decoded = decoded(m, given(a)?, &bytes)?;
        byte_array(m, &decoded)
    }),
    instance(Decoder, "decode", "String", "byte[]", |m, a| {
        // As Java does, by the bytes of Latin-1.
        let units = text(m, a, 1)?;
        m.step(units.len() / 4)?;
        let bytes: Vec<u8> = units.iter().map(|unit| u8::try_from(*unit).unwrap_or(b'?')).collect();
        let decoded = decoded(m, given(a)?, &bytes)?;
        byte_array(m, &decoded)
    }),
    instance(Decoder, "decode", "ByteBuffer", "ByteBuffer", |m, a| {
        let bytes = buffered(m, a)?;
        let decoded = decoded(m, given(a)?, &bytes)?;
        m.allocate(decoded.len() as u64)?;
        of_bytes(m, decoded)
    }),
];

fn coder(of: Coder) -> Value {
    Value::plain(Plain::Coder(of))
}

fn given(a: &[Value]) -> Run<Coder> {
    match a.plain(0)? {
        Plain::Coder(coder) => Ok(*coder),
        _ => Machine::fault("an encoder was expected"),
    }
}

fn bytes(m: &mut Machine<'_>, a: &[Value]) -> Run<Vec<u8>> {
    let of = collection(m, a, 1)?;
    let bytes = array_bytes(m, of)?;
    m.step(bytes.len() / 4)?;
    Ok(bytes)
}

/// The bytes of a buffer, which is then read to its end.
fn buffered(m: &mut Machine<'_>, a: &[Value]) -> Run<Vec<u8>> {
    let of = collection(m, a, 1)?;
    let bytes = remaining(m, of)?;
    m.step(bytes.len() / 4)?;
    super::buffer::read_out(m, of)?;
    Ok(bytes)
}

fn encoded(of: Coder, bytes: &[u8]) -> Vec<u8> {
    let alphabet = if of.url { URL } else { PLAIN };
    let letter = |bits: u32| {
        let at = usize::try_from(bits & 63).unwrap_or(0);
        alphabet.get(at).copied().unwrap_or(b'A')
    };
    let mut encoded = Vec::with_capacity(bytes.len() / 3 * 4 + 4);
    for (group, chunk) in bytes.chunks(3).enumerate() {
        if of.mime && group > 0 && group % LINE_GROUPS == 0 {
            encoded.extend_from_slice(b"\r\n");
        }
        let at = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let letters = [letter(bits >> 18), letter(bits >> 12), letter(bits >> 6), letter(bits)];
        encoded.extend(letters.iter().take(chunk.len() + 1));
        if of.padded {
            encoded.extend(std::iter::repeat_n(b'=', 3 - chunk.len()));
        }
    }
    encoded
}

fn decoded(m: &mut Machine<'_>, of: Coder, bytes: &[u8]) -> Run<Vec<u8>> {
    let alphabet = if of.url { URL } else { PLAIN };
    let value = |byte: u8| {
        let at = alphabet.iter().position(|letter| *letter == byte);
        at.and_then(|at| u32::try_from(at).ok())
    };
    if bytes.len() == 1 && !of.mime {
        return m.throw(
            Class::IllegalArgument,
            "Input byte[] should at least have 2 bytes for base64 bytes",
        );
    }
    m.step(bytes.len() * 4)?;
    m.allocate(bytes.len() as u64)?;
    let (mut decoded, mut bits, mut missing) = (Vec::with_capacity(bytes.len() / 4 * 3 + 3), 0_u32, 4_u32);
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match value(*byte) {
            Some(six) => {
                bits = bits << 6 | six;
                missing -= 1;
                if missing == 0 {
                    decoded.extend_from_slice(bits.to_be_bytes().get(1..).unwrap_or_default());
                    (bits, missing) = (0, 4);
                }
            }
            None if *byte == b'=' => {
                // One letter before it is told below; two need a second `=`.
                if missing == 4 || (missing == 2 && rest.next() != Some(&b'=')) {
                    return m.throw(Class::IllegalArgument, "Input byte array has wrong 4-byte ending unit");
                }
                break;
            }
            None if of.mime => {}
            None => {
                let byte = byte.cast_signed();
                let sign = if byte < 0 { "-" } else { "" };
                let message = format!("Illegal base64 character {sign}{:x}", byte.unsigned_abs());
                return m.throw(Class::IllegalArgument, message);
            }
        }
    }
    let [_, first, second, _] = (bits << (6 * (missing & 3))).to_be_bytes();
    match missing {
        3 => return m.throw(Class::IllegalArgument, "Last unit does not have enough valid bits"),
        2 => decoded.push(first),
        1 => decoded.extend_from_slice(&[first, second]),
        _ => {}
    }
    let left = rest.as_slice();
    let at = left.iter().position(|byte| !of.mime || value(*byte).is_some());
    match at {
        Some(at) => {
            let at = bytes.len() - left.len() + at + usize::from(of.mime);
            m.throw(
                Class::IllegalArgument,
                format!("Input byte array has incorrect ending byte at {at}"),
            )
        }
        None => Ok(decoded),
    }
}
