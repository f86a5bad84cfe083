//! CREATE.

use super::string;
use crate::ast::{
    CreateAggregate, CreateFunction, CreateIndex, CreateKeyspace, CreateTrigger, CreateType, CreateView,
    IndexTargetKind, Name, QualifiedName, Statement, Type,
};
use crate::input::{Input, Parsed, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{
    column_name, function_ident, function_name, ident, index_name, keyspace_name, table_name, type_name,
};
use crate::property::properties;
use crate::selector::selectors;
use crate::term::term;
use crate::types::comparator_type;

/// `create = create_keyspace | create_table | create_type | create_index | create_view | create_function | create_aggregate
/// | create_trigger | create_user | create_role`
pub(super) fn create(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create");
    match input.ahead(1) {
        Kind::Keyspace => create_keyspace(input),
        Kind::Columnfamily => super::table::create_table(input),
        Kind::Type => create_type(input),
        Kind::Index | Kind::Custom => create_index(input),
        Kind::Materialized => create_view(input),
        Kind::Function => create_function(input),
        Kind::Aggregate => create_aggregate(input),
        Kind::Or if input.ahead(2) == Kind::Replace => match input.ahead(3) {
            Kind::Function => create_function(input),
            Kind::Aggregate => create_aggregate(input),
            _ => input.no_viable(3),
        },
        Kind::Or => input.no_viable(2),
        Kind::Trigger => create_trigger(input),
        Kind::User => super::role::create_user(input),
        Kind::Role => super::role::create_role(input),
        _ => input.no_viable(1),
    }
}

/// `create_keyspace = "CREATE" "KEYSPACE" if_not_exists keyspace_name "WITH" properties`
fn create_keyspace(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_keyspace");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, name) = keyspace_name(input)?;
    let (input, ()) = expect(input, Kind::With)?;
    let (input, properties) = properties(input)?;
    Ok((
        input,
        Statement::CreateKeyspace(CreateKeyspace {
            name,
            if_not_exists,
            properties,
        }),
    ))
}

/// `create_type = "CREATE" "TYPE" if_not_exists type_name "(" field { "," [ field ] } ")"`
fn create_type(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_type");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, name) = type_name(input)?;
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (mut input, first) = field(input)?;
    let mut fields = vec![first];
    while input.is(Kind::Comma) {
        input = input.skip(1);
        if crate::input::NameOf::Anything.allows(input.kind()) {
            let (rest, next) = field(input)?;
            fields.push(next);
            input = rest;
        }
    }
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((
        input,
        Statement::CreateType(CreateType {
            name,
            if_not_exists,
            fields,
        }),
    ))
}

/// `field = ident comparator_type`
pub(super) fn field(input: Input<'_>) -> Parsed<'_, (Name, Type)> {
    enter("field");
    let (input, name) = ident(input)?;
    let (input, of) = comparator_type(input)?;
    Ok((input, (name, of)))
}

/// `create_index = "CREATE" [ "CUSTOM" ] "INDEX" if_not_exists [ index_name ] "ON" table_name "(" [ index_target { "," index_target } ]
/// ")" [ "USING" STRING ] [ "WITH" properties ]`
fn create_index(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_index");
    let (input, custom) = given(input.skip(1), Kind::Custom);
    let (input, ()) = expect(input, Kind::Index)?;
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let unnamed = !input.is(Kind::QuestionMark) && !crate::input::NameOf::Anything.allows(input.kind());
    let (input, name) = if unnamed {
        (input, None)
    } else {
        super::map(index_name(input), |name| Some(QualifiedName { keyspace: None, name }))?
    };
    let (input, ()) = expect(input, Kind::On)?;
    let (input, table) = table_name(input)?;
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, targets) = if begins_index_target(input.kind()) {
        separated(input, Kind::Comma, index_target)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let (input, using) = using_class(input)?;
    let (input, with) = given(input, Kind::With);
    let (input, properties) = if with { properties(input)? } else { (input, Vec::new()) };
    let index = CreateIndex {
        custom,
        if_not_exists,
        name,
        table,
        targets,
        using,
        properties,
    };
    Ok((input, Statement::CreateIndex(index)))
}

/// `USING` and a class, if it is given.
fn using_class(input: Input<'_>) -> Parsed<'_, Option<String>> {
    let (input, using) = given(input, Kind::Using);
    if using {
        super::map(string(input), Some)
    } else {
        Ok((input, None))
    }
}

fn begins_index_target(kind: Kind) -> bool {
    crate::name::is_column_name(kind) || matches!(kind, Kind::Entries | Kind::Full)
}

/// `index_target = column_name | ( "VALUES" | "KEYS" | "ENTRIES" | "FULL" ) "(" column_name ")"`
fn index_target(input: Input<'_>) -> Parsed<'_, (IndexTargetKind, Name)> {
    enter("index_target");
    let kind = match input.kind() {
        Kind::Entries => IndexTargetKind::Entries,
        Kind::Full => IndexTargetKind::Full,
        // These two are columns' names too.
        Kind::Values if input.ahead(1) == Kind::ParenOpen => IndexTargetKind::Values,
        Kind::Keys if input.ahead(1) == Kind::ParenOpen => IndexTargetKind::Keys,
        Kind::Values | Kind::Keys if !matches!(input.ahead(1), Kind::Comma | Kind::ParenClose) => {
            return input.no_viable(1);
        }
        _ => return super::map(column_name(input), |name| (IndexTargetKind::Simple, name)),
    };
    let (input, ()) = expect(input.skip(1), Kind::ParenOpen)?;
    let (input, name) = column_name(input)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, (kind, name)))
}

/// `create_view = "CREATE" "MATERIALIZED" "VIEW" if_not_exists table_name "AS" "SELECT" selectors "FROM" table_name
/// [ "WHERE" where_clause ] primary_key view_options`
fn create_view(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_view");
    let (input, ()) = expect(input.skip(2), Kind::View)?;
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let (input, name) = table_name(input)?;
    let (input, ()) = expect_all(input, &[Kind::As, Kind::Select])?;
    let (input, selection) = selectors(input)?;
    let (input, ()) = expect(input, Kind::From)?;
    let (input, base_table) = table_name(input)?;
    let (input, relations) = super::select::optional_where(input)?;
    let (input, ()) = expect(input, Kind::Primary)?;
    let (input, primary_key) = super::table::primary_key(input)?;
    let (input, options) = super::table::view_options(input)?;
    let view = CreateView {
        name,
        if_not_exists,
        selection,
        base_table,
        relations,
        primary_key,
        options,
    };
    Ok((input, Statement::CreateView(view)))
}

/// `OR REPLACE`, if it is given.
fn or_replace(input: Input<'_>) -> Parsed<'_, bool> {
    let (input, replace) = given(input, Kind::Or);
    if replace {
        super::map(expect(input, Kind::Replace), |()| true)
    } else {
        Ok((input, false))
    }
}

/// `create_function = "CREATE" [ "OR" "REPLACE" ] "FUNCTION" if_not_exists function_name "(" [ field { "," field } ] ")"
/// ( "RETURNS" "NULL" | "CALLED" ) "ON" "NULL" "INPUT" "RETURNS" comparator_type "LANGUAGE" IDENT "AS" STRING`
fn create_function(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_function");
    let (input, or_replace) = or_replace(input.skip(1))?;
    let (input, ()) = expect(input, Kind::Function)?;
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let (input, name) = function_name(input)?;
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, arguments) = if crate::input::NameOf::Anything.allows(input.kind()) {
        separated(input, Kind::Comma, field)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let (input, called_on_null_input) = match input.kind() {
        Kind::Returns => super::map(expect(input.skip(1), Kind::Null), |()| false)?,
        Kind::Called => (input.skip(1), true),
        _ => return input.no_viable(0),
    };
    let (input, ()) = expect_all(input, &[Kind::On, Kind::Null, Kind::Input, Kind::Returns])?;
    let (input, returns) = comparator_type(input)?;
    let (input, ()) = expect(input, Kind::Language)?;
    let (behind, ()) = expect(input, Kind::Ident)?;
    let language = crate::input::folded(input);
    let (input, ()) = expect(behind, Kind::As)?;
    let (input, body) = string(input)?;
    let function = CreateFunction {
        or_replace,
        if_not_exists,
        name,
        arguments,
        called_on_null_input,
        returns,
        language,
        body,
    };
    Ok((input, Statement::CreateFunction(function)))
}

/// `argument_types = "(" [ comparator_type { "," comparator_type } ] ")"`
pub(super) fn argument_types(input: Input<'_>) -> Parsed<'_, Vec<Type>> {
    enter("argument_types");
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let (input, types) = if crate::types::begins_type(input.kind()) {
        separated(input, Kind::Comma, comparator_type)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, types))
}

/// `create_aggregate = "CREATE" [ "OR" "REPLACE" ] "AGGREGATE" if_not_exists function_name argument_types "SFUNC" function_ident
/// "STYPE" comparator_type [ "FINALFUNC" function_ident ] [ "INITCOND" term ]`
fn create_aggregate(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_aggregate");
    let (input, or_replace) = or_replace(input.skip(1))?;
    let (input, ()) = expect(input, Kind::Aggregate)?;
    let (input, if_not_exists) = super::if_not_exists(input)?;
    let (input, name) = function_name(input)?;
    let (input, arguments) = argument_types(input)?;
    let (input, ()) = expect(input, Kind::Sfunc)?;
    let (input, state_function) = function_ident(input)?;
    let (input, ()) = expect(input, Kind::Stype)?;
    let (input, state_type) = comparator_type(input)?;
    let (input, finished) = given(input, Kind::Finalfunc);
    let (input, final_function) = if finished {
        super::map(function_ident(input), Some)?
    } else {
        (input, None)
    };
    let (input, begun) = given(input, Kind::Initcond);
    let (input, initial_condition) = if begun {
        super::map(term(input), Some)?
    } else {
        (input, None)
    };
    let aggregate = CreateAggregate {
        or_replace,
        if_not_exists,
        name,
        arguments,
        state_function,
        state_type,
        final_function,
        initial_condition,
    };
    Ok((input, Statement::CreateAggregate(aggregate)))
}

/// `create_trigger = "CREATE" "TRIGGER" if_not_exists ident "ON" table_name "USING" STRING`
fn create_trigger(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_trigger");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, name) = ident(input)?;
    let (input, ()) = expect(input, Kind::On)?;
    let (input, table) = table_name(input)?;
    let (input, ()) = expect(input, Kind::Using)?;
    let (input, class) = string(input)?;
    Ok((
        input,
        Statement::CreateTrigger(CreateTrigger {
            name,
            if_not_exists,
            table,
            class,
        }),
    ))
}
