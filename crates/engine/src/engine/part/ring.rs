//! The rows of a physical partition in the order of the ring, from its store to a reader.

use std::ops::ControlFlow;

use super::logical::{bring_static, covering};
use super::reader::Reader;
use super::rows::{PartSink, Step};
use crate::engine::{Error, storage_read};
use crate::partition::rows::KeyPlace;
use crate::partition::{Ahead, Hosted, Moment, Passed, Prefix, RowRange};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::{Position, Read};
use helenus_storage::storage::{Deletions, RowView};
use helenus_types::token::KeySpan;

/// How many partitions' deletions a full scan reads ahead.
const DELETIONS_AHEAD: usize = 256;

/// Rows of a partition that a scan passes over before it pauses and begins again behind the partition: a new scan costs
/// more than a few rows, on SlateDB far more.
const PASSED_OVER_ROWS_MAX: usize = 32;

/// A scan over part of the ring, in order of token.
pub(super) struct Ring<'a> {
    partition: &'a Hosted,
    at: Moment,
    select: &'a Read,
    range: RowRange,
    has_deletions: bool,
    ahead: Ahead,
}

/// The logical partition that the scan is in.
enum Current {
    None,
    /// Being read, with its deletions.
    Read(Prefix, Deletions),
    /// The rest is passed over; so many of its rows were.
    PassedOver(Prefix, usize),
}

/// Why a scan paused.
enum Pause {
    End,
    Stop,
    /// Continue after the partition of this prefix.
    NextPartition(Prefix),
    /// Read deletions from this prefix on, then continue at this key.
    NeedDeletions {
        prefix: Prefix,
        place: KeyPlace,
    },
    Failed(Error),
}

impl<'a> Ring<'a> {
    /// `None` means that no part of the span lies in the partition.
    pub(super) fn new(partition: &'a Hosted, at: Moment, select: &'a Read, span: &KeySpan) -> Option<Self> {
        let table = select.table.storage_id;
        Some(Self {
            partition,
            select,
            range: partition.rows_in(table, span)?,
            has_deletions: at.has_deletions(table),
            ahead: Ahead::default(),
            at,
        })
    }

    pub(super) async fn run(
        mut self,
        resume: Option<&Position>,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Step, Error> {
        let mut current = Current::None;
        if let Some(position) = resume {
            current = self.resume(position, reader).await?;
        }
        loop {
            match self.stride(&mut current, reader).await? {
                Pause::End => {
                    return if let Current::Read(..) = current {
                        reader.end_partition()
                    } else {
                        Ok(Step::Continue)
                    };
                }
                Pause::Stop => return Ok(Step::Stop),
                Pause::NextPartition(prefix) => {
                    current = Current::None;
                    if !self.range.start_after(&prefix) {
                        return Ok(Step::Continue);
                    }
                }
                Pause::NeedDeletions { prefix, place } => {
                    let ahead = self
                        .partition
                        .deletions_ahead(&self.range, prefix, DELETIONS_AHEAD, &self.at);
                    self.ahead = ahead.await.map_err(|error| storage_read(&error))?;
                    self.range.begin_at(place);
                }
                Pause::Failed(error) => return Err(error),
            }
            if self.range.is_empty() {
                return Ok(Step::Continue);
            }
        }
    }

    async fn resume(&mut self, position: &Position, reader: &mut Reader<'_, impl PartSink>) -> Result<Current, Error> {
        let (table, token) = (
            self.select.table.storage_id,
            self.partition.token(&position.partition_key),
        );
        if !self.partition.span.contains(token.value(), &position.partition_key) {
            return Ok(Current::None);
        }
        let logical = self.partition.logical(table, token, &position.partition_key)?;
        if !self.range.has(logical.prefix()) {
            return Ok(Current::None);
        }
        let Some(clustering) = &position.clustering else {
            self.range.start_after(logical.prefix());
            return Ok(Current::None);
        };
        let deletions = logical.deletions(&self.at).await;
        let deletions = deletions.map_err(|error| storage_read(&error))?;
        reader.begin_partition(&position.partition_key, Some(position.partition_limit_rows))?;
        if reader.wants_static() {
            bring_static(&logical, &self.at, &deletions, reader).await?;
        }
        let is_left_out = !mutant::is_on(Mutant::PageRepeatsRow);
        self.range.begin_by_row(logical.prefix().row(clustering), is_left_out);
        Ok(Current::Read(logical.prefix().clone(), deletions))
    }

    async fn stride(&self, current: &mut Current, reader: &mut Reader<'_, impl PartSink>) -> Result<Pause, Error> {
        let mut pause = Pause::End;
        let visit = |row: Passed<'_>| match self.visit(row, current, reader) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(why)) => {
                pause = why;
                ControlFlow::Break(())
            }
            Err(error) => {
                pause = Pause::Failed(error);
                ControlFlow::Break(())
            }
        };
        let scanned = self.partition.scan(&self.range, &self.at, visit).await;
        scanned.map_err(|error| storage_read(&error))?;
        Ok(pause)
    }

    fn visit(
        &self,
        row: Passed<'_>,
        current: &mut Current,
        reader: &mut Reader<'_, impl PartSink>,
    ) -> Result<Option<Pause>, Error> {
        let goes_on = match current {
            Current::PassedOver(prefix, rows) if row.is_of(prefix) => {
                *rows += 1;
                let is_long = *rows >= PASSED_OVER_ROWS_MAX;
                return Ok(is_long.then(|| Pause::NextPartition(prefix.clone())));
            }
            Current::Read(prefix, _) => row.is_of(prefix),
            Current::None | Current::PassedOver(..) => false,
        };
        if !goes_on {
            let was_read = matches!(std::mem::replace(current, Current::None), Current::Read(..));
            if was_read && reader.end_partition()? == Step::Stop {
                return Ok(Some(Pause::Stop));
            }
            let (prefix, _, partition_key) = row.partition().map_err(|error| storage_read(&error))?;
            // Reading deletions is asynchronous and this callback is not, so the scan pauses for it.
            if self.has_deletions && !self.ahead.knows(&prefix) {
                let place = row.place();
                return Ok(Some(Pause::NeedDeletions { prefix, place }));
            }
            let deletions = self.ahead.of(&prefix);
            reader.begin_partition(&partition_key, None)?;
            *current = Current::Read(prefix, deletions);
        }
        let Current::Read(prefix, deletions) = current else {
            return Ok(None);
        };
        let view = RowView::parse(row.value).map_err(|error| storage_read(&error))?;
        let Some(clustering) = row.clustering(prefix).map_err(|error| storage_read(&error))? else {
            if reader.wants_static() {
                reader.set_static(row.bytes(), &view, deletions.timestamp_covering_static())?;
            }
            return Ok(None);
        };
        if !self.select.rows.covers(clustering) {
            return Ok(None);
        }
        match reader.row(clustering, row.bytes(), &view, covering(deletions, clustering))? {
            Step::Continue => Ok(None),
            Step::SkipPartition => {
                *current = Current::PassedOver(prefix.clone(), 0);
                Ok(None)
            }
            Step::Stop => Ok(Some(Pause::Stop)),
        }
    }
}
