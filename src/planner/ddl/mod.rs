//! DDL: statement + schema → the next schema.
//!
//! [`apply`] is pure: time, uuids and numbers of the store come in, a new [`Schema`] and what must happen outside it come out. The
//! caller persists the difference (`schema::record::changes`), swaps the snapshot, tells clients, and lets go of dropped rows.
//!
//! A statement is judged in Cassandra's order, since a statement may break several rules and the first is the one reported: what
//! the parser would refuse; whether the keyspace may be changed at all; the properties; then name by name.
//!
//! All of CQL's DDL is understood here. What cannot be carried out yet is refused at one gate, [`not_executed`], which the caller
//! asks first.
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
mod gate;
mod index;
mod index_options;
mod keyspace;
mod options;
mod property;
mod table;
mod user_type;
mod view;

use grammar::ast::{QualifiedName, Statement};
use uuid::Uuid;

pub use self::cosmos::{PartitionChange, PartitionChangeOf, with_payload};
pub use self::error::DdlError;
pub use self::gate::{Unsupported, not_executed};
use crate::profile::Profile;
use crate::schema::{Keyspace, Schema, StorageId, system};

/// What comes from outside.
#[derive(Clone, Debug)]
pub struct DdlContext {
    /// µs since 1970-01-01 UTC; when dropped columns are said to have been dropped.
    pub now_micros: i64,
    /// The uuid of a new table or view, a version 1 one.
    pub new_id: Uuid,
    /// The number in the store of a new table or view; one that no table has ever had.
    pub storage_id: StorageId,
    /// Data centres and how many nodes each has.
    pub data_centers: Vec<(String, usize)>,
    /// Whose rules are in force.
    pub profile: Profile,
}

/// How something has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// CREATED
    Created,
    /// UPDATED
    Updated,
    /// DROPPED
    Dropped,
}

/// What kind of thing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or materialized view.
    Table,
    /// A user-defined type.
    Type,
    /// A function.
    Function,
    /// An aggregate.
    Aggregate,
}

/// What clients are told: the result of the statement and the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// How.
    pub kind: ChangeKind,
    /// What.
    pub target: ChangeTarget,
    /// Its keyspace, or the keyspace itself.
    pub keyspace: String,
    /// Its name; empty for a keyspace.
    pub name: String,
    /// The CQL types of a function's or aggregate's arguments.
    pub arguments: Vec<String>,
}

/// What a DDL statement comes to.
#[derive(Clone, Debug)]
pub struct DdlOutcome {
    /// The next schema; the same as before if `change` is `None`.
    pub schema: Schema,
    /// `None`: nothing has changed, and the result is Void.
    pub change: Option<SchemaChange>,
    /// To be sent with the result.
    pub warnings: Vec<String>,
    /// Tables whose rows are to be wiped once the next schema is in force.
    pub dropped_storage: Vec<StorageId>,
    /// `storage_id` of the context is in use now.
    pub storage_id_used: bool,
    /// What is to become of a table's physical partitions; the schema is the same then.
    pub partition_change: Option<PartitionChangeOf>,
}

impl DdlOutcome {
    fn unchanged(schema: &Schema) -> Self {
        Self {
            schema: schema.clone(),
            change: None,
            warnings: Vec::new(),
            dropped_storage: Vec::new(),
            storage_id_used: false,
            partition_change: None,
        }
    }

    /// The next schema; no change is reported if it is the same.
    fn changed(
        before: &Schema,
        schema: Schema,
        kind: ChangeKind,
        target: ChangeTarget,
        keyspace: &str,
        name: &str,
    ) -> Self {
        let change = (schema.version != before.version).then(|| SchemaChange {
            kind,
            target,
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            arguments: Vec::new(),
        });
        Self {
            change,
            ..Self::unchanged(&schema)
        }
    }

    fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
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
    context: &DdlContext,
) -> Result<DdlOutcome, DdlError> {
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
        _ => Ok(DdlOutcome::unchanged(schema)),
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
    context: &'a DdlContext,
}

impl<'a> Ddl<'a> {
    /// The keyspace of a name: its own, or the session's.
    fn keyspace_name(&self, name: &'a QualifiedName) -> Result<&'a str, DdlError> {
        name.keyspace
            .as_ref()
            .map(|keyspace| keyspace.as_str())
            .or(self.session_keyspace)
            .ok_or_else(|| {
                DdlError::Invalid(
                    "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename"
                        .to_owned(),
                )
            })
    }

    fn keyspace(&self, name: &str) -> Result<&'a Keyspace, DdlError> {
        self.schema
            .keyspace(name)
            .map(AsRef::as_ref)
            .ok_or_else(|| error::invalid!("Keyspace '{name}' doesn't exist"))
    }

    /// What a statement names, with its keyspace; `None` where either is missing.
    fn find<T>(&self, keyspace: &str, of: impl FnOnce(&'a Keyspace) -> Option<&'a T>) -> Option<(&'a Keyspace, &'a T)> {
        let keyspace = self.schema.keyspace(keyspace)?;
        Some((keyspace, of(keyspace)?))
    }

    /// What an ALTER or DROP comes to where there is nothing of that name.
    fn absent(&self, if_exists: bool, complaint: DdlError) -> Result<DdlOutcome, DdlError> {
        if if_exists {
            Ok(DdlOutcome::unchanged(self.schema))
        } else {
            Err(complaint)
        }
    }

    /// What the CREATE of a table or view comes to where there is one of that name.
    fn table_exists(&self, if_not_exists: bool, keyspace: &str, table: &str) -> Result<DdlOutcome, DdlError> {
        if if_not_exists {
            Ok(DdlOutcome::unchanged(self.schema))
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
            return Err(DdlError::Unauthorized(format!(
                "{keyspace} keyspace is not user-modifiable."
            )));
        }
        if system::is_name(keyspace) {
            // How a shared system keyspace is replicated is for its users to say.
            if right == Right::Alter && resource.starts_with("keyspace ") {
                return Ok(());
            }
            return Err(DdlError::Unauthorized(format!("Cannot {} <{resource}>", right.word())));
        }
        Ok(())
    }

    /// The schema with a changed keyspace.
    fn with(&self, keyspace: Keyspace) -> Schema {
        self.schema.with_keyspace(keyspace)
    }
}
