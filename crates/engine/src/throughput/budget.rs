//! A budget of request units that refills with time and may be overdrawn.

use std::time::Duration;

use super::units::RequestUnits;
use helenus_base::mutant::{self, Mutant};

/// Whether a request may be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes: its expected cost is reserved until [`Budget::charge_admitted`] or [`Budget::cancel`].
    Admitted,
    /// No, not before `retry_after` has passed.
    Refused {
        /// Time until the overdraft is paid back. After [`Budget::admit`], also until requests refused earlier have
        /// been admitted. Whole milliseconds, rounded up; at least 1 ms.
        retry_after: Duration,
    },
}

/// The request units that one physical partition, or a pool of them, may spend.
///
/// Remaining budget and bank are in millionths of a hundredth of a unit, so that no fraction is lost between two calls.
#[derive(Clone, Debug)]
pub struct Budget {
    per_second: RequestUnits,
    /// Whether unspent units are banked.
    bursts: bool,
    /// Remaining budget; negative is an overdraft.
    balance: i128,
    bank: i128,
    filled_at: Duration,
    /// Admitted requests whose cost is not known yet.
    in_flight: u32,
    /// Moving average of a request's cost.
    mean: i128,
    /// The monotonic time at which the last refused request may retry.
    promised: Duration,
}

const MICROS: i128 = 1_000_000;

/// The bank's limit, in seconds' worth of units.
const BANK_SECONDS: i128 = 300;

/// Units a second that may be spent while the bank is not empty; a budget of at least as many banks nothing.
pub const BURST_PER_SECOND: RequestUnits = RequestUnits::whole(3_000);

/// Assumed cost of a request before any was measured: 5 units, a small write.
const MEAN_AT_FIRST: i128 = 500 * MICROS;

/// Longest delay after the end of an overdraft that a retry time adds: one second, after which the whole budget is
/// refilled.
const PROMISED_MAX: Duration = Duration::from_secs(1);

/// Weight of a new cost in the moving average: an eighth.
const MEAN_SHARE: i128 = 8;

fn amount(units: RequestUnits) -> i128 {
    i128::from(units.in_hundredths()) * MICROS
}

/// Rounds up to whole milliseconds, at least one.
fn whole_millis(time: Duration) -> Duration {
    let millis = time.as_micros().div_ceil(1_000).max(1);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

fn hundredths(amount: i128) -> i64 {
    i64::try_from(amount / MICROS).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

impl Budget {
    /// A full budget of `per_second` units with an empty bank. `now` is monotonic time.
    #[must_use]
    pub fn new(per_second: RequestUnits, bursts: bool, now: Duration) -> Self {
        Self {
            balance: amount(per_second),
            ..Self::empty(per_second, bursts, now)
        }
    }

    /// As [`Budget::new`], but empty.
    #[must_use]
    pub(super) fn empty(per_second: RequestUnits, bursts: bool, now: Duration) -> Self {
        Self {
            per_second,
            bursts,
            balance: 0,
            bank: 0,
            filled_at: now,
            in_flight: 0,
            mean: MEAN_AT_FIRST,
            promised: Duration::ZERO,
        }
    }

    /// Units a second.
    #[must_use]
    pub const fn per_second(&self) -> RequestUnits {
        self.per_second
    }

    /// Remaining budget in hundredths, less the expected cost of requests in flight; negative is an overdraft.
    #[must_use]
    pub fn balance(&mut self, now: Duration) -> i64 {
        self.fill(now);
        hundredths(self.available())
    }

    /// Banked units, in hundredths.
    #[must_use]
    pub fn bank(&mut self, now: Duration) -> i64 {
        self.fill(now);
        hundredths(self.bank)
    }

    /// The most that a budget holds: one second's worth.
    fn full(&self) -> i128 {
        amount(self.per_second)
    }

    fn bank_max(&self) -> i128 {
        if self.bursts && self.per_second < BURST_PER_SECOND {
            self.full() * BANK_SECONDS
        } else {
            0
        }
    }

    fn available(&self) -> i128 {
        // For each request in flight at most one second's worth is reserved: otherwise a single large one would keep
        // out all others.
        let each = self.mean.min(self.full());
        self.balance
            .saturating_sub(each.saturating_mul(i128::from(self.in_flight)))
    }

    fn fill(&mut self, now: Duration) {
        let passed = i128::try_from(now.saturating_sub(self.filled_at).as_micros()).unwrap_or(i128::MAX);
        self.filled_at = self.filled_at.max(now);
        let rate = i128::from(self.per_second.in_hundredths());
        let gained = passed.saturating_mul(rate);
        let room = self.full().saturating_sub(self.balance);
        if gained >= room {
            self.balance = self.full();
            self.bank = self.bank.saturating_add(gained - room).min(self.bank_max());
            return;
        }
        self.balance += gained;
        let faster = i128::from(BURST_PER_SECOND.in_hundredths()) - rate;
        let drawn = passed.saturating_mul(faster).min(room - gained).min(self.bank).max(0);
        self.balance += drawn;
        self.bank -= drawn;
    }

    /// Whether a request would be admitted now. Reserves nothing.
    pub fn peek(&mut self, now: Duration) -> Admission {
        self.fill(now);
        let available = self.available();
        if available > 0 {
            return Admission::Admitted;
        }
        let debt = -available;
        let micros = |debt: i128, rate: RequestUnits| match i128::from(rate.in_hundredths()) {
            0 => i128::MAX,
            rate => debt.max(0).saturating_add(rate - 1) / rate,
        };
        let mut wait = micros(debt - self.bank, self.per_second);
        if self.bank > 0 {
            wait = wait.max(micros(debt, BURST_PER_SECOND));
        }
        let micros = u64::try_from(wait).unwrap_or(u64::MAX);
        Admission::Refused {
            retry_after: whole_millis(Duration::from_micros(micros)),
        }
    }

    /// Requests admission before any work is done, and reserves the expected cost if it is admitted.
    pub fn admit(&mut self, now: Duration) -> Admission {
        let admission = self.ask(now);
        if admission == Admission::Admitted {
            self.in_flight = self.in_flight.saturating_add(1);
        }
        admission
    }

    /// As [`Budget::peek`], for a client that honours `retry_after`. Requests refused at one moment get successive
    /// retry times, as the budget fills. Otherwise all would retry at the end of the same small overdraft; one would be
    /// served, and the others refused again. Nothing is reserved: a request that arrives while units remain is
    /// admitted.
    pub(super) fn ask(&mut self, now: Duration) -> Admission {
        let admission = self.peek(now);
        let Admission::Refused { retry_after } = admission else {
            return admission;
        };
        let earliest = now.saturating_add(retry_after);
        // All promised retry times have passed.
        let place = if self.promised <= now {
            earliest
        } else {
            let next = self.promised.saturating_add(self.time_for_next());
            next.clamp(earliest, earliest.saturating_add(PROMISED_MAX))
        };
        self.promised = place;
        Admission::Refused {
            retry_after: whole_millis(place.saturating_sub(now)),
        }
    }

    /// The time in which the budget fills by the cost of two requests: the retried one, and a new one that arrives
    /// meanwhile. The budget cannot distinguish the two.
    fn time_for_next(&self) -> Duration {
        let rate = if self.bank > 0 {
            self.per_second.max(BURST_PER_SECOND)
        } else {
            self.per_second
        };
        let each = self.mean.clamp(0, self.full());
        let nanos = each.saturating_mul(2_000) / i128::from(rate.in_hundredths()).max(1);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Charges the real cost of an admitted request and releases its reservation.
    pub fn charge_admitted(&mut self, cost: RequestUnits) {
        self.cancel();
        let cost = amount(cost);
        self.mean += (cost - self.mean) / MEAN_SHARE;
        self.take(cost);
    }

    /// Releases the reservation of an admitted request that did no work.
    pub fn cancel(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Charges work without a preceding admission.
    pub fn charge(&mut self, cost: RequestUnits) {
        self.take(amount(cost));
    }

    fn take(&mut self, cost: i128) {
        self.balance = self.balance.saturating_sub(cost);
        if mutant::is_on(Mutant::ForgetDebt) {
            self.balance = self.balance.max(0);
        }
    }

    /// Changes the units a second. The remaining budget stays up to the new limit; an overdraft stays whole.
    pub fn set_per_second(&mut self, per_second: RequestUnits, bursts: bool, now: Duration) {
        self.fill(now);
        self.per_second = per_second;
        self.bursts = bursts;
        self.clamp();
    }

    fn clamp(&mut self) {
        self.balance = self.balance.min(self.full());
        self.bank = self.bank.min(self.bank_max());
    }

    /// The content of this budget in `count` equal parts, rounded down: parts never sum to more than the whole.
    pub(super) fn parts(&mut self, count: usize, now: Duration) -> Content {
        self.fill(now);
        let count = i128::try_from(count.max(1)).unwrap_or(i128::MAX);
        Content {
            balance: self.balance.div_euclid(count),
            bank: self.bank / count,
            mean: self.mean,
        }
    }

    /// Adds the content of another budget.
    pub(super) fn put(&mut self, content: Content) {
        self.balance = self.balance.saturating_add(content.balance);
        self.bank = self.bank.saturating_add(content.bank);
        self.mean = self.mean.max(content.mean);
        self.clamp();
    }
}

/// The content that a budget hands to its successors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    balance: i128,
    bank: i128,
    mean: i128,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn whole(count: u64) -> RequestUnits {
        RequestUnits::whole(count)
    }

    fn refused(budget: &mut Budget, now: Duration) -> u128 {
        match budget.admit(now) {
            Admission::Refused { retry_after } => retry_after.as_millis(),
            Admission::Admitted => panic!("admitted"),
        }
    }

    /// How long the overdraft lasts, whichever requests came before.
    fn waiting(budget: &mut Budget, now: Duration) -> u128 {
        match budget.peek(now) {
            Admission::Refused { retry_after } => retry_after.as_millis(),
            Admission::Admitted => panic!("admitted"),
        }
    }

    #[test]
    fn debt_is_worked_off_before_anything_is_admitted() {
        let mut budget = Budget::new(whole(100), false, Duration::ZERO);
        assert_eq!(budget.admit(Duration::ZERO), Admission::Admitted);
        budget.charge_admitted(whole(150));
        assert_eq!(refused(&mut budget, Duration::ZERO), 500);
        assert_eq!(refused(&mut budget, Duration::from_millis(500)), 1);
        assert_eq!(budget.admit(Duration::from_millis(501)), Admission::Admitted);
        budget.cancel();
        // 800 at once against 400 a second: a little under two seconds with the units refilled since.
        let mut budget = Budget::new(whole(400), false, Duration::ZERO);
        assert_eq!(budget.admit(Duration::ZERO), Admission::Admitted);
        budget.charge_admitted(whole(800));
        assert_eq!(refused(&mut budget, Duration::from_micros(1)), 1000);
        assert_eq!(waiting(&mut budget, Duration::from_micros(999_999)), 1);
        assert_eq!(budget.admit(Duration::from_millis(1001)), Admission::Admitted);
    }

    #[test]
    fn what_is_in_flight_is_held_back_for() {
        let mut budget = Budget::new(whole(100), false, Duration::ZERO);
        let admitted = |budget: &mut Budget| {
            let asked = (0..1000).filter(|_| budget.admit(Duration::ZERO) == Admission::Admitted);
            asked.count()
        };
        assert_eq!(admitted(&mut budget), 20);
        assert_eq!(waiting(&mut budget, Duration::ZERO), 1);
        for _ in 0..20 {
            budget.cancel();
        }
        // If requests cost 20 each, fewer are admitted at once, but always one.
        for _ in 0..100 {
            assert_eq!(budget.admit(Duration::ZERO), Admission::Admitted);
            budget.charge_admitted(whole(20));
            budget = Budget {
                balance: budget.full(),
                ..budget
            };
        }
        assert_eq!(admitted(&mut budget), 6);
    }

    #[test]
    fn those_who_are_refused_are_told_to_come_one_behind_the_other() {
        let mut budget = Budget::new(whole(400), false, Duration::ZERO);
        for _ in 0..80 {
            assert_eq!(budget.admit(Duration::ZERO), Admission::Admitted);
        }
        for _ in 0..80 {
            budget.charge_admitted(whole(5));
        }
        // Each costs 5, which takes 12.5 ms to refill, and the same again is expected for other clients.
        let told: Vec<u128> = (0..5).map(|_| refused(&mut budget, Duration::ZERO)).collect();
        assert_eq!(told, [1, 26, 51, 76, 101]);
        // No later than a second after the end of the overdraft, however many requests are refused.
        for _ in 0..200 {
            assert!(refused(&mut budget, Duration::ZERO) <= 1_001);
        }
        // Each client that honours its retry time is served, the last one too.
        let served = (1..=1_001).filter(|millis| {
            let admission = budget.admit(Duration::from_millis(*millis));
            if admission == Admission::Admitted {
                budget.charge_admitted(whole(5));
            }
            admission == Admission::Admitted
        });
        assert_eq!(served.count(), 81);
        // A client that does not retry has nothing reserved.
        let late = Duration::from_secs(60);
        assert_eq!(budget.admit(late), Admission::Admitted);
        budget.charge_admitted(whole(600));
        assert_eq!(refused(&mut budget, late), 500);
    }

    #[test]
    fn a_bank_is_spent_at_three_thousand_a_second() {
        let mut budget = Budget::new(whole(100), true, Duration::ZERO);
        let mut now = Duration::from_secs(300);
        assert_eq!((budget.bank(now), budget.balance(now)), (3_000_000, 10_000));
        let (mut spent, began) = (0, now);
        while budget.bank(now) > 0 {
            if budget.admit(now) == Admission::Admitted {
                budget.charge_admitted(whole(10));
                spent += 10;
            }
            now += Duration::from_millis(1);
        }
        let seconds = (now - began).as_secs_f64();
        assert!((10.2..10.5).contains(&seconds), "{seconds}");
        assert!((30_900..31_200).contains(&spent), "{spent}");
        // Afterwards the rate is a hundred a second again.
        budget.charge(whole(300));
        assert!(refused(&mut budget, now) >= 2000);
        // A budget of three thousand banks nothing.
        let mut budget = Budget::new(whole(3_000), true, Duration::ZERO);
        assert_eq!(budget.bank(Duration::from_secs(300)), 0);
    }

    #[test]
    fn another_rate_gives_and_takes_nothing_at_once() {
        let mut budget = Budget::new(whole(400), false, Duration::ZERO);
        budget.charge(whole(1_000));
        budget.set_per_second(whole(4_000), false, Duration::ZERO);
        assert_eq!(budget.balance(Duration::ZERO), -60_000);
        assert_eq!(refused(&mut budget, Duration::ZERO), 150);
        let mut budget = Budget::new(whole(4_000), false, Duration::ZERO);
        budget.set_per_second(whole(400), false, Duration::ZERO);
        assert_eq!(budget.balance(Duration::ZERO), 40_000);
    }

    proptest! {
        /// In any time no more is spent than was granted, except for the last request's overdraft.
        #[test]
        fn spending_stays_within_the_budget(
            rate in 1_u64..2000,
            bursts in any::<bool>(),
            costs in prop::collection::vec((0_u64..300, 0_u64..200), 1..200),
        ) {
            let mut budget = Budget::new(whole(rate), bursts, Duration::ZERO);
            let (mut now, mut spent, mut last) = (Duration::ZERO, 0, 0);
            for (cost, wait_millis) in costs {
                now += Duration::from_millis(wait_millis);
                if budget.admit(now) == Admission::Admitted {
                    budget.charge_admitted(whole(cost));
                    spent += cost * 100;
                    last = cost * 100;
                }
            }
            let given = u128::from(rate) * 100 * (now.as_micros() + 1_000_000) / 1_000_000 + 1;
            prop_assert!(u128::from(spent) <= given + u128::from(last));
        }

        /// A client that waits for its retry time is admitted at most a millisecond later.
        #[test]
        fn waiting_as_told_is_enough(rate in 1_u64..20_000, debt in 0_u64..100_000, bank in 0_u64..300, bursts in any::<bool>()) {
            let mut budget = Budget::new(whole(rate), bursts, Duration::ZERO);
            let now = Duration::from_secs(bank);
            prop_assert_eq!(budget.admit(now), Admission::Admitted);
            budget.charge_admitted(whole(rate + debt));
            let Admission::Refused { retry_after } = budget.admit(now) else { panic!("admitted in debt") };
            prop_assert_eq!(budget.admit(now + retry_after + Duration::from_millis(1)), Admission::Admitted);
        }
    }
}
