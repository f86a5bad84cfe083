//! The input of every part of a read.

use crate::engine::row::layout::Layout;
use helenus_schema::command::Read;
use helenus_types::functions::Context;

/// The data that all parts of a read share: a read with bound values, before it is divided by physical partitions.
pub(crate) struct PartRead<'a> {
    /// The command.
    pub(crate) read: &'a Read,
    /// The columns to read of each row.
    pub(crate) layout: &'a Layout,
    /// Time and randomness for functions in its filter.
    pub(crate) context: &'a Context,
    /// The moment against which expiry is checked, seconds since 1970-01-01 UTC.
    pub(crate) now_seconds: i64,
    /// Tombstones at which the read fails. `None` means no limit.
    pub(crate) tombstones_max: Option<u64>,
}
