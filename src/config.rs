//! Settings: every one there is in one table, where each value came from, and what they mean together.
//!
//! A value is taken from the command line, else from the environment (`HELENUS_` and the name in capitals), else from the
//! configuration file (TOML, the same names as keys), else the default. `helenus check` prints what came out, with origins.

mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub use self::settings::{SETTINGS, Setting};
use crate::executor::{self, PartitionLimits, SizeLimits, ThroughputRules};
use crate::partition::Consistency;
use crate::partition::HeatLimits;
use crate::partition::faults::Plan;
use crate::partition::nodes::NODES;
use crate::planner::Guardrails;
use crate::planner::guardrails::{Listed, Names, Switches};
use crate::planner::rules::{Account, Strict};
use crate::profile::Profile;
use crate::server::{ChargePayload, Credentials, Limits, Options, TlsIdentity, TlsOptions};
use crate::throughput::Coefficients;
use crate::throughput::RequestUnits;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The profile's own default.
    Profile(Profile),
    /// The configuration file.
    File(PathBuf),
    /// This variable.
    Environment(String),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Profile(profile) => write!(formatter, "profile {profile}"),
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::CommandLine => formatter.write_str("command line"),
        }
    }
}

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration file is no TOML.
    #[error("{}: {source}", path.display())]
    Toml {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// The configuration file has a key that is no setting, or a value of the wrong kind.
    #[error("{}: {key}: {what}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A value does not mean what it must.
    #[error("{name} = {value:?} ({origin}): {what}")]
    Value {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// Where it came from.
        origin: Origin,
        /// What is wrong.
        what: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Together(String),
}

/// Where the profile `cosmos` serves unless told otherwise: this machine's own address, Cosmos's port.
const COSMOS_LISTEN: &str = "127.0.0.1:10350";

/// The values of all settings as texts, with their origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    values: BTreeMap<&'static str, (Vec<String>, Origin)>,
}

/// The name of a setting's environment variable.
#[must_use]
pub fn variable(name: &str) -> String {
    format!("HELENUS_{}", name.replace('-', "_").to_uppercase())
}

impl Values {
    /// Gathers the values. `given` are those of the command line, by name; `environment` reads a variable.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML, or has a key that is no setting.
    pub fn gather(
        file: Option<&Path>,
        given: &BTreeMap<String, Vec<String>>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut in_file = file.map(read_file).transpose()?.unwrap_or_default();
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let variable = variable(setting.name);
            let from_file = in_file.remove(setting.name);
            let value = if let Some(values) = given.get(setting.name) {
                (values.clone(), Origin::CommandLine)
            } else if let Some(value) = environment(&variable) {
                let parts = if setting.repeatable {
                    value.split(',').map(|part| part.trim().to_owned()).collect()
                } else {
                    vec![value]
                };
                (parts, Origin::Environment(variable))
            } else if let (Some(values), Some(path)) = (from_file, file) {
                (values, Origin::File(path.to_owned()))
            } else {
                let default = match setting.name {
                    "data" => Some(default_data(&environment)),
                    _ => setting.default.map(str::to_owned),
                };
                (default.into_iter().collect(), Origin::Default)
            };
            values.insert(setting.name, value);
        }
        let mut gathered = Self { values };
        gathered.follow_profile();
        Ok(gathered)
    }

    /// What nobody has set is as the profile has it.
    fn follow_profile(&mut self) {
        let Some(profile) = self.text("profile").and_then(|name| name.parse::<Profile>().ok()) else {
            return;
        };
        if !profile.is_cosmos() {
            return;
        }
        let region: Vec<String> = self.all("region").to_vec();
        for (name, values) in [
            ("listen", Vec::new()),
            ("tls-listen", vec![COSMOS_LISTEN.to_owned()]),
            ("cluster-name", vec!["CosmosProd".to_owned()]),
            ("data-center", region),
        ] {
            if let Some(value) = self.values.get_mut(name)
                && value.1 == Origin::Default
            {
                *value = (values, Origin::Profile(profile));
            }
        }
    }

    /// Every setting with its values and their origin, in the order of [`SETTINGS`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &[String], &Origin)> {
        SETTINGS.iter().filter_map(|setting| {
            let (values, origin) = self.values.get(setting.name)?;
            Some((setting, values.as_slice(), origin))
        })
    }

    fn all(&self, name: &'static str) -> &[String] {
        self.values
            .get(name)
            .map(|(values, _)| values.as_slice())
            .unwrap_or_default()
    }

    fn text(&self, name: &'static str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    fn wrong(&self, name: &'static str, value: &str, what: impl fmt::Display) -> ConfigError {
        ConfigError::Value {
            name,
            value: value.to_owned(),
            origin: self
                .values
                .get(name)
                .map_or(Origin::Default, |(_, origin)| origin.clone()),
            what: what.to_string(),
        }
    }

    fn parsed<T: FromStr<Err: fmt::Display>>(&self, name: &'static str) -> Result<T, ConfigError> {
        let text = self.text(name).unwrap_or_default();
        text.parse().map_err(|error| self.wrong(name, text, error))
    }

    fn optional<T: FromStr<Err: fmt::Display>>(&self, name: &'static str) -> Result<Option<T>, ConfigError> {
        self.text(name).is_some().then(|| self.parsed(name)).transpose()
    }

    fn seconds(&self, name: &'static str) -> Result<Duration, ConfigError> {
        self.parsed(name).map(Duration::from_secs)
    }

    /// Where figures are served; `None`: nowhere.
    ///
    /// # Errors
    /// The setting is no address.
    pub fn admin_listen(&self) -> Result<Option<SocketAddr>, ConfigError> {
        Ok(self.addresses("admin-listen")?.into_iter().next_back())
    }

    fn addresses(&self, name: &'static str) -> Result<Vec<SocketAddr>, ConfigError> {
        let mut addresses = Vec::new();
        for text in self.all(name) {
            let found = text.to_socket_addrs().map_err(|error| self.wrong(name, text, error))?;
            let first = found.into_iter().next();
            addresses.push(first.ok_or_else(|| self.wrong(name, text, "no address has this name"))?);
        }
        Ok(addresses)
    }
}

fn read_file(path: &Path) -> Result<BTreeMap<String, Vec<String>>, ConfigError> {
    let text = read(path)?;
    let table: toml::Table = text.parse().map_err(|source| ConfigError::Toml {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let mut values = BTreeMap::new();
    for (key, value) in table {
        let wrong = |what| ConfigError::Key {
            path: path.to_owned(),
            key: key.clone(),
            what,
        };
        let name = key.replace('_', "-");
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .ok_or_else(|| wrong("there is no such setting"))?;
        let scalar = |value: toml::Value| match value {
            toml::Value::String(text) => Ok(text),
            toml::Value::Integer(number) => Ok(number.to_string()),
            toml::Value::Boolean(yes) => Ok(yes.to_string()),
            _ => Err(wrong("the value must be a text, a whole number or a boolean")),
        };
        let list = match value {
            toml::Value::Array(list) if setting.repeatable => list.into_iter().map(scalar).collect::<Result<_, _>>()?,
            toml::Value::Array(_) => return Err(wrong("there can be only one value")),
            value => vec![scalar(value)?],
        };
        values.insert(name, list);
    }
    Ok(values)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

/// `file:` in the user's data directory, as the XDG base directories say; in the working directory without a home.
fn default_data(environment: impl Fn(&str) -> Option<String>) -> String {
    let absolute = |name| environment(name).filter(|path| Path::new(path).is_absolute());
    let home = absolute("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| absolute("HOME").map(|home| Path::new(&home).join(".local/share")));
    let directory = home.unwrap_or_default().join("helenus");
    format!("file:{}", directory.display())
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// What the program does, from its settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where data is kept.
    pub data: String,
    /// When a write is acknowledged.
    pub durability: String,
    /// Listening, logins, TLS, limits.
    pub server: Options,
    /// Where figures are served; `None`: nowhere.
    pub admin_listen: Option<SocketAddr>,
    /// What clients are told to connect to; `None`: the first address listened on.
    pub broadcast_address: Option<IpAddr>,
    /// As clients see it.
    pub cluster_name: String,
    /// As clients see it.
    pub data_center: String,
    /// As clients see it.
    pub rack: String,
    /// Memory for rows, in bytes.
    pub row_cache_bytes_max: usize,
    /// Memory to know new rows by, in bytes.
    pub key_filter_bytes_max: usize,
    /// Memory for blocks, in bytes.
    pub block_cache_bytes_max: usize,
    /// Most stores beside the main one.
    pub stores_max: usize,
    /// Time between clean-ups of what expired or was deleted; zero: never.
    pub sweep_interval: Duration,
    /// Whom the server behaves as.
    pub profile: Profile,
    /// The user's name in the profile `cosmos`.
    pub account_name: String,
    /// What that account promises and what it refuses.
    pub account: Account,
    /// Amounts that are warned of or refused.
    pub guardrails: Guardrails,
    /// What operations cost, in request units.
    pub prices: Coefficients,
    /// How large things may be; bytes are scaled already.
    pub limits: SizeLimits,
    /// Bytes after which a page ends; scaled already.
    pub page_bytes_max: usize,
    /// Statements that the request log keeps.
    pub request_log_max: usize,
    /// When clients are told what their requests were charged.
    pub charge_payload: ChargePayload,
    /// When physical partitions are split and merged; bytes are scaled already.
    pub partitions: PartitionLimits,
    /// How throughput is dealt with.
    pub throughput: ThroughputRules,
    /// Time between looks at their sizes; zero: never.
    pub partition_check_interval: Duration,
    /// When too much is asked of a physical partition; scaled already.
    pub heat: HeatLimits,
    /// Time between looks at what is asked of them; zero: never.
    pub heat_check_interval: Duration,
    /// What goes wrong on purpose from the start; `None`: nothing.
    pub fault_plan: Option<Plan>,
    /// Threads that serve; 0: one for each core.
    pub threads: usize,
    /// What is logged.
    pub log: String,
    /// How.
    pub log_format: LogFormat,
    /// Open file for the address.
    pub ready_fd: Option<u32>,
    /// File for the address.
    pub ready_file: Option<PathBuf>,
    /// All settings as they are in force, by name; several values with commas between.
    pub settings: Vec<(String, String)>,
}

impl Config {
    /// Gives the values their meaning. Reads the password file.
    ///
    /// # Errors
    /// A value that means nothing, or settings that do not go together.
    pub fn new(values: &Values) -> Result<Self, ConfigError> {
        let profile: Profile = values.parsed("profile")?;
        let is_metered = is_metered(values)?;
        let server = Options {
            listen: values.addresses("listen")?,
            tls: tls(values, profile)?,
            credentials: credentials(values, profile)?,
            limits: limits(values)?,
            nodes: nodes(values)?,
            profile,
        };
        let open = values.parsed::<bool>("allow-unauthenticated-network")?;
        refuse_open_network(&server, open)?;
        let admin_listen = values.admin_listen()?;
        refuse_open_admin(admin_listen, open)?;
        Ok(Self {
            data: values.text("data").unwrap_or_default().to_owned(),
            durability: values.text("durability").unwrap_or_default().to_owned(),
            server,
            admin_listen,
            broadcast_address: values.optional("broadcast-address")?,
            cluster_name: values.text("cluster-name").unwrap_or_default().to_owned(),
            data_center: values.text("data-center").unwrap_or_default().to_owned(),
            rack: values.text("rack").unwrap_or_default().to_owned(),
            row_cache_bytes_max: values.parsed("row-cache-bytes-max")?,
            key_filter_bytes_max: values.parsed("key-filter-bytes-max")?,
            block_cache_bytes_max: values.parsed("block-cache-bytes-max")?,
            stores_max: values.parsed("stores-max")?,
            sweep_interval: values.seconds("sweep-seconds")?,
            profile,
            account_name: values.text("account").unwrap_or_default().to_owned(),
            account: Account {
                consistency: values.parsed("account-consistency")?,
                strict: strict(values)?,
            },
            guardrails: guardrails(values)?,
            prices: prices(values)?,
            limits: size_limits(values)?,
            page_bytes_max: page_bytes_max(values)?,
            request_log_max: values.parsed::<usize>("request-log-max")?.min(REQUEST_LOG_MAX),
            charge_payload: if is_metered {
                charge_payload(values)?
            } else {
                ChargePayload::Never
            },
            partitions: PartitionLimits {
                bytes_max: scale(values)?.of(values.parsed("partition-bytes-max")?),
                merges: values.parsed("partition-merge")?,
            },
            throughput: throughput(values)?,
            partition_check_interval: values.seconds("partition-check-seconds")?,
            heat: HeatLimits {
                units_per_second_max: RequestUnits::whole(scale(values)?.of(values.parsed("partition-units-max")?)),
                hot_percent: values.parsed("partition-hot-percent")?,
                looks: values.parsed("partition-hot-checks")?,
            },
            heat_check_interval: if is_metered {
                values.seconds("heat-check-seconds")?
            } else {
                Duration::ZERO
            },
            fault_plan: fault_plan(values)?,
            threads: values.parsed("threads")?,
            log: values.text("log").unwrap_or_default().to_owned(),
            log_format: match values.text("log-format") {
                Some("human") => LogFormat::Human,
                Some("json") => LogFormat::Json,
                Some("auto") | None => LogFormat::Auto,
                Some(other) => return Err(values.wrong("log-format", other, "one of human, json, auto")),
            },
            ready_fd: values.optional("ready-fd")?,
            ready_file: values.text("ready-file").map(PathBuf::from),
            settings: values
                .iter()
                .map(|(setting, values, _)| {
                    // Whoever reads the settings need not learn the key.
                    let is_secret = setting.name == "account-key" && !values.is_empty();
                    let value = if is_secret { "***".to_owned() } else { values.join(",") };
                    (setting.name.into(), value)
                })
                .collect(),
        })
    }
}

/// What limits of size are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    numerator: u32,
    denominator: u32,
}

impl Scale {
    /// A limit, scaled; never nothing.
    fn of(self, limit: u64) -> u64 {
        let scaled = u128::from(limit) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }
}

fn scale(values: &Values) -> Result<Scale, ConfigError> {
    let text = values.text("scale-limits").unwrap_or("1");
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let part = |part: &str| part.trim().parse::<u32>().ok().filter(|part| *part > 0);
    match (part(numerator), part(denominator)) {
        (Some(numerator), Some(denominator)) => Ok(Scale { numerator, denominator }),
        _ => Err(values.wrong("scale-limits", text, "a fraction of whole numbers above 0, like 1/1000")),
    }
}

/// A limit that has a default in the `cosmos` profile only: `None` is none.
fn limit<T: FromStr<Err: fmt::Display>>(
    values: &Values,
    name: &'static str,
    in_cosmos: T,
) -> Result<Option<T>, ConfigError> {
    match values.text(name) {
        Some("off") => Ok(None),
        Some("auto") | None => Ok(values.parsed::<Profile>("profile")?.is_cosmos().then_some(in_cosmos)),
        Some(_) => values.parsed(name).map(Some),
    }
}

fn size_limits(values: &Values) -> Result<SizeLimits, ConfigError> {
    let scale = scale(values)?;
    let scaled = |limit: Option<u64>| limit.map(|limit| scale.of(limit));
    let logical = match values.text("logical-partition-bytes-max") {
        Some("off") => None,
        _ => Some(values.parsed("logical-partition-bytes-max")?),
    };
    Ok(SizeLimits {
        logical_partition_bytes_max: scaled(logical),
        row_bytes_max: scaled(limit(values, "row-bytes-max", SizeLimits::ROW_BYTES_MAX)?),
        request_bytes_max: scaled(limit(values, "request-bytes-max", SizeLimits::ROW_BYTES_MAX)?),
        batch_operations_max: limit(values, "batch-operations-max", SizeLimits::BATCH_OPERATIONS_MAX)?,
        partition_key_bytes_max: limit(values, "partition-key-bytes-max", SizeLimits::PARTITION_KEY_BYTES_MAX)?,
        ttl_seconds_max: match values.text("ttl-seconds-max") {
            Some("off") | None => None,
            Some(_) => Some(values.parsed("ttl-seconds-max")?),
        },
    })
}

fn page_bytes_max(values: &Values) -> Result<usize, ConfigError> {
    let given = limit(values, "page-bytes-max", SizeLimits::PAGE_BYTES_MAX)?;
    let bytes = given.unwrap_or(executor::Options::PAGE_BYTES_MAX);
    Ok(usize::try_from(scale(values)?.of(bytes as u64)).unwrap_or(usize::MAX))
}

fn throughput(values: &Values) -> Result<ThroughputRules, ConfigError> {
    let profile: Profile = values.parsed("profile")?;
    let rules = if profile.is_cosmos() {
        ThroughputRules::cosmos()
    } else {
        ThroughputRules::unlimited()
    };
    Ok(ThroughputRules {
        bursts: values.parsed("burst-capacity")?,
        server_side_retry: values.parsed("server-side-retry")?,
        is_metered: values.parsed("metering")?,
        waiting_max: values.parsed("server-side-retry-waiting-max")?,
        split_delay: values.seconds("split-delay-seconds")?,
        ..rules
    })
}

/// Whether statements are charged. Refused where something else that is asked for needs it.
fn is_metered(values: &Values) -> Result<bool, ConfigError> {
    if values.parsed("metering")? {
        return Ok(true);
    }
    let payload = values.text("request-charge-payload");
    let needs = [
        ("profile = cosmos", values.parsed::<Profile>("profile")?.is_cosmos()),
        (
            "request-charge-payload",
            payload.is_some_and(|when| when != ChargePayload::Never.name()),
        ),
        ("burst-capacity", values.parsed("burst-capacity")?),
        ("server-side-retry", values.parsed("server-side-retry")?),
    ];
    match needs.into_iter().find(|(_, is_asked_for)| *is_asked_for) {
        Some((what, _)) => Err(ConfigError::Together(format!("{what} needs metering = true"))),
        None => Ok(false),
    }
}

/// How many virtual nodes there are.
fn nodes(values: &Values) -> Result<usize, ConfigError> {
    let nodes: usize = values.parsed("nodes")?;
    if nodes != 1 && nodes != NODES {
        return Err(values.wrong("nodes", &nodes.to_string(), "1 or 4"));
    }
    if nodes > 1 && values.text("broadcast-address").is_some() {
        return Err(ConfigError::Together(
            "with nodes = 4 each node has an address of its own: broadcast-address does not go with it".into(),
        ));
    }
    Ok(nodes)
}

fn fault_plan(values: &Values) -> Result<Option<Plan>, ConfigError> {
    let Some(file) = values.text("fault-plan") else {
        return Ok(None);
    };
    let plan = Plan::from_toml(&read(Path::new(file))?).map_err(|error| values.wrong("fault-plan", file, error))?;
    if plan.takes_nodes_down() && nodes(values)? == 1 {
        return Err(ConfigError::Together(
            "a fault-plan in which nodes go down needs nodes = 4; replica-down works with one".into(),
        ));
    }
    Ok(Some(plan))
}

fn limits(values: &Values) -> Result<Limits, ConfigError> {
    Ok(Limits {
        body_bytes_max: values.parsed("body-bytes-max")?,
        login_deadline: values.seconds("login-seconds")?,
        slow_client: values.seconds("slow-client-seconds")?,
        in_flight_max: values.parsed("in-flight-max")?,
        in_flight_bytes_total_max: values.parsed("in-flight-bytes-total-max")?,
        connections_max: values.parsed("connections-max")?,
        connections_per_address_max: values.parsed("connections-per-address-max")?,
        idle: values.seconds("idle-seconds")?,
        drain: values.seconds("drain-seconds")?,
        prepared_max: values.parsed("prepared-max")?,
        ..Limits::default()
    })
}

/// Most entries of the request log: some 100 MB, when all texts are long.
const REQUEST_LOG_MAX: usize = 50_000;

fn charge_payload(values: &Values) -> Result<ChargePayload, ConfigError> {
    let Some(text) = values.text("request-charge-payload") else {
        return Ok(match values.parsed("profile")? {
            Profile::Cosmos => ChargePayload::Always,
            Profile::Cassandra => ChargePayload::Asked,
        });
    };
    let named = ChargePayload::ALL.into_iter().find(|payload| payload.name() == text);
    named.ok_or_else(|| values.wrong("request-charge-payload", text, "one of always, asked, never"))
}

fn prices(values: &Values) -> Result<Coefficients, ConfigError> {
    let text = values.all("request-units").join(",");
    text.parse()
        .map_err(|error| values.wrong("request-units", &text, error))
}

fn guardrails(values: &Values) -> Result<Guardrails, ConfigError> {
    Ok(Guardrails {
        batch_bytes: values.parsed("batch-size-thresholds")?,
        unlogged_batch_partitions: values.parsed("unlogged-batch-across-partitions-thresholds")?,
        tombstones: values.parsed("tombstone-thresholds")?,
        keyspaces: values.parsed("keyspaces-thresholds")?,
        tables: values.parsed("tables-thresholds")?,
        columns_per_table: values.parsed("columns-per-table-thresholds")?,
        secondary_indexes_per_table: values.parsed("secondary-indexes-per-table-thresholds")?,
        materialized_views_per_table: values.parsed("materialized-views-per-table-thresholds")?,
        fields_per_udt: values.parsed("fields-per-udt-thresholds")?,
        partition_keys_in_select: values.parsed("partition-keys-in-select-thresholds")?,
        in_select_cartesian_product: values.parsed("in-select-cartesian-product-thresholds")?,
        page_size: values.parsed("page-size-thresholds")?,
        items_per_collection: values.parsed("items-per-collection-thresholds")?,
        collection_bytes: values.parsed("collection-size-thresholds")?,
        column_value_bytes: values.parsed("column-value-size-thresholds")?,
        vector_dimensions: values.parsed("vector-dimensions-thresholds")?,
        maximum_timestamp_seconds: values.parsed("maximum-timestamp-thresholds")?,
        minimum_timestamp_seconds: values.parsed("minimum-timestamp-thresholds")?,
        partition_bytes: values.parsed("partition-size-thresholds")?,
        partition_tombstones: values.parsed("partition-tombstones-thresholds")?,
        read_levels: Listed {
            warned: levels(values, "read-consistency-levels-warned")?,
            disallowed: levels(values, "read-consistency-levels-disallowed")?,
        },
        write_levels: Listed {
            warned: levels(values, "write-consistency-levels-warned")?,
            disallowed: levels(values, "write-consistency-levels-disallowed")?,
        },
        table_properties: Listed {
            warned: values.parsed("table-properties-warned")?,
            disallowed: values.parsed("table-properties-disallowed")?,
        },
        switches: Switches {
            allow_filtering: values.parsed("allow-filtering-enabled")?,
            group_by: values.parsed("group-by-enabled")?,
            user_timestamps: values.parsed("user-timestamps-enabled")?,
            drop_truncate_table: values.parsed("drop-truncate-table-enabled")?,
            drop_keyspace: values.parsed("drop-keyspace-enabled")?,
            alter_table: values.parsed("alter-table-enabled")?,
            secondary_indexes: values.parsed("secondary-indexes-enabled")?,
            simple_strategy: values.parsed("simplestrategy-enabled")?,
            uncompressed_tables: values.parsed("uncompressed-tables-enabled")?,
            compact_tables: values.parsed("compact-tables-enabled")?,
            vector_type: values.parsed("vector-type-enabled")?,
            read_before_write_list_operations: values.parsed("read-before-write-list-operations-enabled")?,
            zero_ttl_on_twcs: values.parsed("zero-ttl-on-twcs-enabled")?,
            zero_ttl_on_twcs_warned: values.parsed("zero-ttl-on-twcs-warned")?,
        },
    })
}

/// Consistency levels with commas between.
fn levels(values: &Values, setting: &'static str) -> Result<Names, ConfigError> {
    let names: Names = values.parsed(setting)?;
    let is_level = |name: &&String| Consistency::ALL.iter().any(|level| level.name() == name.as_str());
    match names.0.iter().find(|name| !is_level(name)) {
        None => Ok(names),
        Some(unknown) => Err(values.wrong(
            setting,
            unknown,
            "must be consistency levels with commas between, as in ALL,EACH_QUORUM",
        )),
    }
}

/// What the profile `cosmos` takes strictly: each value of the setting, or several with commas between.
fn strict(values: &Values) -> Result<Strict, ConfigError> {
    let all = values.all("cosmos-strict").iter().flat_map(|value| value.split(','));
    Strict::of(all.map(str::trim).filter(|name| !name.is_empty())).map_err(|unknown| {
        values.wrong(
            "cosmos-strict",
            &unknown,
            format!("one of {}", Strict::NAMES.join(", ")),
        )
    })
}

fn tls(values: &Values, profile: Profile) -> Result<Option<TlsOptions>, ConfigError> {
    let listen = values.addresses("tls-listen")?;
    match (
        listen.is_empty(),
        values.text("tls-certificate"),
        values.text("tls-key"),
    ) {
        (true, None, None) => Ok(None),
        (false, Some(certificate), Some(key)) => Ok(Some(TlsOptions {
            listen,
            identity: TlsIdentity::Files {
                certificate: certificate.into(),
                key: key.into(),
            },
        })),
        (false, None, None) if profile.is_cosmos() => Ok(Some(TlsOptions {
            listen,
            identity: TlsIdentity::SelfMade,
        })),
        _ => Err(ConfigError::Together(
            "tls-listen, tls-certificate and tls-key go together".into(),
        )),
    }
}

fn credentials(values: &Values, profile: Profile) -> Result<Option<Credentials>, ConfigError> {
    if profile.is_cosmos() {
        let account = values.text("account").unwrap_or_default();
        let key = values.text("account-key");
        if account.is_empty() || key.is_some_and(str::is_empty) {
            return Err(ConfigError::Together(
                "neither account nor account-key may be empty".into(),
            ));
        }
        if values.text("user").is_some() {
            return Err(ConfigError::Together(
                "the profile cosmos has account and account-key instead of user and password-file".into(),
            ));
        }
        // Without a key the server makes one when it starts.
        return Ok(key.map(|key| Credentials {
            user: account.to_owned(),
            password: key.to_owned(),
        }));
    }
    match (values.text("user"), values.text("password-file")) {
        (None, None) => Ok(None),
        (Some(user), Some(file)) => {
            let text = read(Path::new(file))?;
            let password = text.lines().next().unwrap_or_default();
            if user.is_empty() || password.is_empty() {
                return Err(ConfigError::Together("neither user nor password may be empty".into()));
            }
            Ok(Some(Credentials {
                user: user.to_owned(),
                password: password.to_owned(),
            }))
        }
        _ => Err(ConfigError::Together("user and password-file go together".into())),
    }
}

/// Whoever can reach an address without a login can do everything.
fn refuse_open_network(server: &Options, allowed: bool) -> Result<(), ConfigError> {
    // In the profile cosmos everybody logs in, if need be with a key that the server has made.
    if allowed || server.credentials.is_some() || server.profile.is_cosmos() {
        return Ok(());
    }
    let tls = server.tls.iter().flat_map(|tls| &tls.listen);
    match server
        .listen
        .iter()
        .chain(tls)
        .find(|address| !address.ip().is_loopback())
    {
        None => Ok(()),
        Some(address) => Err(ConfigError::Together(format!(
            "{address} can be reached from other machines and nobody would have to log in: set user and password-file, or \
             allow-unauthenticated-network"
        ))),
    }
}

/// Figures tell what tables there are, and nobody logs in to see them.
fn refuse_open_admin(listen: Option<SocketAddr>, allowed: bool) -> Result<(), ConfigError> {
    match listen {
        Some(address) if !address.ip().is_loopback() && !allowed => Err(ConfigError::Together(format!(
            "admin-listen = {address} can be reached from other machines and nobody has to log in there: choose an address of this \
             machine's own, or set allow-unauthenticated-network"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(given: &[(&str, &str)], environment: &[(&str, &str)]) -> Values {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
            .collect();
        let find = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, v)| (*v).to_owned())
        };
        Values::gather(None, &given, find).unwrap()
    }

    #[test]
    fn the_nearer_origin_wins() {
        let values = gather(
            &[("rack", "r1")],
            &[("HELENUS_RACK", "r2"), ("HELENUS_DATA_CENTER", "d2"), ("HOME", "/h")],
        );
        let of = |name: &str| {
            let (_, values, origin) = values.iter().find(|(setting, ..)| setting.name == name).unwrap();
            (values.join(","), origin.clone())
        };
        assert_eq!(of("rack"), ("r1".into(), Origin::CommandLine));
        assert_eq!(
            of("data-center"),
            ("d2".into(), Origin::Environment("HELENUS_DATA_CENTER".into()))
        );
        assert_eq!(of("data"), ("file:/h/.local/share/helenus".into(), Origin::Default));
        let config = Config::new(&values).unwrap();
        assert_eq!(config.server.listen, ["127.0.0.1:9042".parse().unwrap()]);
        assert_eq!(config.server.limits, Limits::default());
        assert_eq!(config.guardrails, Guardrails::default());
        assert_eq!(config.limits, SizeLimits::default());
        assert_eq!(config.heat, HeatLimits::default());
    }

    #[test]
    fn limits_follow_the_profile_and_are_scaled() {
        let cosmos = Config::new(&gather(&[("profile", "cosmos"), ("listen", "127.0.0.1:0")], &[])).unwrap();
        assert_eq!(cosmos.limits.row_bytes_max, Some(2 << 20));
        assert_eq!(cosmos.limits.batch_operations_max, Some(100));
        assert_eq!(cosmos.page_bytes_max, 4 << 20);
        let given = [
            ("scale-limits", "1/1024"),
            ("row-bytes-max", "1048576"),
            ("logical-partition-bytes-max", "off"),
            ("partition-key-bytes-max", "7"),
            ("ttl-seconds-max", "60"),
        ];
        let scaled = Config::new(&gather(&given, &[])).unwrap();
        assert_eq!(scaled.limits.logical_partition_bytes_max, None);
        assert_eq!(scaled.limits.row_bytes_max, Some(1024));
        assert_eq!(scaled.limits.partition_key_bytes_max, Some(7));
        assert_eq!(scaled.limits.ttl_seconds_max, Some(60));
        assert_eq!((scaled.partitions.bytes_max, scaled.page_bytes_max), (30 << 20, 1024));
        assert!(Config::new(&gather(&[("row-bytes-max", "large")], &[])).is_err());
    }

    #[test]
    fn a_file_has_the_same_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("helenus.toml");
        std::fs::write(
            &path,
            "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nbody_bytes_max = 100\n",
        )
        .unwrap();
        let values = Values::gather(Some(&path), &BTreeMap::new(), |_| None).unwrap();
        let config = Config::new(&values).unwrap();
        assert_eq!(
            (config.server.listen.len(), config.server.limits.body_bytes_max),
            (2, 100)
        );
        std::fs::write(&path, "lisen = 3").unwrap();
        let error = Values::gather(Some(&path), &BTreeMap::new(), |_| None).unwrap_err();
        assert!(
            error.to_string().ends_with("lisen: there is no such setting"),
            "{error}"
        );
    }

    #[test]
    fn the_network_is_not_served_without_a_login() {
        let error = Config::new(&gather(&[("listen", "0.0.0.0:9042")], &[])).unwrap_err();
        assert!(error.to_string().contains("allow-unauthenticated-network"));
        assert!(
            Config::new(&gather(
                &[("listen", "0.0.0.0:9042"), ("allow-unauthenticated-network", "true")],
                &[]
            ))
            .is_ok()
        );
        let error = Config::new(&gather(&[("admin-listen", "0.0.0.0:9142")], &[])).unwrap_err();
        assert!(error.to_string().contains("admin-listen"));
        let config = Config::new(&gather(&[("admin-listen", "127.0.0.1:9142")], &[])).unwrap();
        assert_eq!(config.admin_listen, Some("127.0.0.1:9142".parse().unwrap()));
        assert_eq!(Config::new(&gather(&[], &[])).unwrap().admin_listen, None);
    }

    #[test]
    fn what_needs_metering_is_refused_without_it() {
        let without = |name: &'static str, value: &'static str| {
            Config::new(&gather(&[("metering", "false"), (name, value)], &[])).map_err(|error| error.to_string())
        };
        let config = without("request-charge-payload", "never").unwrap();
        assert!(!config.throughput.is_metered && config.heat_check_interval.is_zero());
        assert_eq!(config.charge_payload, ChargePayload::Never);
        for (name, value) in [
            ("profile", "cosmos"),
            ("request-charge-payload", "asked"),
            ("burst-capacity", "true"),
            ("server-side-retry", "true"),
        ] {
            let error = without(name, value).unwrap_err();
            assert!(
                error.starts_with(name) && error.ends_with("needs metering = true"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = Config::new(&gather(&[], &[("HELENUS_CONNECTIONS_MAX", "many")])).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("connections-max = \"many\" (environment HELENUS_CONNECTIONS_MAX): ")
        );
        assert!(Config::new(&gather(&[("user", "u")], &[])).is_err());
        assert!(Config::new(&gather(&[("tls-key", "k")], &[])).is_err());
    }
}
