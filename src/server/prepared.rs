//! Prepared statements, kept by id for all connections.
//!
//! An id is MD5 of the text, with the keyspace before it unless every table in it is qualified: the same on every node and
//! after a restart. So forgetting a statement is safe: its client is told UNPREPARED, prepares it again and gets the same id.
//!
//! A statement is planned again when the schema has another version than its plan; so a plan is never older than the schema
//! that the request sees. If that changes its columns, it must be prepared again, as in Cassandra, which forgets it; here it is
//! kept, so that clients who then still have the old columns are told of the new ones. Bounded by number and bytes; what has not been used since the hand last passed is forgotten first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::cql::{ResultMetadata, Statement};
use crate::metrics;
use crate::wire::response::{Metadata, Prepared};

/// MD5 of keyspace and text.
pub(super) type Id = [u8; 16];

/// The id of a text; `keyspace` `None` if its names are all qualified.
pub(super) fn id(keyspace: Option<&str>, text: &str) -> Id {
    let mut digest = Md5::new();
    digest.update(keyspace.unwrap_or_default());
    digest.update(text);
    digest.finalize().into()
}

/// A prepared statement with its plan.
#[derive(Debug)]
pub(super) struct Entry {
    /// CQL.
    pub(super) text: Arc<str>,
    /// The keyspace of its unqualified names.
    pub(super) keyspace: Option<Arc<str>>,
    /// The plan.
    pub(super) statement: Arc<Statement>,
    /// The schema that it was planned in.
    pub(super) schema_version: Uuid,
    /// What PREPARED says.
    pub(super) prepared: Prepared,
    /// The columns of its rows, as the plan has them.
    pub(super) result: Option<Arc<ResultMetadata>>,
    /// Its columns are others than they once were under this id: clients below version 5 may know the old ones.
    pub(super) result_changed: bool,
    used: AtomicBool,
    /// Its columns have changed since a client last prepared it.
    outdated: AtomicBool,
}

impl Entry {
    pub(super) const fn new(
        text: Arc<str>,
        keyspace: Option<Arc<str>>,
        statement: Arc<Statement>,
        schema_version: Uuid,
        prepared: Prepared,
        result: Option<Arc<ResultMetadata>>,
    ) -> Self {
        Self {
            text,
            keyspace,
            statement,
            schema_version,
            prepared,
            result,
            result_changed: false,
            used: AtomicBool::new(false),
            outdated: AtomicBool::new(false),
        }
    }

    /// Whether a client must prepare it again before it executes it.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    /// A client prepares it, and so knows its columns.
    pub(super) fn renew(&self) {
        self.outdated.store(false, Ordering::Relaxed);
    }

    /// Bytes that it takes, roughly: a plan is about as large as what it was made of.
    fn memory_bytes(&self) -> usize {
        let result = self.prepared.result.as_deref().map_or(0, Metadata::memory_bytes);
        1024 + 8 * self.text.len() + self.prepared.markers.memory_bytes() + 2 * result
    }
}

/// All prepared statements of a server.
#[derive(Debug)]
pub(super) struct Statements {
    entries: DashMap<Id, Arc<Entry>>,
    /// Every id once, in the order in which the hand passes.
    order: Mutex<VecDeque<Id>>,
    bytes: AtomicUsize,
    entries_max: usize,
    bytes_max: usize,
}

impl Statements {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries: DashMap::new(),
            order: Mutex::default(),
            bytes: AtomicUsize::new(0),
            entries_max: entries_max.max(1),
            bytes_max,
        }
    }

    /// The statement of this id.
    pub(super) fn get(&self, id: &Id) -> Option<Arc<Entry>> {
        let entry = Arc::clone(self.entries.get(id)?.value());
        // Written only when it changes, so that the statement that everyone uses stays in every core's cache.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry)
    }

    /// Keeps a statement, in place of the one of the same id; makes room if it must.
    pub(super) fn insert(&self, mut entry: Entry) -> Arc<Entry> {
        let id = entry.prepared.id;
        if let Some(before) = self.entries.get(&id) {
            let changed = before.prepared.result_metadata_id() != entry.prepared.result_metadata_id();
            entry.result_changed = before.result_changed || changed;
            entry.outdated = AtomicBool::new(before.is_outdated() || changed);
        }
        let entry = Arc::new(entry);
        self.bytes.fetch_add(entry.memory_bytes(), Ordering::Relaxed);
        match self.entries.insert(id, Arc::clone(&entry)) {
            Some(before) => {
                self.bytes.fetch_sub(before.memory_bytes(), Ordering::Relaxed);
            }
            None => self.make_room(id),
        }
        entry
    }

    /// Forgets a statement that can no longer be planned.
    pub(super) fn remove(&self, id: &Id) {
        if let Some((_, before)) = self.entries.remove(id) {
            self.bytes.fetch_sub(before.memory_bytes(), Ordering::Relaxed);
        }
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that they take, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn make_room(&self, new: Id) {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.push_back(new);
        let mut turns = 2 * order.len();
        while (order.len() > self.entries_max || self.bytes.load(Ordering::Relaxed) > self.bytes_max) && turns > 0 {
            turns -= 1;
            let Some(id) = order.pop_front() else { break };
            if id == new {
                order.push_back(id);
                continue;
            }
            let used = self
                .entries
                .get(&id)
                .map(|entry| entry.used.swap(false, Ordering::Relaxed));
            match used {
                Some(true) => order.push_back(id),
                Some(false) => {
                    metrics::STATEMENTS_EVICTED.increment();
                    self.remove(&id);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::memory;
    use super::*;

    async fn some_statement() -> Arc<Statement> {
        Arc::new(memory().await.prepare(None, "SELECT key FROM system.local").unwrap())
    }

    fn entry(statement: &Arc<Statement>, text: &str) -> Entry {
        let prepared = Prepared {
            id: id(None, text),
            markers: Arc::new(Metadata::new(vec![])),
            partition_key_markers: vec![],
            result: None,
        };
        Entry::new(text.into(), None, Arc::clone(statement), Uuid::nil(), prepared, None)
    }

    #[test]
    fn ids_are_cassandras() {
        let hex = |id: Id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(id(Some("golden"), "SELECT * FROM simple")),
            "83607d8941ccc2315ce19efdb722e3fc"
        );
    }

    #[tokio::test]
    async fn the_unused_are_forgotten_first() {
        let statement = some_statement().await;
        let statements = Statements::new(3, usize::MAX);
        for text in ["a", "b", "c"] {
            statements.insert(entry(&statement, text));
        }
        assert!(statements.get(&id(None, "a")).is_some());
        statements.insert(entry(&statement, "d"));
        assert_eq!(statements.len(), 3);
        assert!(statements.get(&id(None, "b")).is_none());
        assert!(statements.get(&id(None, "a")).is_some());
        for number in 0..100 {
            statements.insert(entry(&statement, &number.to_string()));
        }
        assert_eq!(statements.len(), 3);
    }

    #[tokio::test]
    async fn bytes_are_bounded() {
        let statement = some_statement().await;
        let statements = Statements::new(usize::MAX, 20_000);
        for number in 0..100 {
            statements.insert(entry(&statement, &number.to_string().repeat(100)));
        }
        assert!(statements.len() < 20 && statements.bytes.load(Ordering::Relaxed) <= 20_000);
    }
}
