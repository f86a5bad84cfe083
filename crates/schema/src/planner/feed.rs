//! Reads of the change feed: the relations of a WHERE clause that Azure Cosmos DB has for them.
//!
//! ```text
//! cosmos_changefeed_start_time() = timestamp   the changes from a time on
//! cosmos_changefeed_from_start() = boolean     true: all; false: those from now on
//! cosmos_feedrange() = text                    of a part of the ring (`schema::feed_range`)
//! ```
//! One of the first two says that the feed is read. The rest of the WHERE clause may name the partition key.
//!
//! Source: Azure Cosmos DB for Apache Cassandra, "Change feed"; the last two are used by Microsoft's own tools.

use std::sync::Arc;

use grammar::ast::{self, FeedFunction, RelationTarget, RelationValue};

use super::error::Error;
use super::refusal::SelectRefusal;
use super::restriction::Restrictions;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use super::value;
use crate::command::{FeedStart, Partitions, Value};
use crate::schema::feed_range::FeedRange;
use crate::schema::{Table, system};
use helenus_types::types::{CqlType, Native};

/// A read of the change feed with bound values.
pub(super) struct BoundFeed {
    pub(super) start: FeedStart,
    pub(super) is_full_fidelity: bool,
    pub(super) partitions: Partitions,
}

/// How a SELECT reads the change feed.
#[derive(Clone, Debug, Default)]
pub(super) struct FeedPlan {
    start_time: Option<TypedTerm>,
    from_start: Option<TypedTerm>,
    range: Option<TypedTerm>,
    full_fidelity: Option<TypedTerm>,
}

impl FeedPlan {
    /// Takes the relations of the change feed out of a SELECT. `None` means that it has none.
    ///
    /// # Errors
    /// The table has no feed, or the statement has a clause that a read of the feed does not allow.
    pub(super) fn of(
        typer: &mut TypeChecker<'_>,
        table: &Arc<Table>,
        select: &ast::Select,
    ) -> Result<Option<(Self, ast::Select)>, Error> {
        let is_of_feed = |relation: &ast::Relation| matches!(relation.target, RelationTarget::Feed(_));
        if !select.relations.iter().any(is_of_feed) {
            return Ok(None);
        }
        let (of_feed, relations): (Vec<_>, Vec<_>) = select.relations.iter().cloned().partition(is_of_feed);
        let mut plan = Self::default();
        for relation in of_feed {
            let (RelationTarget::Feed(function), RelationValue::Term(term)) = (relation.target, relation.value) else {
                continue;
            };
            let (place, ty) = match function {
                FeedFunction::StartTime => (&mut plan.start_time, Native::Timestamp),
                FeedFunction::FromStart => (&mut plan.from_start, Native::Boolean),
                FeedFunction::FeedRange => (&mut plan.range, Native::Text),
                FeedFunction::FullFidelity => (&mut plan.full_fidelity, Native::Boolean),
            };
            let receiver = ColumnSpec::new(function.name(), CqlType::Native(ty));
            if place.replace(typer.term(&term, &receiver)?).is_some() {
                return Err(SelectRefusal::FeedTwice(function.name()).into());
            }
        }
        if table.feed().is_none() {
            let can_never = system::is_name(&table.keyspace) || super::is_view(typer.schema, table);
            let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
            let refusal = if can_never {
                SelectRefusal::NeverFeed { keyspace, table }
            } else {
                SelectRefusal::NoFeed { keyspace, table }
            };
            return Err(refusal.into());
        }
        if plan.start_time.is_some() == plan.from_start.is_some() {
            return Err(SelectRefusal::FeedStart.into());
        }
        let clauses = [
            ("DISTINCT", select.distinct),
            ("GROUP BY", !select.group_by.is_empty()),
            ("ORDER BY", !select.order_by.is_empty()),
            ("PER PARTITION LIMIT", select.per_partition_limit.is_some()),
            ("LIMIT", select.limit.is_some()),
        ];
        if let Some((clause, _)) = clauses.into_iter().find(|(_, is_there)| *is_there) {
            return Err(SelectRefusal::FeedClause(clause).into());
        }
        let rest = ast::Select {
            relations,
            ..select.clone()
        };
        Ok(Some((plan, rest)))
    }

    /// Checks the rest of the WHERE clause and the selection.
    ///
    /// # Errors
    /// They restrict more than the partition key, or aggregate rows.
    pub(super) fn check(&self, table: &Table, restrictions: &Restrictions, has_aggregates: bool) -> Result<(), Error> {
        let key = &restrictions.partition;
        let names_key = key.len() == table.partition_key_count && !restrictions.partition_filters;
        let is_key_only = restrictions.clustering.is_empty()
            && restrictions.others.is_empty()
            && restrictions.token.is_none()
            && (key.is_empty() || names_key && self.range.is_none());
        if !is_key_only {
            return Err(SelectRefusal::FeedRestricted.into());
        }
        if has_aggregates {
            return Err(SelectRefusal::FeedClause("an aggregate").into());
        }
        Ok(())
    }

    /// The read of the feed, and the partitions that are read: those of the statement, or a part of the ring.
    ///
    /// # Errors
    /// A value is null or no feed range; several partition keys are named.
    pub(super) fn bind(&self, binding: &Binding<'_>, partitions: Partitions) -> Result<BoundFeed, Error> {
        let bound =
            |term: &Option<TypedTerm>, function: FeedFunction| match term.as_ref().map(|term| term.bind(binding)) {
                None => Ok(None),
                Some(Ok(Value::Bytes(bytes))) => Ok(Some(bytes)),
                Some(Ok(Value::Null | Value::Unset)) => Err(SelectRefusal::FeedNull(function.name()).into()),
                Some(Err(error)) => Err(error),
            };
        let is_true = |bytes: &bytes::Bytes| bytes.first().is_some_and(|byte| *byte != 0);
        let full_fidelity = bound(&self.full_fidelity, FeedFunction::FullFidelity)?;
        let is_full_fidelity = full_fidelity.as_ref().is_some_and(is_true);
        let start = match bound(&self.start_time, FeedFunction::StartTime)? {
            Some(time) => FeedStart::At(value::bigint(&time).unwrap_or_default().saturating_mul(1000)),
            None => match bound(&self.from_start, FeedFunction::FromStart)? {
                Some(from_start) if !is_true(&from_start) => FeedStart::Now,
                _ => FeedStart::Beginning,
            },
        };
        let partitions = match bound(&self.range, FeedFunction::FeedRange)? {
            Some(range) => {
                let text = std::str::from_utf8(&range).unwrap_or_default();
                let FeedRange { lower, upper } = text.parse().map_err(SelectRefusal::FeedRange)?;
                Partitions::of_tokens(lower, upper)
            }
            None => partitions,
        };
        match &partitions {
            Partitions::Keys(keys) if keys.len() > 1 => Err(SelectRefusal::FeedRestricted.into()),
            _ => Ok(BoundFeed {
                start,
                is_full_fidelity,
                partitions,
            }),
        }
    }
}
