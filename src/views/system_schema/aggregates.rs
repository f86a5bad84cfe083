//! `system_schema.aggregates`: user aggregates.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::argument;
use crate::schema::Keyspace;
use crate::schema::encode::{text, text_list};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "aggregates",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, aggregates)),
};

fn aggregates(keyspace: &Keyspace) -> Vec<Cells> {
    keyspace
        .aggregates
        .iter()
        .map(|aggregate| {
            let types: Vec<String> = aggregate.arguments.iter().map(argument).collect();
            Cells::new()
                .set("keyspace_name", text(&keyspace.name))
                .set("aggregate_name", text(&aggregate.name))
                .set("argument_types", text_list(types.iter().map(String::as_str)))
                .set_if("final_func", aggregate.final_function.as_deref().map(text))
                .set_if("initcond", aggregate.initial_condition.as_deref().map(text))
                .set("return_type", text(&argument(&aggregate.returns)))
                .set("state_func", text(&aggregate.state_function))
                .set("state_type", text(&argument(&aggregate.state_type)))
        })
        .collect()
}
