//! `system_schema.functions`: user functions.

use std::sync::Arc;

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::argument;
use helenus_schema::schema::encode::{boolean, text, text_list};
use helenus_schema::schema::{Keyspace, UserFunction};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "functions",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, functions)),
};

fn functions(keyspace: &Keyspace) -> Vec<Cells> {
    let with_types = |function: &Arc<UserFunction>| -> (Arc<UserFunction>, Vec<String>) {
        (
            Arc::clone(function),
            function.arguments.iter().map(|(_, ty)| argument(ty)).collect(),
        )
    };
    let mut sorted: Vec<_> = keyspace.functions.iter().map(with_types).collect();
    sorted.sort_by(|(one, types), (other, of_other)| (&one.name, types).cmp(&(&other.name, of_other)));
    sorted
        .into_iter()
        .map(|(function, types)| {
            Cells::new()
                .set("keyspace_name", text(&keyspace.name))
                .set("function_name", text(&function.name))
                .set("argument_types", text_list(types.iter().map(String::as_str)))
                .set(
                    "argument_names",
                    text_list(function.arguments.iter().map(|(name, _)| name.as_str())),
                )
                .set("body", text(&function.body))
                .set("called_on_null_input", boolean(function.called_on_null_input))
                .set("language", text(&function.language))
                .set("return_type", text(&argument(&function.returns)))
        })
        .collect()
}
