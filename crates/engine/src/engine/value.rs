//! Bytes of values and keys as the engine needs them: the interface to `types`.

use bytes::Bytes;

use crate::engine::Error;
use helenus_storage::storage::{Damaged, Record};
use helenus_types::types::{Corrupt, CqlType, KeyOrder};

/// The components of a serialised partition key: the key itself, or `{u16 length, bytes, 0}…` of several.
pub(crate) fn key_components(partition_key: &[u8], count: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(partition_key);
    std::iter::from_fn(move || {
        let bytes = rest?;
        if count <= 1 {
            rest = None;
            return Some(bytes);
        }
        let (length, after) = bytes.split_first_chunk::<2>()?;
        let (component, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after.split_first().map(|(_, next)| next);
        Some(component)
    })
}

/// A partition key made of its components; the reverse of [`key_components`].
pub(crate) fn join_key<'a>(components: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut key = Vec::new();
    let single = components.len() == 1;
    for component in components {
        if single {
            return component.to_vec();
        }
        key.extend_from_slice(&u16::try_from(component.len()).unwrap_or(u16::MAX).to_be_bytes());
        key.extend_from_slice(component);
        key.push(0);
    }
    key
}

/// Appends the value at the start of an ordered key, and advances past it.
pub(crate) fn decode_key(
    ty: &CqlType,
    key: &mut &[u8],
    order: impl Into<KeyOrder>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let decoded = ty.decode_key_into(key, order, out);
    decoded.map_err(|Corrupt(what)| {
        Error::from(Damaged {
            record: Record::Key,
            what,
        })
    })
}

/// An element of a collection as the path of its cell.
pub(crate) fn element_path(ty: &CqlType, element: &[u8]) -> Bytes {
    let mut path = Vec::with_capacity(element.len() + 4);
    ty.encode_key(element, false, &mut path);
    path.into()
}

/// Appends a value with its length before it, as collections hold their elements: i32 (−1: null), then the value.
pub(crate) fn put_bytes(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_join_and_come_apart() {
        let parts: [&[u8]; 3] = [b"a", b"", b"\x00\x01"];
        let key = join_key(parts.into_iter());
        assert_eq!(key_components(&key, 3).collect::<Vec<_>>(), parts);
        assert_eq!(join_key([parts[2]].into_iter()), parts[2]);
        assert_eq!(key_components(b"whole", 1).collect::<Vec<_>>(), [b"whole"]);
    }
}
