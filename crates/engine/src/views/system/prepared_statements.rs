//! `system.prepared_statements`: what clients have prepared, and what no change of the schema has invalidated. Differs: with several virtual
//! nodes it lists the statements of all of them.

use bytes::Bytes;

use super::super::cells::Cells;
use super::super::live::PreparedText;
use super::super::view::View;
use helenus_schema::schema::encode::text;

pub(super) const VIEW: View = View::of("system", "prepared_statements", |sources| {
    sources.live.statements.iter().map(row).collect()
});

fn row(statement: &PreparedText) -> Cells {
    Cells::new()
        .set("prepared_id", Bytes::copy_from_slice(&statement.id))
        .set_if("logged_keyspace", statement.keyspace.as_deref().map(text))
        .set("query_string", text(&statement.text))
}
