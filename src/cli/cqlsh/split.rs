//! Splits a script into the pieces that cqlsh executes one by one: statements, and commands of its own that end with
//! their line.

/// Commands that need no semicolon (`my_commands_ending_with_newline` of cqlsh 6.2).
const OF_ONE_LINE: &[&str] = &[
    "capture",
    "clear",
    "cls",
    "consistency",
    "debug",
    "desc",
    "describe",
    "exit",
    "expand",
    "help",
    "history",
    "login",
    "paging",
    "quit",
    "serial",
    "show",
    "source",
    "tracing",
    "unicode",
];

/// A statement or a command of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its text, without the terminator.
    pub(super) text: String,
    /// Lines read when the piece was complete, plus one, as cqlsh counts them.
    pub(super) line: usize,
    /// Whether the piece is terminated; the last of a script may not be.
    pub(super) is_whole: bool,
}

/// The first words needed to recognize a command or a batch; more are not kept.
const WORDS_MAX: usize = 3;

/// The text between two terminators.
#[derive(Default)]
struct Current {
    text: String,
    /// Its first words, and its last two, in lower case: they show a one-line command, and the end of a batch.
    first: Vec<String>,
    last: [String; 2],
    word: String,
}

impl Current {
    fn push(&mut self, c: char) {
        if c.is_alphanumeric() || c == '_' {
            self.word.extend(c.to_lowercase());
        } else {
            self.end_word();
        }
        self.text.push(c);
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if self.first.len() < WORDS_MAX {
            self.first.push(word.clone());
        }
        let [_, before] = std::mem::take(&mut self.last);
        self.last = [before, word];
    }

    fn ends_with_line(&mut self) -> bool {
        self.end_word();
        self.first
            .first()
            .is_some_and(|word| OF_ONE_LINE.contains(&word.as_str()))
    }

    /// A batch continues after the semicolons inside it.
    fn ends_with_semicolon(&mut self) -> bool {
        self.end_word();
        let is_batch = self.first.first().is_some_and(|word| word == "begin");
        !is_batch || self.last == ["apply", "batch"]
    }
}

/// The pieces of a script, in order. Comments are left out.
pub(super) fn pieces(script: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut current = Current::default();
    // As cqlsh counts: one, plus one for each line read.
    let mut line = 2;
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let length = unbroken(rest);
        let (token, after) = rest.split_at(length.unwrap_or(c.len_utf8()));
        rest = after;
        if length.is_some() {
            line += token.matches('\n').count();
            current.end_word();
            if is_comment(token) {
                current.push(' ');
            } else {
                current.text.push_str(token);
            }
            continue;
        }
        let is_end = match c {
            ';' => current.ends_with_semicolon(),
            '\n' => current.ends_with_line(),
            _ => false,
        };
        if is_end {
            let done = std::mem::take(&mut current);
            add(&mut pieces, &done.text, line, true);
        } else {
            current.push(c);
        }
        line += usize::from(c == '\n');
    }
    let is_whole = current.ends_with_line();
    add(&mut pieces, &current.text, line, is_whole);
    pieces
}

fn add(pieces: &mut Vec<Piece>, text: &str, line: usize, is_whole: bool) {
    let text = text.trim().to_owned();
    if !text.is_empty() {
        pieces.push(Piece { text, line, is_whole });
    }
}

fn is_comment(token: &str) -> bool {
    ["--", "//", "/*"].iter().any(|start| token.starts_with(start))
}

/// The length of a literal, a quoted name or a comment at the front, inside which terminators do not count. An unclosed
/// one takes the rest. `None` means that there is none.
fn unbroken(text: &str) -> Option<usize> {
    let until = |start: usize, end: &str| {
        let found = text.get(start..).and_then(|rest| rest.find(end));
        found.map_or(text.len(), |place| start + place + end.len())
    };
    if text.starts_with('\'') {
        Some(until(1, "'"))
    } else if text.starts_with('"') {
        Some(until(1, "\""))
    } else if text.starts_with("$$") {
        Some(until(2, "$$"))
    } else if text.starts_with("/*") {
        Some(until(2, "*/"))
    } else if text.starts_with("--") || text.starts_with("//") {
        Some(text.find('\n').unwrap_or(text.len()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_outside_of_literals_comments_and_batches() {
        let script = "SELECT ';' FROM a; -- not; here\nEXPAND ON\n/* nor; here */ INSERT INTO \"x;y\" (k)\nVALUES (1) ;BEGIN BATCH\n\
                      INSERT INTO a (k) VALUES (1);\nAPPLY BATCH;\nCREATE FUNCTION f $$ a; b $$;\nSELECT 1";
        let told: Vec<(String, usize, bool)> = pieces(script)
            .into_iter()
            .map(|piece| (piece.text, piece.line, piece.is_whole))
            .collect();
        let wanted = [
            ("SELECT ';' FROM a", 2, true),
            ("EXPAND ON", 3, true),
            ("INSERT INTO \"x;y\" (k)\nVALUES (1)", 5, true),
            ("BEGIN BATCH\nINSERT INTO a (k) VALUES (1);\nAPPLY BATCH", 7, true),
            ("CREATE FUNCTION f $$ a; b $$", 8, true),
            ("SELECT 1", 9, false),
        ];
        assert_eq!(told, wanted.map(|(text, line, whole)| (text.to_owned(), line, whole)));
    }
}
