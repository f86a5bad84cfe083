//! Trims the change logs of tables: changes older than their retention, and the oldest ones of a log that is too large.
//!
//! ```text
//! count what is new ─► cut: by time, then by size ─► record the floor, durably ─► remove the entries in all stores
//! ```
//! The floor is recorded first. So a reader that wants a change that may be gone is refused, and never misses one
//! silently. Entries that a crash leaves below the floor are removed by the next cut.
//!
//! **Bounds.** The bytes of a log are counted by spans of its positions, at first of a millisecond. Each entry is counted once,
//! when it is new, and after a start. When there are too many spans, neighbours become one, up to a thousandth of the
//! retention's time and a 256th of its bytes. A cut removes whole spans, so what is kept may be that much too old or too
//! small. Changes of one commit are cut together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::engine::catalog::Catalog;
use crate::engine::terms::clock::WriteClock;
use crate::engine::{Error, storage_read, storage_write};
use crate::partition::log::{ARCS, LogEntry, LogMoment};
use helenus_schema::schema::{FullFidelity, StorageId};

/// The shortest span, in µs.
const SPAN_MICROS_MIN: i64 = 1000;

/// Spans of a log at which neighbours become one.
const SPANS_MAX: usize = 8192;

/// Parts of a log's time that the longest span of several has at most.
const TIME_PARTS: i64 = 1024;

/// Parts of a log's bytes that a span of several has at most.
const BYTE_PARTS: u64 = 256;

/// The bytes of change logs, counted so far.
#[derive(Debug, Default)]
pub struct LogSizes(BTreeMap<StorageId, LogSize>);

#[derive(Debug)]
struct LogSize {
    /// Entries up to this position are counted.
    counted_to: i64,
    of: FullFidelity,
    /// By the first position of each.
    spans: BTreeMap<i64, Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// Its last position.
    last: i64,
    bytes: u64,
}

impl LogSize {
    const fn new(floor: i64, of: FullFidelity) -> Self {
        Self {
            counted_to: floor,
            of,
            spans: BTreeMap::new(),
        }
    }

    fn add(&mut self, position: i64, bytes: usize) {
        let bytes = bytes as u64;
        let before = self.spans.range_mut(..=position).next_back();
        if let Some((_, span)) = before.filter(|(_, span)| position <= span.last) {
            span.bytes += bytes;
            return;
        }
        let first = position - position.rem_euclid(SPAN_MICROS_MIN);
        let last = first.saturating_add(SPAN_MICROS_MIN - 1);
        self.spans.insert(first, Span { last, bytes });
        if self.spans.len() >= SPANS_MAX {
            self.join();
        }
    }

    /// Makes neighbours one where that is a small part of the log.
    fn join(&mut self) {
        let bytes: u64 = self.spans.values().map(|span| span.bytes).sum();
        let bytes_max = bytes.max(self.of.retention_bytes) / BYTE_PARTS;
        let micros_max = i64::from(self.of.retention_seconds) * 1_000_000 / TIME_PARTS;
        let mut joined: BTreeMap<i64, Span> = BTreeMap::new();
        for (first, span) in std::mem::take(&mut self.spans) {
            if let Some(mut before) = joined.last_entry()
                && before.get().bytes + span.bytes <= bytes_max
                && span.last - before.key() < micros_max
            {
                let before = before.get_mut();
                before.last = span.last;
                before.bytes += span.bytes;
                continue;
            }
            joined.insert(first, span);
        }
        self.spans = joined;
    }

    /// Removes the spans that are too old or too many, and returns the last position of the last one removed.
    fn cut(&mut self, now_micros: Option<i64>) -> Option<i64> {
        let of = self.of;
        let expired = now_micros.map(|now| now.saturating_sub(i64::from(of.retention_seconds) * 1_000_000));
        let mut bytes: u64 = self.spans.values().map(|span| span.bytes).sum();
        let mut cut = None;
        while let Some(first) = self.spans.first_entry() {
            let is_old = expired.is_some_and(|expired| first.get().last <= expired);
            if !is_old && bytes <= of.retention_bytes {
                break;
            }
            let removed = first.remove();
            bytes = bytes.saturating_sub(removed.bytes);
            cut = Some(removed.last);
        }
        cut
    }
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
        size.of = of;
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
        let Some(cut) = size.cut(now_micros).map(|cut| cut.min(horizon)) else {
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
        assert_eq!(filled().cut(None), None, "as large as it may be");
        let millisecond = SPAN_MICROS_MIN - 1;
        assert_eq!(filled().cut(Some(1024 * second + millisecond - 1)), None);
        assert_eq!(filled().cut(Some(1024 * second + millisecond)), Some(millisecond));
        assert_eq!(
            filled().cut(Some(1025 * second + millisecond)),
            Some(second + millisecond)
        );
        let mut larger = filled();
        larger.add(9 * second, 15);
        assert_eq!(larger.cut(None), Some(second + millisecond));
        assert_eq!(larger.cut(None), None);
    }

    #[test]
    fn as_much_is_kept_as_was_asked_for_however_fast_it_came() {
        let of = FullFidelity {
            log: 1,
            retention_seconds: 86_400,
            retention_bytes: 1_000_000,
        };
        // An entry of a kilobyte each two milliseconds, part of the ring by part of the ring.
        let (entries, parts) = (60_000, 64);
        let mut size = LogSize::new(0, of);
        for part in 0..parts {
            for n in (part..entries).step_by(64) {
                size.add(n * 2000, 1000);
            }
        }
        assert!(size.spans.len() <= SPANS_MAX, "{}", size.spans.len());
        let counted: u64 = size.spans.values().map(|span| span.bytes).sum();
        assert_eq!(counted, 60_000_000);
        size.cut(None).unwrap();
        let kept: u64 = size.spans.values().map(|span| span.bytes).sum();
        assert!((700_000..=1_000_000).contains(&kept), "{kept}");
        // And what comes in steps is kept to the byte, but for a span.
        for n in entries..entries + 5000 {
            size.add(n * 2000, 1000);
            size.cut(None);
            let kept: u64 = size.spans.values().map(|span| span.bytes).sum();
            assert!(kept <= 1_000_000, "{kept}");
        }
        let kept: u64 = size.spans.values().map(|span| span.bytes).sum();
        assert!(kept >= 990_000, "{kept}");
    }
}
