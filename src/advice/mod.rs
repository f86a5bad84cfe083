//! The `advice` room: what a data model will cost, said before it has data, or by what it has.
//!
//! ```text
//! schema.cql, queries.cql ─ script ─→ statements ─ model ─→ tables, indexes, queries with their places ─┬─ tables  ─→ Finding
//! a survey of stored rows (made elsewhere) ─→ TableFigures ──────────────────────────────────────────── ├─ queries ─→ Finding
//!                                                                                                       └─ figures ─→ Finding
//! Advice { findings, tables } ─ report ─→ text, JSON, SARIF 2.1.0
//! ```
//! A schema is carried out statement by statement as a server would ([`crate::planner`]), on nothing; rules look at what came of it.
//! Every rule has an id, which is stable, and says what it found, why that costs, and what to do instead. A rule that goes by names
//! (`country`, `day`) says so: a schema does not tell how many values a column has. Real figures do, and rules on figures do not guess.
//!
//! Invariants: pure, and the same for the same input; findings come in order of file and place. Nothing is read from a disk here.
//! Deliberately absent: fixing a model; rules about style; what other databases would do with it.
//! Sources: Azure Cosmos DB's documentation of partitioning, limits, secondary indexing and request units; Cassandra's of data
//! modelling; SARIF 2.1.0 (OASIS).

mod figures;
mod model;
mod names;
mod queries;
mod report;
mod rules;
mod script;
mod tables;
#[cfg(test)]
mod tests;

pub use figures::{Forecast, LogicalFigures, PhysicalFigures, TableFigures, forecast};
pub use report::{json, sarif, text};
pub use rules::{RULES, Rule};
pub use script::{Place, Script};

use serde::Serialize;

/// Bytes at which a logical partition takes no more: 20 GB.
pub const LOGICAL_BYTES_MAX: u64 = 20 << 30;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Costs more than it has to, or will one day.
    Warning,
    /// Does not work, or will stop to.
    Error,
}

impl Level {
    /// Its name, as SARIF has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: &'static str,
    /// How much it matters here.
    pub level: Level,
    /// KEYSPACE.TABLE; empty where no table is concerned.
    pub table: String,
    /// What was found.
    pub message: String,
    /// Why that costs.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Characters that are meant.
    pub width: usize,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// In order of file and place.
    pub findings: Vec<Finding>,
    /// The tables with real figures.
    pub tables: Vec<TableFigures>,
}

impl Advice {
    /// How many findings matter so much.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// What matters most.
    #[must_use]
    pub fn worst(&self) -> Option<Level> {
        self.findings.iter().map(|finding| finding.level).max()
    }
}

/// What advice is about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Statements that make the schema; others in it are taken for queries.
    pub schema: &'a Script,
    /// Statements that are asked.
    pub queries: Option<&'a Script>,
    /// Where names without a keyspace are, until a USE.
    pub keyspace: &'a str,
    /// What is stored; `None`: not looked at.
    pub figures: Option<&'a [TableFigures]>,
    /// Bytes at which a logical partition takes no more.
    pub logical_bytes_max: u64,
    /// Days since 1970-01-01 UTC.
    pub today: i64,
}

/// Looks at a data model.
#[must_use]
pub fn advise(input: &Input<'_>) -> Advice {
    let model = model::Model::of(input);
    let mut found = model.refused.clone();
    tables::judge(&model, &mut found);
    queries::judge(&model, input, &mut found);
    if let Some(figures) = input.figures {
        figures::judge(&model, figures, input, &mut found);
    }
    let file = |finding: &Finding| usize::from(finding.file != input.schema.name);
    found.sort_by(|a, b| {
        let place = |finding: &Finding| (file(finding), finding.line, finding.column);
        place(a)
            .cmp(&place(b))
            .then(b.level.cmp(&a.level))
            .then(a.rule.cmp(b.rule))
    });
    found.dedup();
    let known = |figures: &&TableFigures| model.table(&figures.keyspace, &figures.table).is_some();
    Advice {
        findings: found,
        tables: input
            .figures
            .unwrap_or_default()
            .iter()
            .filter(known)
            .cloned()
            .collect(),
    }
}
