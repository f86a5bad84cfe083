//! DDL: statement + schema → the next schema.
//!
//! [`apply`] is pure: it receives time, UUIDs and storage ids, and returns a new [`Schema`] and the effects outside the
//! schema. The caller persists the difference (`schema::record::changes`), swaps the snapshot, notifies clients, and drops
//! the rows of dropped tables.
//!
//! A statement is validated in Cassandra's order, since it may break several rules and the first is reported: the rules
//! of the parser, then whether the keyspace may be changed at all, then the properties, then each name.
//!
//! All of CQL's DDL is supported, except for the execution of triggers, which run user-supplied classes.
//!
//! Deliberately absent: who has which permission ([`needs`] says which one a statement needs), data (ALTER rewrites no rows: a column id is used again by a column of the same name only).
//! Sources: CQL reference, Data Definition; responses of Apache Cassandra 5.0.9, statement by statement.

mod added_again;
mod alter_table;
mod column_type;
mod compaction;
mod compression;
mod cosmos;
mod error;
mod function;
mod index;
mod index_options;
mod keyspace;
mod mask;
mod needs;
mod options;
mod property;
pub mod refusal;
mod table;
mod user_type;
mod view;
mod view_tests;

use std::sync::Arc;

use grammar::ast::{Drop, DropKind, QualifiedName, Statement, Type};

pub use self::cosmos::with_payload;
pub use self::error::DdlError;
pub use self::needs::{functions, needs};
pub use self::options::NAMES as TABLE_PROPERTIES;
pub use self::refusal::Code;
use self::refusal::{FunctionRefusal, NameRefusal};
use crate::command::{SchemaContext, SchemaIntent, SchemaOutcome};
use crate::roles::Need;
use crate::schema::{Keyspace, Schema, system};
use helenus_types::types::CqlType;

/// A DDL statement as an intent: applied to the schema that is current when the change is made.
#[derive(Clone, Debug)]
pub struct DdlIntent {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The keyspace of unqualified names; `None` means that every name is qualified.
    pub session_keyspace: Option<Arc<str>>,
    /// Whether columns may have masks.
    pub masks_columns: bool,
}

impl SchemaIntent for DdlIntent {
    type Refusal = DdlError;

    fn apply(&self, schema: &Schema, context: &SchemaContext) -> Result<SchemaOutcome, DdlError> {
        let context = SchemaContext {
            masks_columns: self.masks_columns,
            ..context.clone()
        };
        apply(&self.statement, self.session_keyspace.as_deref(), schema, &context)
    }

    fn needs(&self, schema: &Schema) -> Vec<Need> {
        needs(&self.statement, self.session_keyspace.as_deref(), schema)
    }
}

/// Applies a DDL statement to a schema. Other statements leave it unchanged.
///
/// # Errors
/// The statement is refused; see [`DdlError`].
pub fn apply(
    statement: &Statement,
    session_keyspace: Option<&str>,
    schema: &Schema,
    context: &SchemaContext,
) -> Result<SchemaOutcome, DdlError> {
    let ddl = Ddl {
        schema,
        session_keyspace,
        context,
    };
    match statement {
        Statement::CreateKeyspace(statement) => keyspace::create(&ddl, statement),
        Statement::AlterKeyspace(statement) => keyspace::alter(&ddl, statement),
        Statement::DropKeyspace(statement) => keyspace::drop(&ddl, statement),
        Statement::CreateTable(statement) => table::create(&ddl, statement),
        Statement::AlterTable(statement) => alter_table::alter(&ddl, statement),
        Statement::CreateType(statement) => user_type::create(&ddl, statement),
        Statement::AlterType(statement) => user_type::alter(&ddl, statement),
        Statement::CreateIndex(statement) => index::create(&ddl, statement),
        Statement::CreateView(statement) => view::create(&ddl, statement),
        Statement::AlterView(statement) => view::alter(&ddl, statement),
        Statement::CreateFunction(statement) => function::create(&ddl, statement),
        Statement::CreateAggregate(statement) => function::create_aggregate(&ddl, statement),
        Statement::DropFunction(statement) => function::drop(&ddl, statement),
        Statement::Drop(statement) => drop(&ddl, statement),
        Statement::CreateTrigger(statement) => index::create_trigger(&ddl, statement),
        Statement::DropTrigger(statement) => index::drop_trigger(&ddl, statement),
        _ => Ok(SchemaOutcome::unchanged(schema)),
    }
}

/// DROP of a table, type, index or view.
fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<SchemaOutcome, DdlError> {
    match statement.kind {
        DropKind::Table => table::drop(ddl, statement),
        DropKind::Type => user_type::drop(ddl, statement),
        DropKind::Index => index::drop(ddl, statement),
        DropKind::View => view::drop(ddl, statement),
    }
}

/// The types of a function's arguments.
///
/// # Errors
/// There is no such keyspace, or no such type in it.
pub fn argument_types(schema: &Schema, keyspace: &str, written: &[Type]) -> Result<Vec<CqlType>, DdlError> {
    let Some(found) = schema.keyspace(keyspace) else {
        return Err(FunctionRefusal::KeyspaceMissing(keyspace.to_owned()).into());
    };
    let types = written.iter().map(|ty| column_type::resolve_frozen(ty, found));
    Ok(types.collect::<Result<_, _>>()?)
}

/// The permission that a statement needs on its resource, for the rule on system keyspaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Create,
    Alter,
    Drop,
}

impl Right {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
        }
    }
}

/// The context of a statement.
struct Ddl<'a> {
    schema: &'a Schema,
    session_keyspace: Option<&'a str>,
    context: &'a SchemaContext,
}

impl<'a> Ddl<'a> {
    /// The keyspace of a name: its own, or the session's.
    fn keyspace_name(&self, name: &'a QualifiedName) -> Result<&'a str, DdlError> {
        name.keyspace
            .as_ref()
            .map(|keyspace| keyspace.as_str())
            .or(self.session_keyspace)
            .ok_or_else(|| NameRefusal::NoKeyspace.into())
    }

    fn keyspace(&self, name: &str) -> Result<&'a Keyspace, DdlError> {
        self.schema
            .keyspace(name)
            .map(AsRef::as_ref)
            .ok_or_else(|| NameRefusal::KeyspaceMissing(name.to_owned()).into())
    }

    /// A named object, with its keyspace; `None` means that either is missing.
    fn find<T>(&self, keyspace: &str, of: impl FnOnce(&'a Keyspace) -> Option<&'a T>) -> Option<(&'a Keyspace, &'a T)> {
        let keyspace = self.schema.keyspace(keyspace)?;
        Some((keyspace, of(keyspace)?))
    }

    /// The outcome of an ALTER or DROP of a missing object.
    fn absent(&self, if_exists: bool, complaint: impl Into<DdlError>) -> Result<SchemaOutcome, DdlError> {
        if if_exists {
            Ok(SchemaOutcome::unchanged(self.schema))
        } else {
            Err(complaint.into())
        }
    }

    /// The outcome of CREATE for a table or view whose name exists.
    fn table_exists(&self, if_not_exists: bool, keyspace: &str, table: &str) -> Result<SchemaOutcome, DdlError> {
        if if_not_exists {
            Ok(SchemaOutcome::unchanged(self.schema))
        } else {
            Err(DdlError::AlreadyExists {
                keyspace: keyspace.to_owned(),
                table: table.to_owned(),
            })
        }
    }

    /// Refuses changes of system keyspaces. `resource` is the permission's resource, e.g. `table system_auth.roles`.
    fn authorize(keyspace: &str, right: Right, resource: &str) -> Result<(), DdlError> {
        if system::is_local(keyspace) {
            return Err(NameRefusal::NotModifiable(keyspace.to_owned()).into());
        }
        if system::is_name(keyspace) {
            // Operators may change the replication of a shared system keyspace.
            if right == Right::Alter && resource.starts_with("keyspace ") {
                return Ok(());
            }
            return Err(NameRefusal::Forbidden {
                right: right.word(),
                resource: resource.to_owned(),
            }
            .into());
        }
        Ok(())
    }

    /// The schema with this keyspace replaced.
    fn with(&self, keyspace: Keyspace) -> Schema {
        self.schema.with_keyspace(keyspace)
    }
}
