//! WITH of tables and views: read, normalised and validated as in Cassandra, although our store uses few options.
//! DESCRIBE and the schema tables show the stored options.

use std::collections::BTreeMap;

use grammar::ast;

use super::error::DdlError;
use super::property::Properties;
use super::refusal::{OptionRefusal, PropertyRefusal};
use super::{compaction, compression, cosmos};
use crate::planner::text::owned;
use crate::schema::TableOptions;

/// The properties that WITH of a table may name.
pub const NAMES: &[&str] = &[
    "additional_write_policy",
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    cosmos::PROVISIONED,
    cosmos::AUTOSCALE,
    cosmos::CELL_TIMESTAMP,
    cosmos::CELL_TOMBSTONES,
    cosmos::CELL_TIME_TO_LIVE,
    cosmos::RETENTION_BYTES,
    cosmos::RETENTION_SECONDS,
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    cosmos::PARTITIONS,
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    cosmos::PLACEMENT,
    "read_repair",
    "speculative_retry",
];

/// Maximum default time to live in seconds: twenty years. Source: Cassandra's Attributes.MAX_TTL.
const TIME_TO_LIVE_SECONDS_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// Minimum false-positive rate for which a bloom filter can be built. Source: Cassandra's BloomCalculations.
const FALSE_POSITIVES_MIN: f64 = 6.71e-5;

/// The options after WITH, not yet validated.
pub(super) struct GivenOption {
    /// The resulting options.
    pub(super) options: TableOptions,
    /// `id`, as written.
    pub(super) id: Option<String>,
    compaction_given: bool,
    /// A property of an unknown name.
    unknown: Option<PropertyRefusal>,
}

/// Reads the options on top of existing ones; `None` means a new table. Options that are invalid by themselves are
/// refused here, before any name is looked up.
pub(super) fn read(written: &ast::TableOptions, before: Option<&TableOptions>) -> Result<GivenOption, DdlError> {
    let properties = Properties::new(&written.properties)?;
    let mut o = before.cloned().unwrap_or_default();
    // In Cassandra's order.
    set(&mut o.allow_auto_snapshot, properties.boolean("allow_auto_snapshot")?);
    set(
        &mut o.bloom_filter_fp_chance,
        properties.double("bloom_filter_fp_chance")?,
    );
    if let Some(map) = properties.map("caching")? {
        o.caching = caching(&map)?;
    }
    set(&mut o.comment, properties.text("comment")?);
    let compaction = properties.map("compaction")?;
    let compaction_given = compaction.is_some();
    if let Some(map) = compaction {
        o.compaction = compaction::read(map)?;
        // A read of a levelled table checks fewer filters, so a new one may have coarser filters.
        if before.is_none() && !properties.has("bloom_filter_fp_chance") && compaction::is_levelled(&o.compaction) {
            o.bloom_filter_fp_chance = 0.1;
        }
    }
    if let Some(map) = properties.map("compression")? {
        o.compression = compression::read(map)?;
    }
    if let Some(name) = properties.text("memtable")? {
        if name != "default" {
            return Err(OptionRefusal::Memtable(name).into());
        }
        o.memtable = name;
    }
    set(&mut o.default_time_to_live, properties.int("default_time_to_live")?);
    set(&mut o.gc_grace_seconds, properties.int("gc_grace_seconds")?);
    set(&mut o.incremental_backups, properties.boolean("incremental_backups")?);
    set(&mut o.max_index_interval, properties.int("max_index_interval")?);
    set(
        &mut o.memtable_flush_period_in_ms,
        properties.int("memtable_flush_period_in_ms")?,
    );
    set(&mut o.min_index_interval, properties.int("min_index_interval")?);
    if let Some(text) = properties.text("speculative_retry")? {
        o.speculative_retry = speculative_retry(&text)?;
    }
    if let Some(text) = properties.text("additional_write_policy")? {
        o.additional_write_policy = speculative_retry(&text)?;
    }
    set(&mut o.crc_check_chance, properties.double("crc_check_chance")?);
    set(&mut o.cdc, properties.boolean("cdc")?);
    if let Some(text) = properties.text("read_repair")? {
        let upper = text.to_uppercase();
        if upper != "BLOCKING" && upper != "NONE" {
            // Differs: Cassandra responds with a Java exception here, as a server error.
            return Err(OptionRefusal::ReadRepair(text).into());
        }
        o.read_repair = upper;
    }
    cosmos::table(&properties, before, &mut o)?;
    Ok(GivenOption {
        options: o,
        id: properties.text("id")?,
        compaction_given,
        unknown: properties.only(NAMES).err(),
    })
}

/// Whether a statement gives this option.
pub(super) fn is_written(written: &ast::TableOptions, name: &str) -> bool {
    Properties::new(&written.properties).is_ok_and(|properties| properties.has(name))
}

/// Warns that options which differ from `before` are stored for DESCRIBE only. No warning in the profile `cosmos`, as
/// its service gives none. Differs: Cassandra uses each of them.
pub(super) fn warnings(before: &TableOptions, after: &TableOptions, is_cosmos: bool) -> Vec<String> {
    let of = |name: &'static str, is_changed: bool| (is_changed && !is_cosmos).then_some(name);
    let names = [
        of(
            "additional_write_policy",
            before.additional_write_policy != after.additional_write_policy,
        ),
        of(
            "allow_auto_snapshot",
            before.allow_auto_snapshot != after.allow_auto_snapshot,
        ),
        of(
            "bloom_filter_fp_chance",
            before.bloom_filter_fp_chance.to_bits() != after.bloom_filter_fp_chance.to_bits(),
        ),
        of("caching", before.caching != after.caching),
        of("compaction", before.compaction != after.compaction),
        of("compression", before.compression != after.compression),
        of(
            "crc_check_chance",
            before.crc_check_chance.to_bits() != after.crc_check_chance.to_bits(),
        ),
        of(
            "incremental_backups",
            before.incremental_backups != after.incremental_backups,
        ),
        of(
            "max_index_interval",
            before.max_index_interval != after.max_index_interval,
        ),
        of(
            "memtable_flush_period_in_ms",
            before.memtable_flush_period_in_ms != after.memtable_flush_period_in_ms,
        ),
        of(
            "min_index_interval",
            before.min_index_interval != after.min_index_interval,
        ),
        of("read_repair", before.read_repair != after.read_repair),
        of("speculative_retry", before.speculative_retry != after.speculative_retry),
    ];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    match names.as_slice() {
        [] => Vec::new(),
        names => vec![format!("Stored without effect: {}", names.join(", "))],
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

impl GivenOption {
    /// Refuses properties of unknown names. Cassandra does so only once it has found the statement's object.
    pub(super) fn check_names(&self) -> Result<(), DdlError> {
        self.unknown.clone().map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// Validates ranges of options, and the options of the compaction strategy.
    pub(super) fn validate(self) -> Result<TableOptions, DdlError> {
        let o = self.options;
        if self.compaction_given {
            compaction::validate(&o.compaction)?;
        }
        let chance = o.bloom_filter_fp_chance;
        if !(chance > FALSE_POSITIVES_MIN && chance <= 1.0) {
            return Err(OptionRefusal::BloomFilter {
                min: FALSE_POSITIVES_MIN,
                number: chance,
            }
            .into());
        }
        if !(0.0..=1.0).contains(&o.crc_check_chance) {
            return Err(OptionRefusal::CrcCheck(o.crc_check_chance).into());
        }
        let least = |name: &'static str, value: i32, least: i32| {
            if value < least {
                Err(OptionRefusal::TooSmall {
                    option: name,
                    least,
                    value,
                })
            } else {
                Ok(())
            }
        };
        least("default_time_to_live", o.default_time_to_live, 0)?;
        if o.default_time_to_live > TIME_TO_LIVE_SECONDS_MAX {
            return Err(OptionRefusal::TimeToLive {
                seconds: o.default_time_to_live,
                seconds_max: TIME_TO_LIVE_SECONDS_MAX,
            }
            .into());
        }
        least("gc_grace_seconds", o.gc_grace_seconds, 0)?;
        least("min_index_interval", o.min_index_interval, 1)?;
        if o.max_index_interval < o.min_index_interval {
            return Err(OptionRefusal::IndexIntervals {
                min: o.min_index_interval,
                max: o.max_index_interval,
            }
            .into());
        }
        least("memtable_flush_period_in_ms", o.memtable_flush_period_in_ms, 0)?;
        Ok(o)
    }
}

/// Reads the caching options. A missing one is NONE, not the default of a table without caching options.
fn caching(map: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, DdlError> {
    let others: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| !matches!(*key, "keys" | "rows_per_partition"))
        .collect();
    if !others.is_empty() {
        return Err(OptionRefusal::Caching(owned(others)).into());
    }
    let none = "NONE".to_owned();
    let keys = map.get("keys").unwrap_or(&none);
    let keys = match keys.to_uppercase().as_str() {
        "ALL" => "ALL",
        "NONE" => "NONE",
        _ => {
            return Err(OptionRefusal::CachingKeys(keys.clone()).into());
        }
    };
    let rows = map.get("rows_per_partition").unwrap_or(&none);
    let rows = match rows.to_uppercase().as_str() {
        "ALL" => "ALL".to_owned(),
        "NONE" => none,
        _ => match rows.parse::<u32>() {
            Ok(0) => none,
            Ok(count) if i32::try_from(count).is_ok() && !rows.starts_with('+') => count.to_string(),
            _ => {
                return Err(OptionRefusal::CachingRows(rows.clone()).into());
            }
        },
    };
    Ok(BTreeMap::from([
        ("keys".to_owned(), keys.to_owned()),
        ("rows_per_partition".to_owned(), rows),
    ]))
}

/// One of the two arguments of MIN and MAX.
enum Threshold {
    Percentile(String),
    Millis(String),
}

/// Normalises a policy: `99p`, `10ms`, `ALWAYS`, `NEVER`, `MIN(99p,10ms)`.
fn speculative_retry(text: &str) -> Result<String, DdlError> {
    // Cassandra's message names this option, whichever of the two it is.
    let wrong = || OptionRefusal::Retry(text.to_owned());
    let upper = text.trim().to_uppercase();
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NEVER" | "NONE" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    let (function, inside) = match upper.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        Some((function @ ("MIN" | "MAX"), inside)) => (function, inside),
        Some(_) => return Err(wrong().into()),
        None => {
            return match threshold(&upper, text)?.ok_or_else(wrong)? {
                Threshold::Percentile(text) | Threshold::Millis(text) => Ok(text),
            };
        }
    };
    let (left, right) = inside.split_once(',').ok_or_else(wrong)?;
    let left = threshold(left.trim(), text)?.ok_or_else(wrong)?;
    let right = threshold(right.trim(), text)?.ok_or_else(wrong)?;
    match (left, right) {
        (Threshold::Percentile(percentile), Threshold::Millis(millis))
        | (Threshold::Millis(millis), Threshold::Percentile(percentile)) => {
            Ok(format!("{function}({percentile},{millis})"))
        }
        (left, _) => {
            let kind = if matches!(left, Threshold::Percentile(_)) {
                "PERCENTILE"
            } else {
                "FIXED"
            };
            Err(OptionRefusal::RetryKinds {
                text: text.to_owned(),
                kind,
            }
            .into())
        }
    }
}

/// Parses a threshold; `None` means neither a percentile nor a time.
fn threshold(part: &str, text: &str) -> Result<Option<Threshold>, DdlError> {
    let number = |digits: &str| -> Option<f64> {
        let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        digits.parse().ok().filter(|_| plain)
    };
    if let Some(value) = part.strip_suffix("MS").and_then(number) {
        return Ok(Some(Threshold::Millis(format!("{}ms", value.trunc()))));
    }
    let digits = part.strip_suffix("PERCENTILE").or_else(|| part.strip_suffix('P'));
    let Some(value) = digits.and_then(number) else {
        return Ok(None);
    };
    if !(value > 0.0 && value < 100.0) {
        return Err(OptionRefusal::RetryPercentile(text.to_owned()).into());
    }
    Ok(Some(Threshold::Percentile(format!("{value}p"))))
}
