//! Limits, prices and guardrails.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{ConfigError, SETTINGS, Values, memory, nearest};
use crate::server::Limits;
use helenus_engine::engine::{self, SizeLimits, ThroughputRules};
use helenus_engine::throughput::Coefficients;
use helenus_schema::guardrails::Guardrails;
use helenus_schema::guardrails::{Listed, Names, Switches, Threshold};
use helenus_schema::planner::ddl::TABLE_PROPERTIES;
use helenus_schema::profile::Profile;
use helenus_types::consistency::Consistency;
use helenus_types::functions::CallLimits;

/// The factor of size limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    numerator: u32,
    denominator: u32,
}

impl Scale {
    /// A limit, scaled; at least 1.
    pub(super) fn of(self, limit: u64) -> u64 {
        let scaled = u128::from(limit) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }
}

pub(super) fn scale(values: &Values) -> Result<Scale, ConfigError> {
    let text = values.text("scale-limits").unwrap_or("1");
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let part = |part: &str| part.trim().parse::<u32>().ok().filter(|part| *part > 0);
    match (part(numerator), part(denominator)) {
        (Some(numerator), Some(denominator)) => Ok(Scale { numerator, denominator }),
        _ => Err(values.wrong("scale-limits", text, "a fraction of whole numbers above 0, like 1/1000")),
    }
}

/// A limit with a default in the `cosmos` profile only. `None` means no limit.
fn limit<T: FromStr<Err: fmt::Display + 'static>>(
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

pub(super) fn size_limits(values: &Values) -> Result<SizeLimits, ConfigError> {
    let scale = scale(values)?;
    let scaled = |limit: Option<u64>| limit.map(|limit| scale.of(limit));
    let logical = match values.text("logical-partition-bytes-max") {
        Some("off") => None,
        _ => Some(values.parsed("logical-partition-bytes-max")?),
    };
    let is_cosmos = values.parsed::<Profile>("profile")?.is_cosmos();
    let row_bytes = match values.text("row-bytes-max") {
        // Not scaled: it bounds the server's memory, and Cosmos has no such limit.
        Some("auto") | None if !is_cosmos => Some(SizeLimits::MERGED_ROW_BYTES_MAX),
        _ => scaled(limit(values, "row-bytes-max", SizeLimits::ROW_BYTES_MAX)?),
    };
    Ok(SizeLimits {
        logical_partition_bytes_max: scaled(logical),
        row_bytes_max: row_bytes.filter(|_| is_cosmos),
        merged_row_bytes_max: row_bytes.filter(|_| !is_cosmos),
        request_bytes_max: scaled(limit(values, "request-bytes-max", SizeLimits::ROW_BYTES_MAX)?),
        batch_operations_max: limit(values, "batch-operations-max", SizeLimits::BATCH_OPERATIONS_MAX)?,
        partition_key_bytes_max: limit(values, "partition-key-bytes-max", SizeLimits::PARTITION_KEY_BYTES_MAX)?,
        ttl_seconds_max: match values.text("ttl-seconds-max") {
            Some("off") | None => None,
            Some(_) => Some(values.parsed("ttl-seconds-max")?),
        },
    })
}

pub(super) fn call_limits(values: &Values) -> Result<CallLimits, ConfigError> {
    Ok(CallLimits {
        steps_max: values.parsed("user-function-steps-max")?,
        bytes_max: values.parsed("user-function-bytes-max")?,
        request_steps_max: values.parsed("user-function-request-steps-max")?,
    })
}

pub(super) fn page_bytes_max(values: &Values) -> Result<usize, ConfigError> {
    let given = limit(values, "page-bytes-max", SizeLimits::PAGE_BYTES_MAX)?;
    let bytes = given.unwrap_or(engine::Options::PAGE_BYTES_MAX);
    Ok(usize::try_from(scale(values)?.of(bytes as u64)).unwrap_or(usize::MAX))
}

pub(super) fn throughput(values: &Values) -> Result<ThroughputRules, ConfigError> {
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

/// With less, one response could not hold a page of the default size.
const MEMORY_BYTES_LEAST: usize = 8 << 20;

/// With less, a driver could not log in: its options and credentials take some hundred bytes.
const BODY_BYTES_LEAST: usize = 1 << 10;

/// No frame has a longer body (native_protocol_v4.spec §2.5).
const BODY_BYTES_MOST: usize = 256 << 20;

pub(super) fn limits(values: &Values) -> Result<Limits, ConfigError> {
    let memory_bytes_max: usize = values.parsed("connections-memory-bytes-max")?;
    if memory_bytes_max < MEMORY_BYTES_LEAST {
        let given = memory_bytes_max.to_string();
        return Err(values.wrong("connections-memory-bytes-max", &given, "a number of at least 8388608"));
    }
    Ok(Limits {
        memory_bytes_max,
        body_bytes_max: values.within("body-bytes-max", BODY_BYTES_LEAST..=BODY_BYTES_MOST)?,
        login_deadline: Duration::from_secs(values.above_zero("login-seconds")?),
        slow_client: values.seconds("slow-client-seconds")?,
        in_flight_max: values.parsed("in-flight-max")?,
        in_flight_bytes_total_max: values.parsed("in-flight-bytes-total-max")?,
        connections_max: values.above_zero("connections-max")?,
        connections_per_address_max: values.above_zero("connections-per-address-max")?,
        idle: values.seconds("idle-seconds")?,
        drain: values.seconds("drain-seconds")?,
        prepared_max: values.parsed("prepared-max")?,
        prepared_bytes_max: values
            .memory()?
            .map_or(Limits::default().prepared_bytes_max, memory::prepared_bytes_max),
        ..Limits::default()
    })
}

/// Most entries of the request log: some 100 MB if all texts are long.
pub(super) const REQUEST_LOG_MAX: usize = 50_000;

pub(super) fn prices(values: &Values) -> Result<Coefficients, ConfigError> {
    let text = values.all("request-units").join(",");
    text.parse()
        .map_err(|error| values.wrong("request-units", &text, error))
}

pub(super) fn guardrails(values: &Values) -> Result<Guardrails, ConfigError> {
    Ok(Guardrails {
        batch_bytes: thresholds(values, "batch-size-thresholds")?,
        unlogged_batch_partitions: thresholds(values, "unlogged-batch-across-partitions-thresholds")?,
        tombstones: thresholds(values, "tombstone-thresholds")?,
        keyspaces: thresholds(values, "keyspaces-thresholds")?,
        tables: thresholds(values, "tables-thresholds")?,
        columns_per_table: thresholds(values, "columns-per-table-thresholds")?,
        secondary_indexes_per_table: thresholds(values, "secondary-indexes-per-table-thresholds")?,
        materialized_views_per_table: thresholds(values, "materialized-views-per-table-thresholds")?,
        fields_per_udt: thresholds(values, "fields-per-udt-thresholds")?,
        partition_keys_in_select: thresholds(values, "partition-keys-in-select-thresholds")?,
        in_select_cartesian_product: thresholds(values, "in-select-cartesian-product-thresholds")?,
        page_size: thresholds(values, "page-size-thresholds")?,
        items_per_collection: thresholds(values, "items-per-collection-thresholds")?,
        collection_bytes: thresholds(values, "collection-size-thresholds")?,
        column_value_bytes: thresholds(values, "column-value-size-thresholds")?,
        vector_dimensions: thresholds(values, "vector-dimensions-thresholds")?,
        maximum_timestamp_seconds: thresholds(values, "maximum-timestamp-thresholds")?,
        minimum_timestamp_seconds: thresholds(values, "minimum-timestamp-thresholds")?,
        partition_bytes: thresholds(values, "partition-size-thresholds")?,
        partition_tombstones: thresholds(values, "partition-tombstones-thresholds")?,
        read_levels: Listed {
            warned: levels(values, "read-consistency-levels-warned")?,
            disallowed: levels(values, "read-consistency-levels-disallowed")?,
        },
        write_levels: Listed {
            warned: levels(values, "write-consistency-levels-warned")?,
            disallowed: levels(values, "write-consistency-levels-disallowed")?,
        },
        table_properties: Listed {
            warned: properties(values, "table-properties-warned")?,
            disallowed: properties(values, "table-properties-disallowed")?,
        },
        switches: Switches {
            allow_filtering: values.parsed("allow-filtering-enabled")?,
            group_by: values.parsed("group-by-enabled")?,
            user_timestamps: values.parsed("user-timestamps-enabled")?,
            drop_truncate_table: values.parsed("drop-truncate-table-enabled")?,
            drop_keyspace: values.parsed("drop-keyspace-enabled")?,
            alter_table: values.parsed("alter-table-enabled")?,
            secondary_indexes: values.parsed("secondary-indexes-enabled")?,
            materialized_views: values.parsed("materialized-views-enabled")?,
            user_defined_functions: values.parsed("user-defined-functions-enabled")?,
            simple_strategy: values.parsed("simplestrategy-enabled")?,
            uncompressed_tables: values.parsed("uncompressed-tables-enabled")?,
            compact_tables: values.parsed("compact-tables-enabled")?,
            drop_compact_storage: values.parsed("drop-compact-storage-enabled")?,
            data_masking: values.parsed("dynamic-data-masking-enabled")?,
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

/// Two amounts. One amount alone is taken only by a setting that has no amount to refuse above.
fn thresholds(values: &Values, name: &'static str) -> Result<Threshold, ConfigError> {
    let text = values.text(name).unwrap_or_default();
    let is_pair = SETTINGS
        .iter()
        .any(|setting| setting.name == name && setting.value == "WARN,FAIL");
    if is_pair && text != "off" && !text.contains(',') {
        let what = format!(
            "expected WARN,FAIL: the amount to warn above and the one to refuse above, each a whole number or off, such as {text},off"
        );
        return Err(values.wrong(name, text, what));
    }
    values.parsed(name)
}

/// Names of table properties with commas between.
fn properties(values: &Values, setting: &'static str) -> Result<Names, ConfigError> {
    let names: Names = values.parsed(setting)?;
    let is_known = |name: &&String| TABLE_PROPERTIES.iter().any(|known| known.eq_ignore_ascii_case(name));
    let Some(unknown) = names.0.iter().find(|name| !is_known(name)) else {
        return Ok(names);
    };
    let what = match nearest(&unknown.to_ascii_lowercase(), TABLE_PROPERTIES.iter()) {
        Some(meant) => format!("no table has such a property; did you mean {meant}?"),
        None => format!(
            "no table has such a property; expected some of {}",
            TABLE_PROPERTIES.join(", ")
        ),
    };
    Err(values.wrong(setting, unknown, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_pairs_are_refused_by_name() {
        let of = |name: &str, value: &str| {
            let given = [(name.to_owned(), vec![value.to_owned()])].into_iter().collect();
            let values = Values::gather(None, &given, |_| None).unwrap();
            guardrails(&values).map_err(|error| error.to_string())
        };
        for name in ["table-properties-warned", "table-properties-disallowed"] {
            let refused = of(name, "comment,compactoin").unwrap_err();
            assert!(
                refused.starts_with(name)
                    && refused.contains("\"compactoin\"")
                    && refused.ends_with("did you mean compaction?"),
                "{refused}"
            );
            let refused = of(name, "nope").unwrap_err();
            assert!(
                refused.contains("expected some of additional_write_policy, "),
                "{refused}"
            );
        }
        assert_eq!(
            of("table-properties-warned", "Comment, cdc")
                .unwrap()
                .table_properties
                .warned
                .0
                .len(),
            2
        );
        let refused = of("tables-thresholds", "5").unwrap_err();
        assert!(
            refused.contains("expected WARN,FAIL: ") && refused.ends_with("such as 5,off"),
            "{refused}"
        );
        assert_eq!(of("tables-thresholds", "5,off").unwrap().tables.warn, Some(5));
        assert!(of("tables-thresholds", "off").unwrap().tables.is_off());
        let single = of("unlogged-batch-across-partitions-thresholds", "5").unwrap();
        assert_eq!(single.unlogged_batch_partitions.warn, Some(5));
    }
}
