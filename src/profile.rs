//! Whom the server behaves as: Apache Cassandra with everything that Cosmos allows besides, or Azure Cosmos DB for Apache
//! Cassandra, which also refuses what Cosmos refuses. Chosen once, at start.

use std::fmt;
use std::str::FromStr;

/// Whom the server behaves as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Apache Cassandra; nothing is throttled unless it is provisioned.
    #[default]
    Cassandra,
    /// Azure Cosmos DB for Apache Cassandra, with its rules, texts and budgets.
    Cosmos,
}

impl Profile {
    /// Whether Cosmos's rules are in force.
    #[must_use]
    pub const fn is_cosmos(self) -> bool {
        matches!(self, Self::Cosmos)
    }

    /// As the setting is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cassandra => "cassandra",
            Self::Cosmos => "cosmos",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What an account's reads promise. Source: Azure Cosmos DB's documentation of consistency levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Cosmos's own")]
pub enum AccountConsistency {
    Strong,
    BoundedStaleness,
    #[default]
    Session,
    ConsistentPrefix,
    Eventual,
}

impl AccountConsistency {
    /// Every level, from the strongest on.
    pub const ALL: [Self; 5] = [
        Self::Strong,
        Self::BoundedStaleness,
        Self::Session,
        Self::ConsistentPrefix,
        Self::Eventual,
    ];

    /// As the setting is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::BoundedStaleness => "bounded-staleness",
            Self::Session => "session",
            Self::ConsistentPrefix => "consistent-prefix",
            Self::Eventual => "eventual",
        }
    }

    /// Whether a read asks two of the four replicas, and costs twice as much.
    #[must_use]
    pub const fn reads_two(self) -> bool {
        matches!(self, Self::Strong | Self::BoundedStaleness)
    }
}

impl FromStr for AccountConsistency {
    type Err = UnknownConsistency;

    fn from_str(text: &str) -> Result<Self, UnknownConsistency> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or(UnknownConsistency)
    }
}

/// A text that names no account's consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of strong, bounded-staleness, session, consistent-prefix, eventual")]
pub struct UnknownConsistency;

/// A text that names no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of cassandra, cosmos")]
pub struct UnknownProfile;

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        [Self::Cassandra, Self::Cosmos]
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or(UnknownProfile)
    }
}
