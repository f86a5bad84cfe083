//! Targets of load: how many entities a second a partition and an account are served.
//!
//! Each entity takes its part of a second of what serves it. A request is taken while that is not more than a burst ahead of the clock,
//! so that an idle partition serves more for a moment. A read is counted when it is done, since it is not known before how many entities it
//! finds: then the next one waits for it.
//!
//! Source: Designing a scalable partitioning strategy (scalability targets); the figures of 2011 are of its first version.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::fault::Fault;
use helenus_schema::schema::StorageId;

/// How far what is taken may be ahead of the clock.
const BURST: Duration = Duration::from_secs(2);

/// Partitions that are counted at once. Beyond it those at rest are forgotten, and if there are none, all.
const PARTITIONS_MAX: usize = 65_536;

/// Accounts that are counted at once.
const ACCOUNTS_MAX: usize = 4_096;

/// Entities a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Of one partition.
    pub partition_per_second: u32,
    /// Of one account.
    pub account_per_second: u32,
}

impl Targets {
    /// Today's.
    pub const TODAY: Self = Self {
        partition_per_second: 2_000,
        account_per_second: 20_000,
    };

    /// Those of 2011.
    pub const OF_2011: Self = Self {
        partition_per_second: 500,
        account_per_second: 5_000,
    };

    /// The targets of a profile's name, `off`, `today` or `2011`: `Some(None)` means none. `None` means that there is no such profile.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Option<Self>> {
        match name {
            "off" => Some(None),
            "today" => Some(Some(Self::TODAY)),
            "2011" => Some(Some(Self::OF_2011)),
            _ => None,
        }
    }
}

/// Until when each partition and account is busy with what it took, by the monotonic clock.
#[derive(Debug)]
pub(super) struct Rate {
    targets: Targets,
    hasher: foldhash::fast::RandomState,
    busy: Mutex<Busy>,
}

#[derive(Debug, Default)]
struct Busy {
    /// By the hash of table and partition key: two of one hash share what they are served.
    partitions: HashMap<u64, Duration>,
    accounts: HashMap<String, Duration>,
}

impl Rate {
    pub(super) fn new(targets: Targets) -> Self {
        Self {
            targets,
            hasher: foldhash::fast::RandomState::default(),
            busy: Mutex::default(),
        }
    }

    /// Takes entities of a partition, if it and the account are served now.
    ///
    /// # Errors
    /// [`Fault::ServerBusy`], [`Fault::AccountBusy`].
    pub(super) fn take(
        &self,
        now: Duration,
        account: &str,
        partition: (StorageId, &str),
        entities: usize,
    ) -> Result<(), Fault> {
        let place = self.hasher.hash_one(partition);
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if is_ahead(busy.accounts.get(account), now) {
            return Err(Fault::AccountBusy);
        }
        if is_ahead(busy.partitions.get(&place), now) {
            return Err(Fault::ServerBusy);
        }
        self.count(&mut busy, now, account, place, entities);
        Ok(())
    }

    /// Counts entities of a partition that were read.
    pub(super) fn add(&self, now: Duration, account: &str, partition: (StorageId, &str), entities: usize) {
        let place = self.hasher.hash_one(partition);
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        self.count(&mut busy, now, account, place, entities);
    }

    /// Checks whether an account is served now.
    ///
    /// # Errors
    /// [`Fault::AccountBusy`].
    pub(super) fn check_account(&self, now: Duration, account: &str) -> Result<(), Fault> {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if is_ahead(busy.accounts.get(account), now) {
            return Err(Fault::AccountBusy);
        }
        Ok(())
    }

    fn count(&self, busy: &mut Busy, now: Duration, account: &str, place: u64, entities: usize) {
        let entities = u32::try_from(entities).unwrap_or(u32::MAX);
        let until = |before: Option<&Duration>, per_second: u32| {
            let takes = Duration::from_secs(1).saturating_mul(entities) / per_second.max(1);
            before.copied().unwrap_or_default().max(now) + takes
        };
        if busy.partitions.len() >= PARTITIONS_MAX {
            busy.partitions.retain(|_, until| *until > now);
            if busy.partitions.len() >= PARTITIONS_MAX {
                busy.partitions.clear();
            }
        }
        let of_partition = until(busy.partitions.get(&place), self.targets.partition_per_second);
        busy.partitions.insert(place, of_partition);
        let of_account = until(busy.accounts.get(account), self.targets.account_per_second);
        match busy.accounts.get_mut(account) {
            Some(busy) => *busy = of_account,
            None => {
                if busy.accounts.len() >= ACCOUNTS_MAX {
                    busy.accounts.clear();
                }
                busy.accounts.insert(account.to_owned(), of_account);
            }
        }
    }
}

fn is_ahead(until: Option<&Duration>, now: Duration) -> bool {
    until.is_some_and(|until| *until > now + BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what is served of a load over some seconds, in steps of a millisecond.
    fn served(rate: &Rate, seconds: u64, partitions: u32, per_millisecond: u32) -> u32 {
        let mut served = 0;
        for millisecond in 0..seconds * 1000 {
            let now = Duration::from_millis(millisecond);
            for number in 0..per_millisecond {
                let key = (number % partitions).to_string();
                served += u32::from(rate.take(now, "a", (1, &key), 1).is_ok());
            }
        }
        served
    }

    #[test]
    fn a_partition_is_served_its_target_and_a_burst() {
        for (targets, per_second) in [(Targets::TODAY, 2_000), (Targets::OF_2011, 500)] {
            let found = served(&Rate::new(targets), 10, 1, 10);
            // Ten seconds but for the last step, and two of the burst.
            assert!(
                (per_second * 12 - 20..=per_second * 12 + 20).contains(&found),
                "{found}"
            );
        }
    }

    #[test]
    fn an_account_is_served_its_target_over_all_partitions() {
        let found = served(&Rate::new(Targets::TODAY), 5, 50, 50);
        assert!((139_900..=140_100).contains(&found), "{found}");
        let rate = Rate::new(Targets::TODAY);
        rate.add(Duration::ZERO, "a", (1, "p"), 50_000);
        assert_eq!(rate.take(Duration::ZERO, "a", (1, "q"), 1), Err(Fault::AccountBusy));
        assert_eq!(rate.take(Duration::ZERO, "b", (1, "p"), 1), Err(Fault::ServerBusy));
        assert_eq!(rate.check_account(Duration::ZERO, "b"), Ok(()));
    }
}
