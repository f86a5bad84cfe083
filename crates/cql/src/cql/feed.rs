//! Records of the full fidelity change feed, in the form of Azure Cosmos DB's "all versions and deletes".
//!
//! ```text
//! "current":{…},"previous":{…},"metadata":{"operationType":"replace","lsn":…,"crts":…,"previousImageLSN":…, …}
//! ```
//! Source: Azure Cosmos DB, "Change feed modes", all versions and deletes mode: parse the response object. `lsn` is the
//! position in µs, `crts` its second. `of`, `key`, `timestamp`, `from`, `to` and `imagesOmitted` are ours.

use bytes::Bytes;

use super::Rows;
use helenus_schema::command::{FeedBound, FeedChange, FeedChanged, FeedOperation, ResultColumn, json_row};
use helenus_schema::schema::{ColumnKind, Table};

/// A row of the page.
type Cells = Vec<Option<Bytes>>;

/// Which columns of a row are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The partition key and the first clustering columns.
    Key(usize),
    /// All but static ones.
    Row,
    /// The partition key and the static ones.
    Static,
}

/// The members of the record of each change.
pub(super) fn records(table: &Table, rows: &Rows, changes: &[FeedChange]) -> Vec<String> {
    let mut cells = rows.cells().into_iter();
    let mut row = |shown| row(table, &rows.metadata.columns, &cells.next().unwrap_or_default(), shown);
    changes.iter().map(|change| record(table, change, &mut row)).collect()
}

fn record(table: &Table, change: &FeedChange, row: &mut impl FnMut(Shown) -> String) -> String {
    let image = match change.of {
        FeedChanged::Static => Shown::Static,
        _ => Shown::Row,
    };
    let of_key = match change.of {
        FeedChanged::Row => Shown::Key(table.clustering_count),
        _ => Shown::Key(0),
    };
    let key = row(of_key);
    let mut record = String::new();
    let previous = change.has_previous.then(|| row(image));
    let current = change.has_current.then(|| row(image));
    for (name, image) in [("current", current), ("previous", previous)] {
        if let Some(image) = image {
            record.push_str(&format!("\"{name}\":{image},"));
        }
    }
    let operation = match change.operation {
        FeedOperation::Create => "create",
        FeedOperation::Replace => "replace",
        FeedOperation::Delete => "delete",
    };
    let (of, bounds) = match change.of {
        FeedChanged::Row => ("row", None),
        // CQL shows the static columns of such a table as its rows.
        FeedChanged::Static if table.is_static_compact() => ("row", None),
        FeedChanged::Static => ("static", None),
        FeedChanged::Partition => ("partition", None),
        FeedChanged::Range { start, end } => ("range", Some((start, end))),
    };
    let mut metadata = format!(
        "\"operationType\":\"{operation}\",\"of\":\"{of}\",\"key\":{key},\"lsn\":{},\"crts\":{}",
        change.position,
        change.position.div_euclid(1_000_000)
    );
    if let Some(previous) = change.previous_position {
        metadata.push_str(&format!(",\"previousImageLSN\":{previous}"));
    }
    if let Some(micros) = change.written_micros {
        metadata.push_str(&format!(",\"timestamp\":{micros}"));
    }
    if let Some((start, end)) = bounds {
        for (name, bound) in [("from", start), ("to", end)] {
            let (columns, is_included) = match bound {
                FeedBound::Open => continue,
                FeedBound::Included { columns } => (columns, true),
                FeedBound::Excluded { columns } => (columns, false),
            };
            let bound = row(Shown::Key(columns));
            metadata.push_str(&format!(
                ",\"{name}\":{{\"key\":{bound},\"inclusive\":{}}}",
                is_included
            ));
        }
    }
    if !change.has_images && matches!(change.of, FeedChanged::Row | FeedChanged::Static) {
        metadata.push_str(",\"imagesOmitted\":true");
    }
    // What expires makes no record of its own.
    metadata.push_str(",\"timeToLiveExpired\":false");
    format!("{record}\"metadata\":{{{metadata}}}")
}

fn row(table: &Table, columns: &[ResultColumn], cells: &Cells, shown: Shown) -> String {
    let is_shown = |column: &ResultColumn| {
        table
            .column(&column.name)
            .is_some_and(|(place, of_table)| match (of_table.kind, shown) {
                (ColumnKind::PartitionKey, _) => true,
                (ColumnKind::Clustering, Shown::Key(count)) => place < table.partition_key_count + count,
                (ColumnKind::Clustering | ColumnKind::Regular, Shown::Row) | (ColumnKind::Static, Shown::Static) => {
                    true
                }
                _ => false,
            })
    };
    json_row(columns.iter().zip(cells).filter(|(column, _)| is_shown(column)))
}
