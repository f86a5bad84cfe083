//! Why an option of a table is refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::java_f64;

/// Why an option of a table is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OptionRefusal {
    /// A memtable that is not configured.
    #[error("Memtable configuration \"{0}\" not found.")]
    Memtable(String),
    /// `read_repair` has no such value.
    #[error("Invalid value {0} for 'read_repair': only BLOCKING and NONE are allowed")]
    ReadRepair(String),
    /// `bloom_filter_fp_chance` is out of range.
    #[error("bloom_filter_fp_chance must be larger than {} and less than or equal to 1.0 (got {})", java_f64(*.min), java_f64(*.number))]
    BloomFilter {
        /// The minimum.
        min: f64,
        /// The number given.
        number: f64,
    },
    /// `crc_check_chance` is out of range.
    #[error("crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})", java_f64(*.0))]
    CrcCheck(f64),
    /// An option that is too small.
    #[error("{option} must be greater than or equal to {least} (got {value})")]
    TooSmall {
        /// The option.
        option: &'static str,
        /// The minimum.
        least: i32,
        /// The value as written.
        value: i32,
    },
    /// `default_time_to_live` is too large.
    #[error("default_time_to_live must be less than or equal to {seconds_max} (got {seconds})")]
    TimeToLive {
        /// The seconds given.
        seconds: i32,
        /// The maximum, in seconds.
        seconds_max: i32,
    },
    /// `max_index_interval` is below `min_index_interval`.
    #[error("max_index_interval must be greater than or equal to min_index_interval ({min}) (got {max})")]
    IndexIntervals {
        /// The minimum.
        min: i32,
        /// The maximum.
        max: i32,
    },
    /// Options that caching does not have.
    #[error("Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed", .0.join(", "))]
    Caching(Vec<String>),
    /// `keys` has no such value.
    #[error("Invalid value '{0}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed")]
    CachingKeys(String),
    /// `rows_per_partition` has no such value.
    #[error(
        "Invalid value '{0}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer values are allowed"
    )]
    CachingRows(String),
    /// `speculative_retry` or `additional_write_policy` is malformed.
    #[error("Invalid value {0} for option 'speculative_retry'")]
    Retry(String),
    /// Both arguments of MIN or MAX are of one kind.
    #[error(
        "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, but both are of type {kind}"
    )]
    RetryKinds {
        /// The text as written.
        text: String,
        /// The kind.
        kind: &'static str,
    },
    /// A percentile out of range.
    #[error("Invalid value {0} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)")]
    RetryPercentile(String),
}

impl OptionRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Memtable(_)
            | Self::BloomFilter { .. }
            | Self::CrcCheck(_)
            | Self::TooSmall { .. }
            | Self::TimeToLive { .. }
            | Self::IndexIntervals { .. }
            | Self::Caching(_)
            | Self::CachingKeys(_)
            | Self::CachingRows(_)
            | Self::Retry(_)
            | Self::RetryKinds { .. }
            | Self::RetryPercentile(_) => Code::Configuration,
            Self::ReadRepair(_) => Code::Syntax,
        }
    }
}
