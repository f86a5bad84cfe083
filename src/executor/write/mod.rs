//! Modifications: bound statements → one batch a store → durable.
//!
//! A plain write reads nothing and locks nothing: it becomes fragments that the store merges. Counters, list positions and
//! discards read first, under the stripe lock of their partitions; conditions too ([`condition`]).

pub(crate) mod clock;
pub(crate) mod condition;
mod forms;
pub(crate) mod fragment;
pub(crate) mod passes;
pub(crate) mod size;
mod whole_row;

use std::sync::Arc;

use bytes::Bytes;

use crate::executor::batch_log;
use crate::executor::catalog::Catalog;
use crate::executor::disturb::admit_writes;
use crate::executor::limits::{SizeLimits, too_large};
use crate::executor::logical::{self, Admitted, LogicalPartitions, Weight};
use crate::executor::{Error, storage_read, storage_write};
use crate::mutant::{self, Mutant};
use crate::partition::store::{
    Batch, CellState, Committed, Error as StoreError, Opening, RangeTombstone, Row, Space, Store, key,
};
use crate::partition::{Consistency, Held, Nodes, PhysicalPartition, StoreId, Stripes, TablePartitions};
use crate::planner::bound::{BoundModification, BoundOperation, BoundTarget, ClusteringRange, ModificationKind, Value};
use crate::planner::guardrails::{CELL_BYTES, Threshold};
use crate::schema::{Column, ColumnKind, Table};
use crate::throughput::{Charges, PartitionRef, RowWrite};
use crate::token::Token;

use clock::{Ballots, ListKeys, WriteClock};
use fragment::{FragmentWriter, Stamp, reads_before};
use passes::{Passes, by_lists};
use size::BatchSize;

/// What all modifications of a server share.
#[derive(Debug)]
pub(crate) struct WriteRoom {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: WriteClock,
    pub(crate) ballots: Ballots,
    pub(crate) list_keys: ListKeys,
    pub(crate) stripes: Stripes,
    pub(crate) limits: SizeLimits,
    pub(crate) logical: Arc<LogicalPartitions>,
    pub(crate) nodes: Arc<Nodes>,
    /// A time to live is a row's, as in Cosmos, not a cell's.
    pub(crate) ttl_of_rows: bool,
}

/// What of a request matters to its writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRequest {
    /// µs; `None`: the node's.
    pub(crate) timestamp_micros: Option<i64>,
    pub(crate) now_seconds: i64,
    pub(crate) consistency: Consistency,
    /// The level at which a condition is decided.
    pub(crate) serial_consistency: Consistency,
    /// The protocol's name of the kind of write, for errors.
    pub(crate) write_type: &'static str,
}

/// A modification and where its table's rows are.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'a> {
    pub(crate) modification: &'a BoundModification,
    pub(crate) partitions: &'a TablePartitions,
}

impl Routed<'_> {
    fn table(&self) -> &Table {
        &self.modification.table
    }

    fn reads_before(&self) -> bool {
        self.modification
            .operations
            .iter()
            .any(|(_, operation)| reads_before(operation))
    }

    fn stripes(&self) -> impl Iterator<Item = (u32, i64)> {
        let table = self.modification.table.storage_id;
        self.modification
            .partition_keys
            .iter()
            .map(move |key| (table, Token::of(key).value()))
    }
}

/// What a change of a batch is charged as.
struct Marked {
    partition: PartitionRef,
    token: i64,
    partition_key: Bytes,
    how: RowWrite,
    /// Bytes of what the write says, for engines that do not look at the row.
    fragment_bytes: usize,
    /// Indexed columns that it touches.
    indexed: usize,
    /// It is charged.
    is_done: bool,
}

/// Changes of one store.
struct StagedStore {
    id: StoreId,
    store: Store,
    batch: Batch,
    /// One for each change of the batch.
    marked: Vec<Marked>,
}

/// What came of staged changes.
pub(crate) enum Outcome {
    /// Durable; what the client is to be warned of.
    Written(Vec<String>),
    /// Nothing was done: what they follow from may not be so any more ([`Judged`]).
    JudgeAgain,
}

/// How often changes are judged again before they are given up: each time the store failed and came back meanwhile.
const JUDGEMENTS_MAX: usize = 8;

/// The openings of the stores that a request's reads were made in, if what it writes follows from them: a commit before that
/// failed may have been done nevertheless, which the stores show only when they are opened again.
#[derive(Default)]
pub(crate) struct Judged(Vec<(StoreId, Opening)>);

impl Judged {
    /// Taken under the locks, before anything is read.
    fn now(modifications: &[Routed<'_>]) -> Self {
        let mut openings: Vec<(StoreId, Opening)> = Vec::with_capacity(1);
        if mutant::is_on(Mutant::JudgeByOldOpening) {
            return Self(openings);
        }
        for routed in modifications {
            for partition_key in &routed.modification.partition_keys {
                let partition = routed.partitions.of(Token::of(partition_key));
                if openings.iter().all(|(id, _)| *id != partition.store_id) {
                    openings.push((partition.store_id, partition.store.opening()));
                }
            }
        }
        Self(openings)
    }

    fn of(&self, store: StoreId) -> Option<Opening> {
        let found = self.0.iter().find(|(id, _)| *id == store);
        found.map(|(_, opening)| *opening)
    }
}

/// Changes on their way to their stores.
#[derive(Default)]
pub(crate) struct Staged {
    stores: Vec<StagedStore>,
    judged: Judged,
    /// Rows of counters, and rows that are rewritten whole, as they are written: what later members of a batch add to. A list's element
    /// is looked for in what was stored before the batch, as in Cassandra.
    added_to: Vec<(Vec<u8>, Row)>,
    /// Deletions of partitions and ranges are made 1 µs before what is written beside them, so that they leave it: the case in
    /// conditional batches (Cassandra's `PartitionUpdate.withUpdatedTimestamps`).
    deletes_just_before: bool,
    /// What is measured of a batch; `None`: nothing.
    size: Option<BatchSize>,
    /// What is written to each logical partition.
    weights: Vec<Weight>,
    /// Kept until all is committed.
    passes: Passes,
}

impl Staged {
    /// The batch to which one change is to be added, which is charged as marked.
    fn batch(&mut self, partition: &PhysicalPartition, marked: Marked) -> &mut Batch {
        let mut stores = self.stores.iter();
        let found = stores.position(|staged| staged.id == partition.store_id && !mutant::is_on(Mutant::BatchInParts));
        let place = found.unwrap_or_else(|| {
            self.stores.push(StagedStore {
                id: partition.store_id,
                store: partition.store.clone(),
                batch: Batch::new(),
                marked: Vec::with_capacity(1),
            });
            self.stores.len() - 1
        });
        #[expect(clippy::expect_used, reason = "found or pushed just before")]
        let staged = self.stores.get_mut(place).expect("the store is there");
        staged.marked.push(marked);
        &mut staged.batch
    }

    /// Adds what is written to a logical partition.
    fn weigh(&mut self, one: &OnePartition<'_>, row_bytes: u64, entry_bytes: u64) {
        let modification = one.routed.modification;
        let deletes = modification.kind == ModificationKind::Delete;
        if let Some(last) = self.weights.last_mut()
            && last.deletes == deletes
            && last.token == one.token.value()
            && last.table.storage_id == modification.table.storage_id
        {
            last.row_bytes += row_bytes;
            last.entry_bytes += entry_bytes;
            return;
        }
        self.weights.push(Weight {
            table: Arc::clone(&modification.table),
            token: one.token.value(),
            key: one.partition_key.clone(),
            store: one.partition.store.clone(),
            row_bytes,
            entry_bytes,
            deletes,
        });
    }

    /// Commits what was staged; durable when it returns. A commit goes on when its request is dropped, and so do its locks: who
    /// reads under them next must see what it has done.
    ///
    /// # Errors
    /// When a limit would be passed, and nothing was written then; when a store refuses or fails.
    pub(crate) async fn commit(
        mut self,
        room: &WriteRoom,
        request: &WriteRequest,
        held: Option<Held>,
        charges: &mut Charges,
    ) -> Result<Outcome, Error> {
        let bytes = self.weights.iter().map(|weight| weight.row_bytes).sum();
        room.limits
            .check_request(bytes, request.consistency, request.write_type)?;
        let mut admitted = room.logical.admit(&self.weights, request.now_seconds).await?;
        if !admitted.records.is_empty() {
            // In the same commit where the store that has the catalog is written to anyway, so that it costs nothing.
            let main = self.of_main(&room.catalog);
            for (key, value) in admitted.records.drain(..) {
                main.batch.put(Space::Catalog, key, value);
            }
        }
        let warnings = std::mem::take(&mut admitted.warnings);
        let is_apart = self.stores.iter().zip(self.stores.iter().skip(1));
        let is_logged = request.write_type == "BATCH" && is_apart.into_iter().any(|(one, next)| one.id != next.id);
        // What is copied meanwhile is noted after the commit, so that has to come, too, when the request goes.
        let is_spawned = is_logged || self.passes.are_copied();
        match held {
            held if is_spawned || (held.is_some() && !mutant::is_on(Mutant::UnlockAtCancel)) => {
                let (request, nodes, catalog) = (*request, Arc::clone(&room.nodes), Arc::clone(&room.catalog));
                let committing = tokio::spawn(async move {
                    let mut commits = Vec::new();
                    let each = |committed, marked| commits.push((committed, marked));
                    let outcome = if is_logged {
                        self.commit_logged(&request, &nodes, &catalog, admitted, each).await
                    } else {
                        self.commit_all(&request, &nodes, admitted, each).await
                    };
                    drop(held);
                    (commits, outcome)
                });
                let committed = committing.await;
                let (commits, outcome) = committed.map_err(|error| Error::Server(error.to_string()))?;
                for (committed, marked) in commits {
                    charge(&committed, marked, charges);
                }
                if !outcome? {
                    return Ok(Outcome::JudgeAgain);
                }
            }
            _held => {
                let committing = self.commit_all(request, &room.nodes, admitted, |committed, marked| {
                    charge(&committed, marked, charges)
                });
                if !committing.await? {
                    return Ok(Outcome::JudgeAgain);
                }
            }
        }
        Ok(Outcome::Written(warnings))
    }

    /// What goes to the store that has the catalog.
    fn of_main(&mut self, catalog: &Catalog) -> &mut StagedStore {
        let place = self.stores.iter().position(|staged| staged.id == StoreId::MAIN);
        let place = place.unwrap_or_else(|| {
            self.stores.push(StagedStore {
                id: StoreId::MAIN,
                store: catalog.main().clone(),
                batch: Batch::new(),
                marked: Vec::new(),
            });
            self.stores.len() - 1
        });
        #[expect(clippy::expect_used, reason = "found or pushed just before")]
        self.stores.get_mut(place).expect("the store is there")
    }

    /// Commits what goes to several stores so that all of it is written, or none (batch_log.rs).
    async fn commit_logged(
        mut self,
        request: &WriteRequest,
        nodes: &Nodes,
        catalog: &Arc<Catalog>,
        admitted: Admitted,
        each: impl FnMut(Committed, Vec<Marked>),
    ) -> Result<bool, Error> {
        let mut record = Vec::new();
        for staged in &self.stores {
            staged.batch.encode_merges(&mut record);
        }
        let logged = (catalog.new_batch(), Bytes::from(record));
        let mut batch = Batch::new();
        batch.put(Space::Catalog, logged.0.clone(), logged.1.clone());
        let recorded = catalog.main().commit(batch).await;
        if let Err(error) = recorded {
            batch_log::forget_behind(catalog, logged.0);
            return Err(storage_write(&error, request.consistency, request.write_type));
        }
        // The main store's part comes last, and with it the record goes.
        self.of_main(catalog).batch.delete(Space::Catalog, logged.0.clone());
        self.stores.sort_by_key(|staged| staged.id == StoreId::MAIN);
        let committed = match self.commit_all(request, nodes, admitted, each).await {
            // Nothing was done, and what will be has a record of its own.
            Ok(false) => {
                let mut batch = Batch::new();
                batch.delete(Space::Catalog, logged.0.clone());
                let forgotten = catalog.main().commit(batch).await;
                if forgotten.is_err() {
                    batch_log::forget_behind(catalog, logged.0);
                }
                return forgotten
                    .map(|_| false)
                    .map_err(|error| storage_write(&error, request.consistency, request.write_type));
            }
            committed => committed,
        };
        if committed.is_err() {
            batch_log::replay_behind(catalog, logged);
        }
        committed
    }

    /// Whether it was done; if not, nothing was, and it has to be judged again.
    async fn commit_all(
        self,
        request: &WriteRequest,
        nodes: &Nodes,
        mut admitted: Admitted,
        mut each: impl FnMut(Committed, Vec<Marked>),
    ) -> Result<bool, Error> {
        let mut is_begun = false;
        for StagedStore {
            id,
            store,
            mut batch,
            marked,
        } in self.stores
        {
            if let Some(opening) = self.judged.of(id) {
                batch.only_in(opening);
            }
            if mutant::is_on(Mutant::AcknowledgeBeforeCommit) {
                tokio::spawn(async move { store.commit(batch).await });
                continue;
            }
            if !batch.is_empty() {
                let to_note = self.passes.keys_to_note(&batch);
                let before = nodes.keeps_moments().then(|| store.snapshot());
                let committed = store.commit_rows(batch).await;
                self.passes.note(&to_note);
                let committed = match committed {
                    Err(StoreError::OpenedAgain) if !is_begun => return Ok(false),
                    committed => {
                        committed.map_err(|error| storage_write(&error, request.consistency, request.write_type))?
                    }
                };
                is_begun = true;
                if let Some(before) = before {
                    nodes.note_commit(id, before, store.snapshot());
                }
                if admitted.is_watched() {
                    for written in committed.rows() {
                        if let Some(marked) = marked.get(written.change) {
                            let bytes =
                                [written.before_bytes, written.after_bytes].map(|bytes| bytes.unwrap_or(0) as u64);
                            admitted.made((marked.partition.table, marked.token), bytes);
                        }
                    }
                }
                each(committed, marked);
            }
        }
        Ok(true)
    }
}

/// Charges a commit: by what the committer found where it looked, which it must to merge; elsewhere, as in SlateDB, where fragments are
/// written unseen, INSERT counts as new, and what the write says as the row.
fn charge(committed: &Committed, mut marked: Vec<Marked>, charges: &mut Charges) {
    for written in committed.rows() {
        let Some(marked) = marked.get_mut(written.change) else {
            continue;
        };
        let row_bytes = match marked.how {
            RowWrite::Delete => written.before_bytes.unwrap_or(0),
            RowWrite::Insert | RowWrite::Update => written.after_bytes.unwrap_or(0),
        };
        marked.charge(row_bytes, written.before_bytes.is_some(), charges);
    }
    for marked in marked.iter_mut().filter(|marked| !marked.is_done) {
        marked.charge(marked.fragment_bytes, false, charges);
    }
}

impl Marked {
    fn charge(&mut self, row_bytes: usize, existed: bool, charges: &mut Charges) {
        self.is_done = true;
        charges.enter(self.partition, Some((self.token, &self.partition_key)));
        charges.write(self.how, row_bytes, existed, self.indexed);
    }
}

impl WriteRoom {
    /// Carries out modifications without conditions, all at one timestamp unless they bring their own. `size` is how large they
    /// may be together; `None`: any size. Gives a warning when they are large.
    ///
    /// # Errors
    /// When replicas are missing, an operation cannot be applied, a store refuses, or they are too large.
    pub(crate) async fn apply(
        &self,
        modifications: &[Routed<'_>],
        request: &WriteRequest,
        size: Option<&Threshold>,
        charges: &mut Charges,
    ) -> Result<Vec<String>, Error> {
        for _ in 0..JUDGEMENTS_MAX {
            if let Outcome::Written(warnings) = self.apply_once(modifications, request, size, charges).await? {
                return Ok(warnings);
            }
        }
        Err(storage_write(
            &StoreError::OpenedAgain,
            request.consistency,
            request.write_type,
        ))
    }

    async fn apply_once(
        &self,
        modifications: &[Routed<'_>],
        request: &WriteRequest,
        size: Option<&Threshold>,
        charges: &mut Charges,
    ) -> Result<Outcome, Error> {
        let must_read = modifications
            .iter()
            .any(|routed| routed.reads_before() || forms::must_look(routed.table()) || self.rewrites(routed));
        let held = if must_read {
            Some(self.lock(modifications).await)
        } else {
            None
        };
        let (passes, lists) = self.pass(modifications, request.consistency).await?;
        let by_lists = by_lists(modifications, lists.as_ref());
        let modifications = by_lists.as_deref().unwrap_or(modifications);
        let mut staged = Staged {
            size: size.map(|_| BatchSize::default()),
            judged: if must_read {
                Judged::now(modifications)
            } else {
                Judged::default()
            },
            passes,
            ..Staged::default()
        };
        let timestamp = request.timestamp_micros.unwrap_or_else(|| self.clock.next_micros());
        for routed in modifications {
            let stored = if must_read {
                forms::as_stored(routed).await?
            } else {
                None
            };
            let modification = stored.as_ref().unwrap_or(routed.modification);
            let routed = Routed {
                modification,
                ..*routed
            };
            self.stage(&routed, timestamp, request, &mut staged, charges).await?;
        }
        let warning = match (size, staged.size.take()) {
            (Some(threshold), Some(size)) => {
                let modifications: Vec<_> = modifications.iter().map(|routed| routed.modification).collect();
                size.judge(threshold, &modifications)?
            }
            _ => None,
        };
        admit_writes(&self.nodes, modifications, request)?;
        let mut outcome = staged.commit(self, request, held, charges).await?;
        if let Outcome::Written(warnings) = &mut outcome {
            warnings.extend(warning);
        }
        Ok(outcome)
    }

    /// Whether what is stored of a modification's rows is written again.
    fn rewrites(&self, routed: &Routed<'_>) -> bool {
        self.ttl_of_rows && whole_row::concerns(routed.modification)
    }

    /// Locks the logical partitions of these modifications.
    pub(crate) async fn lock(&self, modifications: &[Routed<'_>]) -> Held {
        self.stripes
            .lock_all(modifications.iter().flat_map(Routed::stripes))
            .await
    }

    /// Adds what a modification writes.
    pub(crate) async fn stage(
        &self,
        routed: &Routed<'_>,
        timestamp_micros: i64,
        request: &WriteRequest,
        staged: &mut Staged,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let modification = routed.modification;
        let ttl = modification
            .ttl_seconds
            .unwrap_or_else(|| u32::try_from(routed.table().options.default_time_to_live).unwrap_or(0));
        self.limits.check_ttl(ttl)?;
        refuse_overflow(routed.table(), ttl, request.now_seconds)?;
        let stamp = Stamp {
            timestamp_micros: modification.timestamp.unwrap_or(timestamp_micros),
            now_seconds: request.now_seconds,
            ttl_seconds: (ttl > 0 && !routed.table().is_counter).then_some(ttl),
        };
        for partition_key in &modification.partition_keys {
            let token = Token::of(partition_key);
            let partition = routed.partitions.of(token);
            let one = OnePartition {
                room: self,
                routed,
                partition,
                partition_key,
                token,
                stamp,
            };
            one.stage(request, staged, charges).await?;
        }
        Ok(())
    }
}

/// The last second at which Cassandra's cells can expire: 2038-01-19T03:14:06Z.
const EXPIRY_SECONDS_MAX: i64 = 2_147_483_646;

/// Refuses what would expire later than Cassandra can say (ExpirationDateOverflowHandling, policy REJECT), so that nobody comes
/// to depend on it.
fn refuse_overflow(table: &Table, ttl_seconds: u32, now_seconds: i64) -> Result<(), Error> {
    if ttl_seconds == 0 || now_seconds.saturating_add(i64::from(ttl_seconds)) <= EXPIRY_SECONDS_MAX {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "Request on table {}.{} with ttl of {ttl_seconds} seconds exceeds maximum supported expiration date of \
         2038-01-19T03:14:06+00:00. In order to avoid this use a lower TTL, change the expiration date overflow policy or upgrade \
         to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details.",
        table.keyspace, table.name
    )))
}

/// One modification of one logical partition.
struct OnePartition<'a> {
    room: &'a WriteRoom,
    routed: &'a Routed<'a>,
    partition: &'a PhysicalPartition,
    partition_key: &'a Bytes,
    token: Token,
    stamp: Stamp,
}

impl OnePartition<'_> {
    async fn stage(&self, request: &WriteRequest, staged: &mut Staged, charges: &mut Charges) -> Result<(), Error> {
        let modification = self.routed.modification;
        let table = self.routed.table();
        let deletes_rows = modification.kind == ModificationKind::Delete && modification.operations.is_empty();
        if let Some(size) = &mut staged.size {
            size.partition(table, self.partition_key);
        }
        match &modification.target {
            BoundTarget::Partition => {
                let deletion = self.stamp(staged).deletion();
                let marked = self.marked(RowWrite::Delete, 0, all_indexes(table));
                staged.batch(self.partition, marked).put_partition_deletion(
                    table.storage_id,
                    self.token.value(),
                    self.partition_key,
                    deletion,
                );
                staged.weigh(self, 0, 0);
            }
            BoundTarget::Ranges(ranges) => {
                let stamp = self.stamp(staged);
                staged.weigh(self, 0, 0);
                for range in ranges {
                    if let Some(size) = &mut staged.size {
                        size.range(table, self.partition_key, range);
                    }
                    let marked = self.marked(RowWrite::Delete, 0, all_indexes(table));
                    staged.batch(self.partition, marked).put_range_tombstone(
                        table.storage_id,
                        self.token.value(),
                        self.partition_key,
                        tombstone(range, stamp),
                    );
                }
            }
            BoundTarget::Static => {
                self.stage_static(&self.prefix(), request, staged, charges).await?;
            }
            BoundTarget::Rows(rows) => {
                let prefix = self.prefix();
                if self.operations(true).next().is_some() {
                    self.stage_static(&prefix, request, staged, charges).await?;
                }
                for clustering in rows {
                    let mut row = Row::default();
                    if deletes_rows {
                        row.deletion = Some(self.stamp.deletion());
                    } else if modification.kind == ModificationKind::Insert && !table.is_counter {
                        row.marker = Some(self.stamp.marker());
                    }
                    self.stage_row(key::row_key(&prefix, clustering), false, row, request, staged, charges)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// The stamp of deletions of more than a row.
    fn stamp(&self, staged: &Staged) -> Stamp {
        let earlier = i64::from(staged.deletes_just_before);
        Stamp {
            timestamp_micros: self.stamp.timestamp_micros.saturating_sub(earlier),
            ..self.stamp
        }
    }

    fn prefix(&self) -> Vec<u8> {
        key::partition_prefix(self.routed.table().storage_id, self.token.value(), self.partition_key)
    }

    fn operations(&self, of_static: bool) -> impl Iterator<Item = (&Column, &BoundOperation)> {
        let table = self.routed.table();
        self.routed
            .modification
            .operations
            .iter()
            .filter_map(move |(place, operation)| {
                let column = table.columns.get(*place)?;
                ((column.kind == ColumnKind::Static) == of_static).then_some((column.as_ref(), operation))
            })
    }

    /// How a change of this modification is charged.
    fn marked(&self, how: RowWrite, fragment_bytes: usize, indexed: usize) -> Marked {
        Marked {
            partition: PartitionRef {
                table: self.routed.table().storage_id,
                partition: self.partition.id.0,
            },
            token: self.token.value(),
            partition_key: self.partition_key.clone(),
            how,
            fragment_bytes,
            indexed,
            is_done: false,
        }
    }

    /// How the write of one row is charged.
    fn marked_row(&self, key: &[u8], of_static: bool, row: &Row) -> Marked {
        let how = how(self.routed.modification);
        let indexed = indexed(self.routed.table(), how, of_static, |column| {
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
        prefix: &[u8],
        request: &WriteRequest,
        staged: &mut Staged,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let key = key::static_row_key(prefix);
        self.stage_row(key, true, Row::default(), request, staged, charges)
            .await
    }

    async fn stage_row(
        &self,
        key: Vec<u8>,
        of_static: bool,
        mut row: Row,
        request: &WriteRequest,
        staged: &mut Staged,
        charges: &mut Charges,
    ) -> Result<(), Error> {
        let rewrites = !of_static && self.room.rewrites(self.routed);
        let must_read = rewrites || self.operations(of_static).any(|(_, operation)| reads_before(operation));
        let stored = if must_read {
            self.read(&key, of_static, staged, charges).await?
        } else {
            None
        };
        let mut stored = stored;
        for (column, operation) in self.operations(of_static) {
            // A list's element is looked for in what the operations of the same statement before it have left.
            if reads_before(operation) && !row.is_empty() {
                stored = Some(Row::merge(stored.unwrap_or_default(), row.clone().canonical()));
            }
            let writer = FragmentWriter {
                stamp: self.stamp,
                list_keys: &self.room.list_keys,
                stored: stored.as_ref(),
                deletes: self.routed.modification.kind == ModificationKind::Delete,
            };
            writer.apply(&mut row, column, operation)?;
        }
        if row.is_empty() {
            return Ok(());
        }
        if let (true, Some(stored)) = (rewrites, &stored) {
            whole_row::carry(&mut row, stored, &self.stamp);
        }
        if rewrites || must_read && self.routed.table().is_counter {
            staged.added_to.push((key.clone(), row.clone().canonical()));
        }
        if let Some(size) = &mut staged.size {
            let clustering = key.get(self.prefix().len() + 1..).filter(|_| !of_static);
            size.row(self.routed.table(), &key, clustering, &row);
        }
        let token = self.token.value();
        let mut entry_bytes = 0;
        if self.room.logical.is_watched(self.routed.table().storage_id, token) {
            entry_bytes = logical::entries_of(&self.routed.modification.table, &key, &row);
        }
        if let Some(bytes_max) = self.room.limits.row_bytes_max
            && self.routed.modification.kind != ModificationKind::Delete
        {
            self.check_row(&key, &row, bytes_max, request).await?;
        }
        let marked = self.marked_row(&key, of_static, &row);
        let batch = staged.batch(self.partition, marked);
        let before = batch.bytes();
        batch.upsert(key, row);
        let row_bytes = (batch.bytes() - before) as u64;
        staged.weigh(self, row_bytes, entry_bytes);
        Ok(())
    }

    /// Refuses a row that would be larger than it may be.
    async fn check_row(&self, key: &[u8], row: &Row, bytes_max: u64, request: &WriteRequest) -> Result<(), Error> {
        let written = row.encode().len() as u64;
        let store = &self.partition.store;
        let stored = store.get(Space::Rows, key, &store.snapshot()).await;
        let stored = stored.map_err(|error| storage_read(&error))?;
        let together = match stored {
            // Merged they are no longer than one behind the other.
            Some(stored) if written + stored.len() as u64 > bytes_max => {
                let stored = Row::decode(&stored).map_err(|error| storage_read(&error))?;
                Row::merge(stored, row.clone().canonical()).encode().len() as u64
            }
            _ => written,
        };
        if together > bytes_max {
            return Err(too_large(request.consistency, request.write_type));
        }
        Ok(())
    }

    /// The row as it is stored; of counters and rows that are rewritten whole with what this batch has already said about it.
    async fn read(
        &self,
        key: &[u8],
        of_static: bool,
        staged: &Staged,
        charges: &mut Charges,
    ) -> Result<Option<Row>, Error> {
        let store = &self.partition.store;
        let at = store.snapshot();
        let table = self.routed.table().storage_id;
        let found = store
            .get(Space::Rows, key, &at)
            .await
            .map_err(|error| storage_read(&error))?;
        // The look that an increment takes is in its price, as in that of any change.
        if !self.routed.table().is_counter {
            let partition = self.marked(RowWrite::Update, 0, 0).partition;
            charges.enter(partition, Some((self.token.value(), self.partition_key)));
            charges.look_before_write(found.as_ref().map_or(0, |row| key.len() + row.len()));
        }
        let mut row = match found {
            Some(bytes) => Some(Row::decode(&bytes).map_err(|error| storage_read(&error))?),
            None => None,
        };
        if let Some(row) = &mut row {
            let deletions = store.deletions(table, self.token.value(), self.partition_key, &at);
            let deletions = deletions.await.map_err(|error| storage_read(&error))?;
            let covering = if of_static {
                deletions.timestamp_covering_static()
            } else {
                let clustering = key.get(self.prefix().len() + 1..).unwrap_or_default();
                deletions.timestamp_covering(clustering)
            };
            if let Some(timestamp) = covering {
                row.shadow(timestamp);
            }
        }
        let said = staged
            .added_to
            .iter()
            .filter(|(at, _)| at == key)
            .map(|(_, row)| row.clone());
        Ok(said.fold(row, |row, said| Some(Row::merge(row.unwrap_or_default(), said))))
    }
}

/// Charges what a modification of one partition would cost if its rows were not there yet: the bytes that it says, for the row.
pub(crate) fn estimate(modification: &BoundModification, partition_key: &Bytes, charges: &mut Charges) {
    let table = modification.table.as_ref();
    let value_bytes = |operation: &BoundOperation| match operation {
        BoundOperation::Set(Value::Bytes(bytes)) => CELL_BYTES + bytes.len(),
        BoundOperation::Set(_) | BoundOperation::Increment(_) | BoundOperation::SetAt(_, None) => CELL_BYTES,
        BoundOperation::SetAt(_, Some(bytes)) => CELL_BYTES + bytes.len(),
        BoundOperation::Replace(elements) => elements
            .iter()
            .map(|(path, value)| CELL_BYTES + path.as_ref().map_or(16, Bytes::len) + value.len())
            .sum(),
        BoundOperation::Put(elements) => elements
            .iter()
            .map(|(path, value)| CELL_BYTES + path.len() + value.as_ref().map_or(0, Bytes::len))
            .sum(),
        BoundOperation::Append(values) | BoundOperation::Prepend(values) => {
            values.iter().map(|value| CELL_BYTES + 16 + value.len()).sum()
        }
        BoundOperation::Remove(paths) => paths.iter().map(|path| CELL_BYTES + path.len()).sum(),
        BoundOperation::Discard(_) => 0,
    };
    let is_static = |place: usize| {
        let column = table.columns.get(place);
        column.is_some_and(|column| column.kind == ColumnKind::Static)
    };
    let how = how(modification);
    let mut one = |of_static: bool, clustering_bytes: usize| {
        let operations = modification.operations.iter();
        let mine = operations.filter(|(place, _)| is_static(*place) == of_static);
        let bytes: usize = mine.clone().map(|(_, operation)| value_bytes(operation)).sum();
        let reads = mine.clone().any(|(_, operation)| reads_before(operation)) && !table.is_counter;
        if reads {
            charges.look_before_write(0);
        }
        let written = |column: &Column| {
            mine.clone()
                .any(|(place, _)| table.columns.get(*place).is_some_and(|written| written.id == column.id))
        };
        let indexed = indexed(table, how, of_static, written);
        charges.write(
            how,
            KEY_BYTES + partition_key.len() + clustering_bytes + bytes,
            false,
            indexed,
        );
    };
    match &modification.target {
        BoundTarget::Static => one(true, 0),
        BoundTarget::Rows(rows) => {
            if modification.operations.iter().any(|(place, _)| is_static(*place)) {
                one(true, 0);
            }
            for clustering in rows {
                one(false, clustering.len());
            }
        }
        BoundTarget::Ranges(ranges) => {
            for _ in ranges {
                charges.write(RowWrite::Delete, 0, false, all_indexes(table));
            }
        }
        BoundTarget::Partition => charges.write(RowWrite::Delete, 0, false, all_indexes(table)),
    }
}

/// Bytes of a row's key besides those of its values: table, token, ends.
const KEY_BYTES: usize = 15;

/// How a modification writes rows.
fn how(modification: &BoundModification) -> RowWrite {
    match modification.kind {
        ModificationKind::Delete if modification.operations.is_empty() => RowWrite::Delete,
        ModificationKind::Insert if !modification.table.is_counter => RowWrite::Insert,
        _ => RowWrite::Update,
    }
}

/// Indexed columns that a write of a row touches; a new or deleted row touches what indexes keep of its key as well. `is_written` says of a
/// regular or static column whether the write names it.
fn indexed(table: &Table, how: RowWrite, of_static: bool, is_written: impl Fn(&Column) -> bool) -> usize {
    if table.indexes.is_empty() {
        return 0;
    }
    if how == RowWrite::Delete {
        return all_indexes(table);
    }
    let is_touched = |column: &Column| match column.kind {
        ColumnKind::PartitionKey | ColumnKind::Clustering => how == RowWrite::Insert && !of_static,
        ColumnKind::Static | ColumnKind::Regular => is_written(column),
    };
    indexed_columns(table).filter(|column| is_touched(column)).count()
}

/// Columns that an index keeps something of.
fn indexed_columns(table: &Table) -> impl Iterator<Item = &Column> {
    let indexes = table.indexes.values().filter(|index| index.storage_id != 0);
    let columns = indexes.filter_map(|index| table.column(&index.target_column()?.1));
    columns.map(|(_, column)| column.as_ref())
}

fn all_indexes(table: &Table) -> usize {
    if table.indexes.is_empty() {
        0
    } else {
        indexed_columns(table).count()
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
