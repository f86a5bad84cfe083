//! Runs of adjacent rows in memory, for scans inside one logical partition.
//!
//! A [`Run`] holds every stored row of an interval of keys in one buffer. So it also shows where no row is. A scan takes
//! what runs hold, and reads what lies between them from the engine. It leaves what it read as a run, but only if the
//! partition was scanned before: one pass over many partitions evicts nothing.
//!
//! ```text
//! keys of one partition   ├──── run ────┤ hole ├────────── run ──────────┤   hole …
//! ```
//!
//! **Agreement with the engine** is as for single rows (`cache.rs`). Before the committer publishes a snapshot, it cuts each
//! key that it has changed out of the run that holds it. A run carries the first sequence at which it is valid; only
//! snapshots that are not older read it. A reader adds a run only if no commit has changed a key of the shard since its
//! snapshot.
//!
//! **Bound.** Each shard has an equal part of the bytes and evicts whole partitions by CLOCK.
//!
//! Tables that are ordered by partition key have no runs: all their keys have one token, and runs are found by it.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::{Clock, Kept};
use crate::storage::CommitSeq;
use crate::storage::key::{self, KeyRange, TableId};
use crate::storage::scanning::Order;

/// Shards; a power of two. Few, so that each has room for long partitions.
const SHARDS: usize = 16;

/// Bytes up to which adjacent runs become one. Each join copies that much at most.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// Bytes that one stride of a scan leaves as a run. A longer scan leaves its first rows.
const READ_BYTES_MAX: usize = 256 * 1024;

/// A hole ends at a run of at least this many rows. Shorter runs are read again: to begin a read of the engine costs more.
const LONG_ROWS_MIN: usize = 32;

/// A partition larger than this part of its shard loses its older runs.
const LARGEST_PART: usize = 2;

/// Bytes that a partition and a run cost in addition to keys and rows: map slot, clock slot, counts, allocations.
const PARTITION_BYTES: usize = 160;
const RUN_BYTES: usize = 200;

/// The logical partitions of a table that share a token: nearly always one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableToken {
    table: TableId,
    token: i64,
}

impl TableToken {
    /// That of a row's key. `None` means that its table may be ordered by partition key, or that it is no row's key.
    fn of_key(key: &[u8]) -> Option<Self> {
        let (table, token) = key::table_and_token_of(key)?;
        (token != key::ORDERED_TOKEN).then_some(Self { table, token })
    }

    /// Tokens are hashes already.
    fn hash(self) -> u64 {
        self.token.cast_unsigned() ^ u64::from(self.table).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// The keys from one on and before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

impl Interval {
    /// A range that lies in one partition, and its token. `None` means that it does not, or that it has no runs.
    pub(super) fn of(range: &KeyRange) -> Option<(TableToken, Self)> {
        let from = match &range.start {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => key::after(key),
            Bound::Unbounded => return None,
        };
        let to = match &range.end {
            Bound::Included(key) => key::after(key),
            Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => return None,
        };
        let token = TableToken::of_key(&from)?;
        (Some(token) == TableToken::of_key(&to)).then_some((token, Self { from, to }))
    }

    /// The same keys as a range.
    pub(super) fn range(&self) -> KeyRange {
        KeyRange {
            start: Bound::Included(self.from.clone()),
            end: Bound::Excluded(self.to.clone()),
        }
    }

    /// Whether it has no keys.
    pub(super) fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// What is left of it in this order after the part that ends at `until`.
    pub(super) fn go_on(&mut self, order: Order, until: Vec<u8>) {
        match order {
            Order::Forward => self.from = until,
            Order::Reverse => self.to = until,
        }
    }

    /// Its first part in this order, up to `until`.
    pub(super) fn part(&self, order: Order, until: &[u8]) -> Self {
        let mut part = self.clone();
        match order {
            Order::Forward => part.to = until.to_vec(),
            Order::Reverse => part.from = until.to_vec(),
        }
        part
    }
}

/// Where a row lies in a buffer.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    key_end: u32,
    end: u32,
}

/// Rows one after the other: key and value of each.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    rows: Vec<Span>,
}

impl Buffer {
    /// Appends a row. `false` means that the buffer cannot address it.
    fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let start = self.bytes.len();
        let (key_end, end) = (start + key.len(), start + key.len() + value.len());
        let (Ok(start), Ok(key_end), Ok(end)) = (u32::try_from(start), u32::try_from(key_end), u32::try_from(end))
        else {
            return false;
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.rows.push(Span { start, key_end, end });
        true
    }

    fn key(&self, span: Span) -> &[u8] {
        self.slice(span.start, span.key_end)
    }

    fn value(&self, span: Span) -> &[u8] {
        self.slice(span.key_end, span.end)
    }

    fn slice(&self, start: u32, end: u32) -> &[u8] {
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// All stored rows of an interval of keys, or those of one part of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Run {
    keys: Interval,
    /// The first commit at which it is valid.
    seq: CommitSeq,
    buffer: Arc<Buffer>,
    /// Its rows among those of the buffer: the first, and the one after the last.
    first: usize,
    end: usize,
    /// Bytes of its rows.
    row_bytes: usize,
}

impl Run {
    fn new(keys: Interval, seq: CommitSeq, buffer: Buffer) -> Self {
        Self {
            keys,
            seq,
            first: 0,
            end: buffer.rows.len(),
            row_bytes: buffer.bytes.len(),
            buffer: Arc::new(buffer),
        }
    }

    /// The place where it ends in this order.
    pub(super) fn until(&self, order: Order) -> &[u8] {
        match order {
            Order::Forward => &self.keys.to,
            Order::Reverse => &self.keys.from,
        }
    }

    fn rows(&self) -> &[Span] {
        self.buffer.rows.get(self.first..self.end).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let spans = size_of_val(self.rows());
        RUN_BYTES + self.keys.from.len() + self.keys.to.len() + spans + self.row_bytes
    }

    /// Its rows that lie in an interval, as places in the buffer.
    fn rows_in(&self, keys: &Interval) -> (usize, usize) {
        let before = |bound: &[u8]| self.rows().partition_point(|span| self.buffer.key(*span) < bound);
        let first = if keys.from <= self.keys.from {
            0
        } else {
            before(&keys.from)
        };
        let end = if keys.to >= self.keys.to {
            self.rows().len()
        } else {
            before(&keys.to)
        };
        (self.first + first, self.first + end.max(first))
    }

    /// Visits its rows in an interval until `visit` breaks. Returns how many were visited.
    pub(super) fn visit(
        &self,
        keys: &Interval,
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> (usize, ControlFlow<()>) {
        let (first, end) = self.rows_in(keys);
        let rows = self.buffer.rows.get(first..end).unwrap_or_default();
        let mut visited = 0;
        let mut pass = |span: &Span| {
            visited += 1;
            visit(self.buffer.key(*span), self.buffer.value(*span))
        };
        let flow = match order {
            Order::Forward => rows.iter().try_for_each(&mut pass),
            Order::Reverse => rows.iter().rev().try_for_each(&mut pass),
        };
        (visited, flow)
    }

    /// The part of it that lies in an interval. It keeps the buffer, unless it needs less than half of it.
    fn within(&self, keys: Interval) -> Self {
        let (first, end) = self.rows_in(&keys);
        let rows = self.buffer.rows.get(first..end).unwrap_or_default();
        let row_bytes = rows.iter().map(|span| (span.end - span.start) as usize).sum();
        let part = Self {
            keys,
            seq: self.seq,
            buffer: Arc::clone(&self.buffer),
            first,
            end,
            row_bytes,
        };
        if row_bytes >= self.buffer.bytes.len() / 2 {
            return part;
        }
        let mut buffer = Buffer::default();
        part.append_to(&mut buffer);
        Self::new(part.keys, part.seq, buffer)
    }

    fn append_to(&self, buffer: &mut Buffer) {
        buffer.bytes.reserve(self.row_bytes);
        buffer.rows.reserve(self.rows().len());
        for span in self.rows() {
            buffer.push(self.buffer.key(*span), self.buffer.value(*span));
        }
    }

    /// It and the run that begins where it ends.
    fn joined(&self, next: &Self) -> Self {
        let mut buffer = Buffer::default();
        buffer.bytes.reserve_exact(self.row_bytes + next.row_bytes);
        self.append_to(&mut buffer);
        next.append_to(&mut buffer);
        let keys = Interval {
            from: self.keys.from.clone(),
            to: next.keys.to.clone(),
        };
        Self::new(keys, self.seq.max(next.seq), buffer)
    }
}

/// Rows that a scan reads from the engine, to be left as a run.
#[derive(Debug, Default)]
pub(super) struct ReadRows {
    buffer: Buffer,
    /// Whether rows were read that it does not hold.
    is_cut: bool,
}

impl ReadRows {
    /// Adds the row that comes next in the order of the scan.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.is_cut = self.is_cut
            || self.buffer.bytes.len() + key.len() + value.len() > READ_BYTES_MAX
            || !self.buffer.push(key, value);
    }

    /// The run that these rows are. `keys` were scanned; `is_whole` tells whether to their end, or only to the last row.
    /// `None` means that nothing is known.
    pub(super) fn run(mut self, keys: Interval, order: Order, is_whole: bool) -> Option<Run> {
        let mut known = keys;
        if self.is_cut || !is_whole {
            let last = self.buffer.key(*self.buffer.rows.last()?);
            let until = match order {
                Order::Forward => key::after(last),
                Order::Reverse => last.to_vec(),
            };
            known = known.part(order, &until);
        }
        if order == Order::Reverse {
            self.buffer.rows.reverse();
        }
        self.buffer.bytes.shrink_to_fit();
        self.buffer.rows.shrink_to_fit();
        Some(Run::new(known, CommitSeq(0), self.buffer))
    }
}

/// What is known where a scan begins.
#[derive(Debug)]
pub(super) enum Begin {
    /// The rows there.
    Run(Arc<Run>),
    /// Nothing up to this key, in the order of the scan. `is_kept` tells whether a run of it will be kept.
    Hole { until: Vec<u8>, is_kept: bool },
}

#[derive(Debug)]
struct Partition {
    token: TableToken,
    /// In the order of keys; no two overlap.
    runs: Vec<Arc<Run>>,
    bytes: usize,
    was_read: bool,
}

impl Partition {
    const fn new(token: TableToken) -> Self {
        Self {
            token,
            runs: Vec::new(),
            bytes: PARTITION_BYTES,
            was_read: false,
        }
    }

    fn begin(&self, keys: &Interval, order: Order, at: CommitSeq) -> Begin {
        let is_long = |run: &&Arc<Run>| run.seq <= at && run.rows().len() >= LONG_ROWS_MIN;
        let place = match order {
            Order::Forward => self.runs.partition_point(|run| run.keys.from <= keys.from),
            Order::Reverse => self.runs.partition_point(|run| run.keys.from < keys.to),
        };
        let (before, behind) = self.runs.split_at_checked(place).unwrap_or_default();
        if let Some(run) = before.last().filter(|run| run.seq <= at)
            && match order {
                Order::Forward => run.keys.to > keys.from,
                Order::Reverse => run.keys.to >= keys.to,
            }
        {
            return Begin::Run(Arc::clone(run));
        }
        let until = match order {
            Order::Forward => {
                let mut within = behind.iter().take_while(|run| run.keys.from < keys.to);
                within.find(is_long).map_or(&keys.to, |run| &run.keys.from)
            }
            Order::Reverse => {
                let mut within = before.iter().rev().take_while(|run| run.keys.to > keys.from);
                within.find(is_long).map_or(&keys.from, |run| &run.keys.to)
            }
        };
        Begin::Hole {
            until: until.clone(),
            is_kept: true,
        }
    }

    /// Adds a run, in place of what there is of its keys.
    fn add(&mut self, run: Run, bytes_max: usize) {
        let first = self.runs.partition_point(|other| other.keys.to < run.keys.from);
        let end = self.runs.partition_point(|other| other.keys.from <= run.keys.to);
        let touched: Vec<Arc<Run>> = self.runs.splice(first..end.max(first), []).collect();
        let before = touched.first().filter(|other| other.keys.from < run.keys.from);
        let before = before.map(|other| other.within(other.keys.part(Order::Forward, &run.keys.from)));
        let after = touched.last().filter(|other| other.keys.to > run.keys.to);
        let after = after.map(|other| other.within(other.keys.part(Order::Reverse, &run.keys.to)));
        let mut joined: Vec<Arc<Run>> = Vec::new();
        for next in before.into_iter().chain([run]).chain(after) {
            match joined.last_mut() {
                Some(last) if last.row_bytes + next.row_bytes <= JOINED_BYTES_MAX => {
                    *last = Arc::new(last.joined(&next))
                }
                _ => joined.push(Arc::new(next)),
            }
        }
        self.bytes -= bytes_of(&touched);
        let added = bytes_of(&joined);
        if self.bytes + added > bytes_max {
            self.runs.clear();
            self.bytes = PARTITION_BYTES;
        }
        if self.bytes + added <= bytes_max {
            let place = first.min(self.runs.len());
            self.runs.splice(place..place, joined);
            self.bytes += added;
        }
    }

    /// Removes a key from the run that holds it.
    fn cut(&mut self, key: &[u8]) {
        let place = self.runs.partition_point(|run| run.keys.from.as_slice() <= key);
        let Some(place) = place.checked_sub(1) else { return };
        let Some(run) = self.runs.get(place).filter(|run| run.keys.to.as_slice() > key) else {
            return;
        };
        let before = run.within(run.keys.part(Order::Forward, key));
        let after = run.within(run.keys.part(Order::Reverse, &key::after(key)));
        let parts = [before, after].into_iter().filter(|part| !part.rows().is_empty());
        let parts: Vec<Arc<Run>> = parts.map(Arc::new).collect();
        self.bytes = self.bytes - run.bytes() + bytes_of(&parts);
        self.runs.splice(place..=place, parts);
    }
}

fn bytes_of(runs: &[Arc<Run>]) -> usize {
    runs.iter().map(|run| run.bytes()).sum()
}

impl Kept for Partition {
    fn hash(&self) -> u64 {
        self.token.hash()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn was_read(&mut self) -> &mut bool {
        &mut self.was_read
    }
}

#[derive(Debug, Default)]
struct Shard {
    partitions: Clock<Partition>,
    /// The last commit that changed a key of this shard.
    touched: CommitSeq,
}

impl Shard {
    /// Changes a partition, if it is there.
    fn change(&mut self, token: TableToken, change: impl FnOnce(&mut Partition)) {
        let is_it = |partition: &Partition| partition.token == token;
        self.partitions.change(token.hash(), |partition| {
            if is_it(partition) {
                change(partition);
            }
        });
    }
}

/// The runs of a store. With a bound of 0 bytes it keeps none.
#[derive(Debug)]
pub(super) struct Runs {
    shards: Box<[Mutex<Shard>]>,
    shard_bytes_max: usize,
    bytes: AtomicUsize,
}

impl Runs {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_bytes_max: bytes_max / SHARDS,
            bytes: AtomicUsize::new(0),
        }
    }

    fn shard(&self, token: TableToken) -> Option<MutexGuard<'_, Shard>> {
        // Bits from the middle: the shard's own map uses the low and the high ones.
        let shard = usize::try_from(token.hash() >> 32).unwrap_or(0) % SHARDS;
        let shard = self.shards.get(shard)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has `change` change a shard, and counts the bytes again.
    fn change(&self, token: TableToken, change: impl FnOnce(&mut Shard)) {
        if let Some(mut shard) = self.shard(token) {
            let before = shard.partitions.bytes();
            change(&mut shard);
            let after = shard.partitions.bytes();
            if after != before {
                // Wraps around where bytes were given back, and so subtracts.
                self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
            }
        }
    }

    /// Bytes of all runs now.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What is known of the first keys of an interval, in this order, at a snapshot.
    pub(super) fn begin(&self, token: TableToken, keys: &Interval, order: Order, at: CommitSeq) -> Begin {
        let mut begin = Begin::Hole {
            until: match order {
                Order::Forward => keys.to.clone(),
                Order::Reverse => keys.from.clone(),
            },
            is_kept: false,
        };
        if self.shard_bytes_max == 0 {
            return begin;
        }
        self.change(token, |shard| {
            if let Some(partition) = shard.partitions.get(token.hash()).filter(|found| found.token == token) {
                partition.was_read = true;
                begin = partition.begin(keys, order, at);
            } else {
                shard.partitions.put(Partition::new(token));
                shard.partitions.evict(self.shard_bytes_max);
            }
        });
        begin
    }

    /// Keeps a run that was read from the engine at a snapshot, unless a commit came between.
    pub(super) fn add(&self, token: TableToken, mut run: Run, at: CommitSeq) {
        self.change(token, |shard| {
            if shard.touched > at {
                return;
            }
            // No commit changed the shard between `touched` and `at`, so the rows are valid from `touched` on.
            run.seq = shard.touched;
            shard.change(token, |partition| {
                partition.add(run, self.shard_bytes_max / LARGEST_PART)
            });
            shard.partitions.evict(self.shard_bytes_max);
        });
    }

    /// Forgets a row that a commit changed.
    pub(super) fn forget(&self, key: &[u8], seq: CommitSeq) {
        if self.shard_bytes_max == 0 {
            return;
        }
        if let Some(token) = TableToken::of_key(key) {
            self.change(token, |shard| {
                shard.touched = seq;
                shard.change(token, |partition| partition.cut(key));
            });
        }
    }

    /// Removes all; rows read at snapshots before `seq` are no longer accepted.
    pub(super) fn clear(&self, seq: CommitSeq) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            self.bytes.fetch_sub(shard.partitions.bytes(), Ordering::Relaxed);
            *shard = Shard {
                touched: seq,
                ..Shard::default()
            };
        }
    }
}
