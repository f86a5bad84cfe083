//! Time as a value: the only module that reads the system clock.
//!
//! Everything that needs the time takes a [`Clock`]. [`Clock::system`] is the machine's; [`Clock::manual`] stands still
//! until a test moves it; [`Clock::movable`] runs like the machine's and can be moved ahead, stopped and started. Wall
//! time gives writes their timestamps ([`Timestamps`]) and expires cells; monotonic time measures durations and
//! deadlines.
//!
//! Timestamps of writes rise strictly, across restarts too, because every store keeps a [`TimeMark`] of them.
//!
//! ```text
//! open a store  ─► found(mark)   the floor: the highest timestamp in any store's mark
//! a write       ─► next_micros   the wall clock, or just above the last one issued
//! a commit      ─► mark          goes into the same commit, so it is at least every timestamp in it
//! ```
//! A timestamp that no commit carries belongs to a write that no store holds, so a restart may issue it again.
//!
//! The mark also records how far the wall clock is trusted. A wall clock that is ahead of it by more than `jump_max` is
//! trusted again only when an operator confirms it: a purge by a clock that is wrong by years destroys data that has
//! not expired.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

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
        /// The offset of wall time from its normal value.
        set_micros: Arc<AtomicI64>,
    },
    Movable(Arc<Movable>),
}

/// A clock that runs and can be moved.
#[derive(Debug)]
struct Movable {
    origin: Instant,
    started_micros: i64,
    /// How far monotonic time was moved ahead, µs. Never falls.
    moved_micros: AtomicI64,
    /// By how much of that wall time was set back, µs.
    reset_micros: AtomicI64,
    /// Microseconds since `origin` at which the clock was stopped; `i64::MIN` means it runs.
    stopped_micros: AtomicI64,
    /// Wakes sleeping tasks.
    moved: Notify,
}

impl Movable {
    /// Time since this clock was made, by this clock, µs.
    fn passed_micros(&self) -> i64 {
        let stopped = self.stopped_micros.load(Ordering::SeqCst);
        let passed = if stopped == i64::MIN {
            self.machine_micros()
        } else {
            stopped
        };
        passed.saturating_add(self.moved_micros.load(Ordering::SeqCst))
    }

    /// Time since this clock was made, by the machine's clock, µs.
    fn machine_micros(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn wall_micros(&self) -> i64 {
        let wall = self.started_micros.saturating_add(self.passed_micros());
        wall.saturating_sub(self.reset_micros.load(Ordering::SeqCst))
    }

    fn advance(&self, micros: i64) {
        self.moved_micros.fetch_add(micros, Ordering::SeqCst);
        self.moved.notify_waiters();
    }

    /// Continues from where it stopped, without the machine's time in between.
    fn run(&self) {
        let stopped = self.stopped_micros.swap(i64::MIN, Ordering::SeqCst);
        if stopped != i64::MIN {
            let left_out = self.machine_micros().saturating_sub(stopped);
            self.moved_micros.fetch_sub(left_out, Ordering::SeqCst);
            self.moved.notify_waiters();
        }
    }

    async fn sleep(&self, length: Duration) {
        let length = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        let until = self.passed_micros().saturating_add(length);
        loop {
            // Registered before the clock is read, so that no move in between is missed.
            let moved = self.moved.notified();
            let left = until.saturating_sub(self.passed_micros());
            let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else {
                return;
            };
            if self.stopped_micros.load(Ordering::SeqCst) == i64::MIN {
                // After either event the clock is read again.
                let _ = tokio::time::timeout(Duration::from_micros(left), moved).await;
            } else {
                moved.await;
            }
        }
    }
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

    /// A clock that begins at the machine's time, runs like it, and can be moved ahead, stopped and started.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    pub fn movable() -> Self {
        let origin = Instant::now();
        Self(Source::Movable(Arc::new(Movable {
            origin,
            started_micros: Self::system().wall_micros(),
            moved_micros: AtomicI64::new(0),
            reset_micros: AtomicI64::new(0),
            stopped_micros: AtomicI64::new(i64::MIN),
            moved: Notify::new(),
        })))
    }

    /// Whether it is one of [`Clock::movable`].
    #[must_use]
    pub const fn is_movable(&self) -> bool {
        matches!(self.0, Source::Movable(_))
    }

    /// Whether a movable clock is stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match &self.0 {
            Source::Movable(movable) => movable.stopped_micros.load(Ordering::SeqCst) != i64::MIN,
            Source::System { .. } | Source::Manual { .. } => false,
        }
    }

    /// Stops a movable clock. Does nothing to other clocks.
    pub fn stop(&self) {
        if let Source::Movable(movable) = &self.0 {
            let now = movable.machine_micros();
            // An error means that it is stopped already: it keeps its time.
            let _ = movable
                .stopped_micros
                .compare_exchange(i64::MIN, now, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Lets a stopped movable clock run again. Does nothing to other clocks.
    pub fn run(&self) {
        if let Source::Movable(movable) = &self.0 {
            movable.run();
        }
    }

    /// Sets wall time of a movable clock back to the machine's and lets it run. Monotonic time stays ahead, because it
    /// never goes back.
    pub fn reset_wall(&self) {
        if let Source::Movable(movable) = &self.0 {
            movable.run();
            let ahead = self.ahead_of_machine_micros();
            movable.reset_micros.fetch_add(ahead, Ordering::SeqCst);
        }
    }

    /// How far a movable clock's wall time is ahead of the machine's, µs; 0 for other clocks.
    #[must_use]
    pub fn ahead_of_machine_micros(&self) -> i64 {
        match &self.0 {
            Source::Movable(movable) => {
                // From one reading of the machine's clock: two would differ by the time between them.
                let machine = movable.machine_micros();
                let stopped = movable.stopped_micros.load(Ordering::SeqCst);
                let passed = if stopped == i64::MIN { machine } else { stopped };
                let moved = passed.saturating_add(movable.moved_micros.load(Ordering::SeqCst));
                let reset = movable.reset_micros.load(Ordering::SeqCst);
                moved.saturating_sub(reset).saturating_sub(machine)
            }
            Source::System { .. } | Source::Manual { .. } => 0,
        }
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
            Source::Movable(movable) => movable.wall_micros(),
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
            Source::Movable(movable) => Duration::from_micros(u64::try_from(movable.passed_micros()).unwrap_or(0)),
        }
    }

    /// As [`Clock::monotonic`], but moving, stopping and resetting a movable clock leave it as it is: how long a process has run.
    #[must_use]
    pub fn of_process(&self) -> Duration {
        match &self.0 {
            Source::Movable(movable) => movable.origin.elapsed(),
            Source::System { .. } | Source::Manual { .. } => self.monotonic(),
        }
    }

    /// As [`Clock::monotonic`], but also counts the time while the machine sleeps, if the system measures that (Linux).
    /// Used for promises to other machines that last for a time. Only differences have a meaning.
    #[must_use]
    pub fn through_sleep(&self) -> Duration {
        #[cfg(target_os = "linux")]
        if let Source::System { .. } = &self.0 {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
            if let (Ok(seconds), Ok(nanos)) = (seconds, nanos) {
                return Duration::new(seconds, nanos);
            }
        }
        self.monotonic()
    }

    /// Waits until this much time has passed by a clock that runs. A manual clock moves only by a test, so there is no
    /// waiting.
    pub async fn sleep(&self, length: Duration) {
        match &self.0 {
            Source::System { .. } => tokio::time::sleep(length).await,
            Source::Movable(movable) => movable.sleep(length).await,
            Source::Manual { .. } => {}
        }
    }

    /// Moves a manual or movable clock forward. Does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        match &self.0 {
            Source::Manual { micros, .. } => {
                micros.fetch_add(by, Ordering::SeqCst);
            }
            Source::Movable(movable) => movable.advance(by),
            Source::System { .. } => {}
        }
    }

    /// Sets the wall time of a manual clock forward, or back, as an administrator might set a machine's; monotonic time
    /// is unaffected. Does nothing to the system's clock.
    pub fn set_wall_by(&self, by_micros: i64) {
        if let Source::Manual { set_micros, .. } = &self.0 {
            set_micros.fetch_add(by_micros, Ordering::SeqCst);
        }
    }
}

/// The time record of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMark {
    /// The highest timestamp that the server had issued, µs; `i64::MIN` means none.
    pub given_micros: i64,
    /// The wall clock as far as it was trusted, µs since 1970-01-01 UTC.
    pub believed_micros: i64,
}

impl Default for TimeMark {
    /// Below every other mark.
    fn default() -> Self {
        Self {
            given_micros: i64::MIN,
            believed_micros: i64::MIN,
        }
    }
}

impl TimeMark {
    /// The later of each field.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            given_micros: self.given_micros.max(other.given_micros),
            believed_micros: self.believed_micros.max(other.believed_micros),
        }
    }
}

/// Issues timestamps of writes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Timestamps(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    given: AtomicI64,
    /// The wall clock when it was last trusted.
    believed: Mutex<Believed>,
    /// How far the wall clock may be ahead of that plus the time passed.
    jump_max: Duration,
    has_jumped: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Believed {
    /// µs since 1970-01-01 UTC; `i64::MIN` means no store has a mark, so nothing contradicts the wall clock.
    wall_micros: i64,
    /// The monotonic time of the same moment.
    monotonic: Duration,
}

impl Timestamps {
    /// The default of how far ahead the wall clock may jump: less than the default `gc_grace_seconds` of ten days.
    pub const JUMP_MAX: Duration = Duration::from_secs(7 * 86_400);

    /// Timestamps by this clock; no floor yet.
    #[must_use]
    pub fn new(clock: Clock, jump_max: Duration) -> Self {
        let monotonic = clock.monotonic();
        Self(Arc::new(Inner {
            clock,
            given: AtomicI64::new(i64::MIN),
            believed: Mutex::new(Believed {
                wall_micros: i64::MIN,
                monotonic,
            }),
            jump_max,
            has_jumped: AtomicBool::new(false),
        }))
    }

    /// Forgets every timestamp that was issued: for a database whose data was removed and whose clock went back.
    pub fn reset(&self) {
        self.0.given.store(i64::MIN, Ordering::Relaxed);
        self.confirm();
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The next timestamp, µs: now, or just above the last one if the clock has not moved or was set back.
    #[must_use]
    pub fn next_micros(&self) -> i64 {
        let now = self.0.clock.wall_micros();
        let taken = self.0.given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(now.max(last.saturating_add(1)))
        });
        // The closure always returns a value, so this is the previous timestamp.
        let (Ok(last) | Err(last)) = taken;
        now.max(last.saturating_add(1))
    }

    /// Takes the time mark of a store. Every timestamp from now on is above it.
    pub fn found(&self, mark: TimeMark) {
        self.0.given.fetch_max(mark.given_micros, Ordering::Relaxed);
        let mut believed = self.believed();
        if mark.believed_micros > believed.wall_micros {
            *believed = Believed {
                wall_micros: mark.believed_micros,
                monotonic: self.0.clock.monotonic(),
            };
        }
    }

    /// The time mark of a commit: at least every timestamp issued before.
    #[must_use]
    pub fn mark(&self) -> TimeMark {
        TimeMark {
            believed_micros: self.observe().1,
            given_micros: self.0.given.load(Ordering::Relaxed),
        }
    }

    /// How far the last timestamp is ahead of the wall clock; zero when it is not.
    #[must_use]
    pub fn ahead(&self) -> Duration {
        let ahead = self
            .0
            .given
            .load(Ordering::Relaxed)
            .saturating_sub(self.0.clock.wall_micros());
        Duration::from_micros(u64::try_from(ahead).unwrap_or(0))
    }

    /// Whether expired data may be removed: not while the wall clock is too far ahead of the stores' marks plus the
    /// time passed since. Logs a warning each time that begins.
    #[must_use]
    pub fn may_purge(&self) -> bool {
        let (ahead, believed_micros) = self.observe();
        let has_jumped = ahead > self.0.jump_max;
        if has_jumped && !self.0.has_jumped.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                ahead_seconds = ahead.as_secs(),
                believed_seconds = believed_micros.div_euclid(1_000_000),
                "the clock is far ahead of what the stores recorded: what expired is not removed until the clock is set right, or \
                 confirmed by a start with --confirm-clock"
            );
        }
        if !has_jumped {
            self.0.has_jumped.store(false, Ordering::Relaxed);
        }
        !has_jumped
    }

    /// Trusts the present wall clock.
    pub fn confirm(&self) {
        let mut believed = self.believed();
        *believed = Believed {
            wall_micros: self.0.clock.wall_micros(),
            monotonic: self.0.clock.monotonic(),
        };
    }

    /// How far the wall clock is ahead of the trusted time plus the time passed, and the time trusted now: the wall
    /// clock itself, unless it is too far ahead.
    fn observe(&self) -> (Duration, i64) {
        let (wall, monotonic) = (self.0.clock.wall_micros(), self.0.clock.monotonic());
        let mut believed = self.believed();
        let passed = monotonic.saturating_sub(believed.monotonic);
        let passed = i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        let expected = believed.wall_micros.saturating_add(passed);
        let ahead = if believed.wall_micros == i64::MIN {
            0
        } else {
            wall.saturating_sub(expected)
        };
        let ahead = Duration::from_micros(u64::try_from(ahead).unwrap_or(0));
        if ahead > self.0.jump_max {
            return (ahead, expected);
        }
        // A clock that is set back and then right again has not jumped.
        *believed = Believed {
            wall_micros: wall.max(believed.wall_micros),
            monotonic,
        };
        (ahead, believed.wall_micros)
    }

    fn believed(&self) -> std::sync::MutexGuard<'_, Believed> {
        // Both fields are written together, without a call between that could panic.
        self.0.believed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn at(micros: i64) -> (Clock, Timestamps) {
        let clock = Clock::manual(micros);
        let timestamps = Timestamps::new(clock.clone(), Timestamps::JUMP_MAX);
        (clock, timestamps)
    }

    #[test]
    fn they_rise_while_the_clock_stands_and_goes_back() {
        let (clock, timestamps) = at(5);
        assert_eq!((timestamps.next_micros(), timestamps.next_micros()), (5, 6));
        clock.advance(Duration::from_micros(10));
        assert_eq!(timestamps.next_micros(), 15);
        clock.set_wall_by(-10);
        assert_eq!(timestamps.next_micros(), 16);
        assert_eq!(timestamps.ahead(), Duration::from_micros(11));
    }

    #[test]
    fn they_rise_above_what_stores_recorded() {
        let (_, before) = at(DAY);
        let last = before.next_micros();
        let (_, timestamps) = at(5);
        timestamps.found(before.mark());
        timestamps.found(TimeMark::default());
        assert_eq!(timestamps.next_micros(), last + 1);
    }

    #[test]
    fn a_jump_ahead_is_not_believed_until_confirmed_and_survives_restarts() {
        let (_, before) = at(10 * DAY);
        let mark = before.mark();
        assert_eq!(mark.believed_micros, 10 * DAY);

        let (clock, timestamps) = at(18 * DAY);
        assert!(timestamps.may_purge(), "an empty store contradicts nothing");
        let (_, timestamps) = (clock.clone(), Timestamps::new(clock.clone(), Timestamps::JUMP_MAX));
        timestamps.found(mark);
        assert!(!timestamps.may_purge());
        clock.advance(Duration::from_secs(3600));
        let mark = timestamps.mark();
        assert_eq!(mark.believed_micros, 10 * DAY + DAY / 24, "only the time passed");

        let again = Timestamps::new(clock.clone(), Timestamps::JUMP_MAX);
        again.found(mark);
        assert!(!again.may_purge());
        clock.set_wall_by(-8 * DAY);
        assert!(again.may_purge(), "set right");
        clock.set_wall_by(8 * DAY);
        assert!(!again.may_purge(), "a jump while it runs counts as well");
        again.confirm();
        assert!(again.may_purge());
        assert_eq!(again.mark().believed_micros, clock.wall_micros());
    }

    #[test]
    fn a_clock_that_goes_on_is_believed_however_long() {
        let (clock, timestamps) = at(DAY);
        timestamps.found(timestamps.mark());
        clock.advance(Duration::from_secs(400 * 86_400));
        assert!(timestamps.may_purge());
        for _ in 0..30 {
            clock.set_wall_by(DAY / 3);
            assert!(timestamps.may_purge(), "a machine that sleeps at night");
        }
        clock.set_wall_by(-30 * DAY);
        assert!(timestamps.may_purge(), "a clock behind removes nothing too early");
    }

    #[test]
    fn setting_the_wall_leaves_monotonic_time() {
        let clock = Clock::manual(5_000_000);
        clock.advance(Duration::from_secs(2));
        clock.set_wall_by(-3_000_000);
        assert_eq!((clock.wall_seconds(), clock.monotonic()), (4, Duration::from_secs(2)));
    }

    #[test]
    fn a_running_clock_is_ahead_exactly_as_far_as_it_was_moved() {
        let clock = Clock::movable();
        assert!((0..100_000).all(|_| clock.ahead_of_machine_micros() == 0));
        clock.advance(Duration::from_secs(60));
        assert!((0..100_000).all(|_| clock.ahead_of_machine_micros() == 60_000_000));
        clock.reset_wall();
        assert!((0..100_000).all(|_| clock.ahead_of_machine_micros() == 0));
    }

    #[test]
    fn a_movable_clock_runs_moves_and_stops() {
        let clock = Clock::movable();
        assert!(clock.is_movable() && !Clock::system().is_movable());
        let (wall, monotonic) = (clock.wall_micros(), clock.monotonic());
        clock.advance(Duration::from_secs(3600));
        assert!(clock.wall_micros() >= wall + 3_600_000_000);
        assert!(clock.monotonic() >= monotonic + Duration::from_secs(3600));
        assert_eq!(clock.ahead_of_machine_micros(), 3_600_000_000);

        clock.stop();
        clock.stop();
        let (wall, monotonic) = (clock.wall_micros(), clock.monotonic());
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(
            (clock.wall_micros(), clock.monotonic(), clock.is_stopped()),
            (wall, monotonic, true)
        );
        clock.run();
        assert!(
            clock.wall_micros() < wall + 1_000_000,
            "what passed meanwhile is left out"
        );

        let monotonic = clock.monotonic();
        clock.reset_wall();
        assert_eq!(clock.ahead_of_machine_micros(), 0);
        assert!(clock.monotonic() >= monotonic, "monotonic time never goes back");
    }

    #[tokio::test]
    async fn who_sleeps_by_a_movable_clock_wakes_when_it_is_moved() {
        let clock = Clock::movable();
        clock.stop();
        let sleeper = clock.clone();
        let sleeps = tokio::spawn(async move { sleeper.sleep(Duration::from_secs(3600)).await });
        while !sleeps.is_finished() {
            clock.advance(Duration::from_secs(600));
            tokio::task::yield_now().await;
        }
        sleeps.await.unwrap();
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
