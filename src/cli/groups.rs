//! The settings in help: the group of each, and the few that `-h` shows.

/// Settings that `-h` shows, with a short description.
pub(super) const COMMON: &[(&str, &str)] = &[
    ("data", "Where data is: memory:, file:DIR, slate+file:DIR"),
    ("profile", "cassandra, or cosmos (Azure Cosmos DB)"),
    ("listen", "Where CQL is served; port 0 takes a free one"),
    ("tls-listen", "Where CQL is served over TLS"),
    ("admin-listen", "Where health, metrics and JSON are served over HTTP"),
    ("init", "CQL to run on new data"),
    ("log", "What is logged: error, warn, info, debug"),
];

/// Group → its settings. Guardrails are recognized by the suffix of their names.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Data",
        &[
            "data",
            "durability",
            "create",
            "change-profile",
            "init",
            "sweep-seconds",
            "disk-reserve-bytes",
            "clock-jump-seconds-max",
            "confirm-clock",
            "stores",
            "stores-max",
            "memory",
            "row-cache-bytes-max",
            "key-filter-bytes-max",
            "block-cache-bytes-max",
        ],
    ),
    (
        "Bucket (experimental)",
        &[
            "bucket-endpoint",
            "bucket-region",
            "bucket-path-style",
            "bucket-encryption",
            "bucket-lease",
            "bucket-removal-delay-seconds",
            "bucket-prices",
            "bucket-ca-file",
            "bucket-cache",
            "bucket-cache-bytes-max",
            "operator-folder",
        ],
    ),
    (
        "Network",
        &[
            "listen",
            "broadcast-address",
            "allow-unauthenticated-network",
            "cluster-name",
            "data-center",
            "rack",
            "threads",
        ],
    ),
    (
        "Login and TLS",
        &[
            "login",
            "user",
            "password-file",
            "password-cost",
            "cidr-groups",
            "allow-plain-text-login",
            "tls-listen",
            "tls-certificate",
            "tls-key",
            "tls-client-ca",
            "tls-client-auth",
            "tls-reload-seconds",
            "login-seconds",
        ],
    ),
    (
        "Audit log",
        &[
            "audit-log",
            "audit-categories",
            "audit-file-bytes-max",
            "audit-files-max",
        ],
    ),
    (
        "Cosmos profile",
        &[
            "profile",
            "account",
            "account-key",
            "account-consistency",
            "region",
            "cosmos-strict",
        ],
    ),
    (
        "Tables",
        &[
            "tables-listen",
            "tables-account",
            "tables-dev",
            "tables-throttle",
            "tables-page-boundary",
            "tables-reload-seconds",
        ],
    ),
    ("Fleet", &["fleet-listen", "node"]),
    ("Admin port", &["admin-listen", "admin-token", "admin-show-keys"]),
    ("Faults and virtual nodes", &["nodes", "fault-plan"]),
    (
        "Partitions",
        &[
            "partition-bytes-max",
            "partition-check-seconds",
            "partition-merge",
            "heat-check-seconds",
            "partition-units-max",
            "partition-hot-percent",
            "partition-hot-checks",
            "split-delay-seconds",
        ],
    ),
    (
        "Request units",
        &[
            "metering",
            "request-charge-payload",
            "request-log-max",
            "request-units",
            "burst-capacity",
            "server-side-retry",
            "server-side-retry-waiting-max",
        ],
    ),
    (
        "Limits",
        &[
            "logical-partition-bytes-max",
            "row-bytes-max",
            "request-bytes-max",
            "page-bytes-max",
            "batch-operations-max",
            "partition-key-bytes-max",
            "ttl-seconds-max",
            "user-function-steps-max",
            "user-function-bytes-max",
            "user-function-request-steps-max",
            "scale-limits",
            "body-bytes-max",
            "connections-max",
            "connections-per-address-max",
            "in-flight-max",
            "in-flight-bytes-total-max",
            "connections-memory-bytes-max",
            "idle-seconds",
            "slow-client-seconds",
            "drain-seconds",
            "prepared-max",
        ],
    ),
    (
        "Logging and starting",
        &[
            "log",
            "log-format",
            "ready-fd",
            "ready-file",
            "ready-json",
            "exit-with-stdin",
            "config",
        ],
    ),
];

/// The heading of a setting in `--help`.
#[must_use]
pub(super) fn group(setting: &str) -> &'static str {
    let known = GROUPS.iter().find(|(_, names)| names.contains(&setting));
    let is_guardrail = ["-thresholds", "-enabled", "-warned", "-disallowed"]
        .iter()
        .any(|end| setting.ends_with(end));
    match known {
        Some((group, _)) => group,
        None if is_guardrail => "Guardrails",
        None => "Other settings",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;

    #[test]
    fn every_setting_has_a_group_and_every_name_is_a_setting() {
        for setting in SETTINGS {
            assert_ne!(group(setting.name), "Other settings", "give {} a group", setting.name);
        }
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter());
        for name in grouped.chain(COMMON.iter().map(|(name, _)| name)) {
            let is_known = *name == "config" || SETTINGS.iter().any(|setting| setting.name == *name);
            assert!(is_known, "{name} is no setting");
        }
    }
}
