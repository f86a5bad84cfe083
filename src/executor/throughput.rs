//! Admission: whether a statement may go on, waits, or is refused; and what it is charged in the end.
//!
//! ```text
//! carry out ─ bind ─→ admit (accounts of all physical partitions concerned) ─→ reads, writes ─→ settle: pay what it really cost
//!                       └─→ refused: 0x1001 with the time to wait; or, with server-side retry, waits inside and asks again
//! ```
//! A statement is admitted as a whole before it does any work: all accounts that it concerns admit it, or none holds anything for it.
//! A read of the ring that is cut into pages asks those partitions that are still before it. What it really cost is charged where it
//! was spent, asked or not. Tables without throughput are not asked about, take no lock and are not charged.
//!
//! **Server-side retry.** A statement that would be refused waits for as long as the refusal says and asks again, for 60 s at most; then it
//! has timed out. At most a set number wait at once, those beyond are refused.
//!
//! **Metadata.** In the `cosmos` profile DDL and reads of `system_schema` have a budget of their own, 240 RU/s.
//!
//! Sources: Azure Cosmos DB's documentation (prevent-rate-limiting-errors, troubleshoot-request-rate-too-large).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::answer::Answer;
use super::database::{Database, Request};
use super::error::Error;
use super::offers::{Offer, ThroughputRules};
use super::settle::Done;
use super::shape::shape;
use crate::clock::Clock;
use crate::metrics;
use crate::partition::{Consistency, TablePartitions};
use crate::schema::node::{AccountShown, ThrottleShown, ThroughputShown};
use crate::schema::{Table, Throughput, system};
use crate::throughput::{
    Account, Charges, Footing, Held, PartitionRef, Refusal, RequestUnits, Stage, admit_all, autoscale_current,
    refusal_text, retry_after_millis,
};

/// How long a statement waits inside the server at most.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long at a time: the clock may be a test's, and budgets may change meanwhile.
const WAIT_STEP_MAX: Duration = Duration::from_millis(50);

/// Throttles that are remembered.
const LOG_MAX: usize = 1_000;

/// What all statements of a database share of throughput, besides the accounts of tables.
#[derive(Debug)]
pub(super) struct Gate {
    rules: ThroughputRules,
    metadata: Option<Arc<Account>>,
    /// Statements that wait.
    waiting: AtomicUsize,
    log: Mutex<VecDeque<ThrottleShown>>,
}

impl Gate {
    pub(super) fn new(rules: ThroughputRules, clock: &Clock) -> Self {
        let metadata = rules.metadata_per_second.map(|units| {
            let per_second = RequestUnits::whole(u64::from(units));
            Arc::new(Account::new(per_second, false, None, clock.monotonic()))
        });
        Self {
            rules,
            metadata,
            waiting: AtomicUsize::new(0),
            log: Mutex::default(),
        }
    }

    fn log(&self) -> std::sync::MutexGuard<'_, VecDeque<ThrottleShown>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn take(count: &'a AtomicUsize, max: usize) -> Option<Self> {
        let taken = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < max).then_some(count + 1)
        });
        taken.is_ok().then(|| Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Partition(PartitionRef),
    Metadata,
}

/// What became of asking.
#[derive(Debug, Default)]
pub(super) struct Asked {
    held: Mutex<Vec<(Owner, Held)>>,
    /// Why it was refused at first; it may have been admitted later.
    throttled: Option<Throttled>,
    /// How long it waited in the server.
    waited: Duration,
}

impl Asked {
    /// How long the statement waited in the server for its units, and whether it asked more than once.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.throttled
            .filter(|throttled| throttled.retried)
            .map(|_| self.waited)
    }
}

#[derive(Clone, Copy, Debug)]
struct Throttled {
    owner: Owner,
    retry_after: Duration,
    balance_hundredths: i64,
    /// It was not refused at once.
    retried: bool,
}

/// What kind of timeout a statement ends with that has waited for too long.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// SELECT.
    Read,
    /// The protocol's name of the kind of write.
    Write(&'static str),
}

impl Work {
    fn timeout(self, consistency: Consistency) -> Error {
        match self {
            Self::Read => Error::ReadTimeout {
                consistency,
                received: 0,
                required: 1,
                data_present: false,
            },
            Self::Write(write_type) => Error::WriteTimeout {
                consistency,
                received: 0,
                required: 1,
                write_type,
            },
        }
    }
}

/// The accounts of a statement, each once. Empty, and nothing is made, where no table concerned has throughput.
#[derive(Debug, Default)]
pub(super) struct Concerned {
    owners: Vec<Owner>,
    accounts: Vec<Arc<Account>>,
}

impl Concerned {
    /// Adds physical partitions of a table; only asks for them if the table has throughput.
    pub(super) fn add<I: Iterator<Item = u64>>(
        &mut self,
        table: &Table,
        partitions: &TablePartitions,
        ids: impl FnOnce() -> I,
    ) {
        let Some(budget) = partitions.budget() else { return };
        for partition in ids() {
            let owner = Owner::Partition(PartitionRef {
                table: table.storage_id,
                partition,
            });
            // Statements of very many keys are few, and those of few keys are fast enough.
            if !self.owners.contains(&owner)
                && let Some(account) = budget.account(partition)
            {
                self.owners.push(owner);
                self.accounts.push(Arc::clone(account));
            }
        }
    }
}

impl Database {
    /// Asks whether a statement may go on. `Ok` at once where nothing that it concerns has throughput.
    ///
    /// # Errors
    /// [`Error::Overloaded`] in Cosmos's words, or a timeout when it has waited in the server for too long.
    pub(super) async fn admit(&self, request: &Request<'_>, concerned: Concerned, work: Work) -> Result<(), Error> {
        if concerned.accounts.is_empty() {
            return Ok(());
        }
        self.ask(request, concerned, work).await
    }

    /// As [`Database::admit`], for DDL and reads of the schema.
    pub(super) async fn admit_metadata(&self, request: &Request<'_>, work: Work) -> Result<(), Error> {
        let Some(account) = &self.gate().metadata else {
            return Ok(());
        };
        let concerned = Concerned {
            owners: vec![Owner::Metadata],
            accounts: vec![Arc::clone(account)],
        };
        self.ask(request, concerned, work).await
    }

    async fn ask(&self, request: &Request<'_>, concerned: Concerned, work: Work) -> Result<(), Error> {
        let (_, clock) = self.store_and_clock();
        let began = clock.monotonic();
        let mut asked = Asked::default();
        let outcome = match admit_all(&concerned.accounts, began) {
            Ok(held) => {
                asked.held = Mutex::new(concerned.owners.iter().copied().zip(held).collect());
                Ok(())
            }
            Err(refusal) => {
                metrics::THROTTLED.increment();
                asked.throttled = Some(throttled(&concerned, refusal, false));
                self.retry(request, &concerned, refusal, work, began, &mut asked).await
            }
        };
        // A request asks once.
        drop(request.asked.set(asked));
        outcome
    }

    /// Waits and asks again, if that is allowed.
    async fn retry(
        &self,
        request: &Request<'_>,
        concerned: &Concerned,
        refusal: Refusal,
        work: Work,
        began: Duration,
        asked: &mut Asked,
    ) -> Result<(), Error> {
        let (gate, (_, clock)) = (self.gate(), self.store_and_clock());
        let place = if gate.rules.server_side_retry {
            Waiting::take(&gate.waiting, gate.rules.waiting_max)
        } else {
            None
        };
        let Some(_place) = place else {
            return Err(Error::Overloaded(refusal_text(self.draw(), refusal.retry_after)));
        };
        let mut refusal = refusal;
        loop {
            let until = clock.monotonic() + refusal.retry_after;
            loop {
                let now = clock.monotonic();
                asked.waited = now.saturating_sub(began);
                if asked.waited >= WAIT_MAX {
                    metrics::THROTTLED_TIMEOUTS.increment();
                    asked.throttled = Some(throttled(concerned, refusal, true));
                    return Err(work.timeout(request.consistency()));
                }
                if now >= until {
                    break;
                }
                let left = (until - now).min(WAIT_MAX.saturating_sub(asked.waited));
                tokio::time::sleep(left.clamp(Duration::from_millis(1), WAIT_STEP_MAX)).await;
            }
            match admit_all(&concerned.accounts, clock.monotonic()) {
                Ok(held) => {
                    asked.waited = clock.monotonic().saturating_sub(began);
                    asked.held = Mutex::new(concerned.owners.iter().copied().zip(held).collect());
                    asked.throttled = Some(throttled(concerned, refusal, true));
                    return Ok(());
                }
                Err(again) => refusal = again,
            }
        }
    }

    /// Charges what a statement has cost to those who pay for it, and remembers a throttle. Gives how long the statement waited in the
    /// server, if it had to.
    pub(super) fn pay(
        &self,
        request: &Request<'_>,
        done: Done<'_>,
        charges: &mut Charges,
        outcome: &Result<Answer, Error>,
    ) -> Option<Duration> {
        let asked = request.asked.get()?;
        let now = self.store_and_clock().1.monotonic();
        let mut held = std::mem::take(&mut *asked.held.lock().unwrap_or_else(PoisonError::into_inner));
        let mut sums: Vec<(PartitionRef, u64)> = Vec::new();
        for charge in charges.partitions() {
            match sums
                .iter_mut()
                .rev()
                .find(|(partition, _)| *partition == charge.partition)
            {
                Some((_, sum)) => *sum += charge.micros(),
                None => sums.push((charge.partition, charge.micros())),
            }
        }
        for (partition, micros) in sums {
            let cost = RequestUnits::hundredths(micros.div_ceil(10_000));
            let place = held.iter().position(|(owner, _)| *owner == Owner::Partition(partition));
            if let Some(place) = place {
                held.swap_remove(place).1.settle(cost, now);
            } else if let Some(account) = request.account(partition) {
                account.charge(cost, now);
            }
        }
        if let Some(place) = held.iter().position(|(owner, _)| *owner == Owner::Metadata) {
            held.swap_remove(place).1.settle(charges.of(Stage::Metadata), now);
        }
        drop(held);
        if let Some(throttled) = asked.throttled {
            self.remember(request, done, throttled, outcome.is_ok());
        }
        asked.delay()
    }

    /// Notes a throttle. Whoever meets somebody else at it does not wait: under overload a sample is as good.
    fn remember(&self, request: &Request<'_>, done: Done<'_>, throttled: Throttled, was_admitted: bool) {
        let Ok(mut log) = self.gate().log.try_lock() else {
            return;
        };
        let (keyspace, table, partition) = match throttled.owner {
            Owner::Metadata => ("system_schema".to_owned(), String::new(), None),
            Owner::Partition(partition) => {
                let table = request.table(partition.table);
                let (keyspace, table) =
                    table.map_or_else(Default::default, |table| (table.keyspace.clone(), table.name.clone()));
                (keyspace, table, Some(partition.partition))
            }
        };
        let statement = match done {
            Done::Statement(planned) => shape(&planned.text),
            Done::Batch(batch) => format!("BATCH of {}", batch.modifications.len()),
        };
        if log.len() >= LOG_MAX {
            log.pop_front();
        }
        log.push_back(ThrottleShown {
            at_micros: self.store_and_clock().1.wall_micros(),
            keyspace,
            table,
            statement,
            partition,
            balance_hundredths: throttled.balance_hundredths,
            retry_after_millis: retry_after_millis(throttled.retry_after),
            was_retried: throttled.retried,
            was_admitted,
        });
    }

    /// The last throttles, oldest first.
    pub(super) fn throttles(&self) -> Vec<ThrottleShown> {
        self.gate().log().iter().cloned().collect()
    }

    /// What tables and keyspaces may spend, by keyspace and table; a keyspace that shares its throughput has an entry without a table.
    #[must_use]
    pub fn throughput(&self) -> Vec<ThroughputShown> {
        let (snapshot, (_, clock)) = (self.snapshot(), self.store_and_clock());
        let now = clock.monotonic();
        let bytes = |table: &Table| {
            let list = snapshot.partitions_of(table.storage_id);
            list.map_or(0, |list| list.bytes(table.storage_id).bytes)
        };
        let offers = &self.catalog().offers;
        let mut shown = Vec::new();
        for keyspace in snapshot.schema.keyspaces.values() {
            if system::is_name(&keyspace.name) {
                continue;
            }
            let sharing = || keyspace.all_tables().filter(|table| table.options.throughput.is_none());
            if let (Some(throughput), Some(pool)) = (keyspace.throughput, offers.pool(&keyspace.name)) {
                let footing = Footing {
                    highest: keyspace.throughput_highest,
                    bytes: sharing().map(|table| bytes(table)).sum(),
                    shared_tables: sharing().count() as u64,
                };
                let accounts = vec![account_shown(None, &pool, now)];
                shown.push(throughput_shown(&keyspace.name, "", throughput, footing, accounts));
            }
            for table in keyspace.all_tables() {
                let Some(offer) = offers.offer(keyspace, table) else {
                    continue;
                };
                let Ok(partitions) = snapshot.partitions(table) else {
                    continue;
                };
                let budget = partitions.budget();
                let accounts = budget.map(|budget| budget.accounts()).unwrap_or_default();
                let accounts = accounts
                    .iter()
                    .map(|(slice, account)| account_shown(Some(slice.id), account, now));
                let footing = Footing {
                    highest: table.options.throughput_highest,
                    bytes: bytes(table),
                    shared_tables: 0,
                };
                let (throughput, shared) = match offer {
                    Offer::Own(throughput) => (throughput, false),
                    Offer::Shared(throughput) => (throughput, true),
                };
                let mut one = throughput_shown(&keyspace.name, &table.name, throughput, footing, accounts.collect());
                one.is_shared = shared;
                shown.push(one);
            }
        }
        shown
    }
}

fn throttled(concerned: &Concerned, refusal: Refusal, retried: bool) -> Throttled {
    Throttled {
        owner: concerned.owners.get(refusal.place).copied().unwrap_or(Owner::Metadata),
        retry_after: refusal.retry_after,
        balance_hundredths: refusal.balance_hundredths,
        retried,
    }
}

/// What a physical partition may spend, as it is shown; `None`: anything.
pub(super) fn budget_of(partitions: &TablePartitions, id: u64, now: Duration) -> Option<AccountShown> {
    let account = partitions.budget()?.account(id)?;
    Some(account_shown(Some(id), account, now))
}

fn account_shown(id: Option<u64>, account: &Account, now: Duration) -> AccountShown {
    let figures = account.figures(now);
    AccountShown {
        id: id.unwrap_or_default(),
        per_second_hundredths: figures.per_second.in_hundredths(),
        balance_hundredths: figures.balance_hundredths,
        bank_hundredths: figures.bank_hundredths,
        normalized_percent: figures.normalized_percent,
        interval_percent: figures.interval_percent,
        hour_percent: figures.hour_percent,
    }
}

fn throughput_shown(
    keyspace: &str,
    table: &str,
    throughput: Throughput,
    footing: Footing,
    accounts: Vec<AccountShown>,
) -> ThroughputShown {
    let most = |of: fn(&AccountShown) -> u8| accounts.iter().map(of).max().unwrap_or_default();
    let max = throughput.most();
    let (current, highest_in_hour, minimum) = match throughput {
        Throughput::Manual(units) => (units, units, footing.least_manual()),
        Throughput::Autoscale(_) => (
            autoscale_current(max, most(|account| account.interval_percent)),
            autoscale_current(max, most(|account| account.hour_percent)),
            footing.least_autoscale(),
        ),
    };
    ThroughputShown {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
        is_autoscale: matches!(throughput, Throughput::Autoscale(_)),
        is_shared: table.is_empty(),
        max,
        current,
        highest_in_hour,
        minimum,
        partitions: accounts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_wait() {
        let count = AtomicUsize::new(0);
        let first = Waiting::take(&count, 1);
        assert!(first.is_some() && Waiting::take(&count, 1).is_none());
        drop(first);
        assert!(Waiting::take(&count, 1).is_some());
    }
}
