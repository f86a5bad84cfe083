//! `system_schema.aggregates`: user aggregates.

use std::sync::Arc;

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use super::shared::argument;
use helenus_schema::schema::encode::{text, text_list};
use helenus_schema::schema::{Keyspace, UserAggregate};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "aggregates",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, aggregates)),
};

fn aggregates(keyspace: &Keyspace) -> Vec<Cells> {
    let with_types = |aggregate: &Arc<UserAggregate>| -> (Arc<UserAggregate>, Vec<String>) {
        (
            Arc::clone(aggregate),
            aggregate.arguments.iter().map(argument).collect(),
        )
    };
    let mut sorted: Vec<_> = keyspace.aggregates.iter().map(with_types).collect();
    sorted.sort_by(|(one, types), (other, of_other)| (&one.name, types).cmp(&(&other.name, of_other)));
    sorted
        .into_iter()
        .map(|(aggregate, types)| {
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
