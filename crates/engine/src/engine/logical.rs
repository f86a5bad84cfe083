//! Sizes of logical partitions, and the limit that none may exceed.
//!
//! The size of an ordinary partition is never computed. Writes add their bytes to [`Gauges`]; when a gauge is full, the
//! partition that filled it is counted. If it holds an eighth of the limit it is watched from then on: its size is the
//! count plus the bytes written since. Commits report how rows changed. Where they do not (SlateDB writes without
//! reading), and for index entries, all written bytes are added. That is never too little, since a merged row is no
//! longer than both its versions. If the sum would exceed the limit but most of it is uncertain, the partition is
//! counted again before a write is refused. So repeated writes of the same rows are not refused.
//!
//! **Life of a write** to a watched partition: [`LogicalPartitions::admit`] adds its bytes and refuses it if the
//! partition would exceed the limit; its commit makes the bytes certain. Deletions are never refused. After a deletion,
//! or after a while, the next write that would be refused has the partition purged and counted first: purged data frees
//! space.
//!
//! **Restarts.** Each watched partition has a record of its size. It is rewritten in the same commit as the write by
//! which the size has grown by half a hundredth of the limit. So after a start the size is known within that, and the
//! partition is counted again when it is first written.
//!
//! ```text
//! !logical · table u32 · spread i64                  →  version u8 = 1 · bytes u64 · partition key    (Space::Catalog)
//! !logical · table u32 · spread i64 · partition key  →  the same
//! ```
//! Each store has the records of its own partitions. A move leaves one behind; after a start the larger one counts until
//! the partition is counted again. The spread is the key's token where keys are hashed. The second form is for tables that are ordered by partition
//! key, and for one of two keys of one token that are watched together. Versions that do not read the second form count
//! such a partition again.
//!
//! **Bounds.** 64 KiB of gauges, [`WATCHED_MAX`] partitions watched, [`SEEN_MAX`] shown that are not. One partition is
//! counted at a time in the background.
//!
//! Deliberately absent: bytes of deletion records. In a table whose partitions were never written since the start,
//! sizes below an eighth of the limit are unknown.

mod count;
mod record;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::pending::Pending;
use super::refusal::in_words;
use super::{Error, storage_read};
use crate::engine::shown::LargePartition;
use crate::engine::terms::clock::WriteClock;
use crate::partition::{Gauges, Hosted, Placement, StoreId, Stores};
use helenus_base::clock::Clock;
use helenus_schema::guardrails::Level;
use helenus_schema::guardrails::Threshold;
use helenus_schema::schema::{Schema, StorageId, Table};
use helenus_storage::storage::{Batch, KEY_BYTES_MAX, Space};

use self::count::{CountPermit, Counted, count};
pub(crate) use self::count::{entries_of, printed_key};
pub(crate) use self::record::{Place, Recorded};
pub(super) use self::record::{RECORD, decode};
use self::record::{encode, long_key, short_key};
use self::size::{Size, Verdict, percent, quick_bytes};

/// Most partitions that are watched at once: the largest.
const WATCHED_MAX: usize = 1024;

/// Most partitions that are shown without being watched: the largest that were counted.
const SEEN_MAX: usize = 64;

/// Part of the limit from which a partition is watched: an eighth.
const WATCHED_DIVISOR: u64 = 8;

/// The bytes that fill a gauge at first.
const GAUGE_BYTES: u64 = 1 << 20;

/// The shortest time before a full partition is counted again; at least this many times the duration of the count.
const RECOUNT_AFTER: Duration = Duration::from_secs(10);
const RECOUNT_TIMES: u32 = 20;

/// The bytes that a write adds to a logical partition.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The number that the table's placement derives from its key.
    pub(crate) spread: i64,
    /// Its key.
    pub(crate) key: Bytes,
    /// The physical partition that holds it.
    pub(crate) partition: Arc<Hosted>,
    /// Bytes of keys and values of rows, as they are written.
    pub(crate) row_bytes: u64,
    /// Bytes of keys and values of the index entries that derive from them.
    pub(crate) entry_bytes: u64,
    /// Whether it only deletes; such a write is never refused.
    pub(crate) deletes: bool,
}

impl Weight {
    fn bytes(&self) -> u64 {
        self.row_bytes + self.entry_bytes
    }

    fn place(&self) -> Place {
        Place {
            table: self.table.storage_id,
            spread: self.spread,
            key: self.key.clone(),
        }
    }
}

#[derive(Debug)]
struct Watched {
    size: Mutex<Size>,
    /// Held by the task that counts.
    counting: tokio::sync::Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that was admitted to a watched partition and is not committed yet.
struct InFlight {
    watched: Arc<Watched>,
    place: Place,
    /// The bytes added for it.
    bytes: u64,
    /// The part of `bytes` that belongs to rows.
    row_bytes: u64,
    counts_begun: u64,
    /// Bytes of its rows before the commit and after it, as far as the store has reported.
    before_bytes: u64,
    after_bytes: u64,
}

/// An admitted write; its bytes are in flight until this is dropped.
#[derive(Default)]
pub(crate) struct Admitted {
    in_flight: Vec<InFlight>,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// Records to write in the same commit, each to the store of its partition.
    pub(crate) records: Vec<(StoreId, Vec<u8>, Bytes)>,
}

impl Admitted {
    /// Whether any partition that is written is watched.
    pub(crate) fn is_watched(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Records the size of a row before and after the commit, if the store has read it.
    pub(crate) fn record_sizes(&mut self, place: &Place, [before_bytes, after_bytes]: [u64; 2]) {
        if let Some(way) = self.in_flight.iter_mut().find(|way| way.place == *place) {
            way.before_bytes += before_bytes;
            way.after_bytes += after_bytes;
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        for way in &self.in_flight {
            let mut size = lock(&way.watched.size);
            size.in_flight = size.in_flight.saturating_sub(way.bytes);
            // A concurrent count may or may not have seen the write, so its bytes stay as they were added.
            if (way.before_bytes, way.after_bytes) == (0, 0) || size.counts_begun != way.counts_begun {
                continue;
            }
            // The write was added in full. The store reports how much the row grew by; the rest is taken back.
            let too_much = (way.row_bytes + way.before_bytes).saturating_sub(way.after_bytes);
            let of_added = too_much.min(size.added);
            size.added -= of_added;
            size.counted = size.counted.saturating_sub(too_much - of_added);
        }
    }
}

/// The stored size and tombstones of a partition, for the log: Cassandra's guardrails `partition_size` and
/// `partition_tombstones`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guarded {
    /// Bytes.
    pub(crate) bytes: Threshold,
    /// Tombstones.
    pub(crate) tombstones: Threshold,
}

impl Guarded {
    /// Bytes written after which a partition is worth counting.
    fn gauge_bytes(&self) -> u64 {
        let bytes = self.bytes.warn.or(self.bytes.fail).map_or(u64::MAX, |bytes| bytes / 4);
        // A tombstone takes some twenty bytes or more.
        let tombstones = self.tombstones.warn.or(self.tombstones.fail);
        bytes.min(tombstones.map_or(u64::MAX, |count| count.saturating_mul(20) / 4))
    }

    fn log(&self, table: &Table, key: &[u8], found: Counted) {
        let partition = || format!("{}.{}:{}", table.keyspace, table.name, printed_key(table, key));
        let told = [
            (
                "partition_size",
                self.bytes,
                found.bytes,
                "Too large partitions can cause performance problems.",
            ),
            (
                "partition_tombstones",
                self.tombstones,
                found.tombstones,
                "Partitions with too many tombstones can cause performance problems.",
            ),
        ];
        for (guardrail, threshold, amount, why) in told {
            match threshold.level(amount) {
                Level::Fine => {}
                Level::Warn(threshold) => {
                    tracing::warn!(guardrail, partition = partition(), amount, threshold, "{why}");
                }
                Level::Refuse(threshold) => {
                    tracing::error!(guardrail, partition = partition(), amount, threshold, "{why}");
                }
            }
        }
    }
}

/// The sizes of logical partitions, as far as they matter.
#[derive(Debug)]
pub(crate) struct LogicalPartitions {
    /// Unfinished batches, for which deletions must be kept.
    pending: Arc<Pending>,
    cap: Option<u64>,
    guarded: Guarded,
    gauges: Gauges,
    watched: ArcSwap<imbl::HashMap<Place, Arc<Watched>>>,
    /// Sizes of partitions that were counted and are not watched.
    seen: Mutex<BTreeMap<Place, u64>>,
    /// A task is counting: the one that has the [`CountPermit`].
    is_counting: Arc<AtomicBool>,
    clock: Clock,
    timestamps: WriteClock,
    tasks: helenus_base::tasks::Tasks,
}

/// What logical partitions are counted with.
pub(crate) struct Counting {
    /// Most bytes of a logical partition. `None` means no limit.
    pub(crate) cap: Option<u64>,
    pub(crate) guarded: Guarded,
    pub(crate) clock: Clock,
    pub(crate) timestamps: WriteClock,
    pub(crate) pending: Arc<Pending>,
    /// Runs the counts in the background.
    pub(crate) tasks: helenus_base::tasks::Tasks,
}

impl LogicalPartitions {
    /// `recorded`: the stores' records of partitions.
    pub(crate) fn new(counting: Counting, recorded: &[Recorded]) -> Self {
        let Counting {
            cap,
            guarded,
            clock,
            timestamps,
            pending,
            tasks,
        } = counting;
        let slack = cap.map_or(0, |cap| cap / 200);
        let mut largest: BTreeMap<&Place, &Recorded> = BTreeMap::new();
        for recorded in recorded {
            let known = largest.entry(&recorded.place).or_insert(recorded);
            if known.bytes < recorded.bytes {
                *known = recorded;
            }
        }
        let watched = largest.into_values().map(|recorded| {
            let size = Size {
                counted: recorded.bytes,
                added: slack,
                recorded: recorded.bytes,
                ..Size::default()
            };
            let watched = Watched {
                size: Mutex::new(size),
                counting: tokio::sync::Mutex::default(),
            };
            (recorded.place.clone(), Arc::new(watched))
        });
        Self {
            cap,
            guarded,
            pending,
            gauges: Gauges::new(
                cap.map_or(GAUGE_BYTES, |cap| GAUGE_BYTES.min(cap / 64))
                    .min(guarded.gauge_bytes()),
            ),
            watched: ArcSwap::from_pointee(watched.collect()),
            seen: Mutex::default(),
            is_counting: Arc::default(),
            clock,
            timestamps,
            tasks,
        }
    }

    /// Whether each write of this partition must update its size.
    pub(crate) fn is_watched(&self, place: impl FnOnce() -> Place) -> bool {
        let watched = self.watched.load();
        !watched.is_empty() && watched.contains_key(&place())
    }

    /// Requests admission of a write. The caller keeps the result until the write is committed.
    ///
    /// # Errors
    /// When a logical partition would exceed its limit, or cannot be counted; then nothing may be written.
    pub(crate) async fn admit(self: &Arc<Self>, weights: &[Weight], now_seconds: i64) -> Result<Admitted, Error> {
        let mut admitted = Admitted::default();
        for weight in weights {
            weight.partition.load.record_written(weight.row_bytes);
            if self
                .gauges
                .record(weight.table.storage_id, weight.spread, weight.bytes())
            {
                Box::pin(self.count_named(weight)).await;
            }
            let Some(cap) = self.cap else { continue };
            let watched = {
                let watched = self.watched.load();
                if watched.is_empty() {
                    continue;
                }
                watched.get(&weight.place()).map(Arc::clone)
            };
            if let Some(watched) = watched {
                Box::pin(self.admit_watched(weight, &watched, cap, now_seconds, &mut admitted)).await?;
            }
        }
        Ok(admitted)
    }

    async fn admit_watched(
        self: &Arc<Self>,
        weight: &Weight,
        watched: &Arc<Watched>,
        cap: u64,
        now_seconds: i64,
        admitted: &mut Admitted,
    ) -> Result<(), Error> {
        let mut must_decide = false;
        loop {
            let (verdict, counts_begun) = {
                let mut size = lock(&watched.size);
                let verdict = size.check(weight, cap, self.clock.monotonic(), must_decide);
                (verdict, size.counts_begun)
            };
            match verdict {
                Verdict::Refused => return Err(full(cap)),
                Verdict::CountFirst { sweeps, counts } => {
                    let sweep_at = sweeps.then_some(now_seconds);
                    self.count_watched(weight, watched, sweep_at, Some(counts)).await?;
                    // Decide after one count: a write never waits for a second one.
                    must_decide = true;
                }
                Verdict::Written {
                    warns,
                    record,
                    counts_later,
                } => {
                    let place = weight.place();
                    if let Some(bytes) = record {
                        let is_ordered = weight.partition.placement() == Placement::Key;
                        let record = self.record(&place, is_ordered, bytes);
                        let store = weight.partition.store_id;
                        admitted.records.extend(record.map(|(key, value)| (store, key, value)));
                    }
                    admitted.in_flight.push(InFlight {
                        watched: Arc::clone(watched),
                        place,
                        bytes: weight.bytes(),
                        counts_begun,
                        before_bytes: 0,
                        after_bytes: 0,
                        row_bytes: weight.row_bytes,
                    });
                    if let Some(percent) = warns {
                        admitted.warnings.push(self.warn(weight, watched, cap, percent));
                    }
                    if counts_later {
                        self.spawn_count(weight, watched, now_seconds);
                    }
                    return Ok(());
                }
            }
        }
    }

    /// The warning of a write to a partition that is nearly full. It is logged once for every five percent.
    fn warn(&self, weight: &Weight, watched: &Watched, cap: u64, percent: u64) -> String {
        let (keyspace, table) = (&weight.table.keyspace, &weight.table.name);
        let key = printed_key(&weight.table, &weight.key);
        let step = percent - percent % 5;
        let is_new = {
            let mut size = lock(&watched.size);
            let is_new = step > size.logged_percent;
            size.logged_percent = step.max(size.logged_percent);
            is_new
        };
        if is_new {
            tracing::warn!(
                keyspace,
                table,
                partition_key = key,
                percent,
                "a logical partition is nearly full"
            );
        }
        format!(
            "Partition key {key} of table {keyspace}.{table} has reached {percent} % of the maximum size of {}",
            in_words(cap)
        )
    }

    /// Counts the partition that has filled its gauge.
    async fn count_named(self: &Arc<Self>, weight: &Weight) {
        let whole = weight.partition.store_bytes(weight.table.storage_id);
        if whole.bytes <= quick_bytes(self.cap) {
            return self.count_and_watch(weight).await;
        }
        let Some(permit) = CountPermit::take(&self.is_counting) else {
            // One partition is counted at a time; the next one to fill its gauge is counted then.
            self.gauges.counted(weight.table.storage_id, weight.spread, 0);
            return;
        };
        let (partitions, weight) = (Arc::clone(self), weight.clone());
        self.tasks.spawn("count", async move {
            let _permit = permit;
            partitions.count_and_watch(&weight).await;
        });
    }

    /// Counts a partition and watches it if it is large.
    async fn count_and_watch(self: &Arc<Self>, weight: &Weight) {
        let place = weight.place();
        let watched = self.watched.load().get(&place).map(Arc::clone);
        if let Some(watched) = watched {
            let bytes = lock(&watched.size).bytes();
            self.gauges.counted(place.table, place.spread, bytes);
            let found = Counted { bytes, tombstones: 0 };
            self.guarded.log(&weight.table, &weight.key, found);
            return;
        }
        let counted = count(&weight.partition, &weight.table, &weight.key).await;
        let found = counted.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not count a logical partition");
            Counted::default()
        });
        self.guarded.log(&weight.table, &weight.key, found);
        let bytes = found.bytes;
        self.gauges.counted(place.table, place.spread, bytes);
        if self.cap.is_some_and(|cap| bytes >= cap / WATCHED_DIVISOR) {
            self.watch(weight, bytes).await;
        } else {
            self.see(&place, bytes);
        }
    }

    fn see(&self, place: &Place, bytes: u64) {
        let mut seen = lock(&self.seen);
        match seen.get_mut(place) {
            Some(known) => *known = bytes,
            None => drop(seen.insert(place.apart(), bytes)),
        }
        let least = || {
            seen.iter()
                .min_by_key(|(_, bytes)| **bytes)
                .map(|(place, _)| place.clone())
        };
        if seen.len() > SEEN_MAX
            && let Some(least) = least()
        {
            seen.remove(&least);
        }
    }

    /// Watches a partition's size from now on.
    async fn watch(self: &Arc<Self>, weight: &Weight, bytes: u64) {
        let place = weight.place().apart();
        lock(&self.seen).remove(&place);
        let watched = Arc::new(Watched {
            size: Mutex::new(Size {
                counted: bytes,
                ..Size::default()
            }),
            counting: tokio::sync::Mutex::default(),
        });
        self.watched.rcu(|all| {
            let mut all = imbl::HashMap::clone(all);
            if all.len() >= WATCHED_MAX {
                let least = all.iter().min_by_key(|(_, watched)| lock(&watched.size).bytes());
                if let Some(least) = least.map(|(place, _)| place.clone()) {
                    all.remove(&least);
                }
            }
            all.insert(place.clone(), Arc::clone(&watched));
            all
        });
        // Writes during the first count were not added; from now on they are.
        if let Err(error) = self.count_watched(weight, &watched, None, None).await {
            tracing::warn!(%error, "could not count a logical partition");
        }
    }

    /// The record of a partition's size. `None` means that its key is too long for a record; it is counted again after
    /// a start.
    fn record(&self, place: &Place, is_ordered: bool, bytes: u64) -> Option<(Vec<u8>, Bytes)> {
        let watched = self.watched.load();
        let mut others = watched.keys().filter(|other| other.key != place.key);
        let is_shared = |other: &Place| (other.table, other.spread) == (place.table, place.spread);
        let key = if is_ordered || others.any(is_shared) {
            long_key(place)
        } else {
            short_key(place)
        };
        (key.len() <= KEY_BYTES_MAX).then(|| (key, encode(bytes, &place.key)))
    }

    fn spawn_count(self: &Arc<Self>, weight: &Weight, watched: &Arc<Watched>, now_seconds: i64) {
        let Some(permit) = CountPermit::take(&self.is_counting) else {
            return;
        };
        let (partitions, weight, watched) = (Arc::clone(self), weight.clone(), Arc::clone(watched));
        self.tasks.spawn("count", async move {
            let _permit = permit;
            let sweep_at = lock(&watched.size).is_freed.then_some(now_seconds);
            if let Err(error) = partitions.count_watched(&weight, &watched, sweep_at, None).await {
                tracing::warn!(%error, "could not count a logical partition");
            }
        });
    }

    /// Recounts a watched partition, after a purge if `sweep_at` (s) is given; not if another task has recounted it
    /// since `counts`.
    async fn count_watched(
        &self,
        weight: &Weight,
        watched: &Watched,
        sweep_at: Option<i64>,
        counts: Option<u64>,
    ) -> Result<(), Error> {
        let _one_at_a_time = watched.counting.lock().await;
        let sweeps = sweep_at.is_some();
        if counts.is_some_and(|counts| lock(&watched.size).counts_so_far(sweeps) != counts) {
            return Ok(());
        }
        let began = self.clock.monotonic();
        let sweep_at = sweep_at.filter(|_| self.timestamps.may_purge());
        if let Some(now_seconds) = sweep_at {
            let grace = i64::from(weight.table.options.gc_grace_seconds);
            let gc_before_seconds = self.pending.purge_horizon_seconds(now_seconds.saturating_sub(grace));
            let token = weight.partition.token(&weight.key);
            let logical = weight.partition.logical(weight.table.storage_id, token, &weight.key)?;
            let sweep = logical.sweep(now_seconds, gc_before_seconds);
            // A partition that is being moved is not purged: the writer waits no longer, and expired rows count.
            let swept = weight.partition.purge(sweep).await;
            swept.map_err(|error| storage_read(&error))?;
        }
        let before = {
            let mut size = lock(&watched.size);
            size.is_freed &= sweep_at.is_none();
            size.counts_begun += 1;
            *size
        };
        let found = count(&weight.partition, &weight.table, &weight.key).await?;
        self.guarded.log(&weight.table, &weight.key, found);
        let bytes = found.bytes;
        let now = self.clock.monotonic();
        let mut size = lock(&watched.size);
        size.counted = bytes;
        // Writes in flight then may or may not have been counted.
        size.added = size.added.saturating_sub(before.added).saturating_add(before.in_flight);
        size.is_known = true;
        // Warnings are repeated when it grows again.
        let reached = self.cap.map_or(0, |cap| percent(bytes, cap));
        size.logged_percent = size.logged_percent.min(reached);
        size.counts += 1;
        size.swept_counts += u64::from(sweeps);
        size.again_at = now + (now.saturating_sub(began) * RECOUNT_TIMES).max(RECOUNT_AFTER);
        Ok(())
    }

    /// Removes partitions of tables that no longer exist. Returns the keys of their records.
    pub(crate) fn keep(&self, is_there: impl Fn(StorageId) -> bool) -> Vec<Vec<u8>> {
        lock(&self.seen).retain(|place, _| is_there(place.table));
        let watched = self.watched.load();
        let removed: Vec<Place> = watched.keys().filter(|place| !is_there(place.table)).cloned().collect();
        if removed.is_empty() {
            return Vec::new();
        }
        self.watched.rcu(|all| {
            let mut all = imbl::HashMap::clone(all);
            for place in &removed {
                all.remove(place);
            }
            all
        });
        // Both forms of each key, since the record may have either.
        removed
            .iter()
            .flat_map(|place| [short_key(place), long_key(place)])
            .collect()
    }

    /// Removes the sizes of partitions whose tables were dropped or truncated, and their records in the stores.
    pub(super) async fn forget_dropped(&self, schema: &Schema, stores: &Stores) {
        let there: BTreeSet<StorageId> = schema.stored_tables().map(|table| table.storage_id).collect();
        let removed = self.keep(|id| there.contains(&id));
        if removed.is_empty() {
            return;
        }
        for (id, store) in stores.all() {
            let mut batch = Batch::new();
            for key in &removed {
                batch.delete(Space::Catalog, key.clone());
            }
            // A record that stays describes no table: numbers of tables are never used again.
            match store.commit(batch).await {
                // A side store that was removed meanwhile.
                Err(_) if stores.get(id).is_none() => {}
                Err(error) => {
                    tracing::warn!(store = id.0, %error, "records of dropped partitions could not be removed");
                }
                Ok(_) => {}
            }
        }
    }

    /// The largest known partitions, the largest first.
    pub(crate) fn largest<'a>(
        &self,
        table: impl Fn(StorageId) -> Option<(&'a Table, Placement)>,
    ) -> Vec<LargePartition> {
        let shown = |place: &Place, bytes, is_watched| {
            let (table, placement) = table(place.table)?;
            Some(LargePartition {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                key: printed_key(table, &place.key),
                token: placement.token_of_spread(place.spread),
                bytes,
                bytes_max: self.cap,
                is_watched,
            })
        };
        let watched = self.watched.load();
        let watched = watched.iter().filter_map(|(place, watched)| {
            let bytes = lock(&watched.size).bytes();
            shown(place, bytes, true)
        });
        let seen = lock(&self.seen);
        let seen = seen.iter().filter_map(|(place, bytes)| shown(place, *bytes, false));
        let mut largest: Vec<LargePartition> = watched.chain(seen).collect();
        largest.sort_by(|a, b| {
            (b.bytes, &a.keyspace, &a.table, a.token, &a.key).cmp(&(a.bytes, &b.keyspace, &b.table, b.token, &b.key))
        });
        largest
    }
}

/// Cosmos's error for a write to a full partition.
fn full(cap: u64) -> Error {
    Error::PartitionFull { bytes_max: cap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_cosmos() {
        assert_eq!(
            full(crate::engine::SizeLimits::LOGICAL_PARTITION_BYTES_MAX).to_string(),
            "Partition key reached maximum size of 20 GB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
        );
    }
}
