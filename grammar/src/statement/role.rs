//! CREATE, ALTER and DROP of roles and users.

use crate::ast::{AlterRole, AlterUser, CreateRole, CreateUser, DropRole, RoleOption, Statement, UserPassword};
use crate::input::{Input, Parsed, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{role_name, user_name};
use crate::property::property_map;
use crate::term::map_literal;

use super::string;

/// `create_role = "CREATE" "ROLE" if_not_exists role_name role_options`
pub(super) fn create_role(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_role");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, name) = role_name(input)?;
    let (input, options) = role_options(input)?;
    Ok((
        input,
        Statement::CreateRole(CreateRole {
            name,
            if_not_exists,
            options,
        }),
    ))
}

/// `alter_role = "ALTER" "ROLE" if_exists role_name role_options`
pub(super) fn alter_role(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_role");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, name) = role_name(input)?;
    let (input, options) = role_options(input)?;
    Ok((
        input,
        Statement::AlterRole(AlterRole {
            name,
            if_exists,
            options,
        }),
    ))
}

/// `drop_role = "DROP" "ROLE" if_exists role_name`
pub(super) fn drop_role(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_role");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    super::map(role_name(input), |name| {
        Statement::DropRole(DropRole {
            user: false,
            if_exists,
            name,
        })
    })
}

/// `role_options = [ "WITH" role_option { "AND" role_option } ]`
fn role_options(input: Input<'_>) -> Parsed<'_, Vec<RoleOption>> {
    enter("role_options");
    let (input, with) = given(input, Kind::With);
    if !with {
        return Ok((input, Vec::new()));
    }
    let mut seen = std::collections::HashSet::new();
    let (input, options) = separated(input, Kind::And, |input| {
        let (rest, option) = role_option(input)?;
        if let Some(name) = unique_name(&option)
            && !seen.insert(name)
        {
            rest.report(|| format!("Multiple definition for property '{name}'"));
        }
        Ok((rest, option))
    })?;
    if seen.contains("PASSWORD") && seen.contains("HASHED_PASSWORD") {
        input.report(|| "Options 'password' and 'hashed password' are mutually exclusive".to_owned());
    }
    Ok((input, options))
}

/// Cassandra's name of an option that may be given only once.
const fn unique_name(option: &RoleOption) -> Option<&'static str> {
    match option {
        RoleOption::Password(_) => Some("PASSWORD"),
        RoleOption::HashedPassword(_) => Some("HASHED_PASSWORD"),
        RoleOption::Options(_) => Some("OPTIONS"),
        RoleOption::Superuser(_) => Some("SUPERUSER"),
        RoleOption::Login(_) => Some("LOGIN"),
        _ => None,
    }
}

/// `role_option = [ "HASHED" ] "PASSWORD" "=" STRING | "OPTIONS" "=" map_literal | ( "SUPERUSER" | "LOGIN" ) "=" BOOLEAN | access`
fn role_option(input: Input<'_>) -> Parsed<'_, RoleOption> {
    enter("role_option");
    let behind = input.skip(1);
    match input.kind() {
        Kind::Password => {
            let (input, ()) = expect(behind, Kind::Equals)?;
            super::map(string(input), RoleOption::Password)
        }
        Kind::Hashed => {
            let (input, ()) = expect_all(behind, &[Kind::Password, Kind::Equals])?;
            super::map(string(input), RoleOption::HashedPassword)
        }
        Kind::Options => {
            let (input, ()) = expect(behind, Kind::Equals)?;
            let (input, entries) = map_literal(input)?;
            Ok((input, RoleOption::Options(property_map(input, entries))))
        }
        Kind::Superuser => super::map(boolean(behind), RoleOption::Superuser),
        Kind::Login => super::map(boolean(behind), RoleOption::Login),
        Kind::Access => access(input),
        _ => input.no_viable(0),
    }
}

/// `access = "ACCESS" ( "TO" ( "ALL" "DATACENTERS" | "DATACENTERS" strings ) | "FROM" ( "ALL" "CIDRS" | "CIDRS" strings ) )`
fn access(input: Input<'_>) -> Parsed<'_, RoleOption> {
    enter("access");
    let (of, everywhere): (_, fn() -> RoleOption) = match input.ahead(1) {
        Kind::To => (Kind::Datacenters, || RoleOption::AllDatacenters),
        Kind::From => (Kind::Cidrs, || RoleOption::AllCidrs),
        _ => return input.no_viable(1),
    };
    match input.ahead(2) {
        Kind::All => super::map(expect(input.skip(3), of), |()| everywhere()),
        Kind::Datacenters if of == Kind::Datacenters => super::map(strings(input.skip(3)), RoleOption::Datacenters),
        Kind::Cidrs if of == Kind::Cidrs => super::map(strings(input.skip(3)), RoleOption::Cidrs),
        _ => input.no_viable(2),
    }
}

fn boolean(input: Input<'_>) -> Parsed<'_, bool> {
    let (input, ()) = expect(input, Kind::Equals)?;
    if input.is(Kind::False) {
        return Ok((input.skip(1), false));
    }
    super::map(expect(input, Kind::True), |()| true)
}

/// `strings = "{" STRING { "," STRING } "}"`
fn strings(input: Input<'_>) -> Parsed<'_, Vec<String>> {
    enter("strings");
    let (input, ()) = expect(input, Kind::BraceOpen)?;
    let (input, strings) = separated(input, Kind::Comma, string)?;
    let (input, ()) = expect(input, Kind::BraceClose)?;
    Ok((input, strings))
}

/// `create_user = "CREATE" "USER" if_not_exists user_name user_options`
pub(super) fn create_user(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_user");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, name) = user_name(input)?;
    let (input, (password, superuser)) = user_options(input)?;
    Ok((
        input,
        Statement::CreateUser(CreateUser {
            name,
            if_not_exists,
            password,
            superuser,
        }),
    ))
}

/// `alter_user = "ALTER" "USER" if_exists user_name user_options`
pub(super) fn alter_user(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_user");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, name) = user_name(input)?;
    let (input, (password, superuser)) = user_options(input)?;
    Ok((
        input,
        Statement::AlterUser(AlterUser {
            name,
            if_exists,
            password,
            superuser,
        }),
    ))
}

/// `drop_user = "DROP" "USER" if_exists user_name`
pub(super) fn drop_user(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_user");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    super::map(user_name(input), |name| {
        Statement::DropRole(DropRole {
            user: true,
            if_exists,
            name,
        })
    })
}

/// `user_options = [ "WITH" [ "HASHED" ] "PASSWORD" STRING ] [ "SUPERUSER" | "NOSUPERUSER" ]`
fn user_options(input: Input<'_>) -> Parsed<'_, (Option<UserPassword>, Option<bool>)> {
    enter("user_options");
    let (input, with) = given(input, Kind::With);
    let (input, password) = match input.kind() {
        _ if !with => (input, None),
        Kind::Password => super::map(string(input.skip(1)), |text| Some(UserPassword::Plain(text)))?,
        Kind::Hashed => {
            let (input, ()) = expect(input.skip(1), Kind::Password)?;
            super::map(string(input), |text| Some(UserPassword::Hashed(text)))?
        }
        _ => return input.no_viable(0),
    };
    Ok(match input.kind() {
        Kind::Superuser => (input.skip(1), (password, Some(true))),
        Kind::Nosuperuser => (input.skip(1), (password, Some(false))),
        _ => (input, (password, None)),
    })
}
