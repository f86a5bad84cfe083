//! A checksum of our own for the objects that SlateDB reads without one: manifests, lists of compactions, and
//! boundaries of clean-up.
//!
//! ```text
//! body · CRC-32 of the body u32 big-endian · "helenus1"
//! ```
//! The seal is part of the object, so neither exists without the other. An object without a seal was written by an
//! older program and is accepted. An older program can read a sealed manifest, since its parser reads no byte past the
//! manifest's tables.

use bytes::{Bytes, BytesMut};
use slatedb::object_store::PutPayload;

const MAGIC: &[u8; 8] = b"helenus1";

/// Bytes of a seal.
pub(super) const SEAL_BYTES: usize = 12;

/// The payload followed by its seal; the body is not copied.
pub(super) fn seal(body: &PutPayload) -> PutPayload {
    let mut hasher = crc32fast::Hasher::new();
    body.iter().for_each(|part| hasher.update(part));
    let mut seal = BytesMut::with_capacity(SEAL_BYTES);
    seal.extend_from_slice(&hasher.finalize().to_be_bytes());
    seal.extend_from_slice(MAGIC);
    body.iter().cloned().chain([seal.freeze()]).collect()
}

/// The body of a sealed object, or all of an object without a seal. `None` means that the seal does not match the body.
pub(super) fn unseal(object: &Bytes) -> Option<Bytes> {
    let Some((rest, MAGIC)) = object.split_last_chunk() else {
        return Some(object.clone());
    };
    let (body, sum) = rest.split_last_chunk::<4>()?;
    (crc32fast::hash(body) == u32::from_be_bytes(*sum)).then(|| object.slice(..body.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_taken_off_and_any_flip_under_it_is_seen() {
        let body = PutPayload::from_iter([Bytes::from_static(b"some "), Bytes::from_static(b"manifest")]);
        let sealed: Bytes = seal(&body).into();
        assert_eq!(sealed.len(), 13 + SEAL_BYTES);
        assert_eq!(unseal(&sealed).unwrap(), "some manifest");
        for at in 0..17 * 8 {
            let mut flipped = sealed.to_vec();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(unseal(&flipped.into()), None, "bit {at}");
        }
        assert_eq!(unseal(&Bytes::from_static(b"37")).unwrap(), "37");
        assert_eq!(unseal(&Bytes::new()).unwrap(), "");
        assert_eq!(unseal(&seal(&PutPayload::new()).into()).unwrap(), "");
    }
}
