//! Logical partitions by name, and the records of watched ones; logical.rs draws the layout.

use bytes::Bytes;

use helenus_schema::schema::StorageId;

/// Prefix of the records of watched partitions, in the catalog space.
pub(in crate::engine) const RECORD: &[u8] = b"!logical";

const RECORD_VERSION: u8 = 1;

/// A logical partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// Its table's number.
    pub(crate) table: StorageId,
    /// The number that the table's placement made of its key ([`Placement::spread`]).
    pub(crate) spread: i64,
    /// Its key.
    pub(crate) key: Bytes,
}

impl Place {
    /// A copy that shares no memory with the request's frame, so that it does not keep the frame in memory.
    pub(super) fn apart(&self) -> Self {
        Self {
            key: Bytes::copy_from_slice(&self.key),
            ..self.clone()
        }
    }
}

/// A watched partition's record, as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) place: Place,
    pub(super) bytes: u64,
}

/// The key of the record of a partition that shares its token with no other watched one.
pub(super) fn short_key(place: &Place) -> Vec<u8> {
    [RECORD, &place.table.to_be_bytes(), &place.spread.to_be_bytes()].concat()
}

/// The key of the record of any partition.
pub(super) fn long_key(place: &Place) -> Vec<u8> {
    let mut key = short_key(place);
    key.extend_from_slice(&place.key);
    key
}

pub(super) fn encode(bytes: u64, key: &[u8]) -> Bytes {
    [&[RECORD_VERSION], bytes.to_be_bytes().as_slice(), key].concat().into()
}

/// Decodes a record; `place` follows [`RECORD`] in its key. `None` means that it is no record: then the partition is
/// not watched.
pub(in crate::engine) fn decode(place: &[u8], value: &[u8]) -> Option<Recorded> {
    let (table, rest) = place.split_first_chunk::<4>()?;
    let (spread, of_key) = rest.split_first_chunk::<8>()?;
    let (version, rest) = value.split_first()?;
    let (bytes, key) = rest.split_first_chunk::<8>()?;
    let is_record = *version == RECORD_VERSION && (of_key.is_empty() || of_key == key);
    is_record.then(|| Recorded {
        place: Place {
            table: u32::from_be_bytes(*table),
            spread: i64::from_be_bytes(*spread),
            key: Bytes::copy_from_slice(key),
        },
        bytes: u64::from_be_bytes(*bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let of = Place {
            table: 7,
            spread: -3,
            key: Bytes::from_static(b"key"),
        };
        let record = encode(123, b"key");
        for key in [short_key(&of), long_key(&of)] {
            let read = decode(key.strip_prefix(RECORD).unwrap(), &record).unwrap();
            assert_eq!((read.place, read.bytes), (of.clone(), 123));
        }
        let key = short_key(&of);
        let place = key.strip_prefix(RECORD).unwrap();
        let other = encode(123, b"other");
        assert!(decode(long_key(&of).strip_prefix(RECORD).unwrap(), &other).is_none());
        assert!(decode(place, &record[..8]).is_none());
        assert!(decode(&place[1..], &record).is_none());
        assert!(decode(place, b"\x02123456789").is_none());
    }
}
