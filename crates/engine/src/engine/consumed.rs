//! Consumed request units by physical partition: monotonic counters, for the views that show them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};
use imbl::shared_ptr::DefaultSharedPtr;

use crate::throughput::{PartitionRef, RequestUnits};

/// Most counters. Beyond it, which takes many splits, the counters of single partitions restart from 0; those of their
/// tables do not.
const COUNTERS_MAX: usize = 65_536;

/// Instead of a partition's number: the units of all partitions whose counters were removed.
const FORMER: u64 = u64::MAX;

/// Millionths of a unit.
type Counter = Arc<AtomicU64>;

/// A copy shares all but the counters that are added to it, so a new partition costs the same beside many others.
type Counters = imbl::GenericHashMap<PartitionRef, Counter, RandomState, DefaultSharedPtr>;

/// Units charged since the server started.
#[derive(Debug, Default)]
pub(super) struct ConsumedUnits {
    counters: ArcSwap<Counters>,
    /// All units, metadata included.
    total: AtomicU64,
}

impl ConsumedUnits {
    /// Adds charges: `total` in all, and the parts of it by physical partition, in millionths of a unit.
    pub(super) fn add(&self, total: u64, charges: impl Iterator<Item = (PartitionRef, u64)> + Clone) {
        self.total.fetch_add(total, Ordering::Relaxed);
        let counters = self.counters.load();
        let mut missing = false;
        for (partition, micros) in charges.clone() {
            match counters.get(&partition) {
                Some(counter) => drop(counter.fetch_add(micros, Ordering::Relaxed)),
                None => missing = true,
            }
        }
        if missing {
            let known = Counters::clone(&counters);
            drop(counters);
            self.add_new(charges, &known);
        }
    }

    /// Adds the counters that `known` lacks, and counts on those.
    fn add_new(&self, charges: impl Iterator<Item = (PartitionRef, u64)> + Clone, known: &Counters) {
        let new = charges.filter(|(partition, _)| !known.contains_key(partition));
        self.counters.rcu(|counters| {
            let mut next = Counters::clone(counters);
            for (partition, _) in new.clone() {
                next.entry(partition).or_default();
            }
            if next.len() > COUNTERS_MAX { folded(&next) } else { next }
        });
        let counters = self.counters.load();
        for (partition, micros) in new {
            let former = PartitionRef {
                partition: FORMER,
                ..partition
            };
            if let Some(counter) = counters.get(&partition).or_else(|| counters.get(&former)) {
                counter.fetch_add(micros, Ordering::Relaxed);
            }
        }
    }

    /// All units charged, metadata included.
    pub(super) fn total(&self) -> RequestUnits {
        units(self.total.load(Ordering::Relaxed))
    }

    /// The units charged to a physical partition.
    pub(super) fn of(&self, partition: PartitionRef) -> RequestUnits {
        let counters = self.counters.load();
        units(
            counters
                .get(&partition)
                .map_or(0, |counter| counter.load(Ordering::Relaxed)),
        )
    }

    /// The units charged to each table, including partitions that no longer exist.
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

    /// Removes the tables for which `is_there` returns false.
    pub(super) fn keep(&self, is_there: impl Fn(u32) -> bool) {
        self.counters.rcu(|counters| {
            let kept = counters.iter().filter(|(partition, _)| is_there(partition.table));
            kept.map(|(partition, counter)| (*partition, Arc::clone(counter)))
                .collect::<Counters>()
        });
    }
}

/// One counter for each table.
fn folded(counters: &Counters) -> Counters {
    let mut folded: Counters = Counters::default();
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

    /// A visit of each, 2.3 units.
    fn visit(spent: &ConsumedUnits, table: u32, partitions: impl IntoIterator<Item = u64>) {
        let charges: Vec<_> = partitions
            .into_iter()
            .map(|partition| (PartitionRef { table, partition }, 2_300_000))
            .collect();
        spent.add(charges.len() as u64 * 2_300_000, charges.iter().copied());
    }

    #[test]
    fn units_are_counted_by_partition_and_table() {
        let spent = ConsumedUnits::default();
        visit(&spent, 1, [0, 1, 0]);
        visit(&spent, 1, [1, 2]);
        visit(&spent, 2, [0]);
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
        let spent = ConsumedUnits::default();
        let partitions = COUNTERS_MAX as u64 + 10;
        visit(&spent, 1, 0..partitions);
        assert!(spent.counters.load().len() <= COUNTERS_MAX);
        assert_eq!(spent.by_table()[&1].in_hundredths(), partitions * 230);
    }
}
