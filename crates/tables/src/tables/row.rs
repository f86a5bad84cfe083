//! Entities as rows, and back: the cells of `map<text, frozen<edm>>`, whose values have one field set.

use bytes::{BufMut, Bytes, BytesMut};
use helenus_engine::engine::RowSink;
use helenus_schema::schema::entities::VALUE_FIELDS;

use super::edm::{Edm, Ticks};
use super::entity::{Entity, is_property_name};

/// The places of the fields of a value, in `VALUE_FIELDS`.
const STRING: usize = 0;
const INT32: usize = 1;
const INT64: usize = 2;
const DOUBLE: usize = 3;
const BOOLEAN: usize = 4;
const DATE_TIME: usize = 5;
const GUID: usize = 6;
const BINARY: usize = 7;

/// A value as a user-defined type; fields behind the one that is set are left out.
pub(super) fn encode(value: &Edm) -> Bytes {
    match value {
        Edm::String(text) => field(STRING, text.as_bytes()),
        Edm::Int32(value) => field(INT32, &value.to_be_bytes()),
        Edm::Int64(value) => field(INT64, &value.to_be_bytes()),
        Edm::Double(value) => field(DOUBLE, &value.to_be_bytes()),
        Edm::Boolean(value) => field(BOOLEAN, &[u8::from(*value)]),
        Edm::DateTime(ticks) => field(DATE_TIME, &ticks.get().to_be_bytes()),
        Edm::Guid(value) => field(GUID, value.as_bytes()),
        Edm::Binary(bytes) => field(BINARY, bytes),
    }
}

fn field(place: usize, bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 * (place + 1) + bytes.len());
    for _ in 0..place {
        out.put_i32(-1);
    }
    // A value has at most 64 KiB.
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.extend_from_slice(bytes);
    out.freeze()
}

/// The value of a user-defined type; `None` means that no field is set, or one that is no value of an entity.
fn decode(mut value: &[u8]) -> Option<Edm> {
    for place in 0..VALUE_FIELDS.len() {
        if let Some(bytes) = cell(&mut value)? {
            return of_field(place, bytes);
        }
    }
    None
}

fn of_field(place: usize, bytes: &[u8]) -> Option<Edm> {
    Some(match place {
        STRING => Edm::String(String::from_utf8(bytes.to_vec()).ok()?),
        INT32 => Edm::Int32(i32::from_be_bytes(bytes.try_into().ok()?)),
        INT64 => Edm::Int64(i64::from_be_bytes(bytes.try_into().ok()?)),
        DOUBLE => Edm::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
        BOOLEAN => Edm::Boolean(bytes.first().is_some_and(|byte| *byte != 0)),
        DATE_TIME => Edm::DateTime(Ticks::new(i64::from_be_bytes(bytes.try_into().ok()?))?),
        GUID => Edm::Guid(uuid::Uuid::from_slice(bytes).ok()?),
        BINARY => Edm::Binary(Bytes::copy_from_slice(bytes)),
        _ => return None,
    })
}

/// Takes bytes with their i32 length off the front; a length below 0 is null.
fn cell<'b>(rest: &mut &'b [u8]) -> Option<Option<&'b [u8]>> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        *rest = behind;
        return Some(None);
    };
    let (bytes, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(Some(bytes))
}

/// The properties in a map, by name.
fn properties(map: &[u8]) -> Vec<(String, Edm)> {
    let Some((count, mut rest)) = map.split_first_chunk::<4>() else {
        return Vec::new();
    };
    let count = usize::try_from(i32::from_be_bytes(*count)).unwrap_or(0);
    let mut found = Vec::with_capacity(count.min(super::entity::PROPERTIES_MAX));
    for _ in 0..count {
        let (Some(Some(name)), Some(value)) = (cell(&mut rest), cell(&mut rest)) else {
            break;
        };
        // What CQL wrote without a field, or by a name that no property has, is none.
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if is_property_name(name)
            && let Some(value) = value.and_then(decode)
        {
            found.push((name.to_owned(), value));
        }
    }
    found
}

/// Collects the entities of a read of (partition key, row key, properties, version).
#[derive(Debug, Default)]
pub(super) struct Entities {
    pub(super) found: Vec<Entity>,
    bytes: usize,
}

impl RowSink for Entities {
    fn reserve(&mut self, _bytes: usize) {}

    fn row<'c>(&mut self, mut cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
        let mut bytes = 0;
        let mut next = || {
            let cell = cells.next().flatten().unwrap_or_default();
            bytes += cell.len();
            cell
        };
        let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
        let entity = Entity {
            partition_key: text(next()),
            row_key: text(next()),
            properties: properties(next()),
            version_micros: next().try_into().map_or(0, i64::from_be_bytes),
        };
        self.found.push(entity);
        self.bytes += bytes;
        bytes
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for value in [
            Edm::String("é".to_owned()),
            Edm::String(String::new()),
            Edm::Int32(-5),
            Edm::Int64(i64::MAX),
            Edm::Double(-0.5),
            Edm::Boolean(true),
            Edm::Boolean(false),
            Edm::DateTime(Ticks::new(7).unwrap()),
            Edm::Guid(uuid::Uuid::from_u128(9)),
            Edm::Binary(Bytes::from_static(b"\0\xFF")),
            Edm::Binary(Bytes::new()),
        ] {
            assert_eq!(decode(&encode(&value)), Some(value));
        }
        assert_eq!((decode(&[]), decode(&[0xFF; 32])), (None, None));
    }
}
