//! Access to the admin port of a server whose clients log in as roles.
//!
//! | what | who |
//! | --- | --- |
//! | `/livez`, `/readyz` | every client: they reveal nothing of the data |
//! | reading | a role with SELECT ON ALL KEYSPACES, or the token |
//! | rows | a role with SELECT on their table, or the token |
//! | changing | a superuser, or the token, in addition to the rules of `changes` |
//! | all, by the socket in the data directory | every user whom the file system lets connect |
//!
//! A role logs in with `Authorization: Basic`, through the same [`Authenticator`] as at the native port: the same
//! delays for guesses, the same limit of two hashes at once, and a correct password is remembered until the role
//! changes. At most [`LOGINS_MAX`] wait for their answer at once, so that guesses leave connections for probes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::token::{has_token, refuse, where_the_token_is};
use super::{BySocket, Shared};
use crate::server::auth::{Authenticator, Decision, LoginError};
use helenus_cql::cql::RoleService;

/// Paths that need no login.
const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// Logins that wait for their answer at once: half of the connections.
const LOGINS_MAX: usize = super::CONNECTIONS_MAX / 2;

/// The logins that may begin.
#[derive(Clone)]
pub(crate) struct Logins(Arc<Semaphore>);

impl Default for Logins {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOGINS_MAX)))
    }
}

/// Where rows are read.
const OF_ROWS: &str = "/api/feed/";

/// Whether a request reads rows: the read itself checks the permission.
pub(super) fn is_of_rows(request: &Request) -> bool {
    request.uri().path().starts_with(OF_ROWS)
}

/// Checks logins and permissions.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) roles: Arc<RoleService>,
    pub(crate) logins: Logins,
}

/// The address of a connection's client.
#[derive(Clone, Copy, Debug)]
pub(super) struct From(pub(super) IpAddr);

/// Extension of a request by a superuser.
#[derive(Clone, Copy, Debug)]
pub(super) struct Superuser;

/// Extension: the role that sent the request.
#[derive(Clone, Debug)]
pub(super) struct Role(pub(super) String);

/// Admits a request, with its role as an extension; otherwise returns the refusal. Without roles every request is
/// admitted.
pub(super) async fn admit(shared: &Shared, request: &mut Request) -> Result<(), Box<Response>> {
    let Some(gate) = &shared.source.gate else {
        return Ok(());
    };
    let by_socket = request.extensions().get::<BySocket>().is_some();
    if by_socket || OPEN.contains(&request.uri().path()) || has_token(shared, request) {
        return Ok(());
    }
    let from = request.extensions().get::<From>().copied();
    let (Some(From(from)), Some(credentials)) = (from, credentials(request)) else {
        let why = format!(
            "Log in as a role with SELECT ON ALL KEYSPACES (HTTP's Basic), or send the header `Authorization: Bearer TOKEN`; {}",
            where_the_token_is(shared)
        );
        return Err(Box::new(challenge(&why)));
    };
    let Ok(_waiting) = gate.logins.0.try_acquire() else {
        let why = format!("{LOGINS_MAX} logins wait for their answer already; try again, or use the token");
        return Err(Box::new(refuse(StatusCode::TOO_MANY_REQUESTS, &why)));
    };
    let login = match gate.authenticator.login(from, None, &credentials) {
        Decision::Done(login) => login,
        Decision::Later(judged) => judged.await,
    };
    sleep(login.after).await;
    let role = match login.outcome {
        Ok(role) => role,
        Err(LoginError::NotCompared) => {
            let why = LoginError::NotCompared.to_string();
            return Err(Box::new(refuse(StatusCode::TOO_MANY_REQUESTS, &why)));
        }
        Err(error) => return Err(Box::new(challenge(&error.to_string()))),
    };
    let data_center = &shared.source.database.engine().node().data_center;
    if let Err(refusal) = gate.roles.admit_access(&role, data_center, from) {
        request.extensions_mut().insert(Role(role));
        return Err(Box::new(refuse(StatusCode::FORBIDDEN, &refusal.to_string())));
    }
    if !is_of_rows(request) && !gate.roles.may_read_all(&role) {
        let why = "Reading needs a role with SELECT ON ALL KEYSPACES";
        request.extensions_mut().insert(Role(role));
        return Err(Box::new(refuse(StatusCode::FORBIDDEN, why)));
    }
    if gate.roles.is_superuser(&role) {
        request.extensions_mut().insert(Superuser);
    }
    request.extensions_mut().insert(Role(role));
    Ok(())
}

/// The answer that requires a login.
fn challenge(why: &str) -> Response {
    let mut response = refuse(StatusCode::UNAUTHORIZED, why);
    let how = HeaderValue::from_static("Basic realm=\"helenus\", charset=\"UTF-8\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
    response
}

/// User and password of a request as a token of PLAIN. `None` means it has none.
fn credentials(request: &Request) -> Option<Vec<u8>> {
    let given = request.headers().get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = given.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let text = base64_bytes(rest)?;
    let at = text.iter().position(|byte| *byte == b':')?;
    let (user, password) = text.split_at_checked(at)?;
    Some([b"\0", user, b"\0", password.get(1..)?].concat())
}

/// The bytes of a base64 text (RFC 4648 §4), with or without padding. `None` means the text is not base64.
fn base64_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.split(|byte| *byte == b'=').next()?;
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_header() {
        let of = |value: &str| {
            let request = Request::builder().header("Authorization", value);
            credentials(&request.body(axum::body::Body::empty()).unwrap())
        };
        // ann:s3cret, and a password with a colon in it.
        assert_eq!(of("Basic YW5uOnMzY3JldA=="), Some(b"\0ann\0s3cret".to_vec()));
        assert_eq!(of("basic YW5uOnMzY3JldA"), Some(b"\0ann\0s3cret".to_vec()));
        assert_eq!(of("Basic YTpiOmM="), Some(b"\0a\0b:c".to_vec()));
        for wrong in ["", "Basic", "Basic !", "Basic YW5u", "Bearer YTpiOmM=", "YTpiOmM="] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64_bytes(text.as_bytes()).unwrap(), bytes.as_bytes());
        }
    }
}
