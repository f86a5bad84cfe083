//! INSERT, UPDATE, DELETE: planned once, bound for each execution.
//!
//! Source: Cassandra's `ModificationStatement` and its children, `Operation`, `Attributes`.

use std::sync::Arc;

use bytes::Bytes;
use grammar::ast::{self, Assignment, DeleteTarget, If, InsertSource, Name, Relation, Term};

use super::ann;
use super::condition::{self, ConditionPlan};
use super::entities;
use super::error::Error;
use super::key::{check_keys_bytes, check_partition_key, count_product, total_bytes};
use super::operation::{self, Operation};
use super::refusal::{ModifyRefusal, NameRefusal};
use super::restrict::{PartitionPlan, RowsPlan};
use super::restriction::{Kind, Operand, Restriction, Restrictions, Test, column};
use super::selection;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::Clause;
use super::typing::TypeChecker;
use super::using::{timestamp, ttl};
use super::validate::RestrictionValidator;
use crate::command::{Clustering, ColumnChange, ColumnMasks, Condition, Value, Write, WriteTarget, WriteVerb};
use crate::schema::{ColumnKind, Table};
use helenus_types::functions::{Context, Function};
use helenus_types::types::{CqlType, Native};

/// A planned INSERT, UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct ModifyPlan {
    /// The table.
    pub table: Arc<Table>,
    /// Which statement it is.
    pub kind: WriteVerb,
    partitions: PartitionPlan,
    target: TargetPlan,
    operations: Vec<(usize, Operation)>,
    timestamp: Option<TypedTerm>,
    ttl: Option<TypedTerm>,
    condition: ConditionPlan,
    /// The columns that a failed condition returns: positions in `table.columns`.
    condition_columns: Vec<usize>,
    /// What a failed condition shows of masked columns to a client without permission to see their values. `None`: nothing is masked.
    masks: Option<Arc<ColumnMasks>>,
    json: Option<super::json::JsonPlan>,
    /// The user-defined functions that it calls.
    calls: Box<[Function]>,
    /// The table is a materialized view.
    is_of_view: bool,
}

#[derive(Clone, Debug)]
enum TargetPlan {
    /// Rows by full key.
    Rows(RowsPlan),
    /// The static row.
    Static,
    /// DELETE of rows by prefix or slice.
    Ranges(RowsPlan),
    /// DELETE of the whole partition.
    Partition,
}

/// The parts that INSERT, UPDATE and DELETE have in common.
struct Parts<'s> {
    kind: WriteVerb,
    using: &'s ast::Using,
    operations: Vec<(usize, Operation)>,
    condition: ConditionPlan,
    restrictions: Restrictions,
    json: Option<super::json::JsonPlan>,
}

impl ModifyPlan {
    /// Whether it has an IF.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.condition.is_conditional()
    }

    /// The user-defined functions that it calls.
    #[must_use]
    pub fn calls(&self) -> &[Function] {
        &self.calls
    }

    /// Whether it has a timestamp of its own.
    #[must_use]
    pub fn has_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Refuses IN on clustering columns. A batch with conditions must refuse it even in members without one.
    ///
    /// # Errors
    ///
    /// A clustering column is restricted by IN.
    pub(crate) fn refuse_clustering_in(&self) -> Result<(), Error> {
        match &self.target {
            TargetPlan::Rows(rows) | TargetPlan::Ranges(rows) if rows.has_in() => Err(clustering_in(self.kind)),
            _ => Ok(()),
        }
    }

    /// Whether its partition key has an IN, which a batch with conditions refuses whatever it names.
    pub(crate) fn has_partition_in(&self) -> bool {
        self.partitions.has_in()
    }

    /// Refuses IN beside the statement's own condition, which Cassandra prepares.
    fn refuse_in(&self) -> Result<(), Error> {
        if self.partitions.has_in() {
            return Err(ModifyRefusal::ConditionalPartitionIn(self.kind).into());
        }
        self.refuse_clustering_in()
    }

    /// Whether a null bound of a range is refused. Where no partition is named, it deletes nothing, and of columns no range is deleted at
    /// all.
    fn refuses_null(&self, partition_keys: &[Bytes]) -> bool {
        !partition_keys.is_empty() && self.operations.is_empty()
    }

    /// The columns that a failed condition returns besides `[applied]`: positions in `table.columns`.
    #[must_use]
    pub fn condition_columns(&self) -> &[usize] {
        &self.condition_columns
    }

    /// Whether a failed condition may return columns with masks.
    #[must_use]
    pub fn returns_masked(&self) -> bool {
        self.masks.is_some()
    }

    /// Refuses a write to a materialized view. As in Cassandra, what is wrong with the statement itself and a missing permission come first.
    ///
    /// # Errors
    ///
    /// The table is a materialized view.
    pub fn refuse_view(&self) -> Result<(), Error> {
        if self.is_of_view {
            return Err(NameRefusal::ModifyOfView.into());
        }
        Ok(())
    }

    /// Refuses what no virtual table takes, of a statement that is not in a batch. Other writes of virtual tables are
    /// refused when they are bound, as in Cassandra.
    ///
    /// # Errors
    ///
    /// USING TIMESTAMP, USING TTL or IF, on a virtual table.
    pub(crate) fn refuse_virtual(&self) -> Result<(), Error> {
        let refusal = match self.table.is_virtual {
            true if self.timestamp.is_some() => ModifyRefusal::VirtualTimestamp,
            true if self.ttl.is_some() => ModifyRefusal::VirtualTtl,
            true if self.is_conditional() => ModifyRefusal::VirtualCondition,
            _ => return Ok(()),
        };
        Err(refusal.into())
    }

    /// Binds the partition keys alone. Cassandra reads those of all members of a batch before anything else of a member.
    ///
    /// # Errors
    ///
    /// As [`ModifyPlan::bind`], of the partition keys.
    pub(crate) fn bind_keys(&self, values: &[Value], context: &Context) -> Result<Vec<Bytes>, Error> {
        let mut binding = Binding {
            values,
            json: None,
            context,
        };
        let document = self
            .json
            .as_ref()
            .map(|json| json.bind(&self.table, &binding))
            .transpose()?;
        binding.json = document.as_deref();
        let keys = self.partitions.keys(&self.table, &binding)?;
        keys.iter().try_for_each(check_partition_key)?;
        Ok(keys)
    }

    /// The rows, ranges or partitions to write, within the limits of a statement.
    fn bind_target(&self, partition_keys: &[Bytes], binding: &Binding<'_>) -> Result<WriteTarget, Error> {
        let table = &self.table;
        let mut is_range = matches!(self.target, TargetPlan::Partition);
        let target = match &self.target {
            TargetPlan::Rows(rows) => WriteTarget::Rows(rows.keys(table, binding, self.kind != WriteVerb::Delete)?),
            TargetPlan::Static => WriteTarget::Static,
            TargetPlan::Partition => WriteTarget::Partition,
            // Where no partition is named, a null bound deletes nothing.
            TargetPlan::Ranges(rows) => {
                let rows = rows.bind_to_delete(table, binding, self.refuses_null(partition_keys))?;
                is_range = rows.is_some();
                match rows {
                    Some(Clustering::Ranges(ranges)) => WriteTarget::Ranges(ranges),
                    Some(Clustering::Keys(keys)) => WriteTarget::Rows(keys),
                    Some(Clustering::All) => WriteTarget::Partition,
                    None => WriteTarget::Ranges(Vec::new()),
                }
            }
        };
        if is_range && !partition_keys.is_empty() && !self.operations.is_empty() {
            return Err(ModifyRefusal::RangeOfColumns.into());
        }
        if let WriteTarget::Rows(rows) = &target {
            let keys = count_product(partition_keys.len(), rows.len())?;
            let bytes = total_bytes(partition_keys) * rows.len() + total_bytes(rows) * partition_keys.len();
            check_keys_bytes(keys, bytes)?;
        } else if let WriteTarget::Ranges(ranges) = &target {
            count_product(partition_keys.len(), ranges.len())?;
        }
        Ok(target)
    }

    /// What to do to each column.
    fn bind_operations(&self, binding: &Binding<'_>) -> Result<Vec<(usize, ColumnChange)>, Error> {
        let mut operations = Vec::with_capacity(self.operations.len());
        for (column, operation) in &self.operations {
            if let Some(bound) = operation.bind(binding)? {
                if let Some(column) = self.table.columns.get(*column) {
                    ann::refuse_written(&self.table, column, &bound)?;
                }
                operations.push((*column, bound));
            }
        }
        Ok(operations)
    }

    /// Binds the statement's values. A failed condition shows masks; [`Write::masks`] is removed for a client that may see the values.
    ///
    /// # Errors
    ///
    /// Values that do not fit their types, null or unset where neither is allowed, keys too long, times out of bounds.
    #[expect(
        clippy::too_many_lines,
        reason = "the values of a write are bound in the order of the faults of Cassandra"
    )]
    pub fn bind(&self, values: &[Value], context: &Context) -> Result<Write, Error> {
        let table = &self.table;
        self.refuse_view()?;
        if table.is_virtual {
            return Err(ModifyRefusal::Virtual {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
            }
            .into());
        }
        let mut binding = Binding {
            values,
            json: None,
            context,
        };
        let document = self.json.as_ref().map(|json| json.bind(table, &binding)).transpose()?;
        binding.json = document.as_deref();
        let binding = &binding;
        let timestamp = match &self.timestamp {
            Some(term) => timestamp(term, binding)?,
            None => None,
        };
        let ttl_seconds = match &self.ttl {
            Some(term) => ttl(term, binding, self.condition.is_conditional())?,
            None => None,
        };
        let partition_keys = self.partitions.keys(table, binding)?;
        if self.condition.is_conditional() {
            self.refuse_in()?;
        }
        partition_keys.iter().try_for_each(check_partition_key)?;
        let target = self.bind_target(&partition_keys, binding)?;
        // Refused only now: Cassandra prepares such a statement without an error.
        if self.kind == WriteVerb::Insert
            && self.operations.is_empty()
            && let Some(value) = table.compact_value()
        {
            return Err(ModifyRefusal::MandatoryInCompact(value.name.clone()).into());
        }
        // As in Cassandra, values that are written nowhere, after an empty IN, are not evaluated.
        let is_of_nothing = partition_keys.is_empty() || matches!(&target, WriteTarget::Rows(rows) if rows.is_empty());
        let operations = if is_of_nothing {
            Vec::new()
        } else {
            self.bind_operations(binding)?
        };
        let writes = |operation: &ColumnChange| !matches!(operation, ColumnChange::Set(Value::Null));
        let makes_row = self.kind == WriteVerb::Insert
            || self.kind == WriteVerb::Update && operations.iter().any(|(_, operation)| writes(operation));
        if makes_row && let TargetPlan::Rows(rows) = &self.target {
            rows.refuse_vectors(table, binding)?;
        }
        let kind = match &self.json {
            Some(json) if table.is_compact_of_keys() => json.verb_of_hidden_value(),
            _ => self.kind,
        };
        entities::renew(Write {
            table: Arc::clone(table),
            kind,
            partition_keys,
            target,
            operations,
            names_static: self
                .operations
                .iter()
                .any(|(index, _)| kind_of(table, *index) == ColumnKind::Static),
            timestamp,
            ttl_seconds,
            condition: if self.condition.is_conditional() {
                self.condition.bind(table, binding)?
            } else {
                Condition::Always
            },
            condition_columns: self.condition_columns.clone(),
            masks: self.masks.clone(),
        })
    }
}

fn clustering_in(kind: WriteVerb) -> Error {
    ModifyRefusal::ConditionalClusteringIn(kind).into()
}

/// Plans an INSERT.
#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(crate) fn insert(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    insert: &ast::Insert,
) -> Result<ModifyPlan, Error> {
    let condition = if insert.if_not_exists {
        ConditionPlan::NotExists
    } else {
        ConditionPlan::Always
    };
    let conditional = insert.if_not_exists;
    if table.is_counter {
        return Err(ModifyRefusal::InsertOfCounter.into());
    }
    let mut restrictions = Restrictions::default();
    let mut operations = Vec::new();
    let mut has_clustering = false;
    let mut json = None;
    let mut keys: Vec<(usize, TypedTerm)> = Vec::new();
    match &insert.source {
        InsertSource::Values { columns, values } => {
            if columns.len() != values.len() {
                return Err(ModifyRefusal::Unmatched.into());
            }
            let repeated = |(index, name): (usize, &Name)| columns.iter().take(index).any(|earlier| earlier == name);
            if columns.iter().enumerate().any(repeated) {
                return Err(ModifyRefusal::DuplicateColumns.into());
            }
            let mut key_terms: Vec<(usize, &Term)> = Vec::new();
            typer.calls.enter(Clause::Set);
            for (name, term) in columns.iter().zip(values) {
                let (index, column) = column(table, name.as_str())?;
                match column.kind {
                    ColumnKind::PartitionKey | ColumnKind::Clustering => {
                        has_clustering |= column.kind == ColumnKind::Clustering;
                        key_terms.push((index, term));
                    }
                    ColumnKind::Static | ColumnKind::Regular => {
                        operations.push((index, operation::set(typer, column, term)?));
                    }
                }
            }
            // Cassandra turns the key columns into relations, and reads them last.
            typer.calls.enter(Clause::Where);
            for (index, term) in key_terms {
                let (_, column) = (index, table.columns.get(index).expect("a place in the table"));
                keys.push((index, typer.term(term, &ColumnSpec::column(column))?));
            }
        }
        InsertSource::Json {
            document,
            default_unset,
        } => {
            if table.is_static_compact() {
                // Cassandra reads all columns from the document, including the one that such a table hides.
                let (hidden, _) = table.hidden_names();
                column(table, &hidden)?;
            }
            json = Some(super::json::JsonPlan::new(typer, document, *default_unset)?);
            for (index, column) in table.columns.iter().enumerate() {
                match column.kind {
                    ColumnKind::PartitionKey | ColumnKind::Clustering => {
                        has_clustering |= column.kind == ColumnKind::Clustering;
                        keys.push((index, TypedTerm::Json(index)));
                    }
                    ColumnKind::Static | ColumnKind::Regular => {
                        operations.push((index, operation::set_typed(column, TypedTerm::Json(index))));
                    }
                }
            }
        }
    }
    let only_static =
        !has_clustering && applies_only_to_static(table, &written(&operations), WriteVerb::Insert, &condition);
    let validator = RestrictionValidator {
        typer,
        table: Arc::clone(table),
        kind: Kind::Insert,
        allow_filtering: false,
        ann: None,
    };
    for (index, term) in keys {
        let restriction = Restriction {
            columns: vec![index],
            multi: false,
            test: Test::Eq(Operand::One(term)),
        };
        validator.add(restriction, &mut restrictions)?;
    }
    let restrictions = validator.finish(restrictions, only_static)?;
    let parts = Parts {
        kind: WriteVerb::Insert,
        using: &insert.using,
        operations,
        condition,
        restrictions,
        json,
    };
    finish(typer, table, parts, only_static, conditional)
}

/// Plans an UPDATE.
pub(crate) fn update(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    update: &ast::Update,
) -> Result<ModifyPlan, Error> {
    incompatible(&update.assignments)?;
    let condition = prepare_condition(typer, table, &update.condition, &update.using)?;
    let conditional = condition.is_conditional();
    typer.calls.enter(Clause::Set);
    let mut operations = Vec::with_capacity(update.assignments.len());
    let mut written = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let (index, column) = column(table, assigned(assignment).as_str())?;
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(ModifyRefusal::SetOfKey(column.name.clone()).into());
        }
        written.push(index);
        let operation = operation::assign(typer, column, assignment, conditional)?;
        operations.push((index, operation));
    }
    let only_static = applies_only_to_static(table, &written, WriteVerb::Update, &condition);
    let restrictions = validate(typer, table, Kind::Update, &update.relations, only_static)?;
    let parts = Parts {
        kind: WriteVerb::Update,
        using: &update.using,
        operations,
        condition,
        restrictions,
        json: None,
    };
    finish(typer, table, parts, only_static, conditional)
}

/// The columns that operations write.
fn written(operations: &[(usize, Operation)]) -> Vec<usize> {
    operations.iter().map(|(index, _)| *index).collect()
}

/// Plans a DELETE.
pub(crate) fn delete(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    delete: &ast::Delete,
) -> Result<ModifyPlan, Error> {
    let condition = prepare_condition(typer, table, &delete.condition, &delete.using)?;
    let conditional = condition.is_conditional();
    typer.calls.enter(Clause::Set);
    let mut operations = Vec::with_capacity(delete.targets.len());
    for target in &delete.targets {
        let name = match target {
            DeleteTarget::Column(name) | DeleteTarget::Element(name, _) | DeleteTarget::Field(name, _) => name,
        };
        let (index, column) = column(table, name.as_str())?;
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(ModifyRefusal::DeleteOfKey(column.name.clone()).into());
        }
        operations.push((index, operation::delete(typer, column, target)?));
    }
    let only_static = applies_only_to_static(table, &written(&operations), WriteVerb::Delete, &condition);
    let restrictions = validate(typer, table, Kind::Delete, &delete.relations, only_static)?;
    let restricted: usize = restrictions
        .clustering
        .iter()
        .map(|restriction| restriction.columns.len())
        .sum();
    let all_equal = restricted == table.clustering_count
        && !table.is_static_compact()
        && !restrictions.clustering.iter().any(Restriction::is_slice);
    if conditional {
        refuse_conditional_counter(table, delete.using.timestamp.is_some())?;
    }
    if conditional && !all_equal {
        let regular = |index: &usize| kind_of(table, *index) == ColumnKind::Regular;
        if operations.is_empty() || operations.iter().any(|(index, _)| regular(index)) {
            return Err(ModifyRefusal::PartialKeyDeletes.into());
        }
        if condition.columns().iter().any(regular) {
            return Err(ModifyRefusal::PartialKeyCondition.into());
        }
    }
    let parts = Parts {
        kind: WriteVerb::Delete,
        using: &delete.using,
        operations,
        condition,
        restrictions,
        json: None,
    };
    finish(typer, table, parts, only_static, conditional)
}

fn kind_of(table: &Table, index: usize) -> ColumnKind {
    table
        .columns
        .get(index)
        .map_or(ColumnKind::Regular, |column| column.kind)
}

fn validate(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    kind: Kind,
    relations: &[Relation],
    only_static: bool,
) -> Result<Restrictions, Error> {
    RestrictionValidator {
        typer,
        table: Arc::clone(table),
        kind,
        allow_filtering: false,
        ann: None,
    }
    .validate(relations, only_static)
}

/// Plans the IF clause; refuses one that the statement does not allow.
fn prepare_condition(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    condition: &If,
    using: &ast::Using,
) -> Result<ConditionPlan, Error> {
    Ok(match condition {
        If::Always => ConditionPlan::Always,
        If::Exists => ConditionPlan::Exists,
        If::NotExists => ConditionPlan::NotExists,
        If::Conditions(conditions) => {
            if using.timestamp.is_some() {
                return Err(ModifyRefusal::ConditionalTimestamp.into());
            }
            typer.calls.enter(Clause::If);
            ConditionPlan::Columns(condition::columns(typer, table, conditions)?)
        }
    })
}

/// Whether the statement writes and tests only static columns (`ModificationStatement.appliesOnlyToStaticColumns`).
fn applies_only_to_static(table: &Table, written: &[usize], kind: WriteVerb, condition: &ConditionPlan) -> bool {
    let is_static = |index: &usize| kind_of(table, *index) == ColumnKind::Static;
    let condition_columns = condition.columns();
    let static_operations = written.iter().any(is_static);
    let regular_operations =
        written.iter().any(|index| !is_static(index)) || (kind == WriteVerb::Delete && written.is_empty());
    let static_conditions = condition_columns.iter().any(is_static);
    let regular_conditions = !condition_columns.iter().all(is_static);
    !regular_operations && !regular_conditions && (static_operations || static_conditions)
}

/// Refuses conditions on counters, and beside a timestamp.
fn refuse_conditional_counter(table: &Table, has_timestamp: bool) -> Result<(), Error> {
    if table.is_counter {
        return Err(ModifyRefusal::ConditionalCounter.into());
    }
    if has_timestamp {
        return Err(ModifyRefusal::ConditionalTimestamp.into());
    }
    Ok(())
}

/// Types USING, then runs the checks that need the whole statement.
fn finish(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    parts: Parts<'_>,
    only_static: bool,
    conditional: bool,
) -> Result<ModifyPlan, Error> {
    let bigint = ColumnSpec::new("[timestamp]", CqlType::Native(Native::Bigint));
    let int = ColumnSpec::new("[ttl]", CqlType::Native(Native::Int));
    let timestamp = parts
        .using
        .timestamp
        .as_ref()
        .map(|term| typer.term(term, &bigint))
        .transpose()?;
    let ttl = parts
        .using
        .ttl
        .as_ref()
        .map(|term| typer.term(term, &int))
        .transpose()?;
    if conditional {
        refuse_conditional_counter(table, timestamp.is_some())?;
    }
    if table.is_counter && timestamp.is_some() {
        return Err(ModifyRefusal::CounterTimestamp.into());
    }
    if table.is_counter && ttl.is_some() {
        return Err(ModifyRefusal::CounterTtl.into());
    }
    let partitions = PartitionPlan::new(table, &parts.restrictions);
    let (rows, _) = RowsPlan::new(table, &parts.restrictions, true);
    let deletes_columns = !parts.operations.is_empty();
    // Only a DELETE may name a prefix or a slice; one of columns is refused when it is bound.
    let target = if only_static && rows.is_all() {
        TargetPlan::Static
    } else if parts.kind != WriteVerb::Delete {
        TargetPlan::Rows(rows)
    } else if table.clustering_count == 0 && !deletes_columns {
        TargetPlan::Partition
    } else if rows.is_full() {
        TargetPlan::Rows(rows)
    } else if rows.is_all() {
        TargetPlan::Partition
    } else {
        TargetPlan::Ranges(rows)
    };
    let condition_columns = match &parts.condition {
        ConditionPlan::Always => Vec::new(),
        ConditionPlan::Exists | ConditionPlan::NotExists => (0..table.columns.len()).collect(),
        condition => condition.answer_columns(table),
    };
    // All columns of the table: another statement of a batch may name others.
    let masks = match conditional {
        true => selection::masks(typer.schema, table, 0..table.columns.len())?.map(Arc::new),
        false => None,
    };
    Ok(ModifyPlan {
        table: Arc::clone(table),
        kind: parts.kind,
        partitions,
        target,
        operations: parts.operations,
        timestamp,
        ttl,
        condition: parts.condition,
        condition_columns,
        masks,
        json: parts.json,
        calls: typer.calls.called(),
        is_of_view: super::is_view(typer.schema, table),
    })
}

/// The column that an assignment sets.
fn assigned(assignment: &Assignment) -> &Name {
    match assignment {
        Assignment::Set(name, _)
        | Assignment::Field(name, _, _)
        | Assignment::Element(name, _, _)
        | Assignment::Add(name, _)
        | Assignment::Subtract(name, _)
        | Assignment::Prepend(name, _) => name,
    }
}

/// Refuses two incompatible assignments of one column, which Cassandra's parser detects.
fn incompatible(assignments: &[Assignment]) -> Result<(), Error> {
    for (index, later) in assignments.iter().enumerate() {
        for earlier in assignments.iter().take(index) {
            if assigned(earlier) != assigned(later) {
                continue;
            }
            let clash = match (earlier, later) {
                (Assignment::Set(..), _) | (_, Assignment::Set(..)) => true,
                (Assignment::Field(_, a, _), Assignment::Field(_, b, _)) => a == b,
                _ => false,
            };
            if clash {
                return Err(Error::Incompatible(assigned(later).as_str().to_owned()));
            }
        }
    }
    Ok(())
}
