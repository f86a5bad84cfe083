//! Refusals of statements about roles, and missing permissions. Texts are Cassandra's.

use std::fmt;

use helenus_schema::planner::ddl::{Code, DdlError};
use helenus_schema::roles::{Denied, Resource, password};
use helenus_types::wire::response::ErrorCode;

/// Why a statement was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleRefusal {
    /// The session's role may not execute it.
    Denied(Denied),
    /// The role lacks a permission on a role.
    NotPrivileged(String),
    /// SUPERUSER = true by a role that is none.
    CreatesSuperuser,
    /// A superuser is dropped by a role that is none.
    DropsSuperuser,
    /// SUPERUSER of the session's role, or of one that it was granted.
    OwnSuperuser,
    /// SUPERUSER is altered by a role that is no superuser.
    AltersSuperuser,
    /// ACCESS TO DATACENTERS is altered by a role that is no superuser.
    AltersDataCenters,
    /// ACCESS FROM CIDRS is altered by a role that is no superuser.
    AltersCidrs,
    /// An option of the session's own role that is not its password.
    AltersOwn(&'static str),
    /// Roles granted to another role are listed.
    ListsRoles(String),
    /// Permissions of another role are listed. `None` means of all roles.
    ListsPermissions(Option<String>),
    /// CREATE of an existing role.
    Exists(String),
    /// A role that does not exist.
    Missing(String),
    /// A role that does not exist, with the text of ALTER, GRANT and REVOKE.
    MissingRole(String),
    /// A resource that does not exist, with the text of LIST.
    MissingListed(Resource),
    /// A resource that does not exist, with the text of GRANT and REVOKE.
    MissingResource(String),
    /// The keyspace of a table is not known.
    NoKeyspace,
    /// The keyspace of a function is not written: in this place the session's is not used.
    NoKeyspaceOfFunction,
    /// A permission on a built-in function.
    BuiltIn,
    /// The keyspace of a function or the types of its arguments.
    Arguments(Box<DdlError>),
    /// A role's name is empty.
    EmptyName,
    /// ALTER without an option.
    EmptyAlter,
    /// OPTIONS.
    Options,
    /// HASHED PASSWORD that is no hash.
    Hash,
    /// HASHED PASSWORD with a cost that would make logins too slow.
    HashCost,
    /// A role's password was set less than this many milliseconds ago.
    PasswordTooSoon(String, u128),
    /// Data centers that do not exist.
    DataCenters(Vec<String>),
    /// Groups of addresses of which one does not exist, and those that exist.
    CidrGroups(Vec<String>, Vec<String>),
    /// DROP of the session's own role.
    DropsItself,
    /// The first role is, directly or not, a member of the second.
    Member(String, String),
    /// The first role is not a member of the second.
    NoMember(String, String),
    /// None of the permissions has a meaning on the resource.
    NotApplicable(Resource),
    /// GRANT of more than is allowed on a keyspace of the system.
    OnSystem,
    /// ADD IDENTITY of an existing one.
    IdentityExists(String),
    /// DROP IDENTITY of one that does not exist.
    IdentityMissing(String),
    /// ADD IDENTITY to a role that does not exist.
    IdentityRole(String),
}

impl std::error::Error for RoleRefusal {}

impl From<Denied> for RoleRefusal {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl fmt::Display for RoleRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denied) => denied.fmt(out),
            Self::NotPrivileged(role) => write!(
                out,
                "User {role} does not have sufficient privileges to perform the requested operation"
            ),
            Self::CreatesSuperuser => out.write_str("Only superusers can create a role with superuser status"),
            Self::DropsSuperuser => out.write_str("Only superusers can drop a role with superuser status"),
            Self::OwnSuperuser => {
                out.write_str("You aren't allowed to alter your own superuser status or that of a role granted to you")
            }
            Self::AltersSuperuser => out.write_str("Only superusers are allowed to alter superuser status"),
            Self::AltersDataCenters => out.write_str("Only superusers are allowed to alter access to datacenters."),
            Self::AltersCidrs => out.write_str("Only superusers are allowed to alter access from CIDR groups."),
            Self::AltersOwn(option) => write!(out, "You aren't allowed to alter {option}"),
            // With a trailing blank, as in Cassandra.
            Self::ListsRoles(role) => write!(out, "You are not authorized to view roles granted to {role} "),
            Self::ListsPermissions(None) => out.write_str("You are not authorized to view everyone's permissions"),
            Self::ListsPermissions(Some(role)) => {
                write!(out, "You are not authorized to view {role}'s permissions")
            }
            Self::Exists(name) | Self::IdentityExists(name) => write!(out, "{name} already exists"),
            Self::Missing(role) => write!(out, "{role} doesn't exist"),
            Self::MissingRole(role) => write!(out, "Role {role} doesn't exist"),
            Self::MissingListed(resource) => write!(out, "{resource} doesn't exist"),
            Self::MissingResource(resource) => write!(out, "Resource {resource} doesn't exist"),
            Self::NoKeyspace => out
                .write_str("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename"),
            Self::NoKeyspaceOfFunction => {
                out.write_str("In this context function name must be explictly qualified by a keyspace")
            }
            Self::BuiltIn => out.write_str("Altering permissions on builtin functions is not supported"),
            Self::Arguments(error) => error.fmt(out),
            Self::EmptyName => out.write_str("Role name can't be an empty string"),
            Self::EmptyAlter => out.write_str("ALTER [ROLE|USER] can't be empty"),
            Self::Options => out.write_str("org.apache.cassandra.auth.CassandraRoleManager doesn't support OPTIONS"),
            Self::Hash => out.write_str("Invalid hashed password value. Please use jBcrypt."),
            Self::HashCost => write!(
                out,
                "The cost of the hashed password is above {}: comparing would take too long",
                password::COSTS.end()
            ),
            Self::PasswordTooSoon(role, millis) => {
                write!(out, "Password for role {role} can only be changed every {millis}ms.")
            }
            Self::DataCenters(unknown) => write!(
                out,
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                unknown.join(", ")
            ),
            Self::CidrGroups(groups, available) => write!(
                out,
                "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
                groups.join(", "),
                available.join(", ")
            ),
            Self::DropsItself => out.write_str("Cannot DROP primary role for current login"),
            Self::Member(member, of) => write!(out, "{member} is a member of {of}"),
            Self::NoMember(member, of) => write!(out, "{member} is not a member of {of}"),
            Self::NotApplicable(resource) => write!(
                out,
                "Resource type {} does not support any of the requested permissions",
                resource.class()
            ),
            Self::OnSystem => out.write_str(
                "Granting permissions on system keyspaces is strictly limited, this operation is not permitted",
            ),
            Self::IdentityMissing(identity) => write!(out, "identity '{identity}' doesn't exist"),
            Self::IdentityRole(role) => write!(out, "Can not add identity for non-existent role '{role}'"),
        }
    }
}

impl RoleRefusal {
    /// Its code.
    pub(in crate::cql) fn code(&self) -> ErrorCode {
        use RoleRefusal as Is;
        match self {
            Is::Denied(_)
            | Is::NotPrivileged(_)
            | Is::CreatesSuperuser
            | Is::DropsSuperuser
            | Is::OwnSuperuser
            | Is::AltersSuperuser
            | Is::AltersDataCenters
            | Is::AltersCidrs
            | Is::AltersOwn(_)
            | Is::OnSystem
            | Is::ListsRoles(_)
            | Is::ListsPermissions(_) => ErrorCode::Unauthorized,
            Is::NotApplicable(_) => ErrorCode::Syntax,
            Is::Arguments(error) if error.code() == Code::Configuration => ErrorCode::Config,
            Is::Arguments(_) => ErrorCode::Invalid,
            Is::PasswordTooSoon(..) => ErrorCode::Overloaded,
            Is::Exists(_)
            | Is::Missing(_)
            | Is::MissingRole(_)
            | Is::MissingListed(_)
            | Is::MissingResource(_)
            | Is::NoKeyspace
            | Is::NoKeyspaceOfFunction
            | Is::BuiltIn
            | Is::EmptyName
            | Is::EmptyAlter
            | Is::Options
            | Is::Hash
            | Is::HashCost
            | Is::DataCenters(_)
            | Is::CidrGroups(..)
            | Is::DropsItself
            | Is::Member(..)
            | Is::NoMember(..)
            | Is::IdentityExists(_)
            | Is::IdentityMissing(_)
            | Is::IdentityRole(_) => ErrorCode::Invalid,
        }
    }
}
