//! The `advice` room: what a data model will cost, before it has data or from measured figures.
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
//! A schema is executed statement by statement as a server would ([`helenus_schema::planner`]), without data; rules check the
//! resulting tables. Every rule has a stable id, and says what it found, why that costs, and what to do instead. A rule
//! that uses names (`country`, `day`) says so, because a schema does not show how many values a column has. Rules on
//! measured figures do not guess.
//!
//! Invariants: pure and deterministic; findings are sorted by file and place. Nothing is read from a disk here.
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
mod stored;
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

use helenus_schema::profile::Profile;

/// The size limit of a logical partition: 20 GB.
pub const LOGICAL_BYTES_MAX: u64 = 20 << 30;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Costs more than it has to, or will one day.
    Warning,
    /// Does not work, or will stop working.
    Error,
}

impl Level {
    /// Its name in SARIF.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// The severity here.
    pub level: Level,
    /// KEYSPACE.TABLE; empty where no table is concerned.
    pub table: String,
    /// The finding's text.
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
    /// The number of marked characters.
    pub width: usize,
    /// The line's text; empty where there is none.
    #[serde(skip)]
    pub excerpt: String,
}

/// All findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// Sorted by file and place, without accepted ones.
    pub findings: Vec<Finding>,
    /// The number of findings that a comment or a baseline accepts.
    pub accepted: usize,
    /// The tables with measured figures.
    pub tables: Vec<TableFigures>,
}

impl Advice {
    /// The number of findings of this severity.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// The highest severity.
    #[must_use]
    pub fn worst(&self) -> Option<Level> {
        self.findings.iter().map(|finding| finding.level).max()
    }
}

/// The input of the analysis.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Statements that create the schema; other statements in it count as queries.
    pub schema: &'a Script,
    /// The queries.
    pub queries: Option<&'a Script>,
    /// The keyspace of unqualified names, until a USE.
    pub keyspace: &'a str,
    /// The measured figures; `None` means that there was no inventory.
    pub figures: Option<&'a [TableFigures]>,
    /// The size limit of a logical partition, in bytes.
    pub logical_bytes_max: u64,
    /// Days since 1970-01-01 UTC.
    pub today: i64,
    /// The profile whose reasons are given.
    pub profile: Profile,
    /// Findings that are accepted wherever they are; `None` means no baseline.
    pub baseline: Option<&'a Baseline>,
}

/// Sorts findings and removes duplicates.
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

/// Checks a data model.
#[must_use]
pub fn advise(input: &Input<'_>) -> Advice {
    let model = model::Model::of(input);
    let mut found = model.refused.clone();
    tables::check(&model, &mut found);
    queries::check(&model, input, &mut found);
    if let Some(figures) = input.figures {
        stored::check(&model, figures, input, &mut found);
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
