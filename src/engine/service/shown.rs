//! Views of a database: what they are made of, and figures for callers in the same process.

use std::sync::Arc;

use super::super::figures::{Figures, PartitionFigures, StoreFigures};
use super::super::read::virtual_rows;
use super::Engine;
use crate::engine::shown::{HotKey, LargePartition, LoggedRequest, ThrottleShown, ThroughputShown};
use crate::metrics::Statements;
use crate::throughput::RequestUnits;
use crate::views::Sources;

impl Engine {
    pub(super) fn figures(&self) -> Figures<'_> {
        Figures {
            catalog: &self.catalog,
            stores: &self.stores,
            statements: &self.statements,
            ledger: &self.ledger,
            counts: &self.counts,
            logical: &self.writes.logical,
            nodes: &self.nodes,
            seen: &self.seen,
            clock: &self.clock,
            row_cache_bytes_max: self.row_cache_bytes_max,
        }
    }

    /// Makes a view of this moment, as clients of the first node see it.
    pub(crate) fn show<T>(&self, of: impl FnOnce(Sources<'_>) -> T) -> T {
        let (schema, live) = (self.schema(), self.ask_server());
        of(Sources {
            schema: &schema,
            node: self.node(),
            live: &live,
            token: virtual_rows::token,
            figures: Some(self.figures()),
        })
    }

    /// Statements by kind and by table.
    #[must_use]
    pub fn statements(&self) -> &Arc<Statements> {
        &self.statements
    }

    /// What the stores did, together.
    #[must_use]
    pub fn store_figures(&self) -> StoreFigures {
        self.figures().store_figures()
    }

    /// The physical partitions of all stored tables and views, by keyspace, table and token. What they hold is as good as the last count
    /// ([`Engine::count_partitions`]).
    #[must_use]
    pub fn partitions(&self) -> Vec<PartitionFigures> {
        self.figures().partitions()
    }

    /// Request units charged since the server started, metadata included.
    #[must_use]
    pub fn request_units(&self) -> RequestUnits {
        self.figures().request_units()
    }

    /// Request units charged to each table and view since the server started, by keyspace and name.
    #[must_use]
    pub fn table_request_units(&self) -> Vec<(String, String, RequestUnits)> {
        self.figures().table_request_units()
    }

    /// What tables and keyspaces may spend, by keyspace and table; a keyspace that shares its throughput has an entry without a table.
    #[must_use]
    pub fn throughput(&self) -> Vec<ThroughputShown> {
        self.figures().throughput()
    }

    /// The last statements of users with their charges, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.figures().requests()
    }

    /// The last statements that did not get their request units at once, oldest first.
    #[must_use]
    pub fn throttles(&self) -> Vec<ThrottleShown> {
        self.figures().throttles()
    }

    /// The partition keys of users' tables with the most requests in the last one to two minutes, the hottest first.
    #[must_use]
    pub fn hot_keys(&self) -> Vec<HotKey> {
        self.figures().hot_keys()
    }

    /// The largest logical partitions that are known, the largest first.
    #[must_use]
    pub fn largest_partitions(&self) -> Vec<LargePartition> {
        self.figures().largest_partitions()
    }
}
