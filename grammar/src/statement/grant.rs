//! GRANT, REVOKE and LIST: permissions and roles.

use crate::ast::{Grant, GrantRole, ListPermissions, ListRoles, Name, Permission, Resource, Statement};
use crate::input::{Input, NameOf, Parsed, enter, expect, given};
use crate::keyword::Kind;
use crate::name::{function_name, keyspace_name, role_name, table_name};

/// `grant = "GRANT" ( permissions "ON" resource | role_name ) "TO" role_name`
pub(super) fn grant(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("grant");
    permissions_or_role(input, false)
}

/// `revoke = "REVOKE" ( permissions "ON" resource | role_name ) "FROM" role_name`
pub(super) fn revoke(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("revoke");
    permissions_or_role(input, true)
}

fn permissions_or_role(input: Input<'_>, revoke: bool) -> Parsed<'_, Statement> {
    let link = if revoke { Kind::From } else { Kind::To };
    let behind = input.skip(1);
    let kind = behind.kind();
    // ALL, UNMASK and SELECT_MASKED are roles' names too; the next tokens decide.
    let is_permission = match kind {
        Kind::All | Kind::Unmask | Kind::SelectMasked => match input.ahead(2) {
            Kind::On => true,
            Kind::Permissions if kind == Kind::All => true,
            Kind::Permission | Kind::Comma if kind != Kind::All => true,
            next if next == link => false,
            _ => return input.no_viable(2),
        },
        _ if permission_of(kind).is_some() => true,
        Kind::String | Kind::QuestionMark => false,
        _ if NameOf::Anything.allows(kind) => false,
        _ => return input.no_viable(1),
    };
    if is_permission {
        let (input, permissions) = permissions(behind)?;
        let (input, ()) = expect(input, Kind::On)?;
        let (input, resource) = resource(input)?;
        let (input, ()) = expect(input, link)?;
        let (input, role) = role_name(input)?;
        refuse_inapplicable(input, permissions.as_deref(), &resource);
        return Ok((
            input,
            Statement::Grant(Grant {
                revoke,
                permissions,
                resource,
                role,
            }),
        ));
    }
    let (input, role) = role_name(behind)?;
    let (input, ()) = expect(input, link)?;
    let (input, grantee) = role_name(input)?;
    Ok((input, Statement::GrantRole(GrantRole { revoke, role, grantee })))
}

/// Reports permissions that do not apply to the resource.
fn refuse_inapplicable(input: Input<'_>, permissions: Option<&[Permission]>, resource: &Resource) {
    use Permission::{Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask};
    let (class, applicable): (_, &[Permission]) = match resource {
        Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::AllTables(_) => (
            "DataResource",
            &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
        ),
        Resource::Table(_) => (
            "DataResource",
            &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked],
        ),
        Resource::AllRoles => ("RoleResource", &[Create, Alter, Drop, Authorize, Describe]),
        Resource::Role(_) => ("RoleResource", &[Alter, Drop, Authorize, Describe]),
        Resource::AllFunctions | Resource::AllFunctionsIn(_) => {
            ("FunctionResource", &[Create, Alter, Drop, Authorize, Execute])
        }
        // Cassandra looks for the function first, so the server compares.
        Resource::Function { .. } => return,
        Resource::AllMbeans | Resource::Mbean(_) | Resource::Mbeans(_) => {
            ("JMXResource", &[Authorize, Describe, Execute, Modify, Select])
        }
    };
    if let Some(permissions) = permissions
        && !permissions.iter().any(|permission| applicable.contains(permission))
    {
        input.report(|| format!("Resource type {class} does not support any of the requested permissions"));
    }
}

/// `list = "LIST" ( "USERS" | "ROLES" of_role | permissions [ "ON" resource ] of_role )`
pub(super) fn list(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("list");
    let behind = input.skip(1);
    match behind.kind() {
        Kind::Users => Ok((behind.skip(1), Statement::ListUsers)),
        Kind::Roles => {
            let (input, (of, no_recursive)) = of_role(behind.skip(1))?;
            Ok((input, Statement::ListRoles(ListRoles { of, no_recursive })))
        }
        kind if kind == Kind::All || permission_of(kind).is_some() => {
            let (input, permissions) = permissions(behind)?;
            let (input, limited) = given(input, Kind::On);
            let (input, resource) = if limited {
                super::map(resource(input), Some)?
            } else {
                (input, None)
            };
            let (input, (of, no_recursive)) = of_role(input)?;
            let list = ListPermissions {
                permissions,
                resource,
                of,
                no_recursive,
            };
            Ok((input, Statement::ListPermissions(list)))
        }
        _ => input.no_viable(1),
    }
}

/// `of_role = [ "OF" role_name ] [ "NORECURSIVE" ]`
fn of_role(input: Input<'_>) -> Parsed<'_, (Option<Name>, bool)> {
    enter("of_role");
    let (input, limited) = given(input, Kind::Of);
    let (input, of) = if limited {
        super::map(role_name(input), Some)?
    } else {
        (input, None)
    };
    let (input, no_recursive) = given(input, Kind::Norecursive);
    Ok((input, (of, no_recursive)))
}

/// `permissions = "ALL" [ "PERMISSIONS" ] | permission [ "PERMISSION" ] { "," permission [ "PERMISSION" ] }`
fn permissions(input: Input<'_>) -> Parsed<'_, Option<Vec<Permission>>> {
    enter("permissions");
    if input.is(Kind::All) {
        let (input, _) = given(input.skip(1), Kind::Permissions);
        return Ok((input, None));
    }
    super::map(crate::input::separated(input, Kind::Comma, permission), Some)
}

/// `permission = "CREATE" | "ALTER" | "DROP" | "SELECT" | "MODIFY" | "AUTHORIZE" | "DESCRIBE" | "EXECUTE" | "UNMASK" | "SELECT_MASKED"`
fn permission(input: Input<'_>) -> Parsed<'_, Permission> {
    enter("permission");
    let Some(permission) = permission_of(input.kind()) else {
        return input.fail(0, crate::error::Cause::MismatchedSet);
    };
    let (input, _) = given(input.skip(1), Kind::Permission);
    Ok((input, permission))
}

const fn permission_of(kind: Kind) -> Option<Permission> {
    Some(match kind {
        Kind::Create => Permission::Create,
        Kind::Alter => Permission::Alter,
        Kind::Drop => Permission::Drop,
        Kind::Select => Permission::Select,
        Kind::Modify => Permission::Modify,
        Kind::Authorize => Permission::Authorize,
        Kind::Describe => Permission::Describe,
        Kind::Execute => Permission::Execute,
        Kind::Unmask => Permission::Unmask,
        Kind::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}

/// `resource = "ALL" ( "KEYSPACES" | "TABLES" "IN" "KEYSPACE" keyspace_name | "ROLES" | "FUNCTIONS" [ "IN" "KEYSPACE" keyspace_name ]
/// | "MBEANS" ) | "KEYSPACE" keyspace_name | "ROLE" role_name | "FUNCTION" function_name argument_types | ( "MBEAN" | "MBEANS" ) STRING
/// | [ "TABLE" ] table_name`
fn resource(input: Input<'_>) -> Parsed<'_, Resource> {
    enter("resource");
    let behind = input.skip(1);
    let kind = input.kind();
    if !matches!(
        kind,
        Kind::All | Kind::Role | Kind::Function | Kind::Mbean | Kind::Mbeans
    ) {
        return match kind {
            Kind::Keyspace => super::map(keyspace_name(behind), Resource::Keyspace),
            Kind::Columnfamily => super::map(table_name(behind), Resource::Table),
            _ => super::map(table_name(input), Resource::Table),
        };
    }
    // These are tables' names too; the next tokens decide.
    let named = NameOf::Anything.allows(behind.kind());
    match kind {
        _ if may_follow_resource(behind.kind()) => super::map(table_name(input), Resource::Table),
        Kind::All => everything(input),
        Kind::Role if named || matches!(behind.kind(), Kind::String | Kind::QuestionMark) => {
            super::map(role_name(behind), Resource::Role)
        }
        Kind::Function if named || matches!(behind.kind(), Kind::Token | Kind::QuestionMark) => {
            let (input, name) = function_name(behind)?;
            let (input, arguments) = super::create::argument_types(input)?;
            Ok((input, Resource::Function { name, arguments }))
        }
        Kind::Mbean if behind.is(Kind::String) => super::map(super::mbean::mbean(behind, false), Resource::Mbean),
        Kind::Mbeans if behind.is(Kind::String) => super::map(super::mbean::mbean(behind, true), Resource::Mbeans),
        _ => input.no_viable(1),
    }
}

/// The tokens that can follow a table's name where a resource is named, a point included.
fn may_follow_resource(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::From | Kind::Norecursive | Kind::Of | Kind::To | Kind::Dot | Kind::Semicolon | Kind::End
    )
}

/// The resource after ALL, unless ALL is a table's name.
fn everything(input: Input<'_>) -> Parsed<'_, Resource> {
    let behind = input.skip(2);
    match input.ahead(1) {
        Kind::Keyspaces => Ok((behind, Resource::AllKeyspaces)),
        Kind::Roles => Ok((behind, Resource::AllRoles)),
        Kind::Mbeans => Ok((behind, Resource::AllMbeans)),
        Kind::Tables => {
            let (input, ()) = crate::input::expect_all(behind, &[Kind::In, Kind::Keyspace])?;
            super::map(keyspace_name(input), Resource::AllTables)
        }
        Kind::Functions if behind.is(Kind::In) => {
            let (input, ()) = expect(behind.skip(1), Kind::Keyspace)?;
            super::map(keyspace_name(input), Resource::AllFunctionsIn)
        }
        Kind::Functions if may_follow_resource(behind.kind()) && !behind.is(Kind::Dot) => {
            Ok((behind, Resource::AllFunctions))
        }
        Kind::Functions => input.no_viable(2),
        _ => input.no_viable(1),
    }
}
