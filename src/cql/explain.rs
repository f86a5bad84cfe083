//! EXPLAIN, carried out: the planner's stages, what the command would be charged, and what would be cheaper.
//!
//! ```text
//! charge    one for each stage that costs something, and the sum       cheaper   another way to the same rows
//! ```
//! **What the estimate knows.** How many rows a table has and how large they are on average, as the store counts them; what lies in
//! the partitions that are named, and which entries an index has, by walking them up to [`COUNTED_MAX`]. It takes writes of rows
//! for writes of new ones (UPDATE for changes), and LIMIT for reached by the first rows looked at. The statement itself is
//! charged exactly, whatever was estimated.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::answer::{Answer, AnswerKind, ResultMetadata, Rows};
use super::plans::PlannedAt;
use crate::command::{
    Clustering, Comparison, Condition, FilterTarget, IndexUse, Partitions, Read, Value, Write, WriteVerb,
};
use crate::engine::index::{self, Indexes};
use crate::engine::ledger::Ledger;
use crate::engine::read::room::Room;
use crate::engine::read::sink::{Limits, Shape, Sink, looks_up};
use crate::engine::read::source;
use crate::engine::{Error, Request, storage_read, value, write};
use crate::guardrails::Threshold;
use crate::partition::{KeySpan, ReadView, TablePartitions};
use crate::planner::Plan;
use crate::planner::explain::{self, Stage};
use crate::schema::{ColumnKind, Table, system};
use crate::throughput::{Charges, PartitionRef, Stage as Charged};
use crate::types::quoted;

/// Rows or entries that are walked to count them.
pub(super) const COUNTED_MAX: usize = 1000;

/// How many there are of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    number: u64,
    /// Counting ended there.
    at_least: bool,
}

/// Estimates statements without executing them.
#[derive(Clone, Copy)]
pub(super) struct Explainer<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) indexes: &'a Indexes,
    /// Bytes of rows after which a page ends.
    pub(super) page_bytes_max: usize,
    /// Tombstones that are warned of and refused.
    pub(super) tombstones: Threshold,
}

impl Explainer<'_> {
    /// The stages and the price of a command, as rows.
    pub(super) async fn explain(
        self,
        request: &Request<'_>,
        page_rows: Option<u32>,
        planned: &PlannedAt,
        explained: &Plan,
        values: &[Value],
    ) -> Result<Answer, Error> {
        let context = &request.context;
        let stages = match explained {
            Plan::Select(plan) => {
                self.explain_select(request, page_rows, &plan.bind(values, context)?)
                    .await?
            }
            Plan::Modify(plan) => {
                let modification = plan.bind(values, context)?;
                let mut stages = explain::modification(&modification);
                let mut charges = self.ledger.estimated(request.consistency());
                estimate_write(request, &modification, &mut charges)?;
                stages.extend(told(&charges, false));
                stages.extend(cheaper_write(&modification).map(|text| ("cheaper", text)));
                stages
            }
            Plan::Batch(plan) => {
                let batch = plan.bind(values, context)?;
                let mut stages = explain::batch(&batch);
                let mut charges = self.ledger.estimated(request.consistency());
                for modification in &batch.modifications {
                    estimate_write(request, modification, &mut charges)?;
                }
                stages.extend(told(&charges, false));
                stages
            }
            _ => Vec::new(),
        };
        let mut content = Vec::new();
        let mut row_count = 0_u32;
        for (stage, detail) in stages {
            row_count += 1;
            value::put_bytes(&mut content, Some(&row_count.to_be_bytes()));
            value::put_bytes(&mut content, Some(stage.as_bytes()));
            value::put_bytes(&mut content, Some(detail.as_bytes()));
        }
        let metadata = planned.result.clone().unwrap_or_else(|| {
            let metadata = explain::metadata();
            Arc::new(ResultMetadata::new(
                &metadata.keyspace,
                &metadata.table,
                metadata.columns,
            ))
        });
        Ok(Answer::new(AnswerKind::Rows(Rows {
            metadata,
            row_count,
            content: content.into(),
            paging_state: None,
        })))
    }

    async fn explain_select(
        self,
        request: &Request<'_>,
        page_rows: Option<u32>,
        select: &Read,
    ) -> Result<Vec<Stage>, Error> {
        if system::is_local(&select.table.keyspace) {
            let mut charges = self.ledger.estimated(request.consistency());
            charges.metadata();
            let mut stages = explain::select(select, &IndexUse::None);
            stages.extend(told(&charges, false));
            return Ok(stages);
        }
        let partitions = request.snapshot.partitions(&select.table)?;
        let used = if select.probes.is_empty() {
            IndexUse::None
        } else {
            let shape = Shape::of(select);
            let limits = Limits {
                rows: select.limit_rows,
                page_rows: page_rows.filter(|rows| *rows > 0),
                page_bytes: self.page_bytes_max,
                content_bytes_ahead: 0,
                tombstones: self.tombstones,
            };
            let mut unused = self.ledger.estimated(request.consistency());
            let now = request.now_seconds;
            let room = Room::of(None, 0);
            let sink = Sink::new(select, &shape, &request.context, now, limits, &mut unused, room);
            index::choice::explain(self.indexes, partitions, select, &sink).await?
        };
        let mut stages = explain::select(select, &used);
        let (charges, at_least) = self.estimate_read(request, partitions, select, &used).await?;
        stages.extend(told(&charges, at_least));
        let cheaper = cheaper_reads(partitions, select, &used, &charges);
        stages.extend(cheaper.into_iter().map(|text| ("cheaper", text)));
        Ok(stages)
    }

    /// What a read would be charged, and whether it may be more because counting ended.
    async fn estimate_read(
        self,
        request: &Request<'_>,
        partitions: &TablePartitions,
        select: &Read,
        used: &IndexUse,
    ) -> Result<(Charges, bool), Error> {
        let table = select.table.as_ref();
        let mut charges = self.ledger.estimated(request.consistency());
        let visited: BTreeSet<u64> = source::concerned(partitions, select)
            .map(|partition| partition.id.0)
            .collect();
        let size = partitions.bytes(table.storage_id);
        let row_bytes = size.bytes.checked_div(size.rows).unwrap_or(0);
        let row_bytes = usize::try_from(row_bytes).unwrap_or(usize::MAX);
        if looks_up(select) {
            let first = visited.first().copied();
            charges.enter(place(table, first.unwrap_or(0)), None);
            for _ in 0..rows_looked_up(select) {
                charges.lookup(row_bytes);
            }
            return Ok((charges, false));
        }
        for partition in &visited {
            charges.enter(place(table, *partition), None);
            charges.visit();
        }
        let count =
            match (used, &select.partitions) {
                (IndexUse::Used { index, .. }, _) => index::read::count(partitions, select, index, COUNTED_MAX)
                    .await
                    .map(|number| Count {
                    number: number as u64,
                    at_least: number >= COUNTED_MAX,
                })?,
                (_, Partitions::Keys(keys)) => count_rows(table, partitions, keys).await?,
                (_, Partitions::Ring { lower, upper }) => Count {
                    number: KeySpan::of_tokens(*lower, *upper)
                        .map_or(0, |span| partitions.bytes_in(table.storage_id, &span).rows),
                    at_least: false,
                },
            };
        // With LIMIT a read may end early; with filters or groups nobody knows when.
        let ends_early =
            select.filters.is_empty() && select.group_by.is_none() && select.selection.aggregates.is_empty();
        let limit = select
            .limit_rows
            .filter(|_| ends_early && select.sort.is_empty() && select.nearest.is_none())
            .map(u64::from);
        let number = limit.map_or(count.number, |limit| limit.min(count.number));
        let scanned = number.saturating_mul(row_bytes as u64);
        charges.scan(usize::try_from(scanned).unwrap_or(usize::MAX));
        Ok((
            charges,
            count.at_least && limit.is_none_or(|limit| limit > count.number),
        ))
    }
}

/// Rows in logical partitions, static ones included.
async fn count_rows(table: &Table, partitions: &TablePartitions, keys: &[bytes::Bytes]) -> Result<Count, Error> {
    let (mut number, mut view) = (0, ReadView::default());
    for partition_key in keys {
        let (token, partition) = partitions.place(partition_key);
        let logical = partition.logical(table.storage_id, token, partition_key);
        let at = view.at(partition);
        let walked = logical.scan_all(&at, |_| {
            number += 1;
            if number < COUNTED_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        walked.await.map_err(|error| storage_read(&error))?;
        if number >= COUNTED_MAX {
            break;
        }
    }
    Ok(Count {
        number: number as u64,
        at_least: number >= COUNTED_MAX,
    })
}

const fn place(table: &Table, partition: u64) -> PartitionRef {
    PartitionRef {
        table: table.storage_id,
        partition,
    }
}

fn rows_looked_up(select: &Read) -> usize {
    let keys = match &select.partitions {
        Partitions::Keys(keys) => keys.len(),
        Partitions::Ring { .. } => 0,
    };
    let rows = match &select.rows {
        Clustering::Keys(rows) => rows.len(),
        Clustering::All | Clustering::Ranges(_) => 1,
    };
    keys.saturating_mul(rows)
}

/// Charges as stages.
fn told(charges: &Charges, at_least: bool) -> Vec<Stage> {
    let stages = Charged::ALL.into_iter().map(|stage| (stage.name(), charges.of(stage)));
    let mut told: Vec<Stage> = stages
        .filter(|(_, units)| units.in_hundredths() > 0)
        .map(|(name, units)| ("charge", format!("{name}: {units}")))
        .collect();
    let about = if at_least { "at least" } else { "about" };
    told.push(("charge", format!("{about} {} request units in all", charges.total())));
    told
}

/// Adds what a write would be charged.
fn estimate_write(request: &Request<'_>, modification: &Write, charges: &mut Charges) -> Result<(), Error> {
    let partitions = request.snapshot.partitions(&modification.table)?;
    for partition_key in &modification.partition_keys {
        let (token, partition) = partitions.place(partition_key);
        let key = (token.value(), partition_key);
        charges.enter(place(&modification.table, partition.id.0), Some(key));
        if modification.condition != Condition::Always {
            charges.look_before_write(0);
        }
        write::estimate(modification, partition_key, charges);
    }
    Ok(())
}

/// Another way to the same rows, if there is one.
fn cheaper_reads(partitions: &TablePartitions, select: &Read, used: &IndexUse, charges: &Charges) -> Vec<String> {
    let table = select.table.as_ref();
    let mut cheaper = Vec::new();
    if looks_up(select) {
        return cheaper;
    }
    let key_names = |kind: ColumnKind| {
        let columns = table.columns.iter().filter(|column| column.kind == kind);
        let names: Vec<String> = columns.map(|column| quoted(&column.name)).collect();
        names.join(", ")
    };
    let partition_key = key_names(ColumnKind::PartitionKey);
    let all = partitions.all().len();
    if let Partitions::Ring { .. } = &select.partitions {
        let visited = source::concerned(partitions, select).count();
        cheaper.push(format!(
            "with the whole partition key ({partition_key}): 1 of {all} physical partitions would be visited, not {visited}, and only \
             rows of that key looked at"
        ));
    }
    if table.clustering_count > 0 {
        cheaper.push(format!(
            "with the whole primary key ({partition_key}, {}): {} for a row of up to 1 KiB, no partition visited, nothing scanned",
            key_names(ColumnKind::Clustering),
            charges.price_of_lookup()
        ));
    }
    if *used == IndexUse::None && select.probes.is_empty() {
        let filters = select.filters.iter();
        let columns = filters.filter_map(|filter| match (&filter.target, filter.comparison) {
            (FilterTarget::Column(place), Comparison::Eq | Comparison::In) => table.columns.get(*place),
            _ => None,
        });
        for column in columns.filter(|column| column.kind != ColumnKind::PartitionKey || table.partition_key_count > 1)
        {
            cheaper.push(format!(
                "with an index on {}: only the rows that it leads to would be looked at; each write of the column costs {} more",
                quoted(&column.name),
                charges.price_of_index()
            ));
        }
    }
    cheaper
}

/// Another way to write the same, if there is one.
fn cheaper_write(modification: &Write) -> Option<String> {
    if modification.condition != Condition::Always {
        return Some("without IF: no row would be read first".to_owned());
    }
    let is_update = modification.kind == WriteVerb::Update && !modification.table.is_counter;
    is_update.then(|| "by INSERT, where the row is not there yet: half".to_owned())
}
