//! The format of an object of the log.
//!
//! ```text
//! object   "hellog02" · header length u32 · header · parts · CRC-32 of all before it u32
//! header   database u64 · number u64 · highest time, ms i64 · process · needs u16 × (database · number u64)
//!          · parts u16 × (database · last sequence number u64 · bytes u32)
//! part     rows: flags u8 · key length u32 · value length u32 · sequence number u64 · [created i64] · [expires i64]
//!          · key · value
//! text     length u16 · bytes                                      of a process or database; all numbers big-endian
//! ```
//! *Needs* names each database that has rows in this object or earlier ones which no table has, and the number of the first
//! such object. An object without parts is the fence of a process that took the log over.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use slatedb::{RowEntry, ValueDeletable};

const MAGIC: &[u8; 8] = b"hellog02";

/// Bytes of the checksum.
const SUM_BYTES: usize = 4;

const MERGE: u8 = 1;
const TOMBSTONE: u8 = 2;
const CREATED: u8 = 4;
const EXPIRES: u8 = 8;

/// Rows of one database, in the order in which they were written.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) database: Arc<str>,
    /// The sequence number of its last row.
    pub(super) last_seq: u64,
    pub(super) rows: Bytes,
}

/// What an object contains.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// The number of the database whose log it is.
    pub(super) of: u64,
    pub(super) number: u64,
    /// The highest time at which a row was written, ms since 1970-01-01 UTC.
    pub(super) millis: i64,
    /// The process that put it.
    pub(super) process: String,
    /// The first object that each database needs.
    pub(super) needs: BTreeMap<Arc<str>, u64>,
    pub(super) parts: Vec<Part>,
}

impl Object {
    pub(super) fn encode(&self) -> Bytes {
        let mut header = BytesMut::new();
        header.put_u64(self.of);
        header.put_u64(self.number);
        header.put_i64(self.millis);
        put_text(&mut header, &self.process);
        header.put_u16(count(self.needs.len()));
        for (database, number) in &self.needs {
            put_text(&mut header, database);
            header.put_u64(*number);
        }
        header.put_u16(count(self.parts.len()));
        for part in &self.parts {
            put_text(&mut header, &part.database);
            header.put_u64(part.last_seq);
            header.put_u32(length(part.rows.len()));
        }
        let rows: usize = self.parts.iter().map(|part| part.rows.len()).sum();
        let mut out = BytesMut::with_capacity(MAGIC.len() + 4 + header.len() + rows + SUM_BYTES);
        out.put_slice(MAGIC);
        out.put_u32(length(header.len()));
        out.put_slice(&header);
        for part in &self.parts {
            out.put_slice(&part.rows);
        }
        let sum = crc32fast::hash(&out);
        out.put_u32(sum);
        out.freeze()
    }

    /// `None` means that it is damaged, or of a later version.
    pub(super) fn decode(bytes: &Bytes) -> Option<Self> {
        let end = bytes.len().checked_sub(SUM_BYTES)?;
        let (mut body, mut sum) = (bytes.slice(..end), bytes.slice(end..));
        if crc32fast::hash(&body) != sum.get_u32() || !body.starts_with(MAGIC) {
            return None;
        }
        body.advance(MAGIC.len());
        let header = usize::try_from(body.try_get_u32().ok()?).ok()?;
        if header > body.len() {
            return None;
        }
        let mut header = body.split_to(header);
        let mut object = Self {
            of: header.try_get_u64().ok()?,
            number: header.try_get_u64().ok()?,
            millis: header.try_get_i64().ok()?,
            process: take_text(&mut header)?,
            ..Self::default()
        };
        for _ in 0..header.try_get_u16().ok()? {
            let database = take_text(&mut header)?;
            object.needs.insert(database.into(), header.try_get_u64().ok()?);
        }
        for _ in 0..header.try_get_u16().ok()? {
            let database = take_text(&mut header)?.into();
            let last_seq = header.try_get_u64().ok()?;
            let bytes = usize::try_from(header.try_get_u32().ok()?).ok()?;
            if bytes > body.len() {
                return None;
            }
            let rows = body.split_to(bytes);
            object.parts.push(Part {
                database,
                last_seq,
                rows,
            });
        }
        body.is_empty().then_some(object)
    }

    pub(super) fn part(&self, database: &str) -> Option<&Part> {
        self.parts.iter().find(|part| &*part.database == database)
    }
}

/// Encodes a row at the end of a part.
pub(super) fn put_row(out: &mut BytesMut, row: &RowEntry) {
    let (kind, value) = match &row.value {
        ValueDeletable::Value(value) => (0, Some(value)),
        ValueDeletable::Merge(value) => (MERGE, Some(value)),
        ValueDeletable::Tombstone => (TOMBSTONE, None),
    };
    let created = row.create_ts.map_or(0, |_| CREATED);
    let expires = row.expire_ts.map_or(0, |_| EXPIRES);
    out.put_u8(kind | created | expires);
    out.put_u32(length(row.key.len()));
    out.put_u32(length(value.map_or(0, Bytes::len)));
    out.put_u64(row.seq);
    for time in [row.create_ts, row.expire_ts].into_iter().flatten() {
        out.put_i64(time);
    }
    out.put_slice(&row.key);
    out.put_slice(value.map_or(&[], |value| value.as_ref()));
}

/// Decodes the rows of a part. `None` means that they are damaged.
pub(super) fn rows(part: &Part) -> Option<Vec<RowEntry>> {
    let mut left = part.rows.clone();
    let mut rows = Vec::new();
    while !left.is_empty() {
        let flags = left.try_get_u8().ok()?;
        let key = usize::try_from(left.try_get_u32().ok()?).ok()?;
        let value = usize::try_from(left.try_get_u32().ok()?).ok()?;
        let seq = left.try_get_u64().ok()?;
        let mut time = |flag: u8| match flags & flag {
            0 => Some(None),
            _ => left.try_get_i64().ok().map(Some),
        };
        let (create_ts, expire_ts) = (time(CREATED)?, time(EXPIRES)?);
        if key.checked_add(value)? > left.len() {
            return None;
        }
        let (key, value) = (left.split_to(key), left.split_to(value));
        let value = match flags & (MERGE | TOMBSTONE) {
            0 => ValueDeletable::Value(value),
            MERGE => ValueDeletable::Merge(value),
            TOMBSTONE => ValueDeletable::Tombstone,
            _ => return None,
        };
        rows.push(RowEntry {
            key,
            value,
            seq,
            create_ts,
            expire_ts,
        });
    }
    Some(rows)
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u16(count(text.len()));
    out.put_slice(text.as_bytes());
}

fn take_text(from: &mut Bytes) -> Option<String> {
    let bytes = usize::from(from.try_get_u16().ok()?);
    if bytes > from.len() {
        return None;
    }
    String::from_utf8(from.split_to(bytes).into()).ok()
}

/// Databases, and bytes of their names: a process has far fewer.
fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Bytes of a key, a value or a part. A batch is smaller.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &'static str, value: ValueDeletable, seq: u64) -> RowEntry {
        RowEntry {
            key: key.into(),
            value,
            seq,
            create_ts: Some(7),
            expire_ts: None,
        }
    }

    #[test]
    fn an_object_is_read_as_it_was_written_and_any_flip_is_seen() {
        let written = [
            row("a", ValueDeletable::Value("1".into()), 3),
            row("b", ValueDeletable::Merge("22".into()), 3),
            RowEntry {
                create_ts: None,
                expire_ts: Some(9),
                ..row("", ValueDeletable::Tombstone, 4)
            },
        ];
        let mut encoded = BytesMut::new();
        written.iter().for_each(|row| put_row(&mut encoded, row));
        let part = |database: &str, rows: Bytes| Part {
            database: database.into(),
            last_seq: 4,
            rows,
        };
        let object = Object {
            of: 3,
            number: 17,
            millis: 5,
            process: "p-1".to_owned(),
            needs: [("engine".into(), 3), ("stores/1".into(), 17)].into(),
            parts: vec![part("stores/1", encoded.freeze()), part("engine", Bytes::new())],
        };
        let bytes = object.encode();
        let read = Object::decode(&bytes).unwrap();
        assert_eq!(
            (read.of, read.number, read.millis, &read.process, &read.needs),
            (3, 17, 5, &object.process, &object.needs)
        );
        assert_eq!(rows(read.part("stores/1").unwrap()).unwrap(), written);
        assert!(rows(read.part("engine").unwrap()).unwrap().is_empty());
        assert!(read.part("stores/2").is_none());
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1;
            assert!(Object::decode(&flipped.into()).is_none(), "byte {at}");
            assert!(Object::decode(&bytes.slice(..at)).is_none(), "cut at {at}");
        }
    }
}
