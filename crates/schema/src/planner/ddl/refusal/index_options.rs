//! Why the options of a CUSTOM index, or its targets, are refused.

use thiserror::Error;

use super::code::Code;
use helenus_types::types::CqlType;

/// Why the options of a CUSTOM index, or its targets, are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IndexOptionRefusal {
    /// An option that only the server sets.
    #[error("Cannot specify {0} as a CUSTOM option")]
    Reserved(&'static str),
    /// A class that does not exist.
    #[error("Unable to find custom indexer class '{0}'")]
    UnknownClass(String),
    /// Unknown options of a storage-attached index.
    #[error("Properties specified [{}] are not understood by StorageAttachedIndex", .0.join(", "))]
    NotUnderstood(Vec<String>),
    /// A storage-attached index of no column.
    #[error("Failed to retrieve target column for: ")]
    NoTarget,
    /// A storage-attached index of several columns.
    #[error("A storage-attached index cannot be created over multiple columns: {}", .0.join(", "))]
    SeveralTargets(Vec<String>),
    /// The column has a storage-attached index.
    #[error("Cannot create more than one storage-attached index on the same column: {0}")]
    Taken(String),
    /// Analysis of a column of the primary key: the options, each with its value.
    #[error("Analysis options are not supported on primary key columns, but found {{{}}}", .0.join(", "))]
    AnalysisOfKey(Vec<String>),
    /// Analysis of values that are no text.
    #[error("CQL type {} cannot be analyzed.", .0.cql_name())]
    AnalysisOfType(CqlType),
    /// Analysis of a map's entries: their class.
    #[error("CQL type '{0}' cannot be analyzed.")]
    AnalysisOfEntries(String),
    /// An option without a value.
    #[error("Empty value for boolean option '{0}'")]
    EmptyBoolean(String),
    /// An option that is no boolean.
    #[error("Illegal value for boolean option '{option}': {value}")]
    IllegalBoolean {
        /// The option.
        option: String,
        /// The value as written.
        value: String,
    },
    /// Options of vectors for another type.
    #[error("CQL type {} cannot have vector options", .0.cql_name())]
    VectorOptions(CqlType),
    /// A type that a storage-attached index cannot store.
    #[error("Unsupported type: {}", .0.cql_name())]
    Type(CqlType),
    /// Vectors of other elements than floats.
    #[error("SAI ANN indexes are only allowed on vector columns with float elements")]
    VectorElement,
    /// A number out of range.
    #[error("{what} for index null cannot be <= 0 or > {max}, was {number}")]
    NumberRange {
        /// The option.
        what: &'static str,
        /// The maximum.
        max: i32,
        /// The number given.
        number: i32,
    },
    /// A text that is no integer.
    #[error("{what} {text} is not a valid integer for index null")]
    NumberText {
        /// The option.
        what: &'static str,
        /// The text as written.
        text: String,
    },
    /// A similarity that does not exist, in capital letters.
    #[error(
        "Similarity function {0} was not recognized for index null. Valid values are: EUCLIDEAN, DOT_PRODUCT, COSINE"
    )]
    Similarity(String),
    /// `optimize_for` has no such value, in capital letters.
    #[error("optimize_for '{0}' was not recognized for index null. Valid values are: LATENCY, RECALL")]
    Optimize(String),
    /// Cosine similarity of vectors of one element.
    #[error("Cosine similarity is not supported for single-dimension vectors")]
    CosineOfOne,
    /// SASI of no column, or of several.
    #[error("failed to retrieve target column for: {}", .0.join(", "))]
    SasiTargets(Vec<String>),
    /// SASI of a column of many cells.
    #[error("complex columns are not yet supported by SASI")]
    SasiMultiCell,
    /// SASI of a column of the partition key.
    #[error("partition key columns are not yet supported by SASI")]
    SasiPartitionKey,
    /// An analyzer that does not exist.
    #[error("Unable to find analyzer class '{0}'")]
    Analyzer(String),
    /// An analyzer that does not support the column's type.
    #[error("{analyzer} does not support type {}", .ty.cql_name())]
    AnalyzerType {
        /// The analyzer.
        analyzer: String,
        /// Its type.
        ty: CqlType,
    },
    /// `case_sensitive` beside `normalize_lowercase` or `normalize_uppercase`.
    #[error(
        "case_sensitive option cannot be specified together with either normalize_lowercase or normalize_uppercase"
    )]
    CaseTwice,
    /// Both `normalize_lowercase` and `normalize_uppercase`.
    #[error("normalize_lowercase and normalize_uppercase cannot be specified together")]
    BothCases,
    /// A delimiter of more or less than one character.
    #[error("Only single character delimiters supported, was {0}")]
    Delimiter(String),
    /// `SPARSE` of texts.
    #[error("SPARSE mode is only supported on non-literal columns.")]
    SparseText,
    /// A mode that does not exist.
    #[error("Incorrect index mode: {0}")]
    Mode(String),
}

impl IndexOptionRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::Reserved(_)
            | Self::NoTarget
            | Self::SeveralTargets(_)
            | Self::Taken(_)
            | Self::AnalysisOfKey(_)
            | Self::AnalysisOfType(_)
            | Self::AnalysisOfEntries(_)
            | Self::EmptyBoolean(_)
            | Self::IllegalBoolean { .. }
            | Self::VectorOptions(_)
            | Self::Type(_)
            | Self::VectorElement
            | Self::NumberRange { .. }
            | Self::NumberText { .. }
            | Self::Similarity(_)
            | Self::Optimize(_)
            | Self::CosineOfOne => Code::Invalid,
            Self::UnknownClass(_)
            | Self::NotUnderstood(_)
            | Self::SasiTargets(_)
            | Self::SasiMultiCell
            | Self::SasiPartitionKey
            | Self::Analyzer(_)
            | Self::AnalyzerType { .. }
            | Self::CaseTwice
            | Self::BothCases
            | Self::Delimiter(_)
            | Self::SparseText
            | Self::Mode(_) => Code::Configuration,
        }
    }
}
