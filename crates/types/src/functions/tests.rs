//! Compares our results with Cassandra's for some 1,700 selections of functions on four tables (`functions.json`, recorded
//! by `compat/golden/functions.py`).

use super::*;
use crate::types::{Assignment, Native, UserType, preferred_type, term_text, type_text, unhex};
use grammar::ast::{Literal, Selection, Selector, Statement, Term};
use proptest::prelude::*;
use serde_json::Value;

/// The address type of the tables.
fn address(name: &grammar::ast::QualifiedName) -> Option<Arc<UserType>> {
    let fields = [("street", Native::Text), ("n", Native::Int)];
    (name.name.as_str() == "addr").then(|| {
        Arc::new(UserType {
            keyspace: "ht".to_owned(),
            name: "addr".to_owned(),
            fields: fields
                .iter()
                .map(|(n, t)| ((*n).to_owned(), CqlType::Native(*t)))
                .collect(),
        })
    })
}

/// A column: its name, its type.
type Column = (String, CqlType);
type Row = Vec<Option<Bytes>>;

struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

fn bytes(value: &Value) -> Option<Bytes> {
    value.as_str().map(|text| Bytes::from(unhex(text).unwrap()))
}

fn array<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value.get(field).unwrap().as_array().unwrap()
}

impl Table {
    fn read(value: &Value) -> Self {
        let columns = array(value, "columns").iter().map(|column| {
            let [name, written] = [0, 1].map(|index| column.get(index).unwrap().as_str().unwrap().to_owned());
            let written = grammar::parse_type(&written).unwrap();
            (name, CqlType::from_ast(&written, &address).unwrap())
        });
        let rows = array(value, "rows")
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(bytes).collect());
        Self {
            columns: columns.collect(),
            rows: rows.collect(),
        }
    }
}

/// The reason why this small evaluator has no result for a selection.
#[derive(Debug, PartialEq)]
enum Failure {
    /// The selection does not test functions.
    Skip,
    Function(Error),
    Text(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Function(error)
    }
}

/// The function of a call, its arguments' texts, its arguments. The function is `None` for a cast to the same type.
type Resolved = (Option<Function>, Vec<String>, Vec<Selector>);

struct Evaluator<'a> {
    columns: &'a [Column],
    rows: Vec<&'a Row>,
    context: Context,
}

/// A literal or list of literals as a term.
fn as_term(selector: &Selector) -> Option<Term> {
    match selector {
        Selector::Term(term) => Some(term.clone()),
        Selector::List(inner) => inner.iter().map(as_term).collect::<Option<_>>().map(Term::List),
        Selector::Set(inner) => inner.iter().map(as_term).collect::<Option<_>>().map(Term::Set),
        _ => None,
    }
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Null => "NULL".to_owned(),
        literal => term_text(&Term::Literal(literal.clone())),
    }
}

impl Evaluator<'_> {
    fn column(&self, name: &str) -> Result<(usize, &CqlType), Failure> {
        let found = self
            .columns
            .iter()
            .position(|(column, _)| column == name)
            .ok_or(Failure::Skip)?;
        Ok((found, &self.columns[found].1))
    }

    fn arguments(&self, selectors: &[&Selector]) -> Result<Vec<Argument<'static>>, Failure> {
        selectors.iter().map(|selector| self.argument(selector)).collect()
    }

    fn argument(&self, selector: &Selector) -> Result<Argument<'static>, Failure> {
        Ok(match selector {
            Selector::Column(name) => {
                let (_, column_type) = self.column(name.as_str())?;
                Argument::typed(name.as_str(), column_type.clone())
            }
            Selector::Term(Term::BindMarker { .. }) => Argument::marker("?"),
            Selector::Term(Term::Literal(literal)) => {
                let (text, natural) = (literal_text(literal), preferred_type(literal).map(CqlType::Native));
                let literal = literal.clone();
                Argument::open(text, natural, move |receiver| receiver.assignable(&literal))
            }
            Selector::TypeHint { target, selector } => {
                let hinted = CqlType::from_ast(target, &address).unwrap();
                let inner = self.argument(selector)?;
                Argument::typed(format!("({}){}", type_text(target), inner.text), hinted)
            }
            Selector::List(inner) | Selector::Set(inner) => {
                let term = as_term(selector).ok_or(Failure::Skip)?;
                let element = self
                    .argument(inner.first().ok_or(Failure::Skip)?)?
                    .natural
                    .ok_or(Failure::Skip)?;
                let element = Arc::new(element);
                let list = matches!(selector, Selector::List(_));
                let natural = if list {
                    CqlType::List(element)
                } else {
                    CqlType::Set(element)
                };
                let text = term_text(&term);
                let argument = Argument::open(text, Some(natural), move |receiver| {
                    receiver.assignable_term(&term, &|_, _| Assignment::Weak)
                });
                if list {
                    argument.with_elements(u32::try_from(inner.len()).unwrap())
                } else {
                    argument
                }
            }
            Selector::Tuple(inner) if inner.len() == 1 => {
                let inner = self.argument(&inner[0])?;
                Argument::typed(format!("({})", inner.text), inner.natural.ok_or(Failure::Skip)?)
            }
            Selector::CountRows(_) => Argument::typed("count", CqlType::Native(Native::Bigint)),
            _ => match self.resolve(selector)? {
                (Some(function), texts, _) => {
                    Argument::typed(function.result_name(&texts), function.return_type().clone())
                }
                (None, _, inner) => self.argument(&inner[0])?,
            },
        })
    }

    fn resolve(&self, selector: &Selector) -> Result<Resolved, Failure> {
        let (function, arguments, inner) = match selector {
            Selector::Function { name, arguments, .. } => {
                let given = self.arguments(&arguments.iter().collect::<Vec<_>>())?;
                (Some(super::resolve(name, &given, None)?), given, arguments.clone())
            }
            Selector::Cast { selector, target } => {
                if as_term(selector).is_some() {
                    return Err(Failure::Skip);
                }
                let given = self.argument(selector)?;
                (
                    resolve_cast(&type_text(target), &given)?,
                    vec![given],
                    vec![(**selector).clone()],
                )
            }
            Selector::Arithmetic {
                operator, left, right, ..
            } => {
                let given = [self.argument(left)?, self.argument(right)?];
                let function = resolve_operation(*operator, &given, None)?;
                (Some(function), given.into(), vec![(**left).clone(), (**right).clone()])
            }
            Selector::Negate { of: inner, .. } => {
                let given = self.argument(inner)?;
                (
                    Some(resolve_negation(&given, None)?),
                    vec![given],
                    vec![(**inner).clone()],
                )
            }
            _ => return Err(Failure::Skip),
        };
        let texts = arguments.into_iter().map(|argument| argument.text).collect();
        Ok((function, texts, inner))
    }

    fn evaluate(&self, selector: &Selector, receiver: &CqlType, row: Option<&Row>) -> Result<Option<Bytes>, Failure> {
        match selector {
            Selector::Column(name) => {
                let (place, _) = self.column(name.as_str())?;
                Ok(row.and_then(|row| row[place].clone()))
            }
            Selector::Term(Term::BindMarker { .. }) => Err(Failure::Skip),
            Selector::Term(_) | Selector::List(_) | Selector::Set(_) => {
                let term = as_term(selector).ok_or(Failure::Skip)?;
                receiver
                    .term("x", &term)
                    .map_err(|error| Failure::Text(error.to_string()))
            }
            Selector::TypeHint { target, selector } => {
                let hinted = CqlType::from_ast(target, &address).unwrap();
                self.evaluate(selector, &hinted, row)
            }
            Selector::Tuple(inner) if inner.len() == 1 => self.evaluate(&inner[0], receiver, row),
            Selector::CountRows(_) => {
                let count = i64::try_from(self.rows.len()).unwrap();
                Ok(Some(Bytes::copy_from_slice(&count.to_be_bytes())))
            }
            _ => {
                let (function, _, inner) = self.resolve(selector)?;
                let Some(function) = function else {
                    return self.evaluate(&inner[0], receiver, row);
                };
                let arguments = |row: Option<&Row>| {
                    inner
                        .iter()
                        .zip(function.argument_types())
                        .map(|(argument, expected)| self.evaluate(argument, expected, row))
                        .collect::<Result<Vec<_>, _>>()
                };
                if function.is_aggregate() {
                    let mut accumulator = Accumulator::new(&function);
                    for row in &self.rows {
                        accumulator.add(&arguments(Some(row))?, &self.context)?;
                    }
                    return Ok(accumulator.finish(&self.context)?);
                }
                Ok(function.call(&arguments(row)?, &self.context)?)
            }
        }
    }
}

/// A message with its signatures sorted: Cassandra lists them in the order of a hash table.
fn ordered(message: &str) -> String {
    let Some((head, rest)) = message.split_once("signatures: ") else {
        return message.to_owned();
    };
    let (list, tail) = rest.split_at(rest.rfind(')').unwrap());
    let mut signatures: Vec<&str> = list
        .split(", system.")
        .map(|s| s.trim_start_matches("system."))
        .collect();
    signatures.sort_unstable();
    format!("{head}signatures: {}{tail}", signatures.join(", "))
}

/// Cases that do not test functions, or in which Cassandra fails for unrelated reasons.
fn is_other(case: &Value) -> bool {
    let message = case.get("message").and_then(Value::as_str).unwrap_or_default();
    let code = case.get("code").and_then(Value::as_str).unwrap_or_default();
    // An unsupported digest, and a name that Cassandra caches from another call.
    let select = case.get("select").and_then(Value::as_str);
    let known = select == Some("mask_hash(t, 'MD2')") || select == Some("to_json(m)");
    known
        || code == "0x2000"
        || [
            "Invalid amount of bind variables",
            "Undefined column",
            "Cannot infer type for term",
            "aggregate functions cannot be used",
            "Element selection is only",
            "Unsupported target type",
            "cannot be cast to class",
        ]
        .iter()
        .any(|other| message.contains(other))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn functions_answer_as_cassandra() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/functions.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut differences = Vec::new();
    let (mut checked, mut skipped) = (0, Vec::new());
    for case in array(&golden, "cases") {
        let select = case.get("select").unwrap().as_str().unwrap();
        let table = Table::read(
            golden
                .get("tables")
                .unwrap()
                .get(case.get("table").unwrap().as_str().unwrap())
                .unwrap(),
        );
        if is_other(case) {
            continue;
        }
        let parsed = grammar::parse(&format!("SELECT {select} FROM t"));
        let Ok(Statement::Select(statement)) = parsed else {
            skipped.push(select);
            continue;
        };
        let Selection::Selectors(selectors) = &statement.selection else {
            unreachable!()
        };
        let indexes: Vec<usize> = array(case, "rows")
            .iter()
            .map(|n| usize::try_from(n.as_u64().unwrap()).unwrap())
            .collect();
        let evaluator = Evaluator {
            columns: &table.columns,
            rows: indexes.iter().map(|index| &table.rows[*index]).collect(),
            context: Context::new(0, Arc::new(Timeuuids::new(0)), 0),
        };
        let selector = &selectors[0].selector;
        let ours = evaluator.argument(selector).and_then(|argument| {
            let receiver = argument.natural.clone().ok_or(Failure::Skip)?;
            let value = evaluator.evaluate(selector, &receiver, evaluator.rows.first().copied())?;
            Ok((argument.text, receiver.cql_name(), value))
        });
        if ours == Err(Failure::Skip) {
            skipped.push(select);
            continue;
        }
        checked += 1;
        let what = format!("{select} {indexes:?}");
        let message = case.get("message").and_then(Value::as_str).map(ordered);
        match (ours, message) {
            (Ok((name, ours_type, value)), None) => {
                let strip = |name: &str| name.replace(['(', ')'], "");
                let theirs_name = case.get("name").unwrap().as_str().unwrap();
                let theirs_type = case.get("type").unwrap().as_str().unwrap().replace("varchar", "text");
                let theirs = bytes(&array(case, "values")[0]);
                if strip(&name) != strip(theirs_name) {
                    differences.push(format!("{what}: named {name}, theirs {theirs_name}"));
                }
                let simple = !theirs_type.contains([' ', '<']);
                if simple && ours_type != theirs_type {
                    differences.push(format!("{what}: type {ours_type}, theirs {theirs_type}"));
                }
                if value != theirs {
                    differences.push(format!("{what}: {value:02x?}, theirs {theirs:02x?}"));
                }
            }
            (Err(failure), Some(message)) => {
                // For Cassandra's internal exceptions it is enough that both fail.
                if case.get("code").unwrap() == "0x0000" {
                    continue;
                }
                let (ours, function) = match &failure {
                    Failure::Text(text) => (text.clone(), None),
                    Failure::Function(Error::Failed(failed)) => {
                        let function = serde_json::json!([KEYSPACE, failed.name, failed.arguments]);
                        (failed.to_string(), Some(function))
                    }
                    Failure::Function(error) => (ordered(&error.to_string()), None),
                    Failure::Skip => unreachable!(),
                };
                if ours != message || function.as_ref() != case.get("function") {
                    differences.push(format!("{what}:\n   {ours} {function:?}\n   {message}"));
                }
            }
            (ours, message) => differences.push(format!("{what}: {ours:?}, theirs {message:?}")),
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences, {checked} checked:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(checked > 1600, "only {checked} checked, skipped: {skipped:?}");
}

#[test]
fn timeuuids_grow() {
    let source = Timeuuids::new(7);
    let now = CqlType::Native(Native::Timeuuid);
    let made: Vec<[u8; 16]> = [5, 5, 4, 9, 9].map(|micros| source.next(micros)).into();
    for pair in made.windows(2) {
        assert_eq!(now.compare(&pair[0], &pair[1]), std::cmp::Ordering::Less);
    }
    assert_eq!(crate::types::unix_100ns(&made[0]), Some(50));
    assert!(made.iter().all(|uuid| now.validate(uuid).is_ok()));
}

/// Every overload.
fn every_function() -> Vec<Function> {
    use grammar::ast::ArithmeticOperator::{Add, Divide, Modulo, Multiply, Subtract};
    let mut all = arithmetic::negations();
    all.extend(
        [Add, Subtract, Multiply, Divide, Modulo]
            .into_iter()
            .flat_map(arithmetic::operations),
    );
    let names = [
        "now",
        "uuid",
        "currentdate",
        "current_time",
        "current_timestamp",
        "todate",
        "totimestamp",
        "tounixtimestamp",
        "mintimeuuid",
        "maxtimeuuid",
        "abs",
        "log",
        "log10",
        "round",
        "exp",
        "intasblob",
        "blobasint",
        "blobastext",
        "blobasduration",
        "cast_as_text",
        "cast_as_int",
        "cast_as_decimal",
        "cast_as_varint",
        "cast_as_timestamp",
        "cast_as_date",
    ];
    for name in names {
        match time::find(name)
            .or_else(|| math::find(name))
            .or_else(|| blob::find(name))
            .or_else(|| cast::find(name))
        {
            Some(candidates::Candidates::Overloads(functions)) => all.extend(functions),
            _ => panic!("{name} is no overloaded function"),
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No bytes cause a panic, and the result for valid values is a valid value of the result type.
    #[test]
    fn calls_never_panic(a in proptest::collection::vec(any::<u8>(), 0..20), b in proptest::collection::vec(any::<u8>(), 0..20)) {
        let context = Context::new(1_582_937_106_000_000, Arc::new(Timeuuids::new(1)), 2);
        for function in every_function() {
            let given = [Some(Bytes::from(a.clone())), Some(Bytes::from(b.clone()))];
            let given = &given[..function.argument_types().len()];
            let valid = given.iter().zip(function.argument_types()).all(|(v, t)| t.validate(v.as_deref().unwrap()).is_ok());
            if let (true, Ok(Some(result))) = (valid, function.call(given, &context)) {
                prop_assert_eq!(function.return_type().validate(&result), Ok(()), "{}", function);
            }
            let _ = function.call(given, &context);
        }
    }
}
