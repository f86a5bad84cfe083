//! The load of a physical partition, and the decisions that follow from it.
//!
//! Each partition of a partition map has a [`Load`] of its own; a split or merge starts new ones. The charges of
//! statements are added to it. After every `UNITS_PER_SAMPLE` units the token of the request is kept. The newest
//! `SAMPLES` tokens are kept, so the samples are distributed as the load is. For a table that is ordered by partition
//! key, keys are kept.
//!
//! [`Load::check`] is called periodically and evaluates the time since the last call. A partition that stays above its
//! share for a number of consecutive checks is hot. It is then split where its load is halved (`halving`). If one key
//! has nearly all of the load, it cannot be divided. Two neighbours may be merged only if both are quiet: each uses at
//! most an eighth of its share. A split leaves about half of the load on each side, so a partition is not split and
//! merged in turn.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::throughput::RequestUnits;

/// Tokens or keys that a partition keeps: 2 KiB of tokens, once it has a load.
const SAMPLES: usize = 256;

/// Units after which a request's token is kept.
const UNITS_PER_SAMPLE: RequestUnits = RequestUnits::whole(10);

/// Fewest samples from which a split point is computed.
const SAMPLES_MIN: usize = 32;

/// Part of the samples that a split must leave on each side: a tenth.
const SIDE_DIVISOR: usize = 10;

/// The load of one physical partition.
#[derive(Debug, Default)]
pub struct Load {
    /// Hundredths of units of statements on keys, since it was created.
    units: AtomicU64,
    /// Hundredths of units of scans, since it was created.
    scanned: AtomicU64,
    samples: OnceLock<Box<[AtomicI64]>>,
    /// Samples of a table that is ordered by partition key.
    keys: Mutex<KeySamples>,
    /// Hundredths of units a second, between the last two checks.
    rate: AtomicU64,
    /// Consecutive checks at which it was above its share.
    hot_checks: AtomicU32,
    /// Whether it used more than an eighth of its share, at the last check.
    is_busy: AtomicBool,
    last_look: Mutex<Option<Look>>,
    /// Bytes of keys and values that were written to it since it was created.
    written_bytes: AtomicU64,
}

/// Samples of partition keys, as [`Load::samples`] has tokens.
#[derive(Debug, Default)]
struct KeySamples {
    units: u64,
    kept: Vec<Box<[u8]>>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Duration,
    units: u64,
}

/// The limits above which a partition is hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Units a second that a physical partition may use: its share.
    pub units_per_second_max: RequestUnits,
    /// The percentage of that share above which it is hot.
    pub hot_percent: u32,
    /// How many consecutive checks it must be above it.
    pub checks: u32,
}

impl LoadLimits {
    /// Units a second of a physical partition: 10,000, as in Cosmos.
    pub const UNITS_PER_SECOND_MAX: u64 = 10_000;
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            units_per_second_max: RequestUnits::whole(Self::UNITS_PER_SECOND_MAX),
            hot_percent: 80,
            checks: 6,
        }
    }
}

impl Load {
    /// Records bytes of keys and values written.
    pub fn record_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of keys and values written since the partition was created, overwrites included: an upper bound of its
    /// growth.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Records the charge of a statement on this token.
    pub fn record(&self, token: i64, units: RequestUnits) {
        self.record_all(&[token], units);
    }

    /// Records the total charge of statements on these tokens, spread evenly over them.
    pub fn record_all(&self, tokens: &[i64], units: RequestUnits) {
        let step = UNITS_PER_SAMPLE.in_hundredths();
        let before = self.units.fetch_add(units.in_hundredths(), Ordering::Relaxed);
        let steps = before.saturating_add(units.in_hundredths()) / step;
        if steps == before / step {
            return;
        }
        let samples = self
            .samples
            .get_or_init(|| (0..SAMPLES).map(|_| AtomicI64::new(0)).collect());
        // A statement that costs many units counts as many samples.
        let first = (before / step).max(steps.saturating_sub(SAMPLES as u64));
        for at in first..steps {
            let place = usize::try_from(at % SAMPLES as u64).unwrap_or(0);
            let of = usize::try_from((at - first) * tokens.len() as u64 / (steps - first)).unwrap_or(0);
            if let (Some(sample), Some(token)) = (samples.get(place), tokens.get(of)) {
                sample.store(*token, Ordering::Relaxed);
            }
        }
    }

    /// Samples the partition key of a statement, in a table that is ordered by partition key. There all keys have one
    /// token, so tokens do not show the load. `units` weights the sample and is not added to the load.
    pub fn record_key(&self, partition_key: &[u8], units: RequestUnits) {
        let step = UNITS_PER_SAMPLE.in_hundredths();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.units;
        keys.units = before.saturating_add(units.in_hundredths());
        let steps = keys.units / step;
        for at in (before / step).max(steps.saturating_sub(SAMPLES as u64))..steps {
            let place = usize::try_from(at % SAMPLES as u64).unwrap_or(0);
            match keys.kept.get_mut(place) {
                Some(kept) => *kept = partition_key.into(),
                None => keys.kept.push(partition_key.into()),
            }
        }
    }

    /// The partition key before which about half of the load lies, in a table that is ordered by partition key; `None`
    /// as for [`Load::middle`].
    #[must_use]
    pub fn middle_key(&self) -> Option<Vec<u8>> {
        let mut kept = {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.kept.clone()
        };
        halving(&mut kept).map(|key| key.to_vec())
    }

    /// Units that may be recorded together at one token without coarser samples.
    pub const TOGETHER: RequestUnits = UNITS_PER_SAMPLE;

    /// Records the charge of a scan, which has no particular token.
    pub fn record_scan(&self, units: RequestUnits) {
        self.scanned.fetch_add(units.in_hundredths(), Ordering::Relaxed);
    }

    /// All units since the partition was created.
    #[must_use]
    pub fn units(&self) -> RequestUnits {
        RequestUnits::hundredths(self.all())
    }

    fn all(&self) -> u64 {
        let units = self.units.load(Ordering::Relaxed);
        units.saturating_add(self.scanned.load(Ordering::Relaxed))
    }

    /// Units a second, as of the last check.
    #[must_use]
    pub fn per_second(&self) -> RequestUnits {
        RequestUnits::hundredths(self.rate.load(Ordering::Relaxed))
    }

    /// Evaluates the time since the last check. Returns whether it has been hot for as many checks as required.
    pub fn check(&self, now: Duration, limits: &LoadLimits) -> bool {
        let mut last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        let units = self.all();
        let Some(before) = last.replace(Look { at: now, units }) else {
            return false;
        };
        let micros = now.saturating_sub(before.at).as_micros();
        if micros == 0 {
            *last = Some(before);
            return false;
        }
        let rate = u128::from(units.saturating_sub(before.units)) * 1_000_000 / micros;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.rate.store(rate, Ordering::Relaxed);
        let is_busy = rate.saturating_mul(8) > limits.units_per_second_max.in_hundredths();
        self.is_busy.store(is_busy, Ordering::Relaxed);
        let share = limits.units_per_second_max * u64::from(limits.hot_percent);
        let is_hot = rate.saturating_mul(100) > share.in_hundredths();
        let checks = if is_hot {
            self.hot_checks.load(Ordering::Relaxed).saturating_add(1)
        } else {
            0
        };
        self.hot_checks.store(checks, Ordering::Relaxed);
        checks >= limits.checks.max(1)
    }

    /// Whether it used at most an eighth of its share, as of the last check; also before the first check.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.is_busy.load(Ordering::Relaxed)
    }

    /// Resets the count of consecutive checks.
    pub fn begin_again(&self) {
        self.hot_checks.store(0, Ordering::Relaxed);
    }

    /// The token before which about half of the recent load lies. `None` means too few samples, or nearly all of one
    /// token.
    #[must_use]
    pub fn middle(&self) -> Option<i64> {
        let kept = self.samples.get()?;
        let steps = self.units.load(Ordering::Relaxed) / UNITS_PER_SAMPLE.in_hundredths();
        let count = usize::try_from(steps).unwrap_or(usize::MAX).min(SAMPLES);
        let mut samples: Vec<i64> = kept
            .iter()
            .take(count)
            .map(|token| token.load(Ordering::Relaxed))
            .collect();
        halving(&mut samples).copied()
    }
}

/// The token or key before which about half of the samples lie. `None` means that they are too few, or nearly all
/// equal.
fn halving<T: Ord>(samples: &mut [T]) -> Option<&T> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    samples.sort_unstable();
    let half = samples.len() / 2;
    let cuts = samples.windows(2).enumerate().filter_map(|(place, pair)| match pair {
        [left, right] if left != right => Some((place + 1, right)),
        _ => None,
    });
    let (before, at) = cuts.min_by_key(|(before, _)| before.abs_diff(half))?;
    let side = before.min(samples.len() - before);
    (side >= samples.len() / SIDE_DIVISOR).then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> LoadLimits {
        LoadLimits {
            units_per_second_max: RequestUnits::whole(100),
            hot_percent: 80,
            checks: 3,
        }
    }

    #[test]
    fn only_what_stays_hot_is_hot() {
        let load = Load::default();
        let mut now = SECOND;
        let mut second = |units| {
            load.record(1, RequestUnits::whole(units));
            now += SECOND;
            load.check(now, &limits())
        };
        assert!(!second(1000), "nothing is known of the time before the first check");
        let hot: Vec<bool> = [81, 81, 80, 81, 200, 81, 81, 0].into_iter().map(&mut second).collect();
        assert_eq!(hot, [false, false, false, false, false, true, true, false]);
        assert_eq!(load.per_second(), RequestUnits::ZERO);
        assert!(!load.check(now, &limits()), "no time has passed");
    }

    #[test]
    fn load_is_halved_between_two_tokens() {
        let load = Load::default();
        assert_eq!(load.middle(), None);
        for number in 0..100_i64 {
            // Three quarters of the load are on the tokens from 50 to 59.
            let token = if number % 4 == 0 { number } else { 50 + number % 10 };
            load.record(token, UNITS_PER_SAMPLE);
        }
        let middle = load.middle().unwrap();
        assert!((52..=57).contains(&middle), "{middle}");
    }

    #[test]
    fn a_large_charge_counts_as_much_as_many_small_ones() {
        let load = Load::default();
        for number in 0..20_i64 {
            // Ten large ones below, as many units in small ones above.
            load.record(1000 + number % 10, UNITS_PER_SAMPLE * 10);
            for _ in 0..10 {
                load.record(2000 + number % 10, UNITS_PER_SAMPLE);
            }
        }
        let middle = load.middle().unwrap();
        assert!((1009..=2001).contains(&middle), "{middle}");
    }

    #[test]
    fn one_key_is_not_divided() {
        let load = Load::default();
        for number in 0..1000_i64 {
            load.record(if number % 50 == 0 { number } else { 7 }, UNITS_PER_SAMPLE);
        }
        assert_eq!(load.middle(), None);
    }

    #[test]
    fn a_partition_is_quiet_up_to_an_eighth() {
        let load = Load::default();
        assert!(load.is_quiet());
        let mut now = SECOND;
        load.check(now, &limits());
        for (units, is_quiet) in [(12, true), (13, false), (0, true)] {
            load.record(0, RequestUnits::whole(units));
            now += SECOND;
            load.check(now, &limits());
            assert_eq!(load.is_quiet(), is_quiet, "{units}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_leaves_a_tenth_on_each_side(mut tokens in prop::collection::vec(-20_i64..20, 0..300)) {
            if let Some(at) = halving(&mut tokens).copied() {
                let before = tokens.iter().filter(|token| **token < at).count();
                prop_assert!(before >= tokens.len() / 10 && tokens.len() - before >= tokens.len() / 10);
            }
        }
    }
}
