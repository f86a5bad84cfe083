//! The clauses of a SELECT, to ask for the same in another way: whole, with every column, without pages.

use super::question::{Question, Way};
use super::words;
use std::ops::Range;

/// A clause, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    /// What is selected.
    Selection,
    /// The table.
    From,
    /// Restrictions.
    Where,
    /// GROUP BY.
    Group,
    /// ORDER BY.
    Order,
    /// PER PARTITION LIMIT.
    Per,
    /// LIMIT.
    Limit,
    /// ALLOW FILTERING.
    Allow,
}

/// What to select instead.
#[derive(Debug, Clone, Copy)]
pub(super) enum Selection<'a> {
    /// The same.
    Same,
    /// The same, and these columns behind it.
    And(&'a [String]),
    /// Every column.
    All,
}

/// A SELECT in its clauses.
#[derive(Debug)]
pub(super) struct Clauses<'a> {
    question: &'a Question,
    words: Vec<&'a str>,
    /// Each with its words, the one that it begins with included.
    spans: Vec<(Clause, Range<usize>)>,
}

/// How many brackets are open behind a word, if `depth` were before it.
fn depth_behind(depth: usize, word: &str) -> usize {
    match word {
        "(" | "[" | "{" => depth + 1,
        ")" | "]" | "}" => depth.saturating_sub(1),
        _ => depth,
    }
}

/// What stands between separators outside of brackets.
fn split_at<'b>(words: &'b [&'b str], separator: &'static str) -> impl Iterator<Item = &'b [&'b str]> {
    let mut depth = 0;
    words.split(move |word| {
        depth = depth_behind(depth, word);
        depth == 0 && *word == separator
    })
}

impl<'a> Clauses<'a> {
    /// `None`: no SELECT.
    pub(super) fn of(question: &'a Question) -> Option<Self> {
        if question.batch.is_some() || !question.text.starts_with("SELECT ") {
            return None;
        }
        let words = words::split(&question.text);
        let mut spans: Vec<(Clause, Range<usize>)> = vec![(Clause::Selection, 0..0)];
        let mut depth = 0_usize;
        for (at, word) in words.iter().enumerate() {
            depth = depth_behind(depth, word);
            let begun = match *word {
                _ if depth > 0 => None,
                "FROM" => Some(Clause::From),
                "WHERE" => Some(Clause::Where),
                "GROUP" => Some(Clause::Group),
                "ORDER" => Some(Clause::Order),
                "PER" => Some(Clause::Per),
                "LIMIT" => {
                    let of_partitions = words
                        .get(..at)
                        .and_then(|before| before.iter().rev().find(|word| !words::is_blank(word)));
                    (of_partitions != Some(&"PARTITION")).then_some(Clause::Limit)
                }
                "ALLOW" => Some(Clause::Allow),
                _ => None,
            };
            match begun {
                // A word too many in a spoiled statement begins nothing.
                Some(clause) if !spans.iter().any(|(there, _)| *there == clause) => spans.push((clause, at..at + 1)),
                _ => {
                    if let Some((_, span)) = spans.last_mut() {
                        span.end = at + 1;
                    }
                }
            }
        }
        spans
            .iter()
            .any(|(clause, _)| *clause == Clause::From)
            .then_some(Self { question, words, spans })
    }

    fn words_of(&self, clause: Clause) -> &[&'a str] {
        let span = self.spans.iter().find(|(there, _)| *there == clause);
        span.and_then(|(_, span)| self.words.get(span.clone()))
            .unwrap_or_default()
    }

    /// Whether it has this clause.
    pub(super) fn has(&self, clause: Clause) -> bool {
        !self.words_of(clause).is_empty()
    }

    /// What is selected, without SELECT.
    pub(super) fn selection(&self) -> String {
        let words = self.words_of(Clause::Selection);
        words.get(1..).unwrap_or_default().concat().trim().to_owned()
    }

    /// The same of each selector alone, in one page.
    pub(super) fn each(&self) -> Vec<Question> {
        let words = self.words_of(Clause::Selection).get(1..).unwrap_or_default();
        let selectors = split_at(words, ",");
        let all = marks_in(words);
        let (selected, others) = self.question.marks.split_at(all.min(self.question.marks.len()));
        let rest = self.words.get(words.len() + 1..).unwrap_or_default().concat();
        let mut from = 0;
        selectors
            .map(|selector| {
                let count = marks_in(selector);
                let mut marks = selected.get(from..from + count).unwrap_or_default().to_vec();
                from += count;
                marks.extend_from_slice(others);
                Question {
                    text: format!("SELECT {} {rest}", selector.concat().trim()),
                    way: match self.question.way {
                        Way::Values if marks.is_empty() => Way::Text,
                        way => way,
                    },
                    marks,
                    page: None,
                    ..self.question.clone()
                }
            })
            .collect()
    }

    /// How many rows LIMIT allows; `None` without one, or with one that is no number.
    pub(super) fn limit(&self) -> Option<usize> {
        let word = *self
            .words_of(Clause::Limit)
            .iter()
            .rev()
            .find(|word| !words::is_blank(word))?;
        if word != "?" {
            return word.parse().ok();
        }
        let before = self.spans.iter().take_while(|(clause, _)| *clause != Clause::Limit);
        let marks = before
            .map(|(clause, _)| marks_in(self.words_of(*clause)))
            .sum::<usize>();
        self.question.marks.get(marks)?.literal.parse().ok()
    }

    /// Every column of the rows that those restrictions alone allow which `wanted` takes.
    pub(super) fn only(&self, wanted: impl Fn(&str) -> bool) -> Question {
        let before = self.spans.iter().take_while(|(clause, _)| *clause != Clause::Where);
        let mut mark = before
            .map(|(clause, _)| marks_in(self.words_of(*clause)))
            .sum::<usize>();
        let words = self.words_of(Clause::Where).get(1..).unwrap_or_default();
        let restrictions = split_at(words, "AND");
        let mut texts = Vec::new();
        let mut marks = Vec::new();
        for restriction in restrictions {
            let count = marks_in(restriction);
            let text = restriction.concat().trim().to_owned();
            if wanted(&text) {
                marks.extend_from_slice(self.question.marks.get(mark..mark + count).unwrap_or_default());
                texts.push(text);
            }
            mark += count;
        }
        let table = self.words_of(Clause::From).concat();
        Question {
            text: format!(
                "SELECT * {} WHERE {} ALLOW FILTERING",
                table.trim(),
                texts.join(" AND ")
            ),
            way: match self.question.way {
                Way::Values if marks.is_empty() => Way::Text,
                way => way,
            },
            marks,
            page: None,
            ..self.question.clone()
        }
    }

    /// The same without some clauses and in one page, with ALLOW FILTERING if `filtering`, of another selection.
    pub(super) fn rebuilt(&self, without: &[Clause], filtering: bool, selection: Selection<'_>) -> Question {
        let mut text = String::new();
        let mut marks = Vec::new();
        let mut from = 0;
        for (clause, span) in &self.spans {
            let words = self.words.get(span.clone()).unwrap_or_default();
            let count = marks_in(words);
            let mine = self.question.marks.get(from..from + count).unwrap_or_default();
            from += count;
            match (clause, selection) {
                (Clause::Selection, Selection::All) => text.push_str("SELECT * "),
                (clause, _) if without.contains(clause) => {}
                (Clause::Selection, Selection::And(columns)) => {
                    text.push_str(words.concat().trim_end());
                    for column in columns {
                        text.push_str(", ");
                        text.push_str(column);
                    }
                    text.push(' ');
                    marks.extend_from_slice(mine);
                }
                _ => {
                    text.push_str(&words.concat());
                    marks.extend_from_slice(mine);
                }
            }
        }
        let mut text = text.trim_end().to_owned();
        if filtering && !self.has(Clause::Allow) {
            text.push_str(" ALLOW FILTERING");
        }
        let way = match self.question.way {
            Way::Values if marks.is_empty() => Way::Text,
            way => way,
        };
        Question {
            text,
            marks,
            way,
            page: None,
            ..self.question.clone()
        }
    }
}

fn marks_in(words: &[&str]) -> usize {
    words.iter().filter(|word| **word == "?").count()
}

#[cfg(test)]
mod tests {
    use super::super::question::Kind;
    use super::super::types::Val;
    use super::*;

    #[test]
    fn leaves_out_clauses_with_their_markers() {
        let mut question = Question::new(
            Kind::Read,
            "SELECT r[?], f(a) FROM t WHERE p = ? AND c IN (1, ?) PER PARTITION LIMIT ? LIMIT ?",
        );
        question.marks = (1..=5).map(Val::int).collect();
        question.way = Way::Prepared;
        question.page = Some(1);
        let clauses = Clauses::of(&question).expect("a SELECT");
        assert_eq!(clauses.limit(), Some(5));
        assert_eq!(clauses.selection(), "r[?], f(a)");
        let whole = clauses.rebuilt(&[Clause::Per, Clause::Limit], true, Selection::All);
        assert_eq!(
            whole.text,
            "SELECT * FROM t WHERE p = ? AND c IN (1, ?) ALLOW FILTERING"
        );
        assert_eq!(whole.marks, [Val::int(2), Val::int(3)]);
        assert_eq!(whole.page, None);
        let wider = clauses.rebuilt(
            &[Clause::Limit],
            false,
            Selection::And(&["a".to_owned(), "b".to_owned()]),
        );
        assert_eq!(
            wider.text,
            "SELECT r[?], f(a), a, b FROM t WHERE p = ? AND c IN (1, ?) PER PARTITION LIMIT ?"
        );
        assert_eq!(wider.marks.len(), 4);
        let each = clauses.each();
        assert_eq!(
            each.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(),
            [
                "SELECT r[?] FROM t WHERE p = ? AND c IN (1, ?) PER PARTITION LIMIT ? LIMIT ?",
                "SELECT f(a) FROM t WHERE p = ? AND c IN (1, ?) PER PARTITION LIMIT ? LIMIT ?",
            ]
        );
        assert_eq!(each.iter().map(|one| one.marks.len()).collect::<Vec<_>>(), [5, 4]);
        let only = clauses.only(|restriction| restriction.starts_with("c "));
        assert_eq!(only.text, "SELECT * FROM t WHERE c IN (1, ?) ALLOW FILTERING");
        assert_eq!(only.marks, [Val::int(3)]);
    }
}
