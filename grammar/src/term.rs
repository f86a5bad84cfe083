//! Terms: the values of a statement.
//!
//! A term is parsed without a schema, so only the tokens distinguish similar terms: `{a: 1}` is a user-defined type's
//! value because `a` is a bare name; `(int)` is a type hint because a bare name is no term.

use crate::ast::{ArithmeticOperator, Literal, Name, Term};
use crate::input::{Input, NameOf, Parsed, collected, enter, expect, separated};
use crate::keyword::{Class, Kind};
use crate::name::{function_name, ident, is_column_name};
use crate::types::{comparator_type, native_type};

/// `term = term_addition`
pub(crate) fn term(input: Input<'_>) -> Parsed<'_, Term> {
    enter("term");
    input.nested(term_addition)
}

/// `term_addition = term_multiplication { ( "+" | "-" ) term_multiplication }`
fn term_addition(input: Input<'_>) -> Parsed<'_, Term> {
    enter("term_addition");
    let (mut input, mut left) = term_multiplication(input)?;
    loop {
        let operator = match input.kind() {
            Kind::Plus => match plus_continues(input)? {
                true => ArithmeticOperator::Add,
                false => return Ok((input, left)),
            },
            Kind::Minus => ArithmeticOperator::Subtract,
            kind if may_follow_term(kind) => {
                input.decided(1);
                return Ok((input, left));
            }
            _ => return input.no_viable(0),
        };
        input.count_operator()?;
        let (rest, right) = term_multiplication(input.skip(1))?;
        left = Term::Arithmetic {
            at: input.site(),
            operator,
            left: Box::new(left),
            right: Box::new(right),
        };
        input = rest;
    }
}

/// Whether the `+` here continues the term. It does not in `SET l = [1] + l`, which prepends to a column.
fn plus_continues(input: Input<'_>) -> Result<bool, nom::Err<crate::error::Failure>> {
    let first = input.ahead(1);
    if first == Kind::EmptyQuotedName {
        return Ok(false);
    }
    if !begins_term(first) {
        return input.no_viable(1).map(|(_, never): (_, bool)| never);
    }
    if !NameOf::Anything.allows(first) {
        return Ok(true);
    }
    match input.ahead(2) {
        Kind::Dot | Kind::ParenOpen => Ok(true),
        Kind::Comma | Kind::Where => Ok(false),
        _ => input.no_viable(2).map(|(_, never): (_, bool)| never),
    }
}

/// The tokens that can follow a term anywhere in the language.
fn may_follow_term(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::And
            | Kind::Limit
            | Kind::Group
            | Kind::Order
            | Kind::Allow
            | Kind::Per
            | Kind::Apply
            | Kind::Asc
            | Kind::Delete
            | Kind::Desc
            | Kind::If
            | Kind::Insert
            | Kind::Primary
            | Kind::Update
            | Kind::Where
            | Kind::Range
            | Kind::ParenClose
            | Kind::Comma
            | Kind::Colon
            | Kind::BracketClose
            | Kind::BraceClose
            | Kind::Semicolon
            | Kind::End
    )
}

/// The tokens that can follow a `?` anywhere in the language.
fn may_follow_marker(kind: Kind) -> bool {
    may_follow_term(kind) || multiplicative(kind).is_some() || matches!(kind, Kind::Plus | Kind::Minus | Kind::As)
}

/// `term_multiplication = term_group { ( "*" | "/" | "%" ) term_group }`
fn term_multiplication(input: Input<'_>) -> Parsed<'_, Term> {
    enter("term_multiplication");
    let (mut input, mut left) = term_group(input)?;
    while let Some(operator) = multiplicative(input.kind()) {
        input.count_operator()?;
        let (rest, right) = term_group(input.skip(1))?;
        left = Term::Arithmetic {
            at: input.site(),
            operator,
            left: Box::new(left),
            right: Box::new(right),
        };
        input = rest;
    }
    Ok((input, left))
}

/// `*`, `/` or `%`.
pub(crate) const fn multiplicative(kind: Kind) -> Option<ArithmeticOperator> {
    match kind {
        Kind::Star => Some(ArithmeticOperator::Multiply),
        Kind::Slash => Some(ArithmeticOperator::Divide),
        Kind::Percent => Some(ArithmeticOperator::Modulo),
        _ => None,
    }
}

/// `term_group = simple_term | "-" simple_term`
fn term_group(input: Input<'_>) -> Parsed<'_, Term> {
    enter("term_group");
    if !input.is(Kind::Minus) {
        return simple_term(input);
    }
    let at = input.site();
    let (input, inner) = simple_term(input.skip(1))?;
    let of = Box::new(inner);
    Ok((input, Term::Negate { of, at }))
}

/// `simple_term = value | function | type_hint | cast`
fn simple_term(input: Input<'_>) -> Parsed<'_, Term> {
    enter("simple_term");
    match input.kind() {
        Kind::ParenOpen => parenthesized(input),
        Kind::Cast if input.ahead(1) == Kind::ParenOpen => cast(input),
        // The grammar allows a marker as a function's keyspace; it is reported as an error.
        Kind::QuestionMark if input.ahead(1) != Kind::Dot => value(input),
        kind if NameOf::Anything.allows(kind) || matches!(kind, Kind::Token | Kind::QuestionMark) => {
            match input.ahead(1) {
                Kind::ParenOpen if NameOf::Function.allows(kind) => {
                    input.decided(2);
                    function(input)
                }
                Kind::Dot if kind != Kind::Token => match (input.ahead(2), input.ahead(3)) {
                    (function, _) if !NameOf::Function.allows(function) => input.no_viable(2),
                    (_, Kind::ParenOpen) => function(input),
                    _ => input.no_viable(3),
                },
                _ => input.no_viable(1),
            }
        }
        _ => value(input),
    }
}

/// A term that begins with `(`: a type hint or a tuple. A bare name is no term, so it must be a type; a bare string is
/// a type only if a term follows the parenthesis.
fn parenthesized(input: Input<'_>) -> Parsed<'_, Term> {
    let kind = input.ahead(1);
    let is_hint = match kind {
        Kind::String => match input.ahead(2) {
            Kind::ParenClose => begins_simple_term(input, 3),
            Kind::Comma | Kind::Plus | Kind::Minus | Kind::Star | Kind::Slash | Kind::Percent => false,
            _ => return input.no_viable(2),
        },
        Kind::Set => true,
        _ if !begins_term(kind) => return input.no_viable(1),
        _ if NameOf::Anything.allows(kind) => match input.ahead(2) {
            Kind::ParenClose => true,
            Kind::Less if matches!(kind, Kind::Map | Kind::List | Kind::Tuple | Kind::Vector | Kind::Frozen) => true,
            Kind::Dot => NameOf::Anything.allows(input.ahead(3)) && input.ahead(4) == Kind::ParenClose,
            Kind::ParenOpen => false,
            _ => return input.no_viable(2),
        },
        _ => false,
    };
    if is_hint {
        type_hint(input)
    } else {
        tuple_literal(input)
    }
}

/// Whether a term begins `distance` tokens later; keywords that can also continue a statement do not count.
fn begins_simple_term(input: Input<'_>, distance: usize) -> bool {
    match input.ahead(distance) {
        kind if is_constant(kind) => true,
        Kind::Null
        | Kind::QuestionMark
        | Kind::BracketOpen
        | Kind::BraceOpen
        | Kind::ParenOpen
        | Kind::Ident
        | Kind::QuotedName
        | Kind::Token => true,
        kind => NameOf::Anything.allows(kind) && matches!(input.ahead(distance + 1), Kind::ParenOpen | Kind::Dot),
    }
}

/// `type_hint = "(" comparator_type ")" simple_term`
fn type_hint(input: Input<'_>) -> Parsed<'_, Term> {
    enter("type_hint");
    let (input, target) = comparator_type(input.skip(1))?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let (input, term) = input.nested(simple_term)?;
    Ok((
        input,
        Term::TypeHint {
            target,
            term: Box::new(term),
        },
    ))
}

/// `cast = "CAST" "(" simple_term "AS" native_type ")"`
fn cast(input: Input<'_>) -> Parsed<'_, Term> {
    enter("cast");
    let at = input.site();
    let (input, term) = input.skip(2).nested(simple_term)?;
    let (input, ()) = expect(input, Kind::As)?;
    let (input, target) = native_type(input)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((
        input,
        Term::Cast {
            term: Box::new(term),
            target,
            at,
        },
    ))
}

/// `function = function_name "(" [ term { "," term } ] ")"`
fn function(input: Input<'_>) -> Parsed<'_, Term> {
    enter("function");
    let begin = input;
    let (input, name) = function_name(input)?;
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    if !input.is(Kind::ParenClose) && !begins_term(input.kind()) {
        return begin.no_viable(if name.keyspace.is_some() { 4 } else { 2 });
    }
    let (input, arguments) = if input.is(Kind::ParenClose) {
        (input, Vec::new())
    } else {
        separated(input, Kind::Comma, term)?
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let at = begin.site();
    Ok((input, Term::Function { name, arguments, at }))
}

/// `value = constant | list_literal | set_or_map_literal | udt_literal | tuple_literal | "NULL" | marker`
fn value(input: Input<'_>) -> Parsed<'_, Term> {
    enter("value");
    match input.kind() {
        Kind::BracketOpen => list_literal(input),
        Kind::BraceOpen => braces(input),
        Kind::ParenOpen => tuple_literal(input),
        Kind::Null => Ok((input.skip(1), Term::Literal(Literal::Null))),
        Kind::QuestionMark if !may_follow_marker(input.ahead(1)) => input.no_viable(1),
        Kind::QuestionMark | Kind::Colon => marker(input),
        _ => {
            let (input, constant) = constant(input)?;
            Ok((input, Term::Literal(constant)))
        }
    }
}

/// The text of a number with point or exponent, for any type. A number outside the range of a double is rejected here,
/// as in Cassandra, whose parser guesses the literal's type.
fn finite(input: Input<'_>) -> String {
    let text = input.text().into_owned();
    if text.parse::<f64>().is_ok_and(f64::is_infinite) {
        input.report(|| {
            format!(
                "Failed parsing statement: [{}] reason: NumberFormatException Character I is neither a decimal digit number, \
                 decimal point, nor \"e\" notation exponential mark.",
                input.whole_text()
            )
        });
    }
    text
}

/// The constant in a token, if it is one.
fn constant_of(input: Input<'_>) -> Option<Literal> {
    let text = || input.text().into_owned();
    Some(match input.kind() {
        Kind::String => Literal::String(text()),
        Kind::Integer => Literal::Integer(text()),
        Kind::FloatLiteral => Literal::Float(finite(input)),
        Kind::True => Literal::Boolean(true),
        Kind::False => Literal::Boolean(false),
        Kind::DurationLiteral => Literal::Duration(text()),
        Kind::UuidLiteral => Literal::Uuid(text()),
        Kind::Hex => Literal::Blob(text().split_off(2)),
        Kind::PositiveNan | Kind::NegativeNan => Literal::Float("NaN".to_owned()),
        Kind::PositiveInfinity => Literal::Float("Infinity".to_owned()),
        Kind::NegativeInfinity => Literal::Float("-Infinity".to_owned()),
        _ => return None,
    })
}

/// Whether a constant begins here.
pub(crate) fn is_constant(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::String
            | Kind::Integer
            | Kind::FloatLiteral
            | Kind::True
            | Kind::False
            | Kind::DurationLiteral
            | Kind::UuidLiteral
            | Kind::Hex
            | Kind::PositiveNan
            | Kind::NegativeNan
            | Kind::PositiveInfinity
            | Kind::NegativeInfinity
    )
}

/// `constant = STRING | INTEGER | FLOAT | BOOLEAN | DURATION | UUID | BLOB | "NAN" | "INFINITY"`
pub(crate) fn constant(input: Input<'_>) -> Parsed<'_, Literal> {
    enter("constant");
    match constant_of(input) {
        Some(literal) => Ok((input.skip(1), literal)),
        None => input.no_viable(0),
    }
}

/// `marker = "?" | ":" ident`
pub(crate) fn marker(input: Input<'_>) -> Parsed<'_, Term> {
    enter("marker");
    input.count_marker()?;
    let at = input.site();
    match input.kind() {
        Kind::QuestionMark => Ok((input.skip(1), Term::BindMarker { name: None, at })),
        Kind::Colon => {
            let (input, name) = ident(input.skip(1))?;
            let name = Some(name);
            Ok((input, Term::BindMarker { name, at }))
        }
        _ => input.no_viable(0),
    }
}

/// `list_literal = "[" [ term { "," term } ] "]"`
fn list_literal(input: Input<'_>) -> Parsed<'_, Term> {
    enter("list_literal");
    let input = input.skip(1);
    let (input, elements) = if begins_term(input.kind()) {
        collected(input, Vec::new(), term)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::BracketClose)?;
    Ok((input, Term::List(elements)))
}

/// Whether a term may begin with a token of that kind.
pub(crate) fn begins_term(kind: Kind) -> bool {
    is_constant(kind)
        || NameOf::Anything.allows(kind)
        || matches!(
            kind,
            Kind::Null
                | Kind::QuestionMark
                | Kind::Colon
                | Kind::BracketOpen
                | Kind::BraceOpen
                | Kind::ParenOpen
                | Kind::Minus
                | Kind::Token
        )
}

/// A term that begins with `{`: a user-defined type's value if a bare name and a colon follow, otherwise a set or a
/// map.
fn braces(input: Input<'_>) -> Parsed<'_, Term> {
    let kind = input.ahead(1);
    if NameOf::Anything.allows(kind) {
        match input.ahead(2) {
            Kind::Colon => return udt_literal(input),
            Kind::ParenOpen | Kind::Dot => {}
            _ => return input.no_viable(2),
        }
    } else if kind != Kind::BraceClose && !begins_term(kind) {
        return input.no_viable(1);
    }
    set_or_map_literal(input)
}

/// `set_or_map_literal = "{" [ term ( ":" term { "," term ":" term } | { "," term } ) ] "}"`
fn set_or_map_literal(input: Input<'_>) -> Parsed<'_, Term> {
    enter("set_or_map_literal");
    let input = input.skip(1);
    if input.is(Kind::BraceClose) {
        return Ok((input.skip(1), Term::Set(Vec::new())));
    }
    let (input, first) = term(input)?;
    let (input, made) = match input.kind() {
        Kind::Colon => {
            let (input, value) = term(input.skip(1))?;
            let entries = vec![(first, value)];
            if input.is(Kind::Comma) {
                let (input, entries) = collected(input.skip(1), entries, map_entry)?;
                (input, Term::Map(entries))
            } else {
                (input, Term::Map(entries))
            }
        }
        Kind::Comma => {
            let (input, elements) = collected(input.skip(1), vec![first], term)?;
            (input, Term::Set(elements))
        }
        Kind::BraceClose => (input, Term::Set(vec![first])),
        _ => return input.no_viable(0),
    };
    let (input, ()) = expect(input, Kind::BraceClose)?;
    Ok((input, made))
}

fn map_entry(input: Input<'_>) -> Parsed<'_, (Term, Term)> {
    let (input, key) = term(input)?;
    let (input, ()) = expect(input, Kind::Colon)?;
    let (input, value) = term(input)?;
    Ok((input, (key, value)))
}

/// `map_literal = "{" [ term ":" term { "," term ":" term } ] "}"`
pub(crate) fn map_literal(input: Input<'_>) -> Parsed<'_, Vec<(Term, Term)>> {
    enter("map_literal");
    let (input, ()) = expect(input, Kind::BraceOpen)?;
    let (input, entries) = if begins_term(input.kind()) {
        separated(input, Kind::Comma, map_entry)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::BraceClose)?;
    Ok((input, entries))
}

/// `udt_literal = "{" ident ":" term { "," ident ":" term } "}"`
fn udt_literal(input: Input<'_>) -> Parsed<'_, Term> {
    enter("udt_literal");
    fn field(input: Input<'_>) -> Parsed<'_, (Name, Term)> {
        let (input, name) = ident(input)?;
        let (input, ()) = expect(input, Kind::Colon)?;
        let (input, value) = term(input)?;
        Ok((input, (name, value)))
    }
    let (input, fields) = separated(input.skip(1), Kind::Comma, field)?;
    let (input, ()) = expect(input, Kind::BraceClose)?;
    Ok((input, Term::Udt(fields)))
}

/// `tuple_literal = "(" term { "," term } ")"`
pub(crate) fn tuple_literal(input: Input<'_>) -> Parsed<'_, Term> {
    enter("tuple_literal");
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, elements) = separated(input, Kind::Comma, term)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, Term::Tuple(elements)))
}

/// `int_value = INTEGER | marker`
pub(crate) fn int_value(input: Input<'_>) -> Parsed<'_, Term> {
    enter("int_value");
    match input.kind() {
        Kind::Integer => Ok((
            input.skip(1),
            Term::Literal(Literal::Integer(input.text().into_owned())),
        )),
        Kind::QuestionMark | Kind::Colon => marker(input),
        _ => input.no_viable(0),
    }
}

/// Whether a keyword is a native type's name, which begins a cast's target.
pub(crate) fn is_native(kind: Kind) -> bool {
    kind.class() == Some(Class::Native)
}

/// Whether a column's name and an operator on it follow, rather than a term.
pub(crate) fn is_bare_column(input: Input<'_>) -> bool {
    is_column_name(input.kind()) && !matches!(input.ahead(1), Kind::ParenOpen | Kind::Dot)
}
