//! The shape of a statement: its text with `?` in place of constants, for logs that must not contain values.

/// Maximum length of a shape, in bytes.
const SHAPE_BYTES_MAX: usize = 2048;

/// A CQL text with `?` in place of each constant, without comments, and with single spaces. Names stay, including
/// quoted ones. Text that cannot be tokenised (an unterminated string) counts as one constant. At most 2048 bytes, cut
/// off with `…`.
pub(super) fn shape(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(SHAPE_BYTES_MAX + 4));
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if out.len() > SHAPE_BYTES_MAX {
            let cut = (0..=SHAPE_BYTES_MAX).rev().find(|at| out.is_char_boundary(*at));
            out.truncate(cut.unwrap_or(0));
            out.push('…');
            break;
        }
        let length = token_bytes(rest, first);
        let (token, behind) = rest.split_at(length);
        rest = behind;
        match first {
            _ if first.is_whitespace() || is_comment(token) => {
                if !out.ends_with(' ') && !out.is_empty() {
                    out.push(' ');
                }
            }
            '\'' | '$' if token.len() > 1 => out.push('?'),
            _ if is_constant(token) => {
                // The sign belongs to the number, but a minus between two may be either.
                out.push('?');
            }
            _ => out.push_str(token),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn is_comment(token: &str) -> bool {
    token.len() > 1 && (token.starts_with("--") || token.starts_with("//") || token.starts_with("/*"))
}

/// Whether a run of letters and digits is a number, a blob, a uuid, a duration, or a constant with a name.
fn is_constant(token: &str) -> bool {
    let digits_first = token.starts_with(|first: char| first.is_ascii_digit());
    let named = ["true", "false", "nan", "infinity"];
    digits_first || is_uuid(token) || named.iter().any(|name| token.eq_ignore_ascii_case(name))
}

fn is_uuid(token: &str) -> bool {
    let mut lengths = token.split('-').map(str::len);
    let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hex && [8, 4, 4, 4, 12].iter().all(|length| lengths.next() == Some(*length)) && lengths.next().is_none()
}

/// Bytes of the first token of a text.
fn token_bytes(text: &str, first: char) -> usize {
    let bytes = text.as_bytes();
    let to = |end: &str, from: usize| {
        let behind = text.get(from..).unwrap_or_default();
        behind.find(end).map_or(text.len(), |at| from + at + end.len())
    };
    let word = |length: usize| {
        let more = text.get(length..).unwrap_or_default();
        length
            + more
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(more.len())
    };
    match first {
        '\'' | '"' => quoted_bytes(text, first),
        '$' if text.starts_with("$$") => to("$$", 2),
        '-' if text.starts_with("--") => to("\n", 2),
        '/' if text.starts_with("//") => to("\n", 2),
        '/' if text.starts_with("/*") => to("*/", 2),
        _ if first.is_ascii_digit() || first.is_ascii_hexdigit() => {
            if text.get(..36).is_some_and(is_uuid) {
                return 36;
            }
            if !first.is_ascii_digit() {
                return word(first.len_utf8());
            }
            // 1.5e-3, 12h30m, 0xCAFE; but not the range of 1..2.
            let mut end = word(1);
            if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                end = word(end + 1);
            }
            let signed = matches!(bytes.get(end), Some(b'-' | b'+')) && !text.starts_with("0x");
            let exponent = bytes
                .get(end.saturating_sub(1))
                .is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e'));
            if signed && exponent {
                end = word(end + 1);
            }
            end
        }
        _ if first.is_alphabetic() || first == '_' => word(first.len_utf8()),
        _ => first.len_utf8(),
    }
}

/// Bytes of a quoted token; a quote in it is doubled.
fn quoted_bytes(text: &str, quote: char) -> usize {
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, found)) = rest.next() {
        if found == quote && rest.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_left_out() {
        for (text, expected) in [
            (
                "SELECT a, \"B c\"  FROM ks.t1 WHERE k = 12 AND c='it''s' -- why\n LIMIT 10",
                "SELECT a, \"B c\" FROM ks.t1 WHERE k = ? AND c=? LIMIT ?",
            ),
            (
                "INSERT INTO t (a1) VALUES (-1.5e-3, 0xCAFE, true, {'a': $$b$$}, 1h30m, null)",
                "INSERT INTO t (a1) VALUES (-?, ?, ?, {?: ?}, ?, null)",
            ),
            (
                "UPDATE t SET v = ? WHERE k = 5b6962dd-3f90-4c93-8f61-eabfa4a803e2 /* x */ IF v = abcdef01-3f90-4c93-8f61-eabfa4a803e2",
                "UPDATE t SET v = ? WHERE k = ? IF v = ?",
            ),
            ("SELECT v FROM t WHERE s = 'no end", "SELECT v FROM t WHERE s = ?"),
            ("SELECT deadbeef, e FROM face", "SELECT deadbeef, e FROM face"),
            ("", ""),
        ] {
            assert_eq!(shape(text), expected);
        }
        let long = shape(&"name, ".repeat(10_000));
        assert!(long.len() <= SHAPE_BYTES_MAX + 3 && long.ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_text_has_a_shape(text in "\\PC*|[-'\"$/*0-9a-f.e ?é]*") {
            prop_assert!(shape(&text).len() <= SHAPE_BYTES_MAX.min(text.len()) + '…'.len_utf8());
        }
    }
}
