//! `system.peers`: the other nodes, as drivers before protocol version 5 read them.

use super::super::cells::Cells;
use super::super::view::View;
use super::tokens::tokens;
use helenus_schema::schema::Schema;
use helenus_schema::schema::encode::{inet, text, uuid};
use helenus_schema::schema::node::{NodeInfo, Peer};

pub(super) const VIEW: View = View::of("system", "peers", |sources| {
    let peers = sources.node.peers.iter();
    peers.map(|of| peer(of, sources.node, sources.schema)).collect()
});

fn peer(peer: &Peer, node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("peer", inet(peer.address))
        .set("data_center", text(&peer.data_center))
        .set("host_id", uuid(peer.host_id))
        .set("preferred_ip", inet(peer.address))
        .set("rack", text(&peer.rack))
        .set("release_version", text(&node.release_version))
        .set("rpc_address", inet(peer.native_address))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&peer.tokens))
}
