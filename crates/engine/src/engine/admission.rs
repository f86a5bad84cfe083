//! Admission: whether a statement continues, waits, or is refused; and its final charge.
//!
//! ```text
//! execute ─ bind ─→ admit (accounts of all physical partitions concerned) ─→ reads, writes ─→ charge
//!                       │                                                        (charges the real cost)
//!                       └─→ refused: 0x1001 with the time to wait; or, with server-side retry, waits and tries again
//! ```
//! A statement is admitted as a whole before it does any work: either all accounts that it concerns admit it, or none
//! reserves anything for it. A paged read of the ring needs admission by the partitions that it has yet to visit. The
//! real cost is charged where it was incurred, whether that account admitted it or not. Tables without throughput need
//! no admission, take no lock and are not charged.
//!
//! **Server-side retry.** A refused statement waits in line (`line`) until its accounts admit it, for 60 s at most; then
//! it times out. A limited number of statements wait at once; further ones are refused.
//!
//! **Metadata.** In the `cosmos` profile DDL and reads of `system_schema` have a budget of their own, 240 RU/s.
//!
//! Sources: Azure Cosmos DB's documentation (prevent-rate-limiting-errors, troubleshoot-request-rate-too-large).

mod line;
pub(super) mod shown;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::draws::Draws;
use super::error::Error;
use super::offers::ThroughputRules;
use super::receipt::{Ended, Executed};
use crate::engine::shown::ThrottleShown;
use crate::engine::terms::request::Request;
use crate::partition::TablePartitions;
use crate::throughput::{
    Account, Charges, Held, PartitionRef, Refusal, RequestUnits, Stage, activity_id, admit_all, peek_all,
    retry_after_millis,
};
use helenus_base::clock::Clock;
use helenus_base::metrics;
use helenus_schema::schema::Table;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

use crate::engine::terms::claim::{Claim, Owner, Throttled};
use line::Lines;

/// Longest wait of a statement inside the server.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Longest single wait. The clock may be a test's, and budgets may change during the wait.
const WAIT_STEP_MAX: Duration = Duration::from_millis(50);

/// Shortest wait in line. It is also the retry time of a statement that finds others in line and no free slot to wait in.
const LINE_DELAY: Duration = Duration::from_millis(1);

/// Throttles that are kept in the log.
const LOG_MAX: usize = 1_000;

/// Admits statements by the budgets that they use, and charges them. Accounts of tables belong to the partition map.
#[derive(Debug)]
pub(super) struct Admission {
    rules: ThroughputRules,
    clock: Clock,
    /// Source of the random ids of refusals.
    draws: Arc<Draws>,
    /// The account of DDL and of reads of the schema; `None` means that they have no budget.
    metadata: Option<Arc<Account>>,
    /// Statements that wait now.
    waiting: AtomicUsize,
    lines: Lines,
    log: Mutex<VecDeque<ThrottleShown>>,
}

/// A slot among the waiting statements; freed when dropped.
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

/// The kind of timeout for a statement that waited too long.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// SELECT.
    Read,
    /// The kind of write.
    Write(WriteKind),
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
            Self::Write(write_kind) => Error::WriteTimeout {
                consistency,
                received: 0,
                required: 1,
                write_kind,
            },
        }
    }
}

/// The accounts of a statement, each once. Empty and without allocation if no table concerned has throughput.
#[derive(Debug, Default)]
pub(super) struct Concerned {
    owners: Vec<Owner>,
    accounts: Vec<Arc<Account>>,
}

impl Concerned {
    /// Adds physical partitions of a table; evaluates `partitions` only if the table has throughput.
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
            // A linear search: statements of very many keys are rare, and short lists are fast.
            if !self.owners.contains(&owner)
                && let Some(account) = budget.account(partition)
            {
                self.owners.push(owner);
                self.accounts.push(Arc::clone(account));
            }
        }
    }
}

impl Admission {
    pub(super) fn new(rules: ThroughputRules, clock: Clock, draws: Arc<Draws>) -> Self {
        let metadata = rules.metadata_per_second.map(|units| {
            let per_second = RequestUnits::whole(u64::from(units));
            Arc::new(Account::new(per_second, false, None, clock.monotonic()))
        });
        Self {
            rules,
            clock,
            draws,
            metadata,
            waiting: AtomicUsize::new(0),
            lines: Lines::default(),
            log: Mutex::default(),
        }
    }

    fn log(&self) -> MutexGuard<'_, VecDeque<ThrottleShown>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a statement, or makes it wait. Returns at once where nothing that it uses has a budget.
    ///
    /// # Errors
    /// [`Error::Throttled`] with Cosmos's text, or a timeout when it has waited in the server for too long.
    pub(super) async fn admit(&self, request: &Request<'_>, concerned: Concerned, work: Work) -> Result<(), Error> {
        if concerned.accounts.is_empty() {
            return Ok(());
        }
        self.ask(request, concerned, work).await
    }

    /// As [`Admission::admit`], for DDL and reads of the schema.
    pub(super) async fn admit_metadata(&self, request: &Request<'_>, work: Work) -> Result<(), Error> {
        let Some(account) = &self.metadata else {
            return Ok(());
        };
        let concerned = Concerned {
            owners: vec![Owner::Metadata],
            accounts: vec![Arc::clone(account)],
        };
        self.ask(request, concerned, work).await
    }

    async fn ask(&self, request: &Request<'_>, concerned: Concerned, work: Work) -> Result<(), Error> {
        let began = self.clock.monotonic();
        let mut claim = Claim::default();
        let outcome = match self.admit_new(&concerned.accounts, began) {
            Ok(held) => {
                claim.held = Mutex::new(concerned.owners.iter().copied().zip(held).collect());
                Ok(())
            }
            Err(refusal) => {
                metrics::THROTTLED.increment();
                claim.throttled = Some(throttled(&concerned, refusal, false));
                self.retry(request, &concerned, refusal, work, began, &mut claim).await
            }
        };
        // Each request is admitted at most once, so the cell is empty.
        drop(request.claim.set(claim));
        outcome
    }

    /// Admits a statement that has not waited: not before others that wait for the same account.
    fn admit_new(&self, accounts: &[Arc<Account>], now: Duration) -> Result<Vec<Held>, Refusal> {
        let others_wait = self.waiting.load(Ordering::Relaxed) > 0;
        let Some(place) = others_wait.then(|| self.lines.waited_for(accounts)).flatten() else {
            return admit_all(accounts, now);
        };
        let behind = Refusal {
            place,
            retry_after: LINE_DELAY,
            balance_hundredths: 0,
        };
        let refused = peek_all(accounts.get(place..=place).unwrap_or_default(), now).err();
        Err(refused.map_or(behind, |refusal| Refusal { place, ..refusal }))
    }

    /// Waits in line, if server-side retry is on.
    async fn retry(
        &self,
        request: &Request<'_>,
        concerned: &Concerned,
        refusal: Refusal,
        work: Work,
        began: Duration,
        claim: &mut Claim,
    ) -> Result<(), Error> {
        let (clock, accounts) = (&self.clock, &concerned.accounts);
        let slot = if self.rules.server_side_retry {
            Waiting::take(&self.waiting, self.rules.waiting_max)
        } else {
            None
        };
        let account = accounts.get(refusal.place);
        let Some((_slot, account)) = slot.zip(account) else {
            return Err(Error::Throttled {
                activity: activity_id(self.draws.generator().u128(..)),
                retry_after: refusal.retry_after,
            });
        };
        let (mut place, mut refusal) = (self.lines.join(account), refusal);
        loop {
            let now = clock.monotonic();
            claim.waited = now.saturating_sub(began);
            claim.throttled = Some(throttled(concerned, refusal, true));
            if claim.waited >= WAIT_MAX {
                metrics::THROTTLED_TIMEOUTS.increment();
                return Err(work.timeout(request.consistency()));
            }
            let mut wait = WAIT_STEP_MAX.min(WAIT_MAX.saturating_sub(claim.waited));
            if place.is_first() {
                match peek_all(accounts, now).and_then(|()| admit_all(accounts, now)) {
                    Ok(held) => {
                        claim.held = Mutex::new(concerned.owners.iter().copied().zip(held).collect());
                        return Ok(());
                    }
                    Err(again) => {
                        refusal = again;
                        wait = wait.min(refusal.retry_after);
                        if let Some(account) = accounts.get(refusal.place) {
                            place.move_to(account);
                        }
                    }
                }
            }
            // The clock may be a test's, so this is no more than a step.
            drop(tokio::time::timeout(wait.max(LINE_DELAY), place.woken()).await);
        }
    }

    /// Charges the cost of a statement to its accounts, and logs a throttle. Returns how long the statement waited in
    /// the server; `None` means that it did not.
    pub(super) fn pay(
        &self,
        request: &Request<'_>,
        executed: Executed<'_>,
        charges: &mut Charges,
        ended: Ended,
    ) -> Option<Duration> {
        let claim = request.claim.get()?;
        let now = self.clock.monotonic();
        let mut held = std::mem::take(&mut *claim.held.lock().unwrap_or_else(PoisonError::into_inner));
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
                held.swap_remove(place).1.charge(cost, now);
            } else if let Some(account) = request.account(partition) {
                account.charge(cost, now);
            }
        }
        if let Some(place) = held.iter().position(|(owner, _)| *owner == Owner::Metadata) {
            held.swap_remove(place).1.charge(charges.of(Stage::Metadata), now);
        }
        drop(held);
        if let Some(throttled) = claim.throttled {
            let was_admitted = matches!(ended, Ended::Answered { .. });
            self.log_throttle(request, executed, throttled, was_admitted);
        }
        claim.delay()
    }

    /// Logs a throttle. Skips it while another thread holds the log: under overload a sample is as good.
    fn log_throttle(&self, request: &Request<'_>, executed: Executed<'_>, throttled: Throttled, was_admitted: bool) {
        let Ok(mut log) = self.log.try_lock() else {
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
        let statement = match executed {
            Executed::Statement(origin) => (origin.without_values)(&origin.text),
            Executed::Batch(batch) => format!("BATCH of {}", batch.statements),
        };
        if log.len() >= LOG_MAX {
            log.pop_front();
        }
        log.push_back(ThrottleShown {
            at_micros: self.clock.wall_micros(),
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
        self.log().iter().cloned().collect()
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
