//! Trims the change logs of tables: changes older than their retention, and the oldest ones of a log that is too large.
//!
//! ```text
//! count what is new ─► cut: by time, then by size ─► record the floor, durably ─► remove the entries in all stores
//! ```
//! The floor is recorded first. So a reader that wants a change that may be gone is refused, and never misses one
//! silently. Entries that a crash leaves below the floor are removed by the next cut.
//!
//! **Bounds.** The bytes of a log are counted in spans of a thousandth of its retention. Each entry is counted once, when
//! it is new, and after a start. A cut removes whole spans: what is kept may be a thousandth too old.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::engine::catalog::Catalog;
use crate::engine::write::clock::WriteClock;
use crate::engine::{Error, storage_read, storage_write};
use crate::partition::log::{ARCS, LogEntry, LogMoment};
use crate::schema::{FullFidelity, StorageId};

/// Spans of a log's retention whose bytes are counted apart.
const SPANS: i64 = 1024;

/// The shortest span, in µs.
const SPAN_MICROS_MIN: i64 = 100_000;

/// The bytes of change logs, counted so far.
#[derive(Debug, Default)]
pub struct LogSizes(BTreeMap<StorageId, LogSize>);

#[derive(Debug)]
struct LogSize {
    /// Entries up to this position are counted.
    counted_to: i64,
    span_micros: i64,
    /// Bytes by the first position of each span.
    spans: BTreeMap<i64, u64>,
}

impl LogSize {
    fn new(floor: i64, of: FullFidelity) -> Self {
        Self {
            counted_to: floor,
            span_micros: span_micros(of),
            spans: BTreeMap::new(),
        }
    }

    fn add(&mut self, position: i64, bytes: usize) {
        let span = position - position.rem_euclid(self.span_micros);
        *self.spans.entry(span).or_default() += bytes as u64;
    }

    /// Removes the spans that are too old or too many, and returns the last position of the last one removed.
    fn cut(&mut self, of: FullFidelity, now_micros: Option<i64>) -> Option<i64> {
        let expired = now_micros.map(|now| now.saturating_sub(i64::from(of.retention_seconds) * 1_000_000));
        let mut bytes: u64 = self.spans.values().sum();
        let mut cut = None;
        while let Some(first) = self.spans.first_entry() {
            let last = first.key().saturating_add(self.span_micros - 1);
            let is_old = expired.is_some_and(|expired| last <= expired);
            if !is_old && bytes <= of.retention_bytes {
                break;
            }
            bytes = bytes.saturating_sub(first.remove());
            cut = Some(last);
        }
        cut
    }
}

fn span_micros(of: FullFidelity) -> i64 {
    (i64::from(of.retention_seconds) * 1_000_000 / SPANS).max(SPAN_MICROS_MIN)
}

/// Trims change logs.
#[derive(Clone, Copy)]
pub(crate) struct Trimmer<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) clock: &'a WriteClock,
}

impl Trimmer<'_> {
    /// Trims the logs that need it, and returns how many did. Begins those whose beginning could not be recorded.
    ///
    /// # Errors
    /// A store fails; the rest is trimmed by the next call.
    pub(crate) async fn trim(self, sizes: &mut LogSizes) -> Result<usize, Error> {
        let logs: Vec<(StorageId, StorageId, FullFidelity)> = {
            let snapshot = self.catalog.load();
            let keyspaces = snapshot.schema.keyspaces.values();
            let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
            tables
                .filter_map(|table| Some((table.log()?, table.storage_id, table.options.full_fidelity?)))
                .collect()
        };
        sizes.0.retain(|log, _| logs.iter().any(|(used, ..)| used == log));
        let mut trimmed = 0;
        for (log, table, of) in logs {
            trimmed += usize::from(self.trim_log(log, table, of, sizes).await?);
        }
        Ok(trimmed)
    }

    async fn trim_log(
        self,
        log: StorageId,
        table: StorageId,
        of: FullFidelity,
        sizes: &mut LogSizes,
    ) -> Result<bool, Error> {
        let stores = self.catalog.stores();
        let floor = stores.log_floor(log).await.map_err(|error| storage_read(&error))?;
        let Some(floor) = floor else {
            let begun = stores.begin_log(log).await;
            return begun.map(|_| false).map_err(|error| storage_write(&error));
        };
        // Before any snapshot is taken.
        let horizon = stores.positions().horizon();
        let size = sizes.0.entry(log).or_insert_with(|| LogSize::new(floor, of));
        if size.span_micros != span_micros(of) {
            *size = LogSize::new(floor, of);
        }
        let after = size.counted_to.max(floor);
        let with_log = {
            let snapshot = self.catalog.load();
            let Some(map) = snapshot.partitions_of(table) else {
                return Ok(false);
            };
            self.catalog.stores_with_log(map)
        };
        for store in &with_log.now() {
            count(store, log, after..=horizon, size).await?;
        }
        size.counted_to = horizon.max(after);
        let now_micros = self.clock.may_purge().then(|| self.clock.now_micros());
        let Some(cut) = size.cut(of, now_micros).map(|cut| cut.min(horizon)) else {
            return Ok(false);
        };
        if cut <= floor {
            return Ok(false);
        }
        let failed = |error| storage_write(&error);
        stores.set_log_floor(log, cut).await.map_err(failed)?;
        with_log.trim(log, cut).await.map_err(failed)?;
        Ok(true)
    }
}

/// Counts the entries of a store after a position and up to another.
async fn count(
    store: &LogMoment,
    log: StorageId,
    positions: std::ops::RangeInclusive<i64>,
    size: &mut LogSize,
) -> Result<(), Error> {
    for arc in 0..ARCS {
        let visit = |entry: LogEntry| {
            size.add(entry.position, entry.bytes());
            ControlFlow::Continue(())
        };
        let of = (arc, *positions.start(), *positions.end());
        let walked = store.walk(log, of, None, visit).await;
        walked.map_err(|error| storage_read(&error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_spans_are_cut_by_time_and_by_size() {
        let of = FullFidelity {
            log: 1,
            retention_seconds: 1024,
            retention_bytes: 100,
        };
        let second = 1_000_000;
        let filled = || {
            let mut size = LogSize::new(0, of);
            for n in 0..10 {
                size.add(n * second + 5, 10);
            }
            size
        };
        assert_eq!(filled().cut(of, None), None, "as large as it may be");
        // Whole spans of a second, each when its last position is old enough.
        assert_eq!(filled().cut(of, Some(1025 * second - 2)), None);
        assert_eq!(filled().cut(of, Some(1025 * second - 1)), Some(second - 1));
        assert_eq!(filled().cut(of, Some(1026 * second)), Some(2 * second - 1));
        let mut larger = filled();
        larger.add(9 * second, 15);
        assert_eq!(larger.cut(of, None), Some(2 * second - 1));
        assert_eq!(larger.cut(of, None), None);
    }
}
