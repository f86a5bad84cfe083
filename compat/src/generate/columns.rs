//! Columns that are dropped and added again (`--dropped-columns`): with timestamps before, at and behind those of the
//! writes, once or several times, under indexes and views that come and go.
//!
//! Most columns are added again at once, since Cassandra fails in reads of rows that have cells dated behind the drop as long
//! as the column is away, and builds no index then. The timestamps of a column's drops do not fall: Cassandra removes what a drop hides when it
//! writes to disk, and after an earlier drop it shows what it has not removed. The tables are not compacted: that would lose all
//! cells of a column that is away. Rows have no time to live where indexes come later, for the reasons told at
//! [`Round::may_expire`].

use super::question::{Kind, Question};
use super::schema::{self, Column, Role, Table};
use super::state::{Effect, Late, Round};
use super::types::{Native, Type};
use super::views;
use fastrand::Rng;

/// Keeps a table from being compacted.
pub(super) fn keep_all(table: &mut Table) {
    table.made_by.push(format!(
        "ALTER TABLE {} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}",
        table.name
    ));
}

/// A statement that drops a column or adds one again, or one that allows it.
pub(super) fn change(round: &mut Round) -> Option<Question> {
    let text = match round.rng.u8(0..20) {
        _ if round.drops.comes_back && !round.drops.columns.is_empty() => return add(round),
        0..=6 => return drop(round),
        7..=14 => return add(round),
        15..=16 if round.drops.has_indexes && round.drops.columns.is_empty() => return index(round),
        17 if round.has_views && round.drops.columns.is_empty() => return Some(views::create(round)),
        18 if round.rng.u8(0..4) == 0 => format!("TRUNCATE {}", round.table.name),
        _ => {
            "SELECT column_name, kind, type FROM system_schema.dropped_columns WHERE keyspace_name = '{ks}'".to_owned()
        }
    };
    Some(Question::new(Kind::Schema, text))
}

/// A timestamp of a drop: that of a write, one before or between, or one behind them all.
fn timestamp(round: &mut Round) -> Option<i64> {
    let last = round.last_timestamp();
    match round.rng.u8(0..32) {
        0..=9 => round.used_timestamp(),
        10..=20 => Some(round.rng.i64(1..=last)),
        21..=27 => Some(last + 5),
        28 => Some(last + round.rng.i64(0..300)),
        29 => Some(0),
        30 => Some(-1),
        // The server's clock, which hides all but what conditional statements write later.
        _ => None,
    }
}

/// ` USING TIMESTAMP …` of a drop of these columns, or nothing.
fn using(round: &mut Round, names: &[String]) -> String {
    let last = names
        .iter()
        .filter_map(|name| round.drops.last.get(name).copied())
        .max();
    let at = timestamp(round).unwrap_or(i64::MAX).max(last.unwrap_or(i64::MIN));
    for name in names {
        round.drops.last.insert(name.clone(), at);
    }
    if at == i64::MAX {
        return String::new();
    }
    format!(" USING TIMESTAMP {at}")
}

fn drop(round: &mut Round) -> Option<Question> {
    let table = round.table.name.clone();
    // No column of a table with a view can be dropped.
    if let Some(view) = round.rng.choice(&round.views).map(|view| view.name.clone())
        && round.rng.u8(0..4) != 0
    {
        round.pending = Effect::NoView(view.clone());
        return Some(Question::new(Kind::Schema, format!("DROP MATERIALIZED VIEW {view}")));
    }
    // A column with a type of the user never comes back.
    let comes_back = |c: &&Column| !c.is_key() && !has_user_type(&c.ty);
    let others = round.table.columns.iter().filter(comes_back).collect::<Vec<_>>();
    let among = if round.rng.u8(0..40) == 0 {
        round.table.columns.iter().collect()
    } else {
        others
    };
    let name = round.rng.choice(&among)?.name.clone();
    if let Some(place) = round.drops.indexes.iter().position(|index| index.column == name)
        && round.rng.u8(0..6) != 0
    {
        return drop_index(round, place);
    }
    let second = round.rng.choice(&among)?.name.clone();
    let exists = if round.rng.u8(0..8) == 0 { " IF EXISTS" } else { "" };
    let names = if second != name && round.rng.u8(0..4) == 0 {
        vec![name.clone(), second.clone()]
    } else {
        vec![name.clone()]
    };
    let using = using(round, &names);
    let what = if names.len() > 1 {
        round.pending = Effect::Both(vec![Effect::NoColumn(name.clone()), Effect::NoColumn(second.clone())]);
        format!("({name}, {second})")
    } else {
        round.pending = Effect::NoColumn(name.clone());
        name
    };
    let text = format!("ALTER TABLE {table} DROP{exists} {what}{using}");
    round.drops.comes_back = round.rng.u8(0..8) != 0;
    Some(Question::new(Kind::Schema, text))
}

fn drop_index(round: &mut Round, place: usize) -> Option<Question> {
    let name = round.drops.indexes.get(place)?.name.clone();
    let text = format!("DROP INDEX {name}");
    round.pending = Effect::NoIndex(name);
    Some(Question::new(Kind::Schema, text))
}

/// Whether a type is one of the user's or has one within.
fn has_user_type(ty: &Type) -> bool {
    match ty {
        Type::Udt(..) => true,
        Type::Native(_) | Type::Counter => false,
        Type::List(of) | Type::Set(of) | Type::Vector(of, _) => has_user_type(of),
        Type::Map(key, value) => has_user_type(key) || has_user_type(value),
        Type::Tuple(parts) => parts.iter().any(has_user_type),
    }
}

/// A column that was dropped, mostly as it was.
fn add(round: &mut Round) -> Option<Question> {
    // It may be refused.
    round.drops.comes_back &= round.rng.u8(0..4) != 0;
    let dropped = round.rng.choice(&round.drops.columns)?.clone();
    let column = again(&mut round.rng, dropped);
    let table = round.table.name.clone();
    let one = |column: &Column| {
        let word = if column.role == Role::Static { " static" } else { "" };
        format!("{} {}{word}", column.name, column.cql())
    };
    let exists = if round.rng.u8(0..10) == 0 { " IF NOT EXISTS" } else { "" };
    let second = round.rng.choice(&round.drops.columns)?.clone();
    let what = if second.name != column.name && round.rng.u8(0..4) == 0 {
        let second = again(&mut round.rng, second);
        let what = format!("({}, {})", one(&column), one(&second));
        round.pending = Effect::Both(vec![Effect::Column(column), Effect::Column(second)]);
        what
    } else {
        let what = one(&column);
        round.pending = Effect::Column(column);
        what
    };
    Some(Question::new(
        Kind::Schema,
        format!("ALTER TABLE {table} ADD{exists} {what}"),
    ))
}

/// A column to be added again: the same, one of a type that may read its old values, or another.
fn again(rng: &mut Rng, was: Column) -> Column {
    let ty = match rng.u8(0..16) {
        0..=2 => related(&was.ty),
        3 => schema::added(rng, &was.name, false).ty,
        _ => was.ty.clone(),
    };
    let frozen = if rng.u8(0..20) == 0 { !was.frozen } else { was.frozen };
    let role = match (was.role, rng.u8(0..30)) {
        (Role::Regular, 0) => Role::Static,
        (Role::Static, 0) => Role::Regular,
        (role, _) => role,
    };
    if ty == was.ty {
        let mut column = was.in_role(role);
        column.frozen = frozen;
        return column;
    }
    Column::new(rng, was.name, ty, frozen, role)
}

/// A type with parts that may read the values of those of another.
fn related(ty: &Type) -> Type {
    let of = |ty: &Type| Box::new(related(ty));
    match ty {
        Type::Native(native) => Type::Native(match native {
            Native::Ascii => Native::Text,
            Native::Timestamp => Native::Bigint,
            Native::Bigint => Native::Timestamp,
            Native::Timeuuid => Native::Uuid,
            Native::Text | Native::Varchar | Native::Decimal | Native::Varint | Native::Inet | Native::Duration => {
                Native::Blob
            }
            other => *other,
        }),
        Type::List(element) => Type::List(of(element)),
        Type::Set(element) => Type::Set(of(element)),
        Type::Map(key, value) => Type::Map(key.clone(), of(value)),
        Type::Tuple(parts) => Type::Tuple(parts.iter().map(|part| *of(part)).collect()),
        Type::Vector(element, dimension) => Type::Vector(of(element), *dimension),
        Type::Counter | Type::Udt(..) => ty.clone(),
    }
}

/// An index on a column, often one that was added again.
fn index(round: &mut Round) -> Option<Question> {
    if let Some(place) = round.drops.indexes.len().checked_sub(3) {
        return drop_index(round, place);
    }
    let number = 10 + round.number_of_next();
    let (text, column) = schema::index(&mut round.rng, &round.table, number)?;
    round.pending = Effect::Index(Late {
        name: format!("i{number}"),
        column,
    });
    Some(Question::new(Kind::Schema, text))
}
