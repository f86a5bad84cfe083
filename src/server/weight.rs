//! Memory for a request while it is parsed and carried out: a plan takes far more of it than its text.
//!
//! Estimated by what the request has most of, with factors measured on batches of small INSERTs (170 to 210 bytes of plan and
//! changes for each word or sign of the text). Only requests of at least [`WEIGHED_BYTES_MIN`] that weigh
//! [`UNCOUNTED_BYTES_MAX`] or more take from the pool; so usual requests pay nothing for it.

use helenus_types::wire::request::{Batch, Request, Subject};

/// Length of a body from which on it is weighed. A shorter one cannot weigh [`UNCOUNTED_BYTES_MAX`].
const WEIGHED_BYTES_MIN: usize = 1024;

/// Weight from which on a request takes from the pool.
const UNCOUNTED_BYTES_MAX: usize = 256 * 1024;

/// The pool, as a part of the memory of connections that is added to it. A request that weighs more than the whole pool runs alone.
pub(super) const POOL_PART: usize = 4;

/// Bytes for each word, number, literal or sign of a text.
const TOKEN_BYTES: usize = 224;

/// Bytes for each prepared statement of a batch, besides its values.
const MEMBER_BYTES: usize = 3 * 1024;

/// Bytes for each byte of bound values.
const VALUE_FACTOR: usize = 4;

/// Bytes that a request should take from the pool. `None` means that it takes none.
pub(super) fn counted(request: &Request<'_>, body_bytes: usize) -> Option<usize> {
    if body_bytes < WEIGHED_BYTES_MIN {
        return None;
    }
    let weight = match request {
        Request::Query(query) => of_text(query.text) + VALUE_FACTOR * (body_bytes - query.text.len().min(body_bytes)),
        Request::Prepare(prepare) => of_text(prepare.text),
        Request::Execute(_) => VALUE_FACTOR * body_bytes,
        Request::Batch(batch) => of_batch(batch, body_bytes),
        Request::Startup(_) | Request::AuthResponse(_) | Request::Options | Request::Register(_) => 0,
    };
    (weight >= UNCOUNTED_BYTES_MAX).then_some(weight)
}

fn of_batch(batch: &Batch<'_>, body_bytes: usize) -> usize {
    let members = batch.statements.iter().map(|member| match member.subject {
        Subject::Text(text) => of_text(text),
        Subject::Prepared(_) => MEMBER_BYTES,
    });
    members.sum::<usize>() + VALUE_FACTOR * body_bytes
}

fn of_text(text: &str) -> usize {
    text.len() + TOKEN_BYTES * tokens(text)
}

/// About how many words, numbers, literals and signs a text has. A comment counts like CQL.
fn tokens(text: &str) -> usize {
    let (mut count, mut in_literal, mut in_word) = (0, false, false);
    for byte in text.bytes() {
        if byte == b'\'' {
            count += usize::from(!in_literal);
            in_literal = !in_literal;
        } else if !in_literal {
            let is_of_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
            count += usize::from((is_of_word && !in_word) || (!is_of_word && !byte.is_ascii_whitespace()));
            in_word = is_of_word;
            continue;
        }
        in_word = false;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_literals_and_signs_are_counted() {
        for (text, count) in [
            ("", 0),
            ("SELECT v FROM ks.t", 6),
            ("INSERT INTO k.t(p,c,v) VALUES(1,j,'z')", 20),
            ("a='x, y; z' AND b=-12", 8),
            ("'it''s'", 2),
        ] {
            assert_eq!(tokens(text), count, "{text}");
        }
    }

    #[test]
    fn a_long_literal_weighs_little_more_than_itself_and_a_list_far_more() {
        let literal = format!("INSERT INTO t (k, v) VALUES (1, '{}')", "a b, ".repeat(20_000));
        assert!(of_text(&literal) < literal.len() + 20 * TOKEN_BYTES);
        let list = format!("SELECT v FROM t WHERE k IN ({})", vec!["1"; 20_000].join(","));
        assert!(of_text(&list) > 100 * list.len());
    }
}
