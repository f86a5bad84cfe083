//! A file of statements: where each begins and ends, and the places of names in it.
//!
//! The syntax tree has no places, and execution needs none; advice does. So this module splits a file into words, and
//! understands only quotes and comments. The grammar parses each statement afterwards.

use std::collections::BTreeSet;

use super::unread::Unread;

/// A place in a file. Line and column count from 1; columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A source file.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name in reports.
    pub name: String,
    text: String,
    statements: Vec<Piece>,
    accepts: Vec<Accept>,
}

/// A comment addressed to the linter.
#[derive(Clone, Debug)]
struct Accept {
    at: usize,
    end: usize,
    /// Its verb; only `accept` has a meaning.
    verb: String,
    /// The rules whose findings it accepts.
    rules: Vec<String>,
}

/// The start of such a comment.
const ADDRESS: &str = "helenus:";

/// The verb that accepts findings.
const ACCEPT: &str = "accept";

/// Why a rule named in a comment accepts nothing, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// The comment's verb is unknown.
    Verb(String),
    /// It names no rule.
    NoRule,
    /// This rule has no finding in its statement.
    Rule(String),
}

impl Accept {
    fn names(&self, rule: &str) -> bool {
        self.verb == ACCEPT && self.rules.iter().any(|named| named == rule)
    }
}

/// A statement's place in a script.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    start: usize,
    end: usize,
    words: Vec<Word>,
    /// `None` means that the piece is a statement.
    unread: Option<Unread>,
}

impl Piece {
    fn new(start: usize, end: usize, words: Vec<Word>) -> Self {
        let first = words.first().filter(|word| word.at == start && !word.quoted);
        let unread = match first.map(|word| word.text.as_str()) {
            Some("source") => Some(Unread::Source),
            Some("copy") => Some(Unread::Copy),
            _ => None,
        };
        Self {
            start,
            end,
            words,
            unread,
        }
    }
}

/// A name, keyword or number; quoted names without their quotes.
#[derive(Clone, Debug)]
struct Word {
    /// Folded to lower case unless quoted.
    text: String,
    at: usize,
    len: usize,
    quoted: bool,
}

/// cqlsh commands that may be in a schema file. They are not CQL, end with their line, and do not change the meaning of
/// the file.
const CQLSH: &[&str] = &[
    "capture",
    "clear",
    "cls",
    "consistency",
    "expand",
    "help",
    "history",
    "login",
    "paging",
    "quit",
    "exit",
    "serial",
    "show",
    "tracing",
    "unicode",
];

impl Script {
    /// Splits a text into statements at semicolons, except inside a batch, a quotation or a comment.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let mut statements = Vec::new();
        let mut cutter = Cutter {
            text,
            at: 0,
            accepts: Vec::new(),
        };
        while let Some(piece) = cutter.statement() {
            statements.push(piece);
        }
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            statements,
            accepts: cutter.accepts,
        }
    }

    /// A line, from 1; empty where there is none.
    pub(super) fn line(&self, line: usize) -> &str {
        let before = line.saturating_sub(1);
        self.text.lines().nth(before).unwrap_or("")
    }

    /// The comment that accepts what a rule finds on a line, by its number. It is in the statement that reaches there,
    /// in a line of its end, or before it, after the previous statement. `None` means that no comment does.
    pub(super) fn accepts(&self, rule: &str, line: usize) -> Option<usize> {
        let mut begins = 0;
        for piece in &self.statements {
            let rest = self.text.get(piece.end..).unwrap_or("");
            let ends = piece.end + rest.find('\n').unwrap_or(rest.len());
            let lines = self.place(piece.start).line..=self.place(piece.end).line;
            if lines.contains(&line) {
                return self
                    .accepts
                    .iter()
                    .position(|accept| (begins..ends).contains(&accept.at) && accept.names(rule));
            }
            begins = ends;
        }
        None
    }

    /// Comments that accept nothing, with their places and widths. `used`: the comments and rules that accept
    /// something.
    pub(super) fn idle(&self, used: &BTreeSet<(usize, &str)>) -> Vec<(Place, usize, Idle)> {
        let mut idle = Vec::new();
        for (number, accept) in self.accepts.iter().enumerate() {
            let text = self.text.get(accept.at..accept.end).unwrap_or("");
            let width = text.lines().next().unwrap_or("").trim_end().chars().count();
            let mut tell = |why| idle.push((self.place(accept.at), width, why));
            if accept.verb != ACCEPT {
                tell(Idle::Verb(accept.verb.clone()));
            } else if accept.rules.is_empty() {
                tell(Idle::NoRule);
            } else {
                let idle = accept
                    .rules
                    .iter()
                    .filter(|rule| !used.contains(&(number, rule.as_str())));
                idle.for_each(|rule| tell(Idle::Rule(rule.clone())));
            }
        }
        idle
    }

    /// The statements with the lines where they begin, counted from 1; without semicolons.
    pub fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.statements().map(|found| (found.place().line, found.text()))
    }

    /// The first command that only cqlsh can execute, with its line, counted from 1.
    #[must_use]
    pub fn unread(&self) -> Option<(usize, Unread)> {
        let (found, unread) = self.all_unread().next()?;
        Some((found.place().line, unread))
    }

    pub(super) fn all_unread(&self) -> impl Iterator<Item = (Found<'_>, Unread)> {
        let pieces = self.statements.iter();
        pieces.filter_map(|piece| Some((Found { script: self, piece }, piece.unread?)))
    }

    pub(super) fn statements(&self) -> impl Iterator<Item = Found<'_>> {
        let pieces = self.statements.iter().filter(|piece| piece.unread.is_none());
        pieces.map(|piece| Found { script: self, piece })
    }

    /// The place of a byte offset.
    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
        }
    }
}

/// A statement of a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'s> {
    script: &'s Script,
    piece: &'s Piece,
}

impl<'s> Found<'s> {
    /// Its text, without the semicolon.
    pub(super) fn text(&self) -> &'s str {
        self.script.text.get(self.piece.start..self.piece.end).unwrap_or("")
    }

    /// The script that contains it.
    pub(super) fn file(&self) -> &'s str {
        &self.script.name
    }

    /// Its first place.
    pub(super) fn place(&self) -> Place {
        self.script.place(self.piece.start)
    }

    /// The place of a line and a column (from 0) inside the statement, as the grammar's errors give them.
    pub(super) fn inner(&self, line: usize, column: usize) -> Place {
        let start = self.place();
        match line {
            0 => start,
            1 => Place {
                line: start.line,
                column: start.column + column,
            },
            _ => Place {
                line: start.line + line - 1,
                column: column + 1,
            },
        }
    }

    /// The place where a name first occurs after the word number `from`; the statement's start if it does not occur.
    fn name_from(&self, from: usize, name: &str) -> Place {
        let mut words = self.piece.words.iter().skip(from);
        let found = words.find(|word| word.text == name);
        found.map_or_else(|| self.place(), |word| self.script.place(word.at))
    }

    /// The place where a name first occurs after a keyword.
    pub(super) fn name_after(&self, keyword: &str, name: &str) -> Place {
        let from = self
            .piece
            .words
            .iter()
            .position(|word| !word.quoted && word.text == keyword);
        self.name_from(from.map_or(0, |from| from + 1), name)
    }

    /// The length in characters of the word at a place; 1 if there is none.
    pub(super) fn width(&self, place: Place) -> usize {
        let mut words = self.piece.words.iter();
        let found = words.find(|word| self.script.place(word.at) == place);
        let text = found.and_then(|word| self.script.text.get(word.at..word.at + word.len));
        text.map_or(1, |text| text.chars().count())
    }
}

struct Cutter<'t> {
    text: &'t str,
    at: usize,
    accepts: Vec<Accept>,
}

impl Cutter<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Advances past the next `end`, or to the end of the text.
    fn behind(&mut self, from: usize, end: &str) {
        let rest = self.text.get(from..).unwrap_or("");
        self.at = rest.find(end).map_or(self.text.len(), |found| from + found + end.len());
    }

    /// Skips a comment; returns whether there was one.
    fn comment(&mut self) -> bool {
        let began = self.at;
        match (self.byte(0), self.byte(1)) {
            (Some(b'-'), Some(b'-')) | (Some(b'/'), Some(b'/')) => self.behind(self.at, "\n"),
            (Some(b'/'), Some(b'*')) => self.behind(self.at + 2, "*/"),
            _ => return false,
        }
        let words = self.text.get(began + 2..self.at).unwrap_or("");
        let words = words.trim_end_matches("*/").trim();
        if let Some(said) = words.strip_prefix(ADDRESS) {
            let mut said = said.split_whitespace();
            let verb = said.next().unwrap_or_default().to_owned();
            // Rules separated by commas; the reason follows.
            let mut rules = Vec::new();
            for word in said {
                rules.push(word.trim_end_matches(',').to_owned());
                if !word.ends_with(',') {
                    break;
                }
            }
            self.accepts.push(Accept {
                at: began,
                end: self.at,
                verb,
                rules,
            });
        }
        true
    }

    /// Skips a quotation. A doubled quote ends it and starts another one at once, which has the same effect.
    fn quotation(&mut self, quote: u8) {
        let end = if quote == b'\'' { "'" } else { "\"" };
        self.behind(self.at + 1, end);
        while self.byte(0) == Some(quote) {
            self.behind(self.at + 1, end);
        }
    }

    fn word(&mut self) -> Word {
        let start = self.at;
        while self
            .byte(0)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            self.at += 1;
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        Word {
            text: text.to_ascii_lowercase(),
            at: start,
            len: self.at - start,
            quoted: false,
        }
    }

    fn statement(&mut self) -> Option<Piece> {
        let mut words: Vec<Word> = Vec::new();
        let mut start = None;
        let mut end = self.at;
        loop {
            let Some(byte) = self.byte(0) else {
                return start.map(|start| Piece::new(start, end, words));
            };
            if byte.is_ascii_whitespace() {
                self.at += 1;
                continue;
            }
            if self.comment() {
                continue;
            }
            if byte == b';' {
                let batch = words.first().is_some_and(|word| word.text == "begin");
                let applied = words.iter().any(|word| !word.quoted && word.text == "apply");
                self.at += 1;
                match start {
                    None => continue,
                    Some(_) if batch && !applied => continue,
                    Some(start) => return Some(Piece::new(start, end, words)),
                }
            }
            let began = self.at;
            match byte {
                b'\'' => self.quotation(byte),
                b'"' => {
                    self.quotation(byte);
                    let inside = self.text.get(began + 1..self.at.saturating_sub(1)).unwrap_or("");
                    words.push(Word {
                        text: inside.replace("\"\"", "\""),
                        at: began,
                        len: self.at - began,
                        quoted: true,
                    });
                }
                b'$' if self.byte(1) == Some(b'$') => self.behind(self.at + 2, "$$"),
                b if b.is_ascii_alphanumeric() || b == b'_' => {
                    let word = self.word();
                    if start.is_none() && CQLSH.contains(&word.text.as_str()) {
                        self.behind(self.at, "\n");
                        continue;
                    }
                    // A command ends with its line, and excludes a semicolon at the end.
                    if start.is_none() && word.text == "source" {
                        self.behind(self.at, "\n");
                        let line = self.text.get(began..self.at).unwrap_or("");
                        let end = began + line.trim_end().trim_end_matches(';').len();
                        return Some(Piece::new(began, end, vec![word]));
                    }
                    words.push(word);
                }
                _ => {
                    self.at += self
                        .text
                        .get(self.at..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(1, char::len_utf8)
                }
            }
            start.get_or_insert(began);
            end = self.at;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statements_end_at_semicolons_that_count() {
        let script = Script::new(
            "s",
            "-- a; b\nUSE k;;\nCONSISTENCY QUORUM;\n INSERT INTO t (a) VALUES ('x;''y');/* ; */\nBEGIN BATCH UPDATE t SET a = 1; \
             DELETE FROM t APPLY BATCH;\nSELECT $$;$$, \"A;\" FROM t // end",
        );
        let texts: Vec<&str> = script.statements().map(|found| found.text()).collect();
        assert_eq!(
            texts,
            [
                "USE k",
                "INSERT INTO t (a) VALUES ('x;''y')",
                "BEGIN BATCH UPDATE t SET a = 1; DELETE FROM t APPLY BATCH",
                "SELECT $$;$$, \"A;\" FROM t",
            ]
        );
        let places: Vec<Place> = script.statements().map(|found| found.place()).collect();
        let at = |line, column| Place { line, column };
        assert_eq!(places, [at(2, 1), at(4, 2), at(5, 1), at(6, 1)]);
    }

    #[test]
    fn names_have_places() {
        let script = Script::new(
            "s",
            "\nCREATE TABLE \"Ä\".t (\n  id int,\n  \"Type\" text, PRIMARY KEY (id))",
        );
        let found = script.statements().next().unwrap();
        assert_eq!(found.name_from(0, "t"), Place { line: 2, column: 18 });
        assert_eq!(found.name_from(0, "Type"), Place { line: 4, column: 3 });
        assert_eq!(found.width(found.name_from(0, "Type")), 6);
        assert_eq!(found.name_after("primary", "id"), Place { line: 4, column: 29 });
    }

    #[test]
    fn commands_that_make_tables_or_rows_are_told() {
        let text = "TRACING ON\nUSE k;\nSOURCE 'tables.cql'\nCOPY t (a,\n b) FROM ';x.csv'; SELECT copy FROM source; source 'y';\nUSE l";
        let script = Script::new("s", text);
        let told: Vec<(usize, Unread)> = script
            .all_unread()
            .map(|(found, unread)| (found.place().line, unread))
            .collect();
        assert_eq!(told, [(3, Unread::Source), (4, Unread::Copy), (5, Unread::Source)]);
        assert_eq!(script.unread(), Some((3, Unread::Source)));
        let texts: Vec<(usize, &str)> = script.texts().collect();
        assert_eq!(texts, [(2, "USE k"), (5, "SELECT copy FROM source"), (6, "USE l")]);
        assert_eq!(Script::new("s", "PAGING OFF;\nEXPAND ON\nUSE k;").unread(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_cut(text in "[ -~ä\n;'\"$/*-]{0,80}") {
            for found in Script::new("s", &text).statements() {
                prop_assert!(!found.text().is_empty());
                prop_assert!(found.place().line >= 1);
            }
        }
    }
}
