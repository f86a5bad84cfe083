//! Compares the two answers to a statement. What is known to differ is in one table, each entry with its reason, and is
//! counted; nothing is passed over in silence.

use super::question::{Kind, Question};
use serde_json::Value;

/// A difference that has been judged.
pub(super) struct Rule {
    /// Why it is one.
    pub(super) reason: &'static str,
    /// Whether this is a case of it.
    holds: fn(&Case<'_>) -> bool,
}

/// Two answers to one statement.
struct Case<'a> {
    question: &'a Question,
    theirs: &'a Value,
    ours: &'a Value,
}

impl Case<'_> {
    fn both(&self, code: &str) -> bool {
        code_of(self.theirs) == Some(code) && code_of(self.ours) == Some(code)
    }

    fn is_text_only(&self) -> bool {
        code_of(self.theirs).is_some() && code_of(self.theirs) == code_of(self.ours)
    }
}

/// What is known to differ, and why.
pub(super) const RULES: &[Rule] = &[
    Rule {
        reason: "Cassandra fails with a server error, its own bug; any refusal says the same",
        holds: |case| code_of(case.theirs) == Some("0x0000") && code_of(case.ours).is_some(),
    },
    Rule {
        reason: "Cassandra does not take its own paging state back in pages of groups",
        holds: |case| {
            code_of(case.theirs) == Some("0x000A")
                && case.question.page.is_some()
                && case.question.text.contains("GROUP BY")
                && code_of(case.ours).is_none()
        },
    },
    Rule {
        reason: "words of a syntax error after a mutation: the parser generator's tables decide which tokens it names",
        holds: |case| case.question.spoiled && case.both("0x2000"),
    },
    Rule {
        reason: "words of a refusal of a broken statement: which of several faults is told first",
        holds: |case| case.question.spoiled && case.is_text_only(),
    },
];

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The answers are the same.
    Same,
    /// They differ, and this entry of [`RULES`] says why.
    Known(usize),
    /// They differ.
    Different,
}

/// The error code of an answer, if it is a refusal.
pub(super) fn code_of(answer: &Value) -> Option<&str> {
    answer.get("code").and_then(Value::as_str)
}

/// Compares.
pub(super) fn judge(question: &Question, theirs: &Value, ours: &Value) -> Verdict {
    if theirs == ours {
        return Verdict::Same;
    }
    let case = Case { question, theirs, ours };
    RULES
        .iter()
        .position(|rule| (rule.holds)(&case))
        .map_or(Verdict::Different, Verdict::Known)
}

/// Whether the servers' tables may differ from here on: one of them took a write that the other refused.
pub(super) fn parts_ways(question: &Question, theirs: &Value, ours: &Value) -> bool {
    question.kind != Kind::Read
        && (code_of(theirs).is_none() != code_of(ours).is_none() || theirs.get("broken").is_some())
}

/// What kind of difference it is: shrinking must not turn one into another.
pub(super) fn class(theirs: &Value, ours: &Value) -> String {
    let of = |answer: &Value| match (code_of(answer), answer.get("kind").and_then(Value::as_str)) {
        (Some(code), _) => code.to_owned(),
        (None, Some(kind)) => kind.to_owned(),
        (None, None) => "broken".to_owned(),
    };
    let keys = match (theirs.as_object(), ours.as_object()) {
        (Some(a), Some(b)) if of(theirs) == of(ours) => a
            .keys()
            .chain(b.keys().filter(|k| !a.contains_key(*k)))
            .filter(|k| a.get(*k) != b.get(*k))
            // Flags of the metadata follow from what else differs.
            .filter(|k| *k != "pages" && *k != "flags" && *k != "paging")
            .cloned()
            .collect::<Vec<_>>()
            .join(","),
        _ => String::new(),
    };
    format!("{} {} {keys}", of(theirs), of(ours))
}

/// A rough name of a difference, by which those that are alike are recognised without shrinking each.
pub(super) fn signature(question: &Question, theirs: &Value, ours: &Value) -> String {
    let shape = |answer: &Value| {
        let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
        // Names and numbers do not matter.
        message
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| word.len() > 3)
            .take(8)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let verb = question.text.split_whitespace().next().unwrap_or("BATCH");
    let form = if question.text.contains(" IF ") { " IF" } else { "" };
    format!(
        "{verb}{form}: {}: {} | {}",
        class(theirs, ours),
        shape(theirs),
        shape(ours)
    )
}
