//! Logging in: PLAIN against one configured user; roles are not here yet.
//!
//! A password is compared in constant time, when it is its turn (`guesses`): who guesses waits, and the right password is
//! answered soon even so.

use std::net::IpAddr;
use std::time::Duration;

use super::guesses::{Guesses, Judged, WAIT_MAX};
use crate::clock::Clock;

/// The authenticator's class as clients know it; gocql 1.7 logs in to no other.
pub const AUTHENTICATOR_CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Most characters of a user's name that are kept when a login is refused; more is cut. Cassandra's names end at 48.
const USER_CHARACTERS_MAX: usize = 128;

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
        /// As the client said, cut when it is long.
        user: String,
    },
    /// Too many guess.
    #[error(
        "The password was not compared: too many logins with wrong passwords come from this address, its network, or for this user. \
         Try again in some seconds"
    )]
    NotCompared,
}

/// What came of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    /// The user, or why not.
    pub(super) outcome: Result<String, LoginError>,
    /// How long the answer waits.
    pub(super) after: Duration,
}

impl Login {
    const fn at_once(outcome: Result<String, LoginError>) -> Self {
        Self {
            outcome,
            after: Duration::ZERO,
        }
    }
}

/// Decides about logins.
#[derive(Debug)]
pub(super) struct Authenticator {
    /// `None`: no login is needed.
    user: Option<(Credentials, Guesses)>,
    clock: Clock,
}

impl Authenticator {
    /// With one user; `None`: no login is needed. `key` decides which clients share turns when they guess.
    #[must_use]
    pub(super) fn new(credentials: Option<Credentials>, clock: Clock, key: u64) -> Self {
        Self {
            user: credentials.map(|credentials| (credentials, Guesses::new(key))),
            clock,
        }
    }

    /// Whether clients must log in.
    #[must_use]
    pub(super) const fn required(&self) -> bool {
        self.user.is_some()
    }

    /// Judges the token of a PLAIN login; gives the user, or why not: a bad token, wrong credentials, or too many guesses before.
    #[must_use]
    pub(super) fn login(&self, from: IpAddr, token: &[u8]) -> Login {
        let (user, password) = match plain(token) {
            Ok(parts) => parts,
            Err(error) => return Login::at_once(Err(error)),
        };
        let Some((credentials, guesses)) = &self.user else {
            return Login::at_once(Ok(user.to_owned()));
        };
        // Both are compared, whichever is wrong.
        let is_right = || {
            same_bytes(user.as_bytes(), credentials.user.as_bytes())
                & same_bytes(password, credentials.password.as_bytes())
        };
        match guesses.judge(from, user, self.clock.monotonic(), is_right) {
            Judged::Right(after) => Login {
                outcome: Ok(user.to_owned()),
                after,
            },
            Judged::Wrong(after) => Login {
                outcome: Err(LoginError::Incorrect { user: cut(user) }),
                after,
            },
            // Held as long as the longest line, so that coming again at once gains nothing.
            Judged::NotCompared => Login {
                outcome: Err(LoginError::NotCompared),
                after: WAIT_MAX,
            },
        }
    }
}

/// A name as it stands in messages and logs.
fn cut(name: &str) -> String {
    match name.char_indices().nth(USER_CHARACTERS_MAX) {
        None => name.to_owned(),
        Some((at, _)) => format!("{}… cut", name.get(..at).unwrap_or_default()),
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
        (Authenticator::new(Some(credentials), clock.clone(), 1), clock)
    }

    #[test]
    fn only_the_right_password_logs_in() {
        for token in [b"\0cassandra\0s3cret".as_slice(), b"someone\0cassandra\0s3cret"] {
            let login = authenticator().0.login(HOME, token);
            assert_eq!(login, Login::at_once(Ok("cassandra".into())));
        }
        for token in [
            b"\0cassandra\0s3cre".as_slice(),
            b"\0cassandra\0s3crets3cret",
            b"\0other\0s3cret",
            b"\0cassandra\0",
            b"\0\0s3cret",
            b"cassandra",
            b"",
        ] {
            assert!(authenticator().0.login(HOME, token).outcome.is_err(), "{token:?}");
        }
    }

    #[test]
    fn guesses_make_the_right_password_wait_and_do_not_lock_it_out() {
        let (authenticator, clock) = authenticator();
        for _ in 0..6 {
            let login = authenticator.login(HOME, b"\0cassandra\0guess");
            assert!(matches!(login.outcome, Err(LoginError::Incorrect { .. })));
        }
        let login = authenticator.login(HOME, b"\0cassandra\0s3cret");
        assert_eq!(login.outcome, Ok("cassandra".into()));
        assert!(login.after > Duration::ZERO && login.after <= WAIT_MAX, "{login:?}");
        while authenticator.login(HOME, b"\0cassandra\0guess").outcome != Err(LoginError::NotCompared) {}
        let refused = authenticator.login(HOME, b"\0cassandra\0s3cret");
        assert_eq!(
            (refused.outcome, refused.after),
            (Err(LoginError::NotCompared), WAIT_MAX)
        );
        let elsewhere = authenticator.login("10.0.0.1".parse().unwrap(), b"\0cassandra\0s3cret");
        assert_eq!(elsewhere, Login::at_once(Ok("cassandra".into())));
        clock.advance(WAIT_MAX);
        assert!(authenticator.login(HOME, b"\0cassandra\0s3cret").outcome.is_ok());
    }

    #[test]
    fn a_long_name_is_cut() {
        let token = format!("\0{}\0p", "ü".repeat(30_000));
        let text = authenticator()
            .0
            .login(HOME, token.as_bytes())
            .outcome
            .unwrap_err()
            .to_string();
        assert!(text.chars().count() < 200 && text.contains("ü… cut and/or"), "{text}");
    }
}
