//! Physical partitions that a change of throughput requires and that are made later, as the setting
//! `split-delay-seconds` says.
//!
//! In Azure Cosmos DB, throughput beyond the capacity of a table's physical partitions is billed at once. It is served
//! after the partitions have been split, which takes hours; meanwhile a second change is refused. Here the split itself
//! takes no time, so only the delay is imitated. Without a delay (the default) the partitions exist when ALTER is
//! answered, and no change is ever refused for this reason.
//!
//! Waiting tables are kept in memory. After a restart the delay starts again for tables that still lack partitions.
//!
//! Sources: Azure Cosmos DB's documentation (scaling-provisioned-throughput-best-practices;
//! DocumentClient.ReplaceOfferAsync, of 423; monitor-reference, by which CQL clients receive 423 as 5376, a failed
//! write).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::error::Error;
use super::failure::FailureCause;
use helenus_schema::schema::{Keyspace, Schema, Table, Throughput};
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

/// The tables that wait for their partitions.
#[derive(Debug)]
pub(super) struct SizeChange {
    delay: Duration,
    /// The monotonic time at which each table gets its partitions. The key is the table's id, because TRUNCATE changes
    /// the number of its rows.
    due: Mutex<HashMap<Uuid, Duration>>,
}

/// The fewest physical partitions that can serve a table's own throughput or its keyspace's.
pub(super) fn needed(keyspace: &Keyspace, table: &Table) -> usize {
    let throughput = table.options.throughput.or(keyspace.throughput);
    throughput.map_or(1, Throughput::partitions_needed)
}

impl SizeChange {
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            delay,
            due: Mutex::default(),
        }
    }

    fn due(&self) -> MutexGuard<'_, HashMap<Uuid, Duration>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether partitions are made with the change itself.
    pub(super) const fn is_at_once(&self) -> bool {
        self.delay.is_zero()
    }

    /// Starts the delay of a table at `now`.
    pub(super) fn begin(&self, table: Uuid, now: Duration) {
        self.due().entry(table).or_insert(now.saturating_add(self.delay));
    }

    /// Whether a table's delay has not passed yet.
    fn is_going_on(&self, table: &Table) -> bool {
        self.due().contains_key(&table.id)
    }

    /// Removes and returns the tables whose delay has passed.
    pub(super) fn take_due(&self, now: Duration) -> Vec<Uuid> {
        let mut due = self.due();
        let ids: Vec<Uuid> = due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in &ids {
            due.remove(id);
        }
        ids
    }

    /// Refuses another change of throughput for a table or keyspace that still waits for the partitions of the last
    /// one.
    ///
    /// # Errors
    /// [`Error::WriteFailure`], as which CQL clients of Cosmos receive HTTP's 423.
    pub(super) fn refuse_second(&self, before: &Schema, next: &Schema) -> Result<(), Error> {
        if self.due().is_empty() {
            return Ok(());
        }
        for (name, keyspace) in &next.keyspaces {
            let Some(was) = before.keyspaces.get(name) else {
                continue;
            };
            let shared = keyspace.throughput != was.throughput;
            for table in keyspace.all_tables() {
                let Some(old) = was.table_or_view(&table.name) else {
                    continue;
                };
                let own = table.options.throughput != old.options.throughput;
                let concerned = own || (shared && table.options.throughput.is_none());
                if concerned && self.is_going_on(old) {
                    return Err(Error::WriteFailure {
                        consistency: Consistency::One,
                        write_kind: WriteKind::Simple,
                        cause: FailureCause::Scaling,
                    });
                }
            }
        }
        Ok(())
    }
}
