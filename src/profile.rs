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
