//! The tables that the server computes, as the engine sees them: a front door for whoever has their definitions and rows (`views`). A
//! program without any gives [`NoTables`].

use bytes::Bytes;

use super::Figures;
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::{Schema, Table};

/// The rows of a virtual table that a read wants. `None` means no restriction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The values of the partition key's columns.
    pub partition_key: Option<&'a [Bytes]>,
    /// The value of the first clustering column. Only an optimisation: rows of other values may be returned too.
    pub first_clustering: Option<&'a [u8]>,
}

/// What a read of a virtual table sees, at one moment.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The nodes, as the read's node sees them.
    pub node: &'a NodeInfo,
    /// The partitioner: bytes of a partition key → its token.
    pub token: fn(&[u8]) -> i64,
    /// The services.
    pub figures: Figures<'a>,
}

/// The tables that the server computes.
pub trait VirtualTables: Send + Sync {
    /// Adds the tables that Cassandra does not have to the system keyspaces.
    fn define(&self, schema: &mut Schema);

    /// Whether a table shows sizes of physical partitions, which are counted before its rows are requested.
    fn show_sizes(&self, table: &Table) -> bool;

    /// The rows of a table, in token order, each partition in clustering order. Empty if the table is unknown.
    fn rows(&self, table: &Table, seen: Seen<'_>, wanted: Wanted<'_>) -> Vec<Vec<Option<Bytes>>>;
}

/// No tables of Helenus's own, and no rows in those of Cassandra.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTables;

impl VirtualTables for NoTables {
    fn define(&self, _: &mut Schema) {}

    fn show_sizes(&self, _: &Table) -> bool {
        false
    }

    fn rows(&self, _: &Table, _: Seen<'_>, _: Wanted<'_>) -> Vec<Vec<Option<Bytes>>> {
        Vec::new()
    }
}
