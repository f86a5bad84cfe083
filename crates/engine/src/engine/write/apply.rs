//! Executes modifications without conditions: locks where the outcome depends on stored rows, takes the latches,
//! stages, commits.

use std::sync::Arc;

use super::services::WriteServices;
use super::staged::{CHECKS_MAX, Outcome, ReadOpenings, Staged, given_up};
use super::views::Views;
use crate::engine::part::write::fragment::Stamp;
use crate::engine::part::write::size::BatchSize;
use crate::engine::part::write::{self, WritePart, Writing, forms, run_write_part};
use crate::engine::refusal::LimitRefusal;
use crate::engine::terms::passes::{Passes, by_maps};
use crate::engine::terms::write::{Routed, WriteRequest};
use crate::engine::{Error, gates};
use crate::partition::{Held, TablePartitions};
use crate::throughput::Charges;
use helenus_schema::command::Write;
use helenus_schema::guardrails::Threshold;
use helenus_types::consistency::Consistency;

impl WriteServices {
    /// Executes modifications without conditions, all at one timestamp unless they bring their own. `size` is the
    /// threshold of their total size; `None` means no limit. Returns a warning when they are large.
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
        for _ in 0..CHECKS_MAX {
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
            .any(|routed| write::must_read(self.ttl_of_rows, routed.modification));
        let mut held = if must_read {
            Some(self.lock(modifications).await)
        } else {
            None
        };
        let (mut passes, mut maps) = self.pass(modifications, request.consistency).await?;
        // Locks are taken before latches.
        if passes.are_followed() && held.is_none() {
            drop(passes);
            held = Some(Box::pin(self.lock(modifications)).await);
            (passes, maps) = self.pass(modifications, request.consistency).await?;
        }
        let by_maps = by_maps(modifications, maps.as_ref());
        let modifications = by_maps.as_deref().unwrap_or(modifications);
        let mut staged = Staged {
            openings: if held.is_some() {
                ReadOpenings::now(modifications)?
            } else {
                ReadOpenings::default()
            },
            passes,
            ..Staged::default()
        };
        staged.changes.size = size.map(|_| BatchSize::default());
        // The version of an entity must grow, whatever the clocks of clients say.
        let is_of_entities = |routed: &Routed<'_>| {
            let table = routed.table();
            table.options.is_ordered && table.entity_layout().is_some()
        };
        let given = request.timestamp_micros;
        let given = given.filter(|_| !modifications.iter().any(is_of_entities));
        let timestamp = given.unwrap_or_else(|| self.clock.next_micros());
        let writing = self.writing(request);
        let mut new_rows = forms::NewRows::default();
        for routed in modifications {
            let write = routed.modification;
            let stamp = self.stamp(write, write.timestamp.unwrap_or(timestamp), request)?;
            for key in &write.partition_keys {
                let place = routed.partitions.hosted(key)?;
                let stored = if must_read {
                    forms::as_stored(place, write, key, &mut new_rows).await?
                } else {
                    None
                };
                let part = WritePart::new(place, stored.as_ref().unwrap_or(write), key, stamp)?;
                run_write_part(&writing, &part, &mut staged.changes, charges).await?;
            }
        }
        let warning = gates::staged(
            &self.nodes,
            modifications,
            request,
            size.zip(staged.changes.size.take()),
        )?;
        if staged.passes.are_followed()
            && let Views::Again(latch) = Box::pin(self.stage_views(request, &mut staged)).await?
        {
            drop((staged, held));
            Views::wait(latch).await;
            return Ok(Outcome::CheckAgain);
        }
        let mut outcome = staged.commit(self, request, held, charges).await?;
        if let Outcome::Written(warnings) = &mut outcome {
            warnings.extend(warning);
        }
        Ok(outcome)
    }

    /// Takes the latches of all partitions that are written to. If one has been moved since the request began, returns
    /// the partition maps to use instead, one for each modification.
    ///
    /// # Errors
    /// A table has been dropped meanwhile, or the store of its rows is in doubt.
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
        let (maps, passes) = Box::pin(Passes::wait(|| {
            self.catalog.refuse_in_doubt(consistency)?;
            let snapshot = self.catalog.load();
            let (mut maps, mut latches) = (Vec::with_capacity(modifications.len()), Vec::new());
            for routed in modifications {
                let map = snapshot.partitions(routed.table())?;
                for key in &routed.modification.partition_keys {
                    latches.push(Arc::clone(&map.hosted(key)?.1.latch));
                }
                maps.push(Arc::clone(map));
            }
            Ok((maps, latches))
        }))
        .await?;
        Ok((passes, Some(maps)))
    }

    /// Locks the logical partitions of these modifications.
    pub(crate) async fn lock(&self, modifications: &[Routed<'_>]) -> Held {
        self.locks.lock_all(modifications.iter().flat_map(Routed::locks)).await
    }

    /// The settings that the parts of a request share.
    pub(super) fn writing<'a>(&'a self, request: &'a WriteRequest) -> Writing<'a> {
        Writing {
            list_keys: &self.list_keys,
            limits: &self.limits,
            logical: &self.logical,
            ttl_of_rows: self.ttl_of_rows,
            request,
        }
    }

    /// The timestamp and the expiry of a modification.
    ///
    /// # Errors
    /// Its time to live is negative, or longer than permitted.
    pub(super) fn stamp(
        &self,
        modification: &Write,
        timestamp_micros: i64,
        request: &WriteRequest,
    ) -> Result<Stamp, Error> {
        let table = &modification.table;
        let ttl = match modification.ttl_seconds {
            None => u32::try_from(table.options.default_time_to_live).unwrap_or(0),
            Some(seconds) => u32::try_from(seconds).map_err(|_| LimitRefusal::TtlNegative(seconds))?,
        };
        gates::lifetime(&self.limits, table, ttl, request.now_seconds)?;
        Ok(Stamp {
            timestamp_micros,
            now_seconds: request.now_seconds,
            ttl_seconds: (ttl > 0 && !table.is_counter).then_some(ttl),
        })
    }
}
