//! `system_schema.column_masks`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::named;
use helenus_schema::schema::encode::{boolean, list, text, text_list};
use helenus_schema::schema::{Column, Keyspace, Table};
use helenus_types::types::{CqlType, Native};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "column_masks",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            let tables = asked.tables_and_views(keyspace).into_iter();
            tables.flat_map(|table| masks(keyspace, table)).collect()
        })
    }),
};

fn masks(keyspace: &Keyspace, table: &Table) -> Vec<Cells> {
    let mut masked: Vec<_> = table.columns.iter().filter(|column| column.mask.is_some()).collect();
    masked.sort_by(|a, b| a.name.cmp(&b.name));
    masked
        .into_iter()
        .filter_map(|column| {
            let (function_keyspace, name) = column.mask_function()?;
            let arguments = column.mask_arguments();
            let is_null = |literal: &str| literal.eq_ignore_ascii_case("null");
            let nulls: Vec<_> = arguments.iter().map(|(_, literal)| boolean(is_null(literal))).collect();
            let own = users_types(keyspace, &name, &arguments);
            let types: Vec<CqlType> = (0..arguments.len())
                .map(|place| {
                    let own = own.as_ref().and_then(|own| own.get(place));
                    own.cloned().unwrap_or_else(|| argument_type(&name, place, column))
                })
                .collect();
            let values: Vec<String> = arguments
                .iter()
                .zip(&types)
                .map(|((_, literal), ty)| match ty.parse_literal(literal) {
                    Ok(Some(bytes)) => ty.to_text(&bytes),
                    _ => String::new(),
                })
                .collect();
            let types: Vec<String> = types.iter().map(CqlType::cql_name).collect();
            Some(
                named(table)
                    .set("column_name", text(&column.name))
                    .set("function_argument_nulls", list(&nulls))
                    .set("function_argument_types", text_list(types.iter().map(String::as_str)))
                    .set("function_argument_values", text_list(values.iter().map(String::as_str)))
                    .set("function_keyspace", text(&function_keyspace))
                    .set("function_name", text(&name)),
            )
        })
        .collect()
}

/// The types of the arguments after the column of a user's function; `None` if it is not one.
fn users_types(keyspace: &Keyspace, name: &str, arguments: &[(Option<&str>, &str)]) -> Option<Vec<CqlType>> {
    let written: Vec<&str> = arguments.iter().map(|(ty, _)| *ty).collect::<Option<_>>()?;
    let found = keyspace.functions.iter().find_map(|function| {
        let (_, others) = function.arguments.split_first()?;
        let others: Vec<CqlType> = others.iter().map(|(_, ty)| ty.clone()).collect();
        let names: Vec<String> = others.iter().map(|ty| ty.unfrozen().cql_name()).collect();
        (function.name == name && names == written).then_some(others)
    });
    found.filter(|types| !types.is_empty())
}

/// The type of an argument of a built-in masking function after the column.
fn argument_type(function: &str, place: usize, column: &Column) -> CqlType {
    match (function, place) {
        ("mask_inner" | "mask_outer", 0 | 1) => CqlType::Native(Native::Int),
        ("mask_replace", _) => column.ty.clone(),
        _ => CqlType::Native(Native::Text),
    }
}
