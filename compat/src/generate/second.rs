//! Differences that a second question decides: what Cassandra is known to get wrong is only taken for that when it answers as
//! we did to the same asked in another way, or of a table without the index.

use super::clauses::{Clause, Clauses, Selection};
use super::compare::{Case, class, code_of, message_of, row_count, rows_of, sorted_rows};
use super::pair::Pair;
use super::question::{Kind, Question};
use crate::Outcome;
use serde_json::Value;

/// How often Cassandra is asked without its writing to disk: other clients of it may drop tables meanwhile.
const QUIET_TRIES: usize = 6;

/// A difference that may be explained.
pub(super) struct Rule {
    /// Why it is one.
    pub(super) reason: &'static str,
    /// Whether this may be a case of it.
    holds: fn(&Case<'_>) -> bool,
    /// Asks again: whether it is.
    agrees: fn(&mut Room<'_>, &Case<'_>) -> Outcome<bool>,
}

/// Where to ask again.
pub(super) struct Room<'a> {
    /// The two servers, where the question was asked.
    pub(super) pair: &'a mut Pair,
    /// The two servers, elsewhere.
    pub(super) elsewhere: &'a mut Pair,
    /// The name of a keyspace there.
    pub(super) keyspace: &'a str,
    /// What was asked before.
    pub(super) before: &'a [Question],
}

/// What is known, and how it is told from what is not.
pub(super) const RULES: &[Rule] = &[
    Rule {
        reason: "Cassandra shows a row by cells that are not asked for and older than its ended marker, if they lie in another file; with every \
                 column asked for both have the same rows, and Cassandra has our answer where nothing is written to disk",
        holds: |case| {
            case.question.kind == Kind::Read
                && class(case.theirs, case.ours) == "rows rows rows"
                && !case.question.text.starts_with("SELECT * ")
                && is_subsequence(rows_of(case.ours), rows_of(case.theirs))
                    | has(case, Clause::Limit)
                    | has(case, Clause::Per)
        },
        agrees: |room, case| shows_by_others(room, case, false),
    },
    Rule {
        reason: "not mended: a row whose marker has ended shows by elements older than it that the selection passes over; with every column asked \
                 for both have the same rows",
        holds: |case| {
            let clauses = Clauses::of(case.question);
            clauses.is_some_and(|clauses| clauses.selection().contains(['[', '.']))
                && class(case.theirs, case.ours) == "rows rows rows"
        },
        agrees: |room, case| shows_by_others(room, case, true),
    },
    Rule {
        reason: "Cassandra leaves out values of elements where two selectors take overlapping elements of one column; of each selector alone \
                 both have the same",
        holds: |case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return false;
            };
            let selection = clauses.selection();
            class(case.theirs, case.ours) == "rows rows rows"
                && row_count(case.theirs) == row_count(case.ours)
                && !clauses.has(Clause::Group)
                && !selection.starts_with("JSON ")
                && case
                    .facts
                    .columns
                    .iter()
                    .any(|name| selection.matches(&format!("{name}[")).count() > 1)
        },
        agrees: |room, case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return Ok(false);
            };
            for (place, question) in clauses.each().iter().enumerate() {
                let (theirs, ours) = room.pair.ask(question)?;
                let column = |row: &Value| Value::from(vec![row.get(place).cloned().unwrap_or_default()]);
                let mine = rows_of(case.ours).iter().map(column).collect::<Vec<_>>();
                if !is_same(&theirs, &ours) || rows_of(&ours) != mine {
                    return Ok(false);
                }
            }
            Ok(true)
        },
    },
    Rule {
        reason: "Cassandra counts rows for LIMIT and pages that an index or an expired element finds and that are not there any more; it has \
                 ours without LIMIT and pages, or without indexes",
        holds: |case| {
            let text = &case.question.text;
            (case.facts.attached_index || text.contains(" CONTAINS "))
                && (has(case, Clause::Limit) || case.question.page.is_some())
                && class(case.theirs, case.ours) == "rows rows rows"
        },
        agrees: |room, case| Ok(is_ours_whole(room, case)? || is_ours_without_indexes(room, case)?),
    },
    Rule {
        reason: "Cassandra does not take its own paging state back in pages of groups; it has ours in one page",
        holds: |case| {
            message_of(case.theirs) == "Invalid value for the paging state"
                && case.question.page.is_some()
                && has(case, Clause::Group)
                && matches!(code_of(case.ours), None | Some("0x1400"))
        },
        agrees: |room, case| {
            if code_of(case.ours).is_none() {
                return is_ours_whole(room, case);
            }
            // A function fails on one of the rows.
            let whole = Question {
                page: None,
                ..case.question.clone()
            };
            let (theirs, ours) = room.pair.ask(&whole)?;
            Ok(theirs == ours && ours == *case.ours)
        },
    },
    Rule {
        reason: "Cassandra finds other rows by CONTAINS on a frozen collection where a storage-attached index is used; it has ours without",
        holds: |case| {
            let asks = |name: &String| case.question.text.contains(&format!("{name} CONTAINS "));
            // A function may fail on a row that Cassandra does not find.
            let fails = code_of(case.theirs).is_none() && code_of(case.ours) == Some("0x1400");
            (is_of_attached(case) || case.facts.attached_index && fails)
                && case.facts.frozen_collections.iter().any(asks)
        },
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra takes a tuple apart that bounds a column whose other bound is of several columns; without that it has our answer",
        holds: |case| {
            message_of(case.theirs).starts_with("Invalid null value in condition for column ")
                && case.question.text.contains(" (null)")
                && code_of(case.ours).is_none()
        },
        agrees: |room, case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return Ok(false);
            };
            let (theirs, ours) = room
                .pair
                .ask(&clauses.only(|restriction| !restriction.starts_with('(')))?;
            Ok(is_same(&theirs, &ours))
        },
    },
    Rule {
        reason: "Cassandra passes over a restriction of a vector beside a storage-attached index in use; it has our rows without",
        holds: |case| {
            let restricts = |name: &String| {
                let mut operators = ["=", "<", ">"].iter();
                operators.any(|operator| case.question.text.contains(&format!("{name} {operator}")))
            };
            is_of_attached(case) && case.facts.vectors.iter().any(restricts)
        },
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra misses partitions that have only static columns where an index of a part of their key is used; it has our rows \
                 without",
        holds: |case| {
            case.facts.indexed && !case.facts.statics.is_empty() && class(case.theirs, case.ours) == "rows rows rows"
        },
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra's storage-attached index has addresses of both versions in another order than their type; it has our rows without",
        holds: |case| {
            let text = &case.question.text;
            let ranges = |name: &String| text.contains(&format!("{name} <")) || text.contains(&format!("{name} >"));
            is_of_attached(case) && case.facts.inets.iter().any(ranges)
        },
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra finds no empty text by a storage-attached index of a descending clustering column; it has our rows without",
        holds: |case| case.facts.descending && is_of_attached(case) && case.question.script().contains("''"),
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra finds a row by an expired or deleted element of a static collection where its partition is named; asked of all partitions it \
                 does not",
        holds: |case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return false;
            };
            class(case.theirs, case.ours) == "rows rows rows"
                && clauses.has(Clause::Allow)
                && case.facts.statics.iter().any(|name| asks_for_element(&clauses, name))
        },
        agrees: |room, case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return Ok(false);
            };
            let bare = [Clause::Limit, Clause::Per, Clause::Group];
            let (theirs, ours) = room.pair.ask(&clauses.rebuilt(&bare, false, Selection::All))?;
            let elements = clauses.only(|text| case.facts.statics.iter().any(|name| is_of_element(text, name)));
            let (scanned, other) = room.pair.ask(&elements)?;
            let (theirs, ours) = (rows_of(&theirs), rows_of(&ours));
            let mut more = theirs.iter().filter(|row| !ours.contains(row));
            Ok(is_same(&scanned, &other)
                && is_subsequence(ours, theirs)
                && is_subsequence(ours, rows_of(&scanned))
                && more.all(|row| !rows_of(&scanned).contains(row))
                && theirs.len() > ours.len())
        },
    },
    Rule {
        reason: "Cassandra finds not all rows by two storage-attached indexes on static columns; it has ours without",
        holds: |case| {
            let (_, restrictions) = case.question.text.split_once(" WHERE ").unwrap_or_default();
            let restricted = |name: &&String| restrictions.contains(&format!("{name} "));
            is_of_attached(case) && case.facts.statics.iter().filter(restricted).count() > 1
        },
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra fails to read what ends within a deleted range, groups and limits: an exception in its replica (open RT bound); it \
                 has our rows wherever it answers",
        holds: |case| {
            code_of(case.theirs) == Some("0x1300")
                && matches!(code_of(case.ours), None | Some("0x1400"))
                && case.facts.deleted_ranges
                && (has(case, Clause::Group) || has(case, Clause::Allow))
        },
        agrees: |room, case| {
            for (without, selection) in [
                (&[] as &[Clause], Selection::Same),
                (&[Clause::Limit, Clause::Per], Selection::Same),
                (
                    &[Clause::Limit, Clause::Per, Clause::Group, Clause::Order],
                    Selection::All,
                ),
            ] {
                let Some((theirs, ours)) = ask(room.pair, case.question, without, selection)? else {
                    return Ok(false);
                };
                if code_of(&theirs) == Some("0x1300") && matches!(code_of(&ours), None | Some("0x1400")) {
                    continue;
                }
                return Ok(is_same(&theirs, &ours));
            }
            Ok(true)
        },
    },
    Rule {
        reason: "Cassandra fails to filter beside an index: an exception in its replica (null compared); without indexes it has our answer",
        holds: |case| case.facts.indexed && code_of(case.theirs) == Some("0x1300") && has(case, Clause::Allow),
        agrees: is_ours_without_indexes,
    },
    Rule {
        reason: "Cassandra fails to filter by CONTAINS: an exception in its replica on a deleted element of a type that has no empty value; without \
                 CONTAINS both have the same",
        holds: |case| {
            code_of(case.theirs) == Some("0x1300")
                && code_of(case.ours).is_none()
                && has(case, Clause::Allow)
                && case.question.text.contains(" CONTAINS ")
        },
        agrees: |room, case| {
            let Some(clauses) = Clauses::of(case.question) else {
                return Ok(false);
            };
            let others = clauses.only(|restriction| !restriction.contains(" CONTAINS "));
            let (theirs, ours) = match others.text.replace(" WHERE  ALLOW", " ALLOW") {
                text if text == others.text => room.pair.ask(&others)?,
                text => room.pair.ask(&Question { text, ..others })?,
            };
            Ok(is_same(&theirs, &ours))
        },
    },
    Rule {
        reason: "Cassandra sorts SELECT JSON * over an IN by the JSON text, not by the column of ORDER BY; without LIMIT the rows are ours",
        holds: |case| {
            let text = &case.question.text;
            text.starts_with("SELECT JSON * ")
                && text.contains(" IN ")
                && has(case, Clause::Order)
                && class(case.theirs, case.ours) == "rows rows rows"
        },
        agrees: |room, case| {
            let without = [Clause::Limit, Clause::Per];
            let answers = ask(room.pair, case.question, &without, Selection::Same)?;
            Ok(row_count(case.theirs) == row_count(case.ours)
                && answers.is_some_and(|(theirs, ours)| sorted_rows(&theirs) == sorted_rows(&ours)))
        },
    },
    Rule {
        reason: "Cassandra's view has not what its table has (its own fault): a view that is made behind the same rows has ours",
        holds: |case| {
            case.question.kind == Kind::Read
                && class(case.theirs, case.ours).starts_with("rows rows ")
                && view_of(case).is_some()
        },
        agrees: |room, case| {
            let Some(view) = view_of(case) else {
                return Ok(false);
            };
            room.elsewhere.enter(room.keyspace)?;
            let makes = format!("CREATE MATERIALIZED VIEW {view} ");
            let before = room.before.iter().filter(|question| question.kind != Kind::Read);
            let (made, others): (Vec<_>, Vec<_>) = before.partition(|question| question.text.starts_with(&makes));
            for question in others.into_iter().chain(made) {
                room.elsewhere.ask(question)?;
            }
            let (theirs, ours) = room.elsewhere.ask(case.question)?;
            room.elsewhere.leave();
            Ok(is_same(&theirs, &ours) && rows_of(&theirs) == rows_of(case.ours))
        },
    },
    Rule {
        reason: "Cassandra timed out on a busy machine; a read asked again is the same",
        holds: |case| matches!(code_of(case.theirs), Some("0x1100" | "0x1200")),
        agrees: |room, case| {
            if case.question.kind != Kind::Read {
                return Ok(true);
            }
            for _ in 0..3 {
                let (theirs, ours) = room.pair.ask(case.question)?;
                if theirs == ours {
                    return Ok(true);
                }
            }
            Ok(false)
        },
    },
];

/// The rule that explains a difference, after asking again.
///
/// # Errors
/// When a server is gone.
pub(super) fn explaining(room: &mut Room<'_>, case: &Case<'_>) -> Outcome<Option<usize>> {
    for (number, rule) in RULES.iter().enumerate() {
        if (rule.holds)(case) && (rule.agrees)(room, case)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The view that is read.
fn view_of(case: &Case<'_>) -> Option<String> {
    let (_, rest) = case.question.text.split_once(" FROM v")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    (!digits.is_empty()).then(|| format!("v{digits}"))
}

fn is_of_attached(case: &Case<'_>) -> bool {
    case.facts.attached_index && case.question.kind == Kind::Read && class(case.theirs, case.ours) == "rows rows rows"
}

/// Whether a restriction is of an element of the column.
fn is_of_element(restriction: &str, name: &str) -> bool {
    let rest = restriction.strip_prefix(name).unwrap_or_default();
    rest.starts_with(" CONTAINS ") || rest.starts_with('[')
}

fn asks_for_element(clauses: &Clauses<'_>, name: &str) -> bool {
    let text = clauses.only(|restriction| is_of_element(restriction, name)).text;
    !text.contains(" WHERE  ")
}

fn has(case: &Case<'_>, clause: Clause) -> bool {
    Clauses::of(case.question).is_some_and(|clauses| clauses.has(clause))
}

fn ask(
    pair: &mut Pair,
    question: &Question,
    without: &[Clause],
    selection: Selection<'_>,
) -> Outcome<Option<(Value, Value)>> {
    match Clauses::of(question) {
        Some(clauses) => pair.ask(&clauses.rebuilt(without, false, selection)).map(Some),
        None => Ok(None),
    }
}

fn is_same(theirs: &Value, ours: &Value) -> bool {
    code_of(theirs).is_none() && code_of(ours).is_none() && rows_of(theirs) == rows_of(ours)
}

/// The first rows, as many as a LIMIT allows.
fn first(rows: &[Value], limit: Option<usize>) -> &[Value] {
    rows.get(..limit.unwrap_or(usize::MAX).min(rows.len())).unwrap_or(rows)
}

/// Whether all of `less` are among `more`, in their order.
fn is_subsequence(less: &[Value], more: &[Value]) -> bool {
    let mut left = more.iter();
    less.iter().all(|row| left.any(|other| other == row))
}

/// Both have the same without LIMIT and pages, and ours was what LIMIT leaves of it.
fn is_ours_whole(room: &mut Room<'_>, case: &Case<'_>) -> Outcome<bool> {
    let Some(clauses) = Clauses::of(case.question) else {
        return Ok(false);
    };
    let limit = clauses.limit();
    if clauses.has(Clause::Limit) && limit.is_none() {
        return Ok(false);
    }
    let (theirs, ours) = room
        .pair
        .ask(&clauses.rebuilt(&[Clause::Limit], false, Selection::Same))?;
    if code_of(&theirs) == Some("0x0000") && limit.is_none() {
        // It cannot show all that it finds (similarity with NaN): are they our rows?
        let (theirs, ours) = room.pair.ask(&clauses.rebuilt(&[], false, Selection::All))?;
        return Ok(is_same(&theirs, &ours) && row_count(&ours) == row_count(case.ours));
    }
    Ok(is_same(&theirs, &ours) && rows_of(case.ours) == first(rows_of(&ours), limit))
}

/// Cassandra has our rows where the same was written to a table without indexes.
fn is_ours_without_indexes(room: &mut Room<'_>, case: &Case<'_>) -> Outcome<bool> {
    let Some(clauses) = Clauses::of(case.question) else {
        return Ok(false);
    };
    room.elsewhere.enter(room.keyspace)?;
    for question in room.before {
        let is_index = question.kind == Kind::Schema && question.text.contains(" INDEX ");
        if question.kind != Kind::Read && !is_index {
            room.elsewhere.ask(question)?;
        }
    }
    let (theirs, _) = room.elsewhere.ask(&clauses.rebuilt(&[], true, Selection::Same))?;
    if code_of(&theirs) == Some("0x0000") && code_of(case.ours).is_none() {
        // It cannot show what it finds without indexes (JSON of null in a list): are they our rows?
        let whole = clauses.rebuilt(&[], true, Selection::All);
        let (theirs, _) = room.elsewhere.ask(&whole)?;
        room.elsewhere.leave();
        let (_, ours) = room.pair.ask(&whole)?;
        return Ok(is_same(&theirs, &ours) && row_count(&ours) == row_count(case.ours));
    }
    room.elsewhere.leave();
    Ok(code_of(&theirs) == code_of(case.ours)
        && rows_of(&theirs) == rows_of(case.ours)
        && message_of(&theirs) == message_of(case.ours))
}

/// One of the two shows rows by cells that are not asked for: with every column asked for the rows are the same, and what each has shown
/// was among them; `we` if it is we who show more. What each row shows is only compared where rows are not put together.
fn shows_by_others(room: &mut Room<'_>, case: &Case<'_>, we: bool) -> Outcome<bool> {
    let Some(clauses) = Clauses::of(case.question) else {
        return Ok(false);
    };
    let bare = [Clause::Limit, Clause::Per, Clause::Group];
    let text = &case.question.text;
    let aggregates = ["count(", "min(", "max(", "sum(", "avg("];
    let is_plain = !clauses.has(Clause::Group)
        && !text.starts_with("SELECT JSON ")
        && !text.starts_with("SELECT DISTINCT ")
        && !aggregates.iter().any(|aggregate| text.contains(aggregate));
    let selection = if is_plain {
        Selection::And(&case.facts.columns)
    } else {
        Selection::All
    };
    let (theirs, ours) = room.pair.ask(&clauses.rebuilt(&bare, false, selection))?;
    if !is_same(&theirs, &ours) {
        return Ok(false);
    }
    // Which of its rows Cassandra shows so depends on what lies in which file.
    if !we && !is_ours_in_one_file(room, case)? {
        return Ok(false);
    }
    if !is_plain {
        // Who has shown which row cannot be told.
        return Ok(true);
    }
    let width = case.ours.get("columns").and_then(Value::as_array).map_or(0, Vec::len);
    let narrow = |row: &Value| {
        let values = row.as_array().and_then(|row| row.get(..width));
        Value::from(values.unwrap_or_default().to_vec())
    };
    let all = rows_of(&ours).iter().map(narrow).collect::<Vec<_>>();
    let (theirs, ours) = room.pair.ask(&clauses.rebuilt(&bare, false, Selection::Same))?;
    let (theirs, ours) = (rows_of(&theirs), rows_of(&ours));
    let (less, more) = if we { (theirs, ours) } else { (ours, theirs) };
    if !is_subsequence(less, more) || !is_subsequence(more, &all) {
        return Ok(false);
    }
    if clauses.has(Clause::Per) {
        return Ok(is_subsequence(rows_of(case.ours), ours));
    }
    let limit = clauses.limit();
    Ok((limit.is_some() || !clauses.has(Clause::Limit))
        && rows_of(case.ours) == first(ours, limit)
        && rows_of(case.theirs) == first(theirs, limit))
}

/// Cassandra has our answer after the same writes, when nothing makes it write them to disk before it is asked.
fn is_ours_in_one_file(room: &mut Room<'_>, case: &Case<'_>) -> Outcome<bool> {
    for _ in 0..QUIET_TRIES {
        let quiet = room.elsewhere.enter_quietly(room.keyspace)?;
        for question in room.before.iter().filter(|question| question.kind != Kind::Read) {
            room.elsewhere.ask(question)?;
        }
        let (theirs, ours) = room.elsewhere.ask(case.question)?;
        drop(quiet);
        room.elsewhere.leave();
        if rows_of(&ours) != rows_of(case.ours) {
            return Ok(false);
        }
        if is_same(&theirs, &ours) {
            return Ok(true);
        }
    }
    Ok(false)
}
