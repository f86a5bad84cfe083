//! Random SELECTs: restrictions of every kind, order, limits, groups, pages. What is selected is made by
//! [`super::select`].

use super::functions;
use super::question::{Kind, Question, Terms, Way};
use super::schema::{Column, Role};
use super::select;
use super::state::Round;
use super::types::{self, Type, Val};
use super::write;

/// Rows per page that are asked for.
const PAGES: [i32; 7] = [1, 2, 3, 5, 7, 50, 5000];

/// How the partitions are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The partition key is restricted wholly.
    Partitions,
    /// A range of tokens.
    Tokens,
    /// Everything.
    All,
    /// Anything goes, with ALLOW FILTERING.
    Filter,
    /// A restriction of a column with an index.
    Index,
}

/// A SELECT.
pub(super) fn any(round: &mut Round) -> Option<Question> {
    let mut terms = Terms::new(&mut round.rng);
    let table = round.table.clone();
    let reach = match round.rng.u8(0..20) {
        0..=7 => Reach::Partitions,
        8..=10 => Reach::Tokens,
        11..=12 => Reach::All,
        13..=16 if !table.indexed.is_empty() => Reach::Index,
        _ => Reach::Filter,
    };
    let distinct = round.rng.u8(0..14) == 0;
    let group = if !distinct && round.rng.u8(0..8) == 0 {
        groups(round)
    } else {
        Vec::new()
    };
    let selected = select::clause(round, &mut terms, distinct, !group.is_empty());
    let mut filtering = reach == Reach::Filter;
    let mut restrictions = match reach {
        Reach::Partitions => partitions(round, &mut terms, distinct),
        Reach::Tokens => tokens(round, &mut terms),
        Reach::All => Vec::new(),
        Reach::Filter => filters(round, &mut terms, 1, 4),
        Reach::Index => indexed(round, &mut terms, &mut filtering),
    };
    if matches!(reach, Reach::Partitions | Reach::Tokens) && round.rng.u8(0..8) == 0 {
        restrictions.extend(filters(round, &mut terms, 1, 3));
        filtering = true;
    }
    let mut text = format!("SELECT {} FROM {}", selected, table.name);
    if !restrictions.is_empty() {
        text.push_str(" WHERE ");
        text.push_str(&restrictions.join(" AND "));
    }
    if !group.is_empty() {
        text.push_str(" GROUP BY ");
        text.push_str(&group.join(", "));
    }
    let clustering = table.clustering();
    if !clustering.is_empty() && round.rng.u8(0..5) == 0 && (reach == Reach::Partitions || round.rng.u8(0..10) == 0) {
        text.push_str(&order(round, &clustering));
    }
    if round.rng.u8(0..8) == 0 {
        let limit = Val::int(round.rng.i64(1..4));
        text.push_str(&format!(" PER PARTITION LIMIT {}", terms.put(&mut round.rng, &limit)));
    }
    if round.rng.u8(0..5) == 0 {
        let limit = Val::int(round.rng.i64(1..12));
        text.push_str(&format!(" LIMIT {}", terms.put(&mut round.rng, &limit)));
    }
    if filtering && round.rng.u8(0..20) != 0 {
        text.push_str(" ALLOW FILTERING");
    }
    let mut question = terms.finish(Kind::Read, text);
    if round.rng.u8(0..3) == 0 {
        question.page = round.rng.choice(PAGES.iter()).copied();
    }
    Some(question)
}

fn put_value(round: &mut Round, terms: &mut Terms, column: &Column) -> String {
    if let Some(call) = functions::value(round, terms, column) {
        return call;
    }
    let value = column.value(&mut round.rng);
    terms.put(&mut round.rng, &value)
}

/// `column = …` or `column IN …`.
fn equal_or_in(round: &mut Round, terms: &mut Terms, column: &Column) -> String {
    if round.rng.u8(0..5) != 0 {
        return format!("{} = {}", column.name, put_value(round, terms, column));
    }
    let count = round.rng.usize(0..4);
    let values = (0..count).map(|_| column.value(&mut round.rng)).collect::<Vec<_>>();
    let whole = types::several("(", ")", "list", &values);
    if terms.way != Way::Text && whole.bound.is_some() && round.rng.bool() {
        terms.marks.push(whole);
        return format!("{} IN ?", column.name);
    }
    let parts = values.iter().map(|v| terms.put(&mut round.rng, v)).collect::<Vec<_>>();
    format!("{} IN ({})", column.name, parts.join(", "))
}

/// The whole partition key, and some of the clustering columns.
fn partitions(round: &mut Round, terms: &mut Terms, distinct: bool) -> Vec<String> {
    let table = round.table.clone();
    let mut parts = Vec::new();
    for column in table.partition() {
        parts.push(equal_or_in(round, terms, column));
    }
    let clustering = table.clustering();
    if clustering.is_empty() || distinct {
        return parts;
    }
    match round.rng.u8(0..8) {
        0..=1 => {}
        2..=3 => {
            let depth = round.rng.usize(0..=clustering.len());
            for column in clustering.iter().take(depth) {
                parts.push(equal_or_in(round, terms, column));
            }
        }
        4 => {
            let depth = round.rng.usize(1..=clustering.len());
            let columns = clustering.iter().take(depth).copied().collect::<Vec<_>>();
            let names = columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
            let count = round.rng.usize(0..4);
            let tuples = (0..count)
                .map(|_| write::tuple(round, terms, &columns))
                .collect::<Vec<_>>();
            parts.push(format!("({names}) IN ({})", tuples.join(", ")));
        }
        5 => {
            let depth = round.rng.usize(1..=clustering.len());
            let columns = clustering.iter().take(depth).copied().collect::<Vec<_>>();
            parts.extend(write::tuple_range(round, terms, &columns));
        }
        _ => parts.extend(write::slice(round, terms, &clustering)),
    }
    parts
}

/// `token(…) > …`, bounds as tokens of values or as numbers.
fn tokens(round: &mut Round, terms: &mut Terms) -> Vec<String> {
    let table = round.table.clone();
    let partition = table.partition();
    let names = partition.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    let both = round.rng.bool();
    let first: &[&str] = if both {
        &[">", ">="]
    } else {
        &[">", ">=", "<", "<=", "="]
    };
    let mut bound = |round: &mut Round, terms: &mut Terms, operators: &[&str]| {
        let operator = round.rng.choice(operators).copied().unwrap_or(">");
        let value = if round.rng.bool() {
            let values = partition.iter().map(|c| put_value(round, terms, c)).collect::<Vec<_>>();
            format!("token({})", values.join(", "))
        } else {
            let all = [
                i64::MIN,
                -5_000_000_000_000_000_000,
                -1,
                0,
                3_000_000_000_000_000_000,
                i64::MAX,
            ];
            let value = Val::bigint(round.rng.choice(all.iter()).copied().unwrap_or(0));
            terms.put(&mut round.rng, &value)
        };
        parts.push(format!("token({names}) {operator} {value}"));
    };
    bound(round, terms, first);
    if both {
        bound(round, terms, &["<", "<="]);
    }
    parts
}

/// Restrictions of any columns.
fn filters(round: &mut Round, terms: &mut Terms, least: usize, below: usize) -> Vec<String> {
    let table = round.table.clone();
    let count = round.rng.usize(least..below);
    (0..count)
        .filter_map(|_| {
            let column = round.rng.choice(&table.columns)?;
            filter(round, terms, column)
        })
        .collect()
}

fn filter(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    let name = &column.name;
    let within = column.ty.is_collection() && (column.is_multicell() || round.rng.bool());
    if within && round.rng.u8(0..15) != 0 {
        return Some(match &column.ty {
            Type::List(of) | Type::Set(of) => {
                let value = of.value(&mut round.rng);
                format!("{name} CONTAINS {}", terms.put(&mut round.rng, &value))
            }
            Type::Map(key, value) => match round.rng.u8(0..3) {
                0 => {
                    let value = value.value(&mut round.rng);
                    format!("{name} CONTAINS {}", terms.put(&mut round.rng, &value))
                }
                1 => {
                    let key = key.value(&mut round.rng);
                    format!("{name} CONTAINS KEY {}", terms.put(&mut round.rng, &key))
                }
                _ => {
                    let key = key.value(&mut round.rng);
                    let key = terms.put(&mut round.rng, &key);
                    let value = value.value(&mut round.rng);
                    format!("{name}[{key}] = {}", terms.put(&mut round.rng, &value))
                }
            },
            _ => return None,
        });
    }
    if column.role != Role::Regular && round.rng.u8(0..6) == 0 {
        return Some(equal_or_in(round, terms, column));
    }
    let operators = ["=", "=", "=", "<", "<=", ">", ">="];
    let operator = if write::has_order(&column.ty) || round.rng.u8(0..20) == 0 {
        round.rng.choice(&operators)?
    } else {
        "="
    };
    Some(format!("{name} {operator} {}", put_value(round, terms, column)))
}

/// A restriction of an indexed column, mostly nothing else, so that only an index can answer.
fn indexed(round: &mut Round, terms: &mut Terms, filtering: &mut bool) -> Vec<String> {
    let table = round.table.clone();
    let mut parts = Vec::new();
    let count = if table.indexed.len() > 1 {
        round.rng.usize(1..3)
    } else {
        1
    };
    for _ in 0..count {
        let name = round.rng.choice(&table.indexed).cloned().unwrap_or_default();
        if let Some(column) = table.columns.iter().find(|c| c.name == name) {
            parts.extend(filter(round, terms, column));
        }
    }
    if round.rng.u8(0..4) == 0 {
        for column in table.partition() {
            parts.push(format!("{} = {}", column.name, put_value(round, terms, column)));
        }
    }
    if round.rng.u8(0..4) == 0 {
        parts.extend(filters(round, terms, 1, 2));
        *filtering = true;
    }
    *filtering |= round.rng.u8(0..3) == 0;
    parts
}

/// ` ORDER BY …`: the table's order, its reverse, or now and then neither.
fn order(round: &mut Round, clustering: &[&Column]) -> String {
    let reverse = round.rng.bool();
    let depth = round.rng.usize(1..=clustering.len());
    let parts = clustering
        .iter()
        .take(depth)
        .map(|c| {
            let mut descending = (c.role == Role::Clustering(true)) != reverse;
            if round.rng.u8(0..12) == 0 {
                descending = !descending;
            }
            format!("{} {}", c.name, if descending { "DESC" } else { "ASC" })
        })
        .collect::<Vec<_>>();
    format!(" ORDER BY {}", parts.join(", "))
}

/// The first columns of the primary key.
fn groups(round: &mut Round) -> Vec<String> {
    let table = round.table.clone();
    let keys = table.columns.iter().filter(|c| c.is_key()).collect::<Vec<_>>();
    let least = if round.rng.u8(0..6) == 0 {
        1
    } else {
        table.partition().len()
    };
    let depth = round.rng.usize(least.min(keys.len())..=keys.len());
    keys.iter().take(depth).map(|c| c.name.clone()).collect()
}
