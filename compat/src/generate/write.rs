//! Random writes: INSERT, UPDATE, DELETE of every extent, batches, conditions.
//!
//! Deliberately absent: deletions of counters, after which Cassandra may go on from the deleted value
//! (compat/DIFFERENCES.md); values that depend on the server's clock or dice (`now()`, `uuid()`).

use super::functions;
use super::question::{Kind, Question, Terms};
use super::schema::{Column, Role};
use super::state::Round;
use super::types::{self, Native, Type, Val};
use fastrand::Rng;

/// A write of any kind.
pub(super) fn any(round: &mut Round) -> Option<Question> {
    if round.table.counter {
        return if round.rng.u8(0..10) == 0 {
            batch(round)
        } else {
            update(round)
        };
    }
    match round.rng.u8(0..20) {
        0..=6 => insert(round),
        7..=8 => insert_json(round),
        9..=14 => update(round),
        15..=18 => delete(round),
        _ => batch(round),
    }
}

/// One statement that can be part of a batch.
fn plain(round: &mut Round) -> Option<Question> {
    let conditional = std::mem::replace(&mut round.table.conditional, false);
    let question = if round.table.counter {
        update(round)
    } else {
        match round.rng.u8(0..4) {
            0..=1 => insert(round),
            2 => update(round),
            _ => delete(round),
        }
    };
    round.table.conditional = conditional;
    question
}

/// Null, not set, or a value of the column.
fn value_or_null(round: &mut Round, terms: &Terms, column: &Column) -> Val {
    match round.rng.u8(0..16) {
        0..=1 => Val::null(),
        2 if terms.way != super::question::Way::Text => Val {
            literal: String::new(),
            bound: Some("unset".to_owned()),
            json: "null".to_owned(),
        },
        _ => column.value(&mut round.rng),
    }
}

/// As [`Terms::put`], but a value without a literal has to be a marker.
fn put(round: &mut Round, terms: &mut Terms, value: &Val) -> String {
    if value.literal.is_empty() {
        terms.marks.push(value.clone());
        return "?".to_owned();
    }
    terms.put(&mut round.rng, value)
}

/// ` USING …`, or nothing for a conditional write.
fn using(round: &mut Round, terms: &mut Terms, with_ttl: bool) -> String {
    let mut parts = Vec::new();
    if round.rng.u8(0..12) != 0 {
        let stamp = Val::bigint(round.timestamp());
        parts.push(format!("TIMESTAMP {}", terms.put(&mut round.rng, &stamp)));
    }
    if with_ttl && round.may_expire && round.rng.u8(0..5) == 0 {
        let ttl = match round.rng.u8(0..12) {
            0 => Val::int(0),
            1 => Val::null(),
            _ => Val::int(round.ttl()),
        };
        let ttl = put(round, terms, &ttl);
        parts.push(format!("TTL {ttl}"));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!(" USING {}", parts.join(" AND "))
    }
}

/// A condition goes to the end of a write of a table that takes conditions, now and then.
fn is_conditional(round: &mut Round) -> bool {
    round.table.conditional && round.rng.u8(0..3) == 0
}

/// INSERT of a row, or of static columns only.
pub(super) fn insert(round: &mut Round) -> Option<Question> {
    if round.table.counter {
        return update(round);
    }
    let mut terms = Terms::new(&mut round.rng);
    let table = round.table.clone();
    let statics_only = !table.statics().is_empty() && round.rng.u8(0..6) == 0;
    let mut names = Vec::new();
    let mut values = Vec::new();
    for column in &table.columns {
        let (taken, value) = match column.role {
            Role::Partition => (true, column.value(&mut round.rng)),
            Role::Clustering(_) => (!statics_only, column.value(&mut round.rng)),
            Role::Static => (
                statics_only || round.rng.u8(0..3) == 0,
                value_or_null(round, &terms, column),
            ),
            Role::Regular => (
                !statics_only && round.rng.u8(0..4) != 0,
                value_or_null(round, &terms, column),
            ),
        };
        if taken {
            names.push(column.name.clone());
            values.push(match functions::value(round, &mut terms, column) {
                Some(call) => call,
                None => put(round, &mut terms, &value),
            });
        }
    }
    let conditional = is_conditional(round);
    let end = if conditional {
        let ttl = if round.may_expire && round.rng.u8(0..6) == 0 {
            " USING TTL 100000"
        } else {
            ""
        };
        format!(" IF NOT EXISTS{ttl}")
    } else {
        using(round, &mut terms, true)
    };
    let text = format!(
        "INSERT INTO {} ({}) VALUES ({}){end}",
        table.name,
        names.join(", "),
        values.join(", ")
    );
    Some(terms.finish(Kind::Write, text))
}

fn insert_json(round: &mut Round) -> Option<Question> {
    let mut terms = Terms::new(&mut round.rng);
    let table = round.table.clone();
    let mut parts = Vec::new();
    for column in &table.columns {
        if !column.is_key() && round.rng.u8(0..3) == 0 {
            continue;
        }
        let value = if !column.is_key() && round.rng.u8(0..10) == 0 {
            Val::null()
        } else {
            column.value(&mut round.rng)
        };
        let name = if column.name.starts_with('"') {
            // A name that keeps its case is quoted within the JSON string.
            format!("\"\\\"{}\\\"\"", column.name.trim_matches('"'))
        } else {
            format!("\"{}\"", column.name)
        };
        parts.push(format!("{name}: {}", value.json));
    }
    let json = format!("{{{}}}", parts.join(", "));
    let quoted = format!("'{}'", json.replace('\'', "''"));
    let value = Val {
        bound: Some(format!("text({quoted})")),
        literal: quoted,
        json: String::new(),
    };
    let json = terms.put(&mut round.rng, &value);
    let default = ["", " DEFAULT NULL", " DEFAULT UNSET"];
    let default = round.rng.choice(&default)?;
    let end = using(round, &mut terms, true);
    Some(terms.finish(
        Kind::Write,
        format!("INSERT INTO {} JSON {json}{default}{end}", table.name),
    ))
}

/// `column = value` or `column IN (…)`.
fn restriction(round: &mut Round, terms: &mut Terms, column: &Column, with_in: bool) -> String {
    if with_in && round.rng.u8(0..8) == 0 {
        let count = round.rng.usize(0..4);
        let values = (0..count)
            .map(|_| {
                let value = column.value(&mut round.rng);
                terms.put(&mut round.rng, &value)
            })
            .collect::<Vec<_>>();
        return format!("{} IN ({})", column.name, values.join(", "));
    }
    format!("{} = {}", column.name, put_value(round, terms, column))
}

/// The whole primary key, or only the partition key.
fn key(round: &mut Round, terms: &mut Terms, with_clustering: bool, with_in: bool) -> String {
    let table = round.table.clone();
    let parts = table
        .columns
        .iter()
        .filter(|c| c.role == Role::Partition || (with_clustering && matches!(c.role, Role::Clustering(_))))
        .map(|c| restriction(round, terms, c, with_in))
        .collect::<Vec<_>>();
    parts.join(" AND ")
}

fn update(round: &mut Round) -> Option<Question> {
    let mut terms = Terms::new(&mut round.rng);
    let table = round.table.clone();
    let (statics, regular) = (table.statics(), table.regular());
    let statics_only = !statics.is_empty() && (regular.is_empty() || round.rng.u8(0..5) == 0);
    let among = if statics_only { &statics } else { &regular };
    let conditional = is_conditional(round);
    let using = if conditional || table.counter {
        String::new()
    } else {
        using(round, &mut terms, true)
    };
    let mut assignments = Vec::new();
    let count = round.rng.usize(1..4);
    let mut left = among.clone();
    for _ in 0..count {
        if left.is_empty() {
            break;
        }
        let column = left.swap_remove(round.rng.usize(0..left.len()));
        assignments.push(assignment(round, &mut terms, column)?);
    }
    if assignments.is_empty() {
        return None;
    }
    let key = key(round, &mut terms, !statics_only, !conditional);
    let end = if conditional {
        conditions(round, &mut terms, statics_only)
    } else {
        String::new()
    };
    let text = format!(
        "UPDATE {}{using} SET {} WHERE {key}{end}",
        table.name,
        assignments.join(", ")
    );
    Some(terms.finish(Kind::Write, text))
}

fn assignment(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    let name = &column.name;
    if column.ty == Type::Counter {
        let by = Val::bigint(round.rng.i64(-5..20));
        let sign = if round.rng.u8(0..4) == 0 { "-" } else { "+" };
        return Some(format!("{name} = {name} {sign} {}", terms.put(&mut round.rng, &by)));
    }
    let part = column.is_multicell() && round.rng.u8(0..3) != 0;
    if !part {
        let value = match functions::value(round, terms, column) {
            Some(call) => call,
            None => {
                let value = value_or_null(round, terms, column);
                put(round, terms, &value)
            }
        };
        return Some(format!("{name} = {value}"));
    }
    let form = round.rng.u8(0..6);
    Some(match &column.ty {
        Type::List(of) => match form {
            0..=1 => format!("{name} = {name} + {}", put_value(round, terms, column)),
            2 => format!("{name} = {} + {name}", put_value(round, terms, column)),
            3 => format!("{name} = {name} - {}", put_value(round, terms, column)),
            4 => format!("{name} += {}", put_value(round, terms, column)),
            _ => {
                let at = Val::int(round.rng.i64(0..3));
                let at = terms.put(&mut round.rng, &at);
                let value = element(round, of);
                format!("{name}[{at}] = {}", put(round, terms, &value))
            }
        },
        Type::Set(_) => match form {
            0..=2 => format!("{name} = {name} + {}", put_value(round, terms, column)),
            3 => format!("{name} -= {}", put_value(round, terms, column)),
            _ => format!("{name} = {name} - {}", put_value(round, terms, column)),
        },
        Type::Map(key, value) => match form {
            0..=1 => format!("{name} = {name} + {}", put_value(round, terms, column)),
            2 => {
                let keys = key.values(&mut round.rng);
                let mut keys = types::several("{", "}", "set", &keys);
                keys.bound = None;
                format!("{name} = {name} - {}", terms.put(&mut round.rng, &keys))
            }
            _ => {
                let key = key.value(&mut round.rng);
                let key = terms.put(&mut round.rng, &key);
                let value = element(round, value);
                format!("{name}[{key}] = {}", put(round, terms, &value))
            }
        },
        Type::Udt(_, fields) => {
            let (field, ty) = round.rng.choice(fields)?;
            let value = element(round, ty);
            format!("{name}.{field} = {}", put(round, terms, &value))
        }
        _ => return None,
    })
}

/// A value of a part of a column, or null.
fn element(round: &mut Round, ty: &Type) -> Val {
    if round.rng.u8(0..6) == 0 {
        Val::null()
    } else {
        ty.value(&mut round.rng)
    }
}

fn put_value(round: &mut Round, terms: &mut Terms, column: &Column) -> String {
    if let Some(call) = functions::value(round, terms, column) {
        return call;
    }
    let value = column.value(&mut round.rng);
    terms.put(&mut round.rng, &value)
}

/// ` IF …`
fn conditions(round: &mut Round, terms: &mut Terms, statics_only: bool) -> String {
    if round.rng.u8(0..4) == 0 {
        return " IF EXISTS".to_owned();
    }
    let table = round.table.clone();
    let among = table
        .columns
        .iter()
        .filter(|c| c.role == Role::Static || (c.role == Role::Regular && !statics_only))
        .collect::<Vec<_>>();
    let count = round.rng.usize(1..3);
    let parts = (0..count)
        .filter_map(|_| {
            let column = *round.rng.choice(&among)?;
            condition(round, terms, column)
        })
        .collect::<Vec<_>>();
    if parts.is_empty() {
        return " IF EXISTS".to_owned();
    }
    format!(" IF {}", parts.join(" AND "))
}

fn condition(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    let name = &column.name;
    if round.rng.u8(0..4) == 0 {
        match &column.ty {
            Type::List(of) => {
                let at = Val::int(round.rng.i64(0..3));
                let at = terms.put(&mut round.rng, &at);
                let value = element(round, of);
                return Some(format!("{name}[{at}] = {}", terms.put(&mut round.rng, &value)));
            }
            Type::Map(key, of) => {
                let key = key.value(&mut round.rng);
                let key = terms.put(&mut round.rng, &key);
                let value = element(round, of);
                return Some(format!("{name}[{key}] = {}", terms.put(&mut round.rng, &value)));
            }
            Type::Udt(_, fields) => {
                let (field, ty) = round.rng.choice(fields)?;
                let value = element(round, ty);
                return Some(format!("{name}.{field} = {}", terms.put(&mut round.rng, &value)));
            }
            _ => {}
        }
    }
    if round.rng.u8(0..6) == 0 {
        let count = round.rng.usize(0..3);
        let values = (0..count).map(|_| put_value(round, terms, column)).collect::<Vec<_>>();
        return Some(format!("{name} IN ({})", values.join(", ")));
    }
    let operators = ["=", "=", "=", "!=", "<", "<=", ">", ">="];
    let operator = if column.ty.has_duration() {
        &"="
    } else {
        round.rng.choice(&operators)?
    };
    let is_equality = matches!(*operator, "=" | "!=");
    let value = if is_equality && round.rng.u8(0..4) == 0 {
        Val::null()
    } else {
        column.value(&mut round.rng)
    };
    // Which of several conditions Cassandra looks at first, and so whether it refuses null or what is empty and so null,
    // depends on a hash.
    let is_empty = matches!(value.literal.as_str(), "[]" | "{}");
    let operator = if is_empty && column.is_multicell() {
        "="
    } else {
        operator
    };
    Some(format!("{name} {operator} {}", terms.put(&mut round.rng, &value)))
}

fn delete(round: &mut Round) -> Option<Question> {
    let mut terms = Terms::new(&mut round.rng);
    let table = round.table.clone();
    let conditional = is_conditional(round);
    let extent = round.rng.u8(0..10);
    // What is deleted comes first in the text.
    let mut what = Vec::new();
    let mut statics_only = false;
    if extent < 4 {
        let (statics, regular) = (table.statics(), table.regular());
        statics_only = !statics.is_empty() && (regular.is_empty() || round.rng.u8(0..5) == 0);
        let among = if statics_only { &statics } else { &regular };
        for _ in 0..round.rng.usize(1..3) {
            if let Some(column) = round.rng.choice(among).copied() {
                what.push(deletion(round, &mut terms, column));
            }
        }
    }
    let using = if conditional || round.rng.u8(0..12) == 0 {
        String::new()
    } else {
        let stamp = Val::bigint(round.timestamp());
        format!(" USING TIMESTAMP {}", terms.put(&mut round.rng, &stamp))
    };
    let clustering = table.clustering();
    let key = match extent {
        0..=6 => key(round, &mut terms, !statics_only, !conditional),
        7 if !clustering.is_empty() => {
            let mut parts = vec![key(round, &mut terms, false, true)];
            parts.extend(slice(round, &mut terms, &clustering));
            parts.join(" AND ")
        }
        _ => key(round, &mut terms, false, !conditional),
    };
    let end = if conditional {
        conditions(round, &mut terms, statics_only || extent > 7)
    } else {
        String::new()
    };
    let what = if what.is_empty() {
        String::new()
    } else {
        format!("{} ", what.join(", "))
    };
    Some(terms.finish(
        Kind::Write,
        format!("DELETE {what}FROM {}{using} WHERE {key}{end}", table.name),
    ))
}

fn deletion(round: &mut Round, terms: &mut Terms, column: &Column) -> String {
    let name = &column.name;
    if !column.is_multicell() || round.rng.bool() {
        return name.clone();
    }
    match &column.ty {
        Type::List(_) => {
            let at = Val::int(round.rng.i64(0..3));
            format!("{name}[{}]", terms.put(&mut round.rng, &at))
        }
        Type::Set(of) | Type::Map(of, _) => {
            let key = of.value(&mut round.rng);
            format!("{name}[{}]", terms.put(&mut round.rng, &key))
        }
        Type::Udt(_, fields) => match round.rng.choice(fields) {
            Some((field, _)) => format!("{name}.{field}"),
            None => name.clone(),
        },
        _ => name.clone(),
    }
}

/// Restrictions of the first clustering columns, the last of them to a range.
pub(super) fn slice(round: &mut Round, terms: &mut Terms, clustering: &[&Column]) -> Vec<String> {
    let depth = round.rng.usize(0..clustering.len().max(1));
    let mut parts = Vec::new();
    for column in clustering.iter().take(depth) {
        parts.push(restriction(round, terms, column, false));
    }
    if round.rng.u8(0..4) == 0 {
        // A range over several columns at once.
        let rest = clustering.iter().skip(depth).copied().collect::<Vec<_>>();
        let upto = round.rng.usize(1..=rest.len().max(1));
        let rest = rest.into_iter().take(upto).collect::<Vec<_>>();
        parts.extend(tuple_range(round, terms, &rest));
        return parts;
    }
    if let Some(column) = clustering.get(depth) {
        let (low, high) = (round.rng.bool(), round.rng.bool());
        if low || !high {
            let operator = if round.rng.bool() { ">" } else { ">=" };
            parts.push(format!(
                "{} {operator} {}",
                column.name,
                put_value(round, terms, column)
            ));
        }
        if high {
            let operator = if round.rng.bool() { "<" } else { "<=" };
            parts.push(format!(
                "{} {operator} {}",
                column.name,
                put_value(round, terms, column)
            ));
        }
    }
    parts
}

/// `(a, b) > (…, …)`, with one bound or both.
pub(super) fn tuple_range(round: &mut Round, terms: &mut Terms, columns: &[&Column]) -> Vec<String> {
    let names = columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
    let (low, high) = (round.rng.bool(), round.rng.bool());
    let mut parts = Vec::new();
    let mut bound = |round: &mut Round, terms: &mut Terms, operators: [&str; 2]| {
        let operator = operators.get(usize::from(round.rng.bool())).copied().unwrap_or(">");
        let values = tuple(round, terms, columns);
        parts.push(format!("({names}) {operator} {values}"));
    };
    if low || !high {
        bound(round, terms, [">", ">="]);
    }
    if high {
        bound(round, terms, ["<", "<="]);
    }
    parts
}

/// A tuple of values for columns: one marker, or a term for each.
pub(super) fn tuple(round: &mut Round, terms: &mut Terms, columns: &[&Column]) -> String {
    let values = columns.iter().map(|c| c.value(&mut round.rng)).collect::<Vec<_>>();
    let whole = types::several("(", ")", "tuple", &values);
    if terms.way != super::question::Way::Text && whole.bound.is_some() && round.rng.u8(0..3) == 0 {
        terms.marks.push(whole);
        return "?".to_owned();
    }
    let parts = values.iter().map(|v| terms.put(&mut round.rng, v)).collect::<Vec<_>>();
    format!("({})", parts.join(", "))
}

fn batch(round: &mut Round) -> Option<Question> {
    let count = round.rng.usize(1..5);
    let statements = (0..count).filter_map(|_| plain(round)).collect::<Vec<_>>();
    if statements.is_empty() {
        return None;
    }
    let kinds: &[&str] = if round.table.counter {
        &["counter"]
    } else {
        &["logged", "unlogged"]
    };
    let kind = round.rng.choice(kinds).copied()?;
    if round.rng.bool() {
        let mut batch = Question::new(Kind::Write, "");
        // A statement within a batch is prepared or has no values at all.
        let statements = statements
            .into_iter()
            .map(|mut q| {
                if !q.marks.is_empty() {
                    q.way = super::question::Way::Prepared;
                }
                q
            })
            .collect();
        batch.batch = Some((kind, statements));
        return Some(batch);
    }
    let texts = statements
        .iter()
        .map(|q| {
            let inlined = q.inlined();
            match inlined {
                Some(q) => Some(q.text),
                None if q.marks.is_empty() => Some(q.text.clone()),
                None => None,
            }
        })
        .collect::<Option<Vec<_>>>()?;
    let word = match kind {
        "unlogged" => "UNLOGGED ",
        "counter" => "COUNTER ",
        _ => "",
    };
    // A timestamp of the batch excludes those of its statements; with one too many it is refused.
    let using = if !round.table.counter && round.rng.u8(0..10) == 0 {
        format!(" USING TIMESTAMP {}", round.timestamp())
    } else {
        String::new()
    };
    Some(Question::new(
        Kind::Write,
        format!("BEGIN {word}BATCH{using} {}; APPLY BATCH", texts.join("; ")),
    ))
}

/// Whether values of the type can be compared with `<`.
pub(super) fn has_order(ty: &Type) -> bool {
    !ty.has_duration()
}

/// A number that fits any numeric type.
pub(super) fn small_number(rng: &mut Rng, native: Native) -> Val {
    let n = rng.i64(-3..12);
    let literal = match native {
        Native::Float | Native::Double | Native::Decimal if rng.bool() => format!("{n}.5"),
        _ => n.to_string(),
    };
    Val {
        literal,
        bound: None,
        json: n.to_string(),
    }
}
