//! The `advice` room: what a data model will cost, said before it has data, or by what it has.
//!
//! ```text
//! schema.cql, queries.cql ─ script ─→ statements ─ model ─→ tables, indexes, queries with their places ─┬─ tables  ─→ Finding
//! a survey of stored rows (made elsewhere) ─→ TableFigures ──────────────────────────────────────────── ├─ queries ─→ Finding
//!                                                                                                       └─ figures ─→ Finding
//! Advice { findings, tables } ─ report ─→ text, JSON, SARIF 2.1.0
//!
//! -- helenus: accept RULE, RULE why      in the line before a statement, or in it: what these rules find in it is accepted; a comment
//!                                        that accepts nothing is a finding itself
//! ```
//! A schema is carried out statement by statement as a server would ([`crate::planner`]), on nothing; rules look at what came of it.
//! Every rule has an id, which is stable, and says what it found, why that costs, and what to do instead. A rule that goes by names
//! (`country`, `day`) says so: a schema does not tell how many values a column has. Real figures do, and rules on figures do not guess.
//!
//! Invariants: pure, and the same for the same input; findings come in order of file and place. Nothing is read from a disk here.
//! Deliberately absent: fixing a model; rules about style; what other databases would do with it.
//! Sources: Azure Cosmos DB's documentation of partitioning, limits, secondary indexing and request units; Cassandra's of data
//! modelling; SARIF 2.1.0 (OASIS).

mod accepts;
mod baseline;
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
mod unread;

pub use baseline::Baseline;
pub use figures::{Forecast, LogicalFigures, PhysicalFigures, TableFigures, forecast};
pub use report::{Style, explained, json, sarif, text};
pub use rules::{RULES, Rule};
pub use script::{Place, Script};
pub use unread::Unread;

use serde::Serialize;

use crate::profile::Profile;

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
    /// The line of the file; empty where there is none.
    #[serde(skip)]
    pub excerpt: String,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// In order of file and place, those that are accepted left out.
    pub findings: Vec<Finding>,
    /// How many are accepted, by a comment or a baseline.
    pub accepted: usize,
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
    /// For whose reasons.
    pub profile: Profile,
    /// Findings that are accepted wherever they stand; `None`: none are.
    pub baseline: Option<&'a Baseline>,
}

/// Puts findings in order, without those that say the same.
fn sort(input: &Input<'_>, found: &mut Vec<Finding>) {
    let place = |finding: &Finding| {
        let is_query = finding.file != input.schema.name;
        (is_query, finding.line, finding.column)
    };
    found.sort_by(|a, b| {
        let order = place(a).cmp(&place(b)).then(b.level.cmp(&a.level));
        order.then(a.rule.cmp(b.rule))
    });
    found.dedup();
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
    if !input.profile.is_cosmos() {
        found.retain(|finding| finding.rule != rules::MISSING_KEY_INDEX.id);
    }
    sort(input, &mut found);
    let by_comments = accepts::carry_out(input, &model, &mut found);
    sort(input, &mut found);
    let before = found.len();
    found.retain(|finding| !input.baseline.is_some_and(|baseline| baseline.has(finding)));
    let accepted = by_comments + before - found.len();
    for finding in &mut found {
        let of_file = |script: &&Script| script.name == finding.file;
        let script = Some(input.schema).into_iter().chain(input.queries).find(of_file);
        finding.excerpt = script.map_or_else(String::new, |script| script.line(finding.line).to_owned());
        if let Some(rule) = RULES.iter().find(|rule| rule.id == finding.rule) {
            finding.why = rule.why_in(input.profile);
        }
    }
    let known = |figures: &&TableFigures| model.table(&figures.keyspace, &figures.table).is_some();
    Advice {
        findings: found,
        accepted,
        tables: input
            .figures
            .unwrap_or_default()
            .iter()
            .filter(known)
            .cloned()
            .collect(),
    }
}
