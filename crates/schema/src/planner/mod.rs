//! The `planner` module: statement + schema → [`Plan`]; plan + values → a [`command`](crate::command) for the engine.
//!
//! Both steps are pure. [`plan`] resolves names, types markers and validates restrictions, once for each prepared
//! statement. Binding inserts the values and returns keys and byte ranges, so the engine never handles terms or markers.
//! Storage of rows and anything asynchronous are deliberately absent.
//!
//! ```text
//! ast::Statement ─ plan ─→ Planned { plan, markers, result } ─ bind(values) ─→ Read | Write | Batch
//!     typing/ function.rs        a term and its receiver     → TypedTerm (term.rs)
//!     relation.rs merge.rs validate.rs  WHERE                  → Restrictions, validated in Cassandra's order
//!     index.rs                   the table's indexes         → needs filtering or not, index lookups
//!     restrict.rs range.rs         Restrictions + values       → partition keys, clustering keys and ranges, filters
//!     selection.rs select.rs     SELECT clause and the rest  → Selection, SelectPlan
//!     rules.rs                   a statement in the profile cosmos → in Cassandra's terms, or refused
//!     explain.rs                 a command                   → its stages, for people
//!     modify.rs operation.rs condition.rs json.rs batch.rs   → ModifyPlan, BatchPlan
//! ```
//!
//! Invariants: a plan refers to columns by their position in the table that it was planned for. It holds that table, so
//! it stays meaningful after a schema change; the plan cache then plans again. Every message is that of Cassandra
//! 5.0.9, observed on a running node.

use std::sync::Arc;

use grammar::ast::{self, QualifiedName, Statement};

mod ann;
pub mod batch;
mod condition;
pub mod ddl;
mod entities;
mod error;
pub mod explain;
mod feed;
mod function;
#[cfg(test)]
mod golden_tests;
mod guardrails;
mod index;
mod json;
mod key;
mod markers;
mod merge;
mod modify;
mod operation;
mod range;
mod rank;
mod refusal;
mod relation;
mod restrict;
mod restriction;
pub mod rules;
mod select;
mod selection;
mod term;
#[cfg(test)]
mod tests;
mod text;
mod typing;
mod using;
mod validate;
mod value;
#[cfg(test)]
mod virtual_tests;

pub use batch::BatchPlan;
pub use error::Error;
pub use key::KEY_BYTES_MAX;
pub use key::partition_key;
pub use markers::{MarkerSpec, arrange};
pub use modify::ModifyPlan;
pub use refusal::{
    AnnRefusal, BatchRefusal, BoundRefusal, ConditionRefusal, LiteralPart, ModifyRefusal, NameRefusal,
    OperationRefusal, RestrictionRefusal, SelectRefusal, SelectionRefusal, TermRefusal, Unsupported, ValueRefusal,
};
pub use select::SelectPlan;
pub use selection::mask_calls;
pub use using::TTL_SECONDS_MAX;

use crate::command::ResultColumn;
use markers::Markers;
use typing::TypeChecker;

use crate::schema::{Schema, Table};

/// A planned statement, ready to be bound any number of times.
#[derive(Clone, Debug)]
pub enum Plan {
    /// SELECT.
    Select(Arc<SelectPlan>),
    /// INSERT, UPDATE, DELETE.
    Modify(Arc<ModifyPlan>),
    /// BATCH.
    Batch(Arc<BatchPlan>),
    /// TRUNCATE of this table.
    Truncate(Arc<Table>),
    /// USE of this keyspace, which exists.
    Use(String),
    /// A schema change; `schema` and [`ddl`] execute it.
    Ddl(Arc<Statement>),
    /// DESCRIBE.
    Describe(Arc<ast::Describe>),
    /// EXPLAIN of this plan.
    Explain(Box<Plan>),
    /// Roles and permissions.
    Auth(Arc<Statement>),
}

impl Plan {
    /// Whether it calls user-defined functions.
    #[must_use]
    pub fn calls_functions(&self) -> bool {
        match self {
            Self::Select(plan) => !plan.calls().is_empty(),
            Self::Modify(plan) => !plan.calls().is_empty(),
            Self::Batch(plan) => plan.modifications.iter().any(|member| !member.calls().is_empty()),
            _ => false,
        }
    }
}

/// The columns of a result, as PREPARED and Rows describe them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMetadata {
    /// The table's keyspace.
    pub keyspace: String,
    /// The table.
    pub table: String,
    /// Its columns.
    pub columns: Arc<Vec<ResultColumn>>,
}

/// A planned statement and the metadata that PREPARE returns for it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Bind markers, in order of writing.
    pub markers: Arc<Vec<MarkerSpec>>,
    /// For each partition key column, the marker that supplies its value; empty if some column has none.
    pub partition_key_markers: Vec<u16>,
    /// The result columns of a SELECT or EXPLAIN; `None` means that the statement returns no rows.
    pub result: Option<Arc<ResultMetadata>>,
    /// The tables that it reads or writes.
    pub tables: Vec<Arc<Table>>,
}

/// Maximum number of types in result columns and markers together, counting the fields that metadata spells out.
const METADATA_PARTS_MAX: usize = 100_000;

impl Planned {
    /// Refuses a statement whose metadata is too large.
    ///
    /// # Errors
    ///
    /// The types have more parts than a response may spell out.
    pub fn check_parts(&self) -> Result<(), Error> {
        let columns = self.result.iter().flat_map(|result| result.columns.iter());
        let types = columns
            .map(|column| &column.ty)
            .chain(self.markers.iter().map(|marker| &marker.ty));
        let mut left = METADATA_PARTS_MAX;
        for ty in types {
            left = left
                .checked_sub(ty.parts(left))
                .ok_or(BoundRefusal::TypeParts(METADATA_PARTS_MAX))?;
        }
        Ok(())
    }

    /// Refuses a wrong number of values.
    ///
    /// # Errors
    ///
    /// More or fewer values than markers.
    pub fn check_values(&self, count: usize) -> Result<(), Error> {
        if count == self.markers.len() {
            Ok(())
        } else {
            Err(TermRefusal::ValueCount.into())
        }
    }
}

/// Plans a statement. `session_keyspace` is the keyspace of unqualified names.
///
/// # Errors
///
/// Whatever Cassandra refuses when it prepares a statement, with its message; and [`Error::Unsupported`].
#[expect(clippy::too_many_lines, reason = "one arm for each statement")]
pub fn plan(statement: &Statement, session_keyspace: Option<&str>, schema: &Schema) -> Result<Planned, Error> {
    if let Statement::Explain(explained) = statement {
        let explained = plan(explained, session_keyspace, schema)?;
        refuse_views(&explained.plan, schema)?;
        return Ok(Planned {
            plan: Plan::Explain(Box::new(explained.plan)),
            result: Some(Arc::new(explain::metadata())),
            ..explained
        });
    }
    let mut markers = Markers::of(statement);
    match statement {
        Statement::Select(select) => plan_select(select, session_keyspace, schema, markers),
        Statement::Insert(insert) => {
            let table = table_for_read(schema, session_keyspace, &insert.table)?;
            let plan = modify::insert(&mut typer(schema, &table, &mut markers), &table, insert)?;
            plan.refuse_virtual()?;
            Ok(planned(Plan::Modify(Arc::new(plan)), markers, vec![table], None))
        }
        Statement::Update(update) => {
            let table = table_for_read(schema, session_keyspace, &update.table)?;
            let plan = modify::update(&mut typer(schema, &table, &mut markers), &table, update)?;
            plan.refuse_virtual()?;
            Ok(planned(Plan::Modify(Arc::new(plan)), markers, vec![table], None))
        }
        Statement::Delete(delete) => {
            let table = table_for_read(schema, session_keyspace, &delete.table)?;
            let plan = modify::delete(&mut typer(schema, &table, &mut markers), &table, delete)?;
            plan.refuse_virtual()?;
            Ok(planned(Plan::Modify(Arc::new(plan)), markers, vec![table], None))
        }
        Statement::Batch(batch) => plan_batch(batch, session_keyspace, schema, markers),
        Statement::Truncate(name) => plan_truncate(name, session_keyspace, schema, markers),
        Statement::Use(name) => {
            if !schema.keyspaces.contains_key(name.as_str()) {
                return Err(NameRefusal::UseOfMissing(name.as_str().to_owned()).into());
            }
            Ok(planned(Plan::Use(name.as_str().to_owned()), markers, Vec::new(), None))
        }
        Statement::Describe(describe) => Ok(planned(
            Plan::Describe(Arc::new(describe.clone())),
            markers,
            Vec::new(),
            None,
        )),
        Statement::CreateKeyspace(_)
        | Statement::AlterKeyspace(_)
        | Statement::DropKeyspace(_)
        | Statement::CreateTable(_)
        | Statement::AlterTable(_)
        | Statement::CreateType(_)
        | Statement::AlterType(_)
        | Statement::CreateIndex(_)
        | Statement::CreateView(_)
        | Statement::AlterView(_)
        | Statement::CreateFunction(_)
        | Statement::CreateAggregate(_)
        | Statement::DropFunction(_)
        | Statement::Drop(_)
        | Statement::CreateTrigger(_)
        | Statement::DropTrigger(_) => Ok(planned(
            Plan::Ddl(Arc::new(statement.clone())),
            markers,
            Vec::new(),
            None,
        )),
        Statement::Explain(_)
        | Statement::Grant(_)
        | Statement::GrantRole(_)
        | Statement::ListPermissions(_)
        | Statement::ListRoles(_)
        | Statement::ListUsers
        | Statement::CreateRole(_)
        | Statement::AlterRole(_)
        | Statement::CreateUser(_)
        | Statement::AlterUser(_)
        | Statement::DropRole(_)
        | Statement::AddIdentity(_)
        | Statement::DropIdentity(_) => Ok(planned(
            Plan::Auth(Arc::new(statement.clone())),
            markers,
            Vec::new(),
            None,
        )),
    }
}

fn plan_select(
    select: &ast::Select,
    session_keyspace: Option<&str>,
    schema: &Schema,
    mut markers: Markers,
) -> Result<Planned, Error> {
    let table = table_for_read(schema, session_keyspace, &select.table)?;
    let mut typer = typer(schema, &table, &mut markers);
    let plan = Arc::new(select::select(&mut typer, &table, select)?);
    let result = ResultMetadata {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        columns: Arc::clone(plan.columns()),
    };
    let result = Some(Arc::new(result));
    Ok(planned(Plan::Select(plan), markers, vec![table], result))
}

fn plan_batch(
    batch: &ast::Batch,
    session_keyspace: Option<&str>,
    schema: &Schema,
    mut markers: Markers,
) -> Result<Planned, Error> {
    let mut typer = TypeChecker {
        schema,
        keyspace: Arc::from("[batch]"),
        table_name: Arc::from("[batch]"),
        table: None,
        markers: &mut markers,
        calls: typing::CallMemo::default(),
    };
    let plan = batch::batch(&mut typer, schema, session_keyspace, batch)?;
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for modification in &plan.modifications {
        if !tables.iter().any(|table| table.id == modification.table.id) {
            tables.push(Arc::clone(&modification.table));
        }
    }
    Ok(planned(Plan::Batch(Arc::new(plan)), markers, tables, None))
}

/// Refuses a planned write to a materialized view, for which Cassandra looks only after the permissions.
///
/// # Errors
/// The statement writes or truncates a view.
pub fn refuse_views(plan: &Plan, schema: &Schema) -> Result<(), Error> {
    match plan {
        Plan::Modify(plan) => plan.refuse_view(),
        Plan::Batch(batch) => batch.modifications.iter().try_for_each(|member| member.refuse_view()),
        Plan::Truncate(table) if is_view(schema, table) => Err(NameRefusal::TruncateOfView.into()),
        _ => Ok(()),
    }
}

fn plan_truncate(
    name: &QualifiedName,
    session_keyspace: Option<&str>,
    schema: &Schema,
    markers: Markers,
) -> Result<Planned, Error> {
    let table = table_for_read(schema, session_keyspace, name)?;
    if table.is_virtual {
        return Err(NameRefusal::TruncateOfVirtual {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
        }
        .into());
    }
    Ok(planned(Plan::Truncate(Arc::clone(&table)), markers, vec![table], None))
}

fn planned(plan: Plan, markers: Markers, tables: Vec<Arc<Table>>, result: Option<Arc<ResultMetadata>>) -> Planned {
    let count = match tables.as_slice() {
        [table] => table.partition_key_count,
        _ => 0,
    };
    let (markers, partition_key_markers) = markers.finish(count);
    Planned {
        plan,
        markers: Arc::new(markers),
        partition_key_markers,
        result,
        tables,
    }
}

fn typer<'a>(schema: &'a Schema, table: &Arc<Table>, markers: &'a mut Markers) -> TypeChecker<'a> {
    TypeChecker {
        schema,
        keyspace: Arc::from(table.keyspace.as_str()),
        table_name: Arc::from(table.name.as_str()),
        table: Some(Arc::clone(table)),
        markers,
        calls: typing::CallMemo::default(),
    }
}

fn keyspace_of<'n>(session_keyspace: Option<&'n str>, name: &'n QualifiedName) -> Result<&'n str, Error> {
    name.keyspace
        .as_ref()
        .map(ast::Name::as_str)
        .or(session_keyspace)
        .ok_or_else(|| NameRefusal::NoKeyspace.into())
}

fn find_table(schema: &Schema, keyspace: &str, name: &str) -> Result<Arc<Table>, Error> {
    let Some(found) = schema.keyspaces.get(keyspace) else {
        return Err(NameRefusal::KeyspaceMissing(keyspace.to_owned()).into());
    };
    let view = || found.views.get(name).map(|view| &view.table);
    found
        .tables
        .get(name)
        .or_else(view)
        .cloned()
        .ok_or_else(|| NameRefusal::TableMissing(name.to_owned()).into())
}

/// The table or view that a SELECT reads.
fn table_for_read(schema: &Schema, session_keyspace: Option<&str>, name: &QualifiedName) -> Result<Arc<Table>, Error> {
    let keyspace = keyspace_of(session_keyspace, name)?;
    find_table(schema, keyspace, name.name.as_str())
}

/// Whether the table stores a materialized view.
fn is_view(schema: &Schema, table: &Table) -> bool {
    let keyspace = schema.keyspaces.get(&table.keyspace);
    keyspace.is_some_and(|keyspace| keyspace.views.contains_key(&table.name))
}
