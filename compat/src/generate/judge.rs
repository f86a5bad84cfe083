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
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// It has a descending clustering column.
    pub(super) descending: bool,
    /// It has clustering columns.
    pub(super) clustered: bool,
    /// It has an index of any kind.
    pub(super) indexed: bool,
    /// It has a storage-attached index.
    pub(super) attached_index: bool,
    /// Rows have been deleted in ranges, or may have been.
    pub(super) deleted_ranges: bool,
    /// Names of its columns that are not of its key.
    pub(super) columns: Vec<String>,
    /// Names of its static columns.
    pub(super) statics: Vec<String>,
    /// Names of its columns of addresses.
    pub(super) inets: Vec<String>,
    /// Names of its columns of vectors.
    pub(super) vectors: Vec<String>,
    /// Names of its columns that are frozen collections.
    pub(super) frozen_collections: Vec<String>,
}

impl Facts {
    /// What the statements so far tell of the table, or the view, that `next` asks.
    pub(super) fn of<'a>(asked: impl Iterator<Item = &'a Question> + Clone, next: &Question) -> Self {
        let mut facts = Self::of_table(asked.clone());
        let asks =
            |name: &str| next.text.contains(&format!(" FROM {name} ")) || next.text.ends_with(&format!(" FROM {name}"));
        for question in asked {
            let definition = question.text.strip_prefix("CREATE MATERIALIZED VIEW ");
            if let Some((name, definition)) = definition.and_then(|text| text.split_once(" AS SELECT "))
                && asks(name)
            {
                facts.narrow(definition);
            }
        }
        facts
    }

    /// Leaves what a view of this definition has of the table.
    fn narrow(&mut self, definition: &str) {
        let (selected, rest) = definition.split_once(" FROM ").unwrap_or_default();
        let (_, key) = rest.split_once(" PRIMARY KEY ").unwrap_or_default();
        let (key, _) = key.split_once(" WITH ").unwrap_or((key, ""));
        let names = |text: &str, name: &str| text.split(['(', ')', ',']).any(|part| part.trim() == name);
        self.columns
            .retain(|name| (selected == "*" || names(selected, name)) && !names(key, name));
        self.clustered = key.contains("), ");
        self.statics.clear();
        self.indexed = false;
        self.attached_index = false;
    }

    fn of_table<'a>(asked: impl Iterator<Item = &'a Question>) -> Self {
        let mut facts = Self {
            descending: false,
            clustered: false,
            indexed: false,
            attached_index: false,
            deleted_ranges: false,
            columns: Vec::new(),
            statics: Vec::new(),
            inets: Vec::new(),
            vectors: Vec::new(),
            frozen_collections: Vec::new(),
        };
        for question in asked {
            let text = &question.text;
            if question.kind != Kind::Schema {
                facts.deleted_ranges |= question.kind == Kind::Write && question.script().contains("DELETE FROM ");
                continue;
            }
            if let Some((_, added)) = text.split_once(" ADD ").filter(|_| text.starts_with("ALTER TABLE")) {
                facts.columns.extend(not_of_key(added).map(str::to_owned));
            }
            facts.descending |= text.contains(" DESC");
            facts.indexed |= text.contains(" INDEX ");
            facts.attached_index |= text.contains(" INDEX ") && !super::schema::is_of_the_first_kind(text);
            if let Some((_, columns)) = text.split_once('(').filter(|_| text.starts_with("CREATE TABLE")) {
                facts.clustered = text.contains(" c0 ") || text.contains("\"C 0\" ");
                // Commas within a type only make parts that begin with no column's name.
                let frozen = columns.split(", ").filter_map(|column| {
                    let (name, ty) = column.split_once(" frozen<")?;
                    ["list<", "set<", "map<"]
                        .iter()
                        .any(|of| ty.starts_with(of))
                        .then(|| name.to_owned())
                });
                facts.frozen_collections.extend(frozen);
                let names = columns.split(", ").filter_map(not_of_key);
                facts.columns.extend(names.map(str::to_owned));
                let statics = columns.split(", ").filter_map(|column| column.strip_suffix(" static"));
                let name = |column: &str| match column.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
                    Some((quoted, _)) => format!("\"{quoted}\""),
                    None => column.split(' ').next().unwrap_or_default().to_owned(),
                };
                facts.statics.extend(statics.map(name));
                let inets = columns.split(", ").filter_map(|column| column.split_once(" inet"));
                facts.inets.extend(inets.map(|(name, _)| name.to_owned()));
                let vectors = columns.split(", ").filter_map(|column| column.split_once(" vector<"));
                facts.vectors.extend(vectors.map(|(name, _)| name.to_owned()));
            }
        }
        facts
    }
}

/// The name of a column that is declared here, if it is a static or regular one: such names begin with s and r.
fn not_of_key(declared: &str) -> Option<&str> {
    let end = if declared.starts_with('"') {
        declared.get(1..)?.find('"')? + 2
    } else {
        declared.find(' ')?
    };
    let name = declared.get(..end)?;
    let number = name
        .trim_matches('"')
        .strip_prefix(['s', 'r', 'S', 'R'])?
        .trim_start_matches(' ');
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(name)
}

/// Two answers to one statement.
pub(super) struct Case<'a> {
    /// The statement.
    pub(super) question: &'a Question,
    /// What is known of its table.
    pub(super) facts: &'a Facts,
    /// Cassandra's answer.
    pub(super) theirs: &'a Value,
    /// Ours.
    pub(super) ours: &'a Value,
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

/// How Cassandra names the type of what functions make of a timeuuid.
const LEGACY_TIMEUUID: &str = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'";

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
        holds: |case| case.facts.descending && case.their_bug(&["java.lang.ClassCastException"]),
    },
    Rule {
        reason: "Cassandra takes a descending clustering column for none of its type: casts, functions of collections, CONTAINS",
        holds: |case| {
            let starts = [
                "Invalid call to function system.cast_as_",
                "Function system.collection_",
                "Function system.similarity_",
                "Function system.map_",
                "Cannot use CONTAINS on non-collection column",
                "Cannot use CONTAINS KEY on non-map column",
                "Ambiguous '",
                "Type error: cannot assign result of function ",
                "Column ",
            ];
            let message = message_of(case.theirs);
            let is_of_call = message.starts_with("Type error: ") && message.contains(" cannot be passed as argument ");
            case.facts.descending
                && (is_of_call || starts.iter().any(|start| message.starts_with(start)))
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
        reason: "Cassandra reads no row for a condition on static columns alone, and finds no list to set an element of",
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
            message_of(case.theirs) == "Attempted to set an element on a list which is null"
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
            let lacks = |answer| message_of(answer).split_once(" has no ").map(|(_, rest)| rest.split_once(' '));
            let of = |answer| lacks(answer).flatten().map(|(_, resource)| resource);
            let text = &case.question.text;
            case.is_refused_alike()
                && (text.starts_with("GRANT ") || text.starts_with("REVOKE "))
                && of(case.theirs).is_some()
                && of(case.theirs) == of(case.ours)
        },
    },
    Rule {
        reason: "not mended: the type of a negated number in an operation (c - - 6.5) is that of the other operand",
        holds: |case| case.question.spoiled && case.question.text.contains("- -") && code_of(case.theirs).is_none(),
    },
    Rule {
        reason: "not mended: null behind an IN () is refused, where Cassandra has ended before it",
        holds: |case| {
            code_of(case.theirs).is_none()
                && message_of(case.ours).starts_with("Invalid null value in condition for column ")
                && case.question.text.contains(" IN ()")
        },
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
            case.question.spoiled
                && code_of(case.theirs).is_none()
                && (ours.contains("cannot be passed as argument")
                    || ours.starts_with("Invalid call to function")
                    || ours.contains("operation is not supported between 0x")
                    || (ours.starts_with("Invalid HEX constant (") && ours.ends_with(" of type tinyint"))
                    || (case.question.text.contains(" 0x") && ours.starts_with("Invalid list literal for "))
                    || (case.question.text.contains("(0x") && class(case.theirs, case.ours).starts_with("rows rows ")))
        },
    },
    Rule {
        reason: "not mended: Cassandra checks the types of token's arguments before it refuses PER PARTITION LIMIT with an aggregate",
        holds: |case| {
            let theirs = message_of(case.theirs);
            theirs.starts_with("Type error: ")
                && theirs.contains(" of function system.token of type ")
                && message_of(case.ours) == "PER PARTITION LIMIT is not allowed with aggregate queries."
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
        reason: "Cassandra names the type of timeuuid's min and max as its inner LegacyTimeUUIDType",
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
        reason: "not mended: we check MODIFY before we decode the JSON text of a statement, Cassandra after",
        holds: |case| {
            case.question.by.is_some()
                && code_of(case.theirs) == Some("0x2200")
                && code_of(case.ours) == Some("0x2100")
                && case.question.script().contains(" JSON ")
        },
    },
    Rule {
        reason: "not mended: of several functions of one name one is chosen that returns a collection for a frozen column; Cassandra finds none",
        holds: |case| {
            let told = message_of(case.theirs);
            told.starts_with("Invalid call to function ")
                && told.matches(" : (").count() > 1
                && case.question.kind != Kind::Schema
                && matches!(code_of(case.ours), None | Some("0x2100" | "0x1400"))
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
        reason: "not mended: of an ambiguous call and a restriction that its column does not have, we name the restriction",
        holds: |case| {
            case.is_refused_alike()
                && message_of(case.theirs).starts_with("Ambiguous call to function ")
                && message_of(case.ours).ends_with("cannot be restricted by any relation")
        },
    },
    Rule {
        reason: "not mended: where a view restricts a collection outside of its key, we name the key, Cassandra the collection",
        holds: |case| {
            case.is_refused_alike()
                && case.question.text.contains(" MATERIALIZED VIEW ")
                && message_of(case.theirs).ends_with("cannot be restricted by a '=' relation")
                && message_of(case.ours).starts_with("Non-primary key columns can only be restricted")
        },
    },
    Rule {
        reason: "not mended: a view whose WHERE has IN on a part of the base's partition key beside a restriction that filters; Cassandra refuses it",
        holds: |case| {
            message_of(case.theirs).starts_with("Select on indexed columns and with IN clause for the PRIMARY KEY")
                && case.question.text.contains(" MATERIALIZED VIEW ")
        },
    },
    Rule {
        reason: "not mended: a page more without rows, of several partitions and an IN () of clustering columns",
        holds: |case| {
            case.question.page.is_some()
                && case.question.text.contains(" IN ()")
                && class(case.theirs, case.ours) == "rows rows "
        },
    },
    Rule {
        reason: "not mended: the answer to CREATE FUNCTION and AGGREGATE names an argument of varchar as text; Cassandra names it as written",
        holds: |case| {
            let plain = |answer: &Value| answer.to_string().replace("varchar", "text");
            class(case.theirs, case.ours) == "schema_change schema_change names"
                && plain(case.theirs) == plain(case.ours)
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

/// Whether columns differ in their names alone, and those that differ do as `fits` says of theirs and ours.
fn names_differ_only(case: &Case<'_>, fits: impl Fn(&str, &str) -> bool) -> bool {
    let columns = |answer: &Value| {
        answer
            .get("columns")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (theirs, ours) = (columns(case.theirs), columns(case.ours));
    let name = |column: &Value| {
        column
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    theirs.len() == ours.len()
        && theirs.iter().zip(&ours).all(|(a, b)| {
            let without = |column: &Value| {
                let mut column = column.clone();
                if let Some(column) = column.as_object_mut() {
                    column.remove("name");
                }
                column
            };
            a == b || (without(a) == without(b) && fits(&name(a), &name(b)))
        })
}

fn rows_text(answer: &Value) -> String {
    answer.get("rows").map(ToString::to_string).unwrap_or_default()
}

/// Rows of JSON with the casts of a statement named after their columns.
fn casts_by_column(text: &str, rows: String) -> String {
    let casts = text.split("CAST(").skip(1).filter_map(|rest| {
        let (inner, _) = rest.split_once(')')?;
        inner.split_once(" AS ")
    });
    casts.fold(rows, |rows, (column, ty)| {
        rows.replace(
            &hex(&format!("\"cast({column} as {ty})\"")),
            &hex(&format!("\"{column}\"")),
        )
    })
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows, each as text, sorted.
pub(super) fn sorted_rows(answer: &Value) -> Vec<String> {
    let rows = answer.get("rows").and_then(Value::as_array);
    let mut rows = rows.map_or_else(Vec::new, |rows| {
        rows.iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    rows.sort_unstable();
    rows
}

/// The columns, those of a timeuuid by its right name.
fn columns_of(answer: &Value) -> Option<String> {
    let columns = answer.get("columns")?.to_string();
    Some(columns.replace(LEGACY_TIMEUUID, "timeuuid"))
}

/// The rows of an answer, of all its pages.
pub(super) fn rows_of(answer: &Value) -> &[Value] {
    answer.get("rows").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// How many they are.
pub(super) fn row_count(answer: &Value) -> usize {
    answer.get("rows").and_then(Value::as_array).map_or(0, Vec::len)
}

/// What a refusal says.
pub(super) fn message_of(answer: &Value) -> &str {
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
pub(super) fn judge(case: &Case<'_>) -> Verdict {
    if case.theirs == case.ours {
        return Verdict::Same;
    }
    RULES
        .iter()
        .position(|rule| (rule.holds)(case))
        .map_or(Verdict::Different, Verdict::Known)
}

/// Whether the servers' tables may differ from here on: one of them took a write that the other refused, or Cassandra's failed while
/// it was carried out.
pub(super) fn parts_ways(question: &Question, theirs: &Value, ours: &Value) -> bool {
    question.kind != Kind::Read
        && (code_of(theirs).is_none() != code_of(ours).is_none()
            || code_of(theirs) == Some("0x1500")
            || theirs.get("broken").is_some())
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
