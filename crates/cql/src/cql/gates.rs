//! Checks of a CQL request before its command is made, in the order in which requests pass them. The checks of commands
//! follow: `engine::gates` lists them, and the phases of both.

use std::sync::Arc;

use grammar::ast;

use super::answer::QueryParams;
use super::error::{Error, RequestRefusal};
use super::role_refusal::RoleRefusal;
use helenus_engine::engine::{self, Action, Engine, Execution, ReadAction, WriteAction, refuse_system};
use helenus_schema::command::{Partitions, Read};
use helenus_schema::guardrails::Guardrails;
use helenus_schema::planner::{ModifyPlan, Plan, Planned, SelectPlan, ddl};
use helenus_schema::roles::Denied;
use helenus_schema::schema::{Schema, Table, system};
use helenus_types::consistency::Consistency;

// 1. Names.

/// Checks that the keyspace in a request's parameters exists. A session's keyspace is not checked: if it was dropped, only
/// statements with unqualified tables fail, in the planner.
pub(super) fn names(schema: &Schema, params: &QueryParams) -> Result<(), Error> {
    match &params.keyspace {
        Some(keyspace) => expect_keyspace(schema, keyspace),
        None => Ok(()),
    }
}

/// Checks that a keyspace exists.
pub(super) fn expect_keyspace(schema: &Schema, keyspace: &str) -> Result<(), Error> {
    if schema.keyspaces.contains_key(keyspace) {
        return Ok(());
    }
    Err(RequestRefusal::NoKeyspace(keyspace.to_owned()).into())
}

/// Checks that a statement has as many values as markers.
pub(super) fn values(planned: &Planned, values: usize) -> Result<(), Error> {
    Ok(planned.check_values(values)?)
}

/// Like [`values`], for a prepared statement; Cassandra's message differs.
pub(super) fn prepared_values(planned: &Planned, values: usize) -> Result<(), Error> {
    count_values(false, planned, values)
}

/// Like [`values`], for a member of a batch, before any member is processed further.
pub(super) fn member_values(planned: &Planned, values: usize) -> Result<(), Error> {
    count_values(true, planned, values)
}

fn count_values(in_batch: bool, planned: &Planned, values: usize) -> Result<(), Error> {
    let markers = planned.markers.len();
    if markers == values {
        return Ok(());
    }
    Err(RequestRefusal::Values {
        in_batch,
        markers,
        values,
    }
    .into())
}

// 2. Permissions.

/// Checks the permissions of a plan's command: like Cassandra's `authorize`, before any value is checked.
pub(super) fn permissions(execution: &mut Execution<'_>, plan: &Plan, keyspace: Option<&str>) -> Result<(), Error> {
    permit(execution, plan, keyspace)?;
    match plan {
        Plan::Modify(plan) => Ok(refuse_written(&plan.table)?),
        Plan::Batch(plan) => plan
            .modifications
            .iter()
            .try_for_each(|member| refuse_written(&member.table).map_err(Error::from)),
        Plan::Truncate(table) => Ok(refuse_system(table)?),
        Plan::Auth(_) if !execution.is_of_role() => Err(RoleRefusal::Denied(Denied::Anonymous).into()),
        Plan::Auth(_) | Plan::Select(_) | Plan::Use(_) | Plan::Ddl(_) | Plan::Describe(_) | Plan::Explain(_) => Ok(()),
    }
}

fn permit(execution: &mut Execution<'_>, plan: &Plan, keyspace: Option<&str>) -> Result<(), Error> {
    match plan {
        Plan::Select(plan) => execution.permit(read_action(plan))?,
        Plan::Modify(plan) => execution.permit(write_action(plan))?,
        Plan::Batch(plan) => {
            execution.permit(Action::OfSession)?;
            let mut members = plan.modifications.iter();
            members.try_for_each(|member| execution.permit(write_action(member)))?;
        }
        Plan::Truncate(table) => execution.permit(Action::Truncate(table))?,
        Plan::Explain(plan) => permit(execution, plan, keyspace)?,
        Plan::Ddl(_) if !execution.is_of_role() => execution.permit(Action::OfSession)?,
        Plan::Ddl(statement) => {
            let needs = ddl::needs(statement, keyspace, execution.schema());
            execution.permit(Action::ChangeSchema(&needs))?;
        }
        Plan::Describe(_) => execution.permit(Action::ShowSchema)?,
        // Statements about roles check themselves.
        Plan::Use(_) | Plan::Auth(_) => execution.permit(Action::OfSession)?,
    }
    Ok(())
}

fn read_action(plan: &SelectPlan) -> Action<'_> {
    Action::Read(ReadAction {
        table: &plan.table,
        calls: plan.calls(),
        masked_restricted: plan.masked_restricted(),
        shows_masked: false,
    })
}

fn write_action(plan: &ModifyPlan) -> Action<'_> {
    Action::Write(WriteAction {
        table: &plan.table,
        is_conditional: plan.is_conditional(),
        calls: plan.calls(),
        shows_masked: false,
    })
}

/// Whether a condition that does not hold shows masks.
///
/// Differs: in Cassandra 5.0.9 the answer of a condition that does not hold has the values, whatever the role may see.
pub(super) fn masks_refusal(execution: &Execution<'_>, plan: &ModifyPlan) -> bool {
    plan.returns_masked() && execution.masks(&plan.table)
}

/// Checks that this server is the only one that changes the schema, roles and figures in memory, if they answer a statement.
/// `system.local` and `system.peers` are of the node, so that drivers reach a server that waits for its bucket.
pub(super) fn owned(engine: &Engine, plan: &Plan, consistency: Consistency) -> Result<(), Error> {
    let is_of_catalog = match plan {
        Plan::Select(plan) => {
            let (keyspace, table) = (plan.table.keyspace.as_str(), plan.table.name.as_str());
            let is_of_node = keyspace == "system" && ["local", "peers", "peers_v2"].contains(&table);
            system::is_computed(&plan.table) && !is_of_node
        }
        // A change with IF EXISTS may change nothing, and then asks no store.
        Plan::Describe(_) | Plan::Auth(_) | Plan::Explain(_) | Plan::Use(_) | Plan::Ddl(_) => true,
        Plan::Modify(_) | Plan::Batch(_) | Plan::Truncate(_) => false,
    };
    match is_of_catalog {
        true => Ok(engine.refuse_taken_over(consistency)?),
        false => Ok(()),
    }
}

/// As [`refuse_system`], for a write. Binding refuses those of virtual tables, in other words.
fn refuse_written(table: &Table) -> Result<(), engine::Error> {
    if table.is_virtual { Ok(()) } else { refuse_system(table) }
}

/// Like [`permissions`], for a batch.
pub(super) fn batch_permissions(execution: &mut Execution<'_>, members: &[Arc<ModifyPlan>]) -> Result<(), Error> {
    execution.permit(Action::OfSession)?;
    for member in members {
        execution.permit(write_action(member))?;
        refuse_written(&member.table)?;
    }
    Ok(())
}

// 3. Bound: values and options of the request.

/// Checks a SELECT before its values are bound.
pub(super) fn read_plan(guardrails: &Guardrails, consistency: Consistency, plan: &SelectPlan) -> Result<(), Error> {
    not_at_any(consistency)?;
    Ok(guardrails.select_plan(plan)?)
}

/// Checks that a SELECT which sorts the rows of several partitions is not paged.
pub(super) fn sorted_whole(params: &QueryParams, plan: &SelectPlan, select: &Read) -> Result<(), Error> {
    let pages = params
        .page_size_rows
        .is_some_and(|page| page > 0 && (plan.is_aggregate() || select.partitions != Partitions::Keys(Vec::new())));
    if !pages || !plan.sorts_partitions() {
        return Ok(());
    }
    Err(RequestRefusal::SortedPages.into())
}

/// Checks a change of the schema.
pub(super) fn change(
    guardrails: &Guardrails,
    statement: &ast::Statement,
    schema: &Schema,
    keyspace: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    Ok(guardrails.ddl(statement, schema, keyspace, warnings)?)
}

fn not_at_any(consistency: Consistency) -> Result<(), Error> {
    if consistency == Consistency::Any {
        return Err(RequestRefusal::ReadAtAny.into());
    }
    Ok(())
}
