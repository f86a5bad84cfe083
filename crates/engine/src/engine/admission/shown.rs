//! Budgets as `system_cosmos`, the admin port and `status` show them.

use std::time::Duration;

use crate::engine::offers::{Offer, Offers};
use crate::engine::shown::{AccountShown, ThroughputShown};
use crate::engine::snapshot::Snapshot;
use crate::partition::TablePartitions;
use crate::throughput::{Account, Footing, autoscale_current};
use helenus_schema::schema::{Table, Throughput, system};

/// The throughput of tables and keyspaces, by keyspace and table; a keyspace that shares its throughput has an entry
/// without a table.
pub(in crate::engine) fn throughput(snapshot: &Snapshot, offers: &Offers, now: Duration) -> Vec<ThroughputShown> {
    let bytes = |table: &Table| {
        let map = snapshot.partitions_of(table.storage_id);
        map.map_or(0, |map| map.bytes(table.storage_id).bytes)
    };
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

/// The budget of a physical partition, for views; `None` means no limit.
pub(in crate::engine) fn budget_of(partitions: &TablePartitions, id: u64, now: Duration) -> Option<AccountShown> {
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
