//! For tests: writes through bytes, as if their owner were another machine. See `part::travel`.

use std::sync::Arc;

use crate::engine::Error;
use crate::engine::part::travel::{SameTables, count_message, is_on};
use crate::engine::terms::write::{Routed, WriteRequest};
use helenus_schema::command::codec::BoundWrites;

/// Writes as their owner decodes them.
pub(super) struct Sent {
    decoded: Option<BoundWrites>,
    request: WriteRequest,
}

/// Sends writes through bytes, if that is switched on.
///
/// # Errors
/// They are no message.
pub(super) fn send(modifications: &[Routed<'_>], request: &WriteRequest, is_batch: bool) -> Result<Sent, Error> {
    if !is_on() {
        return Ok(Sent {
            decoded: None,
            request: *request,
        });
    }
    let writes = || modifications.iter().map(|routed| routed.modification);
    let bound = BoundWrites {
        writes: writes().cloned().collect(),
        is_batch,
        timestamp_micros: request.timestamp_micros,
        now_seconds: request.now_seconds,
        now_micros: request.now_seconds.saturating_mul(1_000_000),
        consistency: request.consistency,
        serial_consistency: request.serial_consistency,
        write_kind: request.write_kind,
    };
    let message = bound.encode().map_err(|error| Error::Fault(error.to_string()))?;
    drop(bound);
    count_message();
    let tables = SameTables {
        tables: writes().map(|write| Arc::clone(&write.table)).collect(),
        masks: writes().find_map(|write| write.masks.clone()),
    };
    let decoded = BoundWrites::decode(&message, &tables).map_err(|error| Error::Fault(error.to_string()))?;
    Ok(Sent {
        request: WriteRequest {
            timestamp_micros: decoded.timestamp_micros,
            now_seconds: decoded.now_seconds,
            consistency: decoded.consistency,
            serial_consistency: decoded.serial_consistency,
            write_kind: decoded.write_kind,
        },
        decoded: Some(decoded),
    })
}

impl Sent {
    /// The writes to execute, with the partition maps of the original ones.
    pub(super) fn routed<'s>(&'s self, original: &[Routed<'s>]) -> Vec<Routed<'s>> {
        let Some(decoded) = &self.decoded else {
            return original.to_vec();
        };
        let pairs = decoded.writes.iter().zip(original);
        pairs
            .map(|(modification, routed)| Routed {
                modification,
                partitions: routed.partitions,
            })
            .collect()
    }

    /// The request to execute them with.
    pub(super) const fn request(&self) -> &WriteRequest {
        &self.request
    }
}
