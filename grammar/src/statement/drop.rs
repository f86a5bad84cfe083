//! DROP.

use crate::ast::{Drop, DropFunction, DropKeyspace, DropKind, DropTrigger, QualifiedName, Statement};
use crate::input::{Input, Parsed, enter, expect};
use crate::keyword::Kind;
use crate::name::{function_name, ident, keyspace_name, qualified_index_name, table_name, type_name};

/// `drop = drop_keyspace | drop_table | drop_type | drop_index | drop_view | drop_function | drop_aggregate | drop_trigger | drop_user
/// | drop_role | drop_identity`
pub(super) fn drop(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop");
    match input.ahead(1) {
        Kind::Keyspace => drop_keyspace(input),
        Kind::Columnfamily => drop_table(input),
        Kind::Type => drop_type(input),
        Kind::Index => drop_index(input),
        Kind::Materialized => drop_view(input),
        Kind::Function => drop_function(input),
        Kind::Aggregate => drop_aggregate(input),
        Kind::Trigger => drop_trigger(input),
        Kind::User => super::role::drop_user(input),
        Kind::Role => super::role::drop_role(input),
        Kind::Identity => super::identity::drop_identity(input),
        _ => input.no_viable(1),
    }
}

/// `drop_keyspace = "DROP" "KEYSPACE" if_exists keyspace_name`
fn drop_keyspace(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_keyspace");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    super::map(keyspace_name(input), |name| {
        Statement::DropKeyspace(DropKeyspace { name, if_exists })
    })
}

fn plain<'a>(
    input: Input<'a>,
    kind: DropKind,
    named: fn(Input<'a>) -> Parsed<'a, QualifiedName>,
) -> Parsed<'a, Statement> {
    let (input, if_exists) = super::if_exists(input)?;
    super::map(named(input), |name| Statement::Drop(Drop { kind, if_exists, name }))
}

/// `drop_table = "DROP" "TABLE" if_exists table_name`
fn drop_table(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_table");
    plain(input.skip(2), DropKind::Table, table_name)
}

/// `drop_type = "DROP" "TYPE" if_exists type_name`
fn drop_type(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_type");
    plain(input.skip(2), DropKind::Type, type_name)
}

/// `drop_index = "DROP" "INDEX" if_exists qualified_index_name`
fn drop_index(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_index");
    plain(input.skip(2), DropKind::Index, qualified_index_name)
}

/// `drop_view = "DROP" "MATERIALIZED" "VIEW" if_exists table_name`
fn drop_view(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_view");
    let (input, ()) = expect(input.skip(2), Kind::View)?;
    plain(input, DropKind::View, table_name)
}

/// `drop_function = "DROP" "FUNCTION" if_exists function_name [ argument_types ]`
fn drop_function(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_function");
    function_or_aggregate(input.skip(2), false)
}

/// `drop_aggregate = "DROP" "AGGREGATE" if_exists function_name [ argument_types ]`
fn drop_aggregate(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_aggregate");
    function_or_aggregate(input.skip(2), true)
}

fn function_or_aggregate(input: Input<'_>, aggregate: bool) -> Parsed<'_, Statement> {
    let (input, if_exists) = super::if_exists(input)?;
    let (input, name) = function_name(input)?;
    let (input, arguments) = if input.is(Kind::ParenOpen) {
        super::map(super::create::argument_types(input), Some)?
    } else {
        (input, None)
    };
    Ok((
        input,
        Statement::DropFunction(DropFunction {
            aggregate,
            if_exists,
            name,
            arguments,
        }),
    ))
}

/// `drop_trigger = "DROP" "TRIGGER" if_exists ident "ON" table_name`
fn drop_trigger(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("drop_trigger");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, name) = ident(input)?;
    let (input, ()) = expect(input, Kind::On)?;
    let (input, table) = table_name(input)?;
    Ok((input, Statement::DropTrigger(DropTrigger { name, if_exists, table })))
}
