//! DDL: statement + schema → the next schema.
//!
//! [`apply`] is pure: time, uuids and numbers of the store come in, a new [`Schema`] and what must happen outside it come out. The
//! caller persists the difference (`schema::record::changes`), swaps the snapshot, tells clients, and lets go of dropped rows.
//!
//! A statement is judged in Cassandra's order, since a statement may break several rules and the first is the one reported: what
//! the parser would refuse; whether the keyspace may be changed at all; the properties; then name by name.
//!
//! All of CQL's DDL is understood here, and executed but for triggers, which run classes of users.
//!
//! Deliberately absent: roles and permissions, data (ALTER rewrites no rows: column ids are never used again).
//! Sources: CQL reference, Data Definition; Apache Cassandra 5.0.9 asked statement by statement.

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
mod options;
mod property;
pub mod refusal;
mod table;
mod user_type;
mod view;
mod view_tests;

use std::sync::Arc;

use grammar::ast::{QualifiedName, Statement};

pub use self::cosmos::with_payload;
pub use self::error::DdlError;
pub use self::refusal::Code;
use self::refusal::NameRefusal;
use crate::command::{SchemaContext, SchemaIntent, SchemaOutcome};
use crate::schema::{Keyspace, Schema, system};

/// A DDL statement as an intent: applied to the schema of the moment when the change is made.
#[derive(Clone, Debug)]
pub struct DdlIntent {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The keyspace of unqualified names; `None`: every name has its own.
    pub session_keyspace: Option<Arc<str>>,
    /// Columns may be given masks.
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
}

/// Carries out a DDL statement on a schema. Statements that are none come out with nothing changed.
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
        Statement::Drop(statement) => table::drop(&ddl, statement),
        Statement::CreateTrigger(statement) => index::create_trigger(&ddl, statement),
        Statement::DropTrigger(statement) => index::drop_trigger(&ddl, statement),
        _ => Ok(SchemaOutcome::unchanged(schema)),
    }
}

/// What a statement does to what it names, as the rule about system keyspaces sees it.
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

/// A statement's surroundings.
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

    /// What a statement names, with its keyspace; `None` where either is missing.
    fn find<T>(&self, keyspace: &str, of: impl FnOnce(&'a Keyspace) -> Option<&'a T>) -> Option<(&'a Keyspace, &'a T)> {
        let keyspace = self.schema.keyspace(keyspace)?;
        Some((keyspace, of(keyspace)?))
    }

    /// What an ALTER or DROP comes to where there is nothing of that name.
    fn absent(&self, if_exists: bool, complaint: impl Into<DdlError>) -> Result<SchemaOutcome, DdlError> {
        if if_exists {
            Ok(SchemaOutcome::unchanged(self.schema))
        } else {
            Err(complaint.into())
        }
    }

    /// What the CREATE of a table or view comes to where there is one of that name.
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

    /// Refuses changes of system keyspaces. `resource` is what permissions are about, e.g. `table system_auth.roles`.
    fn authorize(keyspace: &str, right: Right, resource: &str) -> Result<(), DdlError> {
        if system::is_local(keyspace) {
            return Err(NameRefusal::NotModifiable(keyspace.to_owned()).into());
        }
        if system::is_name(keyspace) {
            // How a shared system keyspace is replicated is for its users to say.
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

    /// The schema with a changed keyspace.
    fn with(&self, keyspace: Keyspace) -> Schema {
        self.schema.with_keyspace(keyspace)
    }
}
