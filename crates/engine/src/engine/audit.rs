//! The audit log, as the engine sees it: an entry says who asked for what and how it ended.
//!
//! ```text
//! command ─ Audited::of_… ─┐
//! a front end's text ──────┴─ Subject ─→ AuditEntry ─→ AuditLog, which selects, hides secrets and writes
//! ```
//! A command describes itself. A front end with a language of its own gives a [`Subject`] that adds the text.
//!
//! Names of types and categories are those of Cassandra's `AuditLogEntryType`.

use std::fmt;
use std::net::SocketAddr;

use helenus_schema::command::{ChangeKind, ChangeTarget, SchemaChange, WriteVerb};
use helenus_schema::schema::Table;

/// A group of types, by which the records of an audit log are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditCategory {
    /// Logins, and actions that a role was not permitted.
    Auth,
    /// Changes of the schema, TRUNCATE.
    Ddl,
    /// Roles and permissions.
    Dcl,
    /// INSERT, UPDATE, DELETE, BATCH.
    Dml,
    /// SELECT.
    Query,
    /// Statements that are prepared.
    Prepare,
    /// Failures for other reasons than a missing permission.
    Error,
    /// USE, DESCRIBE, EXPLAIN.
    Other,
}

impl AuditCategory {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Auth,
        Self::Ddl,
        Self::Dcl,
        Self::Dml,
        Self::Query,
        Self::Prepare,
        Self::Error,
        Self::Other,
    ];

    /// Cassandra's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "AUTH",
            Self::Ddl => "DDL",
            Self::Dcl => "DCL",
            Self::Dml => "DML",
            Self::Query => "QUERY",
            Self::Prepare => "PREPARE",
            Self::Error => "ERROR",
            Self::Other => "OTHER",
        }
    }
}

/// What was asked, as the audit log describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Its type.
    pub kind: &'static str,
    /// The category of the type.
    pub category: AuditCategory,
    /// The keyspace that it is about. `None` means no single one.
    pub keyspace: Option<String>,
    /// The table, view, type, index, function or trigger that it is about. `None` means no single one.
    pub scope: Option<String>,
}

impl Audited {
    fn on_table(kind: &'static str, category: AuditCategory, table: &Table) -> Self {
        Self {
            kind,
            category,
            keyspace: Some(table.keyspace.clone()),
            scope: Some(table.name.clone()),
        }
    }

    /// A read.
    pub(super) fn of_read(table: &Table) -> Self {
        Self::on_table("SELECT", AuditCategory::Query, table)
    }

    /// A write.
    pub(super) fn of_write(verb: WriteVerb, table: &Table) -> Self {
        // The name of an INSERT in Cassandra, too.
        let kind = match verb {
            WriteVerb::Insert | WriteVerb::Update => "UPDATE",
            WriteVerb::Delete => "DELETE",
        };
        Self::on_table(kind, AuditCategory::Dml, table)
    }

    /// A batch.
    pub(super) const fn of_batch() -> Self {
        Self {
            kind: "BATCH",
            category: AuditCategory::Dml,
            keyspace: None,
            scope: None,
        }
    }

    /// A table is emptied.
    pub(super) fn of_truncate(table: &Table) -> Self {
        Self::on_table("TRUNCATE", AuditCategory::Ddl, table)
    }

    /// A change of the schema. `None` means that it has changed nothing, or not yet.
    pub(super) fn of_change(change: Option<&SchemaChange>) -> Self {
        let kind = match change.map(|change| (change.kind, change.target)) {
            None => "REQUEST",
            Some((ChangeKind::Created, ChangeTarget::Keyspace)) => "CREATE_KEYSPACE",
            Some((ChangeKind::Created, ChangeTarget::Table)) => "CREATE_TABLE",
            Some((ChangeKind::Created, ChangeTarget::Type)) => "CREATE_TYPE",
            Some((ChangeKind::Created, ChangeTarget::Function)) => "CREATE_FUNCTION",
            Some((ChangeKind::Created, ChangeTarget::Aggregate)) => "CREATE_AGGREGATE",
            Some((ChangeKind::Updated, ChangeTarget::Keyspace)) => "ALTER_KEYSPACE",
            Some((ChangeKind::Updated, ChangeTarget::Table)) => "ALTER_TABLE",
            Some((ChangeKind::Updated, ChangeTarget::Type)) => "ALTER_TYPE",
            Some((ChangeKind::Updated, ChangeTarget::Function)) => "CREATE_FUNCTION",
            Some((ChangeKind::Updated, ChangeTarget::Aggregate)) => "CREATE_AGGREGATE",
            Some((ChangeKind::Dropped, ChangeTarget::Keyspace)) => "DROP_KEYSPACE",
            Some((ChangeKind::Dropped, ChangeTarget::Table)) => "DROP_TABLE",
            Some((ChangeKind::Dropped, ChangeTarget::Type)) => "DROP_TYPE",
            Some((ChangeKind::Dropped, ChangeTarget::Function)) => "DROP_FUNCTION",
            Some((ChangeKind::Dropped, ChangeTarget::Aggregate)) => "DROP_AGGREGATE",
        };
        Self {
            kind,
            category: AuditCategory::Ddl,
            keyspace: change.map(|change| change.keyspace.clone()),
            scope: change.map(|change| change.name.clone()).filter(|name| !name.is_empty()),
        }
    }
}

/// The text of a request, with its secrets.
#[derive(Clone, Copy, Debug)]
pub enum AuditText<'a> {
    /// There is none.
    None,
    /// One text.
    One(&'a str),
    /// The texts of a batch's members.
    Members(&'a [String]),
}

/// The subject of an entry. Asked only if the entry may be written, since to describe a text costs as much as to parse it.
pub trait Subject: Sync {
    /// The category, if that is known without more ado.
    fn category(&self) -> Option<AuditCategory>;

    /// The description. `None` means that it is no statement.
    fn describe(&self) -> Option<Audited>;

    /// The text.
    fn text(&self) -> AuditText<'_>;
}

impl Subject for Audited {
    fn category(&self) -> Option<AuditCategory> {
        Some(self.category)
    }

    fn describe(&self) -> Option<Audited> {
        Some(self.clone())
    }

    fn text(&self) -> AuditText<'_> {
        AuditText::None
    }
}

/// Why a request failed.
#[derive(Clone, Copy)]
pub struct AuditFailure<'a> {
    /// Whether the role was not permitted it.
    pub is_denied: bool,
    /// The error.
    pub error: &'a dyn fmt::Display,
}

/// One request.
#[derive(Clone, Copy)]
pub struct AuditEntry<'a> {
    /// The client.
    pub client: SocketAddr,
    /// Its role. `None` means that no login is required.
    pub user: Option<&'a str>,
    /// What it asked for.
    pub subject: &'a dyn Subject,
    /// Why it failed. `None` means that it did not.
    pub failure: Option<AuditFailure<'a>>,
}

/// Where entries go.
pub trait AuditLog: Send + Sync {
    /// Selects and writes an entry. Waits for nothing.
    fn record(&self, entry: AuditEntry<'_>);
}
