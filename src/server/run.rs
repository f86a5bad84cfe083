//! From settings to a running server: the only place where the parts are assembled.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::admin::logins::{Gate, Logins};
use super::admin::{self, Admin, AdminBound, Source};
use super::audit::{Audit, AuditError};
use super::identity::{self, Identity, IdentityError};
use super::listener::node_address;
use super::requests::emit_schema_changes;
use super::{Bound, Certificates, Events, Requests, Server, Session, StartError, jobs, operator, roles};
use crate::clock::Clock;
use crate::config::Config;
use crate::cql::{self, Database};
use crate::engine::{self, IndexCheck};
use crate::memory::Resident;
use crate::partition::faults::PlanError;
use crate::partition::{nodes, store};
use crate::permissions;
use crate::profile::Profile;
use crate::schema::node::{NodeInfo, Peer};
use crate::views::live::{Client, Facts, Live};
use crate::views::{LiveSource, Tables};

/// Interval of the check whether data can still be read.
const LOST_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Stack of each runtime thread: expressions and types nest as deep as the grammar allows, and are parsed, planned,
/// computed and freed by recursion. A debug build takes some 20 KiB per level.
pub const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024;

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
    let url = url.parse().map_err(|error| match error {
        store::Error::UnknownScheme { url } => store::Error::NoBucket { url },
        error => error,
    })?;
    Ok(store::bucket::check(&url, &reach).await?)
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

/// A server and its database.
#[derive(Debug)]
pub struct Running {
    server: Server,
    database: Arc<Database>,
    admin: Option<Admin>,
    admin_token: Option<String>,
    certificates: Option<Certificates>,
    identity: Option<Identity>,
    audit: Option<Arc<Audit>>,
    /// Longest time for background work to end.
    stop_within: Duration,
}

impl Running {
    /// Opens the data, binds the addresses and serves. `seed` is the source of all randomness.
    ///
    /// # Errors
    /// The data cannot be opened or an address cannot be bound.
    pub async fn start(config: &Config, clock: Clock, seed: u64) -> Result<Self, RunError> {
        let url: store::Url = config.data.parse()?;
        let durability: store::Durability = config.durability.parse()?;
        let mut options = config.server.clone();
        options.login_key = seed;
        options.limits.connections_max = options.limits.connections_max.min(connections_possible());
        let identity = match config.profile {
            Profile::Cassandra if !options.is_port_shared => None,
            Profile::Cassandra => Some(Identity::complete(&mut options, None, &url)?),
            Profile::Cosmos => Some(Identity::complete(&mut options, Some(&config.account_name), &url)?),
        };
        let login_required = options.credentials.is_some();
        let superuser = options.credentials.clone().filter(|_| !config.profile.is_cosmos());
        let mut bound = Bound::bind(options).await?;
        let admin = match config.admin_listen {
            Some(address) => Some(AdminBound::bind(address).await?),
            None => None,
        };
        let address = bound.addresses().iter().chain(bound.tls_addresses()).next().copied();
        let node = node(config, address, &clock);
        let directory = url.directory().map(Path::to_owned);
        let tables = Arc::new(Tables::default());
        let opened = engine::Options {
            virtual_tables: Arc::clone(&tables) as _,
            ..engine_options(config, url, durability, node, clock.clone(), seed)
        };
        let database = Arc::new(open_with(config, opened).await?);
        if let Some(directory) = &directory {
            tighten(directory);
        }
        if let Some(superuser) = superuser
            && let Some(roles) = roles::enable(config, &database, superuser).await?
        {
            bound.check_against(roles);
        }
        let audit = match config.audit.clone() {
            Some(options) => Some(Arc::new(Audit::open(options, clock.clone())?)),
            None => None,
        };
        bound.record_in(audit.clone());
        let certificates = bound.certificates().cloned();
        let nodes = database.nodes();
        bound.follow(nodes.up());
        if let Some(plan) = config.fault_plan.clone() {
            tracing::warn!(
                faults = plan.faults.len(),
                "a fault plan is active (fault-plan): requests fail according to it"
            );
            nodes.set_plan(plan)?;
        }
        if let Some(identity) = &identity {
            identity.keep()?;
        }
        let requests = Requests::new(Arc::clone(&database), &config.server.limits, clock.clone());
        let requests = requests.with_charge_payload(config.charge_payload);
        let requests = Arc::new(requests.with_audit(audit.clone()));
        let events = Arc::new(Events::default());
        emit_schema_changes(&database, &events);
        let server = bound.serve(&requests, events, clock.clone());
        let facts = Facts {
            // Memtables that were read from the log count themselves.
            started_bytes: Resident::read()
                .map_or(0, Resident::allocated)
                .saturating_sub(database.figures().store_figures().held.memtables),
            ..facts(config, &server, login_required, &clock)
        };
        tables.set_live_source(live_source(config, &server, &requests, Arc::new(facts), clock.clone()));
        let token = match &config.admin_token {
            Some(token) => token.clone(),
            None => identity::draw_token()?,
        };
        let admin_token = admin.is_some().then(|| token.clone());
        let admin_socket = directory.as_deref().and_then(admin::listen);
        let admin = (admin.is_some() || admin_socket.is_some()).then(|| {
            let source = Source {
                database: Arc::clone(&database),
                tables,
                clock,
                token,
                shows_keys: config.admin_show_keys,
                gate: database.roles().map(|roles| Gate {
                    authenticator: Arc::clone(server.authenticator()),
                    roles: Arc::clone(roles),
                    logins: Logins::default(),
                }),
                audit: audit.clone(),
                is_in_memory: directory.is_none(),
            };
            Admin::serve(admin, admin_socket, source)
        });
        jobs::spawn(config, &database, certificates.as_ref());
        if let Some(folder) = operator_folder(config)? {
            operator::serve(&folder, &database);
        }
        Ok(Self {
            certificates,
            server,
            database,
            admin,
            admin_token,
            identity,
            audit,
            stop_within: config.server.limits.drain,
        })
    }

    /// The address of the admin port. `None` means there is none; the socket in the data directory may still exist.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(Admin::address)
    }

    /// The token of requests that change state through the admin port. `None` means the port is off.
    #[must_use]
    pub fn admin_token(&self) -> Option<&str> {
        self.admin_token.as_deref()
    }

    /// The identity of the profile `cosmos`. `None` in other profiles.
    #[must_use]
    pub const fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The server.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Warnings about the active fault plan, by the schema as it is now.
    #[must_use]
    pub fn fault_warnings(&self) -> Vec<String> {
        let report = self.database.nodes().report();
        let faults = report.fault.iter().map(|fault| &fault.fault);
        super::fault_warnings::of(faults, &self.database.schema())
    }

    /// The database.
    #[must_use]
    pub const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Checks whether the files of the TLS certificate have changed, and loads them; `in_any_case` loads them even if
    /// not. Unusable files are logged, and the old certificate stays.
    pub fn check_certificate(&self, in_any_case: bool) {
        if let Some(certificates) = &self.certificates {
            jobs::check_certificate(certificates, in_any_case);
        }
    }

    /// Waits until data can no longer be read, and returns the reason. It stays unreadable until the process restarts.
    pub async fn until_lost(&self) -> String {
        loop {
            if let Some(why) = self.database.upkeep().lost() {
                return why;
            }
            tokio::time::sleep(LOST_CHECK_INTERVAL).await;
        }
    }

    /// Lets requests in progress complete, then makes everything durable and closes the data.
    ///
    /// # Errors
    /// The medium fails.
    pub async fn stop(self) -> Result<(), engine::Error> {
        if let Some(admin) = &self.admin {
            admin.is_stopping();
        }
        self.server.drain().await;
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
        if let Some(audit) = self.audit {
            // Only its end matters. It waits for a disk, so it runs on a thread that may block.
            drop(tokio::task::spawn_blocking(move || audit.finish()).await);
        }
        self.database.close_within(self.stop_within).await
    }
}

/// Removes access for other users from a data directory that an older program created, or that was copied. Called only
/// after the store has taken the directory: a refused directory stays unchanged.
fn tighten(directory: &Path) {
    let done = permissions::tighten(directory, &[identity::CERTIFICATE]);
    if done.changed > 0 {
        tracing::info!(
            directory = %directory.display(),
            changed = done.changed,
            "other users could access files of the data: now only their owner can"
        );
    }
    if let Some((path, error)) = done.first_failure {
        tracing::warn!(
            path = %path.display(), %error, failed = done.failed,
            "other users can access files of the data, and their modes cannot be changed"
        );
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
fn engine_options(
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
        profile: config.profile,
        throughput: config.throughput,
        account: config.account,
        virtual_tables: Arc::new(Tables::default()),
    }
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

async fn open_with(config: &Config, options: engine::Options) -> Result<Database, RunError> {
    Database::open(options).await.map_err(|source| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source.into()),
    })
}

/// Opens data that no server has open, to write to it.
pub(super) async fn open_alone(config: &Config, clock: Clock, seed: u64) -> Result<Database, RunError> {
    let (url, durability) = (config.data.parse()?, config.durability.parse()?);
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
    let (url, durability) = (config.data.parse()?, config.durability.parse()?);
    let node = node(config, None, &clock);
    let look = store::Look::at(&url)?;
    let database = open(config, look.url().clone(), durability, node, clock, seed).await?;
    Ok((database, look))
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
    let found = database.upkeep().check_indexes().await.map_err(failed)?;
    database.close().await.map_err(failed)?;
    drop(look);
    Ok(found)
}

/// Connections for which there are enough file descriptors, with a quarter left for the data: connections must not use
/// the last ones. If the system reports no limit, any number.
fn connections_possible() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files: Option<usize> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let possible = files.map_or(usize::MAX, |files| files / 4 * 3);
    if possible < 8192 {
        tracing::info!(
            connections = possible,
            "connections are bounded by the limit of open files (ulimit -n)"
        );
    }
    possible
}

/// Facts that do not change while the server runs.
fn facts(config: &Config, server: &Server, login_required: bool, clock: &Clock) -> Facts {
    let texts = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect();
    Facts {
        addresses: texts(server.addresses()),
        tls_addresses: texts(server.tls_addresses()),
        account: config.profile.is_cosmos().then(|| config.account_name.clone()),
        login_required,
        data: config.data.clone(),
        durability: config.durability.clone(),
        bucket_prices: config.bucket_prices,
        started_seconds: clock.wall_seconds(),
        started_bytes: 0,
    }
}

/// Figures for views that only the server has. The closure may outlive the server.
fn live_source(
    config: &Config,
    server: &Server,
    requests: &Arc<Requests>,
    facts: Arc<Facts>,
    clock: Clock,
) -> LiveSource {
    let (sessions, load, started) = (server.sessions(), server.load(), clock.of_process());
    let (settings, requests) = (Arc::new(config.settings.clone()), Arc::downgrade(requests));
    Box::new(move || {
        let prepared = requests.upgrade().map(|requests| requests.prepared());
        let (prepared, prepared_bytes) = prepared.unwrap_or_default();
        Live {
            clients: sessions().iter().map(|session| client(session)).collect(),
            settings: Arc::clone(&settings),
            prepared,
            prepared_bytes,
            load: load(),
            uptime: clock.of_process().saturating_sub(started),
            facts: Arc::clone(&facts),
        }
    })
}

/// A connection as `system_views.clients` shows it.
fn client(session: &Session) -> Client {
    let state = session.state();
    let startup = session.startup();
    let options = startup.map(|startup| startup.options.clone()).unwrap_or_default();
    let option = |name: &str| {
        options
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
    };
    Client {
        address: session.client().ip(),
        port: session.client().port(),
        connection_stage: if session.is_ready() { "ready" } else { "authenticating" }.to_owned(),
        driver_name: option("DRIVER_NAME"),
        driver_version: option("DRIVER_VERSION"),
        keyspace_name: state.keyspace.as_deref().map(str::to_owned),
        protocol_version: startup.map_or(0, |startup| startup.version.number()),
        request_count: session.requests(),
        ssl_cipher_suite: None,
        ssl_enabled: session.is_tls(),
        ssl_protocol: None,
        username: state.user.as_deref().unwrap_or("anonymous").to_owned(),
        client_options: options,
    }
}

/// This node as the system tables show it.
fn node(config: &Config, listening: Option<SocketAddr>, clock: &Clock) -> NodeInfo {
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
