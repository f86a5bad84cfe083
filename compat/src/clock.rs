//! The one place that reads the machine's clock: these runs measure real time, which no test clock can stand in for.

use std::time::Instant;

/// Now.
#[expect(clippy::disallowed_methods, reason = "these runs measure real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since `start`, with fractions.
pub fn millis_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}
