//! Writes and batches: checked, admitted, routed, and passed to `engine::write`.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::super::error::Error;
use super::super::gates;
use super::super::levels;
use super::super::owner::carrier::{Asked, unanswered};
#[cfg(feature = "simulation")]
use super::super::owner::loopback;
use super::super::owner::question::Question;
#[cfg(feature = "simulation")]
use super::super::owner::tables::{OwnTables, undecodable};
use super::super::owner::write::OwnerOfWrites;
use super::super::owner::writes_answer;
use super::super::part::write::size;
use super::super::write::condition::Written;
use super::{Engine, Request};
use crate::engine::failure::FailureCause;
use crate::engine::snapshot::Snapshot;
use crate::engine::terms::write::{Routed, WriteRequest, is_serial};
use crate::partition::Owner;
use crate::throughput::Charges;
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::codec::BoundWrites;
use helenus_schema::command::{Batch, BatchKind, ColumnChange, Condition, Write};
use helenus_schema::guardrails::Level;
use helenus_schema::guardrails::Threshold;
use helenus_types::consistency::WriteKind;

/// How long a write waits for the answer of an owner, with the time in which there is none.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl Engine {
    /// Executes a write.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails.
    pub(super) async fn write(
        &self,
        request: &Request<'_>,
        modification: &Write,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let outcome = self.write_within(request, modification, charges).await;
        outcome.map_err(|error| {
            let is_conditional = modification.condition != Condition::Always;
            self.write_edge(request, one_write(is_conditional, modification.table.is_counter), error)
        })
    }

    async fn write_within(
        &self,
        request: &Request<'_>,
        modification: &Write,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let is_counter = modification.table.is_counter;
        let gates = self.gates();
        let routed = [gates::route(gates, request, modification)?];
        let is_conditional = modification.condition != Condition::Always;
        let write_kind = one_write(is_conditional, is_counter);
        let mut warnings = Vec::new();
        let table = &modification.table;
        gates::counter(gates, request, table)?;
        let write = gates::write(gates, request, &routed, write_kind, table, &mut warnings)?;
        let planned_failure = gates::admit_write(gates, request, &routed, &write).await?;
        let mut written = if let Some(owner) = owner_elsewhere(&routed)? {
            let bound = bound(request, &routed, &write, false);
            let mut written = Box::pin(self.send(request, &owner, &bound, charges)).await;
            if mutant::is_on(Mutant::RetryCounter) && is_counter && written.is_err() {
                written = Box::pin(self.send(request, &owner, &bound, charges)).await;
            }
            written?
        } else if is_conditional || is_serial(std::slice::from_ref(modification)) {
            let writes = &self.writes;
            let written = writes.apply_conditionally(&routed, &write, &request.context, false, charges);
            let mut written = written.await?;
            written.decision = written.decision.filter(|_| is_conditional);
            written
        } else {
            let mut applied = self.writes.apply(&routed, &write, None, charges).await;
            if mutant::is_on(Mutant::RetryCounter) && is_counter && applied.is_err() {
                applied = self.writes.apply(&routed, &write, None, charges).await;
            }
            Written {
                warnings: applied?,
                ..Written::default()
            }
        };
        gates::planned_failure(planned_failure)?;
        written.warnings.extend(warnings);
        Ok(written)
    }

    /// Executes a batch of writes.
    ///
    /// # Errors
    /// It is refused, replicas are missing, or a store fails. None of it was applied then, unless the error says that
    /// it may have been.
    pub(super) async fn batch(
        &self,
        request: &Request<'_>,
        batch: &Batch,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let outcome = self.batch_within(request, batch, charges).await;
        outcome.map_err(|error| self.write_edge(request, batch_write(batch.kind, batch.conditional), error))
    }

    /// The error of a write as its client sees it.
    #[cold]
    fn write_edge(&self, request: &Request<'_>, kind: WriteKind, error: Error) -> Error {
        error.at_edge(levels::write(&self.rules, request.consistency()), kind)
    }

    async fn batch_within(
        &self,
        request: &Request<'_>,
        batch: &Batch,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        if batch.modifications.is_empty() {
            return Ok(Written::default());
        }
        let gates = self.gates();
        gates::members(gates, batch)?;
        self.record_partitions(batch);
        let routed = batch
            .modifications
            .iter()
            .map(|modification| gates::route(gates, request, modification));
        let routed = routed.collect::<Result<Vec<_>, _>>()?;
        let write_kind = batch_write(batch.kind, batch.conditional);
        let tables = || batch.modifications.iter().map(|modification| &modification.table);
        let table = tables().find(|table| table.is_counter).or_else(|| tables().next());
        let table = table.ok_or_else(|| Error::Fault("a batch with members has no table".to_owned()))?;
        let mut warnings = Vec::new();
        let mut write = gates::write(gates, request, &routed, write_kind, table, &mut warnings)?;
        write.timestamp_micros = batch.timestamp.or(write.timestamp_micros);
        let planned_failure = gates::admit_write(gates, request, &routed, &write).await?;
        let is_serial = batch.timestamp.is_none() && is_serial(&batch.modifications);
        let mut written = if let Some(owner) = owner_elsewhere(&routed)? {
            if is_serial {
                // They are dated as conditional ones are, so that no timestamp of the request counts.
                write.timestamp_micros = None;
            }
            let bound = bound(request, &routed, &write, true);
            Box::pin(self.send(request, &owner, &bound, charges)).await?
        } else if batch.conditional || is_serial {
            let writes = &self.writes;
            let written = writes.apply_conditionally(&routed, &write, &request.context, true, charges);
            let mut written = written.await?;
            written.decision = written.decision.filter(|_| batch.conditional);
            written
        } else {
            // Cassandra measures only batches of several partitions.
            let threshold = &self.guardrails.batch_bytes;
            let is_measured = !threshold.is_off() && size::mutations(&batch.modifications) > 1;
            let threshold = is_measured.then_some(threshold);
            Written {
                warnings: self.writes.apply(&routed, &write, threshold, charges).await?,
                ..Written::default()
            }
        };
        if !batch.conditional && !is_serial {
            warnings.append(&mut written.warnings);
            if batch.kind != BatchKind::Logged {
                warnings.extend(scatter_warning(batch, &self.guardrails.unlogged_batch_partitions));
            }
        }
        gates::planned_failure(planned_failure)?;
        written.warnings.extend(warnings);
        Ok(written)
    }

    /// Sends writes to the owner of their partitions, who decides about them. A message that may have arrived is sent again
    /// only if the client has dated all of it, and nothing of it adds to what is there.
    async fn send(
        &self,
        request: &Request<'_>,
        owner: &Owner,
        bound: &BoundWrites,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let message = bound.encode().map_err(|error| Error::Fault(error.to_string()))?;
        #[cfg(feature = "simulation")]
        if let Some(owners) = &request.owners {
            loopback::count_message();
            let tables = OwnTables {
                snapshot: owners,
                mask_calls: self.mask_calls,
            };
            let bound = BoundWrites::decode(&message, &tables).map_err(undecodable)?;
            let owner = self.owner_of_writes(owners);
            let (routed, write) = owner.routed(&bound)?;
            return owner.apply(&bound, &routed, &write, charges).await;
        }
        let consistency = bound.consistency;
        let Some(carrier) = self.carrier() else {
            let owner = &*owner.0;
            tracing::debug!(owner, "a write needs a partition whose owner cannot be reached");
            return Err(Error::WriteFailure {
                consistency,
                write_kind: bound.write_kind,
                cause: FailureCause::Replica,
            });
        };
        let question = Question {
            consistency: request.consistency(),
            page: 0,
            is_last: true,
            message,
        };
        let asked = if is_repeatable(bound) {
            Asked::RepeatableWrites
        } else {
            Asked::Writes
        };
        let answer = carrier.carry(asked, question.encode(), ANSWER_WITHIN).await;
        let answer = answer.map_err(|error| unanswered(&error, consistency, Some(bound.write_kind)))?;
        writes_answer::decode(&answer, charges)
    }

    pub(super) const fn owner_of_writes<'a>(&'a self, snapshot: &'a Snapshot) -> OwnerOfWrites<'a> {
        OwnerOfWrites {
            writes: &self.writes,
            snapshot,
            batch_bytes: &self.guardrails.batch_bytes,
            timeuuids: &self.timeuuids,
            call_limits: self.call_limits,
        }
    }

    /// Records the number of partitions that a batch writes.
    fn record_partitions(&self, batch: &Batch) {
        let modifications = batch.modifications.iter();
        let mut partitions: Vec<(u32, &[u8])> = modifications
            .flat_map(|one| {
                one.partition_keys
                    .iter()
                    .map(|key| (one.table.storage_id, key.as_ref()))
            })
            .collect();
        partitions.sort_unstable();
        partitions.dedup();
        let of_kind = match batch.kind {
            BatchKind::Logged => &self.statements.logged_batch_partitions,
            BatchKind::Unlogged => &self.statements.unlogged_batch_partitions,
            BatchKind::Counter => &self.statements.counter_batch_partitions,
        };
        of_kind.add(partitions.len() as u64, 1);
    }
}

/// The owner of all partitions that writes concern, if it is another machine.
///
/// # Errors
/// They have several owners: no message says yet how these agree.
fn owner_elsewhere(routed: &[Routed<'_>]) -> Result<Option<Owner>, Error> {
    if routed.iter().all(|one| one.partitions.is_here()) {
        return Ok(None);
    }
    let mut owners = routed.iter().flat_map(|one| {
        let keys = one.modification.partition_keys.iter();
        keys.map(|key| one.partitions.place(key).1.owner())
    });
    let first = owners.next().flatten();
    if owners.any(|owner| owner != first) {
        return Err(Error::Fault("the writes have several owners".to_owned()));
    }
    Ok(first.cloned())
}

/// Writes as their owner gets them. The commands themselves stay behind.
fn bound(request: &Request<'_>, routed: &[Routed<'_>], write: &WriteRequest, is_batch: bool) -> BoundWrites {
    let mut writes: Vec<Write> = routed.iter().map(|one| one.modification.clone()).collect();
    if mutant::is_on(Mutant::ConditionStaysBehind) {
        writes.iter_mut().for_each(|write| write.condition = Condition::Always);
    }
    let dated = mutant::is_on(Mutant::DatedBySender).then_some(request.at_micros);
    BoundWrites {
        writes,
        is_batch,
        timestamp_micros: write.timestamp_micros.or(dated),
        now_seconds: write.now_seconds,
        now_micros: request.at_micros,
        consistency: write.consistency,
        serial_consistency: write.serial_consistency,
        write_kind: write.write_kind,
    }
}

/// Whether writes can be made twice with the effect of one: the client has dated them, and they only put and delete. An
/// owner would date them a second time otherwise, above what came between.
fn is_repeatable(bound: &BoundWrites) -> bool {
    let is_dated = |write: &Write| bound.timestamp_micros.or(write.timestamp).is_some();
    bound.writes.iter().all(|write| {
        let is_plain = write.condition == Condition::Always && write.operations.iter().all(|(_, change)| puts(change));
        is_plain && is_dated(write) && !is_serial(std::slice::from_ref(write))
    })
}

/// Whether a change puts or deletes what it names itself. The keys of a list's elements are made by the owner.
fn puts(change: &ColumnChange) -> bool {
    match change {
        ColumnChange::Set(_) | ColumnChange::Put(_) | ColumnChange::Remove(_) => true,
        ColumnChange::Replace(elements) => elements.iter().all(|(key, _)| key.is_some()),
        ColumnChange::Append(_)
        | ColumnChange::Prepend(_)
        | ColumnChange::SetAt(..)
        | ColumnChange::Discard(_)
        | ColumnChange::Increment(_)
        | ColumnChange::Sum(_)
        | ColumnChange::Version => false,
    }
}

/// The kind of write of a single modification.
const fn one_write(is_conditional: bool, is_counter: bool) -> WriteKind {
    match (is_conditional, is_counter) {
        (true, _) => WriteKind::Cas,
        (false, true) => WriteKind::Counter,
        (false, false) => WriteKind::Simple,
    }
}

/// The kind of write of a batch.
const fn batch_write(kind: BatchKind, is_conditional: bool) -> WriteKind {
    match kind {
        _ if is_conditional => WriteKind::Cas,
        BatchKind::Logged => WriteKind::Batch,
        BatchKind::Unlogged => WriteKind::UnloggedBatch,
        BatchKind::Counter => WriteKind::Counter,
    }
}

/// Cassandra's warning about an unlogged batch that is scattered over the ring.
fn scatter_warning(batch: &Batch, threshold: &Threshold) -> Option<String> {
    let keys = batch
        .modifications
        .iter()
        .flat_map(|modification| &modification.partition_keys);
    let keys: BTreeSet<&Bytes> = keys.collect();
    let Level::Warn(_) = threshold.level(u64::try_from(keys.len()).unwrap_or(u64::MAX)) else {
        return None;
    };
    let tables = batch.modifications.iter().map(|modification| &modification.table);
    let names = tables.map(|table| format!("{}.{}", table.keyspace, table.name));
    let names = size::in_hash_order(names.collect());
    let plural = if names.len() == 1 { "" } else { "s" };
    Some(format!(
        "Unlogged batch covering {} partitions detected against table{plural} [{}]. You should use a logged batch for \
         atomicity, or asynchronous writes for performance.",
        keys.len(),
        names.join(", ")
    ))
}
