//! The audit log's description of a statement: type, category, keyspace, scope. Names are those of Cassandra's
//! `AuditLogEntryType`.
//!
//! Pure, and by the text alone: a refused statement has no plan. Only a server with an audit log uses it.

use grammar::ast::{DropKind, Name, QualifiedName, Statement};

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

/// A statement as the audit log describes it.
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
    /// Describes a text in a session with this keyspace. `None` means the text is no statement.
    #[must_use]
    pub fn of(text: &str, keyspace: Option<&str>) -> Option<Self> {
        let statement = grammar::parse(text).ok()?;
        let (kind, category, subject) = about(&statement);
        let (named, scope) = match subject {
            Subject::Nothing => (None, None),
            Subject::Keyspace(name) => (Some(name.as_str()), None),
            Subject::Scope(name) => (
                name.keyspace.as_ref().map(Name::as_str).or(keyspace),
                Some(name.name.as_str()),
            ),
            Subject::Part(name, table) => (
                table.keyspace.as_ref().map(Name::as_str).or(keyspace),
                Some(name.as_str()),
            ),
        };
        Some(Self {
            kind,
            category,
            keyspace: named.map(str::to_owned),
            scope: scope.map(str::to_owned),
        })
    }

    /// The category of a text that begins with the word of a plain read or write, which is enough for most requests.
    /// `None` means only [`Audited::of`] can tell.
    #[must_use]
    pub fn plain_category(text: &str) -> Option<AuditCategory> {
        let text = text.trim_start();
        let word = text.split(|character: char| !character.is_ascii_alphabetic()).next()?;
        let is = |known: &&str| word.eq_ignore_ascii_case(known);
        if is(&"SELECT") {
            return Some(AuditCategory::Query);
        }
        ["INSERT", "UPDATE", "DELETE", "BEGIN"]
            .iter()
            .any(is)
            .then_some(AuditCategory::Dml)
    }
}

enum Subject<'a> {
    Nothing,
    Keyspace(&'a Name),
    Scope(&'a QualifiedName),
    /// A part of a table, with the table.
    Part(&'a Name, &'a QualifiedName),
}

fn about(statement: &Statement) -> (&'static str, AuditCategory, Subject<'_>) {
    use AuditCategory::{Dcl, Dml, Other, Query};
    use Subject::{Keyspace, Nothing, Scope};
    match statement {
        Statement::Select(select) => ("SELECT", Query, Scope(&select.table)),
        // The name of an INSERT in Cassandra.
        Statement::Insert(insert) => ("UPDATE", Dml, Scope(&insert.table)),
        Statement::Update(update) => ("UPDATE", Dml, Scope(&update.table)),
        Statement::Delete(delete) => ("DELETE", Dml, Scope(&delete.table)),
        Statement::Batch(_) => ("BATCH", Dml, Nothing),
        Statement::Use(keyspace) => ("USE_KEYSPACE", Other, Keyspace(keyspace)),
        Statement::Describe(_) => ("DESCRIBE", Other, Nothing),
        Statement::Explain(_) => ("EXPLAIN", Other, Nothing),
        Statement::Grant(grant) if grant.revoke => ("REVOKE", Dcl, Nothing),
        Statement::GrantRole(grant) if grant.revoke => ("REVOKE", Dcl, Nothing),
        Statement::Grant(_) | Statement::GrantRole(_) => ("GRANT", Dcl, Nothing),
        Statement::ListPermissions(_) => ("LIST_PERMISSIONS", Dcl, Nothing),
        Statement::ListRoles(_) => ("LIST_ROLES", Dcl, Nothing),
        Statement::ListUsers => ("LIST_USERS", Dcl, Nothing),
        Statement::CreateRole(_) => ("CREATE_ROLE", Dcl, Nothing),
        Statement::AlterRole(_) => ("ALTER_ROLE", Dcl, Nothing),
        Statement::CreateUser(_) => ("CREATE_USER", Dcl, Nothing),
        Statement::AlterUser(_) => ("ALTER_USER", Dcl, Nothing),
        Statement::DropRole(drop) => (if drop.user { "DROP_USER" } else { "DROP_ROLE" }, Dcl, Nothing),
        Statement::AddIdentity(_) => ("ADD_IDENTITY", Dcl, Nothing),
        Statement::DropIdentity(_) => ("DROP_IDENTITY", Dcl, Nothing),
        ddl => {
            let (kind, subject) = change(ddl);
            (kind, AuditCategory::Ddl, subject)
        }
    }
}

/// A change of the schema.
fn change(statement: &Statement) -> (&'static str, Subject<'_>) {
    use Subject::{Keyspace, Nothing, Part, Scope};
    match statement {
        Statement::Truncate(table) => ("TRUNCATE", Scope(table)),
        Statement::CreateKeyspace(create) => ("CREATE_KEYSPACE", Keyspace(&create.name)),
        Statement::AlterKeyspace(alter) => ("ALTER_KEYSPACE", Keyspace(&alter.name)),
        Statement::DropKeyspace(drop) => ("DROP_KEYSPACE", Keyspace(&drop.name)),
        Statement::CreateTable(create) => ("CREATE_TABLE", Scope(&create.table)),
        Statement::AlterTable(alter) => ("ALTER_TABLE", Scope(&alter.table)),
        Statement::CreateType(create) => ("CREATE_TYPE", Scope(&create.name)),
        Statement::AlterType(alter) => ("ALTER_TYPE", Scope(&alter.name)),
        Statement::CreateIndex(create) => ("CREATE_INDEX", Scope(create.name.as_ref().unwrap_or(&create.table))),
        Statement::CreateView(create) => ("CREATE_VIEW", Scope(&create.name)),
        Statement::AlterView(alter) => ("ALTER_VIEW", Scope(&alter.name)),
        Statement::CreateFunction(create) => ("CREATE_FUNCTION", Scope(&create.name)),
        Statement::CreateAggregate(create) => ("CREATE_AGGREGATE", Scope(&create.name)),
        Statement::DropFunction(drop) if drop.aggregate => ("DROP_AGGREGATE", Scope(&drop.name)),
        Statement::DropFunction(drop) => ("DROP_FUNCTION", Scope(&drop.name)),
        Statement::Drop(drop) => {
            let kind = match drop.kind {
                DropKind::Table => "DROP_TABLE",
                DropKind::Type => "DROP_TYPE",
                DropKind::Index => "DROP_INDEX",
                DropKind::View => "DROP_VIEW",
            };
            (kind, Scope(&drop.name))
        }
        Statement::CreateTrigger(create) => ("CREATE_TRIGGER", Part(&create.name, &create.table)),
        Statement::DropTrigger(drop) => ("DROP_TRIGGER", Part(&drop.name, &drop.table)),
        _ => ("REQUEST", Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_cassandras_names() {
        use AuditCategory::{Dcl, Ddl, Dml, Other, Query};
        for (text, kind, category, keyspace, scope) in [
            ("SELECT * FROM t", "SELECT", Query, Some("ks"), Some("t")),
            ("INSERT INTO a.t (k) VALUES (1)", "UPDATE", Dml, Some("a"), Some("t")),
            ("DELETE FROM t WHERE k = 1", "DELETE", Dml, Some("ks"), Some("t")),
            (
                "BEGIN BATCH INSERT INTO t (k) VALUES (1) APPLY BATCH",
                "BATCH",
                Dml,
                None,
                None,
            ),
            ("TRUNCATE t", "TRUNCATE", Ddl, Some("ks"), Some("t")),
            ("DROP KEYSPACE a", "DROP_KEYSPACE", Ddl, Some("a"), None),
            (
                "CREATE TABLE a.t (k int PRIMARY KEY)",
                "CREATE_TABLE",
                Ddl,
                Some("a"),
                Some("t"),
            ),
            ("DROP INDEX IF EXISTS i", "DROP_INDEX", Ddl, Some("ks"), Some("i")),
            ("USE a", "USE_KEYSPACE", Other, Some("a"), None),
            ("GRANT SELECT ON t TO r", "GRANT", Dcl, None, None),
            ("REVOKE r FROM s", "REVOKE", Dcl, None, None),
            ("DROP USER u", "DROP_USER", Dcl, None, None),
            ("LIST ROLES", "LIST_ROLES", Dcl, None, None),
        ] {
            let expected = Audited {
                kind,
                category,
                keyspace: keyspace.map(str::to_owned),
                scope: scope.map(str::to_owned),
            };
            assert_eq!(Audited::of(text, Some("ks")), Some(expected), "{text}");
            let plain = Audited::plain_category(text);
            assert!(plain.is_none_or(|plain| plain == category), "{text}");
            assert_eq!(plain.is_some(), matches!(category, Dml | Query), "{text}");
        }
        assert_eq!(Audited::of("SELEKT", None), None);
        assert_eq!(Audited::plain_category("/* c */ SELECT * FROM t"), None);
        assert_eq!(Audited::plain_category("selection"), None);
    }
}
