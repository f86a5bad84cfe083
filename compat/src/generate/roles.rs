//! Random roles and permissions on what a round has, and who asks.
//!
//! Roles belong to the whole server, so their names begin with the round's keyspace, `{ks}` until it is asked. [`super::pair`] drops them with it.

use super::functions;
use super::question::{Kind, Question};
use super::state::Round;

/// Roles of a round.
pub(super) const ROLES: usize = 3;
/// The password of all of them.
pub(super) const PASSWORD: &str = "pw";

/// The name of a role.
pub(super) fn name(number: usize) -> String {
    format!("{{ks}}_r{number}")
}

/// Statements that make the roles, the last first. Two may log in; the third is there to be given to them.
pub(super) fn made_by() -> Vec<String> {
    (0..ROLES)
        .rev()
        .map(|number| {
            let login = if number < 2 {
                " WITH LOGIN = true"
            } else {
                " WITH LOGIN = false"
            };
            format!("CREATE ROLE {}{login} AND PASSWORD = '{PASSWORD}'", name(number))
        })
        .collect()
}

fn any(round: &mut Round) -> String {
    if round.rng.u8(0..25) == 0 {
        return "{ks}_nobody".to_owned();
    }
    name(round.rng.usize(0..ROLES))
}

fn permission(round: &mut Round) -> &'static str {
    let all = [
        "SELECT",
        "SELECT",
        "SELECT",
        "MODIFY",
        "MODIFY",
        "MODIFY",
        "ALL PERMISSIONS",
        "ALTER",
        "AUTHORIZE",
        "CREATE",
        "DROP",
        "DESCRIBE",
        "EXECUTE",
        "EXECUTE",
        "UNMASK",
        "SELECT_MASKED",
        "ALTER, DROP",
    ];
    round.rng.choice(all).unwrap_or("SELECT")
}

fn resource(round: &mut Round) -> String {
    let table = round.table.name.clone();
    let view = round
        .rng
        .choice(&round.views)
        .map_or_else(|| table.clone(), |view| view.name.clone());
    let function = functions::named(round).unwrap_or_else(|| "nowhere(int)".to_owned());
    match round.rng.u8(0..20) {
        0..=4 => table,
        5 => format!("TABLE {table}"),
        6 => view,
        7..=9 => "KEYSPACE {ks}".to_owned(),
        10 => "ALL TABLES IN KEYSPACE {ks}".to_owned(),
        11 => "ALL KEYSPACES".to_owned(),
        12 => "ALL ROLES".to_owned(),
        13 => format!("ROLE {}", any(round)),
        14..=15 => format!("FUNCTION {function}"),
        16..=17 => "ALL FUNCTIONS IN KEYSPACE {ks}".to_owned(),
        18 => "ALL FUNCTIONS".to_owned(),
        _ => "nowhere".to_owned(),
    }
}

/// A change of roles or permissions, or a list of them.
pub(super) fn change(round: &mut Round) -> Option<Question> {
    let role = any(round);
    let text = match round.rng.u8(0..24) {
        0..=7 => format!("GRANT {} ON {} TO {role}", permission(round), resource(round)),
        8..=10 => format!("REVOKE {} ON {} FROM {role}", permission(round), resource(round)),
        11 => format!("GRANT {} TO {role}", any(round)),
        12 => format!("REVOKE {} FROM {role}", any(round)),
        13..=15 => format!(
            "LIST {} OF {role}",
            round
                .rng
                .choice(["ALL PERMISSIONS", "ALL", "SELECT", "EXECUTE PERMISSION"])?
        ),
        16..=17 => {
            let whose = round.rng.choice(["", " NORECURSIVE"])?;
            format!("LIST ALL PERMISSIONS ON {} OF {role}{whose}", resource(round))
        }
        18 => format!(
            "LIST {} PERMISSION ON {}",
            round.rng.choice(["SELECT", "MODIFY", "ALTER"])?,
            round.table.name
        ),
        19..=20 => format!("LIST ROLES OF {role}{}", round.rng.choice(["", " NORECURSIVE"])?),
        21 => {
            let options = ["LOGIN = true", "LOGIN = false", "SUPERUSER = true", "SUPERUSER = false"];
            format!("ALTER ROLE {role} WITH {}", round.rng.choice(options)?)
        }
        22 => format!("DROP ROLE {}{role}", round.rng.choice(["", "IF EXISTS "])?),
        _ => format!("CREATE ROLE IF NOT EXISTS {role} WITH LOGIN = true AND PASSWORD = '{PASSWORD}'"),
    };
    Some(Question::new(Kind::Schema, text))
}

/// Who asks the next statement; `None`: the superuser.
pub(super) fn asks(round: &mut Round) -> Option<usize> {
    (round.rng.u8(0..5) < 2).then(|| round.rng.usize(0..2))
}
