//! A budget of request units that fills with time and may go into debt.

use std::time::Duration;

use super::units::RequestUnits;

/// Whether a request may be served now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may; [`Budget::charge`] what it cost.
    Admitted,
    /// Not before this much time has passed.
    Refused {
        /// Until the debt is worked off; at least 1 ms.
        retry_after: Duration,
    },
}

/// What one physical partition may spend.
#[derive(Clone, Debug)]
pub struct Budget {
    per_second: RequestUnits,
    /// Millionths of a hundredth of a unit, so that no fraction is lost between two calls; negative is debt.
    balance: i128,
    filled_at: Duration,
}

const MICROS: i128 = 1_000_000;

impl Budget {
    /// A full budget of so many units a second. `now` is monotonic time.
    #[must_use]
    pub fn new(per_second: RequestUnits, now: Duration) -> Self {
        let mut budget = Self {
            per_second,
            balance: 0,
            filled_at: now,
        };
        budget.balance = budget.full();
        budget
    }

    /// What a full budget holds: one second's worth.
    fn full(&self) -> i128 {
        i128::from(self.per_second.in_hundredths()) * MICROS
    }

    fn fill(&mut self, now: Duration) {
        let passed = i128::try_from(now.saturating_sub(self.filled_at).as_micros()).unwrap_or(i128::MAX);
        let gained = passed.saturating_mul(i128::from(self.per_second.in_hundredths()));
        self.balance = self.balance.saturating_add(gained).min(self.full());
        self.filled_at = self.filled_at.max(now);
    }

    /// Asks before any work is done.
    pub fn admit(&mut self, now: Duration) -> Admission {
        self.fill(now);
        if self.balance > 0 {
            return Admission::Admitted;
        }
        let rate = i128::from(self.per_second.in_hundredths());
        let micros = if rate == 0 {
            i128::MAX
        } else {
            (-self.balance) / rate + 1
        };
        Admission::Refused {
            retry_after: Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).max(Duration::from_millis(1)),
        }
    }

    /// Takes what an admitted request really cost.
    pub fn charge(&mut self, cost: RequestUnits) {
        self.balance = self.balance.saturating_sub(i128::from(cost.in_hundredths()) * MICROS);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn debt_is_worked_off_before_anything_is_admitted() {
        let mut budget = Budget::new(RequestUnits::whole(100), Duration::ZERO);
        assert_eq!(budget.admit(Duration::ZERO), Admission::Admitted);
        budget.charge(RequestUnits::whole(150));
        let Admission::Refused { retry_after } = budget.admit(Duration::ZERO) else {
            panic!("a budget in debt admits")
        };
        assert!((500..=501).contains(&retry_after.as_millis()), "{retry_after:?}");
        assert_eq!(budget.admit(retry_after), Admission::Admitted);
    }

    proptest! {
        /// Over any time no more is spent than was given, but for the last request's debt.
        #[test]
        fn spending_stays_within_the_budget(rate in 1_u64..2000, costs in prop::collection::vec((0_u64..300, 0_u64..200), 1..200)) {
            let mut budget = Budget::new(RequestUnits::whole(rate), Duration::ZERO);
            let (mut now, mut spent, mut last) = (Duration::ZERO, 0, 0);
            for (cost, wait_millis) in costs {
                now += Duration::from_millis(wait_millis);
                if budget.admit(now) == Admission::Admitted {
                    budget.charge(RequestUnits::whole(cost));
                    spent += cost * 100;
                    last = cost * 100;
                }
            }
            let given = u128::from(rate) * 100 * (now.as_micros() + 1_000_000) / 1_000_000 + 1;
            prop_assert!(u128::from(spent) <= given + u128::from(last));
        }
    }
}
