//! The inputs of a call besides its arguments: the time and randomness, both passed in.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Generates distinct, increasing timeuuids. One per server.
#[derive(Debug)]
pub struct Timeuuids {
    /// Time of the last timeuuid, in 100 ns steps since 1970-01-01.
    last_100ns: AtomicI64,
    /// Variant, clock sequence and node.
    clock_and_node: u64,
}

impl Timeuuids {
    /// `random` gives the clock sequence and node, which distinguish servers.
    #[must_use]
    pub fn new(random: u64) -> Self {
        // Variant 10 in front; the node's multicast bit marks it as no hardware address (RFC 4122 §4.5).
        let clock_and_node = (random & 0x3fff_ffff_ffff_ffff) | 0x8000_0100_0000_0000;
        Self {
            last_100ns: AtomicI64::new(i64::MIN),
            clock_and_node,
        }
    }

    /// Resets the last time: for a reset that sets the clock back.
    pub fn forget(&self) {
        self.last_100ns.store(i64::MIN, Ordering::Relaxed);
    }

    /// A timeuuid of this time, or of the first free step after the last one.
    #[must_use]
    pub fn next(&self, now_micros: i64) -> [u8; 16] {
        let wanted = now_micros.saturating_mul(10);
        let step = |last: i64| Some(wanted.max(last.saturating_add(1)));
        // The update cannot fail, since `step` always returns a value; both arms hold the value before it.
        let (Ok(last) | Err(last)) = self.last_100ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        crate::types::timeuuid(wanted.max(last.saturating_add(1)), self.clock_and_node)
    }
}

/// What the bodies of user functions may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum steps of one call.
    pub steps_max: u64,
    /// Maximum bytes that one call allocates.
    pub bytes_max: u64,
    /// Maximum steps of all calls of one request.
    pub request_steps_max: u64,
}

impl CallLimits {
    /// Default steps of one call. They take about a tenth of a second; a loop of a few operations runs half a million
    /// times.
    pub const STEPS_MAX: u64 = 5_000_000;
    /// Default bytes of one call.
    pub const BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// Default steps of one request, about twenty seconds: an aggregate may take a thousand steps for each of a million
    /// rows.
    pub const REQUEST_STEPS_MAX: u64 = 1_000_000_000;
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            steps_max: Self::STEPS_MAX,
            bytes_max: Self::BYTES_MAX,
            request_steps_max: Self::REQUEST_STEPS_MAX,
        }
    }
}

/// The state that the calls of one request share.
#[derive(Debug)]
pub struct Context {
    /// The request's time, µs since 1970-01-01 UTC.
    pub now_micros: i64,
    /// The server's source of timeuuids.
    timeuuids: Arc<Timeuuids>,
    /// State of the generator of random numbers.
    random: AtomicU64,
    /// Limits of the bodies of user functions.
    limits: CallLimits,
    /// Steps that the bodies of user functions have taken.
    steps: AtomicU64,
}

impl Context {
    /// A request at that time; `seed` must be unpredictable where `uuid()` must be. Its calls have the default limits
    /// each, and none together.
    #[must_use]
    pub fn new(now_micros: i64, timeuuids: Arc<Timeuuids>, seed: u64) -> Self {
        Self {
            now_micros,
            timeuuids,
            random: AtomicU64::new(seed),
            limits: CallLimits {
                request_steps_max: u64::MAX,
                ..CallLimits::default()
            },
            steps: AtomicU64::new(0),
        }
    }

    /// The same with these limits of its calls.
    #[must_use]
    pub fn limited(self, limits: CallLimits) -> Self {
        Self { limits, ..self }
    }

    pub(super) const fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Steps that the request's next call may take.
    pub(super) fn steps_left(&self) -> u64 {
        let taken = self.steps.load(Ordering::Relaxed);
        self.limits.request_steps_max.saturating_sub(taken)
    }

    /// Counts steps of a call. Calls that run at once may take together as much as each was allowed.
    pub(super) fn take_steps(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// A fresh timeuuid.
    #[must_use]
    pub fn timeuuid(&self) -> [u8; 16] {
        self.timeuuids.next(self.now_micros)
    }

    /// 64 random bits (SplitMix64).
    #[must_use]
    pub fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
