//! Checks conditions where the logical partition lives: reads its rows and compares them. If a condition fails, returns
//! the rows.
//!
//! The answer of a refused statement follows Cassandra's `CQL3CasRequest` and
//! `ModificationStatement.buildCasResultSet`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::asked::{condition_row, rows_asked};
use super::newest;
use crate::engine::row::buffer::RowBuffer;
use crate::engine::row::evaluate::Scope;
use crate::engine::row::layout::Layout;
use crate::engine::{Error, storage_read};
use crate::partition::{Hosted, LogicalPartition, Moment};
use crate::throughput::{Charges, PartitionRef};
use helenus_schema::command::{Condition, Write, WriteTarget};
use helenus_schema::schema::{ColumnKind, Table};
use helenus_storage::storage::{Deletions, RowView};
use helenus_types::functions::Context;
use helenus_types::token::Token;

/// The writes of a conditional request, all of one logical partition, whose conditions are to be checked.
pub(crate) struct ConditionPart<'a> {
    /// The physical partition.
    pub(crate) partition: &'a Hosted,
    /// The token of the key.
    pub(crate) token: Token,
    /// The partition key.
    pub(crate) key: &'a Bytes,
    /// Its table.
    pub(crate) table: &'a Table,
    /// The writes, in the encodings in which their rows are stored.
    pub(crate) writes: &'a [&'a Write],
    /// Whether they came as a batch.
    pub(crate) is_batch: bool,
}

/// The result of a part's conditions.
pub(crate) enum Verdict {
    /// All of them hold.
    Holds {
        /// The newest timestamp of the rows that they check or write; the writes must be dated above it. `None` means
        /// that there is no such row.
        newest: Option<i64>,
    },
    /// One of them does not hold; nothing must be written.
    Refused(Decision),
}

/// Checks the conditions of a request, under the lock of their logical partition.
///
/// # Errors
/// When the store fails.
pub(crate) async fn check(
    part: &ConditionPart<'_>,
    now_seconds: i64,
    context: &Context,
    charges: &mut Charges,
) -> Result<Verdict, Error> {
    let logical = part.partition.logical(part.table.storage_id, part.token, part.key)?;
    // One snapshot serves the conditions and the newest timestamp, so that a plain write in between affects neither.
    // The snapshot ends here, before the wait for the commit. A store that is being reopened first waits for its
    // snapshots to end, so a snapshot kept until the commit's end would be a deadlock.
    let at = logical.now();
    let current = Current::read(part, &logical, (now_seconds, &at), context).await?;
    charges.enter(
        PartitionRef {
            table: part.table.storage_id,
            partition: part.partition.id.0,
        },
        Some((part.partition.spread(part.token, part.key), part.key)),
    );
    current.charge(charges);
    for (member, write) in part.writes.iter().enumerate() {
        if !current.allows(write)? {
            let refusal = current.refusal(part.writes, part.is_batch, member);
            return refusal.map(Verdict::Refused);
        }
    }
    let newest = newest::of(part.writes, &logical, &at).await?;
    Ok(Verdict::Holds { newest })
}

/// The result of the conditions of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They held; it was applied.
    Applied,
    /// They did not hold; nothing was changed.
    Refused {
        /// The first write of the batch whose condition did not hold, from 0.
        member: usize,
        /// The columns to return with a refusal: positions in `table.columns`.
        places: Vec<usize>,
        /// The rows that the conditions read, in their current state, each with a value for each of the columns. Empty
        /// if none exists.
        rows: Vec<Vec<Option<Bytes>>>,
    },
}

/// The rows that conditions read, in their current state.
struct Current<'a> {
    table: &'a Table,
    layout: Layout,
    partition_key: &'a [u8],
    static_row: Option<Bytes>,
    /// By clustering key. `None` means that no row is stored.
    rows: BTreeMap<Vec<u8>, Option<Bytes>>,
    deletions: Deletions,
    now_seconds: i64,
    context: &'a Context,
    /// Columns that Cassandra does not read for such a request; a refusal shows them as null.
    unread: Vec<usize>,
}

/// Columns that Cassandra does not read, and so shows as null (`CQL3CasRequest.columnsToRead`). These are static
/// columns without a condition, unless a statement with one writes the static row, and regular columns without a condition,
/// unless a statement writes a row (`BatchStatement`).
fn unread(table: &Table, writes: &[&Write]) -> Vec<usize> {
    let writes_static = writes
        .iter()
        .filter(|write| write.condition != Condition::Always)
        .any(|write| matches!(write.target, WriteTarget::Static) || write.names_static);
    let writes_rows = writes.iter().any(|write| !matches!(write.target, WriteTarget::Static));
    let in_condition = |place: &usize| {
        writes
            .iter()
            .any(|write| matches!(write.condition, Condition::Columns(_)) && write.condition_columns.contains(place))
    };
    (0..table.columns.len())
        .filter(|place| match table.columns.get(*place).map(|column| column.kind) {
            Some(ColumnKind::Static) => !writes_static && !in_condition(place),
            Some(ColumnKind::Regular) => !writes_rows && !in_condition(place),
            _ => false,
        })
        .collect()
}

fn asks_existence(writes: &[&Write]) -> bool {
    writes
        .iter()
        .any(|write| matches!(write.condition, Condition::Exists | Condition::NotExists))
}

impl<'a> Current<'a> {
    async fn read(
        part: &ConditionPart<'a>,
        partition: &LogicalPartition<'_>,
        (now_seconds, at): (i64, &Moment),
        context: &'a Context,
    ) -> Result<Self, Error> {
        let (table, partition_key, writes) = (part.table, part.key, part.writes);
        let deletions = partition.deletions(at).await;
        let mut current = Self {
            table,
            layout: Layout::whole(table, false),
            partition_key,
            static_row: None,
            rows: BTreeMap::new(),
            deletions: deletions.map_err(|error| storage_read(&error))?,
            now_seconds,
            context,
            unread: unread(table, writes),
        };
        // Columns that are not read cannot show that a row exists.
        let unread = std::mem::take(&mut current.unread);
        current.layout.statics.retain(|wanted| !unread.contains(&wanted.place));
        current.layout.regulars.retain(|wanted| !unread.contains(&wanted.place));
        current.unread = unread;
        if table.has_static() {
            let found = partition.get(&partition.prefix().static_row(), at).await;
            let found = found.map_err(|error| storage_read(&error))?;
            current.static_row = found.map(|found| found.value);
        }
        for write in writes {
            for clustering in rows_asked(write).flatten() {
                let found = partition.get(&partition.prefix().row(clustering), at).await;
                let found = found.map_err(|error| storage_read(&error))?;
                let value = found.map(|found| found.value);
                current.rows.insert(clustering.to_vec(), value);
            }
        }
        if current.rows.is_empty() && writes.iter().any(|write| write.condition != Condition::Always) {
            current.read_first_live(partition, at).await?;
        }
        Ok(current)
    }

    /// With conditions on static columns alone, the first row shows whether the partition has rows.
    async fn read_first_live(&mut self, partition: &LogicalPartition<'_>, at: &Moment) -> Result<(), Error> {
        use std::ops::Bound;
        let mut outcome = Ok(());
        let mut found = None;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let scanned = partition.scan(all, false, at, |clustering, row| {
            match self.fill(Some((clustering, row.value))) {
                Ok((_, true)) => {
                    found = Some((clustering.to_vec(), Some(Bytes::copy_from_slice(row.value))));
                    ControlFlow::Break(())
                }
                Ok((_, false)) => ControlFlow::Continue(()),
                Err(error) => {
                    outcome = Err(error);
                    ControlFlow::Break(())
                }
            }
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        self.rows.extend(found);
        outcome
    }

    /// Charges the rows that were read, each as a lookup by key, and at least one.
    fn charge(&self, charges: &mut Charges) {
        let of_static = self.static_row.as_ref().map(Bytes::len);
        let rows = self.rows.iter();
        let rows = rows.map(|(clustering, row)| row.as_ref().map_or(0, |row| clustering.len() + row.len()));
        let mut looked_at = 0;
        for bytes in rows.chain(of_static) {
            looked_at += 1;
            charges.look_before_write(bytes);
        }
        if looked_at == 0 {
            charges.look_before_write(0);
        }
    }

    /// A buffer with the partition's values and, if given, a row's; and whether the row (or else the static row)
    /// exists.
    fn fill(&self, row: Option<(&[u8], &[u8])>) -> Result<(RowBuffer, bool), Error> {
        let mut buffer = RowBuffer::new(&self.layout);
        buffer.begin_partition(self.table, &self.layout, self.partition_key)?;
        let mut is_there = false;
        if let Some(bytes) = &self.static_row {
            let view = RowView::parse(bytes).map_err(|error| storage_read(&error))?;
            let shadow = self.deletions.timestamp_covering_static();
            is_there = buffer.set_static(&self.layout, &view, shadow, self.now_seconds)?;
        }
        if let Some((clustering, bytes)) = row {
            let view = RowView::parse(bytes).map_err(|error| storage_read(&error))?;
            let shadow = self.deletions.timestamp_covering(clustering);
            buffer.begin_row(self.table, &self.layout);
            is_there = buffer.set_row(&self.layout, &view, shadow, self.now_seconds)?;
            if is_there {
                buffer.set_clustering(self.table, &self.layout, clustering)?;
            }
        }
        Ok((buffer, is_there))
    }

    fn stored(&self, clustering: &'a [u8]) -> Option<(&'a [u8], &[u8])> {
        let bytes = self.rows.get(clustering)?.as_ref()?;
        Some((clustering, bytes))
    }

    /// What conditions and masks compute with.
    fn scope<'s>(&'s self, row: &'s RowBuffer) -> Scope<'s> {
        Scope {
            table: self.table,
            row,
            aggregates: &[],
            now_seconds: self.now_seconds,
            context: self.context,
        }
    }

    fn allows(&self, modification: &'a Write) -> Result<bool, Error> {
        let row = condition_row(modification);
        let about_static = row.is_none();
        let (buffer, found) = self.fill(row.and_then(|clustering| self.stored(clustering)))?;
        let is_there = found && (about_static || row.is_some_and(|clustering| self.stored(clustering).is_some()));
        match &modification.condition {
            Condition::Always => Ok(true),
            Condition::Exists => Ok(is_there),
            Condition::NotExists => Ok(!is_there),
            Condition::Columns(conditions) => {
                let scope = self.scope(&buffer);
                for condition in conditions {
                    if !scope.meets(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn refusal(&self, writes: &[&Write], is_batch: bool, member: usize) -> Result<Decision, Error> {
        let places = self.columns_shown(writes, is_batch);
        let masks = writes.iter().find_map(|write| write.masks.as_deref());
        let mut rows = Vec::new();
        let row = |buffer: &RowBuffer| {
            let cells = places
                .iter()
                .map(|place| match masks.and_then(|masks| masks.get(place)) {
                    _ if self.unread.contains(place) => Ok(None),
                    Some(mask) => self.scope(buffer).evaluate(mask),
                    None => Ok(buffer.get(*place).map(Bytes::copy_from_slice)),
                });
            cells.collect::<Result<Vec<_>, Error>>()
        };
        for (clustering, stored) in &self.rows {
            if let Some(bytes) = stored {
                let (buffer, is_there) = self.fill(Some((clustering, bytes)))?;
                if is_there {
                    rows.push(row(&buffer)?);
                }
            }
        }
        let (buffer, has_static) = self.fill(None)?;
        if rows.is_empty() && has_static {
            rows.push(row(&buffer)?);
        }
        Ok(Decision::Refused { member, places, rows })
    }

    /// The columns that a refusal returns: all of them if some statement has IF EXISTS or IF NOT EXISTS. In a batch the
    /// key comes first.
    fn columns_shown(&self, writes: &[&Write], is_batch: bool) -> Vec<usize> {
        if asks_existence(writes) {
            return (0..self.table.columns.len()).collect();
        }
        let keys = self.table.partition_key_count + self.table.clustering_count;
        let mut places: Vec<usize> = if is_batch { (0..keys).collect() } else { Vec::new() };
        for write in writes {
            for place in &write.condition_columns {
                if !places.contains(place) {
                    places.push(*place);
                }
            }
        }
        places
    }
}
