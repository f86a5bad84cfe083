//! The parts of a virtual table's file: its declaration, its sources, and its rows under construction.

use std::sync::Arc;

use super::cells::Cells;
use super::figure::Column;
use super::live::Live;
use crate::engine::Figures;
use helenus_schema::schema::node::NodeInfo;
use helenus_schema::schema::{Keyspace, Schema, Table};

/// All sources of views, at one moment.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The nodes.
    pub node: &'a NodeInfo,
    /// The server's own state.
    pub live: &'a Live,
    /// The partitioner: bytes of a partition key → its token.
    pub token: fn(&[u8]) -> i64,
    /// The services; `None` means that there is only a schema, and tables of figures are empty.
    pub(crate) figures: Option<Figures<'a>>,
}

impl<'a> Sources<'a> {
    /// A schema without a database.
    #[must_use]
    pub const fn of_schema(schema: &'a Schema, node: &'a NodeInfo, live: &'a Live, token: fn(&[u8]) -> i64) -> Self {
        Self {
            schema,
            node,
            live,
            token,
            figures: None,
        }
    }

    /// Rows that come from the services.
    pub(super) fn of_services<T>(&self, of: impl FnOnce(Figures<'a>) -> Vec<T>) -> Vec<T> {
        self.figures.map(of).unwrap_or_default()
    }
}

/// A virtual table.
pub(super) struct View {
    pub(super) keyspace: &'static str,
    pub(super) name: &'static str,
    /// The definition; `None` means Cassandra's, which the schema has.
    pub(super) own: Option<Own>,
    pub(super) rows: Rows,
}

/// How a view computes its rows.
pub(super) enum Rows {
    /// All rows.
    All(fn(Sources<'_>) -> Vec<Cells>),
    /// All rows. They show sizes of physical partitions, so these must be counted first.
    Counted(fn(Sources<'_>) -> Vec<Cells>),
    /// The rows of one keyspace or one table, if the caller wants only these.
    Of(fn(&Schema, TableFilter<'_>) -> Vec<Cells>),
}

/// The definition of a table that Cassandra does not have.
pub(super) struct Own {
    pub(super) comment: &'static str,
    pub(super) columns: fn() -> Vec<Column>,
    /// Whether it shows sizes of physical partitions, which must be counted first.
    pub(super) shows_sizes: bool,
}

impl View {
    pub(super) const fn of(keyspace: &'static str, name: &'static str, rows: fn(Sources<'_>) -> Vec<Cells>) -> Self {
        Self {
            keyspace,
            name,
            own: None,
            rows: Rows::All(rows),
        }
    }

    /// Whether it shows sizes of physical partitions.
    pub(super) fn shows_sizes(&self) -> bool {
        matches!(self.rows, Rows::Counted(_)) || self.own.as_ref().is_some_and(|own| own.shows_sizes)
    }
}

/// The keyspace and table that a read needs. `None` means all.
#[derive(Clone, Copy)]
pub(super) struct TableFilter<'a> {
    pub(super) keyspace: Option<&'a str>,
    /// The table, if the view is clustered by table name.
    pub(super) table: Option<&'a str>,
}

impl TableFilter<'_> {
    /// The wanted keyspaces, virtual ones or the others.
    pub(super) fn keyspaces<'s>(self, schema: &'s Schema, made: bool) -> Vec<&'s Keyspace> {
        let of = |keyspace: &&'s Arc<Keyspace>| keyspace.is_virtual == made;
        match self.keyspace {
            Some(name) => schema
                .keyspace(name)
                .filter(of)
                .map(AsRef::as_ref)
                .into_iter()
                .collect(),
            None => schema.keyspaces.values().filter(of).map(AsRef::as_ref).collect(),
        }
    }

    /// The wanted tables of a keyspace, by name.
    pub(super) fn tables(self, keyspace: &Keyspace) -> Vec<&Table> {
        match self.table {
            Some(name) => keyspace.tables.get(name).map(AsRef::as_ref).into_iter().collect(),
            None => keyspace.tables.values().map(AsRef::as_ref).collect(),
        }
    }

    /// The wanted tables and views of a keyspace, by name.
    pub(super) fn tables_and_views(self, keyspace: &Keyspace) -> Vec<&Table> {
        if let Some(name) = self.table {
            return keyspace.table_or_view(name).map(AsRef::as_ref).into_iter().collect();
        }
        let mut all: Vec<&Table> = keyspace.all_tables().map(AsRef::as_ref).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Rows by keyspace, virtual ones or the others.
    pub(super) fn of_keyspaces(
        self,
        schema: &Schema,
        made: bool,
        rows: impl Fn(&Keyspace) -> Vec<Cells>,
    ) -> Vec<Cells> {
        self.keyspaces(schema, made).into_iter().flat_map(rows).collect()
    }
}
