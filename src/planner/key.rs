//! Keys as they are serialised: the bytes of a partition key, and how long a key may be.

use bytes::{BufMut, Bytes, BytesMut};

use super::error::Error;
use super::refusal::BoundRefusal;

/// Most bytes of a partition key or of a clustering key: Cassandra counts them in 16 bits.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Most keys that the IN restrictions of one statement may name together: they are multiplied in memory, in one go.
pub(crate) const KEYS_MAX: usize = 100_000;

/// Most bytes of all these keys: as many as a batch may have.
const KEYS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many keys these are together, each of the first kind with each of the second; or that they are too many.
pub(crate) fn count_product(first: usize, second: usize) -> Result<usize, Error> {
    let keys = first.saturating_mul(second);
    if keys <= KEYS_MAX {
        return Ok(keys);
    }
    Err(BoundRefusal::Keys {
        keys,
        keys_max: KEYS_MAX,
    }
    .into())
}

/// That several keys are not too long together.
pub(crate) fn check_keys_bytes(keys: usize, bytes: usize) -> Result<(), Error> {
    if keys <= 1 || bytes <= KEYS_BYTES_MAX {
        return Ok(());
    }
    Err(BoundRefusal::KeysBytes {
        keys,
        bytes_max: KEYS_BYTES_MAX,
    }
    .into())
}

/// The bytes of all.
pub(crate) fn total_bytes<K: AsRef<[u8]>>(keys: &[K]) -> usize {
    keys.iter().map(|key| key.as_ref().len()).sum()
}

/// A partition key's serialised form: one component's bytes, or `{u16 length, bytes, 0}` for each of several.
pub(crate) fn partition_key(components: &[Bytes]) -> Result<Bytes, Error> {
    if let [only] = components {
        return Ok(only.clone());
    }
    let size = components.iter().map(|component| component.len() + 3).sum();
    if size > KEY_BYTES_MAX {
        return Err(BoundRefusal::KeyLength {
            bytes: size,
            bytes_max: KEY_BYTES_MAX,
        }
        .into());
    }
    let mut key = BytesMut::with_capacity(size);
    for component in components {
        key.put_u16(u16::try_from(component.len()).expect("shorter than the whole key"));
        key.extend_from_slice(component);
        key.put_u8(0);
    }
    Ok(key.freeze())
}

/// Whether a partition can have this key; one of several components is measured when it is put together.
pub(crate) fn check_partition_key(key: &Bytes) -> Result<(), Error> {
    if key.is_empty() {
        return Err(BoundRefusal::EmptyKey.into());
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(BoundRefusal::KeyLength {
            bytes: key.len(),
            bytes_max: KEY_BYTES_MAX,
        }
        .into());
    }
    Ok(())
}
