//! Guardrails that are switches and lists: what may not be done at all, and which values may not be given.
//!
//! Names, texts and what each looks at are Cassandra's answers to a user who is no superuser, asked of one whose switches were off
//! (`db.guardrails.EnableFlag`, `Values`). Here they hold for everybody.

use std::str::FromStr;

use super::{Guardrails, Violation};

/// Said where ALLOW FILTERING would be needed and may not be used.
const FILTERING_IS_OFF: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. Executing this query despite the performance unpredictability with ALLOW FILTERING has been disabled by the allow_filtering_enabled property in cassandra.yaml";

/// What may be done.
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
    /// Columns of vectors.
    pub vector_type: bool,
    /// Writes to lists that have to read them.
    pub read_before_write_list_operations: bool,
    /// TimeWindowCompactionStrategy without a default time to live.
    pub zero_ttl_on_twcs: bool,
    /// The same is warned of. On in Cassandra, which does not warn superusers and clients without a login; so off here.
    pub zero_ttl_on_twcs_warned: bool,
}

impl Default for Switches {
    /// Everything may be done.
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
            vector_type: true,
            read_before_write_list_operations: true,
            zero_ttl_on_twcs: true,
            zero_ttl_on_twcs_warned: false,
        }
    }
}

/// Names with commas between, in lower or upper case as they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl FromStr for Names {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }
}

/// Values that are warned of, and such as are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Warned of.
    pub warned: Names,
    /// Refused.
    pub disallowed: Names,
}

impl Listed {
    /// Looks at the values that a statement gives.
    pub(crate) fn judge(
        &self,
        guardrail: &str,
        of: &str,
        given: &[&str],
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
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

/// Refuses what is switched off.
pub(crate) fn ensure(is_on: bool, guardrail: &str, what: &str) -> Result<(), Violation> {
    if is_on {
        return Ok(());
    }
    Err(Violation(format!(
        "Guardrail {guardrail} violated: {what} is not allowed"
    )))
}

impl Guardrails {
    /// The text that replaces the refusal of a read that needs ALLOW FILTERING; `None`: ALLOW FILTERING is permitted.
    #[must_use]
    pub fn filtering_is_off(&self) -> Option<&'static str> {
        (!self.switches.allow_filtering).then_some(FILTERING_IS_OFF)
    }

    /// Looks at a consistency level, by its name.
    ///
    /// # Errors
    /// When it may not be asked for.
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
        listed.judge(guardrail, of, &[name], warnings)
    }

    /// Looks at a TRUNCATE.
    ///
    /// # Errors
    /// When it is switched off.
    pub fn truncate(&self) -> Result<(), Violation> {
        let is_on = self.switches.drop_truncate_table;
        ensure(
            is_on,
            "drop_truncate_table_enabled",
            "DROP and TRUNCATE TABLE functionality",
        )
    }
}
