//! Random select clauses: columns, their parts, functions of every kind, aggregates, JSON.

use super::functions;
use super::question::Terms;
use super::schema::{Column, Role};
use super::state::Round;
use super::types::{Native, Type};
use super::write;

/// A select clause that fits.
pub(super) fn clause(round: &mut Round, terms: &mut Terms, distinct: bool, grouped: bool) -> String {
    let table = round.table.clone();
    if distinct {
        let mut names = table.partition().iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        for column in table.statics() {
            if round.rng.bool() {
                names.push(column.name.clone());
            }
        }
        return format!("DISTINCT {}", names.join(", "));
    }
    let json = round.rng.u8(0..14) == 0;
    let word = if json { "JSON " } else { "" };
    if round.rng.u8(0..3) == 0 {
        return format!("{word}*");
    }
    if round.rng.u8(0..12) == 0 {
        return "count(*)".to_owned();
    }
    let aggregated = grouped || round.rng.u8(0..12) == 0;
    let count = round.rng.usize(1..5);
    let parts = (0..count)
        .filter_map(|i| {
            let column = round.rng.choice(&table.columns)?.clone();
            let selector = if aggregated && round.rng.u8(0..5) != 0 {
                match functions::selector(round, terms, true) {
                    Some(call) => call,
                    None => aggregate(round, &column),
                }
            } else {
                selector(round, terms, &column)?
            };
            if round.rng.u8(0..12) == 0 {
                Some(format!("{selector} AS x{i}"))
            } else {
                Some(selector)
            }
        })
        .collect::<Vec<_>>();
    let text = if parts.is_empty() {
        "*".to_owned()
    } else {
        parts.join(", ")
    };
    format!("{word}{text}")
}

fn aggregate(round: &mut Round, column: &Column) -> String {
    let name = &column.name;
    let number = column.ty == Type::Counter || column.ty.native().is_some_and(Native::is_number);
    match round.rng.u8(0..8) {
        0..=1 => format!("count({name})"),
        2..=3 => format!("min({name})"),
        4 => format!("max({name})"),
        5 if number => format!("sum({name})"),
        6 if number => format!("avg({name})"),
        _ => "count(*)".to_owned(),
    }
}

fn selector(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    let name = &column.name;
    if round.rng.bool() {
        return Some(name.clone());
    }
    if let Some(call) = functions::selector(round, terms, false) {
        return Some(call);
    }
    let table = round.table.clone();
    Some(match round.rng.u8(0..12) {
        0 => {
            let partition = table.partition();
            let names = partition.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
            format!("token({})", names.join(", "))
        }
        // Not for counters: theirs are the servers' own.
        1..=2 if !table.counter && !table.conditional && (!column.is_key() || round.rng.u8(0..10) == 0) => {
            let function = ["writetime", "ttl", "writetime", "maxwritetime"];
            format!("{}({name})", round.rng.choice(&function)?)
        }
        3 => format!("to_json({name})"),
        4 => {
            let form = round.rng.u8(0..3);
            match form {
                0 => format!("mask_default({name})"),
                1 => format!("mask_null({name})"),
                _ if column.ty.native().is_some() => {
                    let value = column.value(&mut round.rng);
                    format!("mask_replace({name}, {})", value.literal)
                }
                _ => format!("mask_default({name})"),
            }
        }
        _ => by_type(round, terms, column)?,
    })
}

/// What can be asked of a column because of its type.
fn by_type(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    let name = &column.name;
    Some(match &column.ty {
        Type::Counter => match round.rng.u8(0..3) {
            0 => format!("{name} + 1"),
            1 => format!("CAST({name} AS text)"),
            _ => name.clone(),
        },
        Type::Native(native) => of_native(round, *native, name)?,
        Type::List(of) => of_collection(round, name, of.native()),
        Type::Set(of) => match round.rng.u8(0..4) {
            0 => {
                let key = of.value(&mut round.rng);
                format!("{name}[{}]", terms.put(&mut round.rng, &key))
            }
            1 if write::has_order(of) => {
                let (from, to) = (of.value(&mut round.rng), of.value(&mut round.rng));
                let from = terms.put(&mut round.rng, &from);
                format!("{name}[{from}..{}]", terms.put(&mut round.rng, &to))
            }
            _ => of_collection(round, name, of.native()),
        },
        Type::Map(key, value) => match round.rng.u8(0..8) {
            0..=1 => {
                let key = key.value(&mut round.rng);
                format!("{name}[{}]", terms.put(&mut round.rng, &key))
            }
            2 => {
                let from = key.value(&mut round.rng);
                format!("{name}[{}..]", terms.put(&mut round.rng, &from))
            }
            3 => {
                let to = key.value(&mut round.rng);
                format!("{name}[..{}]", terms.put(&mut round.rng, &to))
            }
            4 => format!("map_keys({name})"),
            5 => format!("map_values({name})"),
            _ => of_collection(round, name, value.native()),
        },
        Type::Udt(_, fields) => {
            let (field, _) = round.rng.choice(fields)?;
            format!("{name}.{field}")
        }
        Type::Tuple(_) => format!("mask_default({name})"),
        Type::Vector(of, _) if of.native() == Some(Native::Float) => {
            let functions = ["similarity_cosine", "similarity_euclidean", "similarity_dot_product"];
            let value = column.value(&mut round.rng);
            format!("{}({name}, {})", round.rng.choice(&functions)?, value.literal)
        }
        Type::Vector(..) => name.clone(),
    })
}

fn of_collection(round: &mut Round, name: &str, of: Option<Native>) -> String {
    let functions: &[&str] = if of.is_some_and(Native::is_number) {
        &[
            "collection_count",
            "collection_min",
            "collection_max",
            "collection_sum",
            "collection_avg",
        ]
    } else {
        &["collection_count", "collection_min", "collection_max"]
    };
    format!(
        "{}({name})",
        round.rng.choice(functions).copied().unwrap_or("collection_count")
    )
}

/// Types that values of a type can be cast to.
fn casts(native: Native) -> &'static [&'static str] {
    match native {
        Native::Ascii => &["text", "varchar"],
        Native::Boolean | Native::Time | Native::Uuid | Native::Inet => &["ascii", "text"],
        Native::Date => &["timestamp", "text", "ascii"],
        Native::Timestamp => &["date", "text", "ascii"],
        Native::Timeuuid => &["timestamp", "date", "text", "ascii"],
        n if n.is_number() => &[
            "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "varint", "text", "ascii",
        ],
        _ => &["text"],
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each group of types")]
fn of_native(round: &mut Round, native: Native, name: &str) -> Option<String> {
    let form = round.rng.u8(0..8);
    if form == 0 {
        return Some(format!("CAST({name} AS {})", round.rng.choice(casts(native))?));
    }
    if form == 1 && native != Native::Blob {
        let type_name = native.name();
        return Some(format!("{type_name}_as_blob({name})"));
    }
    Some(match native {
        n if n.is_number() => match form {
            2 => format!("abs({name})"),
            3 => format!("round({name})"),
            4 => format!("-{name}"),
            5 => {
                let operators = ["+", "-", "*", "/", "%"];
                let operator = round.rng.choice(&operators)?;
                format!(
                    "{name} {operator} {}",
                    write::small_number(&mut round.rng, native).literal
                )
            }
            6 => {
                let among = round
                    .table
                    .columns
                    .iter()
                    .filter(|c| c.role != Role::Partition && c.ty.native().is_some_and(Native::is_number))
                    .map(|c| c.name.clone())
                    .collect::<Vec<_>>();
                let operators = ["+", "-", "*", "/", "%"];
                let operator = round.rng.choice(&operators)?;
                format!(
                    "{name} {operator} {}",
                    round.rng.choice(&among).map_or(name, String::as_str)
                )
            }
            _ => {
                let functions = ["exp", "log", "log10"];
                format!("{}({name})", round.rng.choice(&functions)?)
            }
        },
        Native::Date => {
            let forms = ["to_timestamp", "to_unix_timestamp"];
            match form {
                2..=4 => format!("{}({name})", round.rng.choice(&forms)?),
                5 => format!("{name} + 2d"),
                6 => format!("floor({name}, 3d)"),
                _ => format!("{name} - 1mo"),
            }
        }
        Native::Timestamp => {
            let forms = ["to_date", "to_unix_timestamp", "min_timeuuid", "max_timeuuid"];
            match form {
                2..=4 => format!("{}({name})", round.rng.choice(&forms)?),
                5 => format!("{name} + 2h30m"),
                6 => format!("floor({name}, 3h)"),
                _ => format!("{name} - 1mo2d"),
            }
        }
        Native::Time => format!("floor({name}, 2h)"),
        Native::Timeuuid => {
            let forms = ["to_date", "to_timestamp", "to_unix_timestamp"];
            format!("{}({name})", round.rng.choice(&forms)?)
        }
        Native::Text | Native::Ascii | Native::Varchar => match form {
            2 => format!("mask_inner({name}, 1, 1)"),
            3 => format!("mask_outer({name}, 1, null)"),
            4 => format!("mask_hash({name})"),
            5 => format!("{name} + 'z'"),
            _ => format!("text_as_blob({name})"),
        },
        Native::Blob => match form {
            2 => format!("blob_as_text({name})"),
            3 => format!("blob_as_int({name})"),
            _ => format!("mask_hash({name}, 'SHA-512')"),
        },
        _ => name.to_owned(),
    })
}
