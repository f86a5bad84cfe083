//! The audit log's description of a text: type, category, keyspace, scope. Names are those of Cassandra's `AuditLogEntryType`.
//!
//! Pure, and by the text alone: a refused statement has no plan. Only a server with an audit log uses it.

use grammar::ast::{DropKind, Name, QualifiedName, Statement};

use helenus_engine::engine::audit::{AuditCategory, AuditText, Audited, Subject};

/// A text in a session with a keyspace, as a subject of the audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditedStatement<'a> {
    /// The text.
    pub text: &'a str,
    /// The keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
}

impl Subject for AuditedStatement<'_> {
    fn category(&self) -> Option<AuditCategory> {
        plain_category(self.text)
    }

    fn describe(&self) -> Option<Audited> {
        describe(self.text, self.keyspace)
    }

    fn text(&self) -> AuditText<'_> {
        AuditText::One(self.text)
    }
}

/// A text that is prepared.
#[derive(Clone, Copy, Debug)]
pub struct AuditedPrepare<'a>(pub AuditedStatement<'a>);

impl Subject for AuditedPrepare<'_> {
    fn category(&self) -> Option<AuditCategory> {
        Some(AuditCategory::Prepare)
    }

    fn describe(&self) -> Option<Audited> {
        let audited = self.0.describe()?;
        Some(Audited {
            kind: "PREPARE_STATEMENT",
            category: AuditCategory::Prepare,
            ..audited
        })
    }

    fn text(&self) -> AuditText<'_> {
        self.0.text()
    }
}

/// A BATCH message, with the texts of its members.
#[derive(Clone, Debug)]
pub struct AuditedBatch(pub Vec<String>);

impl Subject for AuditedBatch {
    fn category(&self) -> Option<AuditCategory> {
        Some(AuditCategory::Dml)
    }

    fn describe(&self) -> Option<Audited> {
        Some(Audited {
            kind: "BATCH",
            category: AuditCategory::Dml,
            keyspace: None,
            scope: None,
        })
    }

    fn text(&self) -> AuditText<'_> {
        AuditText::Members(&self.0)
    }
}

/// Whether a text is a statement.
#[must_use]
pub fn is_statement(text: &str) -> bool {
    grammar::parse(text).is_ok()
}

/// Describes a text in a session with this keyspace. `None` means the text is no statement.
fn describe(text: &str, keyspace: Option<&str>) -> Option<Audited> {
    let statement = grammar::parse(text).ok()?;
    let (kind, category, subject) = about(&statement);
    let (named, scope) = match subject {
        Object::Nothing => (None, None),
        Object::Keyspace(name) => (Some(name.as_str()), None),
        Object::Scope(name) => (
            name.keyspace.as_ref().map(Name::as_str).or(keyspace),
            Some(name.name.as_str()),
        ),
        Object::Part(name, table) => (
            table.keyspace.as_ref().map(Name::as_str).or(keyspace),
            Some(name.as_str()),
        ),
    };
    Some(Audited {
        kind,
        category,
        keyspace: named.map(str::to_owned),
        scope: scope.map(str::to_owned),
    })
}

/// The category of a text that begins with the word of a plain read or write, which is enough for most requests.
/// `None` means only [`describe`] can tell.
fn plain_category(text: &str) -> Option<AuditCategory> {
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

/// The object of a statement.
enum Object<'a> {
    Nothing,
    Keyspace(&'a Name),
    Scope(&'a QualifiedName),
    /// A part of a table, with the table.
    Part(&'a Name, &'a QualifiedName),
}

fn about(statement: &Statement) -> (&'static str, AuditCategory, Object<'_>) {
    use AuditCategory::{Dcl, Dml, Other, Query};
    use Object::{Keyspace, Nothing, Scope};
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
fn change(statement: &Statement) -> (&'static str, Object<'_>) {
    use Object::{Keyspace, Nothing, Part, Scope};
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
            assert_eq!(describe(text, Some("ks")), Some(expected), "{text}");
            let plain = plain_category(text);
            assert!(plain.is_none_or(|plain| plain == category), "{text}");
            assert_eq!(plain.is_some(), matches!(category, Dml | Query), "{text}");
        }
        assert_eq!(describe("SELEKT", None), None);
        assert_eq!(plain_category("/* c */ SELECT * FROM t"), None);
        assert_eq!(plain_category("selection"), None);
    }
}
