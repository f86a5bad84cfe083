//! Rows as a frame holds them: all cells, row by row, each as `[bytes]` (native_protocol_v4.spec §3): length i32 (−1 is null), then
//! the value.

use helenus_engine::engine::RowSink;

/// Encodes the rows of a read.
#[derive(Debug, Default)]
pub(super) struct FrameRows {
    /// The cells so far.
    pub(super) content: Vec<u8>,
}

impl RowSink for FrameRows {
    fn reserve(&mut self, bytes: usize) {
        if self.content.capacity() == 0 {
            // Cheaper than to grow.
            self.content = Vec::with_capacity(bytes);
        } else {
            self.content.reserve_exact(bytes);
        }
    }

    #[inline]
    fn row<'c>(&mut self, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
        let before = self.content.len();
        for cell in cells {
            put_cell(&mut self.content, cell);
        }
        self.content.len() - before
    }

    fn held_bytes(&self) -> usize {
        self.content.capacity()
    }
}

/// Appends a cell.
pub(super) fn put_cell(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}
