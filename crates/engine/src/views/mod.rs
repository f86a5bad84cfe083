//! The `views` room: virtual tables, `/metrics`, the JSON of the admin port and what `helenus status` prints of it.
//!
//! ```text
//! services ─ engine::Figures ─┐                ┌─ rows          a virtual table: rows × its columns
//! server ─── Live ──────────────┼─► Sources ─────┼─ prometheus    families of samples
//! schema, nodes ────────────────┘   (one moment) └─ api ─ JSON ─ print
//! ```
//! A file for each virtual table. Those of Cassandra's own keyspaces have the columns of `schema/system/definitions.tsv`, recorded from
//! Cassandra, and make rows. Those of `system_cosmos`, and what only the admin port shows, are lists of figures (`figure.rs`): an entry
//! gives the meaning, the value, the column, the name in JSON and the family of Prometheus. So a figure is added in one file.
//!
//! [`rows`] returns rows in token order, each partition in clustering order. Drivers query one keyspace or one table at
//! a time, so only that partition is computed. A table without a true source here (compactions, streams …) is empty.
//!
//! Deliberately absent: how services count, sockets, frames.

pub mod api;
mod bucket;
mod cells;
mod cosmos;
mod figure;
pub mod live;
mod memory;
pub mod print;
mod printed;
pub mod prometheus;
mod server;
mod statements;
mod system;
mod system_schema;
mod system_views;
mod tables;
mod view;

use bytes::Bytes;

use self::figure::Column;
pub use self::tables::{LiveSource, Tables};
pub use self::view::Sources;
use self::view::{Rows, TableFilter, View};
use crate::engine::Wanted;
use helenus_schema::schema::{Schema, Table, system as definitions};

/// The lists of views, one for each keyspace.
const VIEWS: [&[View]; 4] = [cosmos::VIEWS, system::VIEWS, system_schema::VIEWS, system_views::VIEWS];

fn view(table: &Table) -> Option<&'static View> {
    let mut views = VIEWS.into_iter().flatten();
    views.find(|view| view.keyspace == table.keyspace && view.name == table.name)
}

/// Whether a table is virtual: the server computes its rows.
#[must_use]
pub fn is_view(table: &Table) -> bool {
    view(table).is_some()
}

/// Whether Cassandra lacks the table.
#[must_use]
pub fn is_own(table: &Table) -> bool {
    view(table).is_some_and(|view| view.own.is_some())
}

/// The meaning of a column of a table that Cassandra lacks.
#[must_use]
pub fn meaning(table: &Table, column: &str) -> Option<&'static str> {
    let own = view(table)?.own.as_ref()?;
    let mut columns = (own.columns)().into_iter();
    columns.find(|own| own.name == column).map(|own| own.meaning)
}

/// Adds the tables that Cassandra does not have to the system keyspaces.
pub fn define(schema: &mut Schema) {
    for view in VIEWS.into_iter().flatten() {
        let Some(own) = &view.own else { continue };
        let kind = |column: Column| match column.kind {
            figure::Kind::Partition => "partition",
            figure::Kind::Clustering => "clustering",
            figure::Kind::Descending => "descending",
            figure::Kind::Regular => "regular",
        };
        let columns = (own.columns)().into_iter();
        let columns: Vec<_> = columns.map(|column| (kind(column), column.name, column.ty)).collect();
        definitions::add_table(schema, view.keyspace, view.name, own.comment, &columns);
    }
}

/// Whether a view shows sizes of physical partitions.
#[must_use]
pub fn show_sizes(table: &Table) -> bool {
    view(table).is_some_and(View::shows_sizes)
}

/// The rows of a system table that the server makes; `None` if the table has stored rows.
#[must_use]
pub fn rows(table: &Table, sources: Sources<'_>, wanted: Wanted<'_>) -> Option<Vec<Vec<Option<Bytes>>>> {
    if !definitions::is_computed(table) {
        return None;
    }
    let text = |bytes: &'_ [u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let keyspace = wanted
        .partition_key
        .and_then(|key| key.first())
        .and_then(|first| text(first));
    let of_table = wanted.first_clustering.and_then(text);
    let asked = TableFilter {
        keyspace: keyspace.as_deref(),
        table: of_table.as_deref(),
    };
    let cells = match view(table).map(|view| &view.rows) {
        Some(Rows::All(rows) | Rows::Counted(rows)) => rows(sources),
        Some(Rows::Of(rows)) => rows(sources.schema, asked),
        None => Vec::new(),
    };
    let mut rows: Vec<Vec<Option<Bytes>>> = cells.into_iter().map(|cells| cells.into_row(table)).collect();
    let count = table.partition_key_count;
    // Each partition's rows are already in clustering order; the partitions still need sorting by token.
    match wanted.partition_key {
        Some(key) => rows.retain(|row| row.iter().take(count).map(Option::as_ref).eq(key.iter().map(Some))),
        None => rows.sort_by_cached_key(|row| {
            let key = serialized(row.get(..count).unwrap_or_default());
            ((sources.token)(&key), key)
        }),
    }
    Some(rows)
}

/// The bytes of a partition key: a single value as it is; several values each with a length before and a zero byte
/// after.
fn serialized(values: &[Option<Bytes>]) -> Vec<u8> {
    if let [Some(only)] = values {
        return only.to_vec();
    }
    let mut bytes = Vec::new();
    for value in values {
        let value = value.as_deref().unwrap_or_default();
        bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(value);
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::path::Path;

    use super::figure::appearances;
    use super::*;

    /// The tables that Cassandra does not have, and every figure with all its names.
    fn listed() -> String {
        let mut text = String::new();
        for view in VIEWS.into_iter().flatten() {
            let Some(own) = &view.own else { continue };
            writeln!(text, "table {}.{}: {}", view.keyspace, view.name, own.comment).unwrap();
            for Column { name, kind, ty, .. } in (own.columns)() {
                writeln!(text, "  {name} {ty} {kind:?}").unwrap();
            }
        }
        let lists = [
            ("/api/status", appearances(server::FIGURES)),
            ("/api/status bucket", appearances(bucket::COSTS)),
            ("/api/status bucket.requests", appearances(bucket::REQUESTS)),
            ("/api/status nodes", appearances(cosmos::nodes::FIGURES)),
            ("/api/status memory", appearances(memory::FIGURES)),
            ("/api/statements kinds", appearances(statements::KINDS)),
            ("/api/statements errors", appearances(statements::ERRORS)),
            ("/api/statements prepared", appearances(statements::PREPARED)),
            ("/api/tables", appearances(cosmos::tables::FIGURES)),
            ("/api/partitions", appearances(cosmos::partitions::FIGURES)),
            ("/api/keys hot", appearances(cosmos::hot_keys::FIGURES)),
            ("/api/keys largest", appearances(cosmos::largest_partitions::FIGURES)),
        ];
        for (list, lines) in lists {
            writeln!(text, "\nfigures of {list}: column | JSON | family | meaning").unwrap();
            for line in lines {
                writeln!(text, "  {line}").unwrap();
            }
        }
        text
    }

    #[test]
    fn every_figure_appears_where_the_list_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/views/golden/figures.txt");
        let listed = listed();
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            std::fs::write(&path, &listed).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap();
        for (line, wanted) in listed.lines().zip(wanted.lines()) {
            assert_eq!(line, wanted, "UPDATE_GOLDENFILES=1 writes the list anew");
        }
        assert_eq!(listed, wanted);
    }

    #[test]
    fn every_view_has_a_table() {
        let mut schema = definitions::base();
        define(&mut schema);
        let mut names = BTreeSet::new();
        for view in VIEWS.into_iter().flatten() {
            let table = schema.table(view.keyspace, view.name);
            assert!(
                table.is_some_and(|table| table.is_virtual || view.keyspace.starts_with("system")),
                "{}",
                view.name
            );
            assert!(names.insert((view.keyspace, view.name)), "{} is there twice", view.name);
        }
        let ids: Vec<_> = schema
            .keyspaces
            .values()
            .flat_map(|of| of.tables.values())
            .map(|of| of.storage_id)
            .collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
