//! The cluster's nodes as the system tables show them. A plain value that the server makes at start.

use std::net::IpAddr;

use md5::{Digest, Md5};
use uuid::Uuid;

/// Another node of the cluster, as `system.peers` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address that other nodes use.
    pub address: IpAddr,
    /// The port between nodes.
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
    /// The address that other nodes use.
    pub address: IpAddr,
    /// The port between nodes.
    pub port: u16,
    /// The address that clients connect to.
    pub native_address: IpAddr,
    /// The port that clients connect to.
    pub native_port: u16,
    /// The Cassandra version that clients see.
    pub release_version: String,
    /// The CQL version.
    pub cql_version: String,
    /// The latest native protocol version.
    pub native_protocol_version: String,
    /// The partitioner's full class name.
    pub partitioner: String,
    /// The snitch's class name; DESCRIBE CLUSTER shows its last part.
    pub snitch: String,
    /// Its tokens on the ring.
    pub tokens: Vec<i64>,
    /// Seconds since 1970-01-01 UTC at which it started.
    pub generation: i32,
    /// The other nodes: first those of this process, then any others.
    pub peers: Vec<Peer>,
    /// The number of nodes that this process emulates, itself included: 1 to 6.
    pub virtual_nodes: usize,
}

impl NodeInfo {
    /// A single-node cluster at this address with all defaults: one token, and the version that clients support best.
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

    /// Derives the ids of the other nodes of this process from this node's id, so that they stay stable as long as it
    /// does.
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

    /// The cluster as another node of this process sees it (0 is this node): that node is local, and this one is among
    /// its peers.
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

    /// What Cosmos reports for a node whatever its settings: the Cassandra version measured there, and 64 evenly spaced
    /// tokens.
    ///
    /// Source: a published session of cqlsh with Azure Cosmos DB, whose tokens are `-2^63 + k * 283796062672454640`.
    pub fn as_cosmos(&mut self) {
        const STEP: i64 = 283_796_062_672_454_640;
        const COUNT: i64 = 64;
        "3.11.0".clone_into(&mut self.release_version);
        "3.4.4".clone_into(&mut self.cql_version);
        "4".clone_into(&mut self.native_protocol_version);
        // In Cosmos every region shows the same tokens, which breaks drivers that map tokens to nodes; here there is
        // one region.
        self.tokens = (1..=COUNT)
            .map(|k| i64::MIN.wrapping_add(k.wrapping_mul(STEP)))
            .collect();
    }

    /// The number of nodes in the data centre of this name.
    #[must_use]
    pub fn nodes_in(&self, data_center: &str) -> usize {
        usize::from(self.data_center == data_center)
            + self.peers.iter().filter(|peer| peer.data_center == data_center).count()
    }
}
