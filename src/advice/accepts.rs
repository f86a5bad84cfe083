//! Comments that accept findings, and comments that accept none.

use std::collections::BTreeSet;

use super::model::{Model, Spot};
use super::rules::{self, RULES, Rule};
use super::script::Idle;
use super::{Finding, Input, Level, Script};

/// Rules that only measured figures can break.
const BY_FIGURES: &[Rule] = &[
    rules::CAP_FORECAST,
    rules::FEW_PARTITIONS,
    rules::HOT_RANGE,
    rules::NEAR_CAP,
];

/// Rules about the schema that only queries can break.
const BY_QUERIES: &[Rule] = &[
    rules::CONSTANT_BUCKET,
    rules::INDEX_CHANGING,
    rules::INDEX_UNUSED,
    rules::QUEUE,
    rules::UNUSED_TABLE,
    rules::VIEW_UNUSED,
];

/// Removes the findings that comments accept, and adds a warning for each comment that accepts none. Returns the number
/// of accepted findings.
pub(super) fn carry_out(input: &Input<'_>, model: &Model, found: &mut Vec<Finding>) -> usize {
    let mut idle = Vec::new();
    let before = found.len();
    for script in [input.schema].into_iter().chain(input.queries) {
        let mut used = BTreeSet::new();
        found.retain(|finding| {
            let of_file = finding.file == script.name;
            let by = script.accepts(finding.rule, finding.line).filter(|_| of_file);
            used.extend(by.map(|comment| (comment, finding.rule)));
            by.is_none()
        });
        tell(script, &used, input, model, &mut idle);
    }
    let accepted = before - found.len();
    found.append(&mut idle);
    accepted
}

/// Adds a warning for each comment that accepts nothing.
fn tell(script: &Script, used: &BTreeSet<(usize, &str)>, input: &Input<'_>, model: &Model, found: &mut Vec<Finding>) {
    for (place, width, why) in script.idle(used) {
        let message = match why {
            Idle::Verb(verb) => format!("\"{verb}\" is no word of such a comment: only \"accept\" is"),
            Idle::NoRule => "it names no rule".to_owned(),
            Idle::Rule(rule) if !RULES.iter().any(|known| known.id == rule) => {
                format!("there is no rule {rule}; docs/src/reference/lint.md has all")
            }
            Idle::Rule(rule) if is_looked_for(&rule, input, model) => {
                format!("{rule} finds nothing in the statement of this comment")
            }
            Idle::Rule(_) => continue,
        };
        let spot = Spot {
            file: script.name.clone(),
            place,
            width,
        };
        found.push(spot.finding(&rules::ACCEPTS_NOTHING, Level::Warning, String::new(), message));
    }
}

/// Whether a rule could find anything: not without the figures, queries or profile that it needs.
fn is_looked_for(rule: &str, input: &Input<'_>, model: &Model) -> bool {
    let is_of = |rules: &[Rule]| rules.iter().any(|known| known.id == rule);
    let needs_figures = is_of(BY_FIGURES) && input.figures.is_none();
    let needs_queries = is_of(BY_QUERIES) && !model.has_queries;
    let needs_cosmos = rule == rules::MISSING_KEY_INDEX.id && !input.profile.is_cosmos();
    !(needs_figures || needs_queries || needs_cosmos)
}
