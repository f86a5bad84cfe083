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
use super::token::{has_token, refuse, where_the_token_is};
use super::{BySocket, Shared};

/// Bytes of a body that requests a change of the clock or a reset.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// The answer that refuses a request. Boxed, because most requests are not refused.
pub(super) type Refusal = Box<Response>;

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
