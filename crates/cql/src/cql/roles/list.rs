//! The answers to LIST ROLES, LIST USERS and LIST PERMISSIONS.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::super::answer::{ResultMetadata, Rows};
use super::super::rows::put_cell;
use helenus_schema::command::ResultColumn;
use helenus_schema::roles::{Permissions, Resource, Role, RoleName, Roles};
use helenus_schema::schema::encode::{boolean, map, text};
use helenus_types::types::{CqlType, Native};

/// Rows of one of the lists.
#[derive(Debug)]
pub(in crate::cql) struct List {
    /// The table that the metadata names.
    table: &'static str,
    columns: Vec<(&'static str, CqlType)>,
    rows: Vec<Vec<Bytes>>,
}

impl List {
    /// The rows of an answer.
    pub(in crate::cql) fn into_rows(self) -> Rows {
        let columns = self.columns.into_iter().map(|(name, ty)| ResultColumn {
            name: name.to_owned(),
            ty,
        });
        let metadata = ResultMetadata::new("system_auth", self.table, Arc::new(columns.collect()));
        let mut content = Vec::new();
        for cell in self.rows.iter().flatten() {
            put_cell(&mut content, Some(cell));
        }
        Rows {
            metadata: Arc::new(metadata),
            row_count: u32::try_from(self.rows.len()).unwrap_or(u32::MAX),
            content: content.into(),
            paging_state: None,
        }
    }
}

const TEXT: CqlType = CqlType::Native(Native::Text);
const BOOLEAN: CqlType = CqlType::Native(Native::Boolean);

fn data_centers(of: Option<&Role>) -> String {
    match of.and_then(|role| role.data_centers.as_ref()) {
        None => "ALL".to_owned(),
        Some(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    }
}

/// LIST ROLES.
pub(super) fn roles(roles: &Roles, names: &[RoleName]) -> List {
    let row = |name: &RoleName| {
        let role = roles.get(name)?;
        Some(vec![
            text(name),
            boolean(role.is_superuser),
            boolean(role.can_login),
            map(&[]),
            text(&data_centers(Some(role))),
        ])
    };
    List {
        table: "roles",
        columns: vec![
            ("role", TEXT),
            ("super", BOOLEAN),
            ("login", BOOLEAN),
            ("options", CqlType::Map(Arc::new(TEXT), Arc::new(TEXT))),
            ("datacenters", TEXT),
        ],
        rows: names.iter().filter_map(row).collect(),
    }
}

/// LIST USERS: those that can log in.
pub(super) fn users(roles: &Roles, names: &[RoleName]) -> List {
    let row = |name: &RoleName| {
        let role = roles.get(name).filter(|role| role.can_login)?;
        Some(vec![
            text(name),
            boolean(roles.is_superuser(name)),
            text(&data_centers(Some(role))),
        ])
    };
    List {
        table: "users",
        columns: vec![("name", TEXT), ("super", BOOLEAN), ("datacenters", TEXT)],
        rows: names.iter().filter_map(row).collect(),
    }
}

/// LIST PERMISSIONS of a role with those that it was granted, or of all; on these resources, or on all. `None` means
/// there are none.
pub(super) fn permissions(
    roles: &Roles,
    of: Option<&str>,
    requested: Permissions,
    on: Option<&[Resource]>,
) -> Option<List> {
    let names: BTreeSet<&RoleName> = match of {
        None => roles.by_name.keys().collect(),
        Some(of) => roles.closure(of).into_keys().collect(),
    };
    let mut rows = Vec::new();
    for name in names {
        let Some(role) = roles.get(name) else { continue };
        let of_resources = role
            .grants
            .iter()
            .filter(|(resource, _)| on.is_none_or(|on| on.contains(resource)));
        let mut granted: Vec<(String, &Resource, Permissions)> = of_resources
            .map(|(resource, granted)| (resource.name(), resource, granted.intersection(requested)))
            .collect();
        granted.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        for (_, resource, permissions) in granted {
            let each = permissions.iter().map(|permission| {
                vec![
                    text(name),
                    text(name),
                    text(&resource.to_string()),
                    text(permission.name()),
                ]
            });
            rows.extend(each);
        }
    }
    (!rows.is_empty()).then(|| List {
        table: "permissions",
        columns: vec![
            ("role", TEXT),
            ("username", TEXT),
            ("resource", TEXT),
            ("permission", TEXT),
        ],
        rows,
    })
}
