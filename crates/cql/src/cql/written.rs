//! Answers to writes: none, or the result of their conditions. A refused one has the rows that show why its conditions did not hold.
//!
//! Source: Cassandra's `ModificationStatement.buildCasResultSet`.

use std::sync::Arc;

use super::answer::{Answer, AnswerKind, ResultMetadata, Rows};
use super::rows::put_cell;
use helenus_engine::engine::{Decision, Written};
use helenus_schema::command::{Batch, ResultColumn, Write};
use helenus_schema::schema::Table;
use helenus_types::types::{CqlType, Native};

/// Lets failed conditions show the values of masked columns.
pub(super) fn show_values(writes: &mut [Write]) {
    for write in writes {
        write.masks = None;
    }
}

/// The answer to a batch.
pub(super) fn answer_of(batch: &Batch, written: Written) -> Answer {
    match batch.modifications.first() {
        Some(first) => answer_to(&first.table, written),
        None => Answer::new(AnswerKind::Void),
    }
}

/// The answer to a write of this table: none, or the result of its conditions.
pub(super) fn answer_to(table: &Table, written: Written) -> Answer {
    let kind = written.decision.map_or(AnswerKind::Void, |decision| {
        AnswerKind::Rows(decision_rows(table, decision))
    });
    let mut answer = Answer::new(kind);
    answer.warnings = written.warnings;
    answer
}

/// The result of conditions: `[applied]`, and the rows that show why they did not hold.
fn decision_rows(table: &Table, decision: Decision) -> Rows {
    let mut columns = vec![ResultColumn {
        name: "[applied]".to_owned(),
        ty: CqlType::Native(Native::Boolean),
    }];
    let mut content = Vec::new();
    let mut row_count = 1;
    match decision {
        Decision::Applied => put_cell(&mut content, Some(&[1])),
        Decision::Refused { rows, .. } if rows.is_empty() => put_cell(&mut content, Some(&[0])),
        Decision::Refused { places, rows, .. } => {
            let shown = places.iter().filter_map(|place| table.columns.get(*place));
            columns.extend(shown.map(|column| ResultColumn {
                name: column.name.clone(),
                ty: column.ty.clone(),
            }));
            for row in &rows {
                put_cell(&mut content, Some(&[0]));
                for cell in row {
                    put_cell(&mut content, cell.as_deref());
                }
            }
            row_count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        }
    }
    Rows {
        metadata: Arc::new(ResultMetadata::new(&table.keyspace, &table.name, Arc::new(columns))),
        row_count,
        content: content.into(),
        paging_state: None,
    }
}
