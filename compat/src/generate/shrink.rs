//! Makes a difference small: statements are left out while it stays, then parts of statements.
//!
//! Each attempt runs on both servers in a fresh keyspace. Reads but the last are dropped first, then writes by halves,
//! quarters and so on (delta debugging), then in each statement whatever stands between separators.

use super::pair::Pair;
use super::question::{Kind, Question, Way};
use super::{compare, words};
use crate::{Outcome, clock};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A difference with what leads to it; the last statement is the one whose answers differ.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// The statements.
    pub(super) questions: Vec<Question>,
    /// Cassandra's answer to the last.
    pub(super) theirs: Value,
    /// Ours.
    pub(super) ours: Value,
    /// Whether the difference came again when the statements did.
    pub(super) again: bool,
}

/// Attempts, as long as there is time.
struct Lab<'a> {
    pair: &'a mut Pair,
    keyspace: &'a str,
    class: String,
    end: Instant,
    found: Finding,
}

impl Lab<'_> {
    fn is_over(&self) -> bool {
        clock::now() >= self.end
    }

    /// Takes `questions` for the finding if they show the same difference.
    fn attempt(&mut self, questions: Vec<Question>) -> Outcome<bool> {
        if self.is_over() || questions.is_empty() {
            return Ok(false);
        }
        self.pair.enter(self.keyspace)?;
        let mut last = None;
        for question in &questions {
            last = super::unless_unbuilt(self.pair.ask(question))?;
            if last.is_none() {
                return Ok(false);
            }
        }
        let Some((theirs, ours)) = last else { return Ok(false) };
        let same = theirs != ours && compare::class(&theirs, &ours) == self.class;
        if same {
            self.found = Finding {
                questions,
                theirs,
                ours,
                again: true,
            };
        }
        Ok(same)
    }

    fn without(&self, from: usize, to: usize) -> Vec<Question> {
        let mut questions = self.found.questions.clone();
        questions.drain(from..to);
        questions
    }

    /// Leaves out statements by halves, quarters, …; the last stays.
    fn fewer(&mut self) -> Outcome<()> {
        let mut size = (self.found.questions.len() / 2).max(1);
        loop {
            let mut at = 0;
            let mut any = false;
            while at + 1 < self.found.questions.len() && !self.is_over() {
                let to = (at + size).min(self.found.questions.len() - 1);
                if self.attempt(self.without(at, to))? {
                    any = true;
                } else {
                    at = to;
                }
            }
            if size == 1 && !any || self.is_over() {
                return Ok(());
            }
            size = (size / 2).max(1);
        }
    }

    /// Changes one statement; true when the difference stays.
    fn change(&mut self, at: usize, to: Question) -> Outcome<bool> {
        let mut questions = self.found.questions.clone();
        match questions.get_mut(at) {
            Some(place) if *place != to => *place = to,
            _ => return Ok(false),
        }
        self.attempt(questions)
    }

    /// Makes each statement simpler.
    fn simpler(&mut self) -> Outcome<()> {
        let mut at = self.found.questions.len();
        while at > 0 && !self.is_over() {
            at -= 1;
            let Some(question) = self.found.questions.get(at).cloned() else {
                continue;
            };
            for candidate in plainer(&question) {
                self.change(at, candidate)?;
            }
            let mut from = 0;
            while let Some(candidate) = self.found.questions.get(at).and_then(|q| without_part(q, from)) {
                if self.is_over() {
                    break;
                }
                if !self.change(at, candidate)? {
                    from += 1;
                }
            }
        }
        Ok(())
    }
}

/// Shrinks what `questions` end in, for `budget` at most.
///
/// # Errors
/// When a server is gone.
pub(super) fn shrink(
    pair: &mut Pair,
    keyspace: &str,
    questions: &[Question],
    answers: (Value, Value),
    budget: Duration,
) -> Outcome<Finding> {
    let (theirs, ours) = answers;
    let Some((last, before)) = questions.split_last() else {
        return Err(crate::Error::failed("nothing to shrink"));
    };
    let mut lab = Lab {
        pair,
        keyspace,
        class: compare::class(&theirs, &ours),
        end: clock::now() + budget,
        found: Finding {
            questions: questions.to_vec(),
            theirs,
            ours,
            again: false,
        },
    };
    let only = |wanted: fn(Kind) -> bool| {
        let mut kept = before.iter().filter(|q| wanted(q.kind)).cloned().collect::<Vec<_>>();
        kept.push(last.clone());
        kept
    };
    let shown = lab.attempt(only(|kind| kind == Kind::Schema))?
        || lab.attempt(only(|kind| kind != Kind::Read))?
        || lab.attempt(questions.to_vec())?;
    if shown {
        lab.fewer()?;
        // Time is part of the question only for what expires.
        let timeless = lab
            .found
            .questions
            .iter()
            .map(|q| Question { now: None, ..q.clone() })
            .collect();
        lab.attempt(timeless)?;
        lab.simpler()?;
        lab.fewer()?;
    }
    let Lab { pair, found, .. } = lab;
    pair.leave();
    Ok(found)
}

/// Simpler ways to send a statement.
fn plainer(question: &Question) -> Vec<Question> {
    let mut candidates = Vec::new();
    candidates.extend(question.inlined());
    if let Some((_, statements)) = &question.batch {
        candidates.extend(statements.first().map(|only| Question {
            now: question.now,
            timestamp: question.timestamp,
            ..only.clone()
        }));
        for at in 0..statements.len() {
            let mut fewer = question.clone();
            if let Some((_, statements)) = &mut fewer.batch
                && statements.len() > 1
            {
                statements.remove(at);
                candidates.push(fewer);
            }
        }
    }
    let plain = Question {
        page: None,
        timestamp: None,
        ..question.clone()
    };
    candidates.push(Question {
        way: if question.marks.is_empty() {
            Way::Text
        } else {
            question.way
        },
        ..plain.clone()
    });
    candidates.push(Question {
        timestamp: None,
        ..question.clone()
    });
    candidates.push(Question {
        page: None,
        ..question.clone()
    });
    candidates
}

/// Words that a part begins with.
const CLAUSES: [&str; 16] = [
    "AND",
    "WHERE",
    "ORDER",
    "LIMIT",
    "PER",
    "GROUP",
    "USING",
    "IF",
    "ALLOW",
    "WITH",
    "DEFAULT",
    "DISTINCT",
    "JSON",
    "AS",
    "TTL",
    "TIMESTAMP",
];

/// The statement without its part number `wanted`: an item between commas or brackets, or a clause. `None` when there
/// are no more parts.
fn without_part(question: &Question, wanted: usize) -> Option<Question> {
    if question.batch.is_some() {
        return None;
    }
    let parts = words::split(&question.text);
    let mut spans = spans(&parts);
    // In an INSERT a name goes with its value.
    let pairs = insert_pairs(&parts);
    let cut = if let Some(pair) = pairs.get(wanted) {
        pair.clone()
    } else {
        // The longest first.
        spans.sort_by_key(|(from, to)| from.wrapping_sub(*to));
        vec![spans.get(wanted - pairs.len()).copied()?]
    };
    let mut marks = Vec::new();
    let mut values = question.marks.iter();
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        let gone = cut.iter().any(|(from, to)| (*from..*to).contains(&at));
        if *part == "?" {
            let value = values.next()?;
            if !gone {
                marks.push(value.clone());
            }
        }
        if !gone {
            // The blank between two words may have gone with what stood between them.
            if text.ends_with(is_of_word) && part.starts_with(is_of_word) {
                text.push(' ');
            }
            text.push_str(part);
        }
    }
    Some(Question {
        text: text.trim().to_owned(),
        marks,
        ..question.clone()
    })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Items and clauses, as ranges of parts, a separator with each.
fn spans(parts: &[&str]) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    // Where the item and the clause of each open bracket begin.
    let mut open = vec![(0, 0)];
    let mut close_all = |item: usize, clause: usize, at: usize| {
        for from in [item, clause] {
            if from < at && from > 0 && !spans.contains(&(from, at)) {
                spans.push((from, at));
            }
        }
    };
    for (at, part) in parts.iter().enumerate() {
        let Some((item, clause)) = open.last_mut() else { break };
        match *part {
            "(" | "[" | "{" => open.push((at + 1, at + 1)),
            ")" | "]" | "}" => {
                close_all(*item, *clause, at);
                open.pop();
            }
            "," | ";" => {
                close_all(*item, *item, at);
                // With the separator behind it, or before the next.
                close_all(*item, *item, at + 1);
                *item = at;
            }
            word if CLAUSES.contains(&word) => {
                close_all(*item, *clause, at);
                *item = at;
                *clause = at;
            }
            "SELECT" | "SET" | "FROM" | "UPDATE" | "DELETE" | "BATCH" | "BY" => {
                close_all(*item, *clause, at);
                *item = at + 1;
            }
            _ => {}
        }
    }
    let end = parts.len();
    if let Some((item, clause)) = open.first() {
        close_all(*item, *clause, end);
    }
    spans
}

/// Of `INSERT INTO t (a, b) VALUES (x, y)`: the ranges of each name with those of its value.
fn insert_pairs(parts: &[&str]) -> Vec<Vec<(usize, usize)>> {
    if parts.first() != Some(&"INSERT") {
        return Vec::new();
    }
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, part) in parts.iter().enumerate() {
        match *part {
            "(" | "[" | "{" => {
                depth += 1;
                if depth == 1 {
                    groups.push(Vec::new());
                    from = at + 1;
                }
            }
            "," if depth == 1 => {
                if let Some(group) = groups.last_mut() {
                    group.push((from, at));
                    from = at;
                }
            }
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0
                    && let Some(group) = groups.last_mut()
                {
                    group.push((from, at));
                }
            }
            _ => {}
        }
    }
    match groups.as_slice() {
        [names, values, ..] if names.len() == values.len() => names
            .iter()
            .zip(values)
            .skip(1)
            .map(|(name, value)| vec![*name, *value])
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shorter(text: &str) -> Vec<String> {
        let question = Question::new(Kind::Read, text);
        (0..)
            .map_while(|at| without_part(&question, at))
            .map(|q| q.text)
            .collect()
    }

    #[test]
    fn leaves_out_items_and_clauses() {
        let found = shorter("SELECT a, b FROM t WHERE a = 1 AND b IN (1, 2) LIMIT 3");
        for wanted in [
            "SELECT a FROM t WHERE a = 1 AND b IN (1, 2) LIMIT 3",
            "SELECT a, b FROM t WHERE a = 1 LIMIT 3",
            "SELECT a, b FROM t WHERE a = 1 AND b IN (1, 2)",
            "SELECT a, b FROM t WHERE a = 1 AND b IN (1) LIMIT 3",
        ] {
            assert!(
                found.iter().any(|f| f.split_whitespace().eq(wanted.split_whitespace())),
                "{wanted}: {found:#?}"
            );
        }
        let found = shorter("INSERT INTO t (a, b) VALUES (1, [2, 3]) USING TTL 1");
        assert!(
            found.iter().any(|f| f == "INSERT INTO t (a) VALUES (1) USING TTL 1"),
            "{found:#?}"
        );
    }
}
