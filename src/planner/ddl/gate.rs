//! The one gate for statements that are understood and cannot be carried out.

use grammar::ast::Statement;

/// A statement that is CQL, and that this server does not carry out. `Invalid` in the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{statement} is not supported by Helenus: {reason}")]
pub struct Unsupported {
    /// The statement, e.g. `CREATE TRIGGER`.
    pub statement: &'static str,
    /// Why.
    pub reason: &'static str,
}

const TRIGGERS: &str = "it runs no classes of users";

/// Whether the statement must be refused, and why.
///
/// Differs: Cassandra carries out these, where they are switched on. DROP is let through, so that `IF EXISTS` is answered.
#[must_use]
pub fn not_executed(statement: &Statement) -> Option<Unsupported> {
    let (statement, reason) = match statement {
        Statement::CreateTrigger(_) => ("CREATE TRIGGER", TRIGGERS),
        _ => return None,
    };
    Some(Unsupported { statement, reason })
}
