//! INSERT, UPDATE, DELETE and batches: checked, admitted, routed, and handed to the write room.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::admission::{Concerned, Work};
use super::super::answer::{Answer, AnswerKind};
use super::super::error::Error;
use super::super::levels;
use super::super::write::{Routed, WriteRequest, size};
use super::{Database, Request, refuse_system};
use crate::command::{Batch, BatchKind, Condition, Write};
use crate::consistency::WriteKind;
use crate::guardrails::Level;
use crate::guardrails::Threshold;
use crate::mutant::{self, Mutant};
use crate::partition::Consistency;
use crate::schema::Table;
use crate::throughput::Charges;
use crate::token::Token;

impl Database {
    pub(super) async fn modify(
        &self,
        request: &Request<'_>,
        modification: &Write,
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        let is_counter = modification.table.is_counter;
        let routed = [self.route(request, modification)?];
        let is_conditional = modification.condition != Condition::Always;
        let write_kind = match (is_conditional, is_counter) {
            (true, _) => WriteKind::Cas,
            (false, true) => WriteKind::Counter,
            (false, false) => WriteKind::Simple,
        };
        let write = self.write_request(request, write_kind, &modification.table)?;
        if !is_conditional && !is_counter && write.consistency.is_serial() {
            return Err(Error::Invalid(
                "You must use conditional updates for serializable writes".to_owned(),
            ));
        }
        let mut warnings = Vec::new();
        let told_after = self.ask_before(request, &routed, &write, &mut warnings).await?;
        let mut answer = if is_conditional {
            let writes = &self.writes;
            writes
                .apply_conditionally(&routed, &write, &request.context, false, charges)
                .await?
        } else {
            let mut applied = self.writes.apply(&routed, &write, None, charges).await;
            if mutant::is_on(Mutant::RetryCounter) && is_counter && applied.is_err() {
                applied = self.writes.apply(&routed, &write, None, charges).await;
            }
            let mut answer = Answer::new(AnswerKind::Void);
            answer.warnings = applied?;
            answer
        };
        told_after.map_or(Ok(()), Err)?;
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    pub(super) async fn run_batch(
        &self,
        request: &Request<'_>,
        batch: &Batch,
        charges: &mut Charges,
    ) -> Result<Answer, Error> {
        if batch.modifications.is_empty() {
            return Ok(Answer::new(AnswerKind::Void));
        }
        self.writes.limits.check_operations(batch.modifications.len())?;
        self.watch.note_partitions(batch);
        let routed = batch
            .modifications
            .iter()
            .map(|modification| self.route(request, modification));
        let routed = routed.collect::<Result<Vec<_>, _>>()?;
        let write_kind = match batch.kind {
            _ if batch.conditional => WriteKind::Cas,
            BatchKind::Logged => WriteKind::Batch,
            BatchKind::Unlogged => WriteKind::UnloggedBatch,
            BatchKind::Counter => WriteKind::Counter,
        };
        let tables = || batch.modifications.iter().map(|modification| &modification.table);
        let table = tables().find(|table| table.is_counter).or_else(|| tables().next());
        let table = table.ok_or_else(|| Error::Server("a batch with members has no table".to_owned()))?;
        // Cassandra lets a batch without conditions be written at SERIAL.
        let mut write = self.write_request(request, write_kind, table)?;
        write.timestamp_micros = batch.timestamp.or(write.timestamp_micros);
        let mut warnings = Vec::new();
        let told_after = self.ask_before(request, &routed, &write, &mut warnings).await?;
        let mut answer = if batch.conditional {
            let writes = &self.writes;
            writes
                .apply_conditionally(&routed, &write, &request.context, true, charges)
                .await?
        } else {
            // Cassandra measures only what goes to several partitions.
            let threshold = &self.guardrails.batch_bytes;
            let is_measured = !threshold.is_off() && size::mutations(&batch.modifications) > 1;
            let warning = self
                .writes
                .apply(&routed, &write, is_measured.then_some(threshold), charges)
                .await?;
            warnings.extend(warning);
            if batch.kind != BatchKind::Logged {
                warnings.extend(scatter_warning(batch, &self.guardrails.unlogged_batch_partitions));
            }
            Answer::new(AnswerKind::Void)
        };
        told_after.map_or(Ok(()), Err)?;
        answer.warnings.extend(warnings);
        Ok(answer)
    }

    /// Asks everybody who may refuse a write: guardrails, the fault plan, budgets. What it is to be answered with although it is carried out.
    async fn ask_before(
        &self,
        request: &Request<'_>,
        routed: &[Routed<'_>],
        write: &WriteRequest,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Error>, Error> {
        for one in routed {
            self.guardrails
                .modification(one.modification, request.at_micros, warnings)?;
        }
        self.guardrails
            .level(request.params.consistency.name(), true, warnings)?;
        let told_after = if self.nodes.is_quiet() {
            None
        } else {
            Box::pin(self.disturbance().disturb_write(request, routed, write)).await?
        };
        self.admit_writes(request, routed, write.write_kind).await?;
        Ok(told_after)
    }

    /// Asks for the request units of all physical partitions that are written to.
    async fn admit_writes(
        &self,
        request: &Request<'_>,
        routed: &[Routed<'_>],
        write_kind: WriteKind,
    ) -> Result<(), Error> {
        let mut concerned = Concerned::default();
        for one in routed {
            concerned.add(&one.modification.table, one.partitions, || {
                let keys = one.modification.partition_keys.iter();
                keys.map(|key| one.partitions.of(Token::of(key)).id.0)
            });
        }
        self.ledger
            .admission
            .admit(request, concerned, Work::Write(write_kind))
            .await
    }

    fn route<'a>(&self, request: &'a Request<'_>, modification: &'a Write) -> Result<Routed<'a>, Error> {
        refuse_system(&modification.table.keyspace)?;
        self.writes.limits.check_partition_keys(&modification.partition_keys)?;
        self.catalog.refuse_unsure(request.params.consistency)?;
        Ok(Routed {
            modification,
            partitions: request.snapshot.partitions(&modification.table)?,
        })
    }

    /// What the request says of a write; `table` is one of those written to, a counter table where there is one.
    fn write_request(
        &self,
        request: &Request<'_>,
        write_kind: WriteKind,
        table: &Table,
    ) -> Result<WriteRequest, Error> {
        let consistency = levels::write(&self.rules, request.params.consistency);
        let invalid = |text: String| Err(Error::Invalid(text));
        if write_kind == WriteKind::Cas {
            let serial = request.params.serial_consistency;
            if serial.is_some_and(|serial| !serial.is_serial()) {
                return invalid(
                    "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL".to_owned(),
                );
            }
            if consistency.is_serial() {
                return invalid(format!(
                    "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is \
                     accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
                    consistency.name()
                ));
            }
            if consistency == Consistency::EachQuorum {
                let keyspace = request.snapshot.schema.keyspaces.get(&table.keyspace);
                let strategy = keyspace.and_then(|keyspace| keyspace.replication.get("class"));
                if let Some(strategy) = strategy.filter(|class| !class.ends_with(".NetworkTopologyStrategy")) {
                    return invalid(format!(
                        "consistency level EACH_QUORUM not compatible with replication strategy ({strategy})"
                    ));
                }
            }
        }
        if table.is_counter {
            if consistency == Consistency::Any {
                return invalid(format!(
                    "Consistency level ANY is not yet supported for counter table {}",
                    table.name
                ));
            }
            if consistency.is_serial() {
                return invalid("Counter operations are inherently non-serializable".to_owned());
            }
        }
        Ok(WriteRequest {
            timestamp_micros: request.params.timestamp_micros,
            now_seconds: request.now_seconds,
            consistency,
            serial_consistency: request.params.serial_consistency.unwrap_or(Consistency::Serial),
            write_kind,
        })
    }
}

/// What Cassandra says of a batch without a log that is scattered over the ring.
fn scatter_warning(batch: &Batch, threshold: &Threshold) -> Option<String> {
    let keys = batch
        .modifications
        .iter()
        .flat_map(|modification| &modification.partition_keys);
    let keys: BTreeSet<&Bytes> = keys.collect();
    let Level::Warn(_) = threshold.judge(u64::try_from(keys.len()).unwrap_or(u64::MAX)) else {
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
