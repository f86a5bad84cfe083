//! Executes EXPLAIN: the planner's stages, what the command would be charged, and what would be cheaper.
//!
//! ```text
//! charge    one for each stage with a cost, and the sum       cheaper   a cheaper read of the same rows
//! ```
//! The engine provides the path and the price ([`Execution::estimate_read`]); this module describes them as text.

use super::error::Error;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::answer::{Answer, AnswerKind, ResultMetadata, Rows};
use super::plans::PlannedAt;
use super::rows::put_cell;
use helenus_engine::engine::{Execution, ReadEstimate};
use helenus_engine::throughput::{Charges, Stage as Charged};
use helenus_schema::command::{
    Comparison, Condition, FilterTarget, IndexUse, Partitions, Read, Value, Write, WriteVerb,
};
use helenus_schema::planner::Plan;
use helenus_schema::planner::explain::{self, Stage};
use helenus_schema::schema::{ColumnKind, Schema, system};
use helenus_types::types::quoted;

/// The views that writes update: the cost depends on the stored rows.
fn views(schema: &Schema, writes: &[Write]) -> Option<Stage> {
    let of = |write: &Write| {
        let keyspace = schema.keyspaces.get(&write.table.keyspace)?;
        let names = keyspace.views_of(&write.table.name);
        Some(
            names
                .map(|view| format!("{}.{}", view.table.keyspace, view.table.name))
                .collect(),
        )
    };
    let names: BTreeSet<String> = writes.iter().filter_map(of).flat_map(|names: Vec<_>| names).collect();
    if names.is_empty() {
        return None;
    }
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    Some((
        "views",
        format!("{names}: each row that changes there is charged too, which is not counted here"),
    ))
}

/// The stages and the price of a command, as rows.
pub(super) async fn explain(
    execution: &mut Execution<'_>,
    page_rows: Option<u32>,
    planned: &PlannedAt,
    explained: &Plan,
    values: &[Value],
) -> Result<Answer, Error> {
    let stages = match explained {
        Plan::Select(plan) => {
            let read = plan.bind(values, execution.context(), false)?;
            let estimate = execution.estimate_read(&read, page_rows).await?;
            read_stages(&read, &estimate)
        }
        Plan::Modify(plan) => {
            let write = plan.bind(values, execution.context())?;
            let mut stages = explain::modification(&write);
            let charges = execution.estimate_writes(std::slice::from_ref(&write))?;
            stages.extend(charge_stages(&charges, false));
            stages.extend(views(execution.schema(), std::slice::from_ref(&write)));
            stages.extend(cheaper_write(&write).map(|text| ("cheaper", text)));
            stages
        }
        Plan::Batch(plan) => {
            let batch = plan.bind(values, execution.context())?;
            let mut stages = explain::batch(&batch);
            stages.extend(charge_stages(&execution.estimate_writes(&batch.modifications)?, false));
            stages.extend(views(execution.schema(), &batch.modifications));
            stages
        }
        _ => Vec::new(),
    };
    let mut content = Vec::new();
    let mut row_count = 0_u32;
    for (stage, detail) in stages {
        row_count += 1;
        put_cell(&mut content, Some(&row_count.to_be_bytes()));
        put_cell(&mut content, Some(stage.as_bytes()));
        put_cell(&mut content, Some(detail.as_bytes()));
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

fn read_stages(read: &Read, estimate: &ReadEstimate) -> Vec<Stage> {
    let mut stages = explain::select(read, &estimate.index);
    stages.extend(charge_stages(&estimate.charges, estimate.at_least));
    if !system::is_computed(&read.table) && !estimate.looks_up && read.feed.is_none() {
        let cheaper = cheaper_reads(read, estimate);
        stages.extend(cheaper.into_iter().map(|text| ("cheaper", text)));
    }
    stages
}

/// Charges as stages.
fn charge_stages(charges: &Charges, at_least: bool) -> Vec<Stage> {
    let stages = Charged::ALL.into_iter().map(|stage| (stage.name(), charges.of(stage)));
    let mut listed: Vec<Stage> = stages
        .filter(|(_, units)| units.in_hundredths() > 0)
        .map(|(name, units)| ("charge", format!("{name}: {units}")))
        .collect();
    let about = if at_least { "at least" } else { "about" };
    listed.push(("charge", format!("{about} {} request units in all", charges.total())));
    listed
}

/// Descriptions of cheaper reads of the same rows; may be empty.
fn cheaper_reads(select: &Read, estimate: &ReadEstimate) -> Vec<String> {
    let charges = &estimate.charges;
    let table = select.table.as_ref();
    let mut cheaper = Vec::new();
    let key_names = |kind: ColumnKind| {
        let columns = table.columns.iter().filter(|column| column.kind == kind);
        let names: Vec<String> = columns.map(|column| quoted(&column.name)).collect();
        names.join(", ")
    };
    let partition_key = key_names(ColumnKind::PartitionKey);
    if let Partitions::Ring(_) = &select.partitions {
        let (all, visited) = (estimate.partitions, estimate.visited);
        let fewer = if visited > 1 {
            format!("1 of {all} physical partitions would be visited, not {visited}, and ")
        } else {
            String::new()
        };
        cheaper.push(format!(
            "with the whole partition key ({partition_key}): {fewer}only rows of that key would be looked at"
        ));
    }
    if table.clustering_count > 0 {
        cheaper.push(format!(
            "with the whole primary key ({partition_key}, {}): {} for a row of up to 1 KiB, no partition visited, nothing scanned",
            key_names(ColumnKind::Clustering),
            charges.price_of_lookup()
        ));
    }
    if estimate.index == IndexUse::None && select.probes.is_empty() {
        let columns = select
            .filter
            .required()
            .filter_map(|filter| match (&filter.target, filter.comparison) {
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

/// Description of a cheaper equivalent write; `None` if there is none.
fn cheaper_write(modification: &Write) -> Option<String> {
    if modification.condition != Condition::Always {
        return Some("without IF: no row would be read first".to_owned());
    }
    let is_update = modification.kind == WriteVerb::Update && !modification.table.is_counter;
    is_update.then(|| "by INSERT, where the row is not there yet: half".to_owned())
}
