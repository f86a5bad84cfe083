//! How many request units were charged, by physical partition: counters that only rise, for whoever shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use foldhash::{HashMap, HashMapExt};

use crate::throughput::{Charges, PartitionRef, RequestUnits};

/// Counters that are kept. When there are more, which only many splits bring about, those of single partitions begin anew; their
/// tables' do not.
const COUNTERS_MAX: usize = 65_536;

/// In place of a partition's number: the units of all whose counters were given up.
const FORMER: u64 = u64::MAX;

/// Millionths of a unit.
type Counter = Arc<AtomicU64>;

/// What was charged since the server started.
#[derive(Debug, Default)]
pub(super) struct Spent {
    counters: ArcSwap<HashMap<PartitionRef, Counter>>,
    /// What was charged at all, metadata included.
    total: AtomicU64,
}

impl Spent {
    /// Counts a statement's charges.
    pub(super) fn add(&self, charges: &Charges) {
        self.total.fetch_add(charges.micros(), Ordering::Relaxed);
        let counters = self.counters.load();
        let mut missing = false;
        for charge in charges.partitions() {
            match counters.get(&charge.partition) {
                Some(counter) => drop(counter.fetch_add(charge.micros(), Ordering::Relaxed)),
                None => missing = true,
            }
        }
        if missing {
            let known = HashMap::clone(&counters);
            drop(counters);
            self.add_new(charges, &known);
        }
    }

    /// Makes the counters that `known` has not, and counts on those.
    fn add_new(&self, charges: &Charges, known: &HashMap<PartitionRef, Counter>) {
        let new = || {
            charges
                .partitions()
                .filter(|charge| !known.contains_key(&charge.partition))
        };
        self.counters.rcu(|counters| {
            let mut next = HashMap::clone(counters);
            for charge in new() {
                next.entry(charge.partition).or_default();
            }
            if next.len() > COUNTERS_MAX { folded(&next) } else { next }
        });
        let counters = self.counters.load();
        for charge in new() {
            let counter = counters.get(&charge.partition).or_else(|| {
                counters.get(&PartitionRef {
                    partition: FORMER,
                    ..charge.partition
                })
            });
            if let Some(counter) = counter {
                counter.fetch_add(charge.micros(), Ordering::Relaxed);
            }
        }
    }

    /// All that was charged, metadata included.
    pub(super) fn total(&self) -> RequestUnits {
        units(self.total.load(Ordering::Relaxed))
    }

    /// What was charged to a physical partition.
    pub(super) fn of(&self, partition: PartitionRef) -> RequestUnits {
        let counters = self.counters.load();
        units(
            counters
                .get(&partition)
                .map_or(0, |counter| counter.load(Ordering::Relaxed)),
        )
    }

    /// What was charged to each table, partitions that are no more included.
    pub(super) fn by_table(&self) -> HashMap<u32, RequestUnits> {
        let mut micros: HashMap<u32, u64> = HashMap::new();
        for (partition, counter) in self.counters.load().iter() {
            *micros.entry(partition.table).or_default() += counter.load(Ordering::Relaxed);
        }
        micros
            .into_iter()
            .map(|(table, micros)| (table, units(micros)))
            .collect()
    }

    /// Forgets the tables of which `is_there` says no.
    pub(super) fn keep(&self, is_there: impl Fn(u32) -> bool) {
        self.counters.rcu(|counters| {
            let kept = counters.iter().filter(|(partition, _)| is_there(partition.table));
            kept.map(|(partition, counter)| (*partition, Arc::clone(counter)))
                .collect::<HashMap<_, _>>()
        });
    }
}

/// One counter for each table.
fn folded(counters: &HashMap<PartitionRef, Counter>) -> HashMap<PartitionRef, Counter> {
    let mut folded: HashMap<PartitionRef, Counter> = HashMap::new();
    for (partition, counter) in counters {
        let former = PartitionRef {
            partition: FORMER,
            ..*partition
        };
        let sum = folded.entry(former).or_default();
        sum.fetch_add(counter.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    folded
}

fn units(micros: u64) -> RequestUnits {
    RequestUnits::hundredths(micros / 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::Coefficients;

    fn visits(table: u32, partitions: impl IntoIterator<Item = u64>) -> Charges {
        let mut charges = Charges::new(Coefficients::default(), 1);
        for partition in partitions {
            charges.enter(PartitionRef { table, partition }, None);
            charges.visit();
        }
        charges
    }

    #[test]
    fn units_are_counted_by_partition_and_table() {
        let spent = Spent::default();
        spent.add(&visits(1, [0, 1, 0]));
        spent.add(&visits(1, [1, 2]));
        spent.add(&visits(2, [0]));
        let of = |table, partition| spent.of(PartitionRef { table, partition }).in_hundredths();
        assert_eq!(
            (of(1, 0), of(1, 1), of(1, 2), of(2, 0), of(3, 0)),
            (460, 460, 230, 230, 0)
        );
        assert_eq!(spent.by_table()[&1].in_hundredths(), 5 * 230);
        assert_eq!(spent.total().in_hundredths(), 6 * 230);
        spent.keep(|table| table == 2);
        assert_eq!((of(1, 0), of(2, 0)), (0, 230));
    }

    #[test]
    fn too_many_counters_become_one_for_each_table() {
        let spent = Spent::default();
        let partitions = COUNTERS_MAX as u64 + 10;
        spent.add(&visits(1, 0..partitions));
        assert!(spent.counters.load().len() <= COUNTERS_MAX);
        assert_eq!(spent.by_table()[&1].in_hundredths(), partitions * 230);
    }
}
