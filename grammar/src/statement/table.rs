//! CREATE TABLE, and what views and ALTER TABLE share with it: columns, masks, the primary key, options.

use std::collections::HashSet;

use crate::ast::{
    ColumnDefinition, CreateTable, Direction, Mask, Name, PrimaryKey, QualifiedName, Statement, TableOptions,
};
use crate::input::{Input, NameOf, Parsed, continued, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{function_name, ident, table_name};
use crate::property::{property, refuse_twice};
use crate::term::{begins_term, term};
use crate::types::comparator_type;

/// `create_table = "CREATE" "TABLE" if_not_exists table_name "(" table_element { "," [ table_element ] } ")" table_options`
pub(super) fn create_table(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("create_table");
    let (input, if_not_exists) = super::if_not_exists(input.skip(2))?;
    let (input, table) = table_name(input)?;
    let (input, ()) = expect(input, Kind::ParenOpen)?;
    let mut created = CreateTable {
        table,
        if_not_exists,
        columns: Vec::new(),
        primary_keys: Vec::new(),
        options: TableOptions::default(),
    };
    let (mut input, ()) = table_element(input, &mut created)?;
    while input.is(Kind::Comma) {
        input = input.skip(1);
        // Cassandra accepts a trailing comma.
        if input.is(Kind::Primary) || NameOf::Anything.allows(input.kind()) {
            (input, ()) = table_element(input, &mut created)?;
        }
    }
    let (input, ()) = expect(input, Kind::ParenClose)?;
    let (input, options) = table_options(input)?;
    created.options = options;
    Ok((input, Statement::CreateTable(created)))
}

/// `table_element = primary_key | column_definition [ "PRIMARY" "KEY" ]`
fn table_element<'a>(input: Input<'a>, table: &mut CreateTable) -> Parsed<'a, ()> {
    enter("table_element");
    if input.is(Kind::Primary) {
        let (input, key) = primary_key(input.skip(1))?;
        table.primary_keys.push(key);
        return Ok((input, ()));
    }
    let (input, mut column) = column_definition(input)?;
    let (input, is_primary_key) = given(input, Kind::Primary);
    let (input, ()) = if is_primary_key {
        expect(input, Kind::Key)?
    } else {
        (input, ())
    };
    column.is_primary_key = is_primary_key;
    table.columns.push(column);
    Ok((input, ()))
}

/// `column_definition = ident comparator_type [ "STATIC" ] [ column_mask ]`
pub(super) fn column_definition(input: Input<'_>) -> Parsed<'_, ColumnDefinition> {
    enter("column_definition");
    let (input, name) = ident(input)?;
    let (input, column_type) = comparator_type(input)?;
    let (input, is_static) = given(input, Kind::Static);
    let (input, mask) = if input.is(Kind::Masked) {
        super::map(column_mask(input), Some)?
    } else {
        (input, None)
    };
    Ok((
        input,
        ColumnDefinition {
            name,
            column_type,
            is_static,
            is_primary_key: false,
            mask,
        },
    ))
}

/// `column_mask = "MASKED" "WITH" ( "DEFAULT" | function_name "(" [ term { "," term } ] ")" )`
pub(super) fn column_mask(input: Input<'_>) -> Parsed<'_, Mask> {
    enter("column_mask");
    if input.ahead(1) != Kind::With {
        return input.no_viable(1);
    }
    match input.ahead(2) {
        // It is a function's name too; the next tokens decide.
        Kind::Default => match input.ahead(3) {
            Kind::ParenOpen | Kind::Dot => {}
            Kind::Primary | Kind::ParenClose | Kind::Comma | Kind::Semicolon | Kind::End => {
                let function = QualifiedName {
                    keyspace: None,
                    name: Name::from("mask_default"),
                };
                return Ok((
                    input.skip(3),
                    Mask {
                        by_default: true,
                        function,
                        arguments: Vec::new(),
                    },
                ));
            }
            _ => return input.no_viable(3),
        },
        Kind::Token | Kind::QuestionMark => {}
        kind if NameOf::Anything.allows(kind) => {}
        _ => return input.no_viable(2),
    }
    let (input, function) = function_name(input.skip(2))?;
    if !input.is(Kind::ParenOpen) {
        return input.no_viable(0);
    }
    if input.ahead(1) != Kind::ParenClose && !begins_term(input.ahead(1)) {
        return input.no_viable(1);
    }
    let input = input.skip(1);
    let (input, arguments) = if begins_term(input.kind()) {
        separated(input, Kind::Comma, term)?
    } else {
        (input, Vec::new())
    };
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((
        input,
        Mask {
            by_default: false,
            function,
            arguments,
        },
    ))
}

/// `primary_key = "PRIMARY" "KEY" "(" partition_key { "," ident } ")"`, from KEY on.
pub(super) fn primary_key(input: Input<'_>) -> Parsed<'_, PrimaryKey> {
    enter("primary_key");
    let (input, ()) = expect_all(input, &[Kind::Key, Kind::ParenOpen])?;
    let (input, partition_key) = partition_key(input)?;
    let mut clustering = Vec::new();
    let (input, ()) = continued(input, Kind::Comma, &mut clustering, ident)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((
        input,
        PrimaryKey {
            partition_key,
            clustering,
        },
    ))
}

/// `partition_key = ident | "(" ident { "," ident } ")"`
fn partition_key(input: Input<'_>) -> Parsed<'_, Vec<Name>> {
    enter("partition_key");
    if !input.is(Kind::ParenOpen) {
        return super::map(ident(input), |name| vec![name]);
    }
    let (input, names) = separated(input.skip(1), Kind::Comma, ident)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, names))
}

/// `table_options = [ "WITH" table_option { "AND" table_option } ]`
pub(super) fn table_options(input: Input<'_>) -> Parsed<'_, TableOptions> {
    enter("table_options");
    options(input, false)
}

/// `view_options = [ "WITH" table_option { "AND" table_option } ]`, without COMPACT STORAGE
pub(super) fn view_options(input: Input<'_>) -> Parsed<'_, TableOptions> {
    enter("view_options");
    options(input, true)
}

fn options(input: Input<'_>, of_view: bool) -> Parsed<'_, TableOptions> {
    let mut options = TableOptions::default();
    let (input, with) = given(input, Kind::With);
    if !with {
        return Ok((input, options));
    }
    let mut seen = HashSet::new();
    let (input, _) = separated(input, Kind::And, |input| {
        table_option(input, of_view, &mut options, &mut seen)
    })?;
    Ok((input, options))
}

/// `table_option = property | "COMPACT" "STORAGE" | "CLUSTERING" "ORDER" "BY" "(" clustering_order { "," clustering_order } ")"`
fn table_option<'a>(
    input: Input<'a>,
    of_view: bool,
    options: &mut TableOptions,
    seen: &mut HashSet<Name>,
) -> Parsed<'a, ()> {
    enter("table_option");
    match input.kind() {
        // Both words are properties' names too.
        Kind::Compact if input.ahead(1) != Kind::Equals => {
            if input.ahead(1) != Kind::Storage {
                return input.no_viable(1);
            }
            if of_view {
                input.report(|| "COMPACT STORAGE tables are not allowed starting with version 4.0".to_owned());
            }
            options.compact_storage = true;
            Ok((input.skip(2), ()))
        }
        Kind::Clustering if input.ahead(1) != Kind::Equals => {
            if input.ahead(1) != Kind::Order {
                return input.no_viable(1);
            }
            let (input, ()) = expect_all(input.skip(2), &[Kind::By, Kind::ParenOpen])?;
            let (input, orders) = separated(input, Kind::Comma, clustering_order)?;
            let (input, ()) = expect(input, Kind::ParenClose)?;
            options.clustering_order.extend(orders);
            Ok((input, ()))
        }
        _ => {
            let (input, property) = property(input)?;
            refuse_twice(input, seen, &property.name);
            options.properties.push(property);
            Ok((input, ()))
        }
    }
}

/// `clustering_order = ident ( "ASC" | "DESC" )`
fn clustering_order(input: Input<'_>) -> Parsed<'_, (Name, Direction)> {
    enter("clustering_order");
    let (input, name) = ident(input)?;
    let direction = match input.kind() {
        Kind::Asc => Direction::Ascending,
        Kind::Desc => Direction::Descending,
        _ => return input.no_viable(0),
    };
    Ok((input.skip(1), (name, direction)))
}
