//! WHERE and IF: restrictions on rows, and conditions of a conditional statement.

use crate::ast::{
    Condition, ConditionTarget, FeedFunction, If, Name, Operator, Relation, RelationTarget, RelationValue, Term,
};
use crate::error::{Cause, Limit};
use crate::input::{Input, Parsed, collected, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, ident, index_name, is_column_name};
use crate::term::{begins_term, marker, term, tuple_literal};

/// `where_clause = relation_or_expression { "AND" relation_or_expression }`
pub(crate) fn where_clause(input: Input<'_>) -> Parsed<'_, Vec<Relation>> {
    enter("where_clause");
    separated(input, Kind::And, relation_or_expression)
}

/// `relation_or_expression = relation | index_expression`
fn relation_or_expression(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("relation_or_expression");
    match input.kind() {
        Kind::ExprOpen => index_expression(input),
        Kind::ParenOpen | Kind::Token => relation(input),
        kind if is_column_name(kind) => relation(input),
        _ => input.no_viable(0),
    }
}

/// `index_expression = "expr(" index_name "," term ")"`
fn index_expression(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("index_expression");
    let (input, index) = index_name(input.skip(1))?;
    let (input, ()) = expect(input, Kind::Comma)?;
    let (input, value) = term(input)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let value = RelationValue::Term(value);
    Ok((
        input,
        Relation {
            target: RelationTarget::Index(index),
            operator: Operator::Eq,
            value,
        },
    ))
}

/// `relation = column_relation | token_relation | tuple_relation | feed_relation | "(" relation ")"`
fn relation(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("relation");
    match input.kind() {
        Kind::Token => token_relation(input),
        Kind::ParenOpen if is_column_name(input.ahead(1)) => match input.ahead(2) {
            Kind::Comma | Kind::ParenClose => {
                input.decided(3);
                tuple_relation(input)
            }
            kind if begins_comparison(kind) => {
                input.decided(3);
                parenthesized(input)
            }
            _ => input.no_viable(2),
        },
        Kind::ParenOpen if matches!(input.ahead(1), Kind::ParenOpen | Kind::Token) => parenthesized(input),
        Kind::ParenOpen => input.no_viable(1),
        kind if is_column_name(kind) => match feed_function(input) {
            Some(function) => feed_relation(input, function),
            None => column_relation(input),
        },
        _ => input.no_viable(0),
    }
}

/// The function of the change feed that is called here. The name decides before anything behind it is looked at: how far
/// the parser looks ahead is part of Cassandra's error texts.
fn feed_function(input: Input<'_>) -> Option<FeedFunction> {
    let (_, name) = column_name(input).ok()?;
    let function = FeedFunction::ALL
        .into_iter()
        .find(|function| function.name() == name.as_str())?;
    let is_call = input.ahead(1) == Kind::ParenOpen && input.ahead(2) == Kind::ParenClose;
    (is_call && input.ahead(3) == Kind::Equals).then_some(function)
}

/// `feed_relation = ( "COSMOS_CHANGEFEED_START_TIME" | "COSMOS_CHANGEFEED_FROM_START" | "COSMOS_FEEDRANGE" |
/// "COSMOS_FULLFIDELITY_CHANGEFEED" ) "(" ")" "=" term`
fn feed_relation(input: Input<'_>, function: FeedFunction) -> Parsed<'_, Relation> {
    enter("feed_relation");
    input.decided(4);
    let (input, value) = term(input.skip(4))?;
    Ok((
        input,
        Relation {
            target: RelationTarget::Feed(function),
            operator: Operator::Eq,
            value: RelationValue::Term(value),
        },
    ))
}

fn parenthesized(input: Input<'_>) -> Parsed<'_, Relation> {
    let (input, relation) = input.skip(1).nested(relation)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, relation))
}

fn begins_comparison(kind: Kind) -> bool {
    comparison(kind).is_some()
        || matches!(
            kind,
            Kind::Like | Kind::Is | Kind::In | Kind::Contains | Kind::BracketOpen
        )
}

/// `column_relation = column_name ( relation_type term | "LIKE" term | "IS" "NOT" "NULL" | "IN" in_values |
/// "CONTAINS" [ "KEY" ] term | "[" term "]" relation_type term )`
fn column_relation(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("column_relation");
    if !begins_comparison(input.ahead(1)) {
        return input.no_viable(1);
    }
    // The value of IN is parsed with the rest of the relation.
    if input.ahead(1) == Kind::In && !matches!(input.ahead(2), Kind::ParenOpen | Kind::QuestionMark | Kind::Colon) {
        return input.no_viable(2);
    }
    input.decided(if input.ahead(1) == Kind::In { 3 } else { 2 });
    let (input, name) = column_name(input)?;
    let made = |target, operator, value| Relation {
        target,
        operator,
        value,
    };
    match input.kind() {
        Kind::Is => {
            let (input, ()) = expect_all(input.skip(1), &[Kind::Not, Kind::Null])?;
            Ok((
                input,
                made(RelationTarget::Column(name), Operator::IsNotNull, RelationValue::None),
            ))
        }
        Kind::In => {
            let (input, value) = in_values(input.skip(1))?;
            Ok((input, made(RelationTarget::Column(name), Operator::In, value)))
        }
        Kind::BracketOpen => {
            let (input, key) = term(input.skip(1))?;
            let (input, ()) = expect(input, Kind::BracketClose)?;
            let (input, operator) = relation_type(input)?;
            let (input, value) = term(input)?;
            Ok((
                input,
                made(RelationTarget::Element(name, key), operator, RelationValue::Term(value)),
            ))
        }
        _ => {
            let (input, operator) = term_operator(input)?;
            let (input, value) = term(input)?;
            Ok((
                input,
                made(RelationTarget::Column(name), operator, RelationValue::Term(value)),
            ))
        }
    }
}

/// LIKE, CONTAINS, CONTAINS KEY or a comparison.
fn term_operator(input: Input<'_>) -> Parsed<'_, Operator> {
    match input.kind() {
        Kind::Like => Ok((input.skip(1), Operator::Like)),
        Kind::Contains => {
            let input = input.skip(1);
            if !input.is(Kind::Key) {
                return Ok((input, Operator::Contains));
            }
            // KEY may also name a keyspace: `CONTAINS key.f()`.
            match input.ahead(1) {
                Kind::Dot => Ok((input, Operator::Contains)),
                next if begins_term(next) => Ok((input.skip(1), Operator::ContainsKey)),
                _ => input.no_viable(1),
            }
        }
        _ => relation_type(input),
    }
}

/// `relation_type = "=" | "<" | "<=" | ">" | ">=" | "!="`
fn relation_type(input: Input<'_>) -> Parsed<'_, Operator> {
    enter("relation_type");
    match comparison(input.kind()) {
        Some(operator) => Ok((input.skip(1), operator)),
        None => input.no_viable(0),
    }
}

const fn comparison(kind: Kind) -> Option<Operator> {
    Some(match kind {
        Kind::Equals => Operator::Eq,
        Kind::Less => Operator::Lt,
        Kind::LessEquals => Operator::Lte,
        Kind::Greater => Operator::Gt,
        Kind::GreaterEquals => Operator::Gte,
        Kind::NotEquals => Operator::Neq,
        _ => return None,
    })
}

/// `token_relation = "TOKEN" tuple_of_names relation_type term`
fn token_relation(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("token_relation");
    let (input, names) = tuple_of_names(input.skip(1))?;
    let (input, operator) = relation_type(input)?;
    let (input, value) = term(input)?;
    let value = RelationValue::Term(value);
    Ok((
        input,
        Relation {
            target: RelationTarget::Token(names),
            operator,
            value,
        },
    ))
}

/// `tuple_of_names = "(" column_name { "," column_name } ")"`
fn tuple_of_names(input: Input<'_>) -> Parsed<'_, Vec<Name>> {
    enter("tuple_of_names");
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, names) = separated(input, Kind::Comma, column_name)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, names))
}

/// `tuple_relation = tuple_of_names ( "IN" tuple_in_values | relation_type ( tuple_literal | marker ) )`
fn tuple_relation(input: Input<'_>) -> Parsed<'_, Relation> {
    enter("tuple_relation");
    let (input, names) = tuple_of_names(input)?;
    let target = RelationTarget::Tuple(names);
    if input.is(Kind::In) {
        let (input, value) = tuple_in_values(input)?;
        return Ok((
            input,
            Relation {
                target,
                operator: Operator::In,
                value,
            },
        ));
    }
    if comparison(input.kind()).is_none() {
        return input.no_viable(0);
    }
    if !matches!(input.ahead(1), Kind::ParenOpen | Kind::QuestionMark | Kind::Colon) {
        return input.no_viable(1);
    }
    input.decided(2);
    let (input, operator) = relation_type(input)?;
    let (input, value) = if input.is(Kind::ParenOpen) {
        tuple_literal(input)?
    } else {
        marker(input)?
    };
    Ok((
        input,
        Relation {
            target,
            operator,
            value: RelationValue::Term(value),
        },
    ))
}

/// `tuple_in_values = marker | "(" [ tuple_literal { "," tuple_literal } | marker { "," marker } ] ")"`
fn tuple_in_values(input: Input<'_>) -> Parsed<'_, RelationValue> {
    enter("tuple_in_values");
    let input = input.skip(1);
    match input.kind() {
        Kind::QuestionMark | Kind::Colon => {
            let (input, marker) = marker(input)?;
            Ok((input, RelationValue::Term(marker)))
        }
        Kind::ParenOpen => {
            let inside = input.skip(1);
            let (input, values) = match inside.kind() {
                Kind::ParenClose => (inside, Vec::new()),
                Kind::ParenOpen => collected(inside, Vec::new(), counted(tuple_literal))?,
                Kind::QuestionMark | Kind::Colon => collected(inside, Vec::new(), counted(marker))?,
                _ => return input.no_viable(1),
            };
            let (input, ()) = expect(input, Kind::ParenClose)?;
            Ok((input, RelationValue::Terms(values)))
        }
        _ => input.no_viable(0),
    }
}

/// `in_values = marker | "(" [ term { "," term } ] ")"`
fn in_values(input: Input<'_>) -> Parsed<'_, RelationValue> {
    enter("in_values");
    match input.kind() {
        Kind::QuestionMark | Kind::Colon => {
            let (input, marker) = marker(input)?;
            Ok((input, RelationValue::Term(marker)))
        }
        Kind::ParenOpen => {
            let input = input.skip(1);
            let (input, values) = if begins_term(input.kind()) {
                collected(input, Vec::new(), counted(term))?
            } else {
                (input, Vec::new())
            };
            let (input, ()) = expect(input, Kind::ParenClose)?;
            Ok((input, RelationValue::Terms(values)))
        }
        _ => input.no_viable(0),
    }
}

/// Limits `element` to the number of values that one IN may have.
fn counted<'a>(element: fn(Input<'a>) -> Parsed<'a, Term>) -> impl FnMut(Input<'a>) -> Parsed<'a, Term> {
    let mut count = 0;
    move |input| {
        count += 1;
        if count > crate::IN_VALUES_MAX {
            return input.fail(0, Cause::Exceeded(Limit::InValues));
        }
        element(input)
    }
}

/// `if_clause = [ "IF" ( "EXISTS" | column_condition { "AND" column_condition } ) ]`
pub(crate) fn if_clause(input: Input<'_>) -> Parsed<'_, If> {
    enter("if_clause");
    let (input, conditional) = given(input, Kind::If);
    if !conditional {
        return Ok((input, If::Always));
    }
    // EXISTS may also name a column; the next tokens decide.
    if input.is(Kind::Exists) {
        match input.ahead(1) {
            Kind::Apply | Kind::Delete | Kind::Insert | Kind::Update | Kind::Semicolon | Kind::End => {
                return Ok((input.skip(1), If::Exists));
            }
            Kind::Contains | Kind::In | Kind::Dot | Kind::BracketOpen => {}
            kind if comparison(kind).is_some() => {}
            _ => return input.no_viable(1),
        }
    }
    if !is_column_name(input.kind()) {
        return input.no_viable(0);
    }
    let (input, conditions) = separated(input, Kind::And, column_condition)?;
    Ok((input, If::Conditions(conditions)))
}

/// `column_condition = column_name [ "[" term "]" | "." ident ] ( relation_type term | "IN" in_values | "CONTAINS" [ "KEY" ] term )`
fn column_condition(input: Input<'_>) -> Parsed<'_, Condition> {
    enter("column_condition");
    let (input, name) = column_name(input)?;
    let (input, target) = match input.kind() {
        Kind::BracketOpen => {
            let (input, key) = term(input.skip(1))?;
            let (input, ()) = expect(input, Kind::BracketClose)?;
            (input, ConditionTarget::Element(name, key))
        }
        Kind::Dot => {
            let (input, field) = ident(input.skip(1))?;
            (input, ConditionTarget::Field(name, field))
        }
        _ => (input, ConditionTarget::Column(name)),
    };
    let (input, operator, value) = match input.kind() {
        Kind::In => {
            let (input, value) = in_values(input.skip(1))?;
            (input, Operator::In, value)
        }
        Kind::Contains if matches!(target, ConditionTarget::Column(_)) => {
            let (input, operator) = term_operator(input)?;
            let (input, value) = term(input)?;
            (input, operator, RelationValue::Term(value))
        }
        kind if comparison(kind).is_some() => {
            let (input, operator) = relation_type(input)?;
            let (input, value) = term(input)?;
            (input, operator, RelationValue::Term(value))
        }
        _ => return input.no_viable(0),
    };
    Ok((
        input,
        Condition {
            target,
            operator,
            value,
        },
    ))
}
