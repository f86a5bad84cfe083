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

/// What is refused although sources contradict each other, are old, or are silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strict {
    /// ALTER TABLE of columns: an old page knows only throughput and time to live, newer tools of the vendor's own add columns.
    pub alter: bool,
    /// LIKE, GROUP BY, PER PARTITION LIMIT: mentioned nowhere.
    pub clauses: bool,
    /// Levels of reads that one page's table forbids and another paragraph of it advises.
    pub consistency: bool,
    /// DELETE of ranges and of partitions: refused in 2020, nothing newer is known.
    pub deletes: bool,
    /// The type `duration`: missing in the list of types.
    pub duration: bool,
    /// Functions that are missing in the list of functions.
    pub functions: bool,
}

impl Strict {
    /// As the setting has them.
    pub const NAMES: [&'static str; 7] = [
        "alter",
        "clauses",
        "consistency",
        "deletes",
        "duration",
        "functions",
        "all",
    ];

    /// All that is named.
    ///
    /// # Errors
    /// The name that is none of [`Strict::NAMES`].
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Result<Self, String> {
        let mut strict = Self::default();
        for name in names {
            match name {
                "alter" => strict.alter = true,
                "clauses" => strict.clauses = true,
                "consistency" => strict.consistency = true,
                "deletes" => strict.deletes = true,
                "duration" => strict.duration = true,
                "functions" => strict.functions = true,
                "all" => {
                    strict = Self {
                        alter: true,
                        clauses: true,
                        consistency: true,
                        deletes: true,
                        duration: true,
                        functions: true,
                    }
                }
                unknown => return Err(unknown.to_owned()),
            }
        }
        Ok(strict)
    }
}

/// The account that a server stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What its reads promise.
    pub consistency: AccountConsistency,
    /// What it refuses besides.
    pub strict: Strict,
}

/// The rules of a profile. In the profile `cassandra` there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The profile.
    pub profile: Profile,
    /// The account.
    pub account: Account,
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
