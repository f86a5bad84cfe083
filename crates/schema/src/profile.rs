//! The compatibility profile: Apache Cassandra with all that Cosmos allows in addition, or Azure Cosmos DB for Apache
//! Cassandra, which also refuses what Cosmos refuses. Chosen once, at the start.

use std::fmt;
use std::str::FromStr;

/// The compatibility profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Apache Cassandra; nothing is throttled unless throughput is provisioned.
    #[default]
    Cassandra,
    /// Azure Cosmos DB for Apache Cassandra, with its rules, texts and budgets.
    Cosmos,
}

impl Profile {
    /// Whether Cosmos's rules apply.
    #[must_use]
    pub const fn is_cosmos(self) -> bool {
        matches!(self, Self::Cosmos)
    }

    /// The name in the settings.
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

/// The consistency of an account's reads. Source: Azure Cosmos DB's documentation of consistency levels.
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
    /// Every level, strongest first.
    pub const ALL: [Self; 5] = [
        Self::Strong,
        Self::BoundedStaleness,
        Self::Session,
        Self::ConsistentPrefix,
        Self::Eventual,
    ];

    /// The name in the settings.
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

    /// Whether a read uses two of the four replicas, and costs twice as much.
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

/// Statements to refuse although sources contradict each other, are old, or are silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strict {
    /// ALTER TABLE of columns: an old page allows only throughput and time to live, newer tools of the vendor add
    /// columns.
    pub alter: bool,
    /// LIKE, GROUP BY, PER PARTITION LIMIT: no source mentions them.
    pub clauses: bool,
    /// Levels of reads that one page's table forbids and another paragraph of it recommends.
    pub consistency: bool,
    /// DELETE of ranges and of partitions: refused in 2020, nothing newer is known.
    pub deletes: bool,
    /// The type `duration`: missing in the list of types.
    pub duration: bool,
    /// Functions that are missing in the list of functions.
    pub functions: bool,
}

impl Strict {
    /// The names in the settings.
    pub const NAMES: [&'static str; 7] = [
        "alter",
        "clauses",
        "consistency",
        "deletes",
        "duration",
        "functions",
        "all",
    ];

    /// The set of the named parts.
    ///
    /// # Errors
    /// A name that is not in [`Strict::NAMES`].
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

/// The account that the server emulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The consistency of its reads.
    pub consistency: AccountConsistency,
    /// What it refuses in addition.
    pub strict: Strict,
}

/// The rules of a profile. The profile `cassandra` has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The profile.
    pub profile: Profile,
    /// The account.
    pub account: Account,
}

/// A text that is no account consistency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of strong, bounded-staleness, session, consistent-prefix, eventual")]
pub struct UnknownConsistency;

/// A text that is no profile.
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
