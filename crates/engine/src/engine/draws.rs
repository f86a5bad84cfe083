//! Randomness for requests: one seed at the start of the server, and a separate generator for each request.

use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out generators.
#[derive(Debug)]
pub(super) struct Draws {
    /// The number of the next generator.
    next: AtomicU64,
}

impl Draws {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            next: AtomicU64::new(seed),
        }
    }

    /// A generator that no other request has.
    pub(super) fn generator(&self) -> fastrand::Rng {
        // Neighbouring numbers must not give overlapping sequences, so each seeds a generator of its own.
        fastrand::Rng::with_seed(self.next.fetch_add(1, Ordering::Relaxed))
    }
}
