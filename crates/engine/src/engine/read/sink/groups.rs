//! Groups: rows that are aggregated, by GROUP BY or all into one.

use bytes::Bytes;

use super::{Reply, Scope, Sink, Step};
use crate::engine::Error;
use crate::engine::read::row_sink::RowSink;
use crate::engine::row::buffer::RowBuffer;
use helenus_schema::command::{Aggregate, Expression};
use helenus_types::consistency::Consistency;
use helenus_types::functions::Accumulator;

/// Rows of one group being aggregated.
pub(super) struct Group {
    key: Vec<Option<Bytes>>,
    first: RowBuffer,
    accumulators: Vec<Option<Accumulator>>,
    counts: Vec<i64>,
}

/// The failure of a replica that a function of GROUP BY refuses a row's values. The request's own level replaces this one.
#[cold]
fn in_replica(error: Error) -> Error {
    match error {
        Error::FunctionFailure(_) | Error::Refused(_) => Error::GroupFailure {
            consistency: Consistency::One,
            reason: Box::new(error),
        },
        other => other,
    }
}

impl<R: RowSink> Sink<'_, R> {
    pub(super) fn accept_in_group(&mut self, row: &RowBuffer, clustering: Option<&[u8]>) -> Result<Reply, Error> {
        let Some(expressions) = &self.select.group_by else {
            // A single group of all rows; PER PARTITION LIMIT counts the rows that join it.
            if self.group.is_none() {
                self.open_group(row, Vec::new());
            }
            self.feed_group(row)?;
            if let Some(left) = &mut self.partition_left {
                *left = left.saturating_sub(1);
            }
            return Ok(Reply::Plain(
                if self.partition_left == Some(0) || self.select.distinct {
                    Step::SkipPartition
                } else {
                    Step::Continue
                },
            ));
        };
        // In Cassandra a replica looks for the ends of groups.
        let key = self.scope(row).evaluate_all(expressions).map_err(in_replica)?;
        let is_same = self
            .group
            .as_ref()
            .is_some_and(|group| self.are_equal(expressions, &group.key, &key))
            && self.last_partition_key == self.partition_key();
        if !is_same {
            if self.group.is_some() {
                self.flush_group()?;
                if self.is_full() {
                    // The page ends after the rows of the finished group. If that is the last possible group of the
                    // last partition, no page follows.
                    let same_partition = self.last_partition_key == self.partition_key();
                    if !(same_partition && self.partition_left == Some(0) && self.is_last_key()) {
                        self.note_position_of_group(same_partition);
                    }
                    return Ok(Reply::Later(Step::Stop));
                }
                if self.is_exhausted() {
                    return Ok(Reply::Later(Step::Stop));
                }
            }
            if self.partition_left == Some(0) {
                return Ok(Reply::Later(Step::SkipPartition));
            }
            if let Some(left) = &mut self.partition_left {
                *left = left.saturating_sub(1);
            }
            self.open_group(row, key);
        }
        let partition_key = self.partition.key(&self.select.partitions);
        self.last_partition_key.clear();
        self.last_partition_key.extend_from_slice(partition_key);
        self.last_clustering = clustering.map(<[u8]>::to_vec);
        self.feed_group(row)?;
        Ok(Reply::Grouped(if self.select.distinct {
            Step::SkipPartition
        } else {
            Step::Continue
        }))
    }

    /// Whether two keys are of one group. Values of a column are compared as its type compares them: 1.0 and 1.00 are equal.
    fn are_equal(&self, expressions: &[Expression], a: &[Option<Bytes>], b: &[Option<Bytes>]) -> bool {
        let mut parts = expressions.iter().zip(a.iter().zip(b));
        a == b
            || parts.all(|(expression, values)| match (expression, values) {
                (Expression::Column(place), (Some(a), Some(b))) => {
                    let column = self.select.table.columns.get(*place);
                    column.is_some_and(|column| column.ty.compare(a, b).is_eq())
                }
                (_, (a, b)) => a == b,
            })
    }

    pub(super) fn open_group(&mut self, row: &RowBuffer, key: Vec<Option<Bytes>>) {
        let aggregates = &self.select.selection.aggregates;
        self.group = Some(Group {
            key,
            first: row.clone(),
            accumulators: aggregates
                .iter()
                .map(|aggregate| aggregate.function.as_ref().map(Accumulator::new))
                .collect(),
            counts: vec![0; aggregates.len()],
        });
    }

    fn feed_group(&mut self, row: &RowBuffer) -> Result<(), Error> {
        let Some(mut group) = self.group.take() else {
            return Ok(());
        };
        let aggregates: &[Aggregate] = &self.select.selection.aggregates;
        for ((aggregate, accumulator), count) in aggregates.iter().zip(&mut group.accumulators).zip(&mut group.counts) {
            match accumulator {
                None => *count += 1,
                Some(accumulator) => {
                    let arguments = self.scope(row).evaluate_all(&aggregate.arguments)?;
                    accumulator.add(&arguments, self.context)?;
                }
            }
        }
        self.group = Some(group);
        Ok(())
    }

    pub(super) fn flush_group(&mut self) -> Result<(), Error> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut results = Vec::with_capacity(group.counts.len());
        for (accumulator, count) in group.accumulators.into_iter().zip(group.counts) {
            results.push(match accumulator {
                None => Some(Bytes::copy_from_slice(&count.to_be_bytes())),
                Some(accumulator) => accumulator.finish(self.context)?,
            });
        }
        let scope = Scope {
            aggregates: &results,
            ..self.scope(&group.first)
        };
        let values = scope.evaluate_all(&self.select.selection.expressions)?;
        let turn = self.turn(&group.first);
        self.emit_values(&values, turn)
    }
}
