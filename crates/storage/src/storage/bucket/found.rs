//! Classifies errors of an object store.
//!
//! `object_store` keeps status and body of an answer in a private type, so they are read from its text: `status code:
//! 403 Forbidden: <body>`, and `<Code>` of the body, which is the same element in S3, Azure and Google's XML.

use std::error::Error as StdError;

use slatedb::object_store::Error as StoreError;
use slatedb::object_store::client::{HttpError, HttpErrorKind};

use crate::storage::bucket_refusal::Refusal;

/// Error codes of stores, by their meaning.
const MEANINGS: &[(&[&str], Refusal)] = &[
    (
        &[
            "NoSuchBucket",
            "ContainerNotFound",
            "AccountNotFound",
            "ResourceNotFound",
        ],
        Refusal::NoBucket,
    ),
    (
        &[
            "ExpiredToken",
            "ExpiredTokenException",
            "TokenRefreshRequired",
            "invalid_grant",
        ],
        Refusal::Expired,
    ),
    (
        &[
            "InvalidAccessKeyId",
            // versitygw.
            "XAdminUserNotFound",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidSecurity",
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
            "UnrecognizedClientException",
            "InvalidClientTokenId",
        ],
        Refusal::WrongCredentials,
    ),
    (
        &[
            "PermanentRedirect",
            "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException",
            "IncorrectEndpoint",
        ],
        Refusal::WrongRegion { region: None },
    ),
    (&["RequestTimeTooSkewed"], Refusal::WrongTime),
];

/// Addresses at which machines of the clouds provide credentials. They are tried last, so a failure there means that
/// there are none.
const METADATA: [&str; 4] = [
    "169.254.169.254",
    "169.254.170.2",
    "metadata.google.internal",
    "/latest/api/token",
];

/// Classifies an error.
pub(in crate::storage) fn refusal(error: &StoreError) -> Refusal {
    let (text, failed) = gathered(error);
    classify(&text, failed)
}

/// Whether the store asks for fewer requests, or fewer changes of one object. It has not done what was asked.
pub(super) fn is_throttled(error: &StoreError) -> bool {
    status(&gathered(error).0) == Some(429)
}

/// Whether the error is an answer of the store to this request, or one that the client cannot read. Otherwise it is
/// about the way to the store, its state, or the credentials.
pub(super) fn is_answered(error: &StoreError) -> bool {
    let (text, failed) = gathered(error);
    match classify(&text, failed) {
        Refusal::Answered { .. } => true,
        Refusal::Unreachable { .. } => failed.is_none() && status(&text).is_none(),
        _ => false,
    }
}

/// The text of an error and its causes, and how the request failed. `None` means that it was answered.
fn gathered(error: &StoreError) -> (String, Option<HttpErrorKind>) {
    let mut text = error.to_string();
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    let mut failed = None;
    while let Some(inner) = cause {
        if let Some(http) = inner.downcast_ref::<HttpError>() {
            failed = Some(http.kind());
        }
        text.push(' ');
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    (text, failed)
}

/// The HTTP status of the store's answer.
fn status(text: &str) -> Option<u16> {
    after(text, "status code: ").and_then(|rest| rest.get(..3)?.parse().ok())
}

fn classify(text: &str, failed: Option<HttpErrorKind>) -> Refusal {
    let is_of_metadata = METADATA.iter().any(|host| text.contains(host));
    if is_of_metadata || text.contains("no credentials") {
        return Refusal::NoCredentials;
    }
    let code = element(text, "Code");
    let has_code = |names: &[&str]| {
        names
            .iter()
            .any(|name| code == Some(name) || (code.is_none() && text.contains(name)))
    };
    // Azure reports an expired signature this way, under the code of a wrong one.
    if text.contains("not valid in the specified time frame") {
        return Refusal::Expired;
    }
    if let Some((_, meaning)) = MEANINGS.iter().find(|(names, _)| has_code(names)) {
        return match meaning {
            Refusal::WrongRegion { .. } => Refusal::WrongRegion { region: region(text) },
            meaning => meaning.clone(),
        };
    }
    if text.contains("Received redirect without LOCATION") {
        return Refusal::WrongRegion { region: None };
    }
    match (status(text), failed) {
        (Some(403), _) => Refusal::NoPermission,
        (Some(401), _) => Refusal::WrongCredentials,
        (Some(301 | 307), _) => Refusal::WrongRegion { region: region(text) },
        (Some(status @ (408 | 429 | 500 | 502..=599)), _) => Refusal::Unreachable {
            what: format!("it answers {}", answer(status, code)),
        },
        (Some(status), _) => Refusal::Answered {
            answer: answer(status, code),
        },
        (None, Some(HttpErrorKind::Timeout)) => unreachable("no answer in time"),
        (None, Some(HttpErrorKind::Connect)) => unreachable(
            "no connection: check the address and port (bucket-endpoint, or the variable of the cloud's tools) and the certificate",
        ),
        (None, Some(_)) => unreachable("the connection broke"),
        (None, None) => unreachable("the client failed"),
    }
}

fn unreachable(what: &str) -> Refusal {
    Refusal::Unreachable { what: what.to_owned() }
}

fn answer(status: u16, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    }
}

/// The region that an answer names.
fn region(text: &str) -> Option<String> {
    let quoted = after(text, "expecting '").and_then(|rest| rest.split('\'').next());
    let region = element(text, "Region").or(quoted)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (region.len() <= 32 && region.bytes().all(is_name)).then(|| region.to_owned())
}

/// The text of the first element of this name, if it is one word.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inner = after(text, &format!("<{name}>"))?.split('<').next()?;
    let is_word = !inner.is_empty()
        && inner.len() <= 64
        && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_word.then_some(inner)
}

fn after<'t>(text: &'t str, mark: &str) -> Option<&'t str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_meaning_and_their_text_is_not_repeated() {
        let body = |status: &str, code: &str| {
            format!(
                "Server returned non-2xx status code: {status}: <Error><Code>{code}</Code><Message>key AKIASECRET</Message></Error>"
            )
        };
        for (text, meaning) in [
            (body("404 Not Found", "NoSuchBucket"), "no such bucket"),
            (
                body("404 The specified container does not exist.", "ContainerNotFound"),
                "no such bucket",
            ),
            (body("403 Forbidden", "AccessDenied"), "do not allow"),
            (
                body("403 Forbidden", "InvalidAccessKeyId"),
                "does not know the credentials",
            ),
            (body("400 Bad Request", "ExpiredToken"), "have expired"),
            (body("503 Slow Down", "SlowDown"), "it answers 503 SlowDown"),
            (body("400 Bad Request", "Odd"), "answered 400 Odd"),
            (
                "status code: 400: <Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>".to_owned(),
                "but in eu-west-1; set bucket-region",
            ),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 1s".to_owned(),
                "found no usable credentials",
            ),
        ] {
            let told = classify(&text, None).to_string();
            assert!(told.contains(meaning), "{text}: {told}");
            assert!(!told.contains("AKIASECRET"), "{told}");
        }
        assert!(classify("", Some(HttpErrorKind::Timeout)).may_pass());
    }
}
