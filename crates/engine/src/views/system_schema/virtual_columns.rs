//! `system_virtual_schema.columns`.

use super::super::view::{Rows, View};
use super::columns::columns;

pub(in crate::views) const VIEW: View = View {
    keyspace: "system_virtual_schema",
    name: "columns",
    own: None,
    rows: Rows::Of(|schema, asked| {
        asked.of_keyspaces(schema, true, |keyspace| {
            asked.tables(keyspace).into_iter().flat_map(columns).collect()
        })
    }),
};
