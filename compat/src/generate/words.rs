//! A statement's text cut into words: what is broken on purpose and what is left out when shrinking is whole words.

/// The words and the blanks between them, in order; together they are the text.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '\'' | '"' => quoted(rest, first),
            c if c.is_whitespace() => run(rest, char::is_whitespace),
            c if c.is_alphanumeric() || c == '_' || c == '.' => {
                run(rest, |c| c.is_alphanumeric() || c == '_' || c == '.' || c == '-')
            }
            '-' if rest.chars().nth(1).is_some_and(char::is_alphanumeric) => {
                1 + run(rest.get(1..).unwrap_or_default(), |c| {
                    c.is_alphanumeric() || c == '.' || c == '-'
                })
            }
            '<' | '>' | '!' | '+' | '-' if rest.chars().nth(1) == Some('=') => 2,
            c => c.len_utf8(),
        };
        let (part, after) = rest.split_at(len.min(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}

fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c| !of(c)).unwrap_or(text.len())
}

/// Length of a quoted word; a doubled quote within does not end it.
fn quoted(text: &str, quote: char) -> usize {
    let mut inside = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            continue;
        }
        if !inside {
            inside = true;
        } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
            chars.next();
        } else {
            return at + 1;
        }
    }
    text.len()
}

/// Whether a part is blanks.
pub(super) fn is_blank(part: &str) -> bool {
    part.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_nothing() {
        for text in [
            "SELECT a, 'it''s', \"Q\" FROM t WHERE b >= -1.5e-3 AND c = 0xff",
            "l = l - [1]",
            "'open",
            "é 50554d6e-29bb-11e5-b345-feff819cdc9f",
        ] {
            assert_eq!(split(text).concat(), text);
        }
        assert_eq!(split("a >= ?"), ["a", " ", ">=", " ", "?"]);
    }
}
