//! Logging in: PLAIN against one configured user; roles are not here yet.
//!
//! A password is compared in constant time. An address whose logins fail is refused for a while that doubles with each
//! further failure, without its password being looked at.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// The authenticator's class as clients know it; gocql 1.7 logs in to no other.
pub const AUTHENTICATOR_CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Failures of an address that cost nothing.
const FAILURES_FREE: u32 = 5;

/// The longest an address is refused.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// Addresses remembered; when there are more, those whose time is over are forgotten, then all.
const ADDRESSES_MAX: usize = 10_000;

/// The user who may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password, as bytes.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Why a login was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LoginError {
    /// The token is not `[authorization id] 0 user 0 password`.
    #[error("{0}")]
    Token(&'static str),
    /// Wrong.
    #[error("Provided username {user} and/or password are incorrect")]
    Incorrect {
        /// As the client said.
        user: String,
    },
    /// Too many failures.
    #[error("Too many failed logins from this address, try again in {} s", .wait.as_secs() + 1)]
    BackOff {
        /// Until the next attempt is looked at.
        wait: Duration,
    },
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Duration,
}

impl Failures {
    fn refused_until(self) -> Duration {
        let Some(over) = self.count.checked_sub(FAILURES_FREE) else {
            return Duration::ZERO;
        };
        let wait = Duration::from_secs(1_u64.checked_shl(over).unwrap_or(u64::MAX)).min(BACK_OFF_MAX);
        self.last + wait
    }
}

/// Decides about logins.
#[derive(Debug)]
pub(super) struct Authenticator {
    credentials: Option<Credentials>,
    clock: Clock,
    failures: Mutex<HashMap<IpAddr, Failures>>,
}

impl Authenticator {
    /// With one user; `None`: nobody needs to log in.
    #[must_use]
    pub(super) fn new(credentials: Option<Credentials>, clock: Clock) -> Self {
        Self {
            credentials,
            clock,
            failures: Mutex::default(),
        }
    }

    /// Whether clients must log in.
    #[must_use]
    pub(super) const fn required(&self) -> bool {
        self.credentials.is_some()
    }

    /// Judges the token of a PLAIN login; gives the user.
    ///
    /// # Errors
    /// A bad token, wrong credentials, or too many failures before.
    pub(super) fn login(&self, from: IpAddr, token: &[u8]) -> Result<String, LoginError> {
        let now = self.clock.monotonic();
        if let Some(wait) = self.back_off(from, now) {
            return Err(LoginError::BackOff { wait });
        }
        let (user, password) = plain(token)?;
        let Some(credentials) = &self.credentials else {
            return Ok(user.to_owned());
        };
        // Both are compared, whichever is wrong.
        let same = same_bytes(user.as_bytes(), credentials.user.as_bytes())
            & same_bytes(password, credentials.password.as_bytes());
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if same {
            failures.remove(&from);
            return Ok(user.to_owned());
        }
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, failures| failures.refused_until() > now);
            if failures.len() >= ADDRESSES_MAX {
                failures.clear();
            }
        }
        let entry = failures.entry(from).or_insert(Failures { count: 0, last: now });
        entry.count = entry.count.saturating_add(1);
        entry.last = now;
        Err(LoginError::Incorrect { user: user.to_owned() })
    }

    fn back_off(&self, from: IpAddr, now: Duration) -> Option<Duration> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let until = failures.get(&from)?.refused_until();
        until.checked_sub(now).filter(|wait| !wait.is_zero())
    }
}

/// User and password of a PLAIN token (RFC 4616): `[authorization id] 0 user 0 password`.
fn plain(token: &[u8]) -> Result<(&str, &[u8]), LoginError> {
    let mut parts = token.splitn(3, |byte| *byte == 0);
    let (Some(_), Some(user), Some(password)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(LoginError::Token(
            "Credentials must be [authorization id] NUL user NUL password",
        ));
    };
    if user.is_empty() {
        return Err(LoginError::Token("Authentication ID must not be null"));
    }
    if password.is_empty() {
        return Err(LoginError::Token("Password must not be null"));
    }
    let user = std::str::from_utf8(user).map_err(|_| LoginError::Token("The user's name is not UTF-8"))?;
    Ok((user, password))
}

/// Compares without ending early: the time depends on what was given only, not on what is right.
fn same_bytes(given: &[u8], right: &[u8]) -> bool {
    let mut different = u8::from(given.len() != right.len());
    for (at, byte) in given.iter().enumerate() {
        let other = right.get(at % right.len().max(1)).copied().unwrap_or(0);
        different |= std::hint::black_box(byte ^ other);
    }
    std::hint::black_box(different) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn authenticator() -> (Authenticator, Clock) {
        let clock = Clock::manual(0);
        let credentials = Credentials {
            user: "cassandra".into(),
            password: "s3cret".into(),
        };
        (Authenticator::new(Some(credentials), clock.clone()), clock)
    }

    #[test]
    fn only_the_right_password_logs_in() {
        let (authenticator, _) = authenticator();
        assert_eq!(
            authenticator.login(HOME, b"\0cassandra\0s3cret"),
            Ok("cassandra".into())
        );
        assert_eq!(
            authenticator.login(HOME, b"someone\0cassandra\0s3cret"),
            Ok("cassandra".into())
        );
        for token in [
            b"\0cassandra\0s3cre".as_slice(),
            b"\0cassandra\0s3crets3cret",
            b"\0other\0s3cret",
            b"\0cassandra\0",
            b"\0\0s3cret",
            b"cassandra",
            b"",
        ] {
            assert!(authenticator.login(HOME, token).is_err(), "{token:?}");
        }
    }

    #[test]
    fn failures_cost_time() {
        let (authenticator, clock) = authenticator();
        for _ in 0..5 {
            assert!(matches!(
                authenticator.login(HOME, b"\0u\0p"),
                Err(LoginError::Incorrect { .. })
            ));
        }
        assert!(matches!(
            authenticator.login(HOME, b"\0cassandra\0s3cret"),
            Err(LoginError::BackOff { .. })
        ));
        assert!(
            authenticator
                .login("10.0.0.1".parse().unwrap(), b"\0cassandra\0s3cret")
                .is_ok()
        );
        clock.advance(Duration::from_secs(2));
        assert!(authenticator.login(HOME, b"\0cassandra\0s3cret").is_ok());
        assert!(matches!(
            authenticator.login(HOME, b"\0u\0p"),
            Err(LoginError::Incorrect { .. })
        ));
    }
}
