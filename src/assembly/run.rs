//! From settings to a running server: the only place where the parts are assembled.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::fleet::{Fleet, Node, OwnerOptions};
use super::live::{facts, live_source};
use super::opening::{RunError, engine_options, located, node, open_with, operator_folder};
use super::{jobs, roles};
use crate::config::{Config, FleetOptions};
use crate::server::admin::logins::{Gate, Logins};
use crate::server::admin::{self, Admin, AdminBound, Source};
use crate::server::audit::Audit;
use crate::server::identity::{self, Identity};
use crate::server::tables::keys::TablesKeys;
use crate::server::tables::{TablesBound, TablesServer};
use crate::server::{
    Bound, Certificates, Credentials, Events, Requests, Server, StartError, emit_schema_changes, fault_warnings,
    operator,
};
use helenus_base::clock::Clock;
use helenus_base::memory::Resident;
use helenus_base::permissions;
use helenus_cql::cql::Database;
use helenus_engine::engine;
use helenus_engine::views::Tables;
use helenus_engine::views::live::Facts;
use helenus_schema::profile::Profile;
use helenus_schema::schema::node::NodeInfo;
use helenus_storage::storage::Url;
use helenus_tables::tables::service::Service;
use helenus_tables::tables::store;

/// Interval of the check whether data can still be read.
const LOST_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Stack of each runtime thread: expressions and types nest as deep as the grammar allows, and are parsed, planned,
/// computed and freed by recursion. A debug build takes some 20 KiB per level.
pub const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// A server and its database.
#[derive(Debug)]
pub struct Running {
    server: Server,
    /// Tables, with the keys of their accounts. `None` means they are not served.
    tables: Option<(TablesServer, TablesKeys)>,
    database: Arc<Database>,
    admin: Option<Admin>,
    admin_token: Option<String>,
    certificates: Option<Certificates>,
    identity: Option<Identity>,
    audit: Option<Arc<Audit>>,
    /// `None` means that it is no node of a fleet.
    fleet: Option<Fleet>,
    /// Longest time for background work to end.
    stop_within: Duration,
}

impl Running {
    /// Opens the data, binds the addresses and serves. `seed` is the source of all randomness.
    ///
    /// # Errors
    /// The data cannot be opened or an address cannot be bound.
    #[expect(
        clippy::too_many_lines,
        reason = "the parts of a server are made in the order in which they need each other"
    )]
    pub async fn start(config: &Config, clock: Clock, seed: u64) -> Result<Self, RunError> {
        let (url, durability) = located(config)?;
        let directory = url.directory().map(Path::to_owned);
        let Ports {
            mut clients,
            admin: admin_bound,
            tables: tables_bound,
            identity,
            superuser,
            is_login_required,
        } = Ports::bind(config, &url, seed).await?;
        let address = clients
            .addresses()
            .iter()
            .chain(clients.tls_addresses())
            .next()
            .copied();
        let node = node(config, address, &clock);
        let as_node = fleet_node(config, &node, address);
        let virtual_tables = Arc::new(Tables::default());
        let options = engine::Options {
            virtual_tables: Arc::clone(&virtual_tables) as _,
            mask_calls: helenus_schema::planner::mask_calls,
            ..engine_options(config, url, durability, node, clock.clone(), seed)
        };
        let events = Arc::new(Events::default());
        let (database, fleet) = open_data(config, options, as_node, &events).await?;
        if let Some(directory) = &directory {
            tighten(directory);
        }
        if let Some(superuser) = superuser {
            enable_roles(config, &database, superuser, &mut clients).await?;
        }
        if fleet.is_some() {
            reload_roles(config, &database).await?;
        }
        let audit = audit_log(config, &database, &clock)?;
        clients.record_in(audit.clone());
        let certificates = clients.certificates().cloned();
        clients.follow(database.engine().nodes().up());
        begin_fault_plan(config, &database)?;
        if let Some(identity) = &identity {
            identity.keep()?;
        }
        let requests = Requests::new(Arc::clone(&database), &config.server.limits, clock.clone());
        let requests = requests
            .with_charge_payload(config.charge_payload)
            .relayed_by(fleet.as_ref().map(Fleet::relay))
            .with_audit(audit.clone());
        let requests = Arc::new(requests);
        let server = clients.serve(&requests, events, clock.clone());
        let facts = Facts {
            started_bytes: started_bytes(&database),
            ..facts(config, &server, is_login_required, &clock)
        };
        show_live(config, &virtual_tables, &server, &requests, facts, &clock);
        let tables = serve_tables(
            tables_bound,
            config,
            &database,
            certificates.as_ref(),
            directory.as_deref(),
            clock.clone(),
            seed,
        )?;
        let token = match &config.admin_token {
            Some(token) => token.clone(),
            None => identity::draw_token()?,
        };
        let admin_token = admin_bound.is_some().then(|| token.clone());
        let source = Source {
            database: Arc::clone(&database),
            tables: virtual_tables,
            clock,
            token,
            shows_keys: config.admin_show_keys,
            gate: gate(&database, &server),
            audit: audit.clone(),
            is_in_memory: directory.is_none(),
            relay: fleet.as_ref().map(Fleet::relay),
        };
        let admin = serve_admin(admin_bound, directory.as_deref(), source);
        jobs::spawn(config, &database, certificates.as_ref());
        if let Some(folder) = operator_folder(config)?.filter(|_| fleet.is_none()) {
            operator::serve(&folder, &database);
        }
        Ok(Self {
            certificates,
            server,
            tables,
            database,
            admin,
            admin_token,
            identity,
            audit,
            fleet,
            stop_within: config.server.limits.drain,
        })
    }

    /// The address of the admin port. `None` means there is none; the socket in the data directory may still exist.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(Admin::address)
    }

    /// The addresses of tables. None means they are not served.
    #[must_use]
    pub fn tables_addresses(&self) -> &[SocketAddr] {
        self.tables.as_ref().map_or(&[], |(server, _)| server.addresses())
    }

    /// The accounts of tables and their keys. `None` means tables are not served.
    #[must_use]
    pub fn tables_keys(&self) -> Option<&TablesKeys> {
        self.tables.as_ref().map(|(_, keys)| keys)
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
        let report = self.database.engine().nodes().report();
        let faults = report.fault.iter().map(|fault| &fault.fault);
        fault_warnings::of(faults, &self.database.engine().schema())
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
            if let Some(why) = self.database.engine().upkeep().lost() {
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
        match self.tables {
            Some((tables, _)) => {
                tokio::join!(self.server.drain(), tables.drain());
            }
            None => self.server.drain().await,
        }
        if let Some(admin) = self.admin {
            admin.stop().await;
        }
        if let Some(audit) = self.audit {
            // Only its end matters. It waits for a disk, so it runs on a thread that may block.
            drop(tokio::task::spawn_blocking(move || audit.finish()).await);
        }
        let left = match self.fleet {
            Some(fleet) => fleet.leave(self.stop_within).await,
            None => Ok(()),
        };
        self.database.close_within(self.stop_within).await?;
        left
    }
}

/// The bound addresses of a server, before its data is opened: an address that is taken leaves the data as it was.
struct Ports {
    clients: Bound,
    /// `None` means that there is no admin port.
    admin: Option<AdminBound>,
    /// `None` means that tables are not served.
    tables: Option<TablesBound>,
    /// Who the server is to clients. `None` means that no client asks.
    identity: Option<Identity>,
    /// The first role. `None` means that there are no roles.
    superuser: Option<Credentials>,
    is_login_required: bool,
}

impl Ports {
    async fn bind(config: &Config, url: &Url, seed: u64) -> Result<Self, RunError> {
        let mut options = config.server.clone();
        options.login_key = seed;
        options.limits.connections_max = options.limits.connections_max.min(connections_possible());
        let identity = match config.profile {
            Profile::Cassandra if !options.is_port_shared => None,
            Profile::Cassandra => Some(Identity::complete(&mut options, None, url)?),
            Profile::Cosmos => Some(Identity::complete(&mut options, Some(&config.account_name), url)?),
        };
        let is_login_required = options.credentials.is_some();
        let superuser = options.credentials.clone().filter(|_| !config.profile.is_cosmos());
        let clients = Bound::bind(options).await?;
        let admin = match config.admin_listen {
            Some(address) => Some(AdminBound::bind(address).await?),
            None => None,
        };
        let tables = match &config.tables {
            Some(tables) => Some(TablesBound::bind(&tables.listen).await?),
            None => None,
        };
        Ok(Self {
            clients,
            admin,
            tables,
            identity,
            superuser,
            is_login_required,
        })
    }
}

/// Opens the data, as a node of a fleet if it is one. Clients learn of each change of the schema from here on.
async fn open_data(
    config: &Config,
    mut options: engine::Options,
    as_node: Option<Node>,
    events: &Arc<Events>,
) -> Result<(Arc<Database>, Option<Fleet>), RunError> {
    let fleet = match (&config.fleet, as_node) {
        // Boxed, like the opening: whoever embeds a server has its future in their own.
        (Some(of_fleet), Some(as_node)) => Some(Box::pin(join(config, of_fleet, &mut options, as_node)).await?),
        _ => None,
    };
    let database = Arc::new(Box::pin(open_with(config, options)).await?);
    emit_schema_changes(&database, events);
    if let Some(fleet) = &fleet {
        fleet.follow(&database, events).await?;
    }
    Ok((database, fleet))
}

/// Checks logins against the roles, of which the superuser is the first.
async fn enable_roles(
    config: &Config,
    database: &Arc<Database>,
    superuser: Credentials,
    clients: &mut Bound,
) -> Result<(), RunError> {
    if let Some(roles) = roles::enable(config, database, superuser).await? {
        clients.check_against(roles);
    }
    Ok(())
}

/// Reads the roles again: they may have changed since they were read and before this node of a fleet followed them.
async fn reload_roles(config: &Config, database: &Database) -> Result<(), RunError> {
    let read = database.reload_roles().await;
    read.map_err(|source| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source),
    })
}

/// Opens the audit log. `None` means that there is none.
fn audit_log(config: &Config, database: &Database, clock: &Clock) -> Result<Option<Arc<Audit>>, RunError> {
    let Some(options) = config.audit.clone() else {
        return Ok(None);
    };
    let audit = Arc::new(Audit::open(options, clock.clone())?);
    database.engine().set_audit_log(Arc::clone(&audit) as _);
    Ok(Some(audit))
}

/// Starts the fault plan of the settings.
fn begin_fault_plan(config: &Config, database: &Database) -> Result<(), RunError> {
    let Some(plan) = config.fault_plan.clone() else {
        return Ok(());
    };
    tracing::warn!(
        faults = plan.faults.len(),
        "a fault plan is active (fault-plan): requests fail according to it"
    );
    Ok(database.engine().nodes().set_plan(plan)?)
}

/// Bytes of the process at its start, without memtables that were read from the log, which count themselves.
fn started_bytes(database: &Database) -> u64 {
    let memtables = database.engine().figures().store_figures().held.memtables;
    Resident::read()
        .map_or(0, Resident::allocated)
        .saturating_sub(memtables)
}

/// Shows what the server does now in the virtual tables.
fn show_live(config: &Config, tables: &Tables, server: &Server, requests: &Arc<Requests>, facts: Facts, clock: &Clock) {
    let of_prepared = Arc::downgrade(requests);
    let texts = move || of_prepared.upgrade().map(|requests| requests.prepared_texts());
    tables.set_prepared_source(Box::new(move || texts().unwrap_or_default()));
    tables.set_live_source(live_source(config, server, requests, Arc::new(facts), clock.clone()));
}

/// The logins of the admin port. `None` means that there are no roles.
fn gate(database: &Database, server: &Server) -> Option<Gate> {
    database.roles().map(|roles| Gate {
        authenticator: Arc::clone(server.authenticator()),
        roles: Arc::clone(roles),
        logins: Logins::default(),
    })
}

/// This server as a node of a fleet. `None` means that it is none, or serves no address.
fn fleet_node(config: &Config, node: &NodeInfo, address: Option<SocketAddr>) -> Option<Node> {
    let fleet = config.fleet.as_ref()?;
    Some(Node {
        name: fleet.name.clone(),
        host_id: uuid::Uuid::nil(),
        address: SocketAddr::new(node.native_address, address?.port()),
        fleet_address: String::new(),
        data_center: node.data_center.clone(),
        rack: node.rack.clone(),
    })
}

/// Joins a fleet, and makes the options of the data those of an edge: it has no store of its own.
async fn join(
    config: &Config,
    of_fleet: &FleetOptions,
    opened: &mut engine::Options,
    as_node: Node,
) -> Result<Fleet, RunError> {
    let owner = OwnerOptions {
        config: Arc::new(config.clone()),
        engine: engine::Options {
            virtual_tables: Arc::new(Tables::default()),
            ..opened.clone()
        },
        clock: opened.clock.clone(),
    };
    let fleet = Fleet::join(of_fleet, owner, as_node).await?;
    opened.url = Url::Memory;
    opened.elsewhere = Some(fleet.elsewhere().await?);
    Ok(fleet)
}

/// Serves tables on bound addresses. `None` means that they are not served.
fn serve_tables(
    bound: Option<TablesBound>,
    config: &Config,
    database: &Arc<Database>,
    certificates: Option<&Certificates>,
    directory: Option<&Path>,
    clock: Clock,
    seed: u64,
) -> Result<Option<(TablesServer, TablesKeys)>, RunError> {
    let (Some(bound), Some(options)) = (bound, &config.tables) else {
        return Ok(None);
    };
    let keys = TablesKeys::complete(&options.accounts, directory)?;
    let settings = store::Settings {
        page_boundary: options.page_boundary,
        targets: options.targets,
        reload: options.reload,
    };
    let store = store::Store::new(Arc::clone(database.engine()), settings);
    let service = Service::new(store, keys.accounts(), clock, seed);
    let tls = certificates.map(Certificates::acceptor_without_clients).transpose();
    let tls = tls.map_err(StartError::from)?;
    Ok(Some((bound.serve(service, tls, &config.server.limits), keys)))
}

/// Serves the admin port and the socket in the data directory. `None` means that there is neither.
fn serve_admin(bound: Option<AdminBound>, directory: Option<&Path>, source: Source) -> Option<Admin> {
    let socket = directory.and_then(admin::listen);
    (bound.is_some() || socket.is_some()).then(|| Admin::serve(bound, socket, source))
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
