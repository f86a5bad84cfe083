//! INSERT, UPDATE, DELETE and BATCH in the profile `cosmos`.

use std::sync::Arc;

use grammar::ast::{
    Assignment, ConditionTarget, Delete, DeleteTarget, If, Insert, InsertSource, Modification, Operator, QualifiedName,
    RelationTarget, Statement, Update, Using,
};

use super::Refusal;
use super::select::{relations, term};
use crate::profile::Strict;
use crate::schema::{ColumnKind, Table};

/// Checks an INSERT without its table.
pub(super) fn insert(insert: &Insert, strict: &Strict) -> Result<(), Refusal> {
    match &insert.source {
        InsertSource::Values { values, .. } => values.iter().try_for_each(|value| term(value, strict)),
        InsertSource::Json { .. } => Ok(()),
    }
}

/// Checks an UPDATE without its table.
pub(super) fn update(update: &Update, strict: &Strict) -> Result<(), Refusal> {
    for assignment in &update.assignments {
        match assignment {
            Assignment::Set(_, value)
            | Assignment::Field(_, _, value)
            | Assignment::Element(_, _, value)
            | Assignment::Add(_, value)
            | Assignment::Subtract(_, value)
            | Assignment::Prepend(_, value) => term(value, strict)?,
        }
    }
    relations(&update.relations, strict)
}

/// Checks a DELETE without its table.
pub(super) fn delete(delete: &Delete, strict: &Strict) -> Result<(), Refusal> {
    if strict.deletes
        && delete
            .relations
            .iter()
            .any(|relation| relation.operator != Operator::Eq)
    {
        // The message is about the partition key; it was observed for ranges of clustering keys too.
        return Err(Refusal::DeleteOfRange);
    }
    relations(&delete.relations, strict)
}

/// Checks modifications against their tables, which are among `tables`.
pub(super) fn check(statement: &Statement, tables: &[Arc<Table>], strict: &Strict) -> Result<(), Refusal> {
    let find = |name: &QualifiedName| {
        tables.iter().find(|table| {
            let keyspace = name.keyspace.as_ref();
            table.name == name.name.as_str() && keyspace.is_none_or(|keyspace| table.keyspace == keyspace.as_str())
        })
    };
    let check_insert = |insert: &Insert| find(&insert.table).map_or(Ok(()), |table| inserted(insert, table));
    let check_update = |update: &Update| find(&update.table).map_or(Ok(()), |table| updated(update, table));
    let check_delete = |delete: &Delete| find(&delete.table).map_or(Ok(()), |table| deleted(delete, table, strict));
    match statement {
        Statement::Insert(insert) => check_insert(insert),
        Statement::Update(update) => check_update(update),
        Statement::Delete(delete) => check_delete(delete),
        Statement::Batch(batch) => {
            tables.iter().try_for_each(|table| timestamp(&batch.using, table))?;
            batch.modifications.iter().try_for_each(|member| match member {
                Modification::Insert(insert) => check_insert(insert),
                Modification::Update(update) => check_update(update),
                Modification::Delete(delete) => check_delete(delete),
            })
        }
        _ => Ok(()),
    }
}

/// A USING TIMESTAMP needs a table whose cells have timestamps. The timestamp that drivers send beside the statement
/// does not: every driver sends one.
fn timestamp(using: &Using, table: &Table) -> Result<(), Refusal> {
    if using.timestamp.is_some() && !table.options.cell_level.timestamp {
        return Err(Refusal::Timestamp);
    }
    Ok(())
}

fn inserted(insert: &Insert, table: &Table) -> Result<(), Refusal> {
    timestamp(&insert.using, table)?;
    if !insert.if_not_exists {
        return Ok(());
    }
    match &insert.source {
        InsertSource::Values { columns, .. } => unmixed(table, columns.iter().map(|name| name.as_str())),
        InsertSource::Json { .. } => Ok(()),
    }
}

fn updated(update: &Update, table: &Table) -> Result<(), Refusal> {
    timestamp(&update.using, table)?;
    if update.condition == If::Always {
        return Ok(());
    }
    let assigned = update.assignments.iter().map(|assignment| match assignment {
        Assignment::Set(name, _)
        | Assignment::Field(name, _, _)
        | Assignment::Element(name, _, _)
        | Assignment::Add(name, _)
        | Assignment::Subtract(name, _)
        | Assignment::Prepend(name, _) => name.as_str(),
    });
    unmixed(table, assigned.chain(conditions(&update.condition)))
}

fn deleted(delete: &Delete, table: &Table, strict: &Strict) -> Result<(), Refusal> {
    timestamp(&delete.using, table)?;
    let targets = || {
        delete.targets.iter().map(|target| match target {
            DeleteTarget::Column(name) | DeleteTarget::Element(name, _) | DeleteTarget::Field(name, _) => name.as_str(),
        })
    };
    if delete.condition != If::Always {
        if delete.targets.is_empty() && table.options.cell_level.is_none() {
            return Err(Refusal::ConditionalDelete);
        }
        unmixed(table, targets().chain(conditions(&delete.condition)))?;
    }
    let only_static = !delete.targets.is_empty() && targets().all(|name| kind(table, name) == Some(ColumnKind::Static));
    if strict.deletes && !only_static {
        let names = |name: &str| {
            delete.relations.iter().any(|relation| match &relation.target {
                RelationTarget::Column(column) => column.as_str() == name,
                RelationTarget::Tuple(columns) => columns.iter().any(|column| column.as_str() == name),
                RelationTarget::Element(..)
                | RelationTarget::Token(_)
                | RelationTarget::Index(_)
                | RelationTarget::Feed(_) => false,
            })
        };
        if !table.clustering().iter().all(|column| names(&column.name)) {
            return Err(Refusal::ClusteringMissing);
        }
    }
    Ok(())
}

fn conditions(condition: &If) -> impl Iterator<Item = &str> {
    let conditions = match condition {
        If::Conditions(conditions) => conditions.as_slice(),
        If::Always | If::Exists | If::NotExists => &[],
    };
    conditions.iter().map(|condition| match &condition.target {
        ConditionTarget::Column(name) | ConditionTarget::Element(name, _) | ConditionTarget::Field(name, _) => {
            name.as_str()
        }
    })
}

fn kind(table: &Table, name: &str) -> Option<ColumnKind> {
    table.column(name).map(|(_, column)| column.kind)
}

/// Refuses a conditional statement on static and other columns together.
fn unmixed<'n>(table: &Table, names: impl Iterator<Item = &'n str>) -> Result<(), Refusal> {
    let kinds: Vec<ColumnKind> = names.filter_map(|name| kind(table, name)).collect();
    if kinds.contains(&ColumnKind::Static) && kinds.contains(&ColumnKind::Regular) {
        return Err(Refusal::MixedColumns);
    }
    Ok(())
}
