//! The compaction options. Our engines choose their own compaction; the options are validated, kept and shown.

use std::collections::BTreeMap;

use super::refusal::CompactionRefusal;
use crate::planner::text::owned;
use crate::schema::COMPACTION_PACKAGE;

type Options = BTreeMap<String, String>;

/// Options that every strategy accepts.
const COMMON: &[&str] = &[
    "class",
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
];
const THRESHOLDS: &[&str] = &["min_threshold", "max_threshold"];
const SIZE_TIERED: &[&str] = &["bucket_low", "bucket_high", "min_sstable_size"];
const LEVELED: &[&str] = &["sstable_size_in_mb", "fanout_size", "single_sstable_uplevel"];
const TIME_WINDOW: &[&str] = &[
    "compaction_window_size",
    "compaction_window_unit",
    "expired_sstable_check_frequency_seconds",
    "timestamp_resolution",
    "unsafe_aggressive_sstable_expiration",
];
const UNIFIED: &[&str] = &[
    "base_shard_count",
    "expired_sstable_check_frequency_seconds",
    "flush_size_override",
    "max_sstables_to_compact",
    "min_sstable_size",
    "overlap_inclusion_method",
    "scaling_parameters",
    "sstable_growth",
    "target_sstable_size",
    "unsafe_aggressive_sstable_expiration",
];

fn strategy(options: &Options) -> &str {
    let class = options.get("class").map(String::as_str).unwrap_or_default();
    class.strip_prefix(COMPACTION_PACKAGE).unwrap_or(class)
}

pub(super) fn is_levelled(options: &Options) -> bool {
    strategy(options) == "LeveledCompactionStrategy"
}

/// Normalises options: the class's full name, and the strategy's thresholds.
pub(super) fn read(mut options: Options) -> Result<Options, CompactionRefusal> {
    let Some(class) = options.get("class") else {
        return Err(CompactionRefusal::ClassMissing);
    };
    let full = if class.contains('.') {
        class.clone()
    } else {
        format!("{COMPACTION_PACKAGE}{class}")
    };
    match full.strip_prefix(COMPACTION_PACKAGE) {
        Some("SizeTieredCompactionStrategy" | "LeveledCompactionStrategy" | "TimeWindowCompactionStrategy") => {
            options
                .entry("min_threshold".to_owned())
                .or_insert_with(|| "4".to_owned());
            options
                .entry("max_threshold".to_owned())
                .or_insert_with(|| "32".to_owned());
        }
        Some("UnifiedCompactionStrategy") => {}
        _ => return Err(CompactionRefusal::UnknownClass(full)),
    }
    options.insert("class".to_owned(), full);
    Ok(options)
}

/// Validates options against the strategy that they name.
pub(super) fn validate(options: &Options) -> Result<(), CompactionRefusal> {
    let strategy = strategy(options);
    let own: &[&[&str]] = match strategy {
        "SizeTieredCompactionStrategy" => &[THRESHOLDS, SIZE_TIERED],
        "LeveledCompactionStrategy" => &[THRESHOLDS, SIZE_TIERED, LEVELED],
        "TimeWindowCompactionStrategy" => &[THRESHOLDS, SIZE_TIERED, TIME_WINDOW],
        _ => &[UNIFIED],
    };
    common(options)?;
    if strategy == "LeveledCompactionStrategy" {
        positive(options, "sstable_size_in_mb")?;
        positive(options, "fanout_size")?;
    }
    if strategy == "TimeWindowCompactionStrategy" {
        time_window(options)?;
    }
    if strategy == "UnifiedCompactionStrategy" {
        unified(options)?;
    } else {
        size_tiered(options)?;
    }
    let unknown: Vec<&str> = options
        .keys()
        .map(String::as_str)
        .filter(|name| !COMMON.contains(name) && !own.iter().any(|names| names.contains(name)))
        .collect();
    if !unknown.is_empty() {
        return Err(CompactionRefusal::NotUnderstood {
            options: owned(unknown),
            strategy: strategy.to_owned(),
        });
    }
    if strategy != "UnifiedCompactionStrategy" {
        thresholds(options)?;
    }
    if let Some(value) = options.get("enabled").filter(|value| !is_boolean(value)) {
        return Err(CompactionRefusal::Enabled(value.clone()));
    }
    if let Some(value) = options.get("provide_overlapping_tombstones") {
        let upper = value.to_uppercase();
        if !matches!(upper.as_str(), "NONE" | "ROW" | "CELL") {
            return Err(CompactionRefusal::OverlappingTombstones(upper));
        }
    }
    Ok(())
}

fn is_boolean(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
}

fn integer(options: &Options, name: &'static str) -> Result<Option<i64>, CompactionRefusal> {
    let Some(value) = options.get(name) else {
        return Ok(None);
    };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(CompactionRefusal::NotInteger {
            value: value.clone(),
            option: name,
        }),
    }
}

fn positive(options: &Options, name: &'static str) -> Result<(), CompactionRefusal> {
    match integer(options, name)? {
        Some(number) if number < 1 => Err(CompactionRefusal::NotPositive { option: name, number }),
        _ => Ok(()),
    }
}

fn float(options: &Options, name: &'static str, default: f64) -> Result<f64, CompactionRefusal> {
    let Some(value) = options.get(name) else {
        return Ok(default);
    };
    value.parse().map_err(|_| CompactionRefusal::NotFloat {
        value: value.clone(),
        option: name,
    })
}

fn common(options: &Options) -> Result<(), CompactionRefusal> {
    if let Some(value) = options.get("tombstone_threshold") {
        match value.parse::<f32>() {
            Err(_) => {
                return Err(CompactionRefusal::TombstoneThresholdText(value.clone()));
            }
            Ok(number) if number < 0.0 => {
                return Err(CompactionRefusal::TombstoneThreshold(number));
            }
            Ok(_) => {}
        }
    }
    if let Some(number) = integer(options, "tombstone_compaction_interval")?
        && number < 0
    {
        return Err(CompactionRefusal::TombstoneInterval(number));
    }
    if let Some(value) = options
        .get("unchecked_tombstone_compaction")
        .filter(|value| !is_boolean(value))
    {
        return Err(CompactionRefusal::UncheckedTombstones(value.clone()));
    }
    if let Some(value) = options.get("log_all").filter(|value| !is_boolean(value)) {
        return Err(CompactionRefusal::LogAll(value.clone()));
    }
    Ok(())
}

fn size_tiered(options: &Options) -> Result<(), CompactionRefusal> {
    if let Some(number) = integer(options, "min_sstable_size")?
        && number < 0
    {
        return Err(CompactionRefusal::MinTableSize(number));
    }
    let low = float(options, "bucket_low", 0.5)?;
    let high = float(options, "bucket_high", 1.5)?;
    if high <= low {
        return Err(CompactionRefusal::Buckets { high, low });
    }
    Ok(())
}

fn time_window(options: &Options) -> Result<(), CompactionRefusal> {
    if let Some(value) = options.get("timestamp_resolution")
        && !matches!(
            value.as_str(),
            "NANOSECONDS" | "MICROSECONDS" | "MILLISECONDS" | "SECONDS" | "MINUTES" | "HOURS" | "DAYS"
        )
    {
        return Err(CompactionRefusal::Resolution(value.clone()));
    }
    if let Some(value) = options.get("compaction_window_unit")
        && !matches!(value.as_str(), "MINUTES" | "HOURS" | "DAYS")
    {
        return Err(CompactionRefusal::WindowUnit(value.clone()));
    }
    if let Some(number) = integer(options, "compaction_window_size")?
        && number < 1
    {
        return Err(CompactionRefusal::WindowSize(number));
    }
    expiry(options)
}

fn expiry(options: &Options) -> Result<(), CompactionRefusal> {
    if let Some(number) = integer(options, "expired_sstable_check_frequency_seconds")?
        && number < 0
    {
        return Err(CompactionRefusal::ExpiryCheck(number));
    }
    match options
        .get("unsafe_aggressive_sstable_expiration")
        .filter(|value| !is_boolean(value))
    {
        Some(value) => Err(CompactionRefusal::AggressiveExpiry(value.clone())),
        None => Ok(()),
    }
}

fn unified(options: &Options) -> Result<(), CompactionRefusal> {
    if let Some(value) = options.get("scaling_parameters") {
        for part in value.split(',').map(str::trim) {
            let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            let valid = part == "N"
                || part.strip_prefix(['L', 'T']).is_some_and(digits)
                || digits(part.strip_prefix(['+', '-']).unwrap_or(part));
            if !valid {
                return Err(CompactionRefusal::ScalingParameter(part.to_owned()));
            }
        }
    }
    if let Some(value) = options.get("target_sstable_size")
        && !value.ends_with('B')
    {
        return Err(CompactionRefusal::TargetSize(value.clone()));
    }
    if let Some(number) = integer(options, "base_shard_count")?
        && number < 1
    {
        return Err(CompactionRefusal::ShardCount(number));
    }
    expiry(options)
}

fn thresholds(options: &Options) -> Result<(), CompactionRefusal> {
    let threshold = |name: &'static str, default: i64| -> Result<i64, CompactionRefusal> {
        let Some(value) = options.get(name) else {
            return Ok(default);
        };
        value
            .parse::<i32>()
            .map(i64::from)
            .map_err(|_| CompactionRefusal::ThresholdText {
                value: value.clone(),
                option: name,
            })
    };
    let min = threshold("min_threshold", 4)?;
    let max = threshold("max_threshold", 32)?;
    if min <= 0 || max <= 0 {
        return Err(CompactionRefusal::NoThreshold);
    }
    if min <= 1 {
        return Err(CompactionRefusal::MinThreshold(min));
    }
    if min > max {
        return Err(CompactionRefusal::ThresholdOrder { min, max });
    }
    Ok(())
}
