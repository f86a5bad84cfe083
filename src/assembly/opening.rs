//! Opening the data that the settings name: to serve it, alone for a verb, to restore into it, or to look at it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::config::Config;
use crate::server::StartError;
use crate::server::audit::AuditError;
use crate::server::identity::IdentityError;
use crate::server::node_address;
use helenus_base::clock::Clock;
use helenus_cql::cql::{self, Database};
use helenus_engine::engine::{self, IndexCheck};
use helenus_engine::partition::faults::PlanError;
use helenus_engine::partition::nodes;
use helenus_engine::views::Tables;
use helenus_fleet::fleet::TlsError;
use helenus_schema::schema::node::{NodeInfo, Peer};
use helenus_storage::storage as store;

/// The directory of a data URL. `None` means it names none, or is invalid.
#[must_use]
pub fn data_directory(url: &str) -> Option<std::path::PathBuf> {
    let url: store::Url = url.parse().ok()?;
    url.directory().map(Path::to_owned)
}

/// Whether data at a URL outlives the process.
#[must_use]
pub fn is_durable(url: &str) -> bool {
    url.parse::<store::Url>().is_ok_and(|url| url.is_durable())
}

/// Checks whether a bucket has the guarantees that a database relies on.
///
/// # Errors
/// The URL names no bucket, or the bucket cannot be reached.
pub async fn check_bucket(url: &str, config: &Config, seed: u64) -> Result<store::bucket::Checked, RunError> {
    let reach = store::bucket::Reach {
        draw: seed,
        ..config.reach.clone()
    };
    Ok(store::bucket::check(&bucket_of(url)?, &reach).await?)
}

/// The URL of a bucket.
pub(super) fn bucket_of(url: &str) -> Result<store::Url, store::Error> {
    url.parse().map_err(|error| match error {
        store::Error::UnknownScheme { url } => store::Error::NoBucket { url },
        error => error,
    })
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The data URL or the durability is invalid.
    #[error(transparent)]
    Setting(#[from] store::Error),
    /// The data cannot be opened.
    #[error("cannot open {}", with_url(url, source))]
    Open {
        /// The location of the data.
        url: String,
        /// The cause.
        source: Box<cql::Error>,
    },
    /// The identity of the profile `cosmos` cannot be generated or stored.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The addresses cannot be served.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The audit log cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The address for other nodes cannot be bound.
    #[error("fleet-listen: {address} cannot be bound: {source}")]
    Fleet {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Connections between nodes cannot be encrypted.
    #[error(transparent)]
    FleetTls(#[from] TlsError),
    /// No node owns the stores of the fleet: why.
    #[error("no node owns the stores of the fleet: {0}")]
    NoOwner(String),
    /// This node cannot be one of the fleet: why.
    #[error("this node does not join the fleet: {0}")]
    NotJoined(String),
    /// The fault plan contradicts other settings.
    #[error("fault-plan: {0}")]
    Faults(#[from] PlanError),
}

/// A cause with the location of the data, unless it begins with it, and what to do about damage.
fn with_url(url: &str, cause: &cql::Error) -> String {
    let advice = match cause.is_damage() {
        true if url.starts_with("file:") || url.starts_with("slate+file:") => {
            "; restore a backup, or make one of what can be read with `helenus salvage`"
        }
        true => "; restore a backup",
        false => "",
    };
    let cause = cause.to_string();
    if cause.starts_with(url) {
        format!("{cause}{advice}")
    } else {
        format!("{url}: {cause}{advice}")
    }
}

/// This server's name in the messages of another server that requests the same bucket.
fn server_name() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = "a machine";
    format!("{machine} (process {})", std::process::id())
}

/// The configured addresses of this server.
fn listening(config: &Config) -> String {
    let addresses = config.server.listen.iter().map(ToString::to_string);
    addresses.collect::<Vec<_>>().join(", ")
}

/// The options by which the data is opened, according to the settings.
pub(super) fn engine_options(
    config: &Config,
    url: store::Url,
    durability: store::Durability,
    node: NodeInfo,
    clock: Clock,
    seed: u64,
) -> engine::Options {
    engine::Options {
        store: store::Options {
            durability,
            row_cache_bytes_max: config.row_cache_bytes_max,
            // One store is the main one.
            draw: seed,
            profile: Some(asked_profile(config)),
            data_stores: config.stores.map(|stores| if stores > 1 { stores.into() } else { 0 }),
            stores_beside_max: config.stores_max,
            disk_reserve_bytes: config.disk_reserve_bytes,
            create: config.create,
            key_filter_bytes_max: config.key_filter_bytes_max,
            block_cache_bytes_max: config.block_cache_bytes_max,
            memtable_bytes_max: config.memtable_bytes_max,
            reach: Arc::new(store::bucket::Reach {
                draw: seed,
                name: server_name(),
                address: listening(config),
                ..config.reach.clone()
            }),
            bucket_cache: config.bucket_cache.clone(),
            bucket_removal_delay: config.bucket_removal_delay,
            ..store::Options::default()
        },
        url,
        clock,
        seed,
        node,
        page_bytes_max: config.page_bytes_max,
        guardrails: config.guardrails.clone(),
        prices: config.prices,
        limits: config.limits,
        call_limits: config.call_limits,
        clock_rules: config.clock_rules,
        request_log_max: config.request_log_max,
        count_at_once_rows_max: helenus_engine::engine::Options::COUNT_AT_ONCE_ROWS_MAX,
        profile: config.profile,
        throughput: config.throughput,
        account: config.account,
        virtual_tables: Arc::new(Tables::default()),
        mask_calls: helenus_schema::planner::mask_calls,
        elsewhere: None,
    }
}

/// The profile that the data must have been written with.
pub(super) const fn asked_profile(config: &Config) -> store::AskedProfile {
    store::AskedProfile {
        name: config.profile.name(),
        is_change_allowed: config.change_profile,
    }
}

/// Refuses data that was written with another profile, without opening it.
pub(super) fn check_profile(config: &Config) -> Result<(), RunError> {
    Ok(store::check_profile(&config.data.parse()?, asked_profile(config))?)
}

/// Opens the data according to the settings.
async fn open(
    config: &Config,
    url: store::Url,
    durability: store::Durability,
    node: NodeInfo,
    clock: Clock,
    seed: u64,
) -> Result<Database, RunError> {
    open_with(config, engine_options(config, url, durability, node, clock, seed)).await
}

pub(super) async fn open_with(config: &Config, options: engine::Options) -> Result<Database, RunError> {
    Database::open(options).await.map_err(|source| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source.into()),
    })
}

/// The data that the settings name, and its durability.
pub(super) fn located(config: &Config) -> Result<(store::Url, store::Durability), RunError> {
    Ok((config.data.parse()?, config.durability.parse()?))
}

/// Opens data that no server has open, to write to it.
pub(super) async fn open_alone(config: &Config, clock: Clock, seed: u64) -> Result<Database, RunError> {
    let (url, durability) = located(config)?;
    let node = node(config, None, &clock);
    open(config, url, durability, node, clock, seed).await
}

/// The directory of the data. `None` means it is in memory.
pub(super) fn directory(config: &Config) -> Result<Option<PathBuf>, RunError> {
    let url: store::Url = config.data.parse()?;
    Ok(url.directory().map(Path::to_owned))
}

/// Whether the data is in a bucket.
///
/// # Errors
/// The settings name no data.
pub fn is_in_bucket(config: &Config) -> Result<bool, RunError> {
    Ok(matches!(config.data.parse()?, store::Url::Bucket(_)))
}

/// The folder of the socket for operators. `None` means that there is none.
pub(super) fn operator_folder(config: &Config) -> Result<Option<PathBuf>, RunError> {
    let url: store::Url = config.data.parse()?;
    // Named after the data, so that an operator never asks the server of other data.
    let of_bucket = |folder: &PathBuf| folder.join(url.to_string().replace('/', "%2F"));
    Ok(match &url {
        store::Url::Bucket(_) => config.operator_folder.as_ref().map(of_bucket),
        url => url.directory().map(Path::to_owned),
    })
}

/// Whether there is a database in the bucket.
pub(super) async fn is_used_bucket(config: &Config, seed: u64) -> Result<bool, RunError> {
    Ok(store::bucket::is_there(&config.data.parse()?, &reach(config, seed)).await?)
}

/// How the bucket is reached.
fn reach(config: &Config, seed: u64) -> store::bucket::Reach {
    store::bucket::Reach {
        draw: seed,
        ..config.reach.clone()
    }
}

/// A place that is being restored into. Others refuse it by name until that has ended.
pub(super) enum Restoring {
    Directory(store::Restoring),
    Prefix,
}

impl Restoring {
    /// Opens the place to others. Its database must be whole, and closed.
    pub(super) async fn end(self, config: &Config, seed: u64) -> Result<(), RunError> {
        match self {
            Self::Directory(restoring) => Ok(restoring.end()?),
            Self::Prefix => Ok(store::bucket::end_restore(&config.data.parse()?, &reach(config, seed)).await?),
        }
    }
}

/// Creates a database to restore into, in an empty directory or below a new prefix of a bucket. All writes are durable
/// once it is closed.
pub(super) async fn open_to_restore(
    config: &Config,
    clock: Clock,
    seed: u64,
) -> Result<(Database, Restoring), RunError> {
    let url: store::Url = config.data.parse()?;
    let (restoring, durability) = match url.directory() {
        Some(directory) => (
            Restoring::Directory(store::Restoring::begin(directory)?),
            store::Durability::Os,
        ),
        None => (Restoring::Prefix, config.durability.parse()?),
    };
    let node = node(config, None, &clock);
    let mut options = engine_options(config, url, durability, node, clock, seed);
    options.store.is_restored_into = true;
    Ok((open_with(config, options).await?, restoring))
}

/// Opens the data for reading while no server uses it; the store's own files stay unchanged. The [`Look`](store::Look)
/// must outlive the database.
pub(super) async fn open_unserved(
    config: &Config,
    clock: Clock,
    seed: u64,
) -> Result<(Database, store::Look), RunError> {
    let (url, durability) = located(config)?;
    let node = node(config, None, &clock);
    let look = store::Look::at(&url, Some(asked_profile(config)))?;
    let mut options = engine_options(config, look.url().clone(), durability, node, clock, seed);
    options.store.checks_whole_tables = true;
    Ok((open_with(config, options).await?, look))
}

/// Opens the data without serving it, and compares the entries of its indexes with their rows.
///
/// # Errors
/// The data cannot be opened or read.
pub async fn check_indexes(config: &Config, clock: Clock, seed: u64) -> Result<IndexCheck, RunError> {
    let (database, look) = open_unserved(config, clock, seed).await?;
    let failed = |source: engine::Error| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source.into()),
    };
    let found = database.engine().upkeep().check_indexes().await.map_err(failed)?;
    database.close().await.map_err(failed)?;
    drop(look);
    Ok(found)
}

/// This node as the system tables show it.
pub(super) fn node(config: &Config, listening: Option<SocketAddr>, clock: &Clock) -> NodeInfo {
    let listening = listening.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 9042)));
    let address = config.broadcast_address.unwrap_or_else(|| reachable(listening.ip()));
    let mut node = NodeInfo::single(Uuid::nil(), address, listening.port());
    node.cluster_name.clone_from(&config.cluster_name);
    node.data_center.clone_from(&config.data_center);
    node.rack.clone_from(&config.rack);
    if config.profile.is_cosmos() {
        node.as_cosmos();
    }
    node.generation = i32::try_from(clock.wall_seconds()).unwrap_or(i32::MAX);
    if config.server.nodes > 1 {
        node.virtual_nodes = config.server.nodes;
        node.tokens = nodes::tokens(0, config.server.nodes);
        node.peers = (1..config.server.nodes)
            .filter_map(|number| {
                let address = node_address(listening, number)?;
                Some(Peer {
                    address: address.ip(),
                    port: node.port,
                    native_address: address.ip(),
                    native_port: address.port(),
                    // The database sets it when its own id is known.
                    host_id: Uuid::nil(),
                    data_center: node.data_center.clone(),
                    rack: node.rack.clone(),
                    tokens: nodes::tokens(number, config.server.nodes),
                })
            })
            .collect();
    }
    node
}

/// An address to which clients can connect; they must never receive 0.0.0.0.
fn reachable(listening: IpAddr) -> IpAddr {
    if !listening.is_unspecified() {
        return listening;
    }
    // Connecting a datagram socket sends nothing; it only selects the source address of packets to there.
    let probe = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    };
    match probe() {
        Ok(local) if !local.ip().is_unspecified() => local.ip(),
        Ok(_) | Err(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
    }
}
