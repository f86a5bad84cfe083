//! The one place that reads the machine's clock: these runs measure real time, which no test clock can stand in for.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now.
#[expect(clippy::disallowed_methods, reason = "these runs measure real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since `start`, with fractions.
pub fn millis_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// The machine's wall clock, microseconds since 1970: what writes are dated by.
#[expect(
    clippy::disallowed_methods,
    reason = "these runs compare with what servers date by the same clock"
)]
pub fn unix_micros() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_micros()).unwrap_or(i64::MAX)
}
