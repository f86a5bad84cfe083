//! Guardrails that are switches and lists: forbidden features, and forbidden values.
//!
//! Names, texts and conditions are Cassandra's for a user who is no superuser, recorded from a node with the switches
//! off (`db.guardrails.EnableFlag`, `Values`). Here they apply to every user. Differs: where Cassandra's text sends people to its
//! `cassandra.yaml`, the name of our setting follows.

use std::str::FromStr;

use super::{Guardrails, Violation};

/// The refusal of a read that needs ALLOW FILTERING while that is forbidden.
const FILTERING_IS_OFF: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. Executing this query despite the performance unpredictability with ALLOW FILTERING has been disabled by the allow_filtering_enabled property in cassandra.yaml (Helenus: the setting allow-filtering-enabled)";

/// Which features are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own, in Cassandra too"
)]
pub struct Switches {
    /// SELECT with ALLOW FILTERING.
    pub allow_filtering: bool,
    /// SELECT with GROUP BY.
    pub group_by: bool,
    /// USING TIMESTAMP.
    pub user_timestamps: bool,
    /// DROP TABLE and TRUNCATE.
    pub drop_truncate_table: bool,
    /// DROP KEYSPACE.
    pub drop_keyspace: bool,
    /// ALTER TABLE that adds, drops or renames columns.
    pub alter_table: bool,
    /// CREATE INDEX.
    pub secondary_indexes: bool,
    /// CREATE MATERIALIZED VIEW.
    pub materialized_views: bool,
    /// CREATE FUNCTION and CREATE AGGREGATE.
    pub user_defined_functions: bool,
    /// Keyspaces with SimpleStrategy.
    pub simple_strategy: bool,
    /// Tables whose compression is off.
    pub uncompressed_tables: bool,
    /// COMPACT STORAGE.
    pub compact_tables: bool,
    /// DROP COMPACT STORAGE. Off in Cassandra.
    pub drop_compact_storage: bool,
    /// MASKED WITH; where it is off, masks that columns have hide nothing. Off in Cassandra.
    pub data_masking: bool,
    /// Columns of vectors.
    pub vector_type: bool,
    /// Writes to lists that require a read.
    pub read_before_write_list_operations: bool,
    /// TimeWindowCompactionStrategy without a default time to live.
    pub zero_ttl_on_twcs: bool,
    /// The same gives a warning. On in Cassandra, which does not warn superusers and clients without a login; so off
    /// here.
    pub zero_ttl_on_twcs_warned: bool,
}

impl Default for Switches {
    /// Allows everything that Cassandra does not have off by default.
    fn default() -> Self {
        Self {
            allow_filtering: true,
            group_by: true,
            user_timestamps: true,
            drop_truncate_table: true,
            drop_keyspace: true,
            alter_table: true,
            secondary_indexes: true,
            materialized_views: true,
            user_defined_functions: true,
            simple_strategy: true,
            uncompressed_tables: true,
            compact_tables: true,
            drop_compact_storage: false,
            data_masking: false,
            vector_type: true,
            read_before_write_list_operations: true,
            zero_ttl_on_twcs: true,
            zero_ttl_on_twcs_warned: false,
        }
    }
}

/// Names with commas between, in the case in which they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

/// Values that get a warning, and values that are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Values with a warning.
    pub warned: Names,
    /// Refused values.
    pub disallowed: Names,
}

impl Listed {
    /// Checks the values in a statement.
    pub fn check(
        &self,
        guardrail: &str,
        of: &str,
        given: &[&str],
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
        if self.warned.0.is_empty() && self.disallowed.0.is_empty() {
            return Ok(());
        }
        let among = |listed: &Names| {
            let found = given.iter().filter(|name| {
                let mut names = listed.0.iter();
                names.any(|listed| listed.eq_ignore_ascii_case(name))
            });
            found.copied().collect::<Vec<_>>().join(", ")
        };
        let said = |values: &str, verdict: &str, kind: &str, listed: &Names| {
            format!(
                "Guardrail {guardrail} violated: Provided values [{values}] are not {verdict} for {of} ({kind} values are: [{}])",
                listed.0.join(", ")
            )
        };
        let refused = among(&self.disallowed);
        if !refused.is_empty() {
            let text = said(&refused, "allowed", "disallowed", &self.disallowed);
            return Err(Violation(text));
        }
        let warned = among(&self.warned);
        if !warned.is_empty() {
            warnings.push(said(&warned, "recommended", "warned", &self.warned));
        }
        Ok(())
    }
}

/// Refuses a feature that is switched off.
pub fn ensure(is_on: bool, guardrail: &str, what: &str) -> Result<(), Violation> {
    if is_on {
        return Ok(());
    }
    Err(Violation(format!(
        "Guardrail {guardrail} violated: {what} is not allowed"
    )))
}

impl Guardrails {
    /// The text that replaces the refusal of a read that needs ALLOW FILTERING. `None` means ALLOW FILTERING is
    /// allowed.
    #[must_use]
    pub fn filtering_is_off(&self) -> Option<&'static str> {
        (!self.switches.allow_filtering).then_some(FILTERING_IS_OFF)
    }

    /// Checks a consistency level, by its name.
    ///
    /// # Errors
    /// The level is not allowed.
    pub fn level(&self, name: &str, is_write: bool, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let (listed, guardrail, of) = if is_write {
            (
                &self.write_levels,
                "write_consistency_levels",
                "write consistency levels",
            )
        } else {
            (&self.read_levels, "read_consistency_levels", "read consistency levels")
        };
        listed.check(guardrail, of, &[name], warnings)
    }

    /// Checks a TRUNCATE.
    ///
    /// # Errors
    /// TRUNCATE is switched off.
    pub fn truncate(&self) -> Result<(), Violation> {
        let is_on = self.switches.drop_truncate_table;
        ensure(
            is_on,
            "drop_truncate_table_enabled",
            "DROP and TRUNCATE TABLE functionality",
        )
    }
}
