//! `system_schema.keyspaces`.

use super::super::cells::Cells;
use super::super::view::{Rows, View};
use helenus_schema::schema::Keyspace;
use helenus_schema::schema::encode::{boolean, text, text_map};

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_schema",
    name: "keyspaces",
    own: None,
    rows: Rows::Of(|schema, asked| asked.of_keyspaces(schema, false, |keyspace| vec![row(keyspace)])),
};

fn row(keyspace: &Keyspace) -> Cells {
    Cells::new()
        .set("keyspace_name", text(&keyspace.name))
        .set("durable_writes", boolean(keyspace.durable_writes))
        .set("replication", text_map(&keyspace.replication))
}
