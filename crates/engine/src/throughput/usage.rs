//! Use of a budget, second by second.

use std::time::Duration;

use super::units::RequestUnits;

/// Seconds that are kept.
const SECONDS: usize = 60;

/// How many seconds a partition must stay at its limit before autoscale sets the maximum.
const INTERVAL_SECONDS: u64 = 5;

const HOUR_SECONDS: u64 = 3600;

/// Use of a budget in the last minute, as percentages of one second's units.
///
/// A charge beyond a second's units counts for the next second: the overdraft is paid back there, and nothing is
/// admitted meanwhile.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The current second, counted from the clock's start.
    second: u64,
    /// Units charged in the current second or carried into it.
    used: RequestUnits,
    /// Percentages of earlier seconds; the one of second `s` is at index `s % 60`.
    percents: [u8; SECONDS],
    /// The hour that `hour_percent` belongs to.
    hour: u64,
    /// The highest mean of five seconds in that hour.
    hour_percent: u8,
}

impl Usage {
    /// No use so far.
    #[must_use]
    pub const fn new(now: Duration) -> Self {
        Self {
            second: now.as_secs(),
            used: RequestUnits::ZERO,
            percents: [0; SECONDS],
            hour: now.as_secs() / HOUR_SECONDS,
            hour_percent: 0,
        }
    }

    /// Counts a charge against a budget of this many units a second.
    pub fn add(&mut self, cost: RequestUnits, per_second: RequestUnits, now: Duration) {
        self.roll(per_second, now);
        self.used += cost;
    }

    /// Closes every second before that of `now`.
    fn roll(&mut self, per_second: RequestUnits, now: Duration) {
        let second = now.as_secs();
        let mut steps = 0;
        while self.second < second {
            // After a minute without use all slots are zero; further idle seconds change nothing.
            if steps > SECONDS && self.used == RequestUnits::ZERO {
                self.second = second;
                break;
            }
            steps += 1;
            let percent = percent_of(self.used, per_second);
            if let Some(slot) = self.percents.get_mut(slot_of(self.second)) {
                *slot = percent;
            }
            let left = self.used.in_hundredths().saturating_sub(per_second.in_hundredths());
            self.used = RequestUnits::hundredths(left);
            self.second += 1;
            self.roll_hour();
            self.hour_percent = self.hour_percent.max(self.interval_percent());
        }
        self.roll_hour();
    }

    fn roll_hour(&mut self) {
        let hour = self.second / HOUR_SECONDS;
        if hour != self.hour {
            self.hour = hour;
            self.hour_percent = 0;
        }
    }

    /// The mean of the last whole five seconds.
    fn interval_percent(&self) -> u8 {
        let first = self.second.saturating_sub(INTERVAL_SECONDS);
        let sum: u64 = (first..self.second)
            .filter_map(|second| self.percents.get(slot_of(second)))
            .map(|percent| u64::from(*percent))
            .sum();
        u8::try_from(sum / INTERVAL_SECONDS).unwrap_or(100)
    }

    /// The highest second of the last minute, the current one included: Cosmos's normalized RU consumption, 0 to 100.
    pub fn peak_percent(&mut self, per_second: RequestUnits, now: Duration) -> u8 {
        self.roll(per_second, now);
        let before = self.percents.iter().copied().max().unwrap_or_default();
        before.max(percent_of(self.used, per_second))
    }

    /// The mean of the last whole five seconds, and the highest such mean in this hour, 0 to 100.
    pub fn autoscale_percents(&mut self, per_second: RequestUnits, now: Duration) -> (u8, u8) {
        self.roll(per_second, now);
        (self.interval_percent(), self.hour_percent)
    }
}

fn slot_of(second: u64) -> usize {
    usize::try_from(second % SECONDS as u64).unwrap_or_default()
}

fn percent_of(used: RequestUnits, per_second: RequestUnits) -> u8 {
    let rate = u128::from(per_second.in_hundredths().max(1));
    let percent = u128::from(used.in_hundredths()) * 100 / rate;
    u8::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: RequestUnits = RequestUnits::whole(100);

    #[test]
    fn the_highest_second_of_a_minute_is_told() {
        let mut usage = Usage::new(Duration::ZERO);
        usage.add(RequestUnits::whole(40), RATE, Duration::from_millis(300));
        usage.add(RequestUnits::whole(10), RATE, Duration::from_millis(1300));
        assert_eq!(usage.peak_percent(RATE, Duration::from_secs(30)), 40);
        assert_eq!(usage.peak_percent(RATE, Duration::from_secs(60)), 40);
        assert_eq!(usage.peak_percent(RATE, Duration::from_secs(61)), 10);
        assert_eq!(usage.peak_percent(RATE, Duration::from_secs(1_000_000)), 0);
    }

    #[test]
    fn debt_counts_for_the_seconds_that_work_it_off() {
        let mut usage = Usage::new(Duration::ZERO);
        usage.add(RequestUnits::whole(520), RATE, Duration::ZERO);
        assert_eq!(usage.peak_percent(RATE, Duration::ZERO), 100);
        assert_eq!(usage.autoscale_percents(RATE, Duration::from_secs(5)), (100, 100));
        assert_eq!(usage.autoscale_percents(RATE, Duration::from_secs(6)), (84, 100));
        assert_eq!(usage.autoscale_percents(RATE, Duration::from_secs(100)), (0, 100));
        assert_eq!(usage.autoscale_percents(RATE, Duration::from_secs(3600)), (0, 0));
    }
}
