//! The accounts of a table's physical partitions, and how they change with the partitions or the throughput.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::account::Account;
use super::units::RequestUnits;
use helenus_base::mutant::{self, Mutant};

/// Request units that one physical partition can serve in a second, whatever is provisioned: 10,000.
pub const PARTITION_PER_SECOND_MAX: RequestUnits = RequestUnits::whole(10_000);

/// A physical partition: its number and its tokens, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number among the table's partitions; never reused.
    pub id: u64,
    /// Lowest token.
    pub lower: i64,
    /// Highest token.
    pub upper: i64,
}

/// The throughput that a table may spend.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Units a second of the whole table, or of the whole keyspace where they are shared.
    pub per_second: RequestUnits,
    /// Whether partitions bank unspent units.
    pub bursts: bool,
    /// The account of the keyspace whose units the table shares; `None` means that the table has its own.
    pub pool: Option<Arc<Account>>,
}

impl Grant {
    /// Whether `other` shares the same pool or none: ALTER of a table cannot change this.
    fn is_like(&self, other: &Self) -> bool {
        match (&self.pool, &other.pool) {
            (None, None) => true,
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            _ => false,
        }
    }

    /// The units of each of so many partitions. Shared units are not divided: the pool bounds their sum.
    fn each(&self, partitions: usize) -> RequestUnits {
        let count = u64::try_from(partitions).unwrap_or(u64::MAX).max(1);
        let share = match &self.pool {
            None => RequestUnits::hundredths(self.per_second.in_hundredths() / count),
            Some(_) => self.per_second,
        };
        share.min(PARTITION_PER_SECOND_MAX)
    }

    /// Whether the table's partitions bank: those of a pool do not, since the pool banks.
    fn banks(&self) -> bool {
        self.bursts && self.pool.is_none()
    }
}

/// The accounts of one table. Immutable: the next partition map, or the next grant, makes the next one.
#[derive(Clone, Debug)]
pub struct TableBudget {
    grant: Grant,
    /// By id.
    accounts: Vec<(Slice, Arc<Account>)>,
}

impl TableBudget {
    /// Full accounts for a table that had none.
    #[must_use]
    pub fn new(grant: Grant, slices: &[Slice], now: Duration) -> Self {
        let each = grant.each(slices.len());
        let account = |slice: &Slice| {
            let account = Account::new(each, grant.banks(), grant.pool.clone(), now);
            (*slice, Arc::new(account))
        };
        let mut accounts: Vec<_> = slices.iter().map(account).collect();
        accounts.sort_unstable_by_key(|(slice, _)| slice.id);
        Self { grant, accounts }
    }

    /// The accounts under another grant or another partition map. A partition that stays keeps its remaining budget;
    /// one that is removed passes it to the partitions that take over its tokens. No partition gains units, and no
    /// overdraft is forgiven. Requests in flight with the old partition map are charged to the new accounts.
    #[must_use]
    pub fn next(&self, grant: Grant, slices: &[Slice], now: Duration) -> Self {
        if !grant.is_like(&self.grant) {
            return Self::new(grant, slices, now);
        }
        let each = match self.accounts.first() {
            Some((_, account)) if mutant::is_on(Mutant::KeepShareAtSplit) => account.figures(now).per_second,
            _ => grant.each(slices.len()),
        };
        let banks = grant.banks();
        let stays: HashMap<u64, ()> = slices.iter().map(|slice| (slice.id, ())).collect();
        let new: Vec<&Slice> = slices.iter().filter(|slice| self.account(slice.id).is_none()).collect();
        let heirs_of = |removed: &Slice| {
            let heirs = new.iter().enumerate();
            let heirs = heirs.filter(|(_, heir)| heir.lower <= removed.upper && removed.lower <= heir.upper);
            heirs.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let removed: Vec<(&Arc<Account>, Vec<usize>)> = self
            .accounts
            .iter()
            .filter(|(slice, _)| !stays.contains_key(&slice.id))
            .map(|(slice, account)| (account, heirs_of(slice)))
            .collect();
        let mut contents = vec![Vec::new(); new.len()];
        for (account, heirs) in &removed {
            if let Some(part) = account.parts(heirs.len(), now) {
                for heir in heirs {
                    if let Some(contents) = contents.get_mut(*heir) {
                        contents.push(part);
                    }
                }
            }
        }
        let made: Vec<(Slice, Arc<Account>)> = new
            .iter()
            .zip(contents)
            .map(|(slice, contents)| {
                let account = Account::succeeding(each, banks, grant.pool.clone(), contents, now);
                (**slice, Arc::new(account))
            })
            .collect();
        for (account, heirs) in removed {
            let heirs = heirs.iter().filter_map(|place| made.get(*place));
            account.retire(heirs.map(|(slice, heir)| (slice.id, Arc::clone(heir))).collect());
        }
        let mut accounts: Vec<(Slice, Arc<Account>)> = slices
            .iter()
            .filter_map(|slice| {
                let account = self.account(slice.id)?;
                account.set_per_second(each, banks, now);
                Some((*slice, Arc::clone(account)))
            })
            .chain(made)
            .collect();
        accounts.sort_unstable_by_key(|(slice, _)| slice.id);
        Self { grant, accounts }
    }

    /// Whether these are the accounts of this grant and these partitions.
    #[must_use]
    pub fn serves(&self, grant: &Grant, slices: &[Slice]) -> bool {
        let same = grant.per_second == self.grant.per_second && grant.bursts == self.grant.bursts;
        same && grant.is_like(&self.grant)
            && slices.len() == self.accounts.len()
            && slices.iter().all(|slice| self.account(slice.id).is_some())
    }

    /// The throughput that the table may spend.
    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The throughput of each partition, in units a second.
    #[must_use]
    pub fn per_partition(&self) -> RequestUnits {
        self.grant.each(self.accounts.len())
    }

    /// The account of a partition.
    #[must_use]
    pub fn account(&self, id: u64) -> Option<&Arc<Account>> {
        let place = self.accounts.binary_search_by_key(&id, |(slice, _)| slice.id).ok()?;
        self.accounts.get(place).map(|(_, account)| account)
    }

    /// The account of a partition of this partition map or of a later one: a request that waited for a split, a merge
    /// or a move goes on with the later map.
    #[must_use]
    pub fn account_now_or_later(&self, id: u64) -> Option<Arc<Account>> {
        let accounts = self.accounts.iter();
        let later = || {
            accounts
                .map(|(_, account)| account)
                .find_map(|account| account.successor(id))
        };
        self.account(id).cloned().or_else(later)
    }

    /// All accounts, by id.
    #[must_use]
    pub fn accounts(&self) -> &[(Slice, Arc<Account>)] {
        &self.accounts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::account::admit_all;
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn grant(per_second: u64) -> Grant {
        Grant {
            per_second: RequestUnits::whole(per_second),
            bursts: false,
            pool: None,
        }
    }

    fn slices(cuts: &[(u64, i64)]) -> Vec<Slice> {
        let upper = |place: usize| cuts.get(place + 1).map_or(i64::MAX, |(_, next)| next - 1);
        let slice = |(place, (id, lower)): (usize, &(u64, i64))| Slice {
            id: *id,
            lower: *lower,
            upper: upper(place),
        };
        cuts.iter().enumerate().map(slice).collect()
    }

    fn balance(table: &TableBudget, id: u64) -> i64 {
        table.account(id).unwrap().figures(NOW).balance_hundredths
    }

    #[test]
    fn throughput_is_divided_evenly_and_capped() {
        let table = TableBudget::new(grant(1_000), &slices(&[(0, i64::MIN), (1, 0)]), NOW);
        assert_eq!(table.per_partition(), RequestUnits::whole(500));
        let table = TableBudget::new(grant(40_000), &slices(&[(0, i64::MIN)]), NOW);
        assert_eq!(table.per_partition(), RequestUnits::whole(10_000));
    }

    #[test]
    fn a_split_hands_on_what_there_is() {
        let whole = TableBudget::new(grant(1_000), &slices(&[(0, i64::MIN)]), NOW);
        let parent = Arc::clone(whole.account(0).unwrap());
        parent.charge(RequestUnits::whole(1_600), NOW);
        let halves = whole.next(grant(1_000), &slices(&[(1, i64::MIN), (2, 0)]), NOW);
        assert_eq!((balance(&halves, 1), balance(&halves, 2)), (-30_000, -30_000));
        // A request with the old partition map is refused, and charged all the same.
        let refusal = admit_all(&[Arc::clone(&parent)], NOW).unwrap_err();
        assert_eq!(refusal.retry_after, Duration::from_millis(600));
        parent.charge(RequestUnits::whole(100), NOW);
        assert_eq!((balance(&halves, 1), balance(&halves, 2)), (-35_000, -35_000));
        let again = halves.next(grant(1_000), &slices(&[(3, i64::MIN)]), NOW);
        assert_eq!(balance(&again, 3), -70_000);
        // A request that began before both changes wrote to a partition of after them.
        let later = whole.account_now_or_later(3).unwrap();
        assert!(Arc::ptr_eq(&later, again.account(3).unwrap()));
        assert!(whole.account_now_or_later(9).is_none());
        parent.charge(RequestUnits::whole(1), NOW);
        assert_eq!(balance(&again, 3), -70_100);
    }

    #[test]
    fn a_split_leaves_the_others_what_they_have() {
        let table = TableBudget::new(grant(900), &slices(&[(0, i64::MIN), (1, 0)]), NOW);
        table.account(1).unwrap().charge(RequestUnits::whole(250), NOW);
        let next = table.next(grant(900), &slices(&[(2, i64::MIN), (3, -9), (1, 0)]), NOW);
        // Of 450 and 200; each may hold 300 now.
        assert_eq!([2, 3, 1].map(|id| balance(&next, id)), [22_500, 22_500, 20_000]);
    }

    #[test]
    fn a_shared_pool_bounds_all_its_tables_together() {
        let pool = Arc::new(Account::new(RequestUnits::whole(400), false, None, NOW));
        let shared = Grant {
            pool: Some(Arc::clone(&pool)),
            ..grant(400)
        };
        let one = TableBudget::new(shared.clone(), &slices(&[(0, i64::MIN)]), NOW);
        let other = TableBudget::new(shared, &slices(&[(0, i64::MIN)]), NOW);
        let ask = |table: &TableBudget| admit_all(&[Arc::clone(table.account(0).unwrap())], NOW);
        for held in ask(&one).unwrap() {
            held.charge(RequestUnits::whole(500), NOW);
        }
        assert_eq!(ask(&other).unwrap_err().retry_after, Duration::from_millis(250));
        assert_eq!(pool.figures(NOW).balance_hundredths, -10_000);
        // A refused request reserves nothing.
        assert_eq!(balance(&other, 0), 40_000);
    }

    proptest! {
        /// Splits, merges and ALTERs admit no more than was granted, except for the last overdrafts.
        #[test]
        fn changes_grant_no_units(steps in prop::collection::vec((0_u8..6, any::<i64>(), 1_u64..400), 1..120)) {
            let mut now = NOW;
            let mut list = vec![(0_u64, i64::MIN)];
            let (mut next_id, mut rate) = (1, 400_u64);
            let mut table = TableBudget::new(grant(rate), &slices(&list), now);
            let (mut given, mut spent) = (u128::from(rate) * 100_000_000, 0_u128);
            let mut debt_allowed = 0_u128;
            for (kind, at, cost) in steps {
                match kind {
                    0 => {
                        let place = list.partition_point(|(_, lower)| *lower <= at) - 1;
                        if list[place].1 != at {
                            list.splice(place..=place, [(next_id, list[place].1), (next_id + 1, at)]);
                            next_id += 2;
                        }
                    }
                    1 if list.len() > 1 => {
                        list.splice(0..2, [(next_id, i64::MIN)]);
                        next_id += 1;
                    }
                    2 => rate = cost * 100,
                    3 => {
                        now += Duration::from_millis(cost);
                        given += u128::from(rate * cost) * 100_000;
                    }
                    _ => {
                        let place = list.partition_point(|(_, lower)| *lower <= at) - 1;
                        let account = Arc::clone(table.account(list[place].0).unwrap());
                        if let Ok(held) = admit_all(&[account], now) {
                            for held in held {
                                held.charge(RequestUnits::whole(cost), now);
                                spent += u128::from(cost) * 100_000_000;
                                debt_allowed += u128::from(cost) * 100_000_000;
                            }
                        }
                    }
                }
                table = table.next(grant(rate), &slices(&list), now);
                let balance: i64 = list.iter().map(|(id, _)| table.account(*id).unwrap().figures(now).balance_hundredths).sum();
                // Granted units that are neither spent nor left were lost to full budgets; the reverse never happens.
                let rounding = 100_000 * 1_000_000;
                prop_assert!(i128::from(balance) * 1_000_000 + i128::try_from(spent).unwrap() <= i128::try_from(given).unwrap() + rounding);
                prop_assert!(spent <= given + debt_allowed);
            }
        }
    }
}
