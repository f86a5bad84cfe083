//! Conditional modifications: read, judge, write, all under the stripe lock of the partition.
//!
//! Only who holds the lock of a partition decides about it, and a snapshot taken under the lock sees every conditional write
//! before: so conditional statements on one partition happen one after the other. Before each, that is, which the store shows: what
//! a write has done that was answered with an error may come to light when the store has been opened again. Then the store refuses
//! what was judged before that, and it is judged again ([`Judged`]).
//!
//! What a refused statement answers with follows Cassandra's `CQL3CasRequest` and `ModificationStatement.buildCasResultSet`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::command::{Condition, FilterTarget, Predicate, Write, WriteTarget};
use crate::engine::read::buffer::RowBuffer;
use crate::engine::read::evaluate::Scope;
use crate::engine::read::layout::Layout;
use crate::engine::{Error, gates, storage_read};
use crate::functions::Context;
use crate::mutant::{self, Mutant};
use crate::partition::store::{Deletions, RowView};
use crate::partition::{LogicalPartition, Moment};
use crate::schema::{ColumnKind, Table};
use crate::throughput::{Charges, PartitionRef};

use super::passes::by_lists;
use super::request::{Routed, WriteRequest};
use super::room::WriteRoom;
use super::staged::{JUDGEMENTS_MAX, Judged, Outcome, Staged, given_up};
use super::{forms, newest};

/// What became of a write.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// What its conditions came to; `None`: it had none.
    pub decision: Option<Decision>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// What the conditions of a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They held; it was applied.
    Applied,
    /// They did not hold; nothing was changed.
    Refused {
        /// The columns that say why: places in `table.columns`.
        places: Vec<usize>,
        /// The rows that the conditions looked at, as they are, each with a value for each of the columns; empty: none is there.
        rows: Vec<Vec<Option<Bytes>>>,
    },
}

/// The rows that conditions look at, as they are now.
struct Current<'a> {
    table: &'a Table,
    layout: Layout,
    partition_key: &'a [u8],
    static_row: Option<Bytes>,
    /// By clustering key; `None`: nothing is stored.
    rows: BTreeMap<Vec<u8>, Option<Bytes>>,
    deletions: Deletions,
    now_seconds: i64,
    context: &'a Context,
    /// Columns that Cassandra does not read for such a request, and so shows as null.
    unread: Vec<usize>,
}

impl WriteRoom {
    /// Carries out the statements of a conditional batch, or a single conditional statement: all or none.
    ///
    /// # Errors
    /// When the statements are not all of one partition, replicas are missing, or a store fails.
    pub(crate) async fn apply_conditionally(
        &self,
        modifications: &[Routed<'_>],
        request: &WriteRequest,
        context: &Context,
        is_batch: bool,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        for _ in 0..JUDGEMENTS_MAX {
            let judged = self.judge_and_apply(modifications, request, context, is_batch, charges);
            if let Some(answer) = judged.await? {
                return Ok(answer);
            }
        }
        Err(given_up())
    }

    /// `None`: nothing was done, and the conditions have to be judged again.
    async fn judge_and_apply(
        &self,
        modifications: &[Routed<'_>],
        request: &WriteRequest,
        context: &Context,
        is_batch: bool,
        charges: &mut Charges,
    ) -> Result<Option<Written>, Error> {
        let (first, partition_key) = one_partition(modifications)?;
        refuse_mixed(modifications)?;
        gates::replicas(&self.nodes, modifications, request)?;
        let held = if mutant::is_on(Mutant::SkipStripe) {
            None
        } else {
            Some(self.lock(modifications).await)
        };
        let (passes, lists) = self.pass(modifications, request.consistency).await?;
        let by_lists = by_lists(modifications, lists.as_ref());
        let modifications = by_lists.as_deref().unwrap_or(modifications);
        let (token, partition) = modifications.first().unwrap_or(first).partitions.place(partition_key);
        let judged = Judged::now(modifications);
        let mut stored = Vec::with_capacity(modifications.len());
        for routed in modifications {
            stored.push(forms::as_stored(routed).await?);
        }
        let modifications: Vec<Routed<'_>> = modifications
            .iter()
            .zip(&stored)
            .map(|(routed, stored)| Routed {
                // A condition is of one partition, so one modification stays one.
                modification: stored.first().unwrap_or(routed.modification),
                ..*routed
            })
            .collect();
        let modifications = modifications.as_slice();
        let logical = partition.logical(first.table().storage_id, token, partition_key)?;
        // Of one moment with the timestamp to stand above: a plain write that comes between is judged by neither.
        let at = logical.now();
        let judged_at = (request.now_seconds, &at);
        let current = Current::read(modifications, &logical, partition_key, judged_at, context).await?;
        charges.enter(
            PartitionRef {
                table: first.table().storage_id,
                partition: partition.id.0,
            },
            first
                .modification
                .partition_keys
                .first()
                .map(|key| (partition.spread(token, key), key)),
        );
        current.charge(charges);
        for routed in modifications {
            if !current.allows(routed.modification)? {
                return current.refusal(modifications, is_batch).map(Some);
            }
        }
        let newest = newest::of(modifications, &logical, &at).await?;
        // Before the commit waits: a store that is to be opened again waits for its snapshots first, and this one would wait for that.
        drop(at);
        let timestamp = self.clock.above(newest)?;
        let mut staged = Staged {
            judged,
            deletes_just_before: true,
            passes,
            ..Staged::default()
        };
        for routed in modifications {
            // A member without a condition may bring a timestamp, but Cassandra writes all with that of the ballot.
            let own_time;
            let modification = if routed.modification.timestamp.is_some() {
                own_time = Write {
                    timestamp: None,
                    ..routed.modification.clone()
                };
                &own_time
            } else {
                routed.modification
            };
            let routed = Routed {
                modification,
                ..*routed
            };
            self.stage(&routed, timestamp, request, &mut staged, charges).await?;
        }
        gates::replicas(&self.nodes, modifications, request)?;
        let Outcome::Written(warnings) = staged.commit(self, request, held, charges).await? else {
            return Ok(None);
        };
        Ok(Some(Written {
            decision: Some(Decision::Applied),
            warnings,
        }))
    }
}

fn one_partition<'a>(modifications: &'a [Routed<'a>]) -> Result<(&'a Routed<'a>, &'a [u8]), Error> {
    let invalid = |text: &str| Error::Invalid(text.to_owned());
    let first = modifications
        .first()
        .ok_or_else(|| invalid("Batch with conditions is empty"))?;
    let key = first.modification.partition_keys.first();
    let key = key.ok_or_else(|| invalid("IN on the partition key is not supported with conditional updates"))?;
    for routed in modifications {
        if routed.table().id != first.table().id {
            return Err(invalid("Batch with conditions cannot span multiple tables"));
        }
        if routed.modification.partition_keys.iter().any(|other| other != key) {
            return Err(invalid("Batch with conditions cannot span multiple partitions"));
        }
    }
    Ok((first, key))
}

/// The row that a condition is about; `None`: the static row.
fn condition_row(modification: &Write) -> Option<&[u8]> {
    match &modification.target {
        WriteTarget::Rows(rows) => rows.first().map(Vec::as_slice),
        // The one row of a partition without clustering columns.
        WriteTarget::Partition if modification.table.clustering_count == 0 => Some(&[]),
        WriteTarget::Static | WriteTarget::Ranges(_) | WriteTarget::Partition => None,
    }
}

/// Whether a place of the table is a static column.
fn is_static(table: &Table, place: usize) -> bool {
    let column = table.columns.get(place);
    column.is_some_and(|column| column.kind == ColumnKind::Static)
}

/// The column that one condition of an IF looks at.
fn column_of(filter: &Predicate) -> Option<usize> {
    match &filter.target {
        FilterTarget::Column(place)
        | FilterTarget::Analysed(place, _)
        | FilterTarget::Element(place, _)
        | FilterTarget::Field(place, _) => Some(*place),
        FilterTarget::Tuple(_) | FilterTarget::Token => None,
    }
}

/// The rows that a modification's IF is about (`None` is the static row): conditions on static columns are the static row's, also
/// where the statement names another, which then is not read at all (Cassandra's `ColumnConditions.addConditionsTo`).
pub(super) fn rows_asked(modification: &Write) -> impl Iterator<Item = Option<&[u8]>> {
    let row = condition_row(modification);
    let (own, of_static) = match &modification.condition {
        Condition::Always => (false, false),
        Condition::Exists | Condition::NotExists => (true, false),
        Condition::Columns(conditions) => {
            let places = || conditions.iter().filter_map(column_of);
            let table = &modification.table;
            (
                places().any(|place| !is_static(table, place)),
                places().any(|place| is_static(table, place)),
            )
        }
    };
    own.then_some(row).into_iter().chain(of_static.then_some(None))
}

/// One row cannot be asked to be there, not to be there, and to have values.
fn refuse_mixed(modifications: &[Routed<'_>]) -> Result<(), Error> {
    let mut seen: BTreeMap<Option<&[u8]>, &Condition> = BTreeMap::new();
    for routed in modifications {
        let condition = &routed.modification.condition;
        for row in rows_asked(routed.modification) {
            let Some(before) = seen.insert(row, condition) else {
                continue;
            };
            let text = match (before, condition) {
                (Condition::Exists, Condition::NotExists) | (Condition::NotExists, Condition::Exists) => {
                    "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row"
                }
                (Condition::Columns(_), Condition::Exists) => "Cannot mix IF conditions and IF EXISTS for the same row",
                (Condition::Columns(_), Condition::NotExists)
                | (Condition::Exists | Condition::NotExists, Condition::Columns(_)) => {
                    "Cannot mix IF conditions and IF NOT EXISTS for the same row"
                }
                _ => continue,
            };
            return Err(Error::Invalid(text.to_owned()));
        }
    }
    Ok(())
}

/// What Cassandra does not read, and so shows as null (`CQL3CasRequest.columnsToRead`): static columns in no condition unless a
/// static row is written, regular ones in no condition unless a row is.
fn unread(table: &Table, modifications: &[Routed<'_>]) -> Vec<usize> {
    let writes_static = modifications.iter().any(|routed| {
        let modification = routed.modification;
        matches!(modification.target, WriteTarget::Static) || modification.names_static
    });
    let writes_rows = modifications
        .iter()
        .any(|routed| !matches!(routed.modification.target, WriteTarget::Static));
    let in_condition = |place: &usize| {
        modifications.iter().any(|routed| {
            let modification = routed.modification;
            matches!(modification.condition, Condition::Columns(_)) && modification.condition_columns.contains(place)
        })
    };
    (0..table.columns.len())
        .filter(|place| match table.columns.get(*place).map(|column| column.kind) {
            Some(ColumnKind::Static) => !writes_static && !in_condition(place),
            Some(ColumnKind::Regular) => !writes_rows && !in_condition(place),
            _ => false,
        })
        .collect()
}

fn asks_existence(modifications: &[Routed<'_>]) -> bool {
    modifications
        .iter()
        .any(|routed| matches!(routed.modification.condition, Condition::Exists | Condition::NotExists))
}

impl<'a> Current<'a> {
    async fn read(
        modifications: &'a [Routed<'a>],
        partition: &LogicalPartition<'_>,
        partition_key: &'a [u8],
        (now_seconds, at): (i64, &Moment),
        context: &'a Context,
    ) -> Result<Self, Error> {
        #[expect(clippy::expect_used, reason = "the caller took its partition from the first one")]
        let table = modifications
            .first()
            .map(Routed::table)
            .expect("there is a modification");
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
            unread: unread(table, modifications),
        };
        // What is not read does not show that a row is there.
        let unread = std::mem::take(&mut current.unread);
        current.layout.statics.retain(|wanted| !unread.contains(&wanted.place));
        current.layout.regulars.retain(|wanted| !unread.contains(&wanted.place));
        current.unread = unread;
        if table.has_static() {
            let found = partition.get(&partition.prefix().static_row(), at).await;
            let found = found.map_err(|error| storage_read(&error))?;
            current.static_row = found.map(|found| found.value);
        }
        for routed in modifications {
            for clustering in rows_asked(routed.modification).flatten() {
                let found = partition.get(&partition.prefix().row(clustering), at).await;
                let found = found.map_err(|error| storage_read(&error))?;
                let value = found.map(|found| found.value);
                current.rows.insert(clustering.to_vec(), value);
            }
        }
        if current.rows.is_empty() {
            current.read_first_live(partition, at).await?;
        }
        Ok(current)
    }

    /// With conditions on static columns alone, a partition with rows is told from one without by its first row.
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

    /// Charges the rows that were looked at, each as one that is read by its key; at least one is.
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

    /// A buffer with the partition's values and, where given, a row's; whether the row (or else the static row) is there.
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
                let scope = Scope {
                    table: self.table,
                    row: &buffer,
                    aggregates: &[],
                    now_seconds: self.now_seconds,
                    context: self.context,
                };
                for condition in conditions {
                    if !scope.meets(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn refusal(&self, modifications: &[Routed<'_>], is_batch: bool) -> Result<Written, Error> {
        let places = self.columns_shown(modifications, is_batch);
        let mut rows = Vec::new();
        let row = |buffer: &RowBuffer| {
            let is_read = |place: &&usize| !self.unread.contains(place);
            let cells = places.iter().map(|place| {
                let place = Some(place).filter(is_read)?;
                buffer.get(*place).map(Bytes::copy_from_slice)
            });
            cells.collect::<Vec<_>>()
        };
        for (clustering, stored) in &self.rows {
            if let Some(bytes) = stored {
                let (buffer, is_there) = self.fill(Some((clustering, bytes)))?;
                if is_there {
                    rows.push(row(&buffer));
                }
            }
        }
        let (buffer, has_static) = self.fill(None)?;
        if rows.is_empty() && has_static {
            rows.push(row(&buffer));
        }
        Ok(Written {
            decision: Some(Decision::Refused { places, rows }),
            warnings: Vec::new(),
        })
    }

    /// The columns that a refusal shows: everything when some statement asks for existence; in a batch the key comes first.
    fn columns_shown(&self, modifications: &[Routed<'_>], is_batch: bool) -> Vec<usize> {
        if asks_existence(modifications) {
            return (0..self.table.columns.len()).collect();
        }
        let keys = self.table.partition_key_count + self.table.clustering_count;
        let mut places: Vec<usize> = if is_batch { (0..keys).collect() } else { Vec::new() };
        for routed in modifications {
            for place in &routed.modification.condition_columns {
                if !places.contains(place) {
                    places.push(*place);
                }
            }
        }
        places
    }
}
