//! The services and settings that all writes of a server share.

use std::sync::Arc;

use crate::engine::catalog::Catalog;
use crate::engine::limits::SizeLimits;
use crate::engine::logical::LogicalPartitions;
use crate::engine::terms::clock::{ListKeys, WriteClock};
use crate::partition::{KeyLocks, Nodes};

/// The services that writes use.
#[derive(Debug)]
pub(crate) struct WriteServices {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: WriteClock,
    pub(crate) list_keys: ListKeys,
    pub(crate) locks: Arc<KeyLocks>,
    pub(crate) limits: SizeLimits,
    pub(crate) logical: Arc<LogicalPartitions>,
    pub(crate) nodes: Arc<Nodes>,
    /// Whether a time to live applies to the row, as in Cosmos, or to the cell.
    pub(crate) ttl_of_rows: bool,
}
