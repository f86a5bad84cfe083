//! The nodes of the cluster, as the system tables show them. A plain value, made by the server at start.

use std::net::IpAddr;

use md5::{Digest, Md5};
use uuid::Uuid;

/// Another node of the cluster, as `system.peers` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address that nodes know it by.
    pub address: IpAddr,
    /// Its port among nodes.
    pub port: u16,
    /// The address that clients connect to.
    pub native_address: IpAddr,
    /// The port that clients connect to.
    pub native_port: u16,
    /// Its identity.
    pub host_id: Uuid,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its tokens on the ring; no two nodes share one.
    pub tokens: Vec<i64>,
}

/// This node, as `system.local` shows it, and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// The cluster's name.
    pub cluster_name: String,
    /// Its data centre.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its identity; stays the same over restarts.
    pub host_id: Uuid,
    /// The address that nodes know it by.
    pub address: IpAddr,
    /// Its port among nodes.
    pub port: u16,
    /// The address that clients connect to.
    pub native_address: IpAddr,
    /// The port that clients connect to.
    pub native_port: u16,
    /// Which Cassandra clients shall take it for.
    pub release_version: String,
    /// Of CQL.
    pub cql_version: String,
    /// The latest native protocol version.
    pub native_protocol_version: String,
    /// Full class name.
    pub partitioner: String,
    /// Short class name, which DESCRIBE CLUSTER shows.
    pub snitch: String,
    /// Its tokens on the ring.
    pub tokens: Vec<i64>,
    /// Seconds since 1970-01-01 UTC at which it started.
    pub generation: i32,
    /// The other nodes: first those of this process, then any others.
    pub peers: Vec<Peer>,
    /// How many nodes this process plays, itself included: 1 or 4.
    pub virtual_nodes: usize,
}

impl NodeInfo {
    /// A cluster of one node at this address, with all defaults: one token, and the version that clients know best.
    ///
    /// Differs: release_version is 5.0.0 though we follow 5.0.9, since it is the one value for which cqlsh prints no warning.
    #[must_use]
    pub fn single(host_id: Uuid, address: IpAddr, native_port: u16) -> Self {
        Self {
            cluster_name: "Test Cluster".to_owned(),
            data_center: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            host_id,
            address,
            port: 7000,
            native_address: address,
            native_port,
            release_version: "5.0.0".to_owned(),
            cql_version: "3.4.7".to_owned(),
            native_protocol_version: "5".to_owned(),
            partitioner: "org.apache.cassandra.dht.Murmur3Partitioner".to_owned(),
            snitch: "DynamicEndpointSnitch".to_owned(),
            tokens: vec![0],
            generation: 0,
            peers: Vec::new(),
            virtual_nodes: 1,
        }
    }

    /// Gives the other nodes of this process identities that follow from this one's, so that they stay the same as long as it does.
    pub fn name_virtual_nodes(&mut self) {
        let own = self.host_id;
        let others = self.virtual_nodes.saturating_sub(1);
        for (peer, number) in self.peers.iter_mut().take(others).zip(2_u8..) {
            let mut hash = Md5::new();
            hash.update(own.as_bytes());
            hash.update([number]);
            peer.host_id = uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid();
        }
    }

    /// The cluster as another node of this process sees it, from 0, which is this one: itself first, this one among its peers.
    #[must_use]
    pub fn seen_from(&self, node: usize) -> Self {
        let mut seen = self.clone();
        let Some(peer) = node.checked_sub(1).and_then(|place| seen.peers.get_mut(place)) else {
            return seen;
        };
        let itself = std::mem::replace(
            peer,
            Peer {
                address: self.address,
                port: self.port,
                native_address: self.native_address,
                native_port: self.native_port,
                host_id: self.host_id,
                data_center: self.data_center.clone(),
                rack: self.rack.clone(),
                tokens: self.tokens.clone(),
            },
        );
        seen.address = itself.address;
        seen.port = itself.port;
        seen.native_address = itself.native_address;
        seen.native_port = itself.native_port;
        seen.host_id = itself.host_id;
        seen.data_center = itself.data_center;
        seen.rack = itself.rack;
        seen.tokens = itself.tokens;
        seen
    }

    /// What Cosmos tells of a node whatever its settings: the Cassandra that it was measured against, and 64 tokens apart from each
    /// other alike.
    ///
    /// Source: a published session of cqlsh with Azure Cosmos DB, whose tokens are `-2^63 + k * 283796062672454640`.
    pub fn as_cosmos(&mut self) {
        const STEP: i64 = 283_796_062_672_454_640;
        const COUNT: i64 = 64;
        "3.11.0".clone_into(&mut self.release_version);
        "3.4.4".clone_into(&mut self.cql_version);
        "4".clone_into(&mut self.native_protocol_version);
        // Every region shows the same tokens there, which takes drivers down that map tokens to nodes; here there is one.
        self.tokens = (1..=COUNT)
            .map(|k| i64::MIN.wrapping_add(k.wrapping_mul(STEP)))
            .collect();
    }

    /// How many nodes the data centre of this name has.
    #[must_use]
    pub fn nodes_in(&self, data_center: &str) -> usize {
        usize::from(self.data_center == data_center)
            + self.peers.iter().filter(|peer| peer.data_center == data_center).count()
    }
}
