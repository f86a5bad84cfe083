//! Physical partitions that a change of throughput asks for and that are made later, where the setting `split-delay-seconds` says so.
//!
//! In Azure Cosmos DB throughput beyond what a table's physical partitions serve is paid for at once and served once they have been
//! split, which takes hours; meanwhile a second change is refused. Here the split itself takes no time, so that it is the delay that is
//! waited for. Without one (the default) partitions are there when ALTER is answered, and nothing is ever refused for this.
//!
//! What is waited for is kept in memory: after a restart the tables that still lack partitions begin to wait again.
//!
//! Sources: Azure Cosmos DB's documentation (scaling-provisioned-throughput-best-practices; DocumentClient.ReplaceOfferAsync, of 423;
//! monitor-reference, by which CQL clients are told 423 as 5376, a failed write).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::error::Error;
use super::failure::FailureCause;
use crate::consistency::WriteKind;
use crate::partition::Consistency;
use crate::schema::{Keyspace, Schema, Table, Throughput};

/// The tables that wait for their partitions.
#[derive(Debug)]
pub(super) struct SizeChange {
    delay: Duration,
    /// When each gets them, monotonic, by the table's id: that of its rows changes with TRUNCATE.
    due: Mutex<HashMap<Uuid, Duration>>,
}

/// How many physical partitions a table must have at least to serve its throughput or its keyspace's.
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

    /// From `now` on a table waits.
    pub(super) fn begin(&self, table: Uuid, now: Duration) {
        self.due().entry(table).or_insert(now.saturating_add(self.delay));
    }

    /// Whether a table waits.
    fn is_going_on(&self, table: &Table) -> bool {
        self.due().contains_key(&table.id)
    }

    /// The tables whose time has come; they wait no more.
    pub(super) fn take_due(&self, now: Duration) -> Vec<Uuid> {
        let mut due = self.due();
        let ids: Vec<Uuid> = due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in &ids {
            due.remove(id);
        }
        ids
    }

    /// Refuses another throughput for whom is waiting for the partitions of the one before.
    ///
    /// # Errors
    /// [`Error::WriteFailure`], as which Cosmos tells HTTP's 423.
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
