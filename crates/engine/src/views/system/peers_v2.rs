//! `system.peers_v2`: the other nodes, with their ports.

use super::super::cells::Cells;
use super::super::view::View;
use super::tokens::tokens;
use helenus_schema::schema::Schema;
use helenus_schema::schema::encode::{inet, int, text, uuid};
use helenus_schema::schema::node::{NodeInfo, Peer};

pub(super) const VIEW: View = View::of("system", "peers_v2", |sources| {
    let peers = sources.node.peers.iter();
    peers.map(|of| peer_v2(of, sources.node, sources.schema)).collect()
});

fn peer_v2(peer: &Peer, node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("peer", inet(peer.address))
        .set("peer_port", int(peer.port.into()))
        .set("data_center", text(&peer.data_center))
        .set("host_id", uuid(peer.host_id))
        .set("native_address", inet(peer.native_address))
        .set("native_port", int(peer.native_port.into()))
        .set("preferred_ip", inet(peer.address))
        .set("preferred_port", int(peer.port.into()))
        .set("rack", text(&peer.rack))
        .set("release_version", text(&node.release_version))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&peer.tokens))
}
