//! `system_schema.triggers`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use std::collections::BTreeMap;

use super::shared::named;
use helenus_schema::schema::Table;
use helenus_schema::schema::encode::{text, text_map};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "triggers",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, false, |keyspace| {
            asked.tables(keyspace).into_iter().flat_map(triggers).collect()
        })
    }),
};

fn triggers(table: &Table) -> Vec<Cells> {
    table
        .triggers
        .iter()
        .map(|(name, class)| {
            let options = BTreeMap::from([("class".to_owned(), class.clone())]);
            named(table)
                .set("trigger_name", text(name))
                .set("options", text_map(&options))
        })
        .collect()
}
