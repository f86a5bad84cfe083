//! Random user functions and aggregates over the types of the round's table, and calls of them.
//!
//! Bodies come from templates by the types of arguments and result; `drivers/python/bodies.py` is the judge of the language itself.

use super::question::{Kind, Question, Terms};
use super::schema::Column;
use super::state::{Effect, Function, Round};
use super::types::{Native, Type};

/// Functions and aggregates of a keyspace at the same time, at most.
const FUNCTIONS_MAX: usize = 6;

/// A number or text of Java: its box, its plain type.
fn java(native: Native) -> Option<(&'static str, &'static str)> {
    Some(match native {
        Native::Int => ("Integer", "int"),
        Native::Bigint => ("Long", "long"),
        Native::Smallint => ("Short", "short"),
        Native::Tinyint => ("Byte", "byte"),
        Native::Double => ("Double", "double"),
        Native::Float => ("Float", "float"),
        Native::Boolean => ("Boolean", "boolean"),
        Native::Text | Native::Varchar | Native::Ascii => ("String", "String"),
        _ => return None,
    })
}

fn is_number(ty: &Type) -> bool {
    ty.native()
        .is_some_and(|native| native.is_number() && java(native).is_some())
}

fn is_text(ty: &Type) -> bool {
    ty.native()
        .is_some_and(|native| java(native).is_some_and(|(name, _)| name == "String"))
}

/// What counters are as arguments.
fn as_argument(ty: &Type) -> Type {
    match ty {
        Type::Counter => Type::Native(Native::Bigint),
        ty => ty.clone(),
    }
}

/// Expressions and statements that give `returns` out of one argument `a`.
#[expect(clippy::too_many_lines, reason = "one body after another")]
fn bodies(a: &str, ty: &Type, returns: &Type) -> Vec<String> {
    let mut all = Vec::new();
    if ty == returns {
        all.push(format!("return {a};"));
        all.push(format!(
            "if ({a} == null) throw new RuntimeException(\"nothing\"); return {a};"
        ));
    }
    let to = returns.native().and_then(java);
    let (Some((boxed, plain)), Some(result)) = (to, returns.native()) else {
        return all;
    };
    if is_number(returns) && is_number(ty) {
        all.push(format!("return ({plain}) ({a} * 3 + 1);"));
        all.push(format!("return ({plain}) Math.abs({a});"));
        all.push(format!("return ({plain}) ({a} % 7);"));
        all.push(format!("return ({plain}) (100 / {a});"));
        all.push(format!(
            "if ({a} > 100) throw new IllegalArgumentException(\"over \" + {a}); return ({plain}) -{a};"
        ));
        all.push(format!(
            "long s = 0; for (int i = 0; i < 5; i++) {{ s += {a}; }} return ({plain}) s;"
        ));
        all.push(format!(
            "{plain} r; switch ((int) ({plain}) {a} % 3) {{ case 0: r = 1; break; case 1: r = 2; default: r = 3; }} return r;"
        ));
    }
    if is_number(returns) && is_text(ty) {
        all.push(format!("return ({plain}) {a}.length();"));
        all.push(format!("return ({plain}) {a}.indexOf(\"b\");"));
        if result == Native::Int {
            all.push(format!("return Integer.parseInt({a});"));
            all.push(format!("return (int) {a}.charAt(1);"));
        }
    }
    if is_number(returns) && ty.is_collection() {
        all.push(format!("return ({plain}) {a}.size();"));
    }
    if result == Native::Boolean {
        if ty.is_collection() || is_text(ty) {
            all.push(format!("return {a}.isEmpty();"));
        }
        if is_number(ty) {
            all.push(format!("return {a} >= 2;"));
        }
        if *ty == Type::Native(Native::Boolean) {
            all.push(format!("return !{a};"));
        }
    }
    if is_text(returns) {
        if ty.native().is_some_and(|native| java(native).is_some()) {
            all.push(format!("return \"<\" + {a} + \">\";"));
            all.push(format!("return String.valueOf({a});"));
        }
        if is_text(ty) {
            all.push(format!("return {a}.toUpperCase();"));
            all.push(format!("return {a}.substring(1);"));
            all.push(format!("return new StringBuilder({a}).reverse().toString();"));
            all.push(format!("return {a} == null ? \"none\" : {a}.trim();"));
        }
    }
    match ty {
        Type::List(of) if **of == *returns => {
            all.push(format!("return {a}.get(0);"));
            all.push(format!("return {a}.isEmpty() ? null : {a}.get({a}.size() - 1);"));
        }
        Type::Set(of) if **of == *returns => {
            all.push(format!("for ({boxed} e : {a}) {{ return e; }} return null;"));
        }
        Type::Tuple(fields) if fields.first() == Some(returns) => {
            all.extend(getter(result).map(|get| format!("return {a}.{get}(0);")));
        }
        Type::Udt(_, fields) => {
            let fitting = fields.iter().filter(|(_, field)| field == returns);
            all.extend(fitting.filter_map(|(name, _)| {
                let get = getter(result)?;
                Some(format!("return {a}.{get}(\"{name}\");"))
            }));
        }
        _ => {}
    }
    all
}

/// The method of a tuple or a user's value that gives a field of this type.
fn getter(native: Native) -> Option<&'static str> {
    Some(match native {
        Native::Int => "getInt",
        Native::Bigint => "getLong",
        Native::Smallint => "getShort",
        Native::Tinyint => "getByte",
        Native::Double => "getDouble",
        Native::Float => "getFloat",
        Native::Boolean => "getBool",
        Native::Text | Native::Varchar | Native::Ascii => "getString",
        _ => return None,
    })
}

/// The types of the table's columns, counters as numbers.
fn types_of(round: &Round) -> Vec<Type> {
    round.table.columns.iter().map(|c| as_argument(&c.ty)).collect()
}

fn head(round: &mut Round, what: &str) -> &'static str {
    let words: &[&str] = match what {
        "FUNCTION" => &[
            "CREATE FUNCTION",
            "CREATE FUNCTION",
            "CREATE OR REPLACE FUNCTION",
            "CREATE FUNCTION IF NOT EXISTS",
        ],
        _ => &["CREATE AGGREGATE", "CREATE AGGREGATE", "CREATE OR REPLACE AGGREGATE"],
    };
    round.rng.choice(words).copied().unwrap_or("CREATE FUNCTION")
}

/// A function of the round, as permissions name it; now and then with other arguments.
pub(super) fn named(round: &mut Round) -> Option<String> {
    let function = round.rng.choice(&round.functions)?;
    // Without a keyspace it is refused.
    let keyspace = if round.rng.u8(0..12) == 0 { "" } else { "{ks}." };
    Some(format!("{keyspace}{}", function.signature()))
}

/// A name that is new, or now and then one that is there.
fn name(round: &mut Round, prefix: &str) -> String {
    let there = round
        .functions
        .iter()
        .filter(|f| f.name.starts_with(prefix))
        .map(|f| f.name.clone());
    let there = there.collect::<Vec<_>>();
    match round.rng.choice(&there) {
        Some(name) if round.rng.u8(0..5) == 0 => name.clone(),
        _ => format!("{prefix}{}", round.number_of_next()),
    }
}

/// CREATE FUNCTION.
fn create(round: &mut Round) -> Question {
    let types = types_of(round);
    let count = [1, 1, 1, 2, 2, 0].get(round.rng.usize(0..6)).copied().unwrap_or(1);
    let arguments = (0..count)
        .filter_map(|_| round.rng.choice(&types).cloned())
        .collect::<Vec<_>>();
    let plain = [
        Native::Int,
        Native::Text,
        Native::Bigint,
        Native::Double,
        Native::Boolean,
    ];
    let returns = if round.rng.u8(0..3) == 0 {
        Type::Native(round.rng.choice(plain).unwrap_or(Native::Int))
    } else {
        round.rng.choice(&types).cloned().unwrap_or(Type::Native(Native::Int))
    };
    let mut among = Vec::new();
    for (at, ty) in arguments.iter().enumerate() {
        among.extend(bodies(&format!("a{at}"), ty, &returns));
    }
    let body = round
        .rng
        .choice(&among)
        .cloned()
        .unwrap_or_else(|| "return null;".to_owned());
    let name = name(round, "f");
    let declared = arguments
        .iter()
        .enumerate()
        .map(|(at, ty)| format!("a{at} {}", ty.cql()))
        .collect::<Vec<_>>();
    let nulls = if round.rng.bool() { "CALLED" } else { "RETURNS NULL" };
    let head = head(round, "FUNCTION");
    let text = format!(
        "{head} {name} ({}) {nulls} ON NULL INPUT RETURNS {} LANGUAGE java AS '{}'",
        declared.join(", "),
        returns.cql(),
        body.replace('\'', "''")
    );
    let is_kept = head.contains("IF NOT EXISTS") && round.functions.iter().any(|f| f.name == name);
    if !is_kept {
        round.pending = Effect::Function(Function {
            name,
            arguments,
            returns,
            is_aggregate: false,
        });
    }
    Question::new(Kind::Schema, text)
}

/// A state function of a kind, with its type, its body and the first state.
fn state(round: &mut Round, of: &Type) -> (Type, String, &'static str) {
    let native = Type::Native;
    let printable = of.native().is_some_and(|native| java(native).is_some());
    match round.rng.u8(0..6) {
        0 if is_number(of) => (
            native(Native::Bigint),
            "if (v == null) return s; return s + (long) (double) v;".to_owned(),
            " INITCOND 0",
        ),
        1 if is_number(of) => (native(Native::Double), "return s + v;".to_owned(), " INITCOND 0.5"),
        2 if printable => (
            native(Native::Text),
            "if (s.length() > 40) return s; return s + v + \",\";".to_owned(),
            " INITCOND ''''''",
        ),
        3 => (of.clone(), "return s == null ? v : s;".to_owned(), ""),
        4 => (of.clone(), "return v;".to_owned(), ""),
        _ => (
            native(Native::Int),
            "return v == null ? s : s + 1;".to_owned(),
            " INITCOND 10",
        ),
    }
}

/// The state function of an aggregate and then the aggregate, which is asked next; or an aggregate of functions that may not be there.
fn create_aggregate(round: &mut Round) -> Question {
    let types = types_of(round);
    let of = round.rng.choice(&types).cloned().unwrap_or(Type::Native(Native::Int));
    let (state_type, body, first) = state(round, &of);
    let (sfunc, name) = (format!("s{}", round.number_of_next()), name(round, "ag"));
    let finals = round
        .functions
        .iter()
        .filter(|f| !f.is_aggregate && f.arguments.as_slice() == std::slice::from_ref(&state_type))
        .cloned()
        .collect::<Vec<_>>();
    let last = round.rng.choice(&finals).cloned().filter(|_| round.rng.bool());
    let head = head(round, "AGGREGATE");
    let final_text = last
        .as_ref()
        .map_or_else(String::new, |f| format!(" FINALFUNC {}", f.name));
    let named = if round.rng.u8(0..12) == 0 { "nowhere" } else { &sfunc };
    let first = first.replace("''''''", "''");
    let aggregate = format!(
        "{head} {name} ({}) SFUNC {named} STYPE {}{final_text}{first}",
        of.cql(),
        state_type.cql()
    );
    round.pending = Effect::None;
    round.queued.push((
        Question::new(Kind::Schema, aggregate),
        Effect::Function(Function {
            name,
            arguments: vec![of.clone()],
            returns: last.map_or_else(|| state_type.clone(), |f| f.returns),
            is_aggregate: true,
        }),
    ));
    Question::new(
        Kind::Schema,
        format!(
            "CREATE FUNCTION {sfunc} (s {}, v {}) CALLED ON NULL INPUT RETURNS {} LANGUAGE java AS '{body}'",
            state_type.cql(),
            of.cql(),
            state_type.cql(),
        ),
    )
}

/// A change of the functions.
pub(super) fn change(round: &mut Round) -> Option<Question> {
    let dice = round.rng.u8(0..14);
    if round.functions.len() < FUNCTIONS_MAX && dice < 8 {
        return Some(if dice < 5 {
            create(round)
        } else {
            create_aggregate(round)
        });
    }
    let place = (!round.functions.is_empty()).then(|| round.rng.usize(0..round.functions.len()));
    let there = place.and_then(|at| round.functions.get(at)).cloned();
    let text = match (dice, there) {
        (0..=11, Some(function)) => {
            let what = if function.is_aggregate { "AGGREGATE" } else { "FUNCTION" };
            let named = if round.rng.bool() {
                function.signature()
            } else {
                function.name.clone()
            };
            let maybe = if round.rng.u8(0..4) == 0 { "IF EXISTS " } else { "" };
            round.pending = place.map_or(Effect::None, Effect::NoFunction);
            format!("DROP {what} {maybe}{named}")
        }
        (12, _) => {
            "SELECT function_name, argument_types, argument_names, body, called_on_null_input, language, return_type \
                    FROM system_schema.functions WHERE keyspace_name = '{ks}'"
                .to_owned()
        }
        (13, _) => "SELECT aggregate_name, argument_types, final_func, initcond, return_type, state_func, state_type \
                    FROM system_schema.aggregates WHERE keyspace_name = '{ks}'"
            .to_owned(),
        _ => {
            let wrong = [
                "DROP FUNCTION nowhere",
                "DROP FUNCTION IF EXISTS nowhere",
                "DROP AGGREGATE nowhere(int)",
                "CREATE FUNCTION fw (a nowhere) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
                "CREATE FUNCTION fw (a int, a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
                "CREATE FUNCTION fw (a frozen<list<int>>) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
                "CREATE FUNCTION fw (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 1'",
                "CREATE FUNCTION fw (a int) CALLED ON NULL INPUT RETURNS counter LANGUAGE java AS 'return 1;'",
                "CREATE AGGREGATE agw (int) SFUNC nowhere STYPE int",
                "CREATE AGGREGATE agw (int) SFUNC nowhere STYPE nowhere INITCOND 1",
                "CREATE FUNCTION system.fw (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'",
            ];
            (*round.rng.choice(&wrong)?).to_owned()
        }
    };
    Some(Question::new(Kind::Schema, text))
}

/// A call of a function that gives a value for the column, now and then.
pub(super) fn value(round: &mut Round, terms: &mut Terms, column: &Column) -> Option<String> {
    if round.functions.is_empty() || round.rng.u8(0..5) != 0 {
        return None;
    }
    let fitting = |f: &&Function| f.returns == column.ty && !f.is_aggregate;
    let fitting = round.functions.iter().filter(fitting).cloned().collect::<Vec<_>>();
    let function = round.rng.choice(&fitting)?;
    Some(call(round, terms, function, false))
}

/// A call for a selection, now and then; `aggregated`: of an aggregate.
pub(super) fn selector(round: &mut Round, terms: &mut Terms, aggregated: bool) -> Option<String> {
    if round.functions.is_empty() || round.rng.u8(0..3) != 0 {
        return None;
    }
    let fitting = |f: &&Function| f.is_aggregate == aggregated;
    let fitting = round.functions.iter().filter(fitting).cloned().collect::<Vec<_>>();
    let function = round.rng.choice(&fitting)?;
    Some(call(round, terms, function, true))
}

/// A call; arguments are columns of their types if there are some, constants, and now and then other calls.
fn call(round: &mut Round, terms: &mut Terms, function: &Function, of_columns: bool) -> String {
    let arguments = function
        .arguments
        .iter()
        .map(|ty| {
            let columns = round.table.columns.iter().filter(|c| as_argument(&c.ty) == *ty);
            let columns = columns.map(|c| c.name.clone()).collect::<Vec<_>>();
            match round.rng.choice(&columns) {
                Some(column) if of_columns && round.rng.u8(0..8) != 0 => return column.clone(),
                _ => {}
            }
            let inner = |f: &&Function| f.returns == *ty && !f.is_aggregate && f.arguments.len() < 2;
            let inner = round.functions.iter().filter(inner).cloned().collect::<Vec<_>>();
            if let Some(inner) = round.rng.choice(&inner)
                && inner.arguments.first() != Some(ty)
                && round.rng.u8(0..4) == 0
            {
                let constants = inner
                    .arguments
                    .iter()
                    .map(|ty| ty.value(&mut round.rng))
                    .collect::<Vec<_>>();
                let constants = constants
                    .iter()
                    .map(|v| terms.put(&mut round.rng, v))
                    .collect::<Vec<_>>();
                return format!("{}({})", inner.name, constants.join(", "));
            }
            if round.rng.u8(0..12) == 0 {
                return "null".to_owned();
            }
            let value = ty.value(&mut round.rng);
            terms.put(&mut round.rng, &value)
        })
        .collect::<Vec<_>>();
    format!("{}({})", function.name, arguments.join(", "))
}
