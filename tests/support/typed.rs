//! A front end's side of a read, without frames: rows as values.

use bytes::Bytes;
use helenus_engine::engine::RowSink;

/// Collects the rows of a read as values; null is `None`.
#[derive(Debug, Default)]
pub(crate) struct TypedRows {
    pub(crate) rows: Vec<Vec<Option<Bytes>>>,
    bytes: usize,
}

impl RowSink for TypedRows {
    fn reserve(&mut self, _bytes: usize) {}

    fn row<'c>(&mut self, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
        let row: Vec<Option<Bytes>> = cells.map(|cell| cell.map(Bytes::copy_from_slice)).collect();
        let bytes = row.iter().flatten().map(Bytes::len).sum();
        self.rows.push(row);
        self.bytes += bytes;
        bytes
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}
