//! An inventory of the stored data: reads every row of a table once, in order, and sums up its logical and physical
//! partitions.
//!
//! For occasional inspection: it reads everything. Its memory is bounded: the current partition, and the largest and
//! the busiest of the earlier ones.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::edge::storage_read;
use super::error::Error;
use super::index::rows::IndexedRows;
use super::snapshot::Snapshot;
use super::value::key_components;
use crate::partition::{Hosted, Passed, Prefix, ReadView, TablePartitions};
use helenus_base::progress;
use helenus_schema::schema::{Table, system};
use helenus_storage::storage::{Derivation, Entries, RowView};

/// Logical partitions that are kept of each table: this many of the largest and of the busiest.
const KEPT_MAX: usize = 10;
/// Days of writes that are kept of each.
const DAYS_MAX: usize = 32;
const DAY_MICROS: i64 = 86_400_000_000;

/// A logical partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogicalSurvey {
    /// The partition key as CQL.
    pub key: String,
    /// Rows, static ones and those not yet cleaned up too.
    pub rows: u64,
    /// Bytes of keys, rows and the entries of its indexes.
    pub bytes: u64,
    /// Bytes by the day of the row's last write, days since 1970-01-01 UTC; the latest 32 days that have any.
    pub daily: BTreeMap<i64, u64>,
}

/// A physical partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhysicalSurvey {
    /// Its number.
    pub id: u64,
    /// Lowest token.
    pub lower: i64,
    /// Highest token.
    pub upper: i64,
    /// Bytes as in [`LogicalSurvey`].
    pub bytes: u64,
    /// Logical partitions in it.
    pub logical: u64,
    /// Bytes by day as in [`LogicalSurvey`].
    pub daily: BTreeMap<i64, u64>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSurvey {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Whether it is a materialized view.
    pub is_view: bool,
    /// Its physical partitions, in order of tokens.
    pub partitions: Vec<PhysicalSurvey>,
    /// Rows as in [`LogicalSurvey`].
    pub rows: u64,
    /// The largest logical partitions, the largest first.
    pub largest: Vec<LogicalSurvey>,
    /// Logical partitions with the most bytes on the last day on which they were written; the latest day and the
    /// busiest first.
    pub busiest: Vec<LogicalSurvey>,
}

fn add_bytes(daily: &mut BTreeMap<i64, u64>, day: i64, bytes: u64) {
    *daily.entry(day).or_default() += bytes;
    if daily.len() > DAYS_MAX {
        daily.pop_first();
    }
}

/// When the row was last written, µs; `None` for damaged or empty ones.
fn written(view: &RowView<'_>) -> Option<i64> {
    let cells = view
        .cells()
        .filter_map(|cell| cell.ok().map(|cell| cell.timestamp))
        .max();
    view.marker().map(|marker| marker.timestamp).max(cells)
}

/// Inserts a partition at its place among those kept, the greatest by `of` first.
fn keep<K: Ord>(kept: &mut Vec<LogicalSurvey>, one: &LogicalSurvey, of: impl Fn(&LogicalSurvey) -> K) {
    let place = kept.partition_point(|other| of(other) >= of(one));
    if place < KEPT_MAX {
        kept.insert(place, one.clone());
        kept.truncate(KEPT_MAX);
    }
}

/// The walk through a table.
struct Walk<'t> {
    table: &'t Table,
    partitions: Vec<&'t Hosted>,
    indexed: Option<IndexedRows>,
    survey: TableSurvey,
    /// The key prefix of the current logical partition, and its figures.
    current: Option<(Prefix, LogicalSurvey)>,
    /// The physical partition that it is in.
    at: usize,
}

impl Walk<'_> {
    fn row(&mut self, row: Passed<'_>) {
        let is_current = self.current.as_ref().is_some_and(|(prefix, _)| row.is_of(prefix));
        if !is_current {
            self.finish();
            let Ok((prefix, token, partition_key)) = row.partition() else {
                return;
            };
            let components = key_components(&partition_key, self.table.partition_key_count);
            let texts: Vec<String> = components
                .zip(self.table.partition_key())
                .map(|(bytes, column)| column.shown(bytes))
                .collect();
            let logical = LogicalSurvey {
                key: texts.join(", "),
                ..LogicalSurvey::default()
            };
            self.current = Some((prefix, logical));
            while self
                .partitions
                .get(self.at)
                .is_some_and(|partition| !partition.span.ends_after(token.value(), &partition_key))
            {
                self.at += 1;
            }
            if let Some(partition) = self.survey.partitions.get_mut(self.at) {
                partition.logical += 1;
            }
        }
        let mut bytes = row.bytes() as u64;
        let view = RowView::parse(row.value).ok();
        if let (Some(indexed), Some(view)) = (&self.indexed, &view) {
            let mut entries = Entries::default();
            indexed.derive(row.key(), view, &mut entries);
            let of_indexes = entries.into_sorted().into_iter();
            bytes += of_indexes
                .map(|(key, value)| (key.len() + value.len()) as u64)
                .sum::<u64>();
        }
        let day = view
            .as_ref()
            .and_then(written)
            .map(|micros| micros.div_euclid(DAY_MICROS));
        self.survey.rows += 1;
        if let Some((_, logical)) = &mut self.current {
            logical.rows += 1;
            logical.bytes += bytes;
            if let Some(day) = day {
                add_bytes(&mut logical.daily, day, bytes);
            }
        }
        if let Some(partition) = self.survey.partitions.get_mut(self.at) {
            partition.bytes += bytes;
            if let Some(day) = day {
                add_bytes(&mut partition.daily, day, bytes);
            }
        }
    }

    /// Ends the logical partition.
    fn finish(&mut self) {
        let Some((_, logical)) = self.current.take() else {
            return;
        };
        keep(&mut self.survey.largest, &logical, |one| one.bytes);
        keep(&mut self.survey.busiest, &logical, |one| {
            one.daily.last_key_value().map(|(day, bytes)| (*day, *bytes))
        });
    }
}

/// Reads every row of every table and view of users, under one snapshot of each store, and returns the inventory of their
/// partitions.
///
/// # Errors
/// When the medium fails or is damaged.
pub(super) async fn survey(snapshot: &Snapshot) -> Result<Vec<TableSurvey>, Error> {
    let keyspaces = snapshot.schema.keyspaces.values();
    let tables = keyspaces
        .filter(|keyspace| !system::is_name(&keyspace.name))
        .flat_map(|keyspace| {
            let views = keyspace.views.values().map(|view| (&view.table, true));
            keyspace.tables.values().map(|table| (table, false)).chain(views)
        })
        .filter(|(table, _)| !table.is_virtual);
    let mut surveys = Vec::new();
    for (table, is_view) in tables {
        let survey = survey_table(table, snapshot.partitions(table)?).await?;
        surveys.push(TableSurvey { is_view, ..survey });
    }
    Ok(surveys)
}

async fn survey_table(table: &Arc<Table>, partitions: &TablePartitions) -> Result<TableSurvey, Error> {
    let physical = partitions.here().map(|partition| PhysicalSurvey {
        id: partition.id.0,
        lower: partition.lower(),
        upper: partition.upper(),
        ..PhysicalSurvey::default()
    });
    let mut walk = Walk {
        table,
        partitions: partitions.here().map(Arc::as_ref).collect(),
        indexed: IndexedRows::of(table),
        survey: TableSurvey {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            partitions: physical.collect(),
            ..TableSurvey::default()
        },
        current: None,
        at: 0,
    };
    let mut view = ReadView::default();
    for partition in partitions.here() {
        let at = view.at(partition);
        let rows = partition.rows(table.storage_id);
        let walked = partition.scan(&rows, &at, |row| {
            walk.row(row);
            progress::pass(1, 0);
            ControlFlow::Continue(())
        });
        walked.await.map_err(|error| storage_read(&error))?;
    }
    walk.finish();
    Ok(walk.survey)
}
