//! `system_schema.types`: user types.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use helenus_schema::schema::Keyspace;
use helenus_schema::schema::encode::{text, text_list};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "types",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, types)),
};

fn types(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .types
        .values()
        .map(|ty| {
            let types: Vec<String> = ty.fields.iter().map(|(_, field)| field.cql_name()).collect();
            Cells::new()
                .set("keyspace_name", text(&ty.keyspace))
                .set("type_name", text(&ty.name))
                .set(
                    "field_names",
                    text_list(ty.fields.iter().map(|(name, _)| name.as_str())),
                )
                .set("field_types", text_list(types.iter().map(String::as_str)))
        })
        .collect()
}
