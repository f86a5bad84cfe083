//! Conditional modifications: read, check the conditions, write, all under the lock of the partition.
//!
//! Only the holder of a partition's lock decides conditions on it, and a snapshot taken under the lock sees every
//! earlier conditional write. So conditional statements on one partition are serialized. The exception is a write that
//! was answered with an error: it may become visible when the store has been reopened. Then the store refuses changes
//! whose conditions were checked before the reopening, and they are checked again ([`ReadOpenings`]).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::services::WriteServices;
use super::staged::{CHECKS_MAX, Outcome, ReadOpenings, Staged, given_up};
use super::views::Views;
use crate::engine::part::write::asked::rows_asked;
use crate::engine::part::write::condition::{self, ConditionPart, Decision, Verdict};
use crate::engine::part::write::{WritePart, forms, run_write_part};
use crate::engine::refusal::ConditionRefusal;
use crate::engine::terms::passes::by_maps;
use crate::engine::terms::write::{Routed, WriteRequest};
use crate::engine::{Error, gates};
use crate::throughput::Charges;
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::{Condition, Write};
use helenus_types::functions::Context;

/// The outcome of a write.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The result of its conditions. `None` means that it had none.
    pub decision: Option<Decision>,
    /// The timestamp of the writes, µs since 1970-01-01 UTC, if they had conditions that held; [`Write::timestamp`] of a member does not
    /// count then.
    ///
    /// [`Write::timestamp`]: helenus_schema::command::Write
    pub timestamp_micros: Option<i64>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl WriteServices {
    /// Executes the statements of a conditional batch, or a single conditional statement: all or none.
    ///
    /// # Errors
    /// The statements are not all of one partition, replicas are missing, or a store fails.
    pub(crate) async fn apply_conditionally(
        &self,
        modifications: &[Routed<'_>],
        request: &WriteRequest,
        context: &Context,
        is_batch: bool,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        for _ in 0..CHECKS_MAX {
            let answer = self.check_and_apply(modifications, request, context, is_batch, charges);
            if let Some(answer) = answer.await? {
                return Ok(answer);
            }
        }
        Err(given_up())
    }

    /// `None` means that nothing was written, and the conditions have to be checked again.
    #[expect(
        clippy::too_many_lines,
        reason = "lock, read, check, date and write: what the lock covers stands in one place"
    )]
    async fn check_and_apply(
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
        let held = if mutant::is_on(Mutant::SkipLock) {
            None
        } else {
            Some(self.lock(modifications).await)
        };
        let (passes, maps) = self.pass(modifications, request.consistency).await?;
        let by_maps = by_maps(modifications, maps.as_ref());
        let modifications = by_maps.as_deref().unwrap_or(modifications);
        let place = modifications
            .first()
            .unwrap_or(first)
            .partitions
            .hosted(partition_key)?;
        let openings = ReadOpenings::now(modifications)?;
        let mut stored = Vec::with_capacity(modifications.len());
        let mut new_rows = forms::NewRows::default();
        for routed in modifications {
            stored.push(forms::as_stored(place, routed.modification, partition_key, &mut new_rows).await?);
        }
        let writes: Vec<&Write> = modifications
            .iter()
            .zip(&stored)
            .map(|(routed, stored)| stored.as_ref().unwrap_or(routed.modification))
            .collect();
        let part = ConditionPart {
            partition: place.1,
            token: place.0,
            key: partition_key,
            table: first.table(),
            writes: &writes,
            is_batch,
        };
        let newest = match condition::check(&part, request.now_seconds, context, charges).await? {
            Verdict::Holds { newest } => newest,
            Verdict::Refused(decision) => {
                return Ok(Some(Written {
                    decision: Some(decision),
                    timestamp_micros: None,
                    warnings: Vec::new(),
                }));
            }
        };
        let timestamp = self.clock.above(newest)?;
        let mut staged = Staged {
            openings,
            passes,
            ..Staged::default()
        };
        staged.changes.deletes_just_before = true;
        // A member without a condition may bring a timestamp, but Cassandra dates all writes with that of the ballot.
        for write in &writes {
            let stamp = self.stamp(write, timestamp, request)?;
            let part = WritePart::new(place, write, partition_key, stamp)?;
            run_write_part(&self.writing(request), &part, &mut staged.changes, charges).await?;
        }
        gates::replicas(&self.nodes, modifications, request)?;
        if staged.passes.are_followed()
            && let Views::Again(latch) = Box::pin(self.stage_views(request, &mut staged)).await?
        {
            drop((staged, held));
            Views::wait(latch).await;
            return Ok(None);
        }
        let Outcome::Written(warnings) = staged.commit(self, request, held, charges).await? else {
            return Ok(None);
        };
        Ok(Some(Written {
            decision: Some(Decision::Applied),
            timestamp_micros: Some(timestamp),
            warnings,
        }))
    }
}

fn one_partition<'a>(modifications: &'a [Routed<'a>]) -> Result<(&'a Routed<'a>, &'a Bytes), Error> {
    let first = modifications.first().ok_or(ConditionRefusal::Empty)?;
    let key = first.modification.partition_keys.first().ok_or(ConditionRefusal::In)?;
    for routed in modifications {
        if routed.table().id != first.table().id {
            return Err(ConditionRefusal::Tables.into());
        }
        if routed.modification.partition_keys.iter().any(|other| other != key) {
            return Err(ConditionRefusal::Partitions.into());
        }
    }
    Ok((first, key))
}

/// One row cannot be required to exist, not to exist, and to have values.
fn refuse_mixed(modifications: &[Routed<'_>]) -> Result<(), Error> {
    let mut seen: BTreeMap<Option<&[u8]>, &Condition> = BTreeMap::new();
    for routed in modifications {
        let condition = &routed.modification.condition;
        for row in rows_asked(routed.modification) {
            let Some(before) = seen.insert(row, condition) else {
                continue;
            };
            let refusal = match (before, condition) {
                (Condition::Exists, Condition::NotExists) | (Condition::NotExists, Condition::Exists) => {
                    ConditionRefusal::ExistsAndNot
                }
                (Condition::Columns(_), Condition::Exists) => ConditionRefusal::ValuesAndExists,
                (Condition::Columns(_), Condition::NotExists)
                | (Condition::Exists | Condition::NotExists, Condition::Columns(_)) => {
                    ConditionRefusal::ValuesAndNotExists
                }
                _ => continue,
            };
            return Err(refusal.into());
        }
    }
    Ok(())
}
