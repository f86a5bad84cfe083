//! Carrying out modifications without conditions: lock where the outcome depends on stored rows, pass the gates, stage, commit.

use std::sync::Arc;

use super::fragment::Stamp;
use super::one_partition::OnePartition;
use super::passes::{Passes, by_lists};
use super::request::{Routed, WriteRequest};
use super::room::WriteRoom;
use super::size::BatchSize;
use super::staged::{JUDGEMENTS_MAX, Judged, Outcome, Staged, given_up};
use super::{forms, whole_row};
use crate::engine::{Error, gates};
use crate::guardrails::Threshold;
use crate::partition::{Consistency, Held, TablePartitions};
use crate::throughput::Charges;

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
        Err(given_up())
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
                Vec::new()
            };
            if stored.is_empty() {
                self.stage(routed, timestamp, request, &mut staged, charges).await?;
            }
            for modification in &stored {
                let routed = Routed {
                    modification,
                    ..*routed
                };
                self.stage(&routed, timestamp, request, &mut staged, charges).await?;
            }
        }
        let warning = gates::staged(&self.nodes, modifications, request, size.zip(staged.size.take()))?;
        let mut outcome = staged.commit(self, request, held, charges).await?;
        if let Outcome::Written(warnings) = &mut outcome {
            warnings.extend(warning);
        }
        Ok(outcome)
    }

    /// Goes through the gates of all partitions that are written to. Where one has been moved since the request began: the lists to go
    /// by, one for each modification.
    ///
    /// # Errors
    /// When a table is gone meanwhile, or the place of its rows is in doubt.
    pub(crate) async fn pass(
        &self,
        modifications: &[Routed<'_>],
        consistency: Consistency,
    ) -> Result<(Passes, Option<Vec<Arc<TablePartitions>>>), Error> {
        let routed = modifications.iter();
        let routed = routed.map(|routed| (routed.partitions, routed.modification.partition_keys.as_slice()));
        if let Ok(passes) = Passes::of(routed) {
            return Ok((passes, None));
        }
        // Boxed, since it is rare: every write's future would be as large.
        let (lists, passes) = Box::pin(Passes::wait(|| {
            self.catalog.refuse_unsure(consistency)?;
            let snapshot = self.catalog.load();
            let (mut lists, mut gates) = (Vec::with_capacity(modifications.len()), Vec::new());
            for routed in modifications {
                let list = snapshot.partitions(routed.table())?;
                let keys = routed.modification.partition_keys.iter();
                gates.extend(keys.map(|key| Arc::clone(&list.place(key).1.gate)));
                lists.push(Arc::clone(list));
            }
            Ok((lists, gates))
        }))
        .await?;
        Ok((passes, Some(lists)))
    }

    /// Whether what is stored of a modification's rows is written again.
    pub(super) fn rewrites(&self, routed: &Routed<'_>) -> bool {
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
        gates::lifetime(&self.limits, routed.table(), ttl, request.now_seconds)?;
        let stamp = Stamp {
            timestamp_micros: modification.timestamp.unwrap_or(timestamp_micros),
            now_seconds: request.now_seconds,
            ttl_seconds: (ttl > 0 && !routed.table().is_counter).then_some(ttl),
        };
        for partition_key in &modification.partition_keys {
            let (token, partition) = routed.partitions.place(partition_key);
            let one = OnePartition {
                room: self,
                routed,
                partition,
                logical: partition.logical(routed.table().storage_id, token, partition_key)?,
                partition_key,
                token,
                stamp,
            };
            one.stage(request, staged, charges).await?;
        }
        Ok(())
    }
}
