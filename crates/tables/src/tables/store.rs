//! What requests mean: tables, entities and settings of accounts, by commands of the engine.
//!
//! ```text
//! write    operations ─→ one batch of conditional writes: the engine locks the partition, judges all on one state, commits once
//! get      one lookup
//! query    Plan ─→ steps ─→ reads, until 1,000 entities, 4 MiB, 5 s or another server; the rest is the next page's
//! ```
//! A single write is a batch of one, so both obey one rule. The version of each row is the timestamp of its last write, which the engine
//! dates above whatever is there.
//!
//! Deliberately absent: limits of entities and of group transactions, which are checked before anything is asked here.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use bytes::Bytes;
use helenus_base::metrics::StatementKind;
use helenus_engine::engine::{
    Boundary, Decision, Ended, Engine, Error, Execution, NotChanged, Origin, Paging, RowSink, Terms,
};
use helenus_engine::throughput::RequestUnits;
use helenus_schema::command::{
    Batch, BatchKind, Clustering, ClusteringRange, ColumnChange, Comparison, Condition, FilterTarget, Partitions,
    Predicate, Read, Selection, Value, Write, WriteTarget, WriteVerb,
};
use helenus_schema::schema::entities::EntityLayout;
use helenus_schema::schema::{StorageId, Table};
use helenus_types::token::{KeyBound, KeySpan, Token};
use helenus_types::types::{CqlType, KeyOrder, Native};

use super::edm::compare_utf16;
use super::entity::Entity;
use super::fault::Fault;
use super::index::PropertyIndex;
use super::keyspace::{self, TableChange, TableIntent};
use super::operation::{Asker, Found, Match, Operation, PAGE_ENTITIES_MAX, Page, Place, Query, Refused, Verb, Written};
use super::plan::{Interval, Plan, Step, after};
use super::rate::{Rate, Targets};
use super::reload::Reloads;
use super::row::{self, Entities};

/// Bytes of a page's entities, as Azure counts them, after which it ends: 4 MiB, what an answer of the service has at most.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a query reads. Source: Query timeout and pagination.
const QUERY_TIME_MAX: Duration = Duration::from_secs(5);

/// Rows that are read at once where most may not match.
const SCAN_ROWS: u32 = 500;

/// Tables that are kept prepared; beyond it all are prepared anew.
const PREPARED_MAX: usize = 4096;

/// Settings of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Where a page ends though more of its entities follow; `None` means nowhere.
    pub page_boundary: Option<Boundary>,
    /// How many entities a second are served; `None` means as many as can be.
    pub targets: Option<Targets>,
    /// How long a range is offline that was split, merged or moved; `None` means not at all.
    pub reload: Option<Duration>,
}

/// The tables of all accounts.
#[derive(Debug)]
pub struct Store {
    engine: Arc<Engine>,
    settings: Settings,
    rate: Option<Rate>,
    reloads: Option<Reloads>,
    prepared: RwLock<HashMap<StorageId, Arc<Prepared>, foldhash::fast::RandomState>>,
}

/// A table, and what every request on it needs.
#[derive(Debug)]
struct Prepared {
    table: Arc<Table>,
    layout: EntityLayout,
    selection: Arc<Selection>,
    reads: Arc<Origin>,
    writes: Arc<Origin>,
    index: Option<PropertyIndex>,
    /// The epoch of its ranges when it was first seen: what changed before is served.
    epoch: u64,
}

impl Store {
    /// A store over an engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        Self {
            engine,
            settings,
            rate: settings.targets.map(Rate::new),
            reloads: settings.reload.map(Reloads::new),
            prepared: RwLock::default(),
        }
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    // Tables.

    /// Makes a table.
    ///
    /// # Errors
    /// A table of the name, in any case, is there.
    pub async fn create_table(&self, asker: &Asker<'_>, table: &str) -> Result<(), Fault> {
        self.change(asker, TableChange::Create(table.to_owned())).await
    }

    /// Removes a table with its entities. The name is in any case.
    ///
    /// # Errors
    /// [`Fault::ResourceNotFound`].
    pub async fn delete_table(&self, asker: &Asker<'_>, table: &str) -> Result<(), Fault> {
        self.change(asker, TableChange::Delete(table.to_owned())).await
    }

    /// The name of a table as it was created; `None` means that there is none.
    ///
    /// # Errors
    /// None now.
    pub async fn table(&self, asker: &Asker<'_>, name: &str) -> Result<Option<String>, Fault> {
        let snapshot = self.engine.snapshot();
        let found = keyspace::find(&snapshot.schema, asker.account, name);
        Ok(found.map(|table| table.name.clone()))
    }

    /// Names of tables from one on, at most `top`, and the first that follows.
    ///
    /// # Errors
    /// None now.
    pub async fn tables(
        &self,
        asker: &Asker<'_>,
        from: Option<&str>,
        top: u32,
    ) -> Result<(Vec<String>, Option<String>), Fault> {
        let mut names = keyspace::names(&self.engine.snapshot().schema, asker.account);
        if let Some(from) = from {
            let from = from.to_ascii_lowercase();
            names.retain(|name| name.to_ascii_lowercase() >= from);
        }
        let top = usize::try_from(top).unwrap_or(usize::MAX);
        let next = names.get(top).cloned();
        names.truncate(top);
        Ok((names, next))
    }

    async fn change(&self, asker: &Asker<'_>, change: TableChange) -> Result<(), Fault> {
        let account = asker.account.to_owned();
        let user: Arc<str> = asker.account.into();
        let mut execution = self.engine.begin(terms(asker, &user)).await;
        let changed = execution.change_schema(TableIntent { account, change }).await;
        let changed = changed.map(drop).map_err(|error| match error {
            NotChanged::Refused(fault) => fault,
            NotChanged::Failed(error) => fault_of(&error),
        });
        finish(execution, &changed, 0);
        changed
    }

    // Entities.

    /// Reads an entity.
    ///
    /// # Errors
    /// It is not there, or its table is not.
    pub async fn get(
        &self,
        asker: &Asker<'_>,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Found, Fault> {
        let prepared = self.prepared(asker, table)?;
        self.take(asker, &prepared, partition_key, 1)?;
        let mut read = prepared.read(Partitions::Keys(vec![key_of(partition_key)]));
        read.rows = Clustering::Keys(vec![clustering(row_key)]);
        let user: Arc<str> = asker.account.into();
        let mut execution = self.engine.begin(terms(asker, &user)).await;
        execution.set_origin(Arc::clone(&prepared.reads));
        let page = execution.read_page::<Entities>(&read, None, &Paging::default()).await;
        let found = page.map_err(|error| fault_of(&error)).and_then(|(_, rows)| {
            let bytes = rows.held_bytes();
            let entity = rows.found.into_iter().next();
            entity.map(|entity| (entity, bytes)).ok_or(Fault::ResourceNotFound)
        });
        let bytes = found.as_ref().map_or(0, |(_, bytes)| *bytes);
        let charge = finish(execution, &found, bytes);
        found.map(|(entity, _)| Found { entity, charge })
    }

    /// Reads a page of entities.
    ///
    /// # Errors
    /// The table is not there, or a store fails.
    pub async fn query(&self, asker: &Asker<'_>, table: &str, query: &Query) -> Result<Page, Fault> {
        let prepared = self.prepared(asker, table)?;
        if let Some(rate) = &self.rate {
            rate.check_account(self.engine.clock().monotonic(), asker.account)?;
        }
        let plan = Plan::new(query.filter.as_ref(), query.bounds.as_ref(), query.from.as_ref());
        let user: Arc<str> = asker.account.into();
        let mut execution = self.engine.begin(terms(asker, &user)).await;
        execution.set_origin(Arc::clone(&prepared.reads));
        let kind = plan.kind;
        let mut walk = Walk {
            asker,
            query,
            top: query.top.unwrap_or(PAGE_ENTITIES_MAX).clamp(1, PAGE_ENTITIES_MAX),
            is_exact: plan.is_exact,
            until: self.engine.clock().monotonic() + QUERY_TIME_MAX,
            entities: Vec::new(),
            counted_bytes: 0,
            row_bytes: 0,
        };
        let next = self.walk(&mut execution, &prepared, plan, &mut walk).await;
        let charge = finish(execution, &next, walk.row_bytes);
        self.count(asker, &prepared, &walk.entities);
        Ok(Page {
            next: next?,
            entities: walk.entities,
            plan: kind,
            charge,
        })
    }

    /// Reads steps until one of the limits of a page. Returns the place of the next page.
    async fn walk(
        &self,
        execution: &mut Execution<'_>,
        prepared: &Prepared,
        plan: Plan,
        walk: &mut Walk<'_>,
    ) -> Result<Option<Place>, Fault> {
        let first = plan.steps.first().map(|step| step.first().to_owned());
        let end = self.end_of_server(prepared, first.as_deref());
        for step in plan.steps {
            let is_beyond = end
                .as_deref()
                .is_some_and(|end| compare_utf16(step.first(), end).is_ge());
            if is_beyond || walk.is_full(self.engine.clock().monotonic()) {
                return Ok(Some(step.place()));
            }
            let (step, cut) = cut_at(step, end.as_deref());
            self.take(walk.asker, prepared, step.first(), 0)?;
            if let Some(next) = self.walk_step(execution, prepared, &step, walk).await? {
                return Ok(Some(next));
            }
            if cut.is_some() {
                return Ok(cut);
            }
        }
        Ok(None)
    }

    async fn walk_step(
        &self,
        execution: &mut Execution<'_>,
        prepared: &Prepared,
        step: &Step,
        walk: &mut Walk<'_>,
    ) -> Result<Option<Place>, Fault> {
        let Some(mut read) = prepared.read_of(step) else {
            return Ok(None);
        };
        if let (Some(index), Some(filter)) = (&prepared.index, &walk.query.filter) {
            read.probes.extend(index.probe(filter));
        }
        let mut paging = Paging::default();
        loop {
            let rows = walk.rows_at_once();
            let page = execution.read_page::<Entities>(&read, Some(rows), &paging).await;
            let (page, rows) = page.map_err(|error| fault_of(&error))?;
            walk.row_bytes += rows.held_bytes();
            let last = rows
                .found
                .last()
                .map(|last| (last.partition_key.clone(), last.row_key.clone()));
            for entity in rows.found {
                if let Some(next) = walk.take(entity) {
                    return Ok(Some(next));
                }
            }
            let Some(position) = page.position else {
                return Ok(None);
            };
            if walk.is_full(self.engine.clock().monotonic())
                && let Some((partition_key, row_key)) = last
            {
                return Ok(Some(Place {
                    partition_key,
                    row_key: Some(after(&row_key)),
                }));
            }
            paging.resume = Some(position);
        }
    }

    /// The first partition key behind a query's first that another server serves.
    fn end_of_server(&self, prepared: &Prepared, first: Option<&str>) -> Option<String> {
        let boundary = self.settings.page_boundary?;
        let end = self
            .engine
            .figures()
            .served_until(&prepared.table, first?.as_bytes(), boundary)?;
        // A boundary that is no text is none of an entity: nothing stops there.
        String::from_utf8(end.to_vec()).ok()
    }

    /// Carries out operations on entities of one partition, all or none.
    ///
    /// # Errors
    /// The first operation whose condition does not hold; or the first, if the table is not there or a store fails.
    pub async fn write(&self, asker: &Asker<'_>, table: &str, operations: &[Operation]) -> Result<Written, Refused> {
        let refused = |fault| Refused { index: 0, fault };
        let prepared = self.prepared(asker, table).map_err(refused)?;
        if let Some(first) = operations.first() {
            let taken = self.take(asker, &prepared, &first.entity.partition_key, operations.len());
            taken.map_err(refused)?;
        }
        let batch = Batch {
            kind: BatchKind::Unlogged,
            modifications: operations.iter().map(|operation| prepared.change(operation)).collect(),
            timestamp: None,
            conditional: true,
        };
        let user: Arc<str> = asker.account.into();
        let mut execution = self.engine.begin(terms(asker, &user)).await;
        execution.set_origin(Arc::clone(&prepared.writes));
        let written = execution.batch(&batch).await;
        let written = match written {
            Err(error) => Err(refused(fault_of(&error))),
            Ok(written) => match written.decision {
                Some(Decision::Refused { member, places, rows }) => Err(refusal(operations, member, &places, &rows)),
                _ => Ok(written.timestamp_micros.unwrap_or_default()),
            },
        };
        let charge = finish(execution, &written.as_ref().map_err(|refused| &refused.fault), 0);
        let version = written?;
        Ok(Written {
            versions: vec![version; operations.len()],
            charge,
        })
    }

    // Settings.

    /// A setting of the account or of one of its tables; `None` means that it was never set.
    ///
    /// # Errors
    /// A store fails.
    pub async fn setting(&self, asker: &Asker<'_>, key: &str) -> Result<Option<Bytes>, Fault> {
        let table = keyspace::settings(&self.engine.snapshot().schema, asker.account).cloned();
        let Some(table) = table else { return Ok(None) };
        let selection = Arc::new(Selection::of_columns(&table, &[1]));
        let read = Read::new(table, selection, Partitions::Keys(vec![key_of(key)]));
        let mut execution = self.engine.begin(Terms::default()).await;
        let page = execution.read_page::<Setting>(&read, None, &Paging::default()).await;
        let found = page.map_err(|error| fault_of(&error));
        finish(execution, &found, 0);
        Ok(found?.1.0)
    }

    /// Sets a setting, or removes it.
    ///
    /// # Errors
    /// A store fails.
    pub async fn set_setting(&self, asker: &Asker<'_>, key: &str, value: Option<Bytes>) -> Result<(), Fault> {
        let found = || keyspace::settings(&self.engine.snapshot().schema, asker.account).cloned();
        if found().is_none() {
            self.change(asker, TableChange::Settings).await?;
        }
        let table = found().ok_or(Fault::InternalError)?;
        let write = Write {
            kind: if value.is_some() {
                WriteVerb::Insert
            } else {
                WriteVerb::Delete
            },
            operations: value
                .map(|value| (1, ColumnChange::Set(Value::Bytes(value))))
                .into_iter()
                .collect(),
            condition_columns: Vec::new(),
            ..write_of(table, key_of(key), Vec::new(), Condition::Always)
        };
        let mut execution = self.engine.begin(Terms::default()).await;
        let written = execution
            .write(&write)
            .await
            .map(drop)
            .map_err(|error| fault_of(&error));
        finish(execution, &written, 0);
        written
    }

    /// Takes entities of a partition, if it is served now.
    fn take(&self, asker: &Asker<'_>, prepared: &Prepared, partition_key: &str, entities: usize) -> Result<(), Fault> {
        if let Some(reloads) = &self.reloads {
            let range = self
                .engine
                .figures()
                .range_of(&prepared.table, partition_key.as_bytes());
            if let Some((partition, epoch)) = range.filter(|(_, epoch)| *epoch > prepared.epoch) {
                let range = (prepared.table.storage_id, partition, epoch);
                reloads.check(self.engine.clock().monotonic(), range)?;
            }
        }
        let Some(rate) = &self.rate else { return Ok(()) };
        let partition = (prepared.table.storage_id, partition_key);
        rate.take(self.engine.clock().monotonic(), asker.account, partition, entities)
    }

    /// Counts the entities of a page.
    fn count(&self, asker: &Asker<'_>, prepared: &Prepared, entities: &[Entity]) {
        let Some(rate) = &self.rate else { return };
        for of_one in entities.chunk_by(|one, next| one.partition_key == next.partition_key) {
            if let Some(first) = of_one.first() {
                let partition = (prepared.table.storage_id, first.partition_key.as_str());
                rate.add(self.engine.clock().monotonic(), asker.account, partition, of_one.len());
            }
        }
    }

    /// What requests on a table need. The name is in any case.
    fn prepared(&self, asker: &Asker<'_>, name: &str) -> Result<Arc<Prepared>, Fault> {
        let snapshot = self.engine.snapshot();
        let table = keyspace::find(&snapshot.schema, asker.account, name).ok_or(Fault::TableNotFound)?;
        let known = self.prepared.read().ok();
        let known = known.and_then(|known| known.get(&table.storage_id).cloned());
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.table, table)) {
            return Ok(known);
        }
        let epoch = self.engine.figures().last_change_of_ranges(table);
        let prepared = Arc::new(Prepared::new(table, epoch).ok_or(Fault::TableNotFound)?);
        if let Ok(mut all) = self.prepared.write() {
            if all.len() >= PREPARED_MAX {
                all.clear();
            }
            all.insert(table.storage_id, Arc::clone(&prepared));
        }
        Ok(prepared)
    }
}

/// A page as it fills.
struct Walk<'q> {
    asker: &'q Asker<'q>,
    query: &'q Query,
    top: u32,
    /// Whether the steps hold only entities that match.
    is_exact: bool,
    until: Duration,
    entities: Vec<Entity>,
    counted_bytes: usize,
    row_bytes: usize,
}

impl Walk<'_> {
    fn left(&self) -> u32 {
        self.top
            .saturating_sub(u32::try_from(self.entities.len()).unwrap_or(u32::MAX))
    }

    fn is_full(&self, now: Duration) -> bool {
        self.left() == 0 || self.counted_bytes >= PAGE_BYTES_MAX || now >= self.until
    }

    /// One more than the page needs tells where the next begins.
    fn rows_at_once(&self) -> u32 {
        let needed = self.left() + 1;
        if self.is_exact { needed } else { needed.max(SCAN_ROWS) }
    }

    /// Takes an entity if it matches. Returns its place if the page is full before.
    fn take(&mut self, entity: Entity) -> Option<Place> {
        if self.left() == 0 || self.counted_bytes >= PAGE_BYTES_MAX {
            return Some(Place {
                partition_key: entity.partition_key,
                row_key: Some(entity.row_key),
            });
        }
        let is_allowed = self.query.bounds.as_ref();
        let is_allowed = is_allowed.is_none_or(|bounds| bounds.contains(&entity.partition_key, &entity.row_key));
        let matches = self.query.filter.as_ref().is_none_or(|filter| filter.matches(&entity));
        if is_allowed && matches {
            self.counted_bytes += entity.counted_bytes();
            self.entities.push(entity);
        }
        None
    }
}

/// The part of a step before a partition key, and where the rest begins.
fn cut_at(step: Step, end: Option<&str>) -> (Step, Option<Place>) {
    match (step, end) {
        (Step::Partitions(partitions), Some(end))
            if partitions.to.as_deref().is_none_or(|to| compare_utf16(end, to).is_lt()) =>
        {
            let place = Place {
                partition_key: end.to_owned(),
                row_key: None,
            };
            let before = Interval {
                to: Some(end.to_owned()),
                ..partitions
            };
            (Step::Partitions(before), Some(place))
        }
        (step, _) => (step, None),
    }
}

impl Prepared {
    fn new(table: &Arc<Table>, epoch: u64) -> Option<Self> {
        let layout = table.entity_layout()?;
        let columns = [0, 1, layout.properties, layout.version];
        let tables = [Arc::clone(table)];
        let origin = |kind, verb: &str| {
            let text = format!("{verb} {}.{}", table.keyspace, table.name);
            Origin::new(kind, &tables, text.into(), str::to_owned)
        };
        Some(Self {
            layout,
            selection: Arc::new(Selection::of_columns(table, &columns)),
            reads: origin(StatementKind::Select, "read entities of"),
            writes: origin(StatementKind::Batch, "change entities of"),
            table: Arc::clone(table),
            index: PropertyIndex::of(table, layout),
            epoch,
        })
    }

    fn read(&self, partitions: Partitions) -> Read {
        Read::new(Arc::clone(&self.table), Arc::clone(&self.selection), partitions)
    }

    /// The read of a step; `None` means that nothing can be in it.
    fn read_of(&self, step: &Step) -> Option<Read> {
        match step {
            Step::Rows { partition_key, rows } => {
                let mut read = self.read(Partitions::Keys(vec![key_of(partition_key)]));
                read.rows = match rows.only() {
                    Some(only) => Clustering::Keys(vec![clustering(only)]),
                    None => Clustering::Ranges(vec![ClusteringRange {
                        start: clustering(&rows.from),
                        end: rows.to.as_deref().map(clustering),
                    }]),
                };
                Some(read)
            }
            Step::Partitions(partitions) => {
                let bound = |text: &str| KeyBound::at_key(Token::OF_ORDERED, text.as_bytes());
                let span = KeySpan::new(bound(&partitions.from), partitions.to.as_deref().map(bound))?;
                Some(self.read(Partitions::Ring(Some(span))))
            }
        }
    }

    /// The write of an operation.
    fn change(&self, operation: &Operation) -> Write {
        let Operation {
            verb,
            entity,
            condition,
        } = operation;
        let condition = match (verb, condition) {
            (Verb::Insert, _) => Condition::NotExists,
            (Verb::InsertOrReplace | Verb::InsertOrMerge, _) => Condition::Always,
            (_, Match::Tag(version)) => Condition::Columns(vec![self.is_version(*version)]),
            (_, Match::Any | Match::None) => Condition::Exists,
        };
        let mut operations = Vec::new();
        if *verb != Verb::Delete {
            operations.extend(self.properties(*verb, entity));
            operations.push((self.layout.version, ColumnChange::Version));
        }
        let partition_key = key_of(&entity.partition_key);
        let row = clustering(&entity.row_key);
        Write {
            kind: if *verb == Verb::Delete {
                WriteVerb::Delete
            } else {
                WriteVerb::Insert
            },
            operations,
            condition_columns: vec![self.layout.version],
            ..write_of(Arc::clone(&self.table), partition_key, row, condition)
        }
    }

    /// The change of the properties; `None` means that they stay.
    fn properties(&self, verb: Verb, entity: &Entity) -> Option<(usize, ColumnChange)> {
        let mut properties: Vec<&(String, super::edm::Edm)> = entity.properties.iter().collect();
        properties.sort_by(|one, other| one.0.cmp(&other.0));
        let cells = properties
            .into_iter()
            .map(|(name, value)| (key_of(name), row::encode(value)));
        let change = match verb {
            Verb::Update | Verb::InsertOrReplace => {
                ColumnChange::Replace(cells.map(|(name, value)| (Some(name), value)).collect())
            }
            // Nothing is there that an insert could replace.
            _ if entity.properties.is_empty() => return None,
            _ => ColumnChange::Put(cells.map(|(name, value)| (name, Some(value))).collect()),
        };
        Some((self.layout.properties, change))
    }

    fn is_version(&self, version: i64) -> Predicate {
        Predicate {
            target: FilterTarget::Column(self.layout.version),
            comparison: Comparison::Eq,
            operands: vec![Value::Bytes(Bytes::copy_from_slice(&version.to_be_bytes()))],
            ty: CqlType::Native(Native::Bigint),
        }
    }
}

fn write_of(table: Arc<Table>, partition_key: Bytes, row: Vec<u8>, condition: Condition) -> Write {
    Write {
        table,
        kind: WriteVerb::Insert,
        partition_keys: vec![partition_key],
        target: WriteTarget::Rows(vec![row]),
        operations: Vec::new(),
        names_static: false,
        timestamp: None,
        ttl_seconds: None,
        condition,
        condition_columns: Vec::new(),
        masks: None,
    }
}

/// Why an operation was refused: whether its row is there tells one cause from the other.
fn refusal(operations: &[Operation], member: usize, places: &[usize], rows: &[Vec<Option<Bytes>>]) -> Refused {
    let fault = operations.get(member).map_or(Fault::InternalError, |operation| {
        let row_key = places.iter().position(|place| *place == 1);
        let is_this = |row: &Vec<Option<Bytes>>| {
            let cell = row_key.and_then(|at| row.get(at)).and_then(Option::as_deref);
            cell == Some(operation.entity.row_key.as_bytes())
        };
        match operation.verb {
            Verb::Insert => Fault::EntityAlreadyExists,
            _ if rows.iter().any(is_this) => Fault::UpdateConditionNotSatisfied,
            _ => Fault::ResourceNotFound,
        }
    });
    Refused { index: member, fault }
}

/// The value of a setting.
#[derive(Debug, Default)]
struct Setting(Option<Bytes>);

impl RowSink for Setting {
    fn reserve(&mut self, _bytes: usize) {}

    fn row<'c>(&mut self, mut cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
        self.0 = cells.next().flatten().map(Bytes::copy_from_slice);
        self.held_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Bytes::len)
    }
}

fn key_of(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A row key as a clustering key.
fn clustering(row_key: &str) -> Vec<u8> {
    const ORDER: KeyOrder = KeyOrder {
        descending: false,
        by_utf16: true,
    };
    let mut key = Vec::with_capacity(row_key.len() + 2);
    CqlType::Native(Native::Text).encode_key(row_key.as_bytes(), ORDER, &mut key);
    key
}

fn terms<'a>(asker: &'a Asker<'_>, user: &'a Arc<str>) -> Terms<'a> {
    Terms {
        client: Some(&asker.client),
        user: Some(user),
        ..Terms::default()
    }
}

/// Ends an execution, and returns its charge.
fn finish<T, F: std::borrow::Borrow<Fault>>(
    execution: Execution<'_>,
    done: &Result<T, F>,
    row_bytes: usize,
) -> RequestUnits {
    let ended = match done {
        Ok(_) => Ended::Answered { row_bytes },
        Err(fault) => Ended::Failed {
            code: fault.borrow().status(),
        },
    };
    execution.finish(ended).charge
}

/// The refusal that a failure of the engine is to clients.
fn fault_of(error: &Error) -> Fault {
    match error {
        Error::Throttled { .. } | Error::Unavailable(_) | Error::NoRoom { .. } => Fault::ServerBusy,
        Error::WriteTimeout { .. } | Error::ReadTimeout { .. } => Fault::OperationTimedOut,
        Error::TableGone => Fault::TableNotFound,
        Error::Denied(_) => Fault::AuthorizationFailure,
        Error::Refused(refusal) => {
            tracing::debug!(%refusal, "a request of the table service is refused");
            Fault::InputNotValid
        }
        error => {
            tracing::error!(%error, "a request of the table service failed");
            Fault::InternalError
        }
    }
}
