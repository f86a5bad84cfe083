//! Which requests a connection may send in which phase: a pure state machine from requests to steps.
//!
//! ```text
//! Fresh ── STARTUP ──► READY ────────────────► Ready ── everything but STARTUP, AUTH_RESPONSE
//!   │  ▲               AUTHENTICATE ─► Login ────▲
//!   │  └ OPTIONS, errors                └ AUTH_RESPONSE: AUTH_SUCCESS, or an error and the end; perhaps later
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::auth::{AUTHENTICATOR_CLASS, Authenticator, Decision, Login, LoginError};
use super::client_certificates::ClientCertificate;
use helenus_base::metrics;
use helenus_schema::profile::Profile;
use helenus_types::wire::Header;
use helenus_types::wire::request::{EventKind, Request, Startup};
use helenus_types::wire::response::{Body, ErrorBody, ErrorCode, Response};
use helenus_types::wire::{Compression, Opcode, Version};

/// The version of CQL, as in Cassandra 5.0.
pub const CQL_VERSION: &str = "3.4.7";

/// The version of CQL that Cosmos reports.
pub const COSMOS_CQL_VERSION: &str = "3.4.4";

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Only OPTIONS so far.
    Fresh,
    /// STARTUP was answered with AUTHENTICATE.
    Login,
    /// All requests are allowed.
    Ready,
}

/// The action for a request.
pub(super) enum Step {
    /// Answer.
    Reply(Response),
    /// Answer; all later frames, in both directions, use the negotiated options. Holds also the options as the client
    /// sent them.
    Negotiated(Response, Negotiated, Vec<(String, String)>),
    /// Answer; this user has logged in.
    LoggedIn(Response, String),
    /// Answer and close.
    Refuse(Response),
    /// Read no request from this connection for this long; then do the step, which belongs to a login.
    Later(Duration, Box<Step>),
    /// Read no request from this connection until the step is known, which belongs to a login.
    Pending(BoxFuture<'static, Step>),
    /// Register for the kinds of event and answer READY.
    Register(Vec<EventKind>),
    /// Pass the request to the database.
    Dispatch,
}

/// The options negotiated by STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    /// Of bodies or segments.
    pub(super) compression: Option<Compression>,
    /// Overload returns an error to this client instead of a wait.
    pub(super) throw_on_overload: bool,
}

/// The answer to OPTIONS.
pub(super) fn supported(profile: Profile) -> Response {
    if profile.is_cosmos() {
        // Cosmos names 4 as its latest version, though it accepts 5 as well; and it compresses nothing.
        let named = Version::NAMES.iter().copied().filter(|name| !name.starts_with('5'));
        return Body::Supported(vec![
            ("PROTOCOL_VERSIONS", named.collect()),
            ("COMPRESSION", Vec::new()),
            ("CQL_VERSION", vec![COSMOS_CQL_VERSION]),
        ])
        .into();
    }
    // No SCYLLA_* and no PRODUCT_TYPE: drivers would mistake the server for another product.
    Body::Supported(vec![
        ("PROTOCOL_VERSIONS", Version::NAMES.to_vec()),
        ("COMPRESSION", Compression::NAMES.to_vec()),
        ("CQL_VERSION", vec![CQL_VERSION]),
    ])
    .into()
}

fn protocol_error(text: impl Into<String>) -> Response {
    metrics::PROTOCOL_ERRORS.increment();
    ErrorBody::protocol(text).into()
}

/// Checks a request against the phase, and advances the phase. A login does not advance it: the connection becomes
/// ready when the login has succeeded.
pub(super) fn step(
    phase: &mut Phase,
    authenticator: &Arc<Authenticator>,
    profile: Profile,
    from: IpAddr,
    certificate: Option<&ClientCertificate>,
    header: &Header,
    body: &Bytes,
) -> Step {
    let Some(opcode) = header.opcode() else {
        return Step::Reply(protocol_error(format!("Unknown opcode {}", header.opcode_byte)));
    };
    if !opcode.is_request() {
        return Step::Reply(protocol_error(format!(
            "Unexpected message {}: it is no request",
            opcode.name()
        )));
    }
    match (*phase, opcode) {
        (_, Opcode::Options) => return Step::Reply(supported(profile)),
        (Phase::Ready, Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch) => return Step::Dispatch,
        (Phase::Fresh, Opcode::Startup) | (Phase::Login, Opcode::AuthResponse) | (Phase::Ready, Opcode::Register) => {}
        (phase, opcode) => {
            let name = opcode.name();
            return Step::Reply(protocol_error(match phase {
                Phase::Fresh => format!("Unexpected message {name}, expecting STARTUP or OPTIONS"),
                Phase::Login => format!("Unexpected message {name}, expecting SASL_RESPONSE"),
                Phase::Ready => format!("Unexpected message {name}, the connection is already initialized"),
            }));
        }
    }
    match Request::parse(header, body) {
        Err(malformed) => Step::Reply(protocol_error(malformed.to_string())),
        Ok(Request::Startup(startup)) => match negotiate(&startup, header.version, profile) {
            Err(text) => Step::Reply(protocol_error(text)),
            Ok(negotiated) => {
                let login = authenticator.required();
                *phase = if login { Phase::Login } else { Phase::Ready };
                let body = if login {
                    Body::Authenticate(AUTHENTICATOR_CLASS)
                } else {
                    Body::Ready
                };
                let options = startup
                    .options
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
                Step::Negotiated(body.into(), negotiated, options.collect())
            }
        },
        Ok(Request::AuthResponse(response)) => {
            let token = response.token.as_deref().unwrap_or_default();
            match authenticator.login(from, certificate, token) {
                Decision::Done(login) => answer_login(from, login),
                Decision::Later(decided) => Step::Pending(Box::pin(async move { answer_login(from, decided.await) })),
            }
        }
        Ok(Request::Register(register)) => Step::Register(register.kinds),
        // The phase admits no other message.
        Ok(Request::Options | Request::Query(_) | Request::Prepare(_) | Request::Execute(_) | Request::Batch(_)) => {
            Step::Dispatch
        }
    }
}

/// The answer to a login, in its turn.
fn answer_login(from: IpAddr, login: Login) -> Step {
    let step = match login.outcome {
        Ok(user) => Step::LoggedIn(Body::AuthSuccess.into(), user),
        Err(error) => refuse_login(from, &error),
    };
    if login.after.is_zero() {
        step
    } else {
        Step::Later(login.after, Box::new(step))
    }
}

fn refuse_login(from: IpAddr, error: &LoginError) -> Step {
    metrics::LOGINS_FAILED.increment();
    tracing::warn!(%from, %error, "login refused");
    let code = match error {
        LoginError::Token(_)
        | LoginError::Incorrect { .. }
        | LoginError::Default
        | LoginError::Refused(_)
        | LoginError::NoIdentity
        | LoginError::Identity(_) => ErrorCode::BadCredentials,
        // Drivers give up after an error for bad credentials, and these credentials may be right.
        LoginError::NotCompared => ErrorCode::Overloaded,
    };
    Step::Refuse(ErrorBody::new(code, error.to_string()).into())
}

/// Reads STARTUP's options; the error is a text for the client.
fn negotiate(startup: &Startup<'_>, version: Version, profile: Profile) -> Result<Negotiated, String> {
    let cql = startup
        .option("CQL_VERSION")
        .ok_or("Missing value CQL_VERSION in STARTUP message")?;
    // Any version from 3 on is accepted: the Rust driver always says 4.0.0.
    let (major, rest) = cql
        .split_once('.')
        .ok_or_else(|| format!("Invalid version value: {cql}"))?;
    let number = |text: &str| text.parse::<u32>().ok();
    let (Some(major), Some(_)) = (number(major), rest.split(['.', '-', '+']).next().and_then(number)) else {
        return Err(format!("Invalid version value: {cql}"));
    };
    if major < 3 {
        return Err(format!(
            "CQL version {cql} is not supported by the binary protocol (supported version are >= 3.0.0)"
        ));
    }
    let compression = match startup.option("COMPRESSION").filter(|name| !name.is_empty()) {
        None => None,
        // Cosmos's text; its code for this error is unknown.
        Some(_) if profile.is_cosmos() => return Err("Cql request had unsupported headers Compression".into()),
        Some(name) => {
            let algorithm =
                Compression::from_name(name).ok_or_else(|| format!("Unknown compression algorithm: {name}"))?;
            if algorithm == Compression::Snappy && version >= Version::V5 {
                return Err("Unsupported compression type: snappy. Version 5 compresses with lz4 only".into());
            }
            Some(algorithm)
        }
    };
    Ok(Negotiated {
        compression,
        throw_on_overload: startup.option("THROW_ON_OVERLOAD") == Some("1"),
    })
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
