//! The table of what is known to differ, each entry with its reason.

use super::{
    Rule, casts_by_column, class, code_of, columns_of, hex, message_of, names_differ_only, rows_of, rows_text, unhex,
    without_ttl,
};
use crate::generate::question::Kind;
use serde_json::Value;

/// The words of a message, names in lists included, sorted.
fn sorted_words(answer: &Value) -> Vec<&str> {
    let mut words: Vec<_> = message_of(answer).split([' ', ',', '(', ')']).collect();
    words.sort_unstable();
    words
}

/// What is known to differ, and why.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        reason: "Cassandra fails where it reads a row with cells of a dropped column that are dated behind the drop, until the column is back",
        holds: |case| {
            let failed = matches!(code_of(case.theirs), Some("0x1300" | "0x1500"));
            case.facts.dropped && failed && code_of(case.ours) != code_of(case.theirs)
        },
    },
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
        reason: "Cassandra fails with a server error on what reads a list before it writes, in no partition at all (IN ())",
        holds: |case| {
            case.question.kind == Kind::Write
                && case.question.script().contains(" IN ")
                && case.their_bug(&["java.lang.IndexOutOfBoundsException"])
        },
    },
    Rule {
        reason: "Cassandra compares a map's element by the type of its key in a condition: a server error where values have another",
        holds: |case| {
            let condition = case
                .question
                .text
                .split_once(" IF ")
                .map_or("", |(_, condition)| condition);
            condition.contains('[')
                && case.their_bug(&[
                    "java.lang.IndexOutOfBoundsException",
                    "java.lang.AssertionError",
                    "java.lang.NumberFormatException",
                ])
        },
    },
    Rule {
        reason: "Cassandra fails with a class cast on an empty map for a descending clustering column",
        holds: |case| {
            let of_batch = case.theirs.get("broken").and_then(Value::as_str);
            case.facts.descending
                && (case.their_bug(&["java.lang.ClassCastException"])
                    || of_batch.is_some_and(|broken| broken.contains("0x0000: java.lang.ClassCastException")))
        },
    },
    Rule {
        reason: "Cassandra takes a descending clustering column for none of its type: casts, similarity of vectors, CONTAINS",
        holds: |case| {
            let starts = [
                "Invalid call to function system.cast_as_",
                "Function system.similarity_",
                "Cannot use CONTAINS on non-collection column",
                "Cannot use CONTAINS KEY on non-map column",
                "Ambiguous '",
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
                && names_differ_only(case, |theirs, ours| {
                    let inner = theirs.strip_prefix("cast(").and_then(|rest| rest.split_once(" as "));
                    inner.is_some_and(|(column, _)| column == ours)
                })
        },
    },
    Rule {
        reason: "Cassandra names a cast of a descending clustering column to its own type, which it takes for another: in rows of JSON",
        holds: |case| {
            let text = &case.question.text;
            case.facts.descending
                && text.starts_with("SELECT JSON ")
                && class(case.theirs, case.ours) == "rows rows rows"
                && rows_text(case.ours) == casts_by_column(text, rows_text(case.theirs))
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
        reason: "Cassandra reads no row but the partition's first for a condition on static columns alone, and finds no list to set or delete an \
                 element of",
        holds: |case| {
            let (_, conditions) = case.question.text.split_once(" IF ").unwrap_or_default();
            let is_static = |condition: &str| {
                let mut names = case.facts.statics.iter();
                names.any(|name| {
                    condition
                        .strip_prefix(name.as_str())
                        .is_some_and(|rest| rest.starts_with([' ', '[', '.']))
                })
            };
            let told = [
                "Attempted to set an element on a list which is null",
                "Attempted to delete an element from a list which is null",
            ];
            told.contains(&message_of(case.theirs))
                && !conditions.is_empty()
                && conditions.split(" AND ").all(is_static)
        },
    },
    Rule {
        reason: "Cassandra takes a marker that has a value for unset, beside an IN of tuples of markers",
        holds: |case| {
            message_of(case.theirs).starts_with("Invalid unset value for column ")
                && !case.question.script().contains(" unset")
                && case.question.text.contains(" IN ((")
        },
    },
    Rule {
        reason: "which of two bad values in one JSON text is told first: Cassandra looks at columns in the order of a hash table",
        holds: |case| {
            let starts = |answer: &Value| message_of(answer).starts_with("Error decoding JSON value for ");
            case.is_refused_alike() && starts(case.theirs) && starts(case.ours)
        },
    },
    Rule {
        reason: "which of several permissions that are lacking is told: Cassandra looks at them in the order of a hash table",
        holds: |case| {
            let lacks = |answer| {
                message_of(answer)
                    .split_once(" has no ")
                    .map(|(_, rest)| rest.split_once(' '))
            };
            let of = |answer| lacks(answer).flatten().map(|(_, resource)| resource);
            let text = &case.question.text;
            case.is_refused_alike()
                && (text.starts_with("GRANT ") || text.starts_with("REVOKE "))
                && of(case.theirs).is_some()
                && of(case.theirs) == of(case.ours)
        },
    },
    Rule {
        reason: "which overload's permission is lacking where DROP names no arguments: Cassandra's order of overloads is that of a hash of the keyspace, too",
        holds: |case| {
            let text = &case.question.text;
            // What stands before and behind the arguments.
            let around = |answer| {
                let (before, rest) = message_of(answer).split_once('(')?;
                before.contains(" has no DROP permission on <function ").then_some(())?;
                Some((before, rest.split_once(')')?.1))
            };
            case.is_refused_alike()
                && (text.starts_with("DROP FUNCTION ") || text.starts_with("DROP AGGREGATE "))
                && !text.contains('(')
                && around(case.theirs).is_some()
                && around(case.theirs) == around(case.ours)
        },
    },
    Rule {
        reason: "Cassandra writes texts in the WHERE of a view without doubling their quotes, once a column was renamed",
        holds: |case| {
            case.question.text.contains(" FROM system_schema.views ")
                && class(case.theirs, case.ours) == "rows rows rows"
                && rows_text(case.ours).replace("2727", "27") == rows_text(case.theirs).replace("2727", "27")
        },
    },
    Rule {
        reason: "Cassandra names the columns that are too many in the key of a view in the order of a hash table",
        holds: |case| {
            case.is_refused_alike()
                && message_of(case.theirs)
                    .starts_with("Cannot include more than one non-primary key column in materialized view")
                && sorted_words(case.theirs) == sorted_words(case.ours)
        },
    },
    Rule {
        reason: "Cassandra names the indexes that depend on a column in the order of a hash table of objects",
        holds: |case| {
            case.is_refused_alike()
                && message_of(case.theirs).contains(" because it has dependent secondary indexes (")
                && sorted_words(case.theirs) == sorted_words(case.ours)
        },
    },
    Rule {
        reason: "Gap: cql-2: a function among the values of a conditional write is called before the condition is looked at",
        holds: |case| {
            code_of(case.ours) == Some("0x1400")
                && code_of(case.theirs).is_none()
                && case.question.text.contains(" IF ")
                && rows_text(case.theirs).starts_with("[[\"00\"")
        },
    },
    Rule {
        reason: "Differs: of a view whose key has a column that expires, no column expires later",
        holds: |case| {
            let is_ttl = |place: usize| {
                let name = case
                    .ours
                    .get("columns")
                    .and_then(|columns| columns.get(place)?.get("name")?.as_str());
                name.is_some_and(|name| name.starts_with("ttl("))
            };
            let others = |row: &Value| -> Vec<Value> {
                let cells = row.as_array().into_iter().flatten().enumerate();
                cells
                    .filter(|(place, _)| !is_ttl(*place))
                    .map(|(_, cell)| cell.clone())
                    .collect()
            };
            case.question.text.contains(" FROM v")
                && class(case.theirs, case.ours) == "rows rows rows"
                && rows_of(case.theirs)
                    .iter()
                    .map(others)
                    .eq(rows_of(case.ours).iter().map(others))
        },
    },
    Rule {
        reason: "Differs: of a view whose key has a column that expires, no column expires later: in rows of JSON",
        holds: |case| {
            let texts = |answer: &Value| -> Option<Vec<String>> {
                let text = |row: &Value| without_ttl(&unhex(row.get(0)?.as_str()?)?);
                rows_of(answer).iter().map(text).collect()
            };
            case.question.text.starts_with("SELECT JSON ")
                && case.question.text.contains(" FROM v")
                && class(case.theirs, case.ours) == "rows rows rows"
                && texts(case.theirs).is_some_and(|theirs| Some(theirs) == texts(case.ours))
        },
    },
    Rule {
        reason: "Gap: cql-23: the type of a negated number in an operation (c - - 6.5) is that of the other operand",
        holds: |case| case.question.spoiled && case.question.text.contains("- -") && code_of(case.theirs).is_none(),
    },
    Rule {
        reason: "Cassandra looks for the function of a GRANT before it reads on: what is broken behind it is told later",
        holds: |case| {
            case.question.spoiled
                && message_of(case.theirs).starts_with("In this context function name must be explictly qualified")
                && code_of(case.ours) == Some("0x2000")
        },
    },
    Rule {
        reason: "Cassandra tells a literal in a call of an overloaded function from the argument of another overload",
        holds: |case| message_of(case.theirs).starts_with("Unexpected receiver type '"),
    },
    Rule {
        reason: "Differs: a vector that an index of vectors cannot keep (zeros, NaN, infinite) is refused as invalid, where Cassandra says that a \
                 replica failed",
        holds: |case| {
            let told = message_of(case.ours);
            let starts = [
                "non-finite value at vector[",
                "Out-of-bounds value at vector[",
                "Zero vectors cannot be indexed",
            ];
            code_of(case.theirs) == Some("0x1500")
                && code_of(case.ours) == Some("0x2200")
                && starts.iter().any(|start| told.starts_with(start))
                && case.facts.attached_index
        },
    },
    Rule {
        reason: "Cassandra does not tell why its replica failed (UNKNOWN) where it tells it at other times: a vector that its index cannot keep",
        holds: |case| {
            let parts = |answer| message_of(answer).split_once(" failures: ");
            case.is_refused_alike()
                && case.facts.attached_index
                && parts(case.theirs).zip(parts(case.ours)).is_some_and(|(theirs, ours)| {
                    theirs.0 == ours.0 && theirs.1.starts_with("UNKNOWN from ") && ours.1.contains("ector")
                })
        },
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
        reason: "Cassandra calls to_json of a type for ever as it was first called, toJson or to_json: in rows of JSON",
        holds: |case| {
            // As they stand in the rows, in hexadecimal.
            let plain = |answer: &Value| {
                let rows = answer.get("rows").map(ToString::to_string).unwrap_or_default();
                rows.replace(&hex("tojson("), &hex("to_json("))
            };
            let text = &case.question.text;
            text.starts_with("SELECT JSON ")
                && text.contains("to_json(")
                && class(case.theirs, case.ours) == "rows rows rows"
                && plain(case.theirs) == plain(case.ours)
        },
    },
    Rule {
        reason: "Differs: every NaN that is computed has the bits of Java's constant; Cassandra's has its processor's",
        holds: |case| {
            let plain = |answer: &Value| {
                let rows = answer.get("rows").map(ToString::to_string).unwrap_or_default();
                rows.replace("fff8000000000000", "7ff8000000000000")
                    .replace("ffc00000", "7fc00000")
            };
            // Such a sum may stand beside the minimum of a timeuuid, whose type is known to be named otherwise.
            matches!(
                class(case.theirs, case.ours).as_str(),
                "rows rows rows" | "rows rows columns,rows"
            ) && plain(case.theirs) == plain(case.ours)
                && columns_of(case.theirs) == columns_of(case.ours)
        },
    },
    Rule {
        reason: "Differs: an index of the whole partition key, which Cassandra refuses and Cosmos's applications ask for",
        holds: |case| {
            message_of(case.theirs).starts_with("Cannot create secondary index on the only partition key column")
        },
    },
    Rule {
        reason: "which constants Cassandra takes as arguments: it counts any, and takes a blob for a number, of which it makes sums, and for a \
                 tinyint, however long",
        holds: |case| {
            let ours = message_of(case.ours);
            // What Cassandra takes may then lack a permission.
            let lacks_permission = code_of(case.theirs) == Some("0x2100")
                && ours.starts_with("Invalid call to function")
                && case.question.text.contains("(0x");
            case.question.spoiled
                && (code_of(case.theirs).is_none() || lacks_permission)
                && (ours.contains("cannot be passed as argument")
                    || ours.starts_with("Invalid call to function")
                    || (ours.contains("operation is not supported between ") && ours.contains(" 0x"))
                    || (ours.starts_with("Invalid HEX constant (") && ours.ends_with(" of type tinyint"))
                    || (case.question.text.contains(" 0x") && ours.starts_with("Invalid list literal for "))
                    || (case.question.text.contains("(0x") && class(case.theirs, case.ours).starts_with("rows rows ")))
        },
    },
    Rule {
        reason: "Gap: cql-24: Cassandra checks the types of token's arguments before it refuses PER PARTITION LIMIT with an aggregate",
        holds: |case| {
            let theirs = message_of(case.theirs);
            theirs.starts_with("Type error: ")
                && theirs.contains(" of function system.token of type ")
                && message_of(case.ours) == "PER PARTITION LIMIT is not allowed with aggregate queries."
        },
    },
    Rule {
        reason: "Gap: cql-25: paging of ORDER BY over an IN whose rows cannot be is refused; Cassandra answers no rows",
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
        reason: "Cassandra names the type of a timeuuid that a function returns as its inner LegacyTimeUUIDType",
        holds: |case| {
            class(case.theirs, case.ours) == "rows rows columns" && columns_of(case.theirs) == columns_of(case.ours)
        },
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
        reason: "Cassandra prints the address of an object where a view selects what is no column",
        holds: |case| {
            let start = |answer: &Value| {
                message_of(answer)
                    .split_once(" (got ")
                    .map(|(start, _)| start.to_owned())
            };
            case.is_refused_alike()
                && case.question.text.contains(" MATERIALIZED VIEW ")
                && message_of(case.theirs).contains("(got org.apache.cassandra.")
                && start(case.theirs) == start(case.ours)
        },
    },
    Rule {
        reason: "Gap: cql-26: we check MODIFY before we decode the JSON text of a statement, Cassandra after",
        holds: |case| {
            case.question.by.is_some()
                && code_of(case.theirs) == Some("0x2200")
                && code_of(case.ours) == Some("0x2100")
                && case.question.script().contains(" JSON ")
        },
    },
    Rule {
        reason: "which view an error names if a role may write none of several: Cassandra checks views in the order of a hash table",
        holds: |case| {
            let start = |answer: &Value| {
                let start = message_of(answer).split_once(" MODIFY permission on <table ");
                start.map(|(start, _)| start.to_owned())
            };
            case.is_refused_alike()
                && case.question.kind == Kind::Write
                && start(case.theirs).is_some()
                && start(case.theirs) == start(case.ours)
        },
    },
    Rule {
        reason: "Gap: cql-3: of an ambiguous call and a restriction that is not allowed, we name the restriction",
        holds: |case| {
            case.is_refused_alike()
                && message_of(case.theirs).starts_with("Ambiguous call to function ")
                && (message_of(case.ours).ends_with("cannot be restricted by any relation")
                    || message_of(case.ours) == "Cannot restrict clustering columns when selecting only static columns")
        },
    },
    Rule {
        reason: "Gap: cql-1: a page more without rows, of several partitions and an IN () of clustering columns",
        holds: |case| {
            case.question.page.is_some()
                && case.question.text.contains(" IN ()")
                && class(case.theirs, case.ours) == "rows rows "
        },
    },
    Rule {
        reason: "Gap: cql-27: the answer to CREATE FUNCTION and AGGREGATE names an argument of varchar as text; Cassandra names it as written",
        holds: |case| {
            let plain = |answer: &Value| answer.to_string().replace("varchar", "text");
            class(case.theirs, case.ours) == "schema_change schema_change names"
                && plain(case.theirs) == plain(case.ours)
        },
    },
    Rule {
        reason: "Cassandra finds the class that a string names while it parses, before anything else that is wrong; we do once the table is known",
        holds: |case| {
            case.question.spoiled
                && message_of(case.theirs).starts_with("Error setting type ")
                && code_of(case.theirs) == Some("0x2000")
                && code_of(case.ours) == Some("0x2200")
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
