//! UPDATE.

use std::collections::HashMap;

use crate::ast::{Assignment, Literal, Name, Term, Update};
use crate::input::{Input, Parsed, enter, expect, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, ident, is_column_name, table_name};
use crate::relation::{if_clause, where_clause};
use crate::term::{is_bare_column, term};

/// `update = "UPDATE" table_name using "SET" assignment { "," assignment } "WHERE" where_clause if_clause`
pub(super) fn update(input: Input<'_>) -> Parsed<'_, Update> {
    enter("update");
    let (input, table) = table_name(input.skip(1))?;
    let (input, using) = super::insert::using(input)?;
    let (input, ()) = expect(input, Kind::Set)?;
    let mut set = HashMap::new();
    let (input, assignments) = separated(input, Kind::Comma, |input| {
        let (rest, assignment) = assignment(input)?;
        refuse_incompatible(rest, &mut set, &assignment);
        Ok((rest, assignment))
    })?;
    let (input, ()) = expect(input, Kind::Where)?;
    let (input, relations) = where_clause(input)?;
    let (input, condition) = if_clause(input)?;
    Ok((
        input,
        Update {
            table,
            using,
            assignments,
            relations,
            condition,
        },
    ))
}

/// Reports a column that is set as a whole and set again. `set` records for each column whether it was set as a whole.
fn refuse_incompatible(input: Input<'_>, set: &mut HashMap<Name, bool>, assignment: &Assignment) {
    let whole = matches!(assignment, Assignment::Set(..));
    let (Assignment::Set(name, _)
    | Assignment::Field(name, _, _)
    | Assignment::Element(name, _, _)
    | Assignment::Add(name, _)
    | Assignment::Subtract(name, _)
    | Assignment::Prepend(name, _)) = assignment;
    if let Some(before) = set.insert(name.clone(), whole)
        && (before || whole)
    {
        input.report(|| format!("Multiple incompatible setting of column {}", name.as_str()));
    }
}

/// `assignment = column_name ( "=" column_value | ( "+=" | "-=" ) term | "[" term "]" "=" term | "." ident "=" term )`
fn assignment(input: Input<'_>) -> Parsed<'_, Assignment> {
    enter("assignment");
    let (input, column) = column_name(input)?;
    let behind = input.skip(1);
    match input.kind() {
        Kind::Equals => column_value(behind, column),
        Kind::PlusEquals => super::map(term(behind), |value| Assignment::Add(column, value)),
        Kind::MinusEquals => super::map(term(behind), |value| Assignment::Subtract(column, value)),
        Kind::BracketOpen => {
            let (input, key) = term(behind)?;
            let (input, ()) = crate::input::expect_all(input, &[Kind::BracketClose, Kind::Equals])?;
            super::map(term(input), |value| Assignment::Element(column, key, value))
        }
        Kind::Dot => {
            let (input, field) = ident(behind)?;
            let (input, ()) = expect(input, Kind::Equals)?;
            super::map(term(input), |value| Assignment::Field(column, field, value))
        }
        _ => input.no_viable(0),
    }
}

/// `column_value = term [ "+" column_name ] | column_name ( "+" | "-" ) term | column_name INTEGER`: in `a = a-1` the lexer sees `-1`.
fn column_value(input: Input<'_>, column: Name) -> Parsed<'_, Assignment> {
    enter("column_value");
    if is_column_name(input.kind()) && is_bare_column(input) {
        return change(input, column);
    }
    let (input, value) = term(input)?;
    let (input, prepended) = given(input, Kind::Plus);
    if !prepended {
        return Ok((input, Assignment::Set(column, value)));
    }
    let (input, other) = column_name(input)?;
    if other != column {
        input.report(|| "Only expressions of the form X = <value> + X are supported.".to_owned());
    }
    Ok((input, Assignment::Prepend(column, value)))
}

/// A column's value changed by a term.
fn change(input: Input<'_>, column: Name) -> Parsed<'_, Assignment> {
    let kind = input.ahead(1);
    if !matches!(kind, Kind::Plus | Kind::Minus | Kind::Integer) {
        return input.no_viable(1);
    }
    input.decided(2);
    let (input, other) = column_name(input)?;
    let refuse = |input: Input<'_>, sign: &str| {
        if other != column {
            input.report(|| format!("Only expressions of the form X = X {sign}<value> are supported."));
        }
    };
    if kind == Kind::Integer {
        let text = input.text().into_owned();
        let input = input.skip(1);
        refuse(input, if text.starts_with('-') { "- " } else { "+ " });
        return Ok((input, Assignment::Add(column, Term::Literal(Literal::Integer(text)))));
    }
    let (input, value) = term(input.skip(1))?;
    if kind == Kind::Plus {
        refuse(input, "+");
        return Ok((input, Assignment::Add(column, value)));
    }
    refuse(input, "-");
    Ok((input, Assignment::Subtract(column, value)))
}
