//! Resources, their parents, and the permissions that each can have.

use std::fmt;
use std::sync::Arc;

use crate::schema::system;
use helenus_types::types::CqlType;

/// What a role may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Permission {
    /// Create objects below the resource.
    Create,
    /// Alter the resource.
    Alter,
    /// Drop the resource.
    Drop,
    /// Read its rows.
    Select,
    /// Write its rows.
    Modify,
    /// Grant and revoke permissions on it.
    Authorize,
    /// Describe it.
    Describe,
    /// Execute it.
    Execute,
    /// See the values of masked columns.
    Unmask,
    /// Restrict masked columns in WHERE.
    SelectMasked,
}

impl Permission {
    /// All, in Cassandra's order.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::Alter,
        Self::Drop,
        Self::Select,
        Self::Modify,
        Self::Authorize,
        Self::Describe,
        Self::Execute,
        Self::Unmask,
        Self::SelectMasked,
    ];

    /// As `system_auth` and messages name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Alter => "ALTER",
            Self::Drop => "DROP",
            Self::Select => "SELECT",
            Self::Modify => "MODIFY",
            Self::Authorize => "AUTHORIZE",
            Self::Describe => "DESCRIBE",
            Self::Execute => "EXECUTE",
            Self::Unmask => "UNMASK",
            Self::SelectMasked => "SELECT_MASKED",
        }
    }

    /// The permission of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u16);

impl Permissions {
    /// These.
    #[must_use]
    pub fn of(permissions: &[Permission]) -> Self {
        Self(
            permissions
                .iter()
                .fold(0, |bits, permission| bits | 1 << *permission as u8),
        )
    }

    /// Whether the set contains this permission.
    #[must_use]
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & 1 << permission as u8 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The difference: these permissions without those.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Each permission, in Cassandra's order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL
            .into_iter()
            .filter(move |permission| self.contains(*permission))
    }
}

/// The object of a permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// All keyspaces.
    AllKeyspaces,
    /// A keyspace.
    Keyspace(Arc<str>),
    /// All tables of a keyspace.
    AllTables(Arc<str>),
    /// A table or view: its keyspace and its name.
    Table(Arc<str>, Arc<str>),
    /// All roles.
    AllRoles,
    /// A role.
    Role(Arc<str>),
    /// All functions.
    AllFunctions,
    /// All functions of a keyspace.
    AllFunctionsIn(Arc<str>),
    /// A user-defined function or aggregate.
    Function(Arc<Signature>),
    /// All MBeans. This server has none, but it stores permissions on them.
    AllMbeans,
}

/// The name of a user-defined function or aggregate, and the types of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name, folded.
    pub name: String,
    /// The classes of its arguments' types, each without `frozen`, separated by `^` as in `system_auth`. As in Cassandra
    /// a class contains the fields of a user-defined type: ALTER TYPE ends the permissions on functions that take it.
    classes: String,
}

impl Signature {
    /// As messages write it: `ks.f(int, list<text>)`.
    fn text(&self) -> String {
        let classes = self.classes.split('^').filter(|class| !class.is_empty());
        let types: Vec<String> = classes
            .map(|class| CqlType::parse_marshal(class).map_or_else(|_| class.to_owned(), |ty| ty.cql_name()))
            .collect();
        format!("{}.{}({})", self.keyspace, self.name, types.join(", "))
    }
}

impl Resource {
    /// A user-defined function or aggregate.
    pub fn function<'t>(keyspace: &str, name: &str, arguments: impl IntoIterator<Item = &'t CqlType>) -> Self {
        let classes: Vec<String> = arguments.into_iter().map(|ty| ty.unfrozen().marshal_name()).collect();
        Self::Function(Arc::new(Signature {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            classes: classes.join("^"),
        }))
    }

    /// A table.
    #[must_use]
    pub fn table(keyspace: &str, table: &str) -> Self {
        Self::Table(keyspace.into(), table.into())
    }

    /// The resource that contains it; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        match self {
            Self::AllKeyspaces | Self::AllRoles | Self::AllFunctions | Self::AllMbeans => None,
            Self::Keyspace(_) => Some(Self::AllKeyspaces),
            Self::AllTables(keyspace) => Some(Self::Keyspace(Arc::clone(keyspace))),
            Self::Table(keyspace, _) => Some(Self::AllTables(Arc::clone(keyspace))),
            Self::Role(_) => Some(Self::AllRoles),
            Self::AllFunctionsIn(_) => Some(Self::AllFunctions),
            Self::Function(of) => Some(Self::AllFunctionsIn(of.keyspace.as_str().into())),
        }
    }

    /// The resource, its parent, and so on up to its root.
    pub fn chain(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// Its keyspace; `None` if it has none.
    #[must_use]
    pub fn keyspace(&self) -> Option<&str> {
        match self {
            Self::Keyspace(keyspace) | Self::AllTables(keyspace) | Self::Table(keyspace, _) => Some(keyspace),
            _ => None,
        }
    }

    /// Whether it is in a system keyspace, virtual ones included.
    #[must_use]
    pub fn is_of_system(&self) -> bool {
        self.keyspace().is_some_and(system::is_name)
    }

    /// The permissions that may be granted on it: Cassandra allows few on its own keyspaces.
    #[must_use]
    pub fn grantable(&self) -> Permissions {
        if self.is_of_system() && !self.keyspace().is_some_and(system::is_virtual) {
            return Permissions::of(&[Permission::Select, Permission::Alter]);
        }
        self.applicable()
    }

    /// The permissions that apply to it.
    #[must_use]
    pub fn applicable(&self) -> Permissions {
        use Permission::{Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask};
        Permissions::of(match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) => {
                &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]
            }
            Self::Table(..) => &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
            Self::AllRoles => &[Create, Alter, Drop, Authorize, Describe],
            Self::Role(_) => &[Alter, Drop, Authorize, Describe],
            Self::AllFunctions | Self::AllFunctionsIn(_) => &[Create, Alter, Drop, Authorize, Execute],
            Self::Function(_) => &[Alter, Drop, Authorize, Execute],
            Self::AllMbeans => &[Select, Modify, Authorize, Describe, Execute],
        })
    }

    /// Its name in `system_auth`, which is Cassandra's: `data/k/t`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::AllKeyspaces => "data".to_owned(),
            Self::Keyspace(keyspace) => format!("data/{keyspace}"),
            Self::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Self::Table(keyspace, table) => format!("data/{keyspace}/{table}"),
            Self::AllRoles => "roles".to_owned(),
            Self::Role(role) => format!("roles/{role}"),
            Self::AllFunctions => "functions".to_owned(),
            Self::AllFunctionsIn(keyspace) => format!("functions/{keyspace}"),
            Self::Function(of) => format!("functions/{}/{}[{}]", of.keyspace, of.name, of.classes),
            Self::AllMbeans => "mbean".to_owned(),
        }
    }

    /// The resource of that name; `None` means that this server does not know it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, rest) = match name.split_once('/') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (name, None),
        };
        Some(match (kind, rest) {
            ("data", None) => Self::AllKeyspaces,
            ("data", Some(path)) => match path.split_once('/') {
                None => Self::Keyspace(path.into()),
                Some((keyspace, "*")) => Self::AllTables(keyspace.into()),
                Some((keyspace, table)) => Self::table(keyspace, table),
            },
            ("roles", None) => Self::AllRoles,
            ("roles", Some(role)) => Self::Role(role.into()),
            ("functions", None) => Self::AllFunctions,
            ("functions", Some(path)) => match path.split_once('/') {
                None => Self::AllFunctionsIn(path.into()),
                Some((keyspace, function)) => {
                    let (name, classes) = function.strip_suffix(']')?.split_once('[')?;
                    Self::Function(Arc::new(Signature {
                        keyspace: keyspace.to_owned(),
                        name: name.to_owned(),
                        classes: classes.to_owned(),
                    }))
                }
            },
            ("mbean", None) => Self::AllMbeans,
            _ => return None,
        })
    }

    /// The Java class that Cassandra's messages print for it.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) | Self::Table(..) => "DataResource",
            Self::AllRoles | Self::Role(_) => "RoleResource",
            Self::AllFunctions | Self::AllFunctionsIn(_) | Self::Function(_) => "FunctionResource",
            Self::AllMbeans => "JMXResource",
        }
    }
}

/// As messages and LIST PERMISSIONS name it: `<table k.t>`.
impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllKeyspaces => out.write_str("<all keyspaces>"),
            Self::Keyspace(keyspace) => write!(out, "<keyspace {keyspace}>"),
            Self::AllTables(keyspace) => write!(out, "<all tables in {keyspace}>"),
            Self::Table(keyspace, table) => write!(out, "<table {keyspace}.{table}>"),
            Self::AllRoles => out.write_str("<all roles>"),
            Self::Role(role) => write!(out, "<role {role}>"),
            Self::AllFunctions => out.write_str("<all functions>"),
            Self::AllFunctionsIn(keyspace) => write!(out, "<all functions in {keyspace}>"),
            Self::Function(of) => write!(out, "<function {}>", of.text()),
            Self::AllMbeans => out.write_str("<all mbeans>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_types::types::Native;

    #[test]
    fn names_read_back() {
        let list = CqlType::List(Arc::new(CqlType::Native(Native::Int))).freeze();
        let function = Resource::function("k", "F", &[list, CqlType::Native(Native::Text)]);
        assert_eq!(function.to_string(), "<function k.F(list<int>, text)>");
        assert_eq!(
            function.name(),
            "functions/k/F[org.apache.cassandra.db.marshal.ListType(org.apache.cassandra.db.marshal.Int32Type)^\
             org.apache.cassandra.db.marshal.UTF8Type]"
        );
        for resource in [
            Resource::AllKeyspaces,
            Resource::Keyspace("k".into()),
            Resource::AllTables("k".into()),
            Resource::table("k", "t"),
            Resource::AllRoles,
            Resource::Role("a/b".into()),
            Resource::AllFunctions,
            Resource::AllFunctionsIn("k".into()),
            Resource::function("k", "f", []),
            function.clone(),
            Resource::AllMbeans,
        ] {
            assert_eq!(Resource::from_name(&resource.name()), Some(resource));
        }
        for name in ["", "other", "functions/k/f", "mbean/a:b=c"] {
            assert_eq!(Resource::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn sets_of_permissions() {
        let set = Permissions::of(&[Permission::Select, Permission::SelectMasked]);
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Permission::Select, Permission::SelectMasked]
        );
        assert!(set.without(set).is_empty());
        for permission in Permission::ALL {
            assert_eq!(Permission::from_name(permission.name()), Some(permission));
        }
    }
}
