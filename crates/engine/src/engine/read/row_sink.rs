//! The interface through which a front end receives the rows of a read.

/// Takes the rows of a read, one after the other. The engine ends a page by the bytes that `row` returns.
pub trait RowSink: Send {
    /// Reserves this many bytes at once. Called once, before the first row, if the request may hold them.
    fn reserve(&mut self, bytes: usize);

    /// Takes a row: the values of the selection in order, each in its type's wire form; `None` is null. Returns the
    /// number of bytes that it took.
    fn row<'c>(&mut self, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize;

    /// Bytes of memory that it holds for rows, including what is allocated ahead.
    fn held_bytes(&self) -> usize;
}
