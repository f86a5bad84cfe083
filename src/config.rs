//! Settings: one table of all of them, the origin of each value, and their meaning.
//!
//! A value comes from the command line, else from the environment (`HELENUS_` and the name in capitals), else from the
//! configuration file (TOML, with the same names as keys), else from the default. `helenus settings` prints the
//! resulting values with their origins.

mod access;
mod amounts;
mod audit;
mod audit_settings;
mod bucket_settings;
mod cidr_groups;
mod cidr_settings;
mod fleet;
mod fleet_settings;
mod memory;
mod memory_settings;
mod nearest;
mod setting;
mod settings;
mod shape_settings;
mod tables;
mod tables_settings;
mod values;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::access::{credentials, password_cost, refuse_open_admin, refuse_open_network, refuse_plain_text_login, tls};
use self::amounts::{
    REQUEST_LOG_MAX, call_limits, guardrails, limits, page_bytes_max, prices, scale, size_limits, throughput,
};
pub use self::fleet::FleetOptions;
pub use self::nearest::nearest;
pub use self::setting::Setting;
pub use self::settings::{SECRETS, SETTINGS};
use self::values::read;
pub use self::values::{ConfigError, Origin, Values, variable};
use crate::server::audit::AuditOptions;
use crate::server::tables::keys::TablesOptions;
use crate::server::{ChargePayload, Options};
use helenus_base::metrics::BucketPrices;
use helenus_engine::engine::{ClockRules, PartitionLimits, SizeLimits, ThroughputRules};
use helenus_engine::partition::LoadLimits;
use helenus_engine::partition::faults::Plan;
use helenus_engine::partition::nodes::NODES_MAX;
use helenus_engine::throughput::{Coefficients, RequestUnits};
use helenus_schema::guardrails::Guardrails;
use helenus_schema::profile::Profile;
use helenus_schema::profile::{Account, Strict};
use helenus_schema::roles::CidrGroups;
use helenus_storage::storage::BucketCache;
use helenus_storage::storage::bucket::Reach;
use helenus_storage::storage::{Durability, Error, Url};
use helenus_types::functions::CallLimits;

/// The format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// The settings as typed values.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URL of the data.
    pub data: String,
    /// When a write is acknowledged.
    pub durability: String,
    /// How a bucket is reached.
    pub reach: Reach,
    /// Where parts of a bucket's tables are kept on local disk; `None` means nowhere.
    pub bucket_cache: Option<BucketCache>,
    /// How long a dropped store is kept in a bucket.
    pub bucket_removal_delay: Duration,
    /// Folder of the socket for operators if the data is in no directory. `None` means that there is no socket then.
    pub operator_folder: Option<PathBuf>,
    /// What requests to a bucket cost.
    pub bucket_prices: BucketPrices,
    /// Listening, logins, TLS, limits.
    pub server: Options,
    /// Interval of the check for a changed certificate; zero means only on request.
    pub tls_reload_interval: Duration,
    /// The address of the admin port. `None` means it is off.
    pub admin_listen: Option<SocketAddr>,
    /// How tables are served. `None` means they are not.
    pub tables: Option<TablesOptions>,
    /// How this server takes part in a fleet. `None` means that it is alone.
    pub fleet: Option<FleetOptions>,
    /// The token that changes through the admin port need. `None` means the server generates it.
    pub admin_token: Option<String>,
    /// Whether the admin port shows partition keys.
    pub admin_show_keys: bool,
    /// CQL that is executed before the server answers, on data without user keyspaces. `None` means no file.
    pub init: Option<PathBuf>,
    /// The address that clients receive. `None` means the first listening address.
    pub broadcast_address: Option<IpAddr>,
    /// Shown to clients.
    pub cluster_name: String,
    /// Shown to clients.
    pub data_center: String,
    /// Shown to clients.
    pub rack: String,
    /// Most bytes of the row cache.
    pub row_cache_bytes_max: usize,
    /// Most bytes of the absence filter.
    pub key_filter_bytes_max: usize,
    /// Most bytes of the block cache.
    pub block_cache_bytes_max: usize,
    /// Most bytes of a memtable. `None` means the engine's own bound.
    pub memtable_bytes_max: Option<u64>,
    /// Stores over which tables are spread; one means the main store alone. `None`: those that there are, or the default of new data.
    pub stores: Option<u8>,
    /// Most stores of lifted physical partitions.
    pub stores_max: usize,
    /// Disk space kept free for statements that free space, in bytes; 0 means none.
    pub disk_reserve_bytes: u64,
    /// Whether missing data of a used store is started afresh.
    pub create: bool,
    /// Whether data that was written with the other profile is opened, and takes this one.
    pub change_profile: bool,
    /// Interval between sweeps of expired and deleted data; zero means never.
    pub sweep_interval: Duration,
    /// The reaction to a wall clock that jumps ahead.
    pub clock_rules: ClockRules,
    /// The compatibility profile.
    pub profile: Profile,
    /// The user's name in the profile `cosmos`.
    pub account_name: String,
    /// The consistency of that account, and what it refuses.
    pub account: Account,
    /// Thresholds of warnings and refusals.
    pub guardrails: Guardrails,
    /// The prices of operations, in request units.
    pub prices: Coefficients,
    /// Limits of sizes; bytes are scaled already.
    pub limits: SizeLimits,
    /// Limits of the bodies of user functions.
    pub call_limits: CallLimits,
    /// Bytes after which a page ends; scaled already.
    pub page_bytes_max: usize,
    /// Most statements in the request log.
    pub request_log_max: usize,
    /// When responses contain the charge of their requests.
    pub charge_payload: ChargePayload,
    /// When physical partitions are split and merged; bytes are scaled already.
    pub partitions: PartitionLimits,
    /// How throughput is enforced.
    pub throughput: ThroughputRules,
    /// Interval of the check of physical partitions' sizes; zero means never.
    pub partition_check_interval: Duration,
    /// When the load of a physical partition is too high; scaled already.
    pub heat: LoadLimits,
    /// Interval of the check of their load; zero means never.
    pub heat_check_interval: Duration,
    /// The fault plan at the start. `None` means no faults.
    pub fault_plan: Option<Plan>,
    /// Server threads; 0 means one per core.
    pub threads: usize,
    /// The filter of the log.
    pub log: String,
    /// The format of the log.
    pub log_format: LogFormat,
    /// Rounds of hashing of new passwords of roles, as a power of two.
    pub password_cost: u32,
    /// Groups of addresses for `ACCESS FROM CIDRS`. `None` means addresses are not checked.
    pub cidr_groups: Option<CidrGroups>,
    /// The audit log. `None` means there is none.
    pub audit: Option<AuditOptions>,
    /// File descriptor that receives the address.
    pub ready_fd: Option<u32>,
    /// File that receives the address.
    pub ready_file: Option<PathBuf>,
    /// File that receives the record of the server; `-` is standard output.
    pub ready_json: Option<PathBuf>,
    /// Whether the server ends at the end of its standard input.
    pub exit_with_stdin: bool,
    /// All effective settings, by name; several values with commas between.
    pub settings: Vec<(String, String)>,
}

impl Config {
    /// Interprets the values. Reads the password file.
    ///
    /// # Errors
    /// A value is invalid, or settings contradict each other.
    #[expect(clippy::too_many_lines, reason = "one field for each setting")]
    pub fn new(values: &Values) -> Result<Self, ConfigError> {
        let profile: Profile = values.parsed("profile")?;
        // Parsed again when the data is opened; parsed here so that every verb refuses what a server would.
        data_url(values)?;
        values.parsed::<Durability>("durability")?;
        let is_metered = is_metered(values)?;
        let server = server(values, profile)?;
        let admin_listen = values.admin_listen()?;
        refuse_open_admin(admin_listen, values.parsed("allow-unauthenticated-network")?)?;
        Ok(Self {
            data: values.text("data").unwrap_or_default().to_owned(),
            durability: values.text("durability").unwrap_or_default().to_owned(),
            reach: reach(values)?,
            bucket_cache: bucket_cache(values)?,
            bucket_removal_delay: Duration::from_secs(values.parsed::<u32>("bucket-removal-delay-seconds")?.into()),
            operator_folder: values.text("operator-folder").map(PathBuf::from),
            bucket_prices: values.parsed("bucket-prices")?,
            cidr_groups: cidr_groups::cidr_groups(values, &server)?,
            server,
            password_cost: password_cost(values)?,
            audit: audit::audit(values)?,
            admin_listen,
            tables: tables::tables(values)?,
            fleet: fleet::fleet(values)?,
            admin_token: values.text("admin-token").map(str::to_owned),
            admin_show_keys: values.parsed("admin-show-keys")?,
            init: values.text("init").map(PathBuf::from),
            tls_reload_interval: values.seconds("tls-reload-seconds")?,
            broadcast_address: values.optional("broadcast-address")?,
            cluster_name: values.name("cluster-name")?,
            data_center: values.name("data-center")?,
            rack: values.name("rack")?,
            row_cache_bytes_max: values.parsed("row-cache-bytes-max")?,
            key_filter_bytes_max: values.parsed("key-filter-bytes-max")?,
            block_cache_bytes_max: values.parsed("block-cache-bytes-max")?,
            memtable_bytes_max: values.memory()?.map(memory::memtable_bytes_max),
            stores: values.optional_within("stores", 1..=u8::MAX)?,
            stores_max: values.parsed("stores-max")?,
            disk_reserve_bytes: values.parsed("disk-reserve-bytes")?,
            create: values.parsed("create")?,
            change_profile: values.parsed("change-profile")?,
            sweep_interval: values.seconds("sweep-seconds")?,
            clock_rules: ClockRules {
                jump_max: values.seconds("clock-jump-seconds-max")?,
                is_confirmed: values.parsed("confirm-clock")?,
            },
            profile,
            account_name: values.text("account").unwrap_or_default().to_owned(),
            account: Account {
                consistency: values.parsed("account-consistency")?,
                strict: strict(values)?,
            },
            guardrails: guardrails(values)?,
            prices: prices(values)?,
            limits: size_limits(values)?,
            call_limits: call_limits(values)?,
            page_bytes_max: page_bytes_max(values)?,
            request_log_max: values.within("request-log-max", 0..=REQUEST_LOG_MAX)?,
            charge_payload: charge_payload(values, is_metered)?,
            partitions: PartitionLimits {
                bytes_max: scale(values)?.of(values.parsed("partition-bytes-max")?),
                merges: values.parsed("partition-merge")?,
            },
            throughput: throughput(values)?,
            partition_check_interval: values.seconds("partition-check-seconds")?,
            heat: load_limits(values)?,
            heat_check_interval: if is_metered {
                values.seconds("heat-check-seconds")?
            } else {
                Duration::ZERO
            },
            fault_plan: fault_plan(values)?,
            threads: threads(values)?,
            log: log(values)?,
            log_format: log_format(values)?,
            ready_fd: values.optional("ready-fd")?,
            ready_file: values.text("ready-file").map(PathBuf::from),
            ready_json: values.text("ready-json").map(PathBuf::from),
            exit_with_stdin: values.parsed("exit-with-stdin")?,
            settings: shown(values),
        })
    }
}

/// How clients are served. Refused if the network could reach it without a login, or read a password.
fn server(values: &Values, profile: Profile) -> Result<Options, ConfigError> {
    let server = Options {
        listen: values.addresses("listen")?,
        tls: tls(values, profile)?,
        credentials: credentials(values, profile)?,
        limits: limits(values)?,
        nodes: nodes(values)?,
        profile,
        is_port_shared: false,
        login_key: 0,
    };
    refuse_open_network(&server, values.parsed("allow-unauthenticated-network")?)?;
    refuse_plain_text_login(&server, values.parsed("allow-plain-text-login")?)?;
    Ok(server)
}

/// When the load of a physical partition is too high.
fn load_limits(values: &Values) -> Result<LoadLimits, ConfigError> {
    Ok(LoadLimits {
        units_per_second_max: RequestUnits::whole(scale(values)?.of(values.parsed("partition-units-max")?)),
        hot_percent: values.within("partition-hot-percent", 1..=100)?,
        checks: values.parsed("partition-hot-checks")?,
    })
}

/// All effective values. A reader of them must not learn a key.
fn shown(values: &Values) -> Vec<(String, String)> {
    let shown = values.iter().map(|(setting, values, _)| {
        let value = if is_hidden(setting, values) {
            "***".to_owned()
        } else {
            values.join(",")
        };
        (setting.name.into(), value)
    });
    shown.collect()
}

/// Whether the values of a setting must not be shown: a secret, or a URL that may contain one and is refused when it is
/// used.
#[must_use]
pub fn is_hidden(setting: &Setting, values: &[String]) -> bool {
    let may_hold_one = |value: &String| value.contains("://") && value.contains(['@', '?']);
    let is_url = setting.value == "URL";
    !values.is_empty() && (SECRETS.contains(&setting.name) || is_url && values.iter().any(may_hold_one))
}

/// Checks the URL of the data.
fn data_url(values: &Values) -> Result<(), ConfigError> {
    // Before anything prints it: the URL of a bucket may contain a key. This refusal does not repeat the URL.
    if let Some(Err(error @ Error::Bucket { .. })) = values.text("data").map(str::parse::<Url>) {
        return Err(ConfigError::Together(error.to_string()));
    }
    values.parsed::<Url>("data").map(drop)
}

/// Leases of a bucket, in ms: shorter ones would expire between two requests to a cloud, longer ones delay a start
/// after a crash.
const LEASE_MILLIS: std::ops::RangeInclusive<u64> = 500..=600_000;

/// How a bucket is reached.
fn reach(values: &Values) -> Result<Reach, ConfigError> {
    Ok(Reach {
        endpoint: values.text("bucket-endpoint").map(str::to_owned),
        region: values.text("bucket-region").map(str::to_owned),
        is_virtual_hosted: !values.parsed::<bool>("bucket-path-style")?,
        encryption: values.parsed("bucket-encryption")?,
        ca_file: values.text("bucket-ca-file").map(PathBuf::from),
        lease: Some(lease(values)?),
        name: String::new(),
        address: String::new(),
        draw: 0,
        heard: None,
    })
}

/// The local cache of a bucket.
fn bucket_cache(values: &Values) -> Result<Option<BucketCache>, ConfigError> {
    let bytes_max = values.parsed("bucket-cache-bytes-max")?;
    Ok(values.text("bucket-cache").map(|folder| BucketCache {
        folder: PathBuf::from(folder),
        bytes_max,
    }))
}

/// The duration of a lease of a bucket.
fn lease(values: &Values) -> Result<Duration, ConfigError> {
    let millis: u64 = values.parsed("bucket-lease")?;
    if !LEASE_MILLIS.contains(&millis) {
        let what = format!("expected {} to {}", LEASE_MILLIS.start(), LEASE_MILLIS.end());
        return Err(values.wrong("bucket-lease", &millis.to_string(), what));
    }
    Ok(Duration::from_millis(millis))
}

/// Whether statements are charged. Refused if another setting requires charges.
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

/// Most server threads. Each has a stack of 16 MiB of address space; more threads than cores bring no gain.
const THREADS_MAX: usize = 1024;

fn threads(values: &Values) -> Result<usize, ConfigError> {
    let threads: usize = values.parsed("threads")?;
    if threads > THREADS_MAX {
        let what = format!("expected at most {THREADS_MAX}, or 0 for one for each core");
        return Err(values.wrong("threads", &threads.to_string(), what));
    }
    Ok(threads)
}

/// The filter of the log. A single word must be a level: the filter's parser takes any other word for the name of a
/// module, and would then log nothing.
fn log(values: &Values) -> Result<String, ConfigError> {
    let text = values.text("log").unwrap_or_default();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let is_level = word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
        let is_span = word.contains(['=', '[']);
        if !is_level && !is_span {
            let what = format!("{word} is no level: expected off, error, warn, info, debug or trace, or {word}=LEVEL");
            return Err(values.wrong("log", text, what));
        }
    }
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(text) {
        let what = format!("expected LEVEL or TARGET=LEVEL with commas between, such as info,helenus=debug: {error}");
        return Err(values.wrong("log", text, what));
    }
    Ok(text.to_owned())
}

/// The number of virtual nodes.
fn nodes(values: &Values) -> Result<usize, ConfigError> {
    let nodes: usize = values.parsed("nodes")?;
    if !(1..=NODES_MAX).contains(&nodes) {
        return Err(values.wrong("nodes", &nodes.to_string(), "1 to 6"));
    }
    if nodes > 1 && values.text("broadcast-address").is_some() {
        return Err(ConfigError::Together(
            "with several nodes each node has an address of its own: broadcast-address does not go with it".into(),
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
            "a fault-plan in which nodes go down needs nodes = 2 to 6; replica-down works with one".into(),
        ));
    }
    Ok(Some(plan))
}

fn log_format(values: &Values) -> Result<LogFormat, ConfigError> {
    match values.text("log-format") {
        Some("human") => Ok(LogFormat::Human),
        Some("json") => Ok(LogFormat::Json),
        Some("auto") | None => Ok(LogFormat::Auto),
        Some(other) => Err(values.wrong("log-format", other, "one of human, json, auto")),
    }
}

/// When responses contain charges: never if there are none.
fn charge_payload(values: &Values, is_metered: bool) -> Result<ChargePayload, ConfigError> {
    if !is_metered {
        return Ok(ChargePayload::Never);
    }
    let Some(text) = values.text("request-charge-payload") else {
        return Ok(match values.parsed("profile")? {
            Profile::Cosmos => ChargePayload::Always,
            Profile::Cassandra => ChargePayload::Asked,
        });
    };
    let named = ChargePayload::ALL.into_iter().find(|payload| payload.name() == text);
    named.ok_or_else(|| values.wrong("request-charge-payload", text, "one of always, asked, never"))
}

/// The parts that the profile `cosmos` handles strictly: each value of the setting, or several with commas between.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::server::Limits;

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
        assert_eq!(config.call_limits, CallLimits::default());
        assert_eq!(config.heat, LoadLimits::default());
    }

    #[test]
    fn calls_of_user_functions_have_limits_of_their_own() {
        let given = [
            ("user-function-steps-max", "7"),
            ("user-function-bytes-max", "8"),
            ("user-function-request-steps-max", "9"),
        ];
        let wanted = CallLimits {
            steps_max: 7,
            bytes_max: 8,
            request_steps_max: 9,
        };
        assert_eq!(Config::new(&gather(&given, &[])).unwrap().call_limits, wanted);
    }

    #[test]
    fn limits_follow_the_profile_and_are_scaled() {
        let cosmos = Config::new(&gather(&[("profile", "cosmos"), ("listen", "127.0.0.1:0")], &[])).unwrap();
        assert_eq!(cosmos.limits.row_bytes_max, Some(2 << 20));
        assert_eq!(cosmos.limits.merged_row_bytes_max, None);
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
        assert_eq!(scaled.limits.merged_row_bytes_max, Some(1024));
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
            "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nbody_bytes_max = 2000\n",
        )
        .unwrap();
        let values = Values::gather(Some(&path), &BTreeMap::new(), |_| None).unwrap();
        let config = Config::new(&values).unwrap();
        assert_eq!(
            (config.server.listen.len(), config.server.limits.body_bytes_max),
            (2, 2000)
        );
        std::fs::write(&path, "lisen = 3").unwrap();
        let error = Values::gather(Some(&path), &BTreeMap::new(), |_| None).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("lisen: there is no such setting; did you mean listen?"),
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
    fn localhost_needs_no_resolver() {
        for name in ["localhost:7", "LOCALHOST:7"] {
            let values = gather(&[("listen", name)], &[]);
            assert_eq!(values.addresses("listen").unwrap(), ["127.0.0.1:7".parse().unwrap()]);
        }
    }

    #[test]
    fn a_credential_in_a_bucket_url_is_refused_and_not_shown() {
        for url in ["s3://KEY:SECRET@bucket/p", "az://account/container/p?sig=SECRET"] {
            let values = gather(&[("data", url)], &[]);
            let text = Config::new(&values).unwrap_err().to_string();
            assert!(
                text.contains("credentials do not belong") && !text.contains("SECRET"),
                "{text}"
            );
            let (setting, shown, _) = values.iter().find(|(setting, ..)| setting.name == "data").unwrap();
            assert!(is_hidden(setting, shown));
        }
        let config = Config::new(&gather(
            &[("data", "s3://bucket/p"), ("bucket-endpoint", "http://K:SECRET@host:1")],
            &[],
        ));
        assert!(!format!("{:?}", config.unwrap().settings).contains("SECRET"));
    }

    #[test]
    fn a_number_outside_its_bounds_is_refused() {
        for (name, value, expected) in [
            ("connections-max", "0", "expected a number of 1 or more"),
            ("connections-per-address-max", "0", "expected a number of 1 or more"),
            ("login-seconds", "0", "expected a number of 1 or more"),
            ("body-bytes-max", "0", "expected a number from 1024 to 268435456"),
            (
                "body-bytes-max",
                "268435457",
                "expected a number from 1024 to 268435456",
            ),
            ("stores", "0", "expected a number from 1 to 255"),
            ("partition-hot-percent", "0", "expected a number from 1 to 100"),
            ("partition-hot-percent", "101", "expected a number from 1 to 100"),
            ("request-log-max", "50001", "expected a number from 0 to 50000"),
            ("data-center", "", "expected a name, not an empty text"),
            ("rack", " ", "expected a name, not an empty text"),
            ("cluster-name", "", "expected a name, not an empty text"),
        ] {
            let text = Config::new(&gather(&[(name, value)], &[])).unwrap_err().to_string();
            assert_eq!(text, format!("{name} = {value:?} (command line): {expected}"));
        }
        for (name, value) in [
            ("body-bytes-max", "268435456"),
            ("request-log-max", "0"),
            ("stores", "255"),
        ] {
            Config::new(&gather(&[(name, value)], &[])).unwrap();
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
