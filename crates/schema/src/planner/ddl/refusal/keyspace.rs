//! Why a change of a keyspace is refused.

use thiserror::Error;

use super::code::Code;

/// Why a change of a keyspace is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyspaceRefusal {
    /// CREATE of a system keyspace.
    #[error("System keyspace '{0}' is not user-modifiable")]
    System(String),
    /// No replication.
    #[error("Missing mandatory option 'replication'")]
    ReplicationMissing,
    /// The keyspace's name has other characters than letters, digits and `_`.
    #[error(
        "Keyspace name must not be empty and must contain alphanumeric or underscore characters only (got \"{0}\")"
    )]
    NameCharacters(String),
    /// The keyspace's name is too long.
    #[error(
        "Keyspace name must not be more than {characters_max} characters long (got {count} characters for \"{name}\")"
    )]
    NameLength {
        /// The number of characters.
        count: usize,
        /// Its name.
        name: String,
        /// The maximum number of characters.
        characters_max: usize,
    },
    /// No replication strategy.
    #[error("Missing replication strategy class")]
    ClassMissing,
    /// The strategy of the server's own keyspaces.
    #[error("Unable to use given strategy class: LocalStrategy is reserved for internal use.")]
    LocalStrategy,
    /// A replication strategy that does not exist.
    #[error("Unable to find replication strategy class '{0}'")]
    UnknownClass(String),
    /// An option that SimpleStrategy does not have.
    #[error("Unrecognized strategy option {{{option}}} passed to SimpleStrategy for keyspace {keyspace}")]
    SimpleOption {
        /// The option.
        option: String,
        /// Its keyspace.
        keyspace: String,
    },
    /// NetworkTopologyStrategy without a data center.
    #[error("Configuration for at least one datacenter must be present")]
    NoDataCenter,
    /// A data center that does not exist.
    #[error("Unrecognized strategy option {{{option}}} passed to NetworkTopologyStrategy for keyspace {keyspace}")]
    DataCenter {
        /// The option.
        option: String,
        /// Its keyspace.
        keyspace: String,
    },
    /// Transient replicas, which are not supported.
    #[error("Transient replication is not enabled on this node")]
    Transient,
    /// A replication factor that is no integer.
    #[error("For input string: \"{0}\"")]
    FactorText(String),
    /// A replication factor that is negative.
    #[error("Replication factor must be non-negative, found {0}")]
    FactorSign(i32),
}

impl KeyspaceRefusal {
    pub(in crate::planner::ddl) const fn code(&self) -> Code<'static> {
        match self {
            Self::System(_)
            | Self::ReplicationMissing
            | Self::NameCharacters(_)
            | Self::NameLength { .. }
            | Self::LocalStrategy => Code::Invalid,
            Self::ClassMissing
            | Self::UnknownClass(_)
            | Self::SimpleOption { .. }
            | Self::NoDataCenter
            | Self::DataCenter { .. }
            | Self::Transient
            | Self::FactorText(_)
            | Self::FactorSign(_) => Code::Configuration,
        }
    }
}
