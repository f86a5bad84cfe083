//! INSERT, and USING, which the other modifications share.

use crate::ast::{Insert, InsertSource, Literal, Term, Using};
use crate::input::{Input, Parsed, enter, expect, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, table_name};
use crate::term::{int_value, marker, term};

/// `insert = "INSERT" "INTO" table_name ( insert_values | insert_json ) if_not_exists using`
pub(super) fn insert(input: Input<'_>) -> Parsed<'_, Insert> {
    enter("insert");
    let (input, ()) = expect(input.skip(1), Kind::Into)?;
    let (input, table) = table_name(input)?;
    let (input, source) = match input.kind() {
        Kind::ParenOpen => insert_values(input)?,
        Kind::Json => insert_json(input)?,
        _ => return input.no_viable(0),
    };
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let (input, using) = using(input)?;
    Ok((
        input,
        Insert {
            table,
            source,
            if_not_exists,
            using,
        },
    ))
}

/// `insert_values = "(" column_name { "," column_name } ")" "VALUES" "(" term { "," term } ")"`
fn insert_values(input: Input<'_>) -> Parsed<'_, InsertSource> {
    enter("insert_values");
    let (input, columns) = separated(input.skip(1), Kind::Comma, column_name)?;
    let (input, ()) = crate::input::expect_all(input, &[Kind::ParenClose, Kind::Values, Kind::ParenOpen])?;
    let (input, values) = separated(input, Kind::Comma, term)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, InsertSource::Values { columns, values }))
}

/// `insert_json = "JSON" ( STRING | marker ) [ "DEFAULT" ( "NULL" | "UNSET" ) ]`
fn insert_json(input: Input<'_>) -> Parsed<'_, InsertSource> {
    enter("insert_json");
    let input = input.skip(1);
    let (input, document) = match input.kind() {
        Kind::String => (input.skip(1), Term::Literal(Literal::String(input.text().into_owned()))),
        Kind::QuestionMark | Kind::Colon => marker(input)?,
        _ => return input.no_viable(0),
    };
    let (input, defaulted) = given(input, Kind::Default);
    let (input, default_unset) = match input.kind() {
        Kind::Null if defaulted => (input.skip(1), false),
        Kind::Unset if defaulted => (input.skip(1), true),
        _ if defaulted => return input.no_viable(0),
        _ => (input, false),
    };
    Ok((
        input,
        InsertSource::Json {
            document,
            default_unset,
        },
    ))
}

/// `using = [ "USING" using_objective { "AND" using_objective } ]`
pub(super) fn using(input: Input<'_>) -> Parsed<'_, Using> {
    enter("using");
    let (input, given) = given(input, Kind::Using);
    if !given {
        return Ok((input, Using::default()));
    }
    let (input, objectives) = separated(input, Kind::And, using_objective)?;
    let mut using = Using::default();
    for (is_ttl, value) in objectives {
        // The last one counts. Differs: a marker in an overridden option is rejected, since it could not be bound.
        let replaced = if is_ttl {
            using.ttl_first = using.timestamp.is_none();
            using.ttl.replace(value)
        } else {
            using.timestamp.replace(value)
        };
        if let Some(Term::BindMarker { .. }) = replaced {
            input.report(|| "USING gives the same twice".to_owned());
        }
    }
    Ok((input, using))
}

/// `using_objective = ( "TIMESTAMP" | "TTL" ) int_value`
fn using_objective(input: Input<'_>) -> Parsed<'_, (bool, Term)> {
    enter("using_objective");
    let is_ttl = match input.kind() {
        Kind::Timestamp => false,
        Kind::Ttl => true,
        _ => return input.no_viable(0),
    };
    super::map(int_value(input.skip(1)), |value| (is_ttl, value))
}
