//! The value of a `ByteBuffer`.

use super::Handle;

/// A window on bytes, which other buffers and an array of the body may share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// The object of the bytes.
    pub(crate) content: Handle,
    /// Where its first byte is.
    pub(crate) start: usize,
    pub(crate) position: usize,
    pub(crate) limit: usize,
    pub(crate) capacity: usize,
    pub(crate) is_read_only: bool,
}
