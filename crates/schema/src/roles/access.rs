//! What a command needs of its role, and why a role is refused. Texts are Cassandra's.

use std::fmt;
use std::net::IpAddr;

use super::{Permission, Resource};
use helenus_types::types::inet_text;

/// A permission on a resource that a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The permission.
    pub permission: Permission,
    /// The resource; a permission on one of its parents is enough.
    pub resource: Resource,
}

impl Need {
    /// This permission on this resource.
    #[must_use]
    pub const fn new(permission: Permission, resource: Resource) -> Self {
        Self { permission, resource }
    }
}

/// Why a role with the right password or certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLogin {
    /// It may not log in.
    #[error("{0} is not permitted to log in")]
    NotPermitted(String),
    /// It may not be used from this address.
    #[error("You do not have access from this IP {}", inet_text(.0.to_canonical()))]
    Address(IpAddr),
    /// It may not use this data center.
    #[error("You do not have access to this datacenter ({0})")]
    DataCenter(String),
}

/// Why a role may not execute a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The client has not logged in.
    Anonymous,
    /// The role may not use this data center, or not from the client's address.
    NoAccess(NoLogin),
    /// The role lacks a permission.
    Lacks {
        /// The role.
        role: String,
        /// What it lacks.
        need: Need,
    },
    /// The role may neither see the values of these columns with masks nor restrict them.
    RestrictsMasked {
        /// The role.
        role: String,
        /// The table or view, with its keyspace.
        table: String,
        /// The columns.
        columns: Vec<String>,
    },
}

impl std::error::Error for Denied {}

impl fmt::Display for Denied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => out.write_str("You have to be logged in and not anonymous to perform this request"),
            Self::NoAccess(refused) => write!(out, "{refused}"),
            Self::Lacks { role, need } => write!(
                out,
                "User {role} has no {} permission on {} or any of its parents",
                need.permission.name(),
                need.resource
            ),
            Self::RestrictsMasked { role, table, columns } => write!(
                out,
                "User {role} has no UNMASK nor SELECT_MASKED permission on table {table}, cannot query masked columns [{}]",
                columns.join(", ")
            ),
        }
    }
}
