//! The parameters after a class in a type's name. Cassandra reads them after every class, and ignores those of a class that takes none:
//! `Int32Type(a=b, c)` is `Int32Type`. `TypeParser.getKeyValueParameters` is the source.

/// Where parameters stop being parameters.
pub(super) struct Fault<'a> {
    /// What is left of the text there.
    pub(super) rest: &'a str,
    /// In Cassandra's words.
    pub(super) what: String,
}

/// Whether a character may stand in a class's name.
pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_' | '&')
}

/// What follows the parameters, of which there may be none.
pub(super) fn skip(text: &str) -> Result<&str, Fault<'_>> {
    let Some(mut rest) = text.trim_start().strip_prefix('(') else {
        return Ok(text);
    };
    loop {
        rest = blanks_and_comma(rest);
        if let Some(after) = rest.strip_prefix(')') {
            return Ok(after);
        }
        if rest.is_empty() {
            return Err(end(rest));
        }
        rest = name(rest).trim_start();
        match rest.chars().next() {
            Some('=') => rest = name(rest.strip_prefix('=').unwrap_or_default().trim_start()),
            Some(',' | ')') => {}
            Some(other) => {
                return Err(Fault {
                    rest,
                    what: format!("unexpected character '{other}'"),
                });
            }
            // Differs: Cassandra reports an exception of Java here.
            None => return Err(end(rest)),
        }
    }
}

fn end(rest: &str) -> Fault<'_> {
    Fault {
        rest,
        what: "unexpected end of string".to_owned(),
    }
}

fn name(text: &str) -> &str {
    text.trim_start_matches(is_of_name)
}

/// Skips blanks, and one comma among them.
fn blanks_and_comma(text: &str) -> &str {
    let rest = text.trim_start();
    rest.strip_prefix(',').map_or(rest, str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_end_where_cassandra_ends_them() {
        for (text, rest) in [
            ("", ""),
            ("x", "x"),
            ("()", ""),
            (" ( a=b ,c,,d= ) x", " x"),
            ("(=)", ""),
            ("(a=b c)", ""),
        ] {
            assert_eq!(skip(text).ok(), Some(rest), "{text}");
        }
        for (text, rest) in [("(", ""), ("(a=", ""), ("(a b)", "b)"), ("((", "("), ("(,", "")] {
            assert_eq!(skip(text).err().map(|fault| fault.rest), Some(rest), "{text}");
        }
    }
}
