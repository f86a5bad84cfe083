//! Roles: who may log in, role membership, and permissions. Plain data; no CQL, no store, no sockets.
//!
//! ```text
//! Role ─ member of ─► Role        a role may do what the roles that it was granted may do
//!   │
//!   └─ grants ─► Resource ─ parent ─► … ─► root     a permission on a resource holds for all below it
//! ```
//! [`Roles`] is an immutable snapshot: a change makes the next one, which shares its structure with the one before.
//! `cql::roles` maps it to the tables of `system_auth`.
//!
//! Source of the rules: measured on Apache Cassandra 5.0.9; `compat/run permissions` measures again.

mod access;
mod cidr;
pub mod password;
mod resource;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use imbl::OrdMap;

pub use self::access::{Denied, Need, NoLogin};
pub use self::cidr::{Cidr, CidrGroups};
pub use self::resource::{Permission, Permissions, Resource, Signature};

/// A role's name.
pub type RoleName = Arc<str>;

/// One role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Whether a client may log in as this role.
    pub can_login: bool,
    /// Whether it is a superuser, which needs no permissions.
    pub is_superuser: bool,
    /// Its password as a bcrypt hash; `None` means that no password is accepted.
    pub salted_hash: Option<String>,
    /// The roles that were granted to it directly.
    pub member_of: BTreeSet<RoleName>,
    /// The data centers that it may use; `None` means all.
    pub data_centers: Option<BTreeSet<String>>,
    /// The groups of addresses from which it may be used; empty means all. `None` means that no statement has named them,
    /// so that all are allowed and no row says so.
    pub cidr_groups: Option<BTreeSet<String>>,
    /// The permissions that were granted to it directly.
    pub grants: BTreeMap<Resource, Permissions>,
}

/// All roles at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// The roles by name.
    pub by_name: OrdMap<RoleName, Arc<Role>>,
    /// The role for each client certificate identity.
    pub identities: OrdMap<String, RoleName>,
    /// The groups of addresses.
    pub cidr_groups: Arc<CidrGroups>,
}

impl Roles {
    /// A role.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.by_name.get(name).map(Arc::as_ref)
    }

    /// Whether there is a role of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// A role and all roles that were granted to it, directly or through others; empty if there is no such role.
    #[must_use]
    pub fn closure(&self, name: &str) -> BTreeMap<&RoleName, &Role> {
        let mut found = BTreeMap::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            let Some((name, role)) = self.by_name.get_key_value(next) else {
                continue;
            };
            if found.insert(name, role.as_ref()).is_none() {
                open.extend(role.member_of.iter().map(AsRef::as_ref));
            }
        }
        found
    }

    /// A role and the roles that were granted to it directly.
    #[must_use]
    pub fn direct(&self, name: &str) -> BTreeMap<&RoleName, &Role> {
        let Some((name, role)) = self.by_name.get_key_value(name) else {
            return BTreeMap::new();
        };
        let granted = role
            .member_of
            .iter()
            .filter_map(|granted| self.by_name.get_key_value(granted));
        std::iter::once((name, role))
            .chain(granted)
            .map(|(name, role)| (name, role.as_ref()))
            .collect()
    }

    /// Whether a role is a superuser, itself or through a granted role.
    #[must_use]
    pub fn is_superuser(&self, name: &str) -> bool {
        match self.get(name) {
            None => false,
            Some(role) if role.is_superuser => true,
            Some(role) if role.member_of.is_empty() => false,
            Some(_) => self.closure(name).values().any(|role| role.is_superuser),
        }
    }

    /// Whether a role has a permission on a resource or on one of its parents. A grant on all keyspaces does not cover
    /// the system keyspaces, as in Cassandra.
    #[must_use]
    pub fn allows(&self, name: &str, permission: Permission, resource: &Resource) -> bool {
        if self.is_superuser(name) {
            return true;
        }
        let roles = self.closure(name);
        let is_of_system = resource.is_of_system();
        let mut chain = resource
            .chain()
            .filter(|of| !is_of_system || *of != Resource::AllKeyspaces);
        chain.any(|of| {
            let mut grants = roles.values().filter_map(|role| role.grants.get(&of));
            grants.any(|granted| granted.contains(permission))
        })
    }

    /// Whether a role may use a data center. A superuser may use every one.
    #[must_use]
    pub fn allows_data_center(&self, name: &str, data_center: &str) -> bool {
        let names = self.get(name).and_then(|role| role.data_centers.as_ref());
        names.is_none_or(|names| names.contains(data_center)) || self.is_superuser(name)
    }

    /// Whether a role may be used from an address. A superuser may from every address, as in Cassandra by default.
    #[must_use]
    pub fn allows_address(&self, name: &str, address: IpAddr) -> bool {
        let role = self.get(name);
        let Some(allowed) = role
            .and_then(|role| role.cidr_groups.as_ref())
            .filter(|groups| !groups.is_empty())
        else {
            return true;
        };
        let is_inside = self
            .cidr_groups
            .of_address(address)
            .is_some_and(|groups| !groups.is_disjoint(allowed));
        is_inside || self.is_superuser(name)
    }

    /// Checks that a role has a permission on a resource or on one of its parents.
    ///
    /// # Errors
    /// [`Denied::Lacks`].
    pub fn check(&self, name: &str, permission: Permission, resource: Resource) -> Result<(), Denied> {
        if self.allows(name, permission, &resource) {
            return Ok(());
        }
        Err(Denied::Lacks {
            role: name.to_owned(),
            need: Need::new(permission, resource),
        })
    }

    /// A copy with this role added or replaced.
    #[must_use]
    pub fn with(&self, name: &str, change: impl FnOnce(&mut Role)) -> Self {
        let mut next = self.clone();
        let mut role = self.get(name).cloned().unwrap_or_default();
        change(&mut role);
        next.by_name.insert(name.into(), Arc::new(role));
        next
    }

    /// A copy with the roles that `change` has changed.
    #[must_use]
    fn with_each(&self, mut change: impl FnMut(&mut Role) -> bool) -> Self {
        let mut next = self.clone();
        for (name, role) in &self.by_name {
            let mut role = Role::clone(role);
            if change(&mut role) {
                next.by_name.insert(Arc::clone(name), Arc::new(role));
            }
        }
        next
    }

    /// A copy without a role, without its memberships and without grants on it.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let of_role = Resource::Role(name.into());
        let mut next = self.with_each(|role| role.member_of.remove(name) | role.grants.remove(&of_role).is_some());
        next.by_name.remove(name);
        let identities = self.identities.iter();
        let kept = identities.filter(|(_, role)| role.as_ref() != name);
        next.identities = kept.map(|(key, role)| (key.clone(), Arc::clone(role))).collect();
        next
    }

    /// A copy without grants on resources that no longer exist.
    #[must_use]
    pub fn without_resources(&self, is_gone: impl Fn(&Resource) -> bool) -> Self {
        self.with_each(|role| {
            let before = role.grants.len();
            role.grants.retain(|resource, _| !is_gone(resource));
            role.grants.len() < before
        })
    }

    /// A copy with permissions granted.
    #[must_use]
    pub fn granted(&self, name: &str, resource: &Resource, permissions: Permissions) -> Self {
        if !self.contains(name) {
            return self.clone();
        }
        self.with(name, |role| {
            let granted = role.grants.entry(resource.clone()).or_default();
            *granted = granted.union(permissions);
        })
    }

    /// A copy with permissions revoked.
    #[must_use]
    pub fn revoked(&self, name: &str, resource: &Resource, permissions: Permissions) -> Self {
        if !self.contains(name) {
            return self.clone();
        }
        self.with(name, |role| {
            if let Some(granted) = role.grants.get_mut(resource) {
                *granted = granted.without(permissions);
            }
            role.grants.retain(|_, granted| !granted.is_empty());
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles() -> Roles {
        let mut roles = Roles::default();
        for name in ["a", "b", "c", "root"] {
            roles = roles.with(name, |role| role.is_superuser = name == "root");
        }
        roles = roles.with("a", |role| role.member_of.extend(["b".into()]));
        roles.with("b", |role| role.member_of.extend(["c".into()]))
    }

    fn table() -> Resource {
        Resource::Table("k".into(), "t".into())
    }

    #[test]
    fn a_permission_comes_from_a_parent_of_the_resource_and_from_a_granted_role() {
        let select = Permissions::of(&[Permission::Select]);
        for on in [
            table(),
            Resource::AllTables("k".into()),
            Resource::Keyspace("k".into()),
            Resource::AllKeyspaces,
        ] {
            for to in ["a", "b", "c"] {
                let roles = roles().granted(to, &on, select);
                assert!(roles.allows("a", Permission::Select, &table()), "{to} {on:?}");
                assert!(!roles.allows("a", Permission::Modify, &table()));
                assert_eq!(roles.allows("c", Permission::Select, &table()), to == "c");
                let revoked = roles.revoked(to, &on, select);
                assert_eq!(revoked, self::roles());
            }
        }
        assert!(!roles().allows("missing", Permission::Select, &table()));
    }

    #[test]
    fn a_superuser_may_do_everything_and_hands_that_on() {
        assert!(roles().allows("root", Permission::Drop, &table()));
        let roles = roles().with("c", |role| role.member_of.extend(["root".into()]));
        assert!(roles.is_superuser("a") && roles.allows("a", Permission::Drop, &table()));
        assert!(!roles.without("root").is_superuser("a"));
    }

    #[test]
    fn a_role_that_is_dropped_leaves_nothing() {
        let granted = roles().granted("a", &Resource::Role("b".into()), Permissions::of(&[Permission::Drop]));
        let dropped = granted.without("b");
        assert_eq!(dropped.get("a"), Some(&Role::default()));
        assert!(!dropped.contains("b"));
    }

    #[test]
    fn a_circle_of_roles_ends() {
        let circle = roles().with("c", |role| role.member_of.extend(["a".into()]));
        assert_eq!(circle.closure("a").len(), 3);
    }
}
