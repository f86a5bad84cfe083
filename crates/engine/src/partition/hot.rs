//! The hot partition keys, counted in bounded memory.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent and top-k elements in data streams",
//! 2005): a fixed number of counters. A key without a counter takes over the smallest one, whose count becomes the
//! key's possible error. A key has a counter if its share of the requests is more than one in that number. No key is
//! shown with fewer requests than it had.
//!
//! Keys are spread over `SHARDS`, each with a lock that is held for some tens of nanoseconds; a request that finds the
//! lock taken is not counted. Once a window has many requests, only one of `SAMPLE` is counted, with that weight. A
//! fixed pseudorandom sequence selects it (Knuth's multiplier for linear congruences, The Art of Computer Programming
//! 2, 3.3.4). The views show the current window of `WINDOW` and the one before.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use crate::throughput::RequestUnits;

const SHARDS: usize = 8;

/// Counters of a shard in a window.
const COUNTERS: usize = 32;

/// Under load, one of so many requests is counted.
const SAMPLE: u64 = 64;

/// Requests of a shard in a window that are counted singly before sampling begins.
const COUNTED_EACH: u64 = 2048;

/// Bytes of a key that are kept.
const KEY_BYTES_MAX: usize = 1024;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);

/// A hot partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    /// Its table's number.
    pub table: u32,
    /// The number of the key by its table's placement ([`super::Placement::spread`]).
    pub spread: i64,
    /// The partition key, its first KiB.
    pub key: Box<[u8]>,
    /// Requests of the last one to two windows; an upper bound.
    pub requests: u64,
    /// The real number may be lower by at most this much.
    pub requests_error: u64,
    /// The charges of those requests, extrapolated from the counted ones.
    pub units: RequestUnits,
}

#[derive(Debug, Default)]
struct Sketch {
    /// The number of each counter's key. Kept apart from the other fields, since every request searches all of them.
    spreads: Vec<i64>,
    requests: Vec<u64>,
    counters: Vec<Counter>,
    recorded: u64,
}

#[derive(Debug)]
struct Counter {
    table: u32,
    key: Box<[u8]>,
    requests_error: u64,
    units: RequestUnits,
}

#[derive(Debug, Default)]
struct Shard {
    window: u64,
    now: Sketch,
    before: Sketch,
}

/// Counters of hot partition keys.
#[derive(Debug)]
pub struct HotKeys {
    shards: Vec<Mutex<Shard>>,
    is_busy: AtomicBool,
}

impl Default for HotKeys {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            is_busy: AtomicBool::new(false),
        }
    }
}

thread_local! {
    static CHANCE: Cell<u64> = const { Cell::new(0) };
    /// Requests of this thread to skip before the next is counted.
    static LEFT_OUT: Cell<u64> = const { Cell::new(0) };
}

/// Draws how many requests to skip now, [`SAMPLE`] − 1 in the mean. The number varies, since requests often come in
/// cycles.
#[inline(never)]
fn choose() -> u64 {
    let chance = CHANCE
        .get()
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    CHANCE.set(chance);
    LEFT_OUT.set((chance >> 33) % (2 * SAMPLE - 1));
    SAMPLE
}

impl Sketch {
    fn record(&mut self, table: u32, spread: i64, key: &[u8], times: u64, units: RequestUnits) {
        self.recorded += times;
        let key = key.get(..KEY_BYTES_MAX).unwrap_or(key);
        if self.spreads.contains(&spread) {
            let mut places = (0..).zip(&self.spreads).filter(|(_, other)| **other == spread);
            let is_of = |of: &Counter| of.table == table && *of.key == *key;
            let of_table = |(place, _): &(usize, _)| self.counters.get(*place).is_some_and(is_of);
            if let Some((place, _)) = places.find(of_table)
                && let (Some(requests), Some(counter)) = (self.requests.get_mut(place), self.counters.get_mut(place))
            {
                *requests += times;
                counter.units += units;
                return;
            }
        }
        let mut counter = Counter {
            table,
            key: key.into(),
            requests_error: 0,
            units,
        };
        if self.counters.len() < COUNTERS {
            self.spreads.push(spread);
            self.requests.push(times);
            self.counters.push(counter);
            return;
        }
        let least = (0..).zip(&self.requests).min_by_key(|(_, requests)| **requests);
        let Some(place) = least.map(|(place, _): (usize, _)| place) else {
            return;
        };
        if let (Some(requests), Some(other), Some(taken)) = (
            self.requests.get_mut(place),
            self.spreads.get_mut(place),
            self.counters.get_mut(place),
        ) {
            counter.requests_error = *requests;
            *requests += times;
            *other = spread;
            *taken = counter;
        }
    }

    fn keys(&self) -> impl Iterator<Item = HotKey> {
        let all = self.spreads.iter().zip(&self.requests).zip(&self.counters);
        all.map(|((spread, requests), counter)| HotKey {
            table: counter.table,
            spread: *spread,
            key: counter.key.clone(),
            requests: *requests,
            requests_error: counter.requests_error,
            units: counter.units,
        })
    }
}

impl Shard {
    /// Begins another window when the current one has ended.
    fn turn_to(&mut self, window: u64) {
        if window == self.window {
            return;
        }
        let old = std::mem::take(&mut self.now);
        self.before = if window == self.window + 1 {
            old
        } else {
            Sketch::default()
        };
        self.window = window;
    }
}

fn window_of(now: Duration) -> u64 {
    now.as_secs() / WINDOW.as_secs()
}

impl HotKeys {
    /// The weight with which to count a request that begins now; 0 means not at all.
    #[inline]
    pub fn weight(&self) -> u64 {
        if !self.is_busy.load(Ordering::Relaxed) {
            return 1;
        }
        match LEFT_OUT.get().checked_sub(1) {
            Some(left) => {
                LEFT_OUT.set(left);
                0
            }
            None => choose(),
        }
    }

    /// Counts a request for a logical partition with its [`HotKeys::weight`] `times`. The partition is given by its
    /// table's number, the number of its key by the placement ([`super::Placement::spread`]) and the key; `units` is
    /// the charge. Keys that agree in that number and in their first KiB count as one.
    pub fn record(&self, table: u32, spread: i64, key: &[u8], units: RequestUnits, now: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let place = usize::try_from((spread.cast_unsigned() ^ u64::from(table)) % SHARDS as u64).unwrap_or(0);
        let Some(shard) = self.shards.get(place) else { return };
        let mut shard = match shard.try_lock() {
            Ok(shard) => shard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let window = window_of(now);
        if window != shard.window {
            self.is_busy.store(false, Ordering::Relaxed);
        }
        shard.turn_to(window);
        shard.now.record(table, spread, key, times, units * times);
        if shard.now.recorded >= COUNTED_EACH {
            self.is_busy.store(true, Ordering::Relaxed);
        }
    }

    /// The hottest keys, at most `count`, the hottest first.
    #[must_use]
    pub fn hottest(&self, now: Duration, count: usize) -> Vec<HotKey> {
        let window = window_of(now);
        let mut hottest = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let window = window.max(shard.window);
            shard.turn_to(window);
            let mut keys: Vec<HotKey> = shard.now.keys().collect();
            for before in shard.before.keys() {
                let same = |key: &&mut HotKey| {
                    key.spread == before.spread && key.table == before.table && key.key == before.key
                };
                match keys.iter_mut().find(same) {
                    Some(key) => {
                        key.requests += before.requests;
                        key.requests_error += before.requests_error;
                        key.units += before.units;
                    }
                    None => keys.push(before),
                }
            }
            hottest.append(&mut keys);
        }
        // Sorted by the lower bound first: those keys are certainly hot.
        hottest.sort_by_key(|key| std::cmp::Reverse((key.requests - key.requests_error, key.requests, key.spread)));
        hottest.truncate(count);
        hottest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: RequestUnits = RequestUnits::whole(1);

    #[test]
    fn the_keys_asked_most_come_first() {
        let keys = HotKeys::default();
        let mut random = fastrand::Rng::with_seed(1);
        for number in 0..200_000_i64 {
            // Key 1 gets a tenth of the requests, key 2 a twentieth.
            let token = match number % 20 {
                0 | 1 => 1,
                2 => 2,
                _ => random.i64(1000..1_000_000),
            };
            keys.record(7, token, &token.to_be_bytes(), UNIT, Duration::ZERO, keys.weight());
        }
        let hottest = keys.hottest(Duration::ZERO, 5);
        assert_eq!((hottest[0].spread, hottest[1].spread), (1, 2));
        let (first, second) = (&hottest[0], &hottest[1]);
        assert_eq!(first.key.as_ref(), 1_i64.to_be_bytes());
        for (key, asked) in [(first, 20_000_u64), (second, 10_000)] {
            // The error of sampling, and that of the counter which the key took over.
            assert!(key.requests.abs_diff(asked) < asked / 5 + key.requests_error, "{key:?}");
            assert_eq!(key.units.in_hundredths() / 100 + key.requests_error, key.requests);
        }
        assert!(hottest.len() == 5);
    }

    #[test]
    fn two_keys_of_one_number_are_two() {
        let keys = HotKeys::default();
        for key in [b"a", b"b", b"a"] {
            keys.record(1, 5, key, UNIT, Duration::ZERO, keys.weight());
        }
        keys.record(1, 5, b"b", UNIT, WINDOW, keys.weight());
        let hottest = keys.hottest(WINDOW, 10);
        let counts: Vec<_> = hottest.iter().map(|key| (key.key.as_ref(), key.requests)).collect();
        assert_eq!(counts, [(&b"b"[..], 2), (&b"a"[..], 2)]);
    }

    #[test]
    fn few_requests_are_counted_exactly_and_forgotten_after_two_windows() {
        let keys = HotKeys::default();
        for token in [5, 5, 6] {
            keys.record(1, token, b"k", UNIT, Duration::ZERO, keys.weight());
        }
        keys.record(1, 5, b"k", UNIT, WINDOW, keys.weight());
        let counts = |now| -> Vec<(i64, u64)> {
            let hottest = keys.hottest(now, 10);
            hottest
                .iter()
                .map(|key| (key.spread, key.requests - key.requests_error))
                .collect()
        };
        assert_eq!(counts(WINDOW), [(5, 3), (6, 1)]);
        assert_eq!(counts(WINDOW * 2), [(5, 1)]);
        assert_eq!(counts(WINDOW * 3), []);
    }
}
