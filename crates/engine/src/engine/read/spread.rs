//! A read that is spread over physical partitions, and a visit of one of them.

use super::sink::Shape;
use crate::engine::index::Indexes;
use crate::engine::owner::Carrier;
use crate::engine::part::Cut;
use crate::engine::terms::request::Request;
use crate::partition::{Placed, TablePartitions};
use helenus_schema::command::{Position, Read};

/// A read that is spread over parts.
pub(crate) struct Spread<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) partitions: &'a TablePartitions,
    pub(crate) read: &'a Read,
    pub(crate) shape: &'a Shape,
    pub(crate) indexes: &'a Indexes,
    /// The end of the previous page.
    pub(crate) resume: Option<&'a Position>,
    /// Tombstones at which it fails. `None` means no limit.
    pub(crate) tombstones_max: Option<u64>,
    /// What reaches the owners of partitions that are served elsewhere. `None` means that there are none, or that a test is
    /// their owner.
    pub(crate) carrier: Option<&'a dyn Carrier>,
    /// The number by which owners know the page; 0 where all partitions are here.
    pub(crate) page: u64,
}

/// A visit of a physical partition.
pub(super) struct Visit<'p, 'a> {
    pub(super) partition: &'a Placed,
    pub(super) cut: Cut<'p>,
    /// The end of the previous page, for the part in which it ended.
    pub(super) resume: Option<&'a Position>,
    /// No page of the read has visited the physical partition yet.
    pub(super) is_first: bool,
    /// This page has not visited it yet.
    pub(super) counts: bool,
}
