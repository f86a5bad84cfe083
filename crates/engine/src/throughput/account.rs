//! The account of a physical partition: its budget, its use, and the accounts that succeed it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::budget::{Admission, Budget, Content};
use super::units::RequestUnits;
use super::usage::Usage;
use helenus_base::mutant::{self, Mutant};

/// A budget that requests share, and the figures shown of it.
///
/// Each has a small lock of its own, held for some dozens of nanoseconds and never across a wait.
#[derive(Debug)]
pub struct Account {
    /// The budget that all partitions of a keyspace share; `None` means that the partition's own units are the only
    /// limit.
    pool: Option<Arc<Account>>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Live(Box<Live>),
    /// The partition was split or merged; requests with an old partition map are charged to its successors.
    Retired(Vec<Successor>),
}

/// The id and the account of a partition that took over tokens of an earlier one.
pub(super) type Successor = (u64, Arc<Account>);

#[derive(Debug)]
struct Live {
    budget: Budget,
    usage: Usage,
}

/// A question to a budget at a moment.
type Question = fn(&mut Budget, Duration) -> Admission;

/// The figures of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountFigures {
    /// Units a second.
    pub per_second: RequestUnits,
    /// Remaining budget, in hundredths of a unit; negative is an overdraft.
    pub balance_hundredths: i64,
    /// Banked units, in hundredths.
    pub bank_hundredths: i64,
    /// The highest use in a second of the last minute, 0 to 100.
    pub normalized_percent: u8,
    /// The mean use of the last five seconds, 0 to 100.
    pub interval_percent: u8,
    /// The highest such mean in this hour.
    pub hour_percent: u8,
}

/// Why a request is refused now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Position of the refusing account among those requested; the one with the longest wait, if several refuse.
    pub place: usize,
    /// The time until all of them would admit the request, as far as can be computed now.
    pub retry_after: Duration,
    /// The remaining budget of that account, in hundredths of a unit; not positive.
    pub balance_hundredths: i64,
}

/// An admission that has not been charged yet. If it is dropped without [`Held::charge`], nothing is charged.
#[derive(Debug)]
pub struct Held {
    account: Option<Arc<Account>>,
}

impl Held {
    /// Charges what the request really cost.
    pub fn charge(mut self, cost: RequestUnits, now: Duration) {
        if let Some(account) = self.account.take() {
            account.charge_admitted(cost, now);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(account) = self.account.take() {
            account.cancel();
        }
    }
}

impl Account {
    /// An account with a full budget.
    #[must_use]
    pub fn new(per_second: RequestUnits, bursts: bool, pool: Option<Arc<Self>>, now: Duration) -> Self {
        Self::with(Budget::new(per_second, bursts, now), pool, now)
    }

    /// An account that takes over the contents of the accounts that it succeeds.
    pub(super) fn succeeding(
        per_second: RequestUnits,
        bursts: bool,
        pool: Option<Arc<Self>>,
        contents: impl IntoIterator<Item = Content>,
        now: Duration,
    ) -> Self {
        let mut budget = Budget::empty(per_second, bursts, now);
        for content in contents {
            budget.put(content);
        }
        Self::with(budget, pool, now)
    }

    fn with(budget: Budget, pool: Option<Arc<Self>>, now: Duration) -> Self {
        let usage = Usage::new(now);
        Self {
            pool,
            state: Mutex::new(State::Live(Box::new(Live { budget, usage }))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code under the lock can panic half way, so a poisoned lock still protects a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `then` to the budget, or returns the successors of a retired account.
    fn live<T>(&self, then: impl FnOnce(&mut Live) -> T) -> Result<T, Vec<Successor>> {
        match &mut *self.state() {
            State::Live(live) => Ok(then(live)),
            State::Retired(successors) => Err(successors.clone()),
        }
    }

    /// Asks this account's own budget, without the pool's. A retired account refuses while a successor is overdrawn:
    /// `later` asks the successors, and reserves nothing there, because the one that serves the key is not known.
    fn check(&self, now: Duration, here: Question, later: Question) -> Result<(), (Duration, i64)> {
        let asked = self.live(|live| match here(&mut live.budget, now) {
            Admission::Admitted => Ok(()),
            Admission::Refused { retry_after } => Err((retry_after, live.budget.balance(now))),
        });
        asked.unwrap_or_else(|successors| {
            let answers = successors.iter().map(|(_, account)| account.check(now, later, later));
            answers.filter_map(Result::err).max().map_or(Ok(()), Err)
        })
    }

    fn admit_here(&self, now: Duration) -> Result<(), (Duration, i64)> {
        self.check(now, Budget::admit, Budget::ask)
    }

    fn peek_here(&self, now: Duration) -> Result<(), (Duration, i64)> {
        self.check(now, Budget::peek, Budget::peek)
    }

    /// Whether this account and its pool would admit a request now. Reserves nothing, and promises no retry time.
    fn peek(&self, now: Duration) -> Result<(), (Duration, i64)> {
        self.peek_here(now)?;
        self.pool.as_ref().map_or(Ok(()), |pool| pool.peek_here(now))
    }

    fn admit(&self, now: Duration) -> Result<(), (Duration, i64)> {
        self.admit_here(now)?;
        let pooled = self.pool.as_ref().map_or(Ok(()), |pool| pool.admit_here(now));
        if pooled.is_err() {
            self.cancel_here();
        }
        pooled
    }

    fn cancel_here(&self) {
        if mutant::is_on(Mutant::KeepHeldAtCancel) {
            return;
        }
        // The successors of a retired account do not count what was admitted here, so there is nothing to cancel there.
        drop(self.live(|live| live.budget.cancel()));
    }

    fn cancel(&self) {
        self.cancel_here();
        if let Some(pool) = &self.pool {
            pool.cancel_here();
        }
    }

    fn charge_admitted(&self, cost: RequestUnits, now: Duration) {
        self.charge_admitted_here(cost, now);
        if let Some(pool) = &self.pool {
            pool.charge_admitted_here(cost, now);
        }
    }

    fn charge_admitted_here(&self, cost: RequestUnits, now: Duration) {
        let charged = self.live(|live| {
            live.budget.charge_admitted(cost);
            live.usage.add(cost, live.budget.per_second(), now);
        });
        if let Err(successors) = charged {
            send_on(&successors, cost, now);
        }
    }

    /// Charges work without a preceding admission.
    pub fn charge(&self, cost: RequestUnits, now: Duration) {
        self.charge_here(cost, now);
        if let Some(pool) = &self.pool {
            pool.charge_here(cost, now);
        }
    }

    fn charge_here(&self, cost: RequestUnits, now: Duration) {
        let charged = self.live(|live| {
            live.budget.charge(cost);
            live.usage.add(cost, live.budget.per_second(), now);
        });
        if let Err(successors) = charged {
            send_on(&successors, cost, now);
        }
    }

    /// Changes the units a second. The remaining budget stays up to the new limit; an overdraft stays whole.
    pub fn set_per_second(&self, per_second: RequestUnits, bursts: bool, now: Duration) {
        drop(self.live(|live| live.budget.set_per_second(per_second, bursts, now)));
    }

    /// Its content, divided into `count` equal parts. `None` means that it is retired.
    pub(super) fn parts(&self, count: usize, now: Duration) -> Option<Content> {
        self.live(|live| live.budget.parts(count, now)).ok()
    }

    /// Redirects all later charges to `successors`.
    pub(super) fn retire(&self, successors: Vec<Successor>) {
        *self.state() = State::Retired(successors);
    }

    /// The account of a partition that has succeeded this one, after any number of changes. `None` means that no such
    /// partition has.
    pub(super) fn successor(&self, id: u64) -> Option<Arc<Self>> {
        let successors = self.live(|_| ()).err()?;
        let named = successors.iter().find(|(of, _)| *of == id);
        named.map_or_else(
            || successors.iter().find_map(|(_, successor)| successor.successor(id)),
            |(_, account)| Some(Arc::clone(account)),
        )
    }

    /// Its figures; all zero once it is retired.
    #[must_use]
    pub fn figures(&self, now: Duration) -> AccountFigures {
        let figures = self.live(|live| {
            let per_second = live.budget.per_second();
            let (interval_percent, hour_percent) = live.usage.autoscale_percents(per_second, now);
            AccountFigures {
                per_second,
                balance_hundredths: live.budget.balance(now),
                bank_hundredths: live.budget.bank(now),
                normalized_percent: live.usage.peak_percent(per_second, now),
                interval_percent,
                hour_percent,
            }
        });
        figures.unwrap_or_default()
    }
}

/// Charges the successors of a retired account evenly, since the keys charged are not kept.
fn send_on(successors: &[Successor], cost: RequestUnits, now: Duration) {
    if mutant::is_on(Mutant::StaleRouteIsFree) {
        return;
    }
    let count = u64::try_from(successors.len()).unwrap_or(u64::MAX).max(1);
    let (each, rest) = (cost.in_hundredths() / count, cost.in_hundredths() % count);
    for (place, (_, successor)) in successors.iter().enumerate() {
        let extra = if place == 0 { rest } else { 0 };
        successor.charge_here(RequestUnits::hundredths(each + extra), now);
    }
}

/// Requests admission from each of these accounts once: either all admit, or nothing is reserved.
///
/// # Errors
/// The [`Refusal`] with the longest wait.
pub fn admit_all(accounts: &[Arc<Account>], now: Duration) -> Result<Vec<Held>, Refusal> {
    let mut held = Vec::with_capacity(accounts.len());
    // A refusal drops `held`, which cancels it.
    each(accounts, |account| {
        account.admit(now)?;
        held.push(Held {
            account: Some(Arc::clone(account)),
        });
        Ok(())
    })?;
    Ok(held)
}

/// Whether each of these accounts would admit a request now. Nothing is reserved.
///
/// # Errors
/// The [`Refusal`] with the longest wait.
pub fn peek_all(accounts: &[Arc<Account>], now: Duration) -> Result<(), Refusal> {
    each(accounts, |account| account.peek(now))
}

/// Asks every account, even after a refusal, since the client must wait for the slowest.
fn each(
    accounts: &[Arc<Account>],
    mut ask: impl FnMut(&Arc<Account>) -> Result<(), (Duration, i64)>,
) -> Result<(), Refusal> {
    let mut worst: Option<Refusal> = None;
    for (place, account) in accounts.iter().enumerate() {
        if let Err((retry_after, balance_hundredths)) = ask(account)
            && worst.is_none_or(|worst| worst.retry_after < retry_after)
        {
            worst = Some(Refusal {
                place,
                retry_after,
                balance_hundredths,
            });
        }
    }
    worst.map_or(Ok(()), Err)
}
