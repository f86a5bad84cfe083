//! Roles as rows of `system_auth`, as in Cassandra, so that tools find them.
//!
//! | table | row |
//! | --- | --- |
//! | `roles` | role: can_login, is_superuser, member_of, salted_hash |
//! | `role_members` | role, member: the inverse of `member_of` |
//! | `role_permissions` | role, resource: permissions |
//! | `resource_role_permissons_index` | resource, role: the inverse |
//! | `network_permissions` | role: dcs; no row means all data centers |
//! | `identity_to_role` | identity: role |
//! | `cidr_permissions` | role: cidr_groups; an empty set or no row means all addresses |
//! | `cidr_groups` | cidr_group: cidrs |
//!
//! The second and the fourth are not read back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use helenus_schema::roles::{Cidr, CidrGroups, Permission, Permissions, Resource, Role, RoleName, Roles};

/// The queries that read roles back, in the order of [`load`]'s arguments.
pub(in crate::cql) const QUERIES: [&str; 6] = [
    "SELECT role, can_login, is_superuser, member_of, salted_hash FROM system_auth.roles",
    "SELECT role, resource, permissions FROM system_auth.role_permissions",
    "SELECT role, dcs FROM system_auth.network_permissions",
    "SELECT identity, role FROM system_auth.identity_to_role",
    "SELECT role, cidr_groups FROM system_auth.cidr_permissions",
    "SELECT cidr_group, cidrs FROM system_auth.cidr_groups",
];

/// The tables of what roles have, by the name of the role.
pub(in crate::cql) const BESIDE_ROLES: [&str; 6] = [
    "role_permissions",
    "resource_role_permissons_index",
    "role_members",
    "network_permissions",
    "identity_to_role",
    "cidr_permissions",
];

/// Rows as in an answer.
pub(in crate::cql) type Cells = Vec<Vec<Option<Bytes>>>;

/// The roles in stored rows. Rows with a missing role are skipped. An unknown resource or permission is skipped too: it
/// allows nothing.
pub(in crate::cql) fn load([roles, permissions, networks, identities, addresses, groups]: [Cells; 6]) -> Roles {
    let mut all = Roles::default();
    for row in &roles {
        let [Some(name), can_login, is_superuser, member_of, hash] = row.as_slice() else {
            continue;
        };
        let is = |cell: &Option<Bytes>| cell.as_deref() == Some(&[1]);
        let role = Role {
            can_login: is(can_login),
            is_superuser: is(is_superuser),
            salted_hash: hash.as_deref().map(word),
            member_of: texts(member_of.as_deref()).map(Arc::from).collect(),
            ..Role::default()
        };
        all.by_name.insert(word(name).into(), Arc::new(role));
    }
    for row in &permissions {
        let [Some(role), Some(resource), granted] = row.as_slice() else {
            continue;
        };
        let granted: Vec<Permission> = texts(granted.as_deref())
            .filter_map(|name| Permission::from_name(&name))
            .collect();
        if let Some(resource) = Resource::from_name(&word(resource)).filter(|_| !granted.is_empty()) {
            all = all.granted(&word(role), &resource, Permissions::of(&granted));
        }
    }
    for row in &networks {
        if let [Some(role), Some(names)] = row.as_slice()
            && all.contains(&word(role))
        {
            let names: BTreeSet<String> = texts(Some(names)).collect();
            all = all.with(&word(role), |role| role.data_centers = Some(names));
        }
    }
    for row in &identities {
        if let [Some(identity), Some(role)] = row.as_slice() {
            all.identities.insert(word(identity), word(role).into());
        }
    }
    for row in &addresses {
        if let [Some(role), names] = row.as_slice()
            && all.contains(&word(role))
        {
            let names: BTreeSet<String> = texts(names.as_deref()).collect();
            all = all.with(&word(role), |role| role.cidr_groups = Some(names));
        }
    }
    let groups = groups.iter().filter_map(|row| match row.as_slice() {
        [Some(name), cidrs] => Some((word(name), elements(cidrs.as_deref()).filter_map(cidr).collect())),
        _ => None,
    });
    all.cidr_groups = Arc::new(CidrGroups::new(groups.collect()));
    all
}

/// A range of addresses: the address and its bits, each with its length before. `None` means it is no range.
fn cidr(cell: &[u8]) -> Option<Cidr> {
    let (address, rest) = element(cell)?;
    let (bits, _) = element(rest)?;
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    let bits = i16::from_be_bytes(bits.try_into().ok()?);
    Cidr::new(address, bits.try_into().ok()?)
}

fn word(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).into_owned()
}

/// A value with its length i32 before, and what is behind it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after) = bytes.split_first_chunk::<4>()?;
    after.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)
}

/// The elements of a set: count i32, then each with its length i32 before.
fn elements(cell: Option<&[u8]>) -> impl Iterator<Item = &[u8]> {
    let mut rest = cell.unwrap_or_default().get(4..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (found, after) = element(rest)?;
        rest = after;
        Some(found)
    })
}

/// The elements of a set of texts.
fn texts(cell: Option<&[u8]>) -> impl Iterator<Item = String> {
    elements(cell).map(word)
}

/// The statements that turn one state into the other, for one batch.
pub(in crate::cql) fn statements(before: &Roles, after: &Roles) -> Vec<String> {
    let mut texts = Vec::new();
    for (name, role) in &after.by_name {
        if before.by_name.get(name) != Some(role) {
            change(&mut texts, name, before.get(name), Some(role));
        }
    }
    for (name, role) in &before.by_name {
        if !after.contains(name) {
            change(&mut texts, name, Some(role), None);
        }
    }
    for (identity, role) in &after.identities {
        if before.identities.get(identity) != Some(role) {
            texts.push(format!(
                "INSERT INTO system_auth.identity_to_role (identity, role) VALUES ({}, {})",
                quoted(identity),
                quoted(role)
            ));
        }
    }
    for identity in before.identities.keys() {
        if !after.identities.contains_key(identity) {
            texts.push(format!(
                "DELETE FROM system_auth.identity_to_role WHERE identity = {}",
                quoted(identity)
            ));
        }
    }
    change_groups(&mut texts, before.cidr_groups.ranges(), after.cidr_groups.ranges());
    texts
}

fn change_groups(
    texts: &mut Vec<String>,
    before: &BTreeMap<String, BTreeSet<Cidr>>,
    after: &BTreeMap<String, BTreeSet<Cidr>>,
) {
    for (name, ranges) in after {
        if before.get(name) != Some(ranges) {
            let ranges: Vec<String> = ranges
                .iter()
                .map(|range| format!("('{}', {})", range.start(), range.mask_bits()))
                .collect();
            texts.push(format!(
                "INSERT INTO system_auth.cidr_groups (cidr_group, cidrs) VALUES ({}, {{{}}})",
                quoted(name),
                ranges.join(",")
            ));
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        texts.push(format!(
            "DELETE FROM system_auth.cidr_groups WHERE cidr_group = {}",
            quoted(name)
        ));
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "the statements of a role, in the order in which they are executed"
)]
fn change(texts: &mut Vec<String>, name: &RoleName, before: Option<&Role>, after: Option<&Role>) {
    let none = Role::default();
    let (old, new) = (before.unwrap_or(&none), after.unwrap_or(&none));
    let key = quoted(name);
    let of_row = |role: &Role| {
        (
            role.can_login,
            role.is_superuser,
            role.salted_hash.clone(),
            role.member_of.clone(),
        )
    };
    match after {
        None => texts.push(format!("DELETE FROM system_auth.roles WHERE role = {key}")),
        Some(role) if before.is_none_or(|before| of_row(before) != of_row(role)) => texts.push(format!(
            "INSERT INTO system_auth.roles (role, can_login, is_superuser, member_of, salted_hash) VALUES ({key}, {}, {}, {}, {})",
            role.can_login,
            role.is_superuser,
            set(role.member_of.iter().map(AsRef::as_ref)),
            role.salted_hash.as_deref().map_or("null".to_owned(), quoted),
        )),
        Some(_) => {}
    }
    for role in new.member_of.difference(&old.member_of) {
        texts.push(format!(
            "INSERT INTO system_auth.role_members (role, member) VALUES ({}, {key})",
            quoted(role)
        ));
    }
    for role in old.member_of.difference(&new.member_of) {
        texts.push(format!(
            "DELETE FROM system_auth.role_members WHERE role = {} AND member = {key}",
            quoted(role)
        ));
    }
    for (resource, granted) in &new.grants {
        if old.grants.get(resource) != Some(granted) {
            let resource = quoted(&resource.name());
            texts.push(format!(
                "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ({key}, {resource}, {})",
                set(granted.iter().map(Permission::name))
            ));
            texts.push(format!(
                "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ({resource}, {key})"
            ));
        }
    }
    for resource in old.grants.keys().filter(|resource| !new.grants.contains_key(resource)) {
        let resource = quoted(&resource.name());
        texts.push(format!(
            "DELETE FROM system_auth.role_permissions WHERE role = {key} AND resource = {resource}"
        ));
        texts.push(format!(
            "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = {resource} AND role = {key}"
        ));
    }
    if old.data_centers != new.data_centers {
        texts.push(match &new.data_centers {
            None => format!("DELETE FROM system_auth.network_permissions WHERE role = {key}"),
            Some(names) => format!(
                "INSERT INTO system_auth.network_permissions (role, dcs) VALUES ({key}, {})",
                set(names.iter().map(String::as_str))
            ),
        });
    }
    if old.cidr_groups != new.cidr_groups {
        texts.push(match &new.cidr_groups {
            None => format!("DELETE FROM system_auth.cidr_permissions WHERE role = {key}"),
            Some(names) => format!(
                "INSERT INTO system_auth.cidr_permissions (role, cidr_groups) VALUES ({key}, {})",
                // A frozen set may be empty.
                Some(set(names.iter().map(String::as_str)))
                    .filter(|_| !names.is_empty())
                    .unwrap_or("{}".to_owned())
            ),
        });
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A set's literal; `null` for an empty one, because CQL stores an empty set as null.
fn set<'t>(elements: impl Iterator<Item = &'t str>) -> String {
    let mut text = String::new();
    for element in elements {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&quoted(element));
    }
    if text.is_empty() {
        return "null".to_owned();
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let before = Roles::default().with("it's", |role| role.can_login = true);
        assert_eq!(statements(&before, &before), Vec::<String>::new());
        let table = Resource::table("k", "t");
        let after = before.granted("it's", &table, Permissions::of(&[Permission::Select]));
        assert_eq!(
            statements(&before, &after),
            [
                "INSERT INTO system_auth.role_permissions (role, resource, permissions) VALUES ('it''s', 'data/k/t', {'SELECT'})",
                "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES ('data/k/t', 'it''s')",
            ]
        );
        let removed = statements(&after, &Roles::default());
        assert_eq!(removed.len(), 3, "{removed:?}");
        assert!(removed.iter().all(|text| text.starts_with("DELETE")), "{removed:?}");
    }
}
