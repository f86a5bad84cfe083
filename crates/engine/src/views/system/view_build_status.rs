//! `system_distributed.view_build_status`: how far each node is with each materialized view.
//!
//! In Cassandra every node builds its own share and writes its own row. Here one build serves all nodes, so all rows of a view
//! have the same status. A dropped view has no rows.
//!
//! Source: Cassandra's `BuildStatus`; the rows of Apache Cassandra 5.0.9.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use helenus_schema::schema::encode::{text, uuid};
use helenus_schema::schema::system::{DISTRIBUTED, VIEW_BUILD_STATUS};

pub(super) const VIEW: View = View::of(DISTRIBUTED, VIEW_BUILD_STATUS, statuses);

fn statuses(sources: Sources<'_>) -> Vec<Cells> {
    let keyspaces = sources.schema.keyspaces.values();
    let views = keyspaces.flat_map(|keyspace| keyspace.views.values());
    let is_built = |id| sources.figures.is_none_or(|figures| figures.is_built(id));
    let node = sources.node;
    let mut host_ids: Vec<_> = node.peers.iter().map(|peer| peer.host_id).collect();
    host_ids.push(node.host_id);
    // In clustering order: Cassandra's `UUIDType` compares the versions first.
    host_ids.sort_unstable_by_key(|id| (id.get_version_num(), *id));
    let rows = views.flat_map(|view| {
        let status = if is_built(view.table.storage_id) {
            "SUCCESS"
        } else {
            "STARTED"
        };
        host_ids.iter().map(move |host_id| {
            Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("host_id", uuid(*host_id))
                .set("status", text(status))
        })
    });
    rows.collect()
}
