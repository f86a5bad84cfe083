//! Statements as the audit log and traces show them: without passwords and hashes of them.
//!
//! A statement about a role shows everything but its literals, so that a reader sees which role was changed and how. If
//! it is no statement, nothing after the role's name is shown, since a mistyped option may have a password anywhere. A
//! statement on `system_auth.roles` shows no literal. Comments are left out of statements that have something to hide.

use helenus_cql::cql::is_statement;

/// What is shown in place of a secret.
const HIDDEN: &str = "*******";

/// The words before passwords and their hashes.
const SECRETS: [&str; 2] = ["password", HASH];
const HASH: &str = "salted_hash";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Comment,
    /// `'…'` or `$$…$$`.
    Literal,
    /// A name, in quotes or not.
    Name,
    Space,
    Other,
}

/// The text of a statement about roles or their table without its literals. `None` means that it is another statement.
pub(super) fn of_roles(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("role") && !lower.contains("user") {
        return None;
    }
    let pieces = pieces(text);
    let mut words = pieces
        .iter()
        .filter(|(kind, _)| !matches!(kind, Kind::Comment | Kind::Space));
    let mut next_is = |known: &[&str]| words.next().is_some_and(|(_, word)| is_one(word, known));
    if next_is(&["create", "alter"]) && next_is(&["role", "user"]) {
        return Some(of_role(text, &pieces));
    }
    is_of_table(&pieces).then(|| {
        pieces
            .iter()
            .map(|(kind, piece)| without_literal(*kind, piece))
            .collect()
    })
}

/// A text as a trace shows it. `None` means that it has no secret. A column of a user's table may be named `password`:
/// a whole statement that names no hash is shown.
pub(super) fn in_trace(text: &str) -> Option<String> {
    if let Some(shown) = of_roles(text) {
        return Some(shown);
    }
    let shown = up_to_secret(text)?;
    let has_hash = text.to_ascii_lowercase().contains(HASH);
    (has_hash || !is_statement(text)).then(|| format!("{shown} {HIDDEN}"))
}

/// A text without its comments.
pub(super) fn without_comments(text: &str) -> String {
    let kept = pieces(text).into_iter().filter(|(kind, _)| *kind != Kind::Comment);
    kept.map(|(_, piece)| piece).collect()
}

/// A text up to the first word before a secret. `None` means that there is no such word.
pub(super) fn up_to_secret(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let ends = SECRETS.iter().filter_map(|word| Some(lower.find(word)? + word.len()));
    text.get(..ends.min()?)
}

/// A statement that creates or alters a role.
fn of_role(text: &str, pieces: &[(Kind, &str)]) -> String {
    let is_whole = is_statement(text);
    let mut shown = String::new();
    let mut is_past_name = false;
    for (place, (kind, piece)) in pieces
        .iter()
        .filter(|(kind, _)| *kind != Kind::Comment)
        .scan(0, |place, piece| {
            *place += usize::from(piece.0 != Kind::Space);
            Some((*place, piece))
        })
    {
        // The name comes after two words, or after those of IF NOT EXISTS.
        let is_of_condition = place > 2 && is_one(piece, &["if", "not", "exists"]);
        if place <= 2 || is_past_name && is_whole && *kind != Kind::Literal || *kind == Kind::Space && is_whole {
            shown.push_str(piece);
        } else if !is_past_name {
            shown.push_str(piece);
            is_past_name = !is_of_condition && *kind != Kind::Space;
        } else if is_whole {
            shown.push_str(&without_literal(*kind, piece));
        } else {
            shown.push_str(&format!(" {HIDDEN}"));
            return shown;
        }
    }
    shown
}

/// Whether a statement names the table of roles, with its keyspace or alone.
fn is_of_table(pieces: &[(Kind, &str)]) -> bool {
    let words: Vec<&str> = pieces
        .iter()
        .filter(|(kind, _)| !matches!(kind, Kind::Comment | Kind::Space))
        .map(|(_, piece)| piece.trim_matches('"'))
        .collect();
    let is_table = |at: usize| match at.checked_sub(2).and_then(|from| words.get(from..at)) {
        Some([keyspace, "."]) => is_one(keyspace, &["system_auth"]),
        _ => true,
    };
    (0..words.len()).any(|at| words.get(at).is_some_and(|word| is_one(word, &["roles"])) && is_table(at))
}

fn without_literal(kind: Kind, piece: &str) -> String {
    match kind {
        Kind::Literal => format!("'{HIDDEN}'"),
        Kind::Comment => String::new(),
        Kind::Name | Kind::Space | Kind::Other => piece.to_owned(),
    }
}

fn is_one(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The pieces of a text. A literal, a quoted name or a comment without an end reaches to the end of the text.
fn pieces(text: &str) -> Vec<(Kind, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = match first {
            '\'' => (Kind::Literal, quoted(rest, '\'')),
            '"' => (Kind::Name, quoted(rest, '"')),
            '$' if rest.starts_with("$$") => (Kind::Literal, up_to(rest, 2, "$$")),
            '/' if rest.starts_with("/*") => (Kind::Comment, up_to(rest, 2, "*/")),
            '-' if rest.starts_with("--") => (Kind::Comment, up_to(rest, 2, "\n")),
            '/' if rest.starts_with("//") => (Kind::Comment, up_to(rest, 2, "\n")),
            space if space.is_whitespace() => (Kind::Space, run(rest, char::is_whitespace)),
            name if is_of_name(name) => (Kind::Name, run(rest, is_of_name)),
            other => (Kind::Other, other.len_utf8()),
        };
        let Some((piece, after)) = rest.split_at_checked(length) else {
            break;
        };
        pieces.push((kind, piece));
        rest = after;
    }
    pieces
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn run(text: &str, is_of: fn(char) -> bool) -> usize {
    text.find(|character| !is_of(character)).unwrap_or(text.len())
}

/// The bytes up to the end of an end mark that is not among the first `from`.
fn up_to(text: &str, from: usize, end: &str) -> usize {
    let found = text.get(from..).and_then(|after| after.find(end));
    found.map_or(text.len(), |at| from + at + end.len())
}

/// The bytes of a text in quotes; two quotes stand for one of them.
fn quoted(text: &str, quote: char) -> usize {
    let mut quotes = text
        .char_indices()
        .filter(|(_, character)| *character == quote)
        .peekable();
    quotes.next();
    while let Some((at, _)) = quotes.next() {
        if quotes.next_if(|(next, _)| *next == at + 1).is_none() {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_shown_and_their_secrets_are_not() {
        for (text, shown) in [
            (
                "CREATE ROLE a WITH PASSWORD = 'S''S' AND LOGIN = true",
                "CREATE ROLE a WITH PASSWORD = '*******' AND LOGIN = true",
            ),
            (
                "/* password */ alter ROLE /*x*/ bob /* password */ WITH SUPERUSER = true",
                " alter ROLE  bob  WITH SUPERUSER = true",
            ),
            (
                "CREATE USER IF NOT EXISTS 'b' WITH PASSWORD $$S$$",
                "CREATE USER IF NOT EXISTS 'b' WITH PASSWORD '*******'",
            ),
            ("ALTER ROLE x WITH PASS WORD='SECRET'", "ALTER ROLE x *******"),
            ("ALTER ROLE x WITH PASSWORD = SECRET", "ALTER ROLE x *******"),
            ("CREATE ROLE a WITH PASSWORD = 'SECRET", "CREATE ROLE a *******"),
            (
                r#"INSERT INTO system_auth.roles JSON '{"salted\u005fhash": "SECRET"}'"#,
                "INSERT INTO system_auth.roles JSON '*******'",
            ),
            (
                "UPDATE \"system_auth\" . \"roles\" SET \"salted_hash\" = 'S' WHERE role = 'S",
                "UPDATE \"system_auth\" . \"roles\" SET \"salted_hash\" = '*******' WHERE role = '*******'",
            ),
            (
                "select * from Roles where salted_hash = $$S",
                "select * from Roles where salted_hash = '*******'",
            ),
        ] {
            assert_eq!(of_roles(text).as_deref(), Some(shown), "{text}");
        }
        for text in [
            "SELECT * FROM app.roles WHERE k = 'a'",
            "DROP ROLE a",
            "SELECT 'create role' FROM t",
        ] {
            assert_eq!(of_roles(text), None, "{text}");
        }
        assert_eq!(without_comments("a -- b\nc // d\n'--' /* e"), "a c '--' ");
    }
}
