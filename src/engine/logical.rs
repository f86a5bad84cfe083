//! How large logical partitions are, and the limit that none may pass.
//!
//! What an ordinary partition holds is never asked. Writes fill [`Gauges`]; the partition that fills one is counted, and if it holds
//! an eighth of the limit it is watched from then on: its size is what was counted plus what has been written since. Commits tell what
//! became of rows; where they do not (SlateDB writes without looking), and of index entries, all that was written is added, which is
//! never too little, since a row merged of two is no longer than both. Where that would pass the limit though little of it is certain,
//! the partition is counted again before anything is refused, so that writing the same rows over and over refuses nothing.
//!
//! **Life of a write** to a watched partition: [`LogicalPartitions::admit`] adds its bytes and refuses it when they would pass the limit;
//! its commit makes them certain. Deletions are never refused. After one, or after a while, the next write that would be refused has the
//! partition swept and counted first: what was deleted or has expired makes room.
//!
//! **Restarts.** Each watched partition has a record, written in one commit with the write that makes it stale by half of a hundredth
//! of the limit. So a partition is known from the start to within that, and counted anew when it is first written.
//!
//! ```text
//! !logical · table u32 · token i64  →  version u8 = 1 · bytes u64 · partition key     (Space::Catalog)
//! ```
//! **Bounds.** 64 KiB of gauges, [`WATCHED_MAX`] partitions watched, [`SEEN_MAX`] shown that are not. One partition is counted at a time
//! behind the writers.
//!
//! Deliberately absent: bytes of deletion records. In a table whose partitions were never written since the start nothing is known of
//! those below an eighth of the limit.

mod count;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::limits::{SizeLimits, in_words};
use super::pending::Pending;
use super::sweep::partition::sweep_partition;
use super::write::clock::WriteClock;
use super::{Error, storage_read};
use crate::clock::Clock;
use crate::engine::shown::LargePartition;
use crate::guardrails::Level;
use crate::guardrails::Threshold;
use crate::partition::store::{Batch, Space, Store};
use crate::partition::{Gauges, Hosted};
use crate::schema::{Schema, StorageId, Table};
use crate::token::Token;

use self::count::{Counted, Turn, count};
pub(crate) use self::count::{entries_of, printed_key};

/// What the records of watched partitions begin with, in the catalog space.
pub(super) const RECORD: &[u8] = b"!logical";

const RECORD_VERSION: u8 = 1;

/// Partitions that are watched at once; of more, the largest.
const WATCHED_MAX: usize = 1024;

/// Partitions that are not watched and shown nevertheless: the largest that were counted.
const SEEN_MAX: usize = 64;

/// Part of the limit from which a partition is watched: an eighth.
const WATCHED_DIVISOR: u64 = 8;

/// Percent of the limit from which each write is warned.
const WARNED_PERCENT: u64 = 70;

/// What fills a gauge at first.
const GAUGE_BYTES: u64 = 1 << 20;

/// What is up to this size is counted while the writer waits, what is larger behind it.
const QUICK_BYTES: u64 = 1 << 20;

/// The same under a limit no larger than this, where waiting for it is worth being exact.
const QUICK_BYTES_EXACT: u64 = 8 << 20;

/// A full partition is not counted again sooner, nor sooner than this many times what counting took.
const RECOUNT_AFTER: Duration = Duration::from_secs(10);
const RECOUNT_TIMES: u32 = 20;

/// A logical partition: its table's number and its token. Two keys of one token would be counted as one.
type Place = (StorageId, i64);

/// What a write adds to a logical partition.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The partition.
    pub(crate) token: i64,
    /// Its key.
    pub(crate) key: Bytes,
    /// Where it is.
    pub(crate) partition: Arc<Hosted>,
    /// Keys and values of rows as they are written.
    pub(crate) row_bytes: u64,
    /// Keys and values of the index entries that follow from them.
    pub(crate) entry_bytes: u64,
    /// Only deletes: is never refused.
    pub(crate) deletes: bool,
}

impl Weight {
    fn bytes(&self) -> u64 {
        self.row_bytes + self.entry_bytes
    }
}

/// A watched partition's record, as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) table: StorageId,
    pub(crate) token: i64,
    bytes: u64,
    key: Bytes,
}

#[derive(Debug)]
struct Watched {
    key: Bytes,
    size: Mutex<Size>,
    /// Held by whoever counts.
    counting: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// As last counted.
    counted: u64,
    /// Written since, and what was being written then.
    added: u64,
    /// Being written now.
    in_flight: u64,
    /// As the record has it.
    recorded: u64,
    /// Counted since the start.
    is_known: bool,
    /// Something was deleted since it was counted.
    is_freed: bool,
    /// How often it was counted.
    counts: u64,
    /// How often after a sweep.
    swept_counts: u64,
    /// How often that was begun.
    counts_begun: u64,
    /// When it may be counted again though nothing was deleted.
    again_at: Duration,
    /// Percent that were logged.
    logged_percent: u64,
}

/// What is to be done with a write.
enum Verdict {
    Written {
        /// Percent of the limit that are told.
        warns: Option<u64>,
        /// What its record is to say.
        record: Option<u64>,
        count_behind: bool,
    },
    Refused,
    CountFirst {
        sweeps: bool,
        counts: u64,
    },
}

impl Size {
    fn bytes(&self) -> u64 {
        self.counted.saturating_add(self.added)
    }

    /// How often it was counted: of counts after a sweep only those, since a count without one finds no room.
    const fn counts_so_far(&self, sweeps: bool) -> u64 {
        if sweeps { self.swept_counts } else { self.counts }
    }

    /// Judges a write and, unless it is refused or must wait, adds it.
    fn judge(&mut self, weight: &Weight, cap: u64, now: Duration, must_decide: bool) -> Verdict {
        // So much may be uncertain: a hundredth, or what is counted in no time.
        let slack = (cap / 100).max(64 << 10).min(cap);
        let next = self.bytes().saturating_add(weight.bytes());
        if weight.deletes {
            self.is_freed = true;
        } else if !must_decide && !self.is_known && next <= quick_bytes(Some(cap)) {
            return Verdict::CountFirst {
                sweeps: false,
                counts: self.counts,
            };
        } else if next > cap {
            let may_have_room = !self.is_known || self.added > slack || self.is_freed || now >= self.again_at;
            if may_have_room && !must_decide {
                let sweeps = self.is_freed || (self.is_known && self.added <= slack);
                let counts = self.counts_so_far(sweeps);
                return Verdict::CountFirst { sweeps, counts };
            }
            return Verdict::Refused;
        }
        let reached = percent(next, cap);
        // Whether it is known well enough to be warned of.
        let is_certain = !self.is_freed && (self.added <= slack || percent(self.counted, cap) >= WARNED_PERCENT);
        let warns = reached >= WARNED_PERCENT && !weight.deletes;
        if warns && !is_certain && !must_decide && next <= quick_bytes(Some(cap)) {
            return Verdict::CountFirst {
                sweeps: self.is_freed,
                counts: self.counts_so_far(self.is_freed),
            };
        }
        self.added = self.added.saturating_add(weight.bytes());
        self.in_flight = self.in_flight.saturating_add(weight.bytes());
        let record = (next > self.recorded.saturating_add(slack / 2)).then_some(next);
        self.recorded = record.unwrap_or(self.recorded);
        // Near the limit it is counted in time, so that nobody has to wait for it there.
        let is_near = next > cap - cap / 20 && self.added > slack;
        Verdict::Written {
            warns: (warns && is_certain).then_some(reached),
            record,
            count_behind: !self.is_known || is_near || (warns && !is_certain),
        }
    }
}

/// Up to which size the writer waits.
fn quick_bytes(cap: Option<u64>) -> u64 {
    match cap {
        Some(cap) if cap <= QUICK_BYTES_EXACT => QUICK_BYTES_EXACT,
        _ => QUICK_BYTES,
    }
}

fn percent(bytes: u64, cap: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 100 / u128::from(cap.max(1))).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that was admitted to a watched partition and not committed yet.
struct OnItsWay {
    watched: Arc<Watched>,
    place: Place,
    /// What was added for it.
    bytes: u64,
    /// Those of rows among them.
    row_bytes: u64,
    counts_begun: u64,
    /// Bytes of its rows before the commit and after it, as far as the store has told.
    before_bytes: u64,
    after_bytes: u64,
}

/// What was admitted; its bytes are on their way until this is dropped.
#[derive(Default)]
pub(crate) struct Admitted {
    on_their_way: Vec<OnItsWay>,
    /// What the client is told.
    pub(crate) warnings: Vec<String>,
    /// What is to be written with the write.
    pub(crate) records: Vec<(Vec<u8>, Bytes)>,
}

impl Admitted {
    /// Whether any partition that is written is watched.
    pub(crate) fn is_watched(&self) -> bool {
        !self.on_their_way.is_empty()
    }

    /// What the commit made of a row, where the store has looked: its bytes before and after.
    pub(crate) fn made(&mut self, place: Place, [before_bytes, after_bytes]: [u64; 2]) {
        if let Some(way) = self.on_their_way.iter_mut().find(|way| way.place == place) {
            way.before_bytes += before_bytes;
            way.after_bytes += after_bytes;
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        for way in &self.on_their_way {
            let mut size = lock(&way.watched.size);
            size.in_flight = size.in_flight.saturating_sub(way.bytes);
            // A count that began meanwhile may or may not have seen the write; it is left as it was added.
            if (way.before_bytes, way.after_bytes) == (0, 0) || size.counts_begun != way.counts_begun {
                continue;
            }
            let too_much = (way.row_bytes + way.before_bytes).saturating_sub(way.after_bytes);
            let of_added = too_much.min(size.added);
            size.added -= of_added;
            size.counted = size.counted.saturating_sub(too_much - of_added);
        }
    }
}

/// What is logged of a partition as it is stored: Cassandra's guardrails `partition_size` and `partition_tombstones`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guarded {
    /// Bytes.
    pub(crate) bytes: Threshold,
    /// Tombstones.
    pub(crate) tombstones: Threshold,
}

impl Guarded {
    /// Bytes after which a partition is worth counting because of this.
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
            match threshold.judge(amount) {
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
    /// What keeps deletions from being dropped.
    pending: Arc<Pending>,
    cap: Option<u64>,
    guarded: Guarded,
    gauges: Gauges,
    watched: ArcSwap<imbl::HashMap<Place, Arc<Watched>>>,
    /// Those counted and not watched: bytes and key.
    seen: Mutex<BTreeMap<Place, (u64, Bytes)>>,
    /// A task counts: the one that has the [`Turn`].
    is_counting: Arc<AtomicBool>,
    clock: Clock,
    timestamps: WriteClock,
    tasks: crate::tasks::Tasks,
}

impl LogicalPartitions {
    /// `recorded`: what the catalog has of partitions of tables that are there.
    pub(crate) fn new(
        limits: &SizeLimits,
        guarded: Guarded,
        (clock, timestamps): (Clock, WriteClock),
        recorded: &[Recorded],
        (pending, tasks): (&Arc<Pending>, crate::tasks::Tasks),
    ) -> Self {
        let cap = limits.logical_partition_bytes_max;
        let slack = cap.map_or(0, |cap| cap / 200);
        let watched = recorded.iter().map(|recorded| {
            let size = Size {
                counted: recorded.bytes,
                added: slack,
                recorded: recorded.bytes,
                ..Size::default()
            };
            let watched = Watched {
                key: recorded.key.clone(),
                size: Mutex::new(size),
                counting: tokio::sync::Mutex::default(),
            };
            ((recorded.table, recorded.token), Arc::new(watched))
        });
        Self {
            cap,
            guarded,
            pending: Arc::clone(pending),
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

    /// Whether the size of this partition is kept with each write.
    pub(crate) fn is_watched(&self, table: StorageId, token: i64) -> bool {
        let watched = self.watched.load();
        !watched.is_empty() && watched.contains_key(&(table, token))
    }

    /// Asks before a write is made. What is given back must live until it is.
    ///
    /// # Errors
    /// When a logical partition would pass its limit, or cannot be counted; then nothing may be written.
    pub(crate) async fn admit(self: &Arc<Self>, weights: &[Weight], now_seconds: i64) -> Result<Admitted, Error> {
        let mut admitted = Admitted::default();
        for weight in weights {
            let place = (weight.table.storage_id, weight.token);
            if self.gauges.note(place.0, place.1, weight.bytes()) {
                Box::pin(self.count_named(weight)).await;
            }
            let Some(cap) = self.cap else { continue };
            let watched = {
                let watched = self.watched.load();
                if watched.is_empty() {
                    continue;
                }
                watched.get(&place).map(Arc::clone)
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
                let verdict = size.judge(weight, cap, self.clock.monotonic(), must_decide);
                (verdict, size.counts_begun)
            };
            match verdict {
                Verdict::Refused => return Err(full(cap)),
                Verdict::CountFirst { sweeps, counts } => {
                    let sweep_at = sweeps.then_some(now_seconds);
                    self.count_watched(weight, watched, sweep_at, Some(counts)).await?;
                    must_decide = true;
                }
                Verdict::Written {
                    warns,
                    record,
                    count_behind,
                } => {
                    let place = (weight.table.storage_id, weight.token);
                    admitted.on_their_way.push(OnItsWay {
                        watched: Arc::clone(watched),
                        place,
                        bytes: weight.bytes(),
                        counts_begun,
                        before_bytes: 0,
                        after_bytes: 0,
                        row_bytes: weight.row_bytes,
                    });
                    if let Some(bytes) = record {
                        admitted.records.push((record_key(place), encode(bytes, &weight.key)));
                    }
                    if let Some(percent) = warns {
                        admitted.warnings.push(self.warn(weight, watched, cap, percent));
                    }
                    if count_behind {
                        self.count_behind(weight, watched, now_seconds);
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
            return self.look_at(weight).await;
        }
        let place = (weight.table.storage_id, weight.token);
        let Some(turn) = Turn::take(&self.is_counting) else {
            // One at a time; the next to fill the gauge tries again.
            self.gauges.counted(place.0, place.1, 0);
            return;
        };
        let (partitions, weight) = (Arc::clone(self), weight.clone());
        self.tasks.spawn("count", async move {
            let _turn = turn;
            partitions.look_at(&weight).await;
        });
    }

    /// Counts a partition and watches it if it is large.
    async fn look_at(self: &Arc<Self>, weight: &Weight) {
        let place = (weight.table.storage_id, weight.token);
        let watched = self.watched.load().get(&place).map(Arc::clone);
        if let Some(watched) = watched {
            let bytes = lock(&watched.size).bytes();
            self.gauges.counted(place.0, place.1, bytes);
            let found = Counted { bytes, tombstones: 0 };
            self.guarded.log(&weight.table, &weight.key, found);
            return;
        }
        let counted = count(&weight.partition, &weight.table, weight.token, &weight.key).await;
        let found = counted.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not count a logical partition");
            Counted::default()
        });
        self.guarded.log(&weight.table, &weight.key, found);
        let bytes = found.bytes;
        self.gauges.counted(place.0, place.1, bytes);
        if self.cap.is_some_and(|cap| bytes >= cap / WATCHED_DIVISOR) {
            self.watch(weight, bytes).await;
        } else {
            self.see(place, bytes, &Bytes::copy_from_slice(&weight.key));
        }
    }

    fn see(&self, place: Place, bytes: u64, key: &Bytes) {
        let mut seen = lock(&self.seen);
        seen.insert(place, (bytes, key.clone()));
        if seen.len() > SEEN_MAX
            && let Some(least) = seen
                .iter()
                .min_by_key(|(_, (bytes, _))| *bytes)
                .map(|(place, _)| *place)
        {
            seen.remove(&least);
        }
    }

    /// Keeps a partition's size from now on.
    async fn watch(self: &Arc<Self>, weight: &Weight, bytes: u64) {
        let place = (weight.table.storage_id, weight.token);
        lock(&self.seen).remove(&place);
        // The key is copied: it is part of its request's frame, which must not be kept.
        let watched = Arc::new(Watched {
            key: Bytes::copy_from_slice(&weight.key),
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
                if let Some(least) = least.map(|(place, _)| *place) {
                    all.remove(&least);
                }
            }
            all.insert(place, Arc::clone(&watched));
            all
        });
        // What was written while it was counted first was not added: from now on it is.
        if let Err(error) = self.count_watched(weight, &watched, None, None).await {
            tracing::warn!(%error, "could not count a logical partition");
        }
    }

    fn count_behind(self: &Arc<Self>, weight: &Weight, watched: &Arc<Watched>, now_seconds: i64) {
        let Some(turn) = Turn::take(&self.is_counting) else {
            return;
        };
        let (partitions, weight, watched) = (Arc::clone(self), weight.clone(), Arc::clone(watched));
        self.tasks.spawn("count", async move {
            let _turn = turn;
            let sweep_at = lock(&watched.size).is_freed.then_some(now_seconds);
            if let Err(error) = partitions.count_watched(&weight, &watched, sweep_at, None).await {
                tracing::warn!(%error, "could not count a logical partition");
            }
        });
    }

    /// Recounts a watched partition, after a sweep if `sweep_at` (s) is given; not if others have recounted it since `counts`.
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
            let token = Token::bound(weight.token);
            let logical = weight.partition.logical(weight.table.storage_id, token, &weight.key);
            let sweep = logical.sweep(now_seconds, gc_before_seconds);
            // Of a partition that is being moved nothing is swept: the writer waits no longer, and what is there counts.
            let swept = sweep_partition(&weight.partition, sweep).await;
            swept.map_err(|error| storage_read(&error))?;
        }
        let before = {
            let mut size = lock(&watched.size);
            size.is_freed &= sweep_at.is_none();
            size.counts_begun += 1;
            *size
        };
        let found = count(&weight.partition, &weight.table, weight.token, &weight.key).await?;
        self.guarded.log(&weight.table, &weight.key, found);
        let bytes = found.bytes;
        let now = self.clock.monotonic();
        let mut size = lock(&watched.size);
        size.counted = bytes;
        // What was on its way then may or may not have been counted.
        size.added = size.added.saturating_sub(before.added).saturating_add(before.in_flight);
        size.is_known = true;
        // What was told is told again when it grows again.
        let reached = self.cap.map_or(0, |cap| percent(bytes, cap));
        size.logged_percent = size.logged_percent.min(reached);
        size.counts += 1;
        size.swept_counts += u64::from(sweeps);
        size.again_at = now + (now.saturating_sub(began) * RECOUNT_TIMES).max(RECOUNT_AFTER);
        Ok(())
    }

    /// Forgets partitions of tables that are gone. Gives the keys of their records.
    pub(crate) fn keep(&self, is_there: impl Fn(StorageId) -> bool) -> Vec<Vec<u8>> {
        lock(&self.seen).retain(|(table, _), _| is_there(*table));
        let watched = self.watched.load();
        let gone: Vec<Place> = watched.keys().filter(|(table, _)| !is_there(*table)).copied().collect();
        if gone.is_empty() {
            return Vec::new();
        }
        self.watched.rcu(|all| {
            let mut all = imbl::HashMap::clone(all);
            for place in &gone {
                all.remove(place);
            }
            all
        });
        gone.into_iter().map(record_key).collect()
    }

    /// Forgets the sizes of partitions whose tables were dropped or truncated, and their records in `main`.
    pub(super) async fn forget_dropped(&self, schema: &Schema, main: &Store) {
        let there: BTreeSet<StorageId> = schema.stored_tables().map(|table| table.storage_id).collect();
        let gone = self.keep(|id| there.contains(&id));
        if gone.is_empty() {
            return;
        }
        let mut batch = Batch::new();
        for key in gone {
            batch.delete(Space::Catalog, key);
        }
        // A record that stays describes no table: numbers of tables are never used again.
        if let Err(error) = main.commit(batch).await {
            tracing::warn!(%error, "records of dropped partitions stay");
        }
    }

    /// The largest partitions that are known, the largest first.
    pub(crate) fn largest<'a>(&self, table: impl Fn(StorageId) -> Option<&'a Table>) -> Vec<LargePartition> {
        let shown = |place: &Place, bytes, key: &Bytes, is_watched| {
            let table = table(place.0)?;
            Some(LargePartition {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                key: printed_key(table, key),
                token: place.1,
                bytes,
                bytes_max: self.cap,
                is_watched,
            })
        };
        let watched = self.watched.load();
        let watched = watched.iter().filter_map(|(place, watched)| {
            let bytes = lock(&watched.size).bytes();
            shown(place, bytes, &watched.key, true)
        });
        let seen = lock(&self.seen);
        let seen = seen
            .iter()
            .filter_map(|(place, (bytes, key))| shown(place, *bytes, key, false));
        let mut largest: Vec<LargePartition> = watched.chain(seen).collect();
        largest
            .sort_by(|a, b| (b.bytes, &a.keyspace, &a.table, a.token).cmp(&(a.bytes, &b.keyspace, &b.table, b.token)));
        largest
    }
}

/// What Cosmos says of a write to a full partition.
fn full(cap: u64) -> Error {
    Error::Unauthorized(format!(
        "Partition key reached maximum size of {}. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
        in_words(cap)
    ))
}

fn record_key((table, token): Place) -> Vec<u8> {
    [RECORD, &table.to_be_bytes(), &token.to_be_bytes()].concat()
}

fn encode(bytes: u64, key: &[u8]) -> Bytes {
    [&[RECORD_VERSION], bytes.to_be_bytes().as_slice(), key].concat().into()
}

/// Reads a record; `place` is what follows [`RECORD`] in its key. `None` when it is none: then the partition is not known.
pub(super) fn decode(place: &[u8], value: &[u8]) -> Option<Recorded> {
    let (table, token) = place.split_first_chunk::<4>()?;
    let (version, rest) = value.split_first()?;
    let (bytes, key) = rest.split_first_chunk::<8>()?;
    (*version == RECORD_VERSION).then_some(Recorded {
        table: u32::from_be_bytes(*table),
        token: i64::from_be_bytes(token.try_into().ok()?),
        bytes: u64::from_be_bytes(*bytes),
        key: Bytes::copy_from_slice(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_cosmos() {
        assert_eq!(
            full(SizeLimits::LOGICAL_PARTITION_BYTES_MAX).to_string(),
            "Partition key reached maximum size of 20 GB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk"
        );
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let key = record_key((7, -3));
        let place = key.strip_prefix(RECORD).unwrap();
        let record = encode(123, b"key");
        let read = decode(place, &record).unwrap();
        assert_eq!(
            (read.table, read.token, read.bytes, read.key.as_ref()),
            (7, -3, 123, &b"key"[..])
        );
        assert!(decode(place, &record[..8]).is_none());
        assert!(decode(&place[1..], &record).is_none());
        assert!(decode(place, b"\x02123456789").is_none());
    }
}
