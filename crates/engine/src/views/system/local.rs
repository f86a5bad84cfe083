//! `system.local`: this node.

use super::super::cells::Cells;
use super::super::view::View;
use super::tokens::tokens;
use helenus_schema::schema::Schema;
use helenus_schema::schema::encode::{inet, int, text, uuid};
use helenus_schema::schema::node::NodeInfo;

pub(super) const VIEW: View = View::of("system", "local", |sources| vec![local(sources.node, sources.schema)]);

fn local(node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("key", text("local"))
        .set("bootstrapped", text("COMPLETED"))
        .set("broadcast_address", inet(node.address))
        .set("broadcast_port", int(node.port.into()))
        .set("cluster_name", text(&node.cluster_name))
        .set("cql_version", text(&node.cql_version))
        .set("data_center", text(&node.data_center))
        .set("gossip_generation", int(node.generation))
        .set("host_id", uuid(node.host_id))
        .set("listen_address", inet(node.address))
        .set("listen_port", int(node.port.into()))
        .set("native_protocol_version", text(&node.native_protocol_version))
        .set("partitioner", text(&node.partitioner))
        .set("rack", text(&node.rack))
        .set("release_version", text(&node.release_version))
        .set("rpc_address", inet(node.native_address))
        .set("rpc_port", int(node.native_port.into()))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&node.tokens))
}
