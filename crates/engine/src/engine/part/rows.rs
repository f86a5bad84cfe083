//! The interface from a part to the statement: logical partitions, and the rows of each that pass its filter.

use super::receipt::Walked;
use crate::engine::Error;
use crate::engine::row::buffer::RowBuffer;
use crate::throughput::Charges;

/// The part's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Continue with the next row.
    Continue,
    /// No more of this logical partition is needed.
    SkipPartition,
    /// No more is needed.
    Stop,
}

/// The statement's reply to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Any other outcome: the row's read is charged to this page.
    Plain(Step),
    /// The row joined a group. Charges up to here are this page's.
    Grouped(Step),
    /// The row belongs to the next page: charges since the last [`Reply::Grouped`] are that page's.
    Later(Step),
}

/// Takes the rows of a read's parts, one after the other.
pub(crate) trait PartSink: Send {
    /// Begins a logical partition. `left`: how many of its rows, or groups, PER PARTITION LIMIT still allows. `None`
    /// means no limit.
    fn begin_partition(&mut self, partition_key: &[u8], left: Option<u32>);

    /// Takes a row that passed the filter; `clustering` is `None` for a static row that stands for its partition.
    ///
    /// # Errors
    /// A function fails on its values, or there is no memory for it.
    fn row(&mut self, row: &RowBuffer, clustering: Option<&[u8]>) -> Result<Reply, Error>;

    /// Counts the static row of a partition whose rows the statement excludes (`c IN ()`, the last clustering column).
    /// As in Cassandra it counts toward the page and LIMIT, and is not returned.
    fn unseen_row(&mut self) -> Step;

    /// The tombstones that a part walked over in the logical partition begun last, of those that the command names.
    fn walked(&mut self, walked: Walked);

    /// Sees the charges up to the row that comes next, or up to the end of the part.
    fn charged(&mut self, _charges: &mut Charges) {}

    /// Checks that the client is still connected: for each stored row, also for one that does not pass the filter.
    ///
    /// # Errors
    /// The client has disconnected.
    fn check_client(&self) -> Result<(), Error>;

    /// Records the bytes that a part holds of places that it has looked up in an index and not visited yet.
    ///
    /// # Errors
    /// There is no memory for them.
    fn hold_places(&mut self, bytes: usize) -> Result<(), Error>;
}
