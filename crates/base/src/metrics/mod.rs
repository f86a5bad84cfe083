//! Metrics: every counter with its name in one list, statements by kind and table, and their durations.
//!
//! Three kinds of figure. A [`Counter`] only rises and is process-wide, as Prometheus scrapes it. A [`Histogram`]
//! counts durations (or sizes) in a fixed number of buckets. [`Statements`] are those of one database, which also shows
//! them in its own tables. A gauge is read where its value is kept and has no place here.
//!
//! **Cost.** A counter is one relaxed addition, most of them once for many requests. A request costs an entry in the memory of its
//! thread, and its part of two readings of the clock and five additions that all requests of a [`turn`] share.
//!
//! **Labels** are of fixed sets: kinds of statements, codes of errors. Never a key, a value, a name or a text of a user.
//!
//! Deliberately absent: clocks (time is passed in), the exposition's transport, names of tables.

mod bucket;
pub mod exposition;
mod histogram;
mod statements;
pub mod turn;

use std::sync::atomic::{AtomicU64, Ordering};

pub use bucket::{
    BucketCause, BucketPrices, BucketRequest, CachedPart, CachedParts, NoPrices, bucket_requests, cached_parts,
    count_bucket_request, count_cached_part,
};
pub use histogram::{Distribution, Histogram};
pub use statements::{Access, AccessFigures, KindFigures, StatementKind, Statements, Subject, TableFigures};

/// A number that only rises, with its name.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    help: &'static str,
    value: AtomicU64,
}

impl Counter {
    const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            value: AtomicU64::new(0),
        }
    }

    /// Its name, as scraped.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it counts, for people.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.help
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
        $($(#[doc = $doc])+ pub static $counter: Counter = Counter::new($name, concat!($($doc),+));)+

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
    /// Warnings and errors that the log left out, since their place in the program had printed ten within a second.
    LOG_LINES_LEFT_OUT = "log_lines_left_out_total";
    /// Requests that panicked; each is a bug.
    REQUEST_PANICS = "request_panics_total";
    /// Background tasks that panicked; each is a bug, and the log and /livez name the task.
    TASK_PANICS = "background_task_panics_total";
    /// Invariants that did not hold; each is a bug, and the log says which.
    INVARIANTS_BROKEN = "invariants_broken_total";
    /// Statements that did not get their request units at once.
    THROTTLED = "throttled_total";
    /// Statements that waited in the server for their request units until they timed out.
    THROTTLED_TIMEOUTS = "throttled_timeouts_total";
    /// Answers that waited for memory.
    BUDGET_WAITS = "connections_memory_waits_total";
    /// Requests refused because the memory for answers was in use.
    BUDGET_REFUSALS = "connections_memory_refusals_total";
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
    /// Records that the audit log could not take: the disk refused them, or more came than it takes.
    AUDIT_LOST = "audit_records_lost_total";
    /// Statements prepared, those that were prepared already included.
    STATEMENTS_PREPARED = "statements_prepared_total";
    /// Prepared statements forgotten to make room.
    STATEMENTS_EVICTED = "statements_evicted_total";
    /// EXECUTEs of an unknown id.
    STATEMENTS_UNKNOWN = "statements_unknown_total";
    /// Pages of rows answered.
    PAGES = "pages_total";
    /// Rows answered.
    ROWS = "rows_total";
    /// Batches of changes that stores on disk made durable.
    COMMITS = "commits_total";
    /// Requests to the admin port, whatever the answer.
    ADMIN_REQUESTS = "admin_requests_total";
    /// Connections to the admin port closed because there were too many or they took too long.
    ADMIN_REFUSED = "admin_connections_refused_total";
}

/// How long each group of commits of a `file:` store took to be written and made durable, µs; as many as there were groups.
pub static COMMIT_GROUPS: Histogram = Histogram::new();

macro_rules! error_codes {
    ($($code:literal $name:literal)+) => {
        /// The protocol's error codes, with the names that its specification gives them.
        pub const ERROR_CODES: &[(u16, &str)] = &[$(($code, $name)),+];

        static ERRORS: [AtomicU64; ERROR_CODES.len()] = [const { AtomicU64::new(0) }; ERROR_CODES.len()];
    };
}

error_codes! {
    0x0000 "server_error"
    0x000A "protocol_error"
    0x0100 "authentication_error"
    0x1000 "unavailable"
    0x1001 "overloaded"
    0x1002 "is_bootstrapping"
    0x1003 "truncate_error"
    0x1100 "write_timeout"
    0x1200 "read_timeout"
    0x1300 "read_failure"
    0x1400 "function_failure"
    0x1500 "write_failure"
    0x1600 "cdc_write_failure"
    0x1700 "cas_write_unknown"
    0x2000 "syntax_error"
    0x2100 "unauthorized"
    0x2200 "invalid"
    0x2300 "config_error"
    0x2400 "already_exists"
    0x2500 "unprepared"
}

/// Counts an answer that was the error of this code.
pub fn count_error(code: u16) {
    REQUEST_ERRORS.increment();
    let place = ERROR_CODES.iter().position(|(known, _)| *known == code);
    if let Some(count) = place.and_then(|place| ERRORS.get(place)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every error code with its name and how many answers had it.
pub fn errors() -> impl Iterator<Item = (u16, &'static str, u64)> {
    ERROR_CODES
        .iter()
        .zip(&ERRORS)
        .map(|((code, name), count)| (*code, *name, count.load(Ordering::Relaxed)))
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

    #[test]
    fn errors_are_counted_by_code() {
        let of = |wanted| errors().find(|(code, ..)| *code == wanted).unwrap().2;
        // No other test of this crate gets this error.
        let before = of(0x1600);
        count_error(0x1600);
        count_error(0xFFFF);
        assert_eq!(of(0x1600), before + 1);
    }
}
