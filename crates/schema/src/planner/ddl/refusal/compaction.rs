//! Why the options of compaction are refused.

use helenus_types::types::java_f64;
use thiserror::Error;

/// Why the options of compaction are refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CompactionRefusal {
    /// No strategy.
    #[error("Missing sub-option 'class' for the 'compaction' option")]
    ClassMissing,
    /// A strategy that does not exist.
    #[error("Unable to find compaction strategy class '{0}'")]
    UnknownClass(String),
    /// Options that the strategy does not have.
    #[error("Properties specified [{}] are not understood by {strategy}", .options.join(", "))]
    NotUnderstood {
        /// The options.
        options: Vec<String>,
        /// The strategy.
        strategy: String,
    },
    /// `enabled` is no boolean.
    #[error("enabled should either be 'true' or 'false', not {0}")]
    Enabled(String),
    /// `provide_overlapping_tombstones` has no such value, in capital letters.
    #[error(
        "Invalid value {0} for 'provide_overlapping_tombstones' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
    )]
    OverlappingTombstones(String),
    /// An option that is no integer.
    #[error("{value} is not a parsable int (base10) for {option}")]
    NotInteger {
        /// The value as written.
        value: String,
        /// The option.
        option: &'static str,
    },
    /// An option that must be positive.
    #[error("{option} must be larger than 0, but was {number}")]
    NotPositive {
        /// The option.
        option: &'static str,
        /// The number given.
        number: i64,
    },
    /// An option that is no number.
    #[error("{value} is not a parsable float for {option}")]
    NotFloat {
        /// The value as written.
        value: String,
        /// The option.
        option: &'static str,
    },
    /// `tombstone_threshold` is no number.
    #[error("{0} is not a parsable int (base10) for tombstone_threshold")]
    TombstoneThresholdText(String),
    /// `tombstone_threshold` is negative.
    #[error("tombstone_threshold must be greater than 0, but was {0:.6}")]
    TombstoneThreshold(f32),
    /// `tombstone_compaction_interval` is negative.
    #[error("tombstone_compaction_interval must be greater than 0, but was {0}")]
    TombstoneInterval(i64),
    /// `unchecked_tombstone_compaction` is no boolean.
    #[error("'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{0}'")]
    UncheckedTombstones(String),
    /// `log_all` is no boolean.
    #[error("'log_all' should either be 'true' or 'false', not {0}")]
    LogAll(String),
    /// `min_sstable_size` is negative.
    #[error("min_sstable_size must be non negative: {0}")]
    MinTableSize(i64),
    /// `bucket_high` is not above `bucket_low`.
    #[error("bucket_high value ({}) is less than or equal to the bucket_low value ({})", java_f64(*.high), java_f64(*.low))]
    Buckets {
        /// The higher.
        high: f64,
        /// The lower.
        low: f64,
    },
    /// `timestamp_resolution` has no such value.
    #[error("{0} is not valid for timestamp_resolution")]
    Resolution(String),
    /// `compaction_window_unit` has no such value.
    #[error("{0} is not valid for compaction_window_unit")]
    WindowUnit(String),
    /// `compaction_window_size` is not positive.
    #[error("{0} must be greater than 1 for compaction_window_size")]
    WindowSize(i64),
    /// `expired_sstable_check_frequency_seconds` is negative.
    #[error("expired_sstable_check_frequency_seconds must not be negative, but was {0}")]
    ExpiryCheck(i64),
    /// `unsafe_aggressive_sstable_expiration` is no boolean.
    #[error("unsafe_aggressive_sstable_expiration is not 'true' or 'false' ({0})")]
    AggressiveExpiry(String),
    /// A malformed scaling parameter.
    #[error("Scaling parameter {0} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+")]
    ScalingParameter(String),
    /// `target_sstable_size` has no unit.
    #[error("target_sstable_size {0} is not a valid size in bytes: {0} does not end in unit B")]
    TargetSize(String),
    /// `base_shard_count` is not positive.
    #[error("Invalid configuration, base_shard_count should be positive: {0}")]
    ShardCount(i64),
    /// A threshold that is no integer.
    #[error("Invalid value {value} for '{option}' compaction sub-option - must be an integer")]
    ThresholdText {
        /// The value as written.
        value: String,
        /// The option.
        option: &'static str,
    },
    /// A threshold of 0 or less.
    #[error(
        "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option 'enabled' to false instead."
    )]
    NoThreshold,
    /// `min_threshold` is too low.
    #[error("Min compaction threshold cannot be less than 2 (got {0})")]
    MinThreshold(i64),
    /// `min_threshold` is above `max_threshold`.
    #[error("Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})")]
    ThresholdOrder {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
}
