//! Counters: every one there is, its name and what it counts, in one list.
//!
//! A counter is a number that only rises; a gauge is two of them, one for each direction. They are process-wide, since that is
//! what is scraped, and cost one relaxed addition. Histograms, labels and an exposition endpoint are deliberately absent as yet.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only rises, with its name.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            value: AtomicU64::new(0),
        }
    }

    /// Its name, as scraped.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// One more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $counter:ident = $name:literal;)+) => {
        $($(#[doc = $doc])+ pub static $counter: Counter = Counter::new($name);)+

        /// Every counter.
        pub static ALL: &[&Counter] = &[$(&$counter),+];
    };
}

counters! {
    /// Connections accepted.
    CONNECTIONS_OPENED = "connections_opened_total";
    /// Connections that ended.
    CONNECTIONS_CLOSED = "connections_closed_total";
    /// Connections refused because there were too many.
    CONNECTIONS_REFUSED = "connections_refused_total";
    /// Connections closed because the client did not read.
    CONNECTIONS_SLOW = "connections_slow_total";
    /// Requests answered, whatever the answer.
    REQUESTS = "requests_total";
    /// Answers that were errors.
    REQUEST_ERRORS = "request_errors_total";
    /// Requests that failed by our own fault.
    SERVER_ERRORS = "server_errors_total";
    /// Requests that panicked; each is a bug.
    REQUEST_PANICS = "request_panics_total";
    /// Requests refused because too much was in flight.
    REQUESTS_OVERLOADED = "requests_overloaded_total";
    /// Bodies and envelopes that broke the protocol.
    PROTOCOL_ERRORS = "protocol_errors_total";
    /// Segments whose checksum did not match.
    CHECKSUM_MISMATCHES = "checksum_mismatches_total";
    /// Bytes read from clients.
    BYTES_RECEIVED = "bytes_received_total";
    /// Bytes written to clients.
    BYTES_SENT = "bytes_sent_total";
    /// Logins that failed or were refused.
    LOGINS_FAILED = "logins_failed_total";
    /// Statements prepared, those that were prepared already included.
    STATEMENTS_PREPARED = "statements_prepared_total";
    /// Prepared statements forgotten to make room.
    STATEMENTS_EVICTED = "statements_evicted_total";
    /// EXECUTEs of an unknown id.
    STATEMENTS_UNKNOWN = "statements_unknown_total";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = ALL.iter().map(|counter| counter.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
