//! The table of settings: names, defaults, help.

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As on the command line, without its dashes, and in the file.
    pub name: &'static str,
    /// What kind of value: for help.
    pub value: &'static str,
    /// The default, as text; `None`: not set, or computed (said in `help`).
    pub default: Option<&'static str>,
    /// May be given several times.
    pub repeatable: bool,
    /// What it does.
    pub help: &'static str,
}

const fn setting(
    name: &'static str,
    value: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        value,
        default,
        repeatable: false,
        help,
    }
}

/// Every setting. The only place to add one, besides the field of [`super::Config`] that it ends up in.
pub const SETTINGS: &[Setting] = &[
    setting(
        "data",
        "URL",
        None,
        "Where data is kept: memory:, file:DIR, slate+file:DIR, slate+memory: [default: file: in the user's data directory]",
    ),
    setting(
        "profile",
        "PROFILE",
        Some("cassandra"),
        "Whom to behave as: cassandra, or cosmos (Azure Cosmos DB for Apache Cassandra: its rules, texts and budgets)",
    ),
    setting(
        "account",
        "NAME",
        Some("helenus"),
        "The user who logs in, in the profile cosmos",
    ),
    setting(
        "account-key",
        "KEY",
        None,
        "The account's password, in the profile cosmos [default: made at the first start, printed, kept beside the data]",
    ),
    setting(
        "account-consistency",
        "LEVEL",
        Some("session"),
        "The account's consistency, in the profile cosmos: strong, bounded-staleness, session, consistent-prefix, eventual",
    ),
    setting(
        "region",
        "NAME",
        Some("West US"),
        "The region, in the profile cosmos: the data center's name unless data-center is set",
    ),
    Setting {
        name: "cosmos-strict",
        value: "WHAT",
        default: None,
        repeatable: true,
        help: "What to refuse in the profile cosmos where sources about it contradict each other or are old: alter, clauses, \
               consistency, deletes, duration, functions, or all",
    },
    Setting {
        name: "listen",
        value: "ADDRESS:PORT",
        default: Some("127.0.0.1:9042"),
        repeatable: true,
        help: "Where CQL is served; port 0 takes a free one",
    },
    setting(
        "durability",
        "MODE",
        Some("group"),
        "When a write is acknowledged: group (synced to disk), periodic:MS, os",
    ),
    setting("user", "NAME", None, "The user who must log in; needs a password file"),
    setting(
        "password-file",
        "FILE",
        None,
        "File whose first line is the user's password",
    ),
    setting(
        "allow-unauthenticated-network",
        "BOOL",
        Some("false"),
        "Serve other addresses than this machine's own without a login",
    ),
    Setting {
        name: "tls-listen",
        value: "ADDRESS:PORT",
        default: None,
        repeatable: true,
        help: "Where CQL is served over TLS; needs certificate and key",
    },
    setting(
        "tls-certificate",
        "FILE",
        None,
        "PEM file with the certificate and those that signed it",
    ),
    setting("tls-key", "FILE", None, "PEM file with the certificate's key"),
    setting(
        "admin-listen",
        "ADDRESS:PORT",
        None,
        "Where figures are served over HTTP: /metrics, /readyz, /api/status, …; nobody logs in there, nothing can be changed",
    ),
    setting(
        "cluster-name",
        "NAME",
        Some("Helenus"),
        "The cluster's name, as clients see it",
    ),
    setting(
        "data-center",
        "NAME",
        Some("datacenter1"),
        "The data center's name, as clients see it",
    ),
    setting(
        "broadcast-address",
        "ADDRESS",
        None,
        "What clients are told to connect to; the first address listened on unless given",
    ),
    setting(
        "nodes",
        "COUNT",
        Some("1"),
        "Virtual nodes, 1 or 4: four have addresses one behind the other (127.0.0.1 to .4) and one port, each with one replica of everything",
    ),
    setting(
        "fault-plan",
        "FILE",
        None,
        "TOML file of what goes wrong on purpose: nodes down, delays, timeouts, …; see also POST /api/faults of the admin port",
    ),
    setting("rack", "NAME", Some("rack1"), "The rack's name, as clients see it"),
    setting(
        "sweep-seconds",
        "SECONDS",
        Some("600"),
        "Time between clean-ups of expired and deleted data; 0: never",
    ),
    setting(
        "partition-bytes-max",
        "BYTES",
        Some("32212254720"),
        "Bytes beyond which a physical partition is split in two",
    ),
    setting(
        "partition-check-seconds",
        "SECONDS",
        Some("60"),
        "Time between looks at the sizes of physical partitions; 0: never",
    ),
    setting(
        "partition-merge",
        "BOOL",
        Some("false"),
        "Merge neighbouring physical partitions that stay quiet and below a quarter of partition-bytes-max together",
    ),
    setting(
        "metering",
        "BOOL",
        Some("true"),
        "Charge statements. false, to see what that costs: no charges, heat, hot keys or request log; refused with what needs them (profile \
         cosmos, throughput of tables, request-charge-payload, burst-capacity, server-side-retry)",
    ),
    setting(
        "request-charge-payload",
        "WHEN",
        None,
        "When a result's custom payload tells its charge, as RequestCharge: always, asked (by a payload key of that name), never \
         [default: always with profile cosmos, else asked]",
    ),
    setting(
        "request-log-max",
        "COUNT",
        Some("1000"),
        "Statements kept in system_cosmos.request_log, up to 50000; 0: none",
    ),
    Setting {
        name: "request-units",
        value: "NAME=UNITS",
        default: None,
        repeatable: true,
        help: "What operations cost where the published prices do not suit: read, read-kib, write, write-kib, change, index, visit, \
               scan-kib, return-kib, metadata",
    },
    setting(
        "heat-check-seconds",
        "SECONDS",
        Some("10"),
        "Time between looks at what is asked of physical partitions; 0: never. What stays hot is split in the cassandra profile",
    ),
    setting(
        "partition-units-max",
        "UNITS",
        Some("10000"),
        "Request units a second that a physical partition of a table without throughput of its own may use",
    ),
    setting(
        "partition-hot-percent",
        "PERCENT",
        Some("80"),
        "Part of partition-units-max above which a physical partition is hot",
    ),
    setting(
        "partition-hot-checks",
        "COUNT",
        Some("6"),
        "Looks for which a physical partition must stay hot to be split where its load is halved",
    ),
    setting(
        "logical-partition-bytes-max",
        "BYTES",
        Some("21474836480"),
        "Bytes of one partition key's rows and index entries beyond which writes to it are refused; off: never",
    ),
    setting(
        "row-bytes-max",
        "BYTES",
        Some("auto"),
        "Most bytes of a row; off: any; auto: 2097152 in the cosmos profile, off otherwise",
    ),
    setting(
        "request-bytes-max",
        "BYTES",
        Some("auto"),
        "Most bytes that one request writes; off: any; auto: 2097152 in the cosmos profile, off otherwise",
    ),
    setting(
        "page-bytes-max",
        "BYTES",
        Some("auto"),
        "Bytes of rows after which a page ends; auto: 4194304 in the cosmos profile, 1048576 otherwise",
    ),
    setting(
        "batch-operations-max",
        "COUNT",
        Some("auto"),
        "Most statements of a batch; off: any; auto: 100 in the cosmos profile, off otherwise; not scaled",
    ),
    setting(
        "partition-key-bytes-max",
        "BYTES",
        Some("auto"),
        "Most bytes of a partition key; off: Cassandra's 65535; auto: 2048 in the cosmos profile, off otherwise; not scaled",
    ),
    setting(
        "ttl-seconds-max",
        "SECONDS",
        Some("off"),
        "Longest time to live of what is written; off: Cassandra's twenty years; not scaled",
    ),
    setting(
        "scale-limits",
        "FRACTION",
        Some("1"),
        "Multiplies limits of partitions (bytes and units), rows, requests and pages, so that tests reach them with little data: 1/1000 \
         makes 30 GB 30 MB",
    ),
    setting(
        "burst-capacity",
        "BOOL",
        Some("false"),
        "Let physical partitions below 3,000 RU/s save the request units of 300 seconds and spend them at up to 3,000 RU/s",
    ),
    setting(
        "server-side-retry",
        "BOOL",
        Some("false"),
        "Let statements wait up to 60 s for request units and then time out, instead of refusing them as overloaded",
    ),
    setting(
        "server-side-retry-waiting-max",
        "COUNT",
        Some("10000"),
        "Statements that wait for request units at once; those beyond are refused",
    ),
    setting(
        "row-cache-bytes-max",
        "BYTES",
        Some("67108864"),
        "Memory for rows that have been read",
    ),
    setting(
        "key-filter-bytes-max",
        "BYTES",
        Some("67108864"),
        "Memory to know new rows by",
    ),
    setting(
        "block-cache-bytes-max",
        "BYTES",
        Some("67108864"),
        "Memory for blocks of the store",
    ),
    setting(
        "body-bytes-max",
        "BYTES",
        Some("16777216"),
        "Most bytes of one request, up to 256 MiB",
    ),
    setting("connections-max", "COUNT", Some("8192"), "Most connections at once"),
    setting(
        "connections-per-address-max",
        "COUNT",
        Some("4096"),
        "Most connections at once from one address",
    ),
    setting(
        "in-flight-max",
        "COUNT",
        Some("1024"),
        "Requests in work at once on one connection",
    ),
    setting(
        "in-flight-bytes-total-max",
        "BYTES",
        Some("201326592"),
        "Bytes of requests in work at once, over all connections",
    ),
    setting(
        "login-seconds",
        "SECONDS",
        Some("10"),
        "Time from connecting to being logged in",
    ),
    setting(
        "idle-seconds",
        "SECONDS",
        Some("1800"),
        "How long a connection may be silent",
    ),
    setting(
        "slow-client-seconds",
        "SECONDS",
        Some("30"),
        "How long a client may leave its answers unread",
    ),
    setting(
        "drain-seconds",
        "SECONDS",
        Some("10"),
        "How long requests may take to finish when the server stops",
    ),
    setting("prepared-max", "COUNT", Some("10000"), "Prepared statements kept"),
    setting(
        "batch-size-thresholds",
        "WARN,FAIL",
        Some("5120,51200"),
        "Bytes of a batch of several partitions that are warned of, and refused; off, as below: never",
    ),
    setting(
        "unlogged-batch-across-partitions-thresholds",
        "WARN",
        Some("10"),
        "Partitions of an unlogged batch that are warned of",
    ),
    setting(
        "tombstone-thresholds",
        "WARN,FAIL",
        Some("1000,100000"),
        "Tombstones walked over by one read that are warned of, and refused",
    ),
    setting(
        "keyspaces-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Keyspaces that are warned of, and refused, when one is created",
    ),
    setting(
        "tables-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Tables that are warned of, and refused, when one is created",
    ),
    setting(
        "columns-per-table-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Columns of a table that are warned of, and refused",
    ),
    setting(
        "secondary-indexes-per-table-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Indexes of a table that are warned of, and refused",
    ),
    setting(
        "materialized-views-per-table-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Materialized views of a table that are warned of, and refused",
    ),
    setting(
        "fields-per-udt-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Fields of a user-defined type that are warned of, and refused",
    ),
    setting(
        "partition-keys-in-select-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Partition keys in one SELECT that are warned of, and refused",
    ),
    setting(
        "in-select-cartesian-product-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Combinations of INs in one SELECT that are warned of, and refused",
    ),
    setting(
        "page-size-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Rows of a page asked for that are warned of, and refused",
    ),
    setting(
        "items-per-collection-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Elements written to a collection at once that are warned of, and refused",
    ),
    setting(
        "collection-size-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Bytes written to a collection at once that are warned of, and refused",
    ),
    setting(
        "column-value-size-thresholds",
        "WARN,FAIL",
        Some("off"),
        "Bytes of a value written that are warned of, and refused",
    ),
    setting(
        "threads",
        "COUNT",
        Some("0"),
        "Threads that serve connections; 0: one for each core",
    ),
    setting(
        "log",
        "FILTER",
        Some("info"),
        "What is logged: error, warn, info, debug, or module=level,…",
    ),
    setting(
        "log-format",
        "FORMAT",
        Some("auto"),
        "human, json, or auto: human on a terminal",
    ),
    setting(
        "ready-fd",
        "NUMBER",
        None,
        "Open file to which ADDRESS:PORT is written once CQL is served",
    ),
    setting(
        "ready-file",
        "FILE",
        None,
        "File to which ADDRESS:PORT is written once CQL is served",
    ),
];
