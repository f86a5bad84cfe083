//! BATCH: several modifications as one.
//!
//! Source: Cassandra's `BatchStatement`.

use std::sync::Arc;

use grammar::ast::{self, Modification};

use super::error::Error;
use super::modify::{self, ModifyPlan};
use super::refusal::{BatchRefusal, ModifyRefusal};
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use super::using;
use crate::command::{Batch, BatchKind, Condition, Value, Write};
use crate::schema::Schema;
use helenus_types::functions::Context;
use helenus_types::types::{CqlType, Native};

/// A planned BATCH.
#[derive(Clone, Debug)]
pub struct BatchPlan {
    /// Logged, unlogged or counter.
    pub kind: BatchKind,
    /// Members, in order.
    pub modifications: Vec<Arc<ModifyPlan>>,
    timestamp: Option<TypedTerm>,
}

impl BatchPlan {
    /// Binds the batch's values; markers are numbered through the whole batch.
    ///
    /// # Errors
    ///
    /// The errors of a member, and conditions on several partitions.
    pub fn bind(&self, values: &[Value], context: &Context) -> Result<Batch, Error> {
        let modifications = self
            .modifications
            .iter()
            .map(|modification| modification.bind(values, context))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| {
                let members = self.modifications.iter().map(|member| (&**member, values));
                first_fault(members, context, error)
            })?;
        let timestamp = match &self.timestamp {
            Some(term) => using::timestamp(
                term,
                &Binding {
                    values,
                    json: None,
                    context,
                },
            )?,
            None => None,
        };
        finish(self.kind, &self.modifications, modifications, timestamp)
    }
}

/// Checks a batch of planned members, including those of a BATCH message of the protocol.
///
/// # Errors
///
/// Counters and virtual tables where they are not allowed, conditions on several tables, timestamps given twice.
pub fn check(kind: BatchKind, members: &[Arc<ModifyPlan>], has_timestamp: bool) -> Result<(), Error> {
    let conditional = members.iter().any(|member| member.is_conditional());
    let counters = members.iter().filter(|member| member.table.is_counter).count();
    if has_timestamp {
        if conditional {
            return Err(BatchRefusal::TimestampOfConditional.into());
        }
        if kind == BatchKind::Counter || counters > 0 {
            return Err(BatchRefusal::TimestampOfCounter.into());
        }
        if members.iter().any(|member| member.has_timestamp()) {
            return Err(BatchRefusal::TimestampTwice.into());
        }
        if members.iter().any(|member| member.table.entity_layout().is_some()) {
            return Err(ModifyRefusal::EntityTimestamp.into());
        }
    }
    if kind == BatchKind::Counter && counters < members.len() {
        return Err(BatchRefusal::OthersInCounter.into());
    }
    if counters > 0 && counters < members.len() {
        return Err(BatchRefusal::Mixed.into());
    }
    if kind == BatchKind::Logged && counters > 0 {
        return Err(BatchRefusal::CounterInLogged.into());
    }
    let virtuals = members.iter().filter(|member| member.table.is_virtual).count();
    if virtuals > 0 {
        if kind == BatchKind::Logged {
            return Err(BatchRefusal::VirtualInLogged.into());
        }
        if virtuals < members.len() {
            return Err(BatchRefusal::VirtualMixed.into());
        }
        if conditional {
            return Err(BatchRefusal::VirtualCondition.into());
        }
    }
    if conditional && counters > 0 {
        return Err(BatchRefusal::ConditionOnCounter.into());
    }
    let mut tables = members.iter().map(|member| member.table.id);
    if conditional
        && let Some(first) = tables.next()
        && tables.any(|table| table != first)
    {
        return Err(BatchRefusal::ConditionAcrossTables.into());
    }
    Ok(())
}

/// The fault that Cassandra finds first where the binding of a member has failed: one of any member's partition keys, otherwise that fault.
pub fn first_fault<'a>(
    members: impl Iterator<Item = (&'a ModifyPlan, &'a [Value])>,
    context: &Context,
    found: Error,
) -> Error {
    let mut bound = Vec::new();
    for (member, values) in members {
        match member.bind_keys(values, context) {
            Ok(keys) => bound.push((member, keys)),
            Err(error) => return error,
        }
    }
    if !bound.iter().any(|(member, _)| member.is_conditional()) {
        return found;
    }
    let first = bound.iter().flat_map(|(_, keys)| keys).next().cloned();
    for (member, keys) in &bound {
        if member.has_partition_in() || keys.iter().any(|key| Some(key) != first.as_ref()) {
            return BatchRefusal::ConditionAcrossPartitions.into();
        }
        if let Err(error) = member.refuse_clustering_in() {
            return error;
        }
    }
    found
}

/// Assembles a batch from bound members; `members` are their plans.
///
/// # Errors
///
/// Conditions on several partitions, and conditions beside IN on clustering columns.
pub fn finish(
    kind: BatchKind,
    members: &[Arc<ModifyPlan>],
    modifications: Vec<Write>,
    timestamp: Option<i64>,
) -> Result<Batch, Error> {
    let conditional = modifications
        .iter()
        .any(|modification| modification.condition != Condition::Always);
    if conditional {
        let mut keys = modifications
            .iter()
            .flat_map(|modification| &modification.partition_keys);
        let has_in = members.iter().any(|member| member.has_partition_in());
        if has_in || keys.next().is_some_and(|first| keys.any(|key| key != first)) {
            return Err(BatchRefusal::ConditionAcrossPartitions.into());
        }
        // Checked only now: Cassandra detects it when the batch is executed.
        for member in members {
            member.refuse_clustering_in()?;
        }
    }
    Ok(Batch {
        kind,
        modifications,
        timestamp,
        conditional,
    })
}

/// Converts the written kind of a BATCH.
pub(crate) const fn kind(written: ast::BatchKind) -> BatchKind {
    match written {
        ast::BatchKind::Logged => BatchKind::Logged,
        ast::BatchKind::Unlogged => BatchKind::Unlogged,
        ast::BatchKind::Counter => BatchKind::Counter,
    }
}

/// Plans a BATCH.
pub(crate) fn batch(
    typer: &mut TypeChecker<'_>,
    schema: &Schema,
    session_keyspace: Option<&str>,
    batch: &ast::Batch,
) -> Result<BatchPlan, Error> {
    let receiver = ColumnSpec::new("[timestamp]", CqlType::Native(Native::Bigint));
    let timestamp = batch
        .using
        .timestamp
        .as_ref()
        .map(|term| typer.term(term, &receiver))
        .transpose()?;
    if batch.using.ttl.is_some() {
        return Err(BatchRefusal::TimeToLive.into());
    }
    let mut modifications = Vec::with_capacity(batch.modifications.len());
    for modification in &batch.modifications {
        let name = match modification {
            Modification::Insert(insert) => &insert.table,
            Modification::Update(update) => &update.table,
            Modification::Delete(delete) => &delete.table,
        };
        let table = super::table_for_read(schema, session_keyspace, name)?;
        let mut typer = TypeChecker {
            schema,
            keyspace: Arc::from(table.keyspace.as_str()),
            table_name: Arc::from(table.name.as_str()),
            table: Some(Arc::clone(&table)),
            markers: &mut *typer.markers,
            calls: crate::planner::typing::CallMemo::default(),
        };
        modifications.push(Arc::new(match modification {
            Modification::Insert(insert) => modify::insert(&mut typer, &table, insert)?,
            Modification::Update(update) => modify::update(&mut typer, &table, update)?,
            Modification::Delete(delete) => modify::delete(&mut typer, &table, delete)?,
        }));
    }
    let kind = kind(batch.kind);
    check(kind, &modifications, timestamp.is_some())?;
    Ok(BatchPlan {
        kind,
        modifications,
        timestamp,
    })
}
