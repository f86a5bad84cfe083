//! Serialised keys: the bytes of a partition key, and the limits of a key's length.

use bytes::{BufMut, Bytes, BytesMut};

use super::error::Error;
use super::refusal::BoundRefusal;

/// Maximum number of bytes of a partition key or of a clustering key: Cassandra counts them in 16 bits.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Maximum number of keys that the IN restrictions of one statement may name together: their product is built in
/// memory, at once.
pub(crate) const KEYS_MAX: usize = 100_000;

/// Maximum number of bytes of all these keys: as many as a batch may have.
const KEYS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The number of keys in the product of two sets of values; an error if there are too many.
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

/// Checks that several keys together are not too long.
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

/// The total number of bytes.
pub(crate) fn total_bytes<K: AsRef<[u8]>>(keys: &[K]) -> usize {
    keys.iter().map(|key| key.as_ref().len()).sum()
}

/// A partition key's serialised form: one component's bytes, or `{u16 length, bytes, 0}` for each of several.
pub fn partition_key(components: &[Bytes]) -> Result<Bytes, Error> {
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

/// Refuses an empty or too long partition key. A key of several components is measured when it is serialised.
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
