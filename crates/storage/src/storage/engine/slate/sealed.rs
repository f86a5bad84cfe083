//! A checksum of our own for the objects that SlateDB reads without one: manifests, lists of compactions, and
//! boundaries of clean-up.
//!
//! ```text
//! body · CRC-32 of database u64, path and body u32 · "helenus2"        big-endian
//! ```
//! The seal is part of the object, so neither exists without the other. It depends on the database and the path: an
//! object of another database, of another store, or of another number is none of these.

use bytes::{Bytes, BytesMut};
use slatedb::object_store::PutPayload;
use slatedb::object_store::path::Path;

const MAGIC: &[u8; 8] = b"helenus2";

/// Bytes of a seal.
pub(super) const SEAL_BYTES: usize = 12;

/// Where an object belongs.
#[derive(Clone, Copy)]
pub(super) struct Belongs<'p> {
    /// The database's number.
    pub(super) database: u64,
    pub(super) path: &'p Path,
}

impl Belongs<'_> {
    fn hasher(self) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.database.to_be_bytes());
        hasher.update(self.path.as_ref().as_bytes());
        hasher
    }
}

/// The payload followed by its seal; the body is not copied.
pub(super) fn seal(body: &PutPayload, of: Belongs<'_>) -> PutPayload {
    let mut hasher = of.hasher();
    body.iter().for_each(|part| hasher.update(part));
    let mut seal = BytesMut::with_capacity(SEAL_BYTES);
    seal.extend_from_slice(&hasher.finalize().to_be_bytes());
    seal.extend_from_slice(MAGIC);
    body.iter().cloned().chain([seal.freeze()]).collect()
}

/// The body of a sealed object. `None` means that it has no seal, or one that does not match.
pub(super) fn unseal(object: &Bytes, of: Belongs<'_>) -> Option<Bytes> {
    let (rest, MAGIC) = object.split_last_chunk()? else {
        return None;
    };
    let (body, sum) = rest.split_last_chunk::<4>()?;
    let mut hasher = of.hasher();
    hasher.update(body);
    (hasher.finalize() == u32::from_be_bytes(*sum)).then(|| object.slice(..body.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_taken_off_and_any_flip_under_it_is_seen() {
        let path = Path::from("engine/manifest/1");
        let of = Belongs {
            database: 7,
            path: &path,
        };
        let body = PutPayload::from_iter([Bytes::from_static(b"some "), Bytes::from_static(b"manifest")]);
        let sealed: Bytes = seal(&body, of).into();
        assert_eq!(sealed.len(), 13 + SEAL_BYTES);
        assert_eq!(unseal(&sealed, of).unwrap(), "some manifest");
        for at in 0..sealed.len() * 8 {
            let mut flipped = sealed.to_vec();
            flipped[at / 8] ^= 1 << (at % 8);
            assert_eq!(unseal(&flipped.into(), of), None, "bit {at}");
        }
        for cut in 0..sealed.len() {
            assert_eq!(unseal(&sealed.slice(..cut), of), None, "cut at {cut}");
        }
        assert_eq!(unseal(&seal(&PutPayload::new(), of).into(), of).unwrap(), "");
    }

    #[test]
    fn an_object_of_another_database_or_place_is_none() {
        let [here, there] = ["engine/manifest/1", "stores/1/manifest/1"].map(Path::from);
        let of = |database, path| Belongs { database, path };
        let sealed: Bytes = seal(&PutPayload::from_static(b"manifest"), of(7, &here)).into();
        assert!(unseal(&sealed, of(7, &here)).is_some());
        assert_eq!(unseal(&sealed, of(8, &here)), None);
        assert_eq!(unseal(&sealed, of(7, &there)), None);
    }
}
