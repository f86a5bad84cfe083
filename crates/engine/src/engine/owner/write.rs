//! Writes that came as a message: locked, decided, dated and committed by their owner.

use std::sync::Arc;

use crate::engine::Error;
use crate::engine::part::write::size;
use crate::engine::snapshot::Snapshot;
use crate::engine::terms::write::{Routed, WriteRequest, is_serial};
use crate::engine::write::WriteServices;
use crate::engine::write::condition::Written;
use crate::throughput::Charges;
use helenus_schema::command::Condition;
use helenus_schema::command::codec::BoundWrites;
use helenus_schema::guardrails::Threshold;
use helenus_types::functions::{CallLimits, Context, Timeuuids};

/// What the owner has for the writes of messages.
#[derive(Clone, Copy)]
pub(in crate::engine) struct OwnerOfWrites<'a> {
    pub(in crate::engine) writes: &'a WriteServices,
    /// Its catalog, by which it finds the partitions.
    pub(in crate::engine) snapshot: &'a Snapshot,
    /// The size of a batch at which it warns or refuses.
    pub(in crate::engine) batch_bytes: &'a Threshold,
    pub(in crate::engine) timeuuids: &'a Arc<Timeuuids>,
    pub(in crate::engine) call_limits: CallLimits,
}

impl OwnerOfWrites<'_> {
    /// The writes of a message with the partition maps of their tables, and what of their request concerns them.
    ///
    /// # Errors
    /// A table no longer exists.
    pub(in crate::engine) fn routed<'b>(&self, bound: &'b BoundWrites) -> Result<(Vec<Routed<'b>>, WriteRequest), Error>
    where
        Self: 'b,
    {
        let request = WriteRequest {
            timestamp_micros: bound.timestamp_micros,
            now_seconds: bound.now_seconds,
            consistency: bound.consistency,
            serial_consistency: bound.serial_consistency,
            write_kind: bound.write_kind,
        };
        let routed = bound.writes.iter().map(|modification| {
            let partitions = self.snapshot.partitions(&modification.table)?.as_ref();
            Ok(Routed {
                modification,
                partitions,
            })
        });
        Ok((routed.collect::<Result<Vec<_>, Error>>()?, request))
    }

    /// Executes writes that are admitted: all, or none.
    ///
    /// # Errors
    /// A partition is served elsewhere, or as a write that began here.
    pub(in crate::engine) async fn apply(
        self,
        bound: &BoundWrites,
        routed: &[Routed<'_>],
        request: &WriteRequest,
        charges: &mut Charges,
    ) -> Result<Written, Error> {
        let is_conditional = bound.writes.iter().any(|write| write.condition != Condition::Always);
        let is_dated = bound.is_batch && bound.timestamp_micros.is_some();
        if is_conditional || !is_dated && is_serial(&bound.writes) {
            // Its functions are masks, which take no random number.
            let context = Context::new(bound.now_micros, Arc::clone(self.timeuuids), 0).limited(self.call_limits);
            let decided = self
                .writes
                .apply_conditionally(routed, request, &context, bound.is_batch, charges);
            let mut written = decided.await?;
            written.decision = written.decision.filter(|_| is_conditional);
            return Ok(written);
        }
        // Cassandra measures only batches of several partitions.
        let is_measured = bound.is_batch && !self.batch_bytes.is_off() && size::mutations(&bound.writes) > 1;
        let threshold = is_measured.then_some(self.batch_bytes);
        Ok(Written {
            warnings: self.writes.apply(routed, request, threshold, charges).await?,
            ..Written::default()
        })
    }
}
