//! Permission for changes through the admin port. Allowed are: a client of the socket in the data directory; and, on an
//! address of this machine, a superuser, or a client with the token of the server's record. A page in a browser is
//! always refused.
//!
//! A page in a browser can send requests to this port too. But it can send neither headers of its own nor DELETE,
//! unless the answer to a preflight request (OPTIONS) allows them, and no answer does. Requests that name a page as
//! their origin are refused as well.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::logins::{Role, Superuser};
use super::{BySocket, Shared, answer};

const PLAIN: &str = "text/plain; charset=utf-8";

/// Bytes of a body that requests a change of the clock or a reset.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// The answer that refuses a request. Boxed, because most requests are not refused.
pub(super) type Refusal = Box<Response>;

/// A refusal in one line of text.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response {
    answer(status, PLAIN, format!("{why}\n"))
}

/// The refusal of a request that may not change anything. `None` means it may.
pub(super) fn guard(shared: &Shared, request: &Request) -> Option<Response> {
    let by_socket = request.extensions().get::<BySocket>().is_some();
    if !shared.own_hosts_only && !by_socket {
        let why = "Changes need an admin port on an address of this machine's own";
        return Some(refuse(StatusCode::FORBIDDEN, why));
    }
    if request.headers().contains_key(header::ORIGIN) {
        return Some(refuse(StatusCode::FORBIDDEN, "Not for pages of a browser"));
    }
    if by_socket || request.extensions().get::<Superuser>().is_some() || has_token(shared, request) {
        return None;
    }
    if request.extensions().get::<Role>().is_some() {
        return Some(refuse(StatusCode::FORBIDDEN, "Changes need a superuser"));
    }
    let why = format!(
        "Changes need the header `Authorization: Bearer TOKEN`; {}",
        where_the_token_is(shared)
    );
    Some(refuse(StatusCode::UNAUTHORIZED, &why))
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

/// A small JSON body; an empty one is `{}`.
pub(super) async fn body<T: serde::de::DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let Ok(body) = to_bytes(request.into_body(), BODY_BYTES_MAX).await else {
        return Err(Box::new(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "The body has at most 4 KiB",
        )));
    };
    let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(text).map_err(|error| Box::new(refuse(StatusCode::BAD_REQUEST, &error.to_string())))
}
