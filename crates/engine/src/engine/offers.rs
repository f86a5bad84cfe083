//! Which tables have budgets: from options of tables and keyspaces to the accounts of physical partitions.
//!
//! A table with throughput of its own uses that; one without shares its keyspace's. If neither has any, it has the
//! server's default, which is none in the `cassandra` profile. Accounts belong to the partition maps
//! ([`TablePartitions::budget`]), so that a table without throughput costs nothing. They change with the maps: under
//! the catalog's lock, once the change is durable.

use super::refusal::ThroughputRefusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::error::Error;
use crate::partition::TablePartitions;
use crate::throughput::{Account, Footing, Grant, RequestUnits, Slice, TableBudget};
use helenus_base::clock::Clock;
use helenus_schema::schema::{Keyspace, Schema, Table, Throughput};

/// How throughput is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputRules {
    /// Request units a second of a table that has no throughput and shares none. `None` means no limit.
    pub default_per_second: Option<u32>,
    /// Whether physical partitions of less than 3,000 RU/s bank unused units for bursts.
    pub bursts: bool,
    /// Whether statements wait in the server instead of being refused.
    pub server_side_retry: bool,
    /// Most statements that wait at once; those beyond are refused.
    pub waiting_max: usize,
    /// Request units a second for DDL and reads of the schema. `None` means no limit.
    pub metadata_per_second: Option<u32>,
    /// Whether statements are charged at all. If not, no table may have throughput.
    pub is_metered: bool,
    /// Delay between a change of throughput and the split into the physical partitions that it requires. Zero splits
    /// with the change.
    pub split_delay: Duration,
}

impl ThroughputRules {
    /// Cosmos's: 400 RU/s for a table without an option, 240 RU/s for metadata. Bursts and server-side retry are
    /// opt-in, as there.
    #[must_use]
    pub const fn cosmos() -> Self {
        Self {
            default_per_second: Some(400),
            metadata_per_second: Some(240),
            ..Self::unlimited()
        }
    }

    /// Only tables and keyspaces with throughput are limited.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self {
            default_per_second: None,
            bursts: false,
            server_side_retry: false,
            waiting_max: 10_000,
            metadata_per_second: None,
            is_metered: true,
            split_delay: Duration::ZERO,
        }
    }
}

impl Default for ThroughputRules {
    fn default() -> Self {
        Self::unlimited()
    }
}

/// The throughput of keyspaces and tables, and the budgets that enforce it.
#[derive(Debug)]
pub(crate) struct Offers {
    rules: ThroughputRules,
    clock: Clock,
    /// The accounts of keyspaces that share their throughput, by name.
    pools: Mutex<HashMap<String, Arc<Account>>>,
}

/// The throughput of a table or keyspace, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// By its own option, or by the server's default.
    Own(Throughput),
    /// Together with the other tables of its keyspace.
    Shared(Throughput),
}

fn units(throughput: Throughput) -> RequestUnits {
    RequestUnits::whole(u64::from(throughput.most()))
}

impl Offers {
    pub(crate) fn new(rules: ThroughputRules, clock: Clock) -> Self {
        Self {
            rules,
            clock,
            pools: Mutex::default(),
        }
    }

    /// See [`ThroughputRules::split_delay`].
    pub(crate) const fn split_delay(&self) -> Duration {
        self.rules.split_delay
    }

    /// The throughput of a table. `None` means no limit.
    pub(crate) fn offer(&self, keyspace: &Keyspace, table: &Table) -> Option<Offer> {
        let own = table.options.throughput.map(Offer::Own);
        let shared = keyspace.throughput.map(Offer::Shared);
        let default = self.rules.default_per_second.map(Throughput::Manual).map(Offer::Own);
        own.or(shared).or(default)
    }

    /// The account of a keyspace whose tables share its throughput.
    pub(crate) fn pool(&self, keyspace: &str) -> Option<Arc<Account>> {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.get(keyspace).cloned()
    }

    /// Makes the pools match this schema.
    fn fit_pools(&self, schema: &Schema) {
        let now = self.clock.monotonic();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let throughput = |name: &str| schema.keyspaces.get(name).and_then(|keyspace| keyspace.throughput);
        pools.retain(|name, _| throughput(name).is_some());
        for keyspace in schema.keyspaces.values() {
            let Some(throughput) = keyspace.throughput else {
                continue;
            };
            let per_second = units(throughput);
            match pools.get(&keyspace.name) {
                Some(pool) if pool.figures(now).per_second == per_second => {}
                Some(pool) => pool.set_per_second(per_second, self.rules.bursts, now),
                None => {
                    let pool = Account::new(per_second, self.rules.bursts, None, now);
                    pools.insert(keyspace.name.clone(), Arc::new(pool));
                }
            }
        }
    }

    fn grant(&self, keyspace: &Keyspace, table: &Table) -> Option<Grant> {
        let grant = |throughput, pool| Grant {
            per_second: units(throughput),
            bursts: self.rules.bursts,
            pool,
        };
        match self.offer(keyspace, table)? {
            Offer::Own(throughput) => Some(grant(throughput, None)),
            Offer::Shared(throughput) => Some(grant(throughput, Some(self.pool(&keyspace.name)?))),
        }
    }

    /// The partition map with the accounts that its table needs. `None` means that it already has them.
    pub(crate) fn fit(&self, keyspace: &Keyspace, table: &Table, map: &TablePartitions) -> Option<TablePartitions> {
        let grant = self.grant(keyspace, table);
        let now = self.clock.monotonic();
        let budget = match (map.budget(), grant) {
            (None, None) => return None,
            (Some(_), None) => None,
            (None, Some(grant)) => Some(TableBudget::new(grant, &slices(map), now)),
            (Some(budget), Some(grant)) => {
                let slices = slices(map);
                if budget.serves(&grant, &slices) {
                    return None;
                }
                Some(budget.next(grant, &slices, now))
            }
        };
        let mut next = map.clone();
        next.set_budget(budget.map(Arc::new));
        Some(next)
    }

    /// Gives the partition maps of tables that differ from `before` their accounts. If a keyspace's throughput differs,
    /// this includes all its tables.
    pub(crate) fn fit_all<'a>(
        &self,
        before: Option<&'a Schema>,
        schema: &'a Schema,
        list_of: impl Fn(&Table) -> Option<Arc<TablePartitions>>,
    ) -> Vec<(&'a Table, Arc<TablePartitions>)> {
        self.fit_pools(schema);
        let mut fitted = Vec::new();
        for keyspace in schema.keyspaces.values() {
            let was = before.and_then(|before| before.keyspaces.get(&keyspace.name));
            if was.is_some_and(|was| Arc::ptr_eq(was, keyspace))
                || helenus_schema::schema::system::is_name(&keyspace.name)
            {
                continue;
            }
            // A table's throughput is its own option or its keyspace's.
            let tables: Vec<_> = match was {
                Some(was) if was.throughput == keyspace.throughput => keyspace.tables_since(was).collect(),
                _ => keyspace.all_tables().collect(),
            };
            for table in tables {
                let Some(map) = list_of(table) else { continue };
                if let Some(next) = self.fit(keyspace, table, &map) {
                    fitted.push((table.as_ref(), Arc::new(next)));
                }
            }
        }
        fitted
    }

    /// Refuses throughput on a server without metering. Throughput in `before` was checked earlier.
    ///
    /// # Errors
    /// Names the tables and keyspaces with throughput.
    pub(crate) fn check_metered(&self, before: Option<&Schema>, schema: &Schema) -> Result<(), Error> {
        if self.rules.is_metered {
            return Ok(());
        }
        for keyspace in schema.keyspaces.values() {
            let has_own = |table: &&Arc<Table>| table.options.throughput.is_some();
            let table = match before.and_then(|before| before.keyspaces.get(&keyspace.name)) {
                Some(was) if Arc::ptr_eq(was, keyspace) => continue,
                Some(was) => keyspace.tables_since(was).find(has_own),
                None => keyspace.all_tables().find(has_own),
            };
            if table.is_some() || keyspace.throughput.is_some() {
                let refusal = ThroughputRefusal::NotMetered {
                    keyspace: keyspace.name.clone(),
                    table: table.map(|table| table.name.clone()),
                };
                return Err(refusal.into());
            }
        }
        Ok(())
    }

    /// Refuses throughput below the minimum that a table's or keyspace's past and content require. `bytes` returns the
    /// size of a table.
    ///
    /// # Errors
    /// Cosmos's text.
    pub(crate) fn check_floors(before: &Schema, next: &Schema, bytes: impl Fn(&Table) -> u64) -> Result<(), Error> {
        for (name, keyspace) in &next.keyspaces {
            let Some(was) = before.keyspaces.get(name) else {
                continue;
            };
            if Arc::ptr_eq(was, keyspace) {
                continue;
            }
            if let (Some(throughput), true) = (keyspace.throughput, keyspace.throughput != was.throughput) {
                let shared = || keyspace.all_tables().filter(|table| table.options.throughput.is_none());
                check_floor(
                    throughput,
                    Footing {
                        highest: was.throughput_highest,
                        bytes: shared().map(|table| bytes(table)).sum(),
                        shared_tables: shared().count() as u64,
                    },
                )?;
            }
            for table in keyspace.tables_since(was) {
                let Some(old) = was.table_or_view(&table.name) else {
                    continue;
                };
                let throughput = table.options.throughput;
                if let (Some(throughput), true) = (throughput, throughput != old.options.throughput) {
                    if old.options.throughput.is_none() && was.throughput.is_some() {
                        return Err(ThroughputRefusal::Shared.into());
                    }
                    check_floor(
                        throughput,
                        Footing {
                            highest: old.options.throughput_highest,
                            bytes: bytes(table),
                            shared_tables: 0,
                        },
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Warnings about tables whose lowered throughput is divided among physical partitions that stay.
pub(crate) fn divided(before: &Schema, next: &Schema, partitions: impl Fn(&Table) -> usize) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, keyspace) in &next.keyspaces {
        let Some(was) = before.keyspaces.get(name) else {
            continue;
        };
        for table in keyspace.tables_since(was) {
            let then = was.table_or_view(&table.name).and_then(|old| old.options.throughput);
            let (Some(now), Some(then)) = (table.options.throughput, then) else {
                continue;
            };
            let count = u32::try_from(partitions(table)).unwrap_or(u32::MAX);
            if now.most() < then.most() && count > 1 {
                warnings.push(format!(
                    "{name}.{} keeps its {count} physical partitions: each has {} of its {} request units a second, and a partition key \
                     gets no more than that",
                    table.name,
                    now.most() / count,
                    now.most()
                ));
            }
        }
    }
    warnings
}

fn check_floor(throughput: Throughput, footing: Footing) -> Result<(), Error> {
    let (asked, least, step) = match throughput {
        Throughput::Manual(units) => (units, footing.least_manual(), 100),
        Throughput::Autoscale(units) => (units, footing.least_autoscale(), 1_000),
    };
    if asked < least {
        let refusal = ThroughputRefusal::Below {
            footing,
            asked,
            least,
            step,
        };
        return Err(refusal.into());
    }
    Ok(())
}

fn slices(map: &TablePartitions) -> Vec<Slice> {
    let slice = |partition: &crate::partition::Placed| Slice {
        id: partition.id.0,
        lower: partition.lower(),
        upper: partition.upper(),
    };
    map.all().iter().map(slice).collect()
}
