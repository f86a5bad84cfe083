//! The `guardrails` module: thresholds above which a command or statement gets a warning or a refusal, and features
//! that are switched off.
//!
//! Guardrails that are on in Cassandra are on by default, the others off; names and texts are Cassandra's
//! (`db.guardrails.Guardrails`, `Guardrail#decorateMessage`, `BatchStatement#verifyBatchSize`). Those that a command
//! decides are checked here (`commands`); those that a CQL statement decides, in `planner::guardrails`; those that
//! depend on stored rows, by the engine, which counts them.
//!
//! ```text
//! Guardrails { Threshold… Listed… Switches }   set once, at start   ─ commands, planner, engine ─→ warnings, or a Violation
//! ```
//! Guardrails on stored partitions are logged when a partition is counted, as Cassandra logs them when it compacts one.
//!
//! Deliberately absent: syntax trees, sessions, and guardrails about Cassandra's own machinery (disk usage, compaction, SSTables,
//! replication factors, terms of storage-attached indexes).

mod commands;
mod switches;

pub use switches::ensure;
pub use switches::{Listed, Names, Switches};

use std::fmt;
use std::str::FromStr;

/// An amount above which there is a warning, and one above which there is a refusal. `None` means no limit.
///
/// As text: both with a comma between, and `off` for no limit, as in `1000,off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// A greater amount gets a warning.
    pub warn: Option<u64>,
    /// A greater amount is refused.
    pub fail: Option<u64>,
}

impl Threshold {
    /// Warns above one amount, refuses above another.
    #[must_use]
    pub const fn new(warn: u64, fail: u64) -> Self {
        Self {
            warn: Some(warn),
            fail: Some(fail),
        }
    }

    /// The level of an amount.
    #[must_use]
    pub fn level(&self, amount: u64) -> Level {
        match (self.warn, self.fail) {
            (_, Some(fail)) if amount > fail => Level::Refuse(fail),
            (Some(warn), _) if amount > warn => Level::Warn(warn),
            _ => Level::Fine,
        }
    }

    /// Whether there is no limit.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.warn.is_none() && self.fail.is_none()
    }
}

/// The level of an amount, with the threshold that it exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Within the limits.
    Fine,
    /// A warning.
    Warn(u64),
    /// A refusal.
    Refuse(u64),
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |amount: Option<u64>| amount.map_or_else(|| "off".to_owned(), |amount| amount.to_string());
        write!(formatter, "{},{}", part(self.warn), part(self.fail))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |text: &str| match text.trim() {
            "off" | "-1" => Ok(None),
            amount => amount
                .parse()
                .map(Some)
                .map_err(|_| "must be two amounts, WARN,FAIL, each a whole number or off".to_owned()),
        };
        let (warn, fail) = text.split_once(',').unwrap_or((text, "off"));
        let threshold = Self {
            warn: part(warn)?,
            fail: part(fail)?,
        };
        if let (Some(warn), Some(fail)) = (threshold.warn, threshold.fail)
            && warn > fail
        {
            return Err("the amount to warn above must not be greater than the one to refuse above".to_owned());
        }
        Ok(threshold)
    }
}

/// The thresholds of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guardrails {
    /// Bytes of a batch of several partitions, as Cassandra counts them.
    pub batch_bytes: Threshold,
    /// Partitions of an unlogged batch; warnings only.
    pub unlogged_batch_partitions: Threshold,
    /// Tombstones that one read encounters.
    pub tombstones: Threshold,
    /// Keyspaces that users created.
    pub keyspaces: Threshold,
    /// Tables in them.
    pub tables: Threshold,
    /// Columns of a table.
    pub columns_per_table: Threshold,
    /// Indexes of a table.
    pub secondary_indexes_per_table: Threshold,
    /// Materialized views of a table.
    pub materialized_views_per_table: Threshold,
    /// Fields of a user-defined type.
    pub fields_per_udt: Threshold,
    /// Partition keys of a SELECT.
    pub partition_keys_in_select: Threshold,
    /// Keys that the INs of a SELECT combine to: partition keys, and clustering keys.
    pub in_select_cartesian_product: Threshold,
    /// Rows of a requested page.
    pub page_size: Threshold,
    /// Elements that one write adds to a collection.
    pub items_per_collection: Threshold,
    /// Bytes that one write adds to a collection.
    pub collection_bytes: Threshold,
    /// Bytes of one written value.
    pub column_value_bytes: Threshold,
    /// Elements of a vector, by the type of a column or field.
    pub vector_dimensions: Threshold,
    /// Seconds that a timestamp may lie ahead of now.
    pub maximum_timestamp_seconds: Threshold,
    /// Seconds that a timestamp may lie in the past.
    pub minimum_timestamp_seconds: Threshold,
    /// Bytes of a stored partition; only logged.
    pub partition_bytes: Threshold,
    /// Tombstones of a stored partition; only logged.
    pub partition_tombstones: Threshold,
    /// Consistency levels of reads.
    pub read_levels: Listed,
    /// Consistency levels of writes.
    pub write_levels: Listed,
    /// Options of tables.
    pub table_properties: Listed,
    /// Features that may be switched off.
    pub switches: Switches,
}

impl Default for Guardrails {
    /// Cassandra's defaults.
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            batch_bytes: Threshold::new(5 * 1024, 50 * 1024),
            unlogged_batch_partitions: Threshold {
                warn: Some(10),
                fail: None,
            },
            tombstones: Threshold::new(1000, 100_000),
            keyspaces: off,
            tables: off,
            columns_per_table: off,
            secondary_indexes_per_table: off,
            materialized_views_per_table: off,
            fields_per_udt: off,
            partition_keys_in_select: off,
            in_select_cartesian_product: off,
            page_size: off,
            items_per_collection: off,
            collection_bytes: off,
            column_value_bytes: off,
            vector_dimensions: off,
            maximum_timestamp_seconds: off,
            minimum_timestamp_seconds: off,
            partition_bytes: off,
            partition_tombstones: off,
            read_levels: Listed::default(),
            write_levels: Listed::default(),
            table_properties: Listed::default(),
            switches: Switches::default(),
        }
    }
}

/// The refusal of a command or statement. The text is Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

/// Bytes of a cell in Cassandra in addition to its value and path: timestamp, time to live, local deletion time.
pub const CELL_BYTES: usize = 20;

/// A count as the amount that a threshold is compared with.
#[must_use]
pub fn amount(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Adds a warning, or refuses. `text` receives whether it is a warning, and the threshold.
///
/// # Errors
/// The amount is above the threshold that refuses.
pub fn guard(
    name: &str,
    threshold: &Threshold,
    amount: u64,
    warnings: &mut Vec<String>,
    text: impl Fn(bool, u64) -> String,
) -> Result<(), Violation> {
    let said = |is_warning, threshold| format!("Guardrail {name} violated: {}", text(is_warning, threshold));
    match threshold.level(amount) {
        Level::Fine => Ok(()),
        Level::Warn(threshold) => {
            warnings.push(said(true, threshold));
            Ok(())
        }
        Level::Refuse(threshold) => Err(Violation(said(false, threshold))),
    }
}

/// The word for a level in the text of a guardrail.
#[must_use]
pub const fn grade(is_warning: bool) -> &'static str {
    if is_warning { "warning" } else { "failure" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_two_amounts() {
        assert_eq!("5,10".parse(), Ok(Threshold::new(5, 10)));
        let warn_only = Threshold {
            warn: Some(5),
            fail: None,
        };
        assert_eq!("5".parse(), Ok(warn_only));
        assert_eq!(warn_only.to_string().parse(), Ok(warn_only));
        assert_eq!("off,off".parse(), Ok(Threshold::default()));
        assert!("10,5".parse::<Threshold>().is_err());
        assert!("ten".parse::<Threshold>().is_err());
        let threshold = Threshold::new(5, 10);
        assert_eq!(
            [5, 6, 10, 11].map(|amount| threshold.level(amount)),
            [Level::Fine, Level::Warn(5), Level::Warn(5), Level::Refuse(10)]
        );
    }
}
