//! `system_views.settings`: the effective configuration under our names. A setting that Cassandra has with the same
//! meaning also has its Cassandra name and the value as Cassandra 5.0.9 prints it. Cassandra's settings without a
//! counterpart here are absent.

use super::super::cells::Cells;
use super::super::view::{Sources, View};
use helenus_schema::schema::encode::text;

pub(super) const VIEW: View = View::of("system_views", "settings", |sources| {
    let own = sources.live.settings.iter();
    let own = own.map(|(name, value)| (name.clone(), Some(value.clone())));
    own.chain(of_cassandra(sources))
        .map(|(name, value)| {
            Cells::new()
                .set("name", text(&name))
                .set_if("value", value.as_deref().map(text))
        })
        .collect()
});

/// A name and its value; `None` is null.
type Shown = (String, Option<String>);

/// Guardrails on bytes, which Cassandra prints with a unit.
const OF_BYTES: [&str; 4] = ["batch-size", "collection-size", "column-value-size", "partition-size"];

/// Guardrails on durations, which Cassandra also prints with a unit.
const OF_SECONDS: [&str; 2] = ["maximum-timestamp", "minimum-timestamp"];

fn of_cassandra(sources: Sources<'_>) -> Vec<Shown> {
    let settings = sources.live.settings.iter();
    let mut shown: Vec<Shown> = settings.flat_map(|(name, value)| counterparts(name, value)).collect();
    // Without a server there is no configuration.
    if shown.is_empty() {
        return shown;
    }
    let node = sources.node;
    let mut add = |name: &str, value: String| shown.push((name.to_owned(), Some(value)));
    add("cluster_name", node.cluster_name.clone());
    add("listen_address", node.address.to_string());
    add("native_transport_port", node.native_port.to_string());
    add("num_tokens", node.tokens.len().to_string());
    add("partitioner", node.partitioner.clone());
    add("rpc_address", node.native_address.to_string());
    add("storage_port", node.port.to_string());
    let (authenticator, authorizer) = if sources.live.facts.login_required {
        ("PasswordAuthenticator", "CassandraAuthorizer")
    } else {
        ("AllowAllAuthenticator", "AllowAllAuthorizer")
    };
    for (name, class) in [
        ("authenticator", authenticator),
        ("authorizer", authorizer),
        ("role_manager", "CassandraRoleManager"),
    ] {
        add(name, class.to_owned());
        add(&format!("{name}.class_name"), class.to_owned());
    }
    // Features that this server lacks are off.
    for name in [
        "auto_snapshot",
        "cdc_enabled",
        "hinted_handoff_enabled",
        "incremental_backups",
    ] {
        add(name, "false".to_owned());
    }
    shown
}

/// Cassandra's names for one of our settings, with their values. Guardrails have hyphens here and underscores there.
fn counterparts(name: &str, value: &str) -> Vec<Shown> {
    let underscored = || name.replace('-', "_");
    if let Some(guardrail) = name.strip_suffix("-thresholds") {
        return thresholds(guardrail, value);
    }
    if name.ends_with("-levels-warned") || name.ends_with("-properties-warned") || name.ends_with("-disallowed") {
        let names: Vec<&str> = value.split(',').filter(|name| !name.is_empty()).collect();
        return vec![(underscored(), Some(format!("[{}]", names.join(", "))))];
    }
    if name.ends_with("-enabled") || name == "zero-ttl-on-twcs-warned" {
        return vec![(underscored(), Some(value.to_owned()))];
    }
    let number = value.parse::<u64>().ok();
    match (name, number) {
        ("body-bytes-max", Some(bytes)) => {
            vec![("native_transport_max_frame_size".to_owned(), Some(size(bytes)))]
        }
        ("connections-per-address-max", Some(count)) => vec![(
            "native_transport_max_concurrent_connections_per_ip".to_owned(),
            Some(count.to_string()),
        )],
        ("idle-seconds", Some(seconds)) => vec![(
            "native_transport_idle_timeout".to_owned(),
            Some(format!("{}ms", seconds.saturating_mul(1000))),
        )],
        ("in-flight-bytes-total-max", Some(bytes)) => vec![(
            "native_transport_max_request_data_in_flight".to_owned(),
            Some(format!("{bytes}B")),
        )],
        _ => Vec::new(),
    }
}

/// A guardrail's warn and fail thresholds.
fn thresholds(guardrail: &str, value: &str) -> Vec<Shown> {
    let mut amounts = value.split(',').map(|amount| amount.trim().parse::<u64>().ok());
    let (warn, fail) = (amounts.next().flatten(), amounts.next().flatten());
    let name = guardrail.replace('-', "_");
    let printed = |amount: Option<u64>| {
        if OF_BYTES.contains(&guardrail) {
            amount.map(size)
        } else if OF_SECONDS.contains(&guardrail) {
            amount.map(|seconds| format!("{seconds}s"))
        } else {
            // Cassandra prints this for a disabled guardrail on a number.
            Some(amount.map_or("-1".to_owned(), |amount| amount.to_string()))
        }
    };
    let mut shown = vec![(format!("{name}_warn_threshold"), printed(warn))];
    match guardrail {
        "unlogged-batch-across-partitions" => {}
        // Older than guardrails.
        "tombstone" => shown.push((format!("{name}_failure_threshold"), printed(fail))),
        _ => shown.push((format!("{name}_fail_threshold"), printed(fail))),
    }
    shown
}

/// Bytes in the largest unit that divides them.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(MIB) => format!("{}MiB", bytes / MIB),
        bytes if bytes > 0 && bytes.is_multiple_of(KIB) => format!("{}KiB", bytes / KIB),
        bytes => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A name of Cassandra's and its value; `None` is null.
    type Expected = (&'static str, Option<&'static str>);

    /// A setting of ours at its default, and what `system_views.settings` of Cassandra 5.0.9 shows at its defaults.
    const DEFAULTS: &[(&str, &str, &[Expected])] = &[
        ("data", "memory:", &[]),
        ("drain-seconds", "10", &[]),
        (
            "batch-size-thresholds",
            "5120,51200",
            &[
                ("batch_size_fail_threshold", Some("50KiB")),
                ("batch_size_warn_threshold", Some("5KiB")),
            ],
        ),
        (
            "unlogged-batch-across-partitions-thresholds",
            "10",
            &[("unlogged_batch_across_partitions_warn_threshold", Some("10"))],
        ),
        (
            "tombstone-thresholds",
            "1000,100000",
            &[
                ("tombstone_failure_threshold", Some("100000")),
                ("tombstone_warn_threshold", Some("1000")),
            ],
        ),
        (
            "tables-thresholds",
            "off",
            &[
                ("tables_fail_threshold", Some("-1")),
                ("tables_warn_threshold", Some("-1")),
            ],
        ),
        (
            "collection-size-thresholds",
            "off",
            &[
                ("collection_size_fail_threshold", None),
                ("collection_size_warn_threshold", None),
            ],
        ),
        (
            "maximum-timestamp-thresholds",
            "off",
            &[
                ("maximum_timestamp_fail_threshold", None),
                ("maximum_timestamp_warn_threshold", None),
            ],
        ),
        (
            "read-consistency-levels-disallowed",
            "",
            &[("read_consistency_levels_disallowed", Some("[]"))],
        ),
        (
            "table-properties-warned",
            "",
            &[("table_properties_warned", Some("[]"))],
        ),
        (
            "allow-filtering-enabled",
            "true",
            &[("allow_filtering_enabled", Some("true"))],
        ),
        (
            "zero-ttl-on-twcs-enabled",
            "true",
            &[("zero_ttl_on_twcs_enabled", Some("true"))],
        ),
        (
            "body-bytes-max",
            "16777216",
            &[("native_transport_max_frame_size", Some("16MiB"))],
        ),
        ("idle-seconds", "0", &[("native_transport_idle_timeout", Some("0ms"))]),
    ];

    #[test]
    fn defaults_are_shown_as_cassandra_shows_its_own() {
        for (name, value, expected) in DEFAULTS {
            let shown: BTreeMap<_, _> = counterparts(name, value).into_iter().collect();
            let expected: BTreeMap<_, _> = expected
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
                .collect();
            assert_eq!(shown, expected, "{name}");
        }
    }

    #[test]
    fn what_was_set_is_shown_with_its_unit() {
        let shown = |name, value| -> Vec<Option<String>> {
            counterparts(name, value).into_iter().map(|(_, value)| value).collect()
        };
        let some = |value: &str| Some(value.to_owned());
        assert_eq!(shown("tables-thresholds", "150,off"), [some("150"), some("-1")]);
        assert_eq!(
            shown("column-value-size-thresholds", "2097152,2097153"),
            [some("2MiB"), some("2097153B")]
        );
        assert_eq!(
            shown("maximum-timestamp-thresholds", "off,86400"),
            [None, some("86400s")]
        );
        assert_eq!(
            shown("table-properties-disallowed", "cdc,comment"),
            [some("[cdc, comment]")]
        );
    }
}
