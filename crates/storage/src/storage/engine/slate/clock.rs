//! The clock that SlateDB gets. SlateDB dates every write and every table, and refuses one that is older than the last.
//!
//! ```text
//! open ─► raise_to(last)   the highest time that the database's newest manifest, compactions and log have
//! now  ─► offset + monotonic time, where offset only rises: at first what makes it the wall clock
//! ```
//! So it never goes back: neither while the server runs, nor after a restart with an earlier wall clock.
//!
//! SlateDB also waits by it between its polls of the manifest, the compactor's work and the clean-up. A poll of a bucket
//! finds nothing if nothing was put since. The owner knows the manifests (known.rs), but a clean-up lists tables, which is a
//! request that is paid for. So a poll of an idle database comes at the first multiple of its interval after a put, or
//! after [`IDLE_INTERVALS_MAX`] intervals ([`Pace`]).
//!
//! Source: SlateDB 0.18.0 (`clock.rs`, `manifest/invariants.rs`, `compactions_store/invariants.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use slatedb::VersionedManifest;
use slatedb_common::clock::{SystemClock, SystemClockTicker};

use helenus_base::clock::Clock;

/// Never goes back.
#[derive(Debug)]
pub(super) struct Ticks {
    clock: Clock,
    /// The time given minus monotonic time.
    offset_micros: AtomicI64,
}

impl Ticks {
    pub(super) fn new(clock: Clock) -> Self {
        let offset = clock.wall_micros().saturating_sub(monotonic_micros(&clock));
        Self {
            clock,
            offset_micros: AtomicI64::new(offset),
        }
    }

    /// Time passed since some moment of this process.
    pub(super) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// From now on no earlier time than this is returned.
    pub(super) fn raise_to(&self, millis: i64) {
        let micros = millis.saturating_mul(1000);
        let offset = micros.saturating_sub(monotonic_micros(&self.clock));
        self.offset_micros.fetch_max(offset, Ordering::SeqCst);
    }

    fn now_micros(&self) -> i64 {
        let offset = self.offset_micros.load(Ordering::SeqCst);
        // A table's name cannot express times before 1970.
        offset.saturating_add(monotonic_micros(&self.clock)).max(0)
    }
}

fn monotonic_micros(clock: &Clock) -> i64 {
    i64::try_from(clock.monotonic().as_micros()).unwrap_or(i64::MAX)
}

impl SystemClock for Ticks {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.now_micros()).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

/// Shortest wait that is one between polls. Others are for retries and for puts of the log.
const POLL_MIN: Duration = Duration::from_secs(15);

/// Intervals after which a poll comes although nothing was put.
const IDLE_INTERVALS_MAX: u32 = 20;

/// Intervals before a wait in which a put calls for a poll after it: the poll before may have missed it, and what it
/// begins is seen by the next one.
const PUT_INTERVALS: u32 = 2;

/// When an object of a database was last put.
#[derive(Debug)]
pub(super) struct LastPut {
    ticks: Arc<Ticks>,
    /// Monotonic time, ms.
    millis: AtomicU64,
}

impl LastPut {
    /// Of a database that is being opened.
    pub(super) fn new(ticks: Arc<Ticks>) -> Self {
        let last_put = Self {
            ticks,
            millis: AtomicU64::default(),
        };
        last_put.is_now();
        last_put
    }

    /// Something is put now.
    pub(super) fn is_now(&self) {
        let millis = u64::try_from(self.ticks.monotonic().as_millis()).unwrap_or(u64::MAX);
        self.millis.fetch_max(millis, Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

/// The clock of one database in a bucket: the same time, and polls as seldom as possible.
#[derive(Debug)]
pub(super) struct Pace(pub(super) Arc<LastPut>);

impl Pace {
    async fn wait(&self, interval: Duration) {
        let begun = self.0.ticks.monotonic();
        let since = begun.saturating_sub(interval * PUT_INTERVALS);
        for _ in 0..IDLE_INTERVALS_MAX {
            tokio::time::sleep(interval).await;
            if self.0.get() >= since {
                return;
            }
        }
    }
}

impl SystemClock for Pace {
    fn now(&self) -> DateTime<Utc> {
        self.0.ticks.now()
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        if duration < POLL_MIN {
            return self.0.ticks.sleep(duration);
        }
        Box::pin(self.wait(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

/// The highest time in a manifest, ms since 1970-01-01 UTC.
pub(super) fn of_manifest(manifest: &VersionedManifest) -> i64 {
    let tables = manifest.all_sst_views().map(|view| view.sst.id.value());
    let ids = tables.chain(manifest.last_compacted_l0_sst_id());
    ids.map(|id| millis(id.timestamp_ms()))
        .fold(manifest.last_l0_clock_tick(), i64::max)
}

pub(super) fn millis(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_idle_database_is_polled_seldom_and_after_a_put_soon() {
        let clock = Clock::manual(0);
        let last_put = Arc::new(LastPut::new(Arc::new(Ticks::new(clock.clone()))));
        let pace = Pace(Arc::clone(&last_put));
        let waited = async |duration: Duration| {
            let began = tokio::time::Instant::now();
            pace.sleep(duration).await;
            began.elapsed().as_secs()
        };
        let poll = Duration::from_secs(30);
        assert_eq!(waited(poll).await, 30, "it was opened now");
        clock.advance(Duration::from_secs(50));
        assert_eq!(waited(poll).await, 30, "what the last poll may have missed");
        clock.advance(Duration::from_secs(50));
        assert_eq!(waited(poll).await, 600);
        assert_eq!(waited(Duration::from_secs(10)).await, 10, "no poll");
        let put = async {
            tokio::time::sleep(Duration::from_secs(70)).await;
            last_put.is_now();
        };
        assert_eq!(tokio::join!(waited(poll), put).0, 90);
    }

    #[test]
    fn it_follows_monotonic_time_and_never_goes_back() {
        let clock = Clock::manual(5_000_000);
        let ticks = Ticks::new(clock.clone());
        assert_eq!(ticks.now().timestamp_millis(), 5_000);
        clock.set_wall_by(-3_000_000);
        assert_eq!(ticks.now().timestamp_millis(), 5_000);
        clock.advance(Duration::from_secs(1));
        assert_eq!(ticks.now().timestamp_millis(), 6_000);
        ticks.raise_to(5_500);
        assert_eq!(ticks.now().timestamp_millis(), 6_000);
        ticks.raise_to(9_000);
        assert_eq!(ticks.now().timestamp_millis(), 9_000);
        clock.advance(Duration::from_secs(1));
        assert_eq!(ticks.now().timestamp_millis(), 10_000);
        assert_eq!(Ticks::new(Clock::manual(-7)).now().timestamp_millis(), 0);
    }
}
