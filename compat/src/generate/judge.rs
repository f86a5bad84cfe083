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

/// What rules want to know of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// It has a descending clustering column.
    pub(super) descending: bool,
    /// It has clustering columns.
    pub(super) clustered: bool,
    /// It has a storage-attached index.
    pub(super) attached_index: bool,
}

/// Two answers to one statement.
struct Case<'a> {
    question: &'a Question,
    facts: Facts,
    theirs: &'a Value,
    ours: &'a Value,
}

impl Case<'_> {
    fn is_refused_alike(&self) -> bool {
        code_of(self.theirs).is_some() && code_of(self.theirs) == code_of(self.ours)
    }

    /// Whether Cassandra lets one of these exceptions out.
    fn their_bug(&self, exceptions: &[&str]) -> bool {
        code_of(self.theirs) == Some("0x0000")
            && exceptions.iter().any(|name| message_of(self.theirs).starts_with(name))
    }
}

/// What is known to differ, and why.
pub(super) const RULES: &[Rule] = &[
    Rule {
        reason: "Cassandra fails with a server error, its own bug; any refusal says the same",
        holds: |case| code_of(case.theirs) == Some("0x0000") && code_of(case.ours).is_some(),
    },
    Rule {
        reason: "Cassandra fails with a server error where a read has an answer: similarity with NaN, JSON of null in a list, …",
        holds: |case| {
            case.question.kind == Kind::Read
                && case.their_bug(&[
                    "java.lang.AssertionError",
                    "java.lang.NullPointerException",
                    "java.lang.IndexOutOfBoundsException",
                    "java.lang.IllegalArgumentException",
                    "java.lang.ClassCastException",
                    "java.lang.ArithmeticException",
                ])
        },
    },
    Rule {
        reason: "Cassandra fails with a server error on a list's element in no partition at all (IN ())",
        holds: |case| {
            case.question.script().contains(" IN ") && case.their_bug(&["java.lang.IndexOutOfBoundsException"])
        },
    },
    Rule {
        reason: "Cassandra fails with a server error on a condition on an element of a frozen map",
        holds: |case| {
            let text = &case.question.text;
            text.contains(" IF ") && text.contains('[') && case.their_bug(&["java.lang.IndexOutOfBoundsException"])
        },
    },
    Rule {
        reason: "Cassandra fails with a class cast on an empty map for a descending clustering column",
        holds: |case| case.facts.descending && case.their_bug(&["java.lang.ClassCastException"]),
    },
    Rule {
        reason: "Cassandra takes a descending clustering column for none of its type: casts, collection functions, CONTAINS",
        holds: |case| {
            let starts = [
                "Invalid call to function system.cast_as_",
                "Function system.collection_",
                "Function system.similarity_",
                "Function system.map_",
                "Cannot use CONTAINS on non-collection column",
                "Cannot use CONTAINS KEY on non-map column",
                "Column ",
            ];
            let message = message_of(case.theirs);
            case.facts.descending
                && starts.iter().any(|start| message.starts_with(start))
                && (!message.starts_with("Column ") || message.ends_with("cannot be used as a map"))
        },
    },
    Rule {
        reason: "Cassandra names a cast of a descending clustering column to its own type, which it takes for another",
        holds: |case| {
            case.facts.descending
                && case.question.text.contains("CAST(")
                && class(case.theirs, case.ours) == "rows rows columns"
                && case
                    .theirs
                    .get("columns")
                    .is_some_and(|columns| columns.to_string().contains("\"cast("))
        },
    },
    Rule {
        reason: "Cassandra finds nothing by CONTAINS on a frozen collection where a storage-attached index is used",
        holds: |case| {
            case.facts.attached_index
                && case.question.text.contains(" CONTAINS ")
                && case.question.text.contains("ALLOW FILTERING")
                && class(case.theirs, case.ours) == "rows rows rows"
                && row_count(case.theirs) < row_count(case.ours)
        },
    },
    Rule {
        reason: "Cassandra does not take its own paging state back in pages of groups",
        holds: |case| {
            matches!(code_of(case.theirs), Some("0x000A" | "0x1300"))
                && case.question.text.contains("GROUP BY")
                && code_of(case.ours).is_none()
        },
    },
    Rule {
        reason: "Cassandra's pages of groups are of other sizes in tables without clustering columns",
        holds: |case| {
            !case.facts.clustered
                && case.question.page.is_some()
                && case.question.text.contains("GROUP BY")
                && class(case.theirs, case.ours) == "rows rows "
        },
    },
    Rule {
        reason: "Cassandra fails to read, an exception in its replica: filters on static columns beside indexes, ORDER BY of groups",
        holds: |case| code_of(case.theirs) == Some("0x1300"),
    },
    Rule {
        reason: "Cassandra calls to_json of a type for ever as it was first called, toJson or to_json",
        holds: |case| {
            let plain = |answer: &Value| {
                let columns = answer.get("columns").map(ToString::to_string).unwrap_or_default();
                columns.replace("tojson(", "to_json(")
            };
            class(case.theirs, case.ours) == "rows rows columns" && plain(case.theirs) == plain(case.ours)
        },
    },
    Rule {
        reason: "Differs: an index of the whole partition key, which Cassandra refuses and Cosmos's applications ask for",
        holds: |case| {
            message_of(case.theirs).starts_with("Cannot create secondary index on the only partition key column")
        },
    },
    Rule {
        reason: "which constants Cassandra takes as arguments of aggregates: it counts any, and takes a blob for a number",
        holds: |case| {
            let ours = message_of(case.ours);
            case.question.spoiled
                && code_of(case.theirs).is_none()
                && (ours.contains("cannot be passed as argument") || ours.starts_with("Invalid call to function"))
        },
    },
    Rule {
        reason: "not built: ANN queries; a restriction of a vector with an index filters here, and Cassandra refuses it",
        holds: |case| message_of(case.theirs) == "Vector indexes only support ANN queries",
    },
    Rule {
        reason: "not mended: a warning of an aggregation over no partition (IN ()), which Cassandra leaves out beside token()",
        holds: |case| class(case.theirs, case.ours) == "rows rows warnings" && case.question.text.contains("token("),
    },
    Rule {
        reason: "not mended: a partition key without bytes is refused a little sooner or later where nothing is read anyway",
        holds: |case| {
            [case.theirs, case.ours]
                .iter()
                .any(|answer| message_of(answer) == "Key may not be empty")
                && [case.theirs, case.ours].iter().any(|answer| {
                    code_of(answer).is_some() || answer.get("rows").and_then(Value::as_array).is_some_and(Vec::is_empty)
                })
        },
    },
    Rule {
        reason: "not mended: paging of ORDER BY over an IN whose rows cannot be is refused; Cassandra answers no rows",
        holds: |case| {
            message_of(case.ours).starts_with("Cannot page queries with both ORDER BY")
                && case
                    .theirs
                    .get("rows")
                    .and_then(Value::as_array)
                    .is_some_and(Vec::is_empty)
        },
    },
    Rule {
        reason: "which of two faults of one statement is told first",
        holds: |case| case.is_refused_alike() && code_of(case.ours) == Some("0x2200"),
    },
    Rule {
        reason: "Cassandra names the type of timeuuid's min and max as its inner LegacyTimeUUIDType",
        holds: |case| {
            let name = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'";
            let plain = |answer: &Value| answer.get("columns").map(|c| c.to_string().replace(name, "timeuuid"));
            class(case.theirs, case.ours) == "rows rows columns" && plain(case.theirs) == plain(case.ours)
        },
    },
    Rule {
        reason: "Cassandra timed out on a busy machine",
        holds: |case| matches!(code_of(case.theirs), Some("0x1100" | "0x1200")),
    },
    Rule {
        reason: "Cassandra names the first column of the selection as the one that cannot be cast",
        holds: |case| {
            let cast = |answer: &Value| {
                message_of(answer)
                    .split_once(" cannot be cast to ")
                    .map(|(_, to)| to.to_owned())
            };
            case.is_refused_alike() && cast(case.theirs).is_some() && cast(case.theirs) == cast(case.ours)
        },
    },
    Rule {
        reason: "Cassandra sends the warning of an aggregation along with a refusal",
        holds: |case| case.is_refused_alike() && message_of(case.theirs) == message_of(case.ours),
    },
    Rule {
        reason: "words of a syntax error after a mutation: the parser generator's tables decide which tokens it names",
        holds: |case| case.question.spoiled && case.is_refused_alike() && code_of(case.ours) == Some("0x2000"),
    },
    Rule {
        reason: "words of a refusal of a broken statement: which of several faults is told first",
        holds: |case| case.question.spoiled && case.is_refused_alike(),
    },
];

fn row_count(answer: &Value) -> usize {
    answer.get("rows").and_then(Value::as_array).map_or(0, Vec::len)
}

fn message_of(answer: &Value) -> &str {
    answer.get("message").and_then(Value::as_str).unwrap_or_default()
}

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
pub(super) fn judge(question: &Question, facts: Facts, theirs: &Value, ours: &Value) -> Verdict {
    if theirs == ours {
        return Verdict::Same;
    }
    let case = Case {
        question,
        facts,
        theirs,
        ours,
    };
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
        let message = message_of(answer);
        // Names and numbers do not matter.
        message
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| word.len() > 3)
            .take(8)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let verb = question.text.split_whitespace().next().unwrap_or("BATCH");
    let mut form = String::new();
    for word in [
        " IF ",
        " GROUP BY ",
        " DISTINCT ",
        " JSON ",
        " ORDER BY ",
        " PER ",
        " IN ",
        "token(",
        "count(",
        "min(",
        "max(",
    ] {
        if question.text.contains(word) {
            form.push(' ');
            form.push_str(word.trim());
        }
    }
    if question.page.is_some() {
        form.push_str(" page");
    }
    format!(
        "{verb}{form}: {}: {} | {}",
        class(theirs, ours),
        shape(theirs),
        shape(ours)
    )
}
