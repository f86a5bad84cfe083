//! The token of the server's record, which a client of an address sends, and the refusal of a request without it.

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::{Shared, answer};

const PLAIN: &str = "text/plain; charset=utf-8";

/// A refusal in one line of text.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response {
    answer(status, PLAIN, format!("{why}\n"))
}

/// Where a client finds the token.
pub(super) fn where_the_token_is(shared: &Shared) -> &'static str {
    if shared.source.is_in_memory {
        "the token is in the record of --ready-json FILE, or what --admin-token sets"
    } else {
        "the token is in the file helenus.server of the data directory, in the record of --ready-json, or what --admin-token sets"
    }
}

/// Whether a request has the token.
pub(super) fn has_token(shared: &Shared, request: &Request) -> bool {
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    given.is_some_and(|given| is_equal(given, shared.source.token.as_bytes()))
}

/// Whether two texts are equal, in a time that does not reveal where they differ.
fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (a, b)| all | (a ^ b));
    left.len() == right.len() && differences == 0
}
