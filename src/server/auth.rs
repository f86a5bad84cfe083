//! Login with PLAIN: against the server's roles, or, in the profile `cosmos`, against the account and its key.
//!
//! A password is compared only in its turn (`guesses`): a client that guesses waits, while the right password is
//! answered soon. The account's key is compared in constant time. A role's password is hashed, which takes some 50 ms,
//! unless the same password was found right before:
//!
//! ```text
//! token ─► right before? ── yes ──────────────► turn of guesses ─► answer
//!              └─ no ─► turn of hashing ─► right before? ─ no ─► turn of guesses ─► hash ─► answer
//! ```
//! So when the connections of a pool log in together, two hash at a time until one password was right. The others then
//! need no hash.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::audit::Audit;
use super::client_certificates::ClientCertificate;
use super::guesses::{Checked, Guesses, WAIT_MAX};
use helenus_base::clock::Clock;
use helenus_cql::cql::RoleService;
use helenus_schema::roles::NoLogin;

/// The role and the password of a first start without settings; as in Cassandra.
pub const DEFAULT_ROLE: &str = "cassandra";

/// The authenticator's class that clients see; gocql 1.7 logs in to no other.
pub const AUTHENTICATOR_CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Most characters of a user's name that are kept when a login is refused; the rest is cut. Cassandra limits names to
/// 48.
const USER_CHARACTERS_MAX: usize = 128;

/// The account that may log in.
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
    /// The user or the password is wrong.
    #[error("Provided username {user} and/or password are incorrect")]
    Incorrect {
        /// The name that the client sent, cut if it is long.
        user: String,
    },
    /// Too many wrong guesses.
    #[error(
        "The password was not compared: too many logins with wrong passwords come from this address, its network, or for this user. \
         Try again in some seconds"
    )]
    NotCompared,
    /// The default password, from another machine.
    #[error(
        "The default password of {DEFAULT_ROLE} is taken from the server's own machine only: change it there, with \
         ALTER ROLE {DEFAULT_ROLE} WITH PASSWORD = '...'"
    )]
    Default,
    /// The client's certificate has no identity.
    #[error("Unable to extract Spiffe from the certificate")]
    NoIdentity,
    /// No role is bound to the identity of the client's certificate.
    #[error("Certificate identity '{0}' not authorized")]
    Identity(String),
    /// The password or the certificate is right, but the role may not log in.
    #[error(transparent)]
    Refused(#[from] NoLogin),
}

/// The outcome of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    /// The user, or the reason of the refusal.
    pub(super) outcome: Result<String, LoginError>,
    /// The delay of the answer.
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

/// The outcome of a login, now or later.
pub(super) enum Decision {
    /// It is decided.
    Done(Login),
    /// A password must be hashed first.
    Later(BoxFuture<'static, Login>),
}

/// The source of valid logins.
enum Door {
    /// Nothing: no login is required.
    Open,
    /// One account.
    Account(Credentials),
    /// The roles.
    Roles(Arc<RoleService>),
}

/// Checks logins.
pub(crate) struct Authenticator {
    door: Door,
    guesses: Guesses,
    clock: Clock,
    audit: Option<Arc<Audit>>,
}

impl std::fmt::Debug for Authenticator {
    /// Prints no password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    /// With roles, or one account, or, without both, open. `key` decides which clients share turns for guesses.
    #[must_use]
    pub(super) fn new(account: Option<Credentials>, roles: Option<Arc<RoleService>>, clock: Clock, key: u64) -> Self {
        let door = match (roles, account) {
            (Some(roles), _) => Door::Roles(roles),
            (None, Some(account)) => Door::Account(account),
            (None, None) => Door::Open,
        };
        Self {
            door,
            guesses: Guesses::new(key),
            clock,
            audit: None,
        }
    }

    /// The same, with logins recorded in an audit log.
    #[must_use]
    pub(super) fn with_audit(mut self, audit: Option<Arc<Audit>>) -> Self {
        self.audit = audit;
        self
    }

    /// Whether clients must log in.
    #[must_use]
    pub(super) const fn required(&self) -> bool {
        !matches!(self.door, Door::Open)
    }

    /// Checks a login; returns the user, or the reason of the refusal. With roles, a client with a certificate logs in
    /// by it, and its token is ignored. Other clients have the token of a PLAIN login, which may be malformed, or
    /// wrong, or come after too many guesses.
    #[must_use]
    pub(super) fn login(
        self: &Arc<Self>,
        from: IpAddr,
        certificate: Option<&ClientCertificate>,
        token: &[u8],
    ) -> Decision {
        if let (Door::Roles(roles), Some(certificate)) = (&self.door, certificate) {
            let identity = certificate.identity.as_deref();
            let login = Login::at_once(by_identity(roles, identity));
            let user = login.outcome.as_deref().ok().or(identity).unwrap_or_default();
            self.record(from, user, &login);
            return Decision::Done(login);
        }
        let (user, password) = match plain(token) {
            Ok(parts) => parts,
            Err(error) => {
                let refused = Login::at_once(Err(error));
                self.record(from, "", &refused);
                return Decision::Done(refused);
            }
        };
        let decision = self.check_password(from, user, password);
        match decision {
            Decision::Done(login) => {
                self.record(from, user, &login);
                Decision::Done(login)
            }
            Decision::Later(decided) => {
                let (authenticator, user) = (Arc::clone(self), user.to_owned());
                Decision::Later(Box::pin(async move {
                    let login = decided.await;
                    authenticator.record(from, &user, &login);
                    login
                }))
            }
        }
    }

    /// Records a login when it is decided; the answer may come later.
    fn record(&self, from: IpAddr, user: &str, login: &Login) {
        if let Some(audit) = &self.audit {
            let refused = login.outcome.as_ref().err();
            audit.login(from, user, refused.map(|error| error as &dyn std::error::Error));
        }
    }

    fn check_password(self: &Arc<Self>, from: IpAddr, user: &str, password: &[u8]) -> Decision {
        Decision::Done(match &self.door {
            Door::Open => Login::at_once(Ok(user.to_owned())),
            Door::Account(account) => {
                // Both are compared, whichever is wrong.
                let is_right = || {
                    same_bytes(user.as_bytes(), account.user.as_bytes())
                        & same_bytes(password, account.password.as_bytes())
                };
                self.check_guess(from, user, is_right, || Ok(()))
            }
            Door::Roles(_) if is_default(user, password) && !from.to_canonical().is_loopback() => {
                Login::at_once(Err(LoginError::Default))
            }
            Door::Roles(roles) if roles.is_known(user, password) => {
                self.check_guess(from, user, || true, || Ok(roles.admit(user)?))
            }
            Door::Roles(roles) => {
                let (authenticator, roles) = (Arc::clone(self), Arc::clone(roles));
                let (user, password) = (user.to_owned(), password.to_vec());
                return Decision::Later(Box::pin(async move {
                    authenticator.login_hashed(&roles, from, &user, password).await
                }));
            }
        })
    }

    /// Checks a password that was not right before.
    async fn login_hashed(&self, roles: &Arc<RoleService>, from: IpAddr, user: &str, password: Vec<u8>) -> Login {
        let admit = || Ok(roles.admit(user)?);
        let Some(turn) = roles.turn().await else {
            return self.check_guess(from, user, || false, admit);
        };
        if roles.is_known(user, &password) {
            return self.check_guess(from, user, || true, admit);
        }
        // The turn is taken before the password is hashed, so that concurrent guesses are bounded like others.
        let wrong = self.check_guess(from, user, || false, admit);
        if wrong.outcome == Err(LoginError::NotCompared) || !roles.is_right(user, password, turn).await {
            return wrong;
        }
        self.guesses.give_back(from, user);
        Login {
            outcome: admit().map(|()| user.to_owned()),
            after: wrong.after,
        }
    }

    fn check_guess(
        &self,
        from: IpAddr,
        user: &str,
        is_right: impl FnOnce() -> bool,
        admit: impl FnOnce() -> Result<(), LoginError>,
    ) -> Login {
        match self.guesses.check(from, user, self.clock.monotonic(), is_right) {
            Checked::Right(after) => Login {
                outcome: admit().map(|()| user.to_owned()),
                after,
            },
            Checked::Wrong(after) => Login {
                outcome: Err(LoginError::Incorrect { user: cut(user) }),
                after,
            },
            // Delayed by the longest wait, so that an immediate retry gains nothing.
            Checked::NotCompared => Login {
                outcome: Err(LoginError::NotCompared),
                after: WAIT_MAX,
            },
        }
    }
}

/// The role bound to the identity of a certificate, if it may log in.
fn by_identity(roles: &RoleService, identity: Option<&str>) -> Result<String, LoginError> {
    let identity = identity.ok_or(LoginError::NoIdentity)?;
    let role = roles
        .role_of(identity)
        .ok_or_else(|| LoginError::Identity(identity.to_owned()))?;
    roles.admit(&role)?;
    Ok(role)
}

/// Whether this is the role and the password of a first start without settings.
fn is_default(user: &str, password: &[u8]) -> bool {
    user == DEFAULT_ROLE && password == DEFAULT_ROLE.as_bytes()
}

/// A name, shortened for messages and logs.
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

/// Compares without stopping early: the time depends on the input only, not on the right value.
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
    use super::super::requests::tests::memory;
    use super::*;
    use helenus_cql::cql::{Hashing, RoleOptions};

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn authenticator() -> (Arc<Authenticator>, Clock) {
        let clock = Clock::manual(0);
        let credentials = Credentials {
            user: "cassandra".into(),
            password: "s3cret".into(),
        };
        (
            Arc::new(Authenticator::new(Some(credentials), None, clock.clone(), 1)),
            clock,
        )
    }

    fn answer(authenticator: &Arc<Authenticator>, from: IpAddr, token: &[u8]) -> Login {
        match authenticator.login(from, None, token) {
            Decision::Done(login) => login,
            Decision::Later(_) => panic!("an account's key is not hashed"),
        }
    }

    #[test]
    fn only_the_right_password_logs_in() {
        for token in [b"\0cassandra\0s3cret".as_slice(), b"someone\0cassandra\0s3cret"] {
            let login = answer(&authenticator().0, HOME, token);
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
            assert!(answer(&authenticator().0, HOME, token).outcome.is_err(), "{token:?}");
        }
    }

    #[test]
    fn guesses_make_the_right_password_wait_and_do_not_lock_it_out() {
        let (authenticator, clock) = authenticator();
        for _ in 0..6 {
            let login = answer(&authenticator, HOME, b"\0cassandra\0guess");
            assert!(matches!(login.outcome, Err(LoginError::Incorrect { .. })));
        }
        let login = answer(&authenticator, HOME, b"\0cassandra\0s3cret");
        assert_eq!(login.outcome, Ok("cassandra".into()));
        assert!(login.after > Duration::ZERO && login.after <= WAIT_MAX, "{login:?}");
        while answer(&authenticator, HOME, b"\0cassandra\0guess").outcome != Err(LoginError::NotCompared) {}
        let refused = answer(&authenticator, HOME, b"\0cassandra\0s3cret");
        assert_eq!(
            (refused.outcome, refused.after),
            (Err(LoginError::NotCompared), WAIT_MAX)
        );
        let elsewhere = answer(&authenticator, "10.0.0.1".parse().unwrap(), b"\0cassandra\0s3cret");
        assert_eq!(elsewhere, Login::at_once(Ok("cassandra".into())));
        clock.advance(WAIT_MAX);
        assert!(answer(&authenticator, HOME, b"\0cassandra\0s3cret").outcome.is_ok());
    }

    #[test]
    fn a_long_name_is_cut() {
        let token = format!("\0{}\0p", "ü".repeat(30_000));
        let text = answer(&authenticator().0, HOME, token.as_bytes())
            .outcome
            .unwrap_err()
            .to_string();
        assert!(text.chars().count() < 200 && text.contains("ü… cut and/or"), "{text}");
    }

    fn hashing() -> Hashing {
        Hashing {
            cost: 4,
            salt: || Some([7; 16]),
            key: [1; 16],
        }
    }

    /// Roles, with the default role of a start without settings.
    async fn with_roles() -> Arc<Authenticator> {
        let database = memory().await;
        let superuser = (DEFAULT_ROLE.to_owned(), DEFAULT_ROLE.to_owned());
        let options = RoleOptions {
            superuser,
            hashing: hashing(),
            cidr_groups: None,
        };
        database.enable_roles(options).await.unwrap();
        let roles = database.roles().cloned();
        Arc::new(Authenticator::new(None, roles, Clock::manual(0), 1))
    }

    async fn login_of_role(authenticator: &Arc<Authenticator>, from: IpAddr, token: &[u8]) -> Login {
        match authenticator.login(from, None, token) {
            Decision::Done(login) => login,
            Decision::Later(login) => login.await,
        }
    }

    #[tokio::test]
    async fn the_password_that_all_know_is_taken_from_the_servers_own_machine() {
        let authenticator = with_roles().await;
        let token = b"\0cassandra\0cassandra";
        for (address, is_let_in) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            let login = login_of_role(&authenticator, address.parse().unwrap(), token).await;
            assert_eq!(login.outcome.is_ok(), is_let_in, "{address}");
            assert!(is_let_in || login.outcome == Err(LoginError::Default), "{address}");
        }
    }

    #[tokio::test]
    async fn a_pool_that_logs_in_together_takes_no_turns() {
        let authenticator = with_roles().await;
        let logins = (0..200).map(|_| login_of_role(&authenticator, HOME, b"\0cassandra\0cassandra"));
        for login in futures::future::join_all(logins).await {
            assert_eq!(login, Login::at_once(Ok("cassandra".into())));
        }
        // Guesses wait for their turns, and soon are not compared.
        let guesses = (0..200).map(|_| login_of_role(&authenticator, HOME, b"\0cassandra\0guess"));
        let guesses = futures::future::join_all(guesses).await;
        let compared = guesses
            .iter()
            .filter(|login| login.outcome != Err(LoginError::NotCompared));
        assert!((5..=12).contains(&compared.count()));
    }
}
