//! Prepared statements, kept by id for all connections.
//!
//! An id is MD5 of the text, with the keyspace before it unless every table in it is qualified: the same on every node
//! and after a restart. So evicting a statement is safe: its client receives UNPREPARED, prepares it again and gets the
//! same id.
//!
//! A statement is planned again when the schema's version differs from its plan's, so a plan is never older than the
//! schema that the request sees. A change of its table that affects statements ([`Table::affects_statements`]) evicts
//! it, as in Cassandra: it must be prepared again. The cache is bounded by number and bytes, and evicts by CLOCK.
//!
//! The columns of an evicted statement are kept. A client below version 5 may still use the old columns while another
//! client prepares the statement again; the first client is then sent the new ones. Differs: Cassandra sends such
//! clients rows without columns, which they misread.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use foldhash::quality::RandomState;
use md5::{Digest, Md5};
use uuid::Uuid;

use helenus_base::metrics;
use helenus_cql::cql::{ResultMetadata, Statement};
use helenus_schema::schema::Table;
use helenus_types::wire::response::{Metadata, Prepared};

/// MD5 of keyspace and text.
pub(super) type Id = [u8; 16];

/// The id of a text. `None` as keyspace means that all its names are qualified.
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
    /// The content of its PREPARED response.
    pub(super) prepared: Prepared,
    /// The columns of its rows, according to the plan.
    pub(super) result: Option<Arc<ResultMetadata>>,
    /// Whether its columns differ from earlier ones under this id: clients below version 5 may still use the old ones.
    pub(super) result_changed: bool,
    /// The tables that it was planned with.
    tables: Vec<Arc<Table>>,
    used: AtomicBool,
}

impl Entry {
    pub(super) fn new(
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
            tables: statement.tables(),
            statement,
            schema_version,
            prepared,
            result,
            result_changed: false,
            used: AtomicBool::new(false),
        }
    }

    /// Whether a client must prepare it again before executing `after`, which is the same text in a later schema.
    pub(super) fn is_outdated(&self, after: &Self) -> bool {
        let affects = |(was, is): (&Arc<Table>, &Arc<Table>)| !Arc::ptr_eq(was, is) && was.affects_statements(is);
        self.tables.len() != after.tables.len() || self.tables.iter().zip(&after.tables).any(affects)
    }

    /// About how many bytes it takes: a plan is about as large as its text and metadata.
    fn memory_bytes(&self) -> usize {
        let result = self.prepared.result.as_deref().map_or(0, Metadata::memory_bytes);
        1024 + 8 * self.text.len() + self.prepared.markers.memory_bytes() + 2 * result
    }
}

/// Evicted statements: for each id the id of their columns, and whether these ever changed.
#[derive(Debug, Default)]
struct Forgotten {
    columns: HashMap<Id, ([u8; 16], bool)>,
    /// Every id once, the oldest first.
    order: VecDeque<Id>,
}

impl Forgotten {
    fn remember(&mut self, entry: &Entry, entries_max: usize) {
        let id = entry.prepared.id;
        let known = (entry.prepared.result_metadata_id(), entry.result_changed);
        if self.columns.insert(id, known).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > entries_max {
            let oldest = self.order.pop_front();
            oldest.and_then(|id| self.columns.remove(&id));
        }
    }
}

/// The prepared statements of a node.
#[derive(Debug)]
pub(super) struct Statements {
    /// Looked up by each EXECUTE, so its hash is a fast one; its seed is random, because clients choose the texts from
    /// which ids are made.
    entries: DashMap<Id, Arc<Entry>, RandomState>,
    /// At most `entries_max`.
    forgotten: Mutex<Forgotten>,
    /// Every id once, in CLOCK order.
    order: Mutex<VecDeque<Id>>,
    bytes: AtomicUsize,
    entries_max: usize,
    bytes_max: usize,
}

impl Statements {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries: DashMap::default(),
            forgotten: Mutex::default(),
            order: Mutex::default(),
            bytes: AtomicUsize::new(0),
            entries_max: entries_max.max(1),
            bytes_max,
        }
    }

    /// The statement of this id.
    pub(super) fn get(&self, id: &Id) -> Option<Arc<Entry>> {
        let entry = Arc::clone(self.entries.get(id)?.value());
        // Written only if it changes, so that a statement in wide use stays in every core's cache.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry)
    }

    /// Inserts a statement, in place of the one with the same id; evicts others if necessary.
    pub(super) fn insert(&self, mut entry: Entry) -> Arc<Entry> {
        let id = entry.prepared.id;
        let before = self.entries.get(&id).map(|before| {
            let columns = before.prepared.result_metadata_id();
            (columns, before.result_changed)
        });
        let before = before.or_else(|| self.forgotten().columns.get(&id).copied());
        if let Some((columns, changed)) = before {
            // Once changed, always changed: some client may still use any of the earlier columns.
            entry.result_changed = changed || columns != entry.prepared.result_metadata_id();
        }
        let entry = Arc::new(entry);
        self.bytes.fetch_add(entry.memory_bytes(), Ordering::Relaxed);
        match self.entries.insert(id, Arc::clone(&entry)) {
            Some(before) => {
                self.bytes.fetch_sub(before.memory_bytes(), Ordering::Relaxed);
            }
            None => self.evict(id),
        }
        entry
    }

    fn forgotten(&self) -> MutexGuard<'_, Forgotten> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evicts a statement; its columns are remembered.
    pub(super) fn remove(&self, id: &Id) {
        if let Some((_, before)) = self.entries.remove(id) {
            if before.prepared.result.is_some() {
                self.forgotten().remember(&before, self.entries_max);
            }
            self.bytes.fetch_sub(before.memory_bytes(), Ordering::Relaxed);
        }
    }

    /// All statements, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// The number of statements.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn evict(&self, new: Id) {
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
