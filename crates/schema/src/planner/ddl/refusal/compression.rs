//! Why the options of compression are refused.

use thiserror::Error;

/// Why the options of compression are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompressionRefusal {
    /// `enabled` is false beside other options.
    #[error("If the 'enabled' option is set to false no other options must be specified")]
    OffWithOptions,
    /// No compressor.
    #[error("Missing sub-option 'class' for the 'compression' option.")]
    ClassMissing,
    /// The compressor has no name.
    #[error("The 'class' option must not be empty. To disable compression use 'enabled' : false")]
    ClassEmpty,
    /// A compressor that does not exist.
    #[error("Could not create Compression for type {0}")]
    UnknownClass(String),
    /// Options that the compressor does not have.
    #[error("Unknown compression options {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// `lz4_compressor_type` has no such value.
    #[error(
        "Invalid compressor type '{0}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are [high, fast]."
    )]
    Lz4Kind(String),
    /// `compression_level` is out of range.
    #[error(
        "ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException compression_level={0} is invalid"
    )]
    ZstdLevel(String),
    /// `chunk_length_in_kb` is no integer.
    #[error("Invalid value for chunk_length_in_kb")]
    ChunkLengthText,
    /// `chunk_length_in_kb` is not positive.
    #[error("Invalid negative or null chunk_length_in_kb")]
    ChunkLengthSign,
    /// `chunk_length_in_kb` is no power of two.
    #[error("chunk_length_in_kb must be a power of 2")]
    ChunkLengthPower,
    /// `min_compress_ratio` is no number.
    #[error("Invalid value for min_compress_ratio")]
    RatioText,
    /// `min_compress_ratio` is between 0 and 1.
    #[error("min_compress_ratio can either be 0 or greater than or equal to 1")]
    Ratio,
}
