//! Stages the rows of a part of a write in the batch of its store.

use super::changes::{Changes, PendingCharge};
use super::fragment::{FragmentWriter, Stamp, reads_before};
use super::prices::{all_indexes, how, indexed};
use super::{WritePart, Writing, whole_row};
use crate::engine::index::overlong;
use crate::engine::refusal::Refusal;
use crate::engine::row::dropped;
use crate::engine::terms::write::WriteRequest;
use crate::engine::{Error, logical, storage_read, value};
use crate::partition::RowKey;
use crate::throughput::{Charges, PartitionRef, RowWrite};
use helenus_base::invariant::{Broken, Invariant};
use helenus_schema::command::{ClusteringRange, ColumnChange, WriteTarget, WriteVerb};
use helenus_schema::guardrails::CELL_BYTES;
use helenus_schema::schema::{Column, ColumnKind};
use helenus_storage::storage::{CellState, RangeTombstone, Row};

impl WritePart<'_> {
    /// Stages the rows of the part.
    ///
    /// # Errors
    /// When a row would be too large, an operation cannot be applied, or a read that it needs fails.
    pub(super) async fn stage(
        &self,
        writing: &Writing<'_>,
        staged: &mut Changes,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let modification = self.write;
        let table = self.table();
        self.check_columns()?;
        let deletes_rows = modification.kind == WriteVerb::Delete && modification.operations.is_empty();
        if let Some(size) = &mut staged.size {
            size.partition(table, self.key);
        }
        match &modification.target {
            WriteTarget::Partition if table.log().is_some() && table.has_one_row_per_partition() => {
                // As the deletion of a row it has an image in the change log.
                let row = Row {
                    deletion: Some(self.stamp(staged).deletion()),
                    ..Row::default()
                };
                let key = self.logical.prefix().row(&[]);
                self.stage_row(key, false, row, writing, staged, charges).await?;
            }
            WriteTarget::Partition => {
                let deletion = self.stamp(staged).deletion();
                let marked = self.marked(RowWrite::Delete, 0, all_indexes(table));
                self.logical.delete(staged.batch(self.partition, marked), deletion);
                staged.weigh(self, 0, 0);
            }
            WriteTarget::Ranges(ranges) => {
                let stamp = self.stamp(staged);
                staged.weigh(self, 0, 0);
                for range in ranges {
                    if let Some(size) = &mut staged.size {
                        size.range(table, self.key, range);
                    }
                    let marked = self.marked(RowWrite::Delete, 0, all_indexes(table));
                    let batch = staged.batch(self.partition, marked);
                    self.logical.delete_range(batch, &tombstone(range, stamp));
                }
            }
            WriteTarget::Static => {
                self.stage_static(writing, staged, charges).await?;
            }
            WriteTarget::Rows(rows) => {
                if self.operations(true).next().is_some() {
                    self.stage_static(writing, staged, charges).await?;
                }
                for clustering in rows {
                    self.refuse_empty(clustering)?;
                    let mut row = Row::default();
                    if deletes_rows {
                        row.deletion = Some(self.stamp.deletion());
                    } else if modification.kind == WriteVerb::Insert && table.has_markers() {
                        row.marker = Some(self.stamp.marker());
                    }
                    self.stage_row(
                        self.logical.prefix().row(clustering),
                        false,
                        row,
                        writing,
                        staged,
                        charges,
                    )
                    .await?;
                }
            }
        }
        Ok(())
    }

    /// Refuses an empty value of the only clustering column of a table with COMPACT STORAGE. As in Cassandra, a condition that does not
    /// hold is answered first, and reads and deletions of ranges take such a value.
    fn refuse_empty(&self, mut clustering: &[u8]) -> Result<(), Error> {
        let table = self.table();
        let [column] = table.clustering() else {
            return Ok(());
        };
        if !table.compact_storage {
            return Ok(());
        }
        let mut value = Vec::new();
        value::decode_key(&column.ty, &mut clustering, column.key_order(), &mut value)?;
        if value.is_empty() {
            return Err(Refusal::EmptyClustering(column.name.clone()).into());
        }
        Ok(())
    }

    /// Checks that the table has every written column: a value for any other column would be lost.
    fn check_columns(&self) -> Result<(), Broken> {
        let columns = &self.table().columns;
        let mut places = self.write.operations.iter().map(|(place, _)| *place);
        match places.find(|place| *place >= columns.len()) {
            None => Ok(()),
            Some(place) => Err(Invariant::ColumnExists.broken(&format_args!("number {place} of {}", columns.len()))),
        }
    }

    /// The stamp of deletions of more than a row.
    fn stamp(&self, staged: &Changes) -> Stamp {
        let earlier = i64::from(staged.deletes_just_before);
        Stamp {
            timestamp_micros: self.stamp.timestamp_micros.saturating_sub(earlier),
            ..self.stamp
        }
    }

    fn operations(&self, of_static: bool) -> impl Iterator<Item = (&Column, &ColumnChange)> {
        let table = self.table();
        self.write.operations.iter().filter_map(move |(place, operation)| {
            let column = table.columns.get(*place)?;
            ((column.kind == ColumnKind::Static) == of_static).then_some((column.as_ref(), operation))
        })
    }

    fn place(&self) -> logical::Place {
        logical::Place {
            table: self.table().storage_id,
            spread: self.spread(),
            key: self.key.clone(),
        }
    }

    /// How a change of this modification is charged.
    fn marked(&self, how: RowWrite, fragment_bytes: usize, indexed: usize) -> PendingCharge {
        PendingCharge {
            partition: PartitionRef {
                table: self.table().storage_id,
                partition: self.partition.id.0,
            },
            spread: self.spread(),
            partition_key: self.key.clone(),
            how,
            fragment_bytes,
            indexed,
            is_done: false,
        }
    }

    /// How the write of one row is charged.
    fn marked_row(&self, key: &RowKey, of_static: bool, row: &Row) -> PendingCharge {
        let how = how(self.write);
        let indexed = indexed(self.table(), how, of_static, |column| {
            self.operations(of_static).any(|(written, _)| written.id == column.id)
        });
        let values = row.cells.iter().map(|cell| match &cell.state {
            CellState::Live { value, .. } => CELL_BYTES + value.len(),
            CellState::Tombstone { .. } => CELL_BYTES,
        });
        self.marked(how, key.len() + values.sum::<usize>(), indexed)
    }

    async fn stage_static(
        &self,
        writing: &Writing<'_>,
        staged: &mut Changes,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let key = self.logical.prefix().static_row();
        self.stage_row(key, true, Row::default(), writing, staged, charges)
            .await
    }

    async fn stage_row(
        &self,
        key: RowKey,
        of_static: bool,
        mut row: Row,
        writing: &Writing<'_>,
        staged: &mut Changes,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let rewrites = !of_static && writing.rewrites(self.write);
        let must_read = rewrites || self.operations(of_static).any(|(_, operation)| reads_before(operation));
        let stored = if must_read {
            self.read(&key, of_static, staged, charges).await?
        } else {
            None
        };
        let mut stored = stored;
        if row.cells.is_empty() {
            row.cells = Vec::with_capacity(self.write.operations.len());
        }
        for (column, operation) in self.operations(of_static) {
            // A list's element is looked up in the result of the same statement's earlier operations.
            if reads_before(operation) && !row.is_empty() {
                stored = Some(Row::merge(stored.unwrap_or_default(), row.clone().canonical()));
            }
            let writer = FragmentWriter {
                stamp: self.stamp,
                list_keys: writing.list_keys,
                stored: stored.as_ref(),
                deletes: self.write.kind == WriteVerb::Delete,
            };
            writer.apply(&mut row, column, operation)?;
        }
        if row.is_empty() {
            return Ok(());
        }
        if let (true, Some(stored)) = (rewrites, &stored) {
            whole_row::carry(&mut row, stored, &self.stamp);
        }
        if rewrites || must_read && self.table().is_counter {
            let said = staged.added_to.entry(key.clone()).or_default();
            *said = Row::merge(std::mem::take(said), row.clone().canonical());
        }
        if let Some(size) = &mut staged.size {
            let clustering = (!of_static).then(|| key.clustering());
            size.row(self.table(), &key, clustering, &row);
        }
        let mut entry_bytes = 0;
        if writing.logical.is_watched(|| self.place()) {
            entry_bytes = logical::entries_of(&self.write.table, &key, &row);
        }
        if self.write.kind != WriteVerb::Delete {
            let together = async |bytes_max| self.bytes_together(&key, &row, bytes_max).await;
            let WriteRequest {
                consistency,
                write_kind,
                ..
            } = writing.request;
            writing.limits.check_row(*consistency, *write_kind, together).await?;
        }
        overlong::check(&self.write.table, &key, &row)?;
        let marked = self.marked_row(&key, of_static, &row);
        let batch = staged.batch(self.partition, marked);
        let before = batch.bytes();
        self.logical.put_row(batch, key, row);
        let row_bytes = (batch.bytes() - before) as u64;
        staged.weigh(self, row_bytes, entry_bytes);
        Ok(())
    }

    /// Bytes of a written row, together with its stored columns where those may matter.
    async fn bytes_together(&self, key: &RowKey, row: &Row, bytes_max: u64) -> Result<u64, Error> {
        let written = row.encode().len() as u64;
        let stored = self.logical.get(key, &self.logical.now()).await;
        let stored = stored.map_err(|error| storage_read(&error))?;
        let stored = stored.map(|found| found.value);
        Ok(match stored {
            // A merged row is no longer than both versions together, so a shorter sum needs no merge.
            Some(stored) if written + stored.len() as u64 > bytes_max => {
                let stored = Row::decode(&stored).map_err(|error| storage_read(&error))?;
                Row::merge(stored, row.clone().canonical()).encode().len() as u64
            }
            _ => written,
        })
    }

    /// The stored row; for counters and rows that are rewritten whole, with this batch's earlier changes to it.
    async fn read(
        &self,
        key: &RowKey,
        of_static: bool,
        staged: &Changes,
        charges: &mut Charges,
    ) -> Result<Option<Row>, Error> {
        let at = self.logical.now();
        let found = self.logical.get(key, &at).await;
        let found = found.map_err(|error| storage_read(&error))?;
        // The price of an increment includes its read, as that of any change does.
        if !self.table().is_counter {
            let partition = self.marked(RowWrite::Update, 0, 0).partition;
            charges.enter(partition, Some((self.spread(), self.key)));
            charges.look_before_write(found.as_ref().map_or(0, |found| found.bytes));
        }
        let mut row = match found {
            Some(found) => Some(Row::decode(&found.value).map_err(|error| storage_read(&error))?),
            None => None,
        };
        if let Some(row) = &mut row {
            let deletions = self.logical.deletions(&at).await;
            let deletions = deletions.map_err(|error| storage_read(&error))?;
            let covering = if of_static {
                deletions.timestamp_covering_static()
            } else {
                deletions.timestamp_covering(key.clustering())
            };
            if let Some(timestamp) = covering {
                row.shadow(timestamp);
            }
            dropped::hide(self.table(), row);
        }
        Ok(match staged.added_to.get(key) {
            Some(said) => Some(Row::merge(row.unwrap_or_default(), said.clone())),
            None => row,
        })
    }
}

fn tombstone(range: &ClusteringRange, stamp: Stamp) -> RangeTombstone {
    use std::ops::Bound;
    RangeTombstone {
        start: if range.start.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Included(range.start.clone())
        },
        end: range.end.clone().map_or(Bound::Unbounded, Bound::Excluded),
        deletion: stamp.deletion(),
    }
}
