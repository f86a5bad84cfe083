//! A node of a fleet: several servers over one bucket, of which one owns all stores. The others are edges: they follow its catalog and
//! ask it.
//!
//! ```text
//! role       opens the stores if nobody has the lease, or follows whoever has it; again when that changes
//! owning     what the owner answers: messages of commands, relayed requests, followers
//! following  what an edge knows: the catalog that it has applied, and until when it may answer
//! living     which nodes are up, and which have seats in replica sets
//! link       asks the owner, wherever it is now: waits for one, and sends again only what may be
//! messages   the bytes between them
//! secrets    the secret by which nodes know each other, which can be changed while they run
//! ```
//! Every node serves clients as an edge. The owner does so too, and asks itself without a socket: a failover changes whom edges ask, and
//! nothing else.
//!
//! **Who may answer.** An edge answers only if at most 2 s ago it *sent* a question that the owner answered with a catalog that the edge has
//! applied (`fleet::right`). The owner acknowledges a change of the schema or of roles when each edge has applied it, or when 2.07 s
//! have passed since its last answer to that edge. A new owner waits as long after it has begun. So a statement that
//! begins after the acknowledgement sees the change, on every node.
//!
//! **Levels.** The owner refuses a level by the nodes that have seats and are up (`living`). It can, since every command and every relayed
//! request comes to it.
//!
//! Deliberately absent: what a lease is, and who gets it (`storage::bucket`).

mod following;
mod link;
mod living;
mod messages;
mod owning;
mod role;
mod secrets;
#[cfg(test)]
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use helenus_base::clock::Clock;
use helenus_base::tasks::Tasks;
use helenus_cql::cql::Database;
use helenus_engine::engine::{self, Elsewhere};
use helenus_fleet::fleet::{Endpoint, Formats, Identity, Nonces, PeerName, Settings, Tcp, Tls};
use md5::{Digest, Md5};
use tokio::net::TcpListener;

use self::following::Following;
use self::link::Link;
use self::messages::Agreed;
pub(super) use self::messages::Node;
use self::role::Role;
pub use self::secrets::{KNOWN_WITHIN as FLEET_SECRET_KNOWN_WITHIN, change as change_fleet_secret};
use super::opening::RunError;
use crate::config::{Config, FleetOptions};
use crate::server::identity::IdentityError;
use crate::server::{Events, Relay};

/// The version of the messages between nodes.
const FORMAT: u32 = 3;

/// A node of a fleet, before it serves clients.
pub(super) struct Fleet {
    following: Arc<Following>,
    link: Arc<Link>,
    role: Role,
    endpoint: Endpoint,
    tasks: Tasks,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Fleet").finish_non_exhaustive()
    }
}

/// What the owner side of a node is opened with.
#[derive(Clone)]
pub(super) struct OwnerOptions {
    pub(super) config: Arc<Config>,
    pub(super) engine: engine::Options,
    pub(super) clock: Clock,
}

impl Fleet {
    /// Joins the fleet of a bucket: opens its stores, or finds the node that has them open. `node` is as clients see this one.
    ///
    /// # Errors
    /// The address for other nodes cannot be bound, or the bucket cannot be used.
    pub(super) async fn join(options: &FleetOptions, owner: OwnerOptions, mut node: Node) -> Result<Self, RunError> {
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|source| RunError::Fleet {
            address: options.listen,
            source,
        })?;
        let address = listener.local_addr().unwrap_or(options.listen);
        node.fleet_address = address.to_string();
        let mut owner = owner;
        let reach = Arc::make_mut(&mut owner.engine.store.reach);
        reach.name.clone_from(&options.name);
        reach.address = address.to_string();
        let (first, cluster) = role::first_opening(&owner).await?;
        let secrets = secrets::read(&owner).await?;
        let link = Arc::new(Link::new());
        let following = Arc::new(Following::new(
            Arc::clone(&link),
            node,
            Agreed::of(&owner.config),
            owner.clock.clone(),
            incarnation()?,
        ));
        let tcp = Tcp::new(Tls::of(&secrets)?);
        let endpoint = Endpoint::new(
            Identity {
                name: PeerName::from(options.name.clone()),
                cluster,
                formats: Formats {
                    oldest: FORMAT,
                    newest: FORMAT,
                },
            },
            secrets.clone(),
            Settings::default(),
            Arc::clone(&tcp) as _,
            Arc::clone(&link) as _,
            nonces(),
        );
        tcp.listen(&endpoint, listener);
        link.set_transport(Arc::new(endpoint.clone()));
        let tasks = Tasks::default();
        secrets::follow(&tasks, owner.clone(), endpoint.clone(), tcp, secrets);
        let role = Role::begin(owner, first, Arc::clone(&link), Arc::clone(&following));
        Ok(Self {
            following,
            link,
            role,
            endpoint,
            tasks,
        })
    }

    /// What the edge of this node shares with its owner, once that is known.
    ///
    /// # Errors
    /// No owner answers.
    pub(super) async fn elsewhere(&self) -> Result<Elsewhere, RunError> {
        let paging_key = self.following.first_contact().await?;
        let mut hash = Md5::new();
        hash.update(paging_key);
        hash.update(self.following.name().as_bytes());
        let host_id = uuid::Builder::from_md5_bytes(hash.finalize().into()).into_uuid();
        self.following.set_host_id(host_id);
        Ok(Elsewhere {
            carrier: Arc::clone(&self.link) as _,
            host_id,
            paging_key,
        })
    }

    /// Follows the owner's catalog with this database from now on. Returns when it has been applied once.
    ///
    /// # Errors
    /// No owner answers.
    pub(super) async fn follow(&self, database: &Arc<Database>, events: &Arc<Events>) -> Result<(), RunError> {
        self.following.begin(database, events).await
    }

    /// What requests that only the owner can carry out are sent by.
    pub(super) fn relay(&self) -> Arc<dyn Relay> {
        Arc::clone(&self.following) as _
    }

    /// Leaves: closes the stores, if they are open here, so that the next node need not wait for the lease.
    ///
    /// # Errors
    /// The medium fails.
    pub(super) async fn leave(self, within: Duration) -> Result<(), engine::Error> {
        self.tasks.begin_stop();
        let closed = self.role.end(within).await;
        self.following.end();
        self.endpoint.close().await;
        self.tasks.join(within).await;
        closed
    }
}

/// 32 random bytes.
fn drawn() -> Result<[u8; 32], RunError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(IdentityError::Randomness)?;
    Ok(bytes)
}

/// A number that tells this start of the node from others.
fn incarnation() -> Result<u64, RunError> {
    let drawn = drawn()?;
    let bytes = drawn.first_chunk::<8>().copied().unwrap_or_default();
    Ok(u64::from_be_bytes(bytes))
}

/// Random values for handshakes, from the system.
fn nonces() -> Nonces {
    Arc::new(|| {
        let mut nonce = [0; 32];
        // A system without randomness has refused the secret before.
        let _ = getrandom::fill(&mut nonce);
        nonce
    })
}
