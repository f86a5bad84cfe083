//! `system_schema.column_masks`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::named;
use crate::schema::encode::{boolean, list, text, text_list};
use crate::schema::{Column, Table};
use crate::types::{CqlType, Native};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "column_masks",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables_and_views(keyspace).into_iter().flat_map(masks).collect()
        })
    }),
};

fn masks(table: &Table) -> Vec<Cells> {
    let mut masked: Vec<_> = table.columns.iter().filter(|column| column.mask.is_some()).collect();
    masked.sort_by(|a, b| a.name.cmp(&b.name));
    masked
        .into_iter()
        .filter_map(|column| {
            let (function, arguments) = column.mask.as_ref()?;
            let (keyspace, name) = function.split_once('.').unwrap_or(("system", function));
            let is_null = |argument: &&String| argument.eq_ignore_ascii_case("null");
            let nulls: Vec<_> = arguments.iter().map(|argument| boolean(is_null(&argument))).collect();
            let types: Vec<String> = (0..arguments.len())
                .map(|place| argument_type(name, place, column).cql_name())
                .collect();
            let values: Vec<String> = arguments
                .iter()
                .enumerate()
                .map(
                    |(place, argument)| match argument_type(name, place, column).parse_literal(argument) {
                        Ok(Some(bytes)) => argument_type(name, place, column).to_text(&bytes),
                        _ => String::new(),
                    },
                )
                .collect();
            Some(
                named(table)
                    .set("column_name", text(&column.name))
                    .set("function_argument_nulls", list(&nulls))
                    .set("function_argument_types", text_list(types.iter().map(String::as_str)))
                    .set("function_argument_values", text_list(values.iter().map(String::as_str)))
                    .set("function_keyspace", text(keyspace))
                    .set("function_name", text(name)),
            )
        })
        .collect()
}

/// The type of an argument of a masking function after the column.
fn argument_type(function: &str, place: usize, column: &Column) -> CqlType {
    match (function, place) {
        ("mask_inner" | "mask_outer", 0 | 1) => CqlType::Native(Native::Int),
        ("mask_replace", _) => column.ty.clone(),
        _ => CqlType::Native(Native::Text),
    }
}
