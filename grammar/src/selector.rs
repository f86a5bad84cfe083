//! Selectors: the expressions of a SELECT clause and of GROUP BY.
//!
//! They resemble terms, but bare names are columns here, and parts of values can be selected: `a.field`, `a[key]`,
//! `a[from..to]`.

use nom::Err;

use crate::ast::{ArithmeticOperator, Literal, MetadataKind, Name, Selection, Selector, SelectorAs, Term};
use crate::error::{Cause, Failure};
use crate::input::{Input, NameOf, Parsed, continued, enter, expect, given, separated};
use crate::keyword::Kind;
use crate::name::{function_name, ident};
use crate::term::{constant, is_constant, marker, multiplicative, term};
use crate::types::{comparator_type, native_type};

/// `selectors = "*" | selector { "," selector }`
pub(crate) fn selectors(input: Input<'_>) -> Parsed<'_, Selection> {
    enter("selectors");
    if input.is(Kind::Star) {
        return Ok((input.skip(1), Selection::All));
    }
    let (input, selectors) = separated(input, Kind::Comma, selector)?;
    Ok((input, Selection::Selectors(selectors)))
}

/// `selector = unaliased_selector [ "AS" ident ]`
fn selector(input: Input<'_>) -> Parsed<'_, SelectorAs> {
    enter("selector");
    let (input, selector) = unaliased_selector(input)?;
    let (input, named) = given(input, Kind::As);
    let (input, alias) = if named {
        let (input, alias) = ident(input)?;
        (input, Some(alias))
    } else {
        (input, None)
    };
    Ok((input, SelectorAs { selector, alias }))
}

/// `unaliased_selector = selection_addition`
pub(crate) fn unaliased_selector(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("unaliased_selector");
    input.nested(selection_addition)
}

/// `selection_addition = selection_multiplication { ( "+" | "-" ) selection_multiplication }`
fn selection_addition(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_addition");
    let (mut input, mut left) = selection_multiplication(input)?;
    loop {
        let operator = match input.kind() {
            Kind::Plus => ArithmeticOperator::Add,
            Kind::Minus => ArithmeticOperator::Subtract,
            _ => return Ok((input, left)),
        };
        input.count_operator()?;
        let (rest, right) = selection_multiplication(input.skip(1))?;
        left = Selector::Arithmetic {
            at: input.site(),
            operator,
            left: Box::new(left),
            right: Box::new(right),
        };
        input = rest;
    }
}

/// `selection_multiplication = selection_group { ( "*" | "/" | "%" ) selection_group }`
fn selection_multiplication(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_multiplication");
    let (mut input, mut left) = selection_group(input)?;
    while let Some(operator) = multiplicative(input.kind()) {
        input.count_operator()?;
        let (rest, right) = selection_group(input.skip(1))?;
        left = Selector::Arithmetic {
            at: input.site(),
            operator,
            left: Box::new(left),
            right: Box::new(right),
        };
        input = rest;
    }
    Ok((input, left))
}

/// `selection_group = "-" selection_group | selection_without_field selector_modifiers`
fn selection_group(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_group");
    if input.is(Kind::Minus) {
        let at = input.site();
        let (input, inner) = input.skip(1).nested(selection_group)?;
        let of = Box::new(inner);
        return Ok((input, Selector::Negate { of, at }));
    }
    let kind = input.kind();
    if begins_selector(kind) && !NameOf::Anything.allows(kind) && kind != Kind::Token {
        input.decided(2);
    }
    let (input, base) = selection_without_field(input)?;
    if !matches!(input.kind(), Kind::Dot | Kind::BracketOpen) {
        return Ok((input, base));
    }
    // If the modifiers are invalid, Cassandra parses the value without them and fails at the first one.
    match selector_modifiers(input, base.clone()) {
        Err(failure) if exceeds_limit(&failure) => Err(failure),
        Ok((input, modified)) if may_follow_modifiers(input.kind()) => Ok((input, modified)),
        _ => Ok((input, base)),
    }
}

/// Whether an alternative failed at a limit of this crate, so that no other one can succeed.
fn exceeds_limit(failure: &Err<Failure>) -> bool {
    matches!(
        failure,
        Err::Error(Failure {
            cause: Cause::Exceeded(_),
            ..
        }) | Err::Failure(Failure {
            cause: Cause::Exceeded(_),
            ..
        })
    )
}

/// `selector_modifiers = { "." ident | "[" ( term [ ".." [ term ] ] | ".." term ) "]" }`
fn selector_modifiers(mut input: Input<'_>, mut of: Selector) -> Parsed<'_, Selector> {
    enter("selector_modifiers");
    loop {
        (input, of) = match input.kind() {
            Kind::Dot => {
                input.count_operator()?;
                let (input, field) = ident(input.skip(1))?;
                (
                    input,
                    Selector::Field {
                        of: Box::new(of),
                        field,
                    },
                )
            }
            Kind::BracketOpen => {
                input.count_operator()?;
                collection_sub_selection(input.skip(1), of)?
            }
            _ => return Ok((input, of)),
        };
    }
}

/// `collection_sub_selection = ( term [ ".." [ term ] ] | ".." term ) "]"`
fn collection_sub_selection(input: Input<'_>, of: Selector) -> Parsed<'_, Selector> {
    enter("collection_sub_selection");
    let of = Box::new(of);
    let (input, made) = if input.is(Kind::Range) {
        let (input, to) = term(input.skip(1))?;
        (
            input,
            Selector::Slice {
                of,
                from: None,
                to: Some(to),
            },
        )
    } else {
        let (input, key) = term(input)?;
        let (input, is_slice) = given(input, Kind::Range);
        if !is_slice {
            (input, Selector::Element { of, key })
        } else if input.is(Kind::BracketClose) {
            (
                input,
                Selector::Slice {
                    of,
                    from: Some(key),
                    to: None,
                },
            )
        } else {
            let (input, to) = term(input)?;
            (
                input,
                Selector::Slice {
                    of,
                    from: Some(key),
                    to: Some(to),
                },
            )
        }
    };
    let (input, ()) = expect(input, Kind::BracketClose)?;
    Ok((input, made))
}

/// `selection_without_field = simple_selector | selection_type_hint | selection_tuple | selection_list | selection_map_or_set`
fn selection_without_field(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_without_field");
    match input.kind() {
        Kind::ParenOpen => {
            let reported = input.reported();
            match selection_type_hint(input) {
                Err(failure) if !exceeds_limit(&failure) => {
                    input.take_back(reported);
                    selection_tuple(input)
                }
                parsed => parsed,
            }
        }
        Kind::BracketOpen => selection_list(input),
        Kind::BraceOpen => selection_map_or_set(input),
        _ => simple_selector(input),
    }
}

/// The tokens that can follow a selected part of a value.
fn may_follow_modifiers(kind: Kind) -> bool {
    kind != Kind::Semicolon && may_follow_column(kind)
}

/// The tokens that can follow a bare column anywhere among selectors.
fn may_follow_column(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::As
            | Kind::From
            | Kind::Percent
            | Kind::Plus
            | Kind::Comma
            | Kind::Minus
            | Kind::Slash
            | Kind::Star
            | Kind::Allow
            | Kind::Limit
            | Kind::Order
            | Kind::Per
            | Kind::ParenClose
            | Kind::Colon
            | Kind::Semicolon
            | Kind::BracketOpen
            | Kind::BracketClose
            | Kind::BraceClose
            | Kind::Dot
            | Kind::End
    )
}

/// `selection_type_hint = "(" comparator_type ")" selection_without_field`
fn selection_type_hint(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_type_hint");
    let (input, target) = comparator_type(input.skip(1))?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let (input, selector) = input.nested(selection_without_field)?;
    Ok((
        input,
        Selector::TypeHint {
            target,
            selector: Box::new(selector),
        },
    ))
}

/// `selection_tuple = "(" unaliased_selector { "," unaliased_selector } ")"`
fn selection_tuple(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_tuple");
    let (input, elements) = separated(input.skip(1), Kind::Comma, unaliased_selector)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, Selector::Tuple(elements)))
}

/// `selection_list = "[" [ unaliased_selector { "," unaliased_selector } ] "]"`
fn selection_list(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_list");
    let input = input.skip(1);
    let (input, elements) = if begins_selector(input.kind()) {
        separated(input, Kind::Comma, unaliased_selector)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::BracketClose)?;
    Ok((input, Selector::List(elements)))
}

/// Whether a selector may begin with a token of that kind.
fn begins_selector(kind: Kind) -> bool {
    crate::term::begins_term(kind)
}

/// `selection_map_or_set = "{" [ unaliased_selector ( ":" unaliased_selector { "," unaliased_selector ":" unaliased_selector }
/// | { "," unaliased_selector } ) ] "}"`
fn selection_map_or_set(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_map_or_set");
    fn entry(input: Input<'_>) -> Parsed<'_, (Selector, Selector)> {
        let (input, key) = unaliased_selector(input)?;
        let (input, ()) = expect(input, Kind::Colon)?;
        let (input, value) = unaliased_selector(input)?;
        Ok((input, (key, value)))
    }
    if input.ahead(1) == Kind::BraceClose {
        return Ok((input.skip(2), Selector::Set(Vec::new())));
    }
    if !begins_selector(input.ahead(1)) {
        return input.no_viable(1);
    }
    let (input, first) = unaliased_selector(input.skip(1))?;
    let (input, made) = match input.kind() {
        Kind::Colon => {
            let (input, value) = unaliased_selector(input.skip(1))?;
            let mut entries = vec![(first, value)];
            let (input, ()) = continued(input, Kind::Comma, &mut entries, entry)?;
            (input, Selector::Map(entries))
        }
        Kind::Comma => {
            let (input, rest) = separated(input.skip(1), Kind::Comma, unaliased_selector)?;
            (input, Selector::Set(std::iter::once(first).chain(rest).collect()))
        }
        Kind::BraceClose => (input, Selector::Set(vec![first])),
        _ => return input.no_viable(0),
    };
    let (input, ()) = expect(input, Kind::BraceClose)?;
    Ok((input, made))
}

/// `simple_selector = ident | constant | "NULL" | marker | selection_function`
fn simple_selector(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("simple_selector");
    let kind = input.kind();
    if NameOf::Anything.allows(kind) || kind == Kind::Token {
        return column_or_function(input);
    }
    match kind {
        Kind::Null => Ok((input.skip(1), Selector::Term(Term::Literal(Literal::Null)))),
        Kind::QuestionMark if !may_follow_column(input.ahead(1)) => input.no_viable(1),
        Kind::QuestionMark | Kind::Colon => {
            let (input, marker) = marker(input)?;
            Ok((input, Selector::Term(marker)))
        }
        _ if is_constant(kind) => {
            let (input, constant) = constant(input)?;
            Ok((input, Selector::Term(Term::Literal(constant))))
        }
        _ => input.no_viable(0),
    }
}

/// A column, or a function call if a parenthesis follows the name or the qualified name.
fn column_or_function(input: Input<'_>) -> Parsed<'_, Selector> {
    if input.is(Kind::Token) {
        input.decided(2);
        expect(input.skip(1), Kind::ParenOpen)?;
        return selection_function(input);
    }
    let kind = input.kind();
    let callable =
        NameOf::Function.allows(kind) || matches!(kind, Kind::Ttl | Kind::Writetime | Kind::Maxwritetime | Kind::Cast);
    let of_function = match input.ahead(1) {
        Kind::ParenOpen if !callable => return input.no_viable(1),
        Kind::ParenOpen => true,
        Kind::Dot => match input.ahead(2) {
            Kind::Token => true,
            field if !NameOf::Anything.allows(field) => return input.no_viable(2),
            field => match input.ahead(3) {
                Kind::ParenOpen => NameOf::Function.allows(field),
                next if may_follow_column(next) => {
                    input.decided(4);
                    false
                }
                _ => return input.no_viable(3),
            },
        },
        next if may_follow_column(next) => {
            input.decided(2);
            false
        }
        _ => {
            input.decided(2);
            return input.no_viable(1);
        }
    };
    if of_function {
        return selection_function(input);
    }
    let (input, name) = ident(input)?;
    Ok((input, Selector::Column(name)))
}

/// `selection_function = "COUNT" "(" "*" ")" | metadata | selection_cast | function_name selection_function_arguments`
fn selection_function(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_function");
    match (input.kind(), input.ahead(1)) {
        (Kind::Count, Kind::ParenOpen) if input.ahead(2) == Kind::Star => {
            let (input, ()) = expect(input.skip(3), Kind::ParenClose)?;
            Ok((input, Selector::CountRows("*".to_owned())))
        }
        (Kind::Count, Kind::ParenOpen) if !is_argument(input.ahead(2)) => input.no_viable(2),
        (Kind::Writetime, Kind::ParenOpen) => metadata(input, MetadataKind::WriteTime),
        (Kind::Maxwritetime, Kind::ParenOpen) => metadata(input, MetadataKind::MaxWriteTime),
        (Kind::Ttl, Kind::ParenOpen) => metadata(input, MetadataKind::Ttl),
        (Kind::Cast, Kind::ParenOpen) => selection_cast(input),
        _ => {
            let at = input.site();
            let (input, name) = function_name(input)?;
            let (input, arguments) = selection_function_arguments(input)?;
            let made = match arguments.as_slice() {
                // `count(1)` counts rows too; its column's name keeps the number.
                [Selector::Term(Term::Literal(Literal::Integer(number)))]
                    if name.keyspace.is_none() && name.name.as_str() == "count" =>
                {
                    Selector::CountRows(number.clone())
                }
                _ => Selector::Function { name, arguments, at },
            };
            Ok((input, made))
        }
    }
}

/// Whether a token may follow a function's opening parenthesis.
fn is_argument(kind: Kind) -> bool {
    kind == Kind::ParenClose || begins_selector(kind)
}

/// `metadata = ( "WRITETIME" | "MAXWRITETIME" | "TTL" ) "(" ident selector_modifiers ")"`
fn metadata(input: Input<'_>, kind: MetadataKind) -> Parsed<'_, Selector> {
    enter("metadata");
    let (input, column): (_, Name) = ident(input.skip(2))?;
    let (input, of) = selector_modifiers(input, Selector::Column(column))?;
    if !may_follow_modifiers(input.kind()) {
        return input.no_viable(0);
    }
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, Selector::Metadata { kind, of: Box::new(of) }))
}

/// `selection_cast = "CAST" "(" unaliased_selector "AS" native_type ")"`
fn selection_cast(input: Input<'_>) -> Parsed<'_, Selector> {
    enter("selection_cast");
    let (input, selector) = unaliased_selector(input.skip(2))?;
    let (input, ()) = expect(input, Kind::As)?;
    let (input, target) = native_type(input)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((
        input,
        Selector::Cast {
            selector: Box::new(selector),
            target,
        },
    ))
}

/// `selection_function_arguments = "(" [ unaliased_selector { "," unaliased_selector } ] ")"`
fn selection_function_arguments(input: Input<'_>) -> Parsed<'_, Vec<Selector>> {
    enter("selection_function_arguments");
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, arguments) = if begins_selector(input.kind()) {
        separated(input, Kind::Comma, unaliased_selector)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, arguments))
}
