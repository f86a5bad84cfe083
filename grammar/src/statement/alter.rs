//! ALTER.

use crate::ast::{
    AlterKeyspace, AlterTable, AlterTableAction, AlterType, AlterTypeAction, AlterView, Name, Statement, TableOptions,
};
use crate::input::{Input, NameOf, Parsed, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, ident, is_column_name, keyspace_name, table_name, type_name};
use crate::property::properties;
use crate::types::comparator_type;

use super::table::{column_definition, column_mask};

/// `alter = alter_keyspace | alter_table | alter_type | alter_view | alter_user | alter_role`
pub(super) fn alter(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter");
    match input.ahead(1) {
        Kind::Keyspace => alter_keyspace(input),
        Kind::Columnfamily => alter_table(input),
        Kind::Type => alter_type(input),
        Kind::Materialized => alter_view(input),
        Kind::User => super::role::alter_user(input),
        Kind::Role => super::role::alter_role(input),
        _ => input.no_viable(1),
    }
}

/// `alter_keyspace = "ALTER" "KEYSPACE" if_exists keyspace_name "WITH" properties`
fn alter_keyspace(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_keyspace");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, name) = keyspace_name(input)?;
    let (input, ()) = expect(input, Kind::With)?;
    let (input, properties) = properties(input)?;
    Ok((
        input,
        Statement::AlterKeyspace(AlterKeyspace {
            name,
            if_exists,
            properties,
        }),
    ))
}

/// `alter_view = "ALTER" "MATERIALIZED" "VIEW" if_exists table_name "WITH" properties`
fn alter_view(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_view");
    let (input, ()) = expect(input.skip(2), Kind::View)?;
    let (input, if_exists) = super::if_exists(input)?;
    let (input, name) = table_name(input)?;
    let (input, ()) = expect(input, Kind::With)?;
    let (input, properties) = properties(input)?;
    let options = TableOptions {
        properties,
        ..TableOptions::default()
    };
    Ok((
        input,
        Statement::AlterView(AlterView {
            name,
            if_exists,
            options,
        }),
    ))
}

/// `alter_table = "ALTER" "TABLE" if_exists table_name ( alter_column | add_columns | drop_columns | rename_columns
/// | "WITH" properties )`
fn alter_table(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_table");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, table) = table_name(input)?;
    let (input, action) = match input.kind() {
        Kind::Alter => alter_column(input)?,
        Kind::Add => add_columns(input)?,
        Kind::Drop => drop_columns(input)?,
        Kind::Rename => rename_columns(input)?,
        Kind::With => super::map(properties(input.skip(1)), |properties| {
            AlterTableAction::Options(TableOptions {
                properties,
                ..TableOptions::default()
            })
        })?,
        _ => return input.no_viable(0),
    };
    Ok((
        input,
        Statement::AlterTable(AlterTable {
            table,
            if_exists,
            action,
        }),
    ))
}

/// `alter_column = "ALTER" ( column_name "TYPE" comparator_type | if_exists column_name ( column_mask | "DROP" "MASKED" ) )`
fn alter_column(input: Input<'_>) -> Parsed<'_, AlterTableAction> {
    enter("alter_column");
    let second = input.ahead(1);
    if second != Kind::If {
        if !is_column_name(second) {
            return input.no_viable(1);
        }
        if !matches!(input.ahead(2), Kind::Type | Kind::Masked | Kind::Drop) {
            return input.no_viable(2);
        }
    }
    let (input, if_exists) = super::if_exists(input.skip(1))?;
    let (input, column) = column_name(input)?;
    match input.kind() {
        Kind::Type if !if_exists => {
            let (input, column_type) = comparator_type(input.skip(1))?;
            Ok((
                input,
                AlterTableAction::AlterType {
                    if_exists,
                    column,
                    column_type,
                },
            ))
        }
        Kind::Masked => {
            let (input, mask) = column_mask(input)?;
            Ok((
                input,
                AlterTableAction::AlterMask {
                    if_exists,
                    column,
                    mask: Some(mask),
                },
            ))
        }
        Kind::Drop => {
            let (input, ()) = expect(input.skip(1), Kind::Masked)?;
            Ok((
                input,
                AlterTableAction::AlterMask {
                    if_exists,
                    column,
                    mask: None,
                },
            ))
        }
        _ => input.no_viable(0),
    }
}

/// `add_columns = "ADD" if_not_exists ( column_definition | "(" column_definition { "," column_definition } ")" )`
fn add_columns(input: Input<'_>) -> Parsed<'_, AlterTableAction> {
    enter("add_columns");
    let (input, if_not_exists) = super::if_not_exists(input.skip(1))?;
    let (input, columns) = one_or_more(input, column_definition)?;
    Ok((input, AlterTableAction::Add { if_not_exists, columns }))
}

/// One element, or several in parentheses.
fn one_or_more<'a, T>(input: Input<'a>, element: fn(Input<'a>) -> Parsed<'a, T>) -> Parsed<'a, Vec<T>> {
    if !input.is(Kind::ParenOpen) {
        return super::map(element(input), |one| vec![one]);
    }
    let (input, elements) = separated(input.skip(1), Kind::Comma, element)?;
    let (input, ()) = expect(input, Kind::ParenClose)?;
    Ok((input, elements))
}

/// `drop_columns = "DROP" ( "COMPACT" "STORAGE" | if_exists ( ident | "(" ident { "," ident } ")" ) [ "USING" "TIMESTAMP" INTEGER ] )`
fn drop_columns(input: Input<'_>) -> Parsed<'_, AlterTableAction> {
    enter("drop_columns");
    let second = input.ahead(1);
    if second != Kind::If && second != Kind::ParenOpen && !NameOf::Anything.allows(second) {
        return input.no_viable(1);
    }
    if second == Kind::Compact {
        match input.ahead(2) {
            Kind::Storage => return Ok((input.skip(3), AlterTableAction::DropCompactStorage)),
            Kind::Using | Kind::Semicolon | Kind::End => {}
            _ => return input.no_viable(2),
        }
    }
    let (input, if_exists) = super::if_exists(input.skip(1))?;
    let (input, columns) = one_or_more(input, ident)?;
    let (input, stamped) = given(input, Kind::Using);
    if !stamped {
        return Ok((
            input,
            AlterTableAction::Drop {
                if_exists,
                columns,
                timestamp: None,
            },
        ));
    }
    let (input, ()) = expect(input, Kind::Timestamp)?;
    let (rest, ()) = expect(input, Kind::Integer)?;
    let timestamp = Some(input.text().into_owned());
    Ok((
        rest,
        AlterTableAction::Drop {
            if_exists,
            columns,
            timestamp,
        },
    ))
}

/// `rename_columns = "RENAME" if_exists renaming { "AND" renaming }`
fn rename_columns(input: Input<'_>) -> Parsed<'_, AlterTableAction> {
    enter("rename_columns");
    let (input, if_exists) = super::if_exists(input.skip(1))?;
    let (input, renames) = separated(input, Kind::And, renaming)?;
    Ok((input, AlterTableAction::Rename { if_exists, renames }))
}

/// `renaming = ident "TO" ident`
fn renaming(input: Input<'_>) -> Parsed<'_, (Name, Name)> {
    enter("renaming");
    let (input, from) = ident(input)?;
    let (input, ()) = expect(input, Kind::To)?;
    let (input, to) = ident(input)?;
    Ok((input, (from, to)))
}

/// `alter_type = "ALTER" "TYPE" if_exists type_name ( "ALTER" ident "TYPE" comparator_type | "ADD" if_not_exists field
/// | "RENAME" if_exists renaming { "AND" renaming } )`
fn alter_type(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("alter_type");
    let (input, if_exists) = super::if_exists(input.skip(2))?;
    let (input, name) = type_name(input)?;
    let (input, action) = match input.kind() {
        Kind::Alter => {
            let (input, field) = ident(input.skip(1))?;
            let (input, ()) = expect_all(input, &[Kind::Type])?;
            let (input, field_type) = comparator_type(input)?;
            (
                input,
                AlterTypeAction::AlterField {
                    if_exists: false,
                    field,
                    field_type,
                },
            )
        }
        Kind::Add => {
            let (input, if_not_exists) = super::if_not_exists(input.skip(1))?;
            let (input, (field, field_type)) = super::create::field(input)?;
            (
                input,
                AlterTypeAction::Add {
                    if_not_exists,
                    field,
                    field_type,
                },
            )
        }
        Kind::Rename => {
            let (input, if_exists) = super::if_exists(input.skip(1))?;
            let (input, renames) = separated(input, Kind::And, renaming)?;
            (input, AlterTypeAction::Rename { if_exists, renames })
        }
        _ => return input.no_viable(0),
    };
    Ok((
        input,
        Statement::AlterType(AlterType {
            name,
            if_exists,
            action,
        }),
    ))
}
