//! Plans: the parts of statements that do not depend on values, made again when the schema changes.

use super::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use foldhash::HashMap;
use uuid::Uuid;

use super::answer::ResultMetadata;
use super::audited::AuditedStatement;
use super::shape::shape;
use helenus_base::metrics::{StatementKind, Subject};
use helenus_engine::engine::{Origin, Shape, Snapshot};
use helenus_schema::command::{Read, WriteVerb};
use helenus_schema::planner::{self, MarkerSpec, Plan, Planned};
use helenus_schema::schema::Table;

/// Maximum cached plans of unprepared texts; texts with literals rarely repeat.
const TEXTS_MAX: usize = 512;

/// Longer texts are not cached.
const TEXT_BYTES_MAX: usize = 2048;

/// A statement planned in one schema.
#[derive(Debug)]
pub(crate) struct PlannedAt {
    /// Its description in logs; its text is the whole CQL.
    pub(crate) origin: Arc<Origin>,
    /// The catalog's generation that it was planned in.
    pub(crate) generation: u64,
    /// The plan.
    pub(crate) planned: Planned,
    /// The columns of its rows.
    pub(crate) result: Option<Arc<ResultMetadata>>,
    /// The version of the schema that it was planned in.
    pub(crate) schema_version: Uuid,
    fully_qualified: bool,
    shape: OnceLock<Shape>,
    masked_shape: OnceLock<Shape>,
    subject: OnceLock<Arc<Subject>>,
    /// Bytes of rows in the last answer.
    content_bytes: AtomicUsize,
}

/// Maximum bytes of rows for which a buffer is allocated in advance; the buffer of a larger answer grows.
const CONTENT_BYTES_AHEAD_MAX: usize = 64 * 1024;

impl PlannedAt {
    /// Parses and plans a text.
    ///
    /// # Errors
    /// The text is no CQL, or is invalid in this schema.
    pub(crate) fn new(text: Arc<str>, keyspace: Option<&str>, snapshot: &Snapshot) -> Result<Self, Error> {
        let statement = grammar::parse(&text)?;
        let statement = snapshot.rules.translate(statement, &text)?;
        let planned = planner::plan(&statement, keyspace, &snapshot.schema)?;
        planned.check_parts()?;
        snapshot.rules.check(&statement, &planned)?;
        let result = planned.result.as_ref().map(|result| {
            Arc::new(ResultMetadata::new(
                &result.keyspace,
                &result.table,
                Arc::clone(&result.columns),
            ))
        });
        let origin = Origin::new(kind_of(&planned.plan), &planned.tables, text, shape);
        Ok(Self {
            origin,
            generation: snapshot.generation,
            result,
            schema_version: snapshot.schema.version,
            fully_qualified: is_fully_qualified(&statement),
            planned,
            shape: OnceLock::new(),
            masked_shape: OnceLock::new(),
            subject: OnceLock::new(),
            content_bytes: AtomicUsize::new(128),
        })
    }

    /// The initial capacity for the rows of an answer: as much as the last one took, because growing a buffer step by
    /// step costs more than a little excess.
    pub(crate) fn content_bytes_ahead(&self) -> usize {
        self.content_bytes.load(Ordering::Relaxed)
    }

    /// Records the bytes that an answer's rows took.
    pub(crate) fn record_content_bytes(&self, bytes: usize) {
        let noted = bytes.saturating_add(bytes / 8).clamp(128, CONTENT_BYTES_AHEAD_MAX);
        // Written only if it differs much, so that a statement in wide use stays in every core's cache.
        let before = self.content_bytes.load(Ordering::Relaxed);
        if noted > before || noted < before / 2 {
            self.content_bytes.store(noted, Ordering::Relaxed);
        }
    }

    /// The subject under which it is counted; `make` provides it the first time.
    pub(crate) fn subject(&self, make: impl FnOnce() -> Arc<Subject>) -> &Arc<Subject> {
        self.subject.get_or_init(make)
    }

    /// The parts of a SELECT that do not depend on its values.
    pub(crate) fn shape(&self, select: &Read) -> &Shape {
        self.shape.get_or_init(|| Shape::of(select))
    }

    /// Like [`PlannedAt::shape`], for a client that receives masks.
    pub(crate) fn masked_shape(&self, select: &Read) -> &Shape {
        self.masked_shape.get_or_init(|| Shape::of(select))
    }
}

/// Whether the meaning of the statement is independent of the session's keyspace.
fn is_fully_qualified(statement: &grammar::ast::Statement) -> bool {
    use grammar::ast::{Modification, Statement};
    let modification = |modification: &Modification| match modification {
        Modification::Insert(insert) => insert.table.keyspace.is_some(),
        Modification::Update(update) => update.table.keyspace.is_some(),
        Modification::Delete(delete) => delete.table.keyspace.is_some(),
    };
    match statement {
        Statement::Select(select) => select.table.keyspace.is_some(),
        Statement::Insert(insert) => insert.table.keyspace.is_some(),
        Statement::Update(update) => update.table.keyspace.is_some(),
        Statement::Delete(delete) => delete.table.keyspace.is_some(),
        Statement::Batch(batch) => batch.modifications.iter().all(modification),
        Statement::Truncate(name) => name.keyspace.is_some(),
        Statement::Explain(statement) => is_fully_qualified(statement),
        _ => false,
    }
}

fn tables_of(plan: &Plan) -> Vec<Arc<Table>> {
    match plan {
        Plan::Select(plan) => vec![Arc::clone(&plan.table)],
        Plan::Modify(plan) => vec![Arc::clone(&plan.table)],
        Plan::Batch(plan) => plan
            .modifications
            .iter()
            .map(|member| Arc::clone(&member.table))
            .collect(),
        Plan::Truncate(table) => vec![Arc::clone(table)],
        Plan::Explain(plan) => tables_of(plan),
        Plan::Use(_) | Plan::Ddl(_) | Plan::Describe(_) | Plan::Auth(_) => Vec::new(),
    }
}

/// A prepared statement: its text and the plan for the current schema.
#[derive(Debug)]
pub struct Statement {
    text: Arc<str>,
    keyspace: Option<Arc<str>>,
    current: ArcSwap<PlannedAt>,
}

impl Statement {
    pub(crate) fn new(keyspace: Option<Arc<str>>, planned: PlannedAt) -> Self {
        Self {
            text: Arc::clone(&planned.origin.text),
            keyspace,
            current: ArcSwap::from_pointee(planned),
        }
    }

    /// The plan for this snapshot; made again if the catalog has changed since.
    ///
    /// # Errors
    /// The statement is no longer valid.
    pub(crate) fn at(&self, snapshot: &Snapshot) -> Result<Arc<PlannedAt>, Error> {
        let planned = self.current.load_full();
        if planned.generation == snapshot.generation {
            return Ok(planned);
        }
        let planned = PlannedAt::new(Arc::clone(&self.text), self.keyspace.as_deref(), snapshot)?;
        let planned = Arc::new(planned);
        self.current.store(Arc::clone(&planned));
        Ok(planned)
    }

    /// Its text, and the keyspace of its unqualified names.
    pub(super) fn audited(&self) -> AuditedStatement<'_> {
        AuditedStatement {
            text: &self.text,
            keyspace: self.keyspace.as_deref(),
        }
    }

    /// Its bind markers, in order of writing.
    #[must_use]
    pub fn markers(&self) -> Arc<Vec<MarkerSpec>> {
        Arc::clone(&self.current.load().planned.markers)
    }

    /// For each column of the partition key the marker that binds it; empty unless every column has one.
    #[must_use]
    pub fn partition_key_markers(&self) -> Vec<u16> {
        self.current.load().planned.partition_key_markers.clone()
    }

    /// The columns of its rows. `None` means no rows, or varying columns.
    #[must_use]
    pub fn result(&self) -> Option<Arc<ResultMetadata>> {
        self.current.load().result.clone()
    }

    /// The tables of its plan.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<Table>> {
        tables_of(&self.current.load().planned.plan)
    }

    /// The version of the schema of its plan.
    #[must_use]
    pub fn schema_version(&self) -> Uuid {
        self.current.load().schema_version
    }

    /// Whether every table in it is named with its keyspace.
    #[must_use]
    pub fn is_fully_qualified(&self) -> bool {
        self.current.load().fully_qualified
    }
}

/// The session's keyspace, and the text.
type PlanKey = (Option<Arc<str>>, Arc<str>);

/// Plans of unprepared texts, by keyspace and text. A full cache is emptied, because a cache full of texts that come
/// only once is worthless.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    plans: Mutex<HashMap<PlanKey, Arc<PlannedAt>>>,
}

impl PlanCache {
    /// The plan of a text.
    ///
    /// # Errors
    /// As [`PlannedAt::new`].
    pub(crate) fn plan(
        &self,
        keyspace: Option<&Arc<str>>,
        text: &str,
        snapshot: &Snapshot,
    ) -> Result<Arc<PlannedAt>, Error> {
        let key = (keyspace.cloned(), Arc::<str>::from(text));
        let plans = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if text.len() <= TEXT_BYTES_MAX {
            plans().get(&key).cloned()
        } else {
            None
        };
        if let Some(planned) = kept.filter(|planned| planned.generation == snapshot.generation) {
            return Ok(planned);
        }
        let planned = Arc::new(PlannedAt::new(
            Arc::clone(&key.1),
            keyspace.map(AsRef::as_ref),
            snapshot,
        )?);
        let is_worth_keeping = matches!(planned.planned.plan, Plan::Select(_) | Plan::Modify(_));
        if is_worth_keeping && text.len() <= TEXT_BYTES_MAX {
            let mut plans = plans();
            if plans.len() >= TEXTS_MAX {
                plans.clear();
            }
            plans.insert(key, Arc::clone(&planned));
        }
        Ok(planned)
    }
}

/// The kind of statement of a plan.
fn kind_of(plan: &Plan) -> StatementKind {
    match plan {
        Plan::Select(_) => StatementKind::Select,
        Plan::Modify(plan) if plan.is_conditional() => StatementKind::Conditional,
        Plan::Modify(plan) => match plan.kind {
            WriteVerb::Insert => StatementKind::Insert,
            WriteVerb::Update => StatementKind::Update,
            WriteVerb::Delete => StatementKind::Delete,
        },
        Plan::Batch(_) => StatementKind::Batch,
        Plan::Truncate(_) => StatementKind::Truncate,
        Plan::Use(_) => StatementKind::Use,
        Plan::Ddl(_) => StatementKind::Ddl,
        Plan::Describe(_) | Plan::Explain(_) => StatementKind::Describe,
        Plan::Auth(_) => StatementKind::Auth,
    }
}
