//! Time as a value: the only room that reads the system clock.
//!
//! Everything that needs the time takes a [`Clock`]. [`Clock::system`] is the machine's; [`Clock::manual`] stands still until a
//! test moves it. Wall time orders writes and expires cells; monotonic time measures durations and deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of wall and monotonic time. Cheap to clone; clones of a manual clock move together.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System {
        origin: Instant,
    },
    Manual {
        micros: Arc<AtomicI64>,
        started_micros: i64,
        /// How far wall time has been set from where it would be.
        set_micros: Arc<AtomicI64>,
    },
}

impl Clock {
    /// The machine's own clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    pub fn system() -> Self {
        Self(Source::System { origin: Instant::now() })
    }

    /// A clock that starts at `micros` µs since 1970-01-01 UTC and moves only by [`Clock::advance`].
    #[must_use]
    pub fn manual(micros: i64) -> Self {
        Self(Source::Manual {
            micros: Arc::new(AtomicI64::new(micros)),
            started_micros: micros,
            set_micros: Arc::default(),
        })
    }

    /// Microseconds since 1970-01-01 UTC. May step backwards with the machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    pub fn wall_micros(&self) -> i64 {
        match &self.0 {
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
                Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
            },
            Source::Manual { micros, set_micros, .. } => micros
                .load(Ordering::SeqCst)
                .saturating_add(set_micros.load(Ordering::SeqCst)),
        }
    }

    /// Whole seconds since 1970-01-01 UTC: the unit of expiry.
    #[must_use]
    pub fn wall_seconds(&self) -> i64 {
        self.wall_micros().div_euclid(1_000_000)
    }

    /// Time since this clock was made; never goes back.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System { origin } => origin.elapsed(),
            Source::Manual {
                micros, started_micros, ..
            } => {
                let passed = micros.load(Ordering::SeqCst).saturating_sub(*started_micros);
                Duration::from_micros(u64::try_from(passed).unwrap_or(0))
            }
        }
    }

    /// Moves a manual clock forward. Does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { micros, .. } = &self.0 {
            micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// Sets the wall time of a manual clock forward, or back, as somebody might set a machine's; monotonic time goes on as it was.
    /// Does nothing to the system's clock.
    pub fn set_wall_by(&self, by_micros: i64) {
        if let Source::Manual { set_micros, .. } = &self.0 {
            set_micros.fetch_add(by_micros, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_the_wall_leaves_monotonic_time() {
        let clock = Clock::manual(5_000_000);
        clock.advance(Duration::from_secs(2));
        clock.set_wall_by(-3_000_000);
        assert_eq!((clock.wall_seconds(), clock.monotonic()), (4, Duration::from_secs(2)));
    }

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = Clock::manual(1_000_000);
        assert_eq!((clock.wall_micros(), clock.wall_seconds()), (1_000_000, 1));
        clock.clone().advance(Duration::from_secs(2));
        assert_eq!(clock.wall_seconds(), 3);
        assert_eq!(clock.monotonic(), Duration::from_secs(2));
    }
}
