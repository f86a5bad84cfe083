//! Roles: logins, permissions, and the statements that change them.
//!
//! ```text
//! AUTH_RESPONSE ─► RoleService::is_known, ::is_right ─► a role
//! request ───────► engine::Execution, by the current snapshot
//! CREATE ROLE … ─► statements::StatementChecker ─► store::statements ─► one logged batch ─► the next snapshot
//! ```
//! The snapshot is in memory; it is read from rows of `system_auth` at the start, and again when a client writes there.
//! Changes are made one at a time. The result of a failed change is resolved from the rows before the next change.

pub(super) mod functions;
mod list;
pub(super) mod statements;
pub(super) mod store;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::role_refusal::RoleRefusal;
use crate::cql::Error;
use helenus_engine::engine;
use helenus_schema::roles::{CidrGroups, NoLogin, Permission, Resource, Role, RoleName, Roles, password};

/// Whether a statement about roles only lists them.
pub(super) const fn is_list(statement: &grammar::ast::Statement) -> bool {
    use grammar::ast::Statement;
    matches!(
        statement,
        Statement::ListRoles(_) | Statement::ListUsers | Statement::ListPermissions(_)
    )
}

/// Maximum passwords that are hashed at the same time: each occupies a core for about 50 ms.
const HASHED_AT_ONCE: usize = 2;

/// The interval within which a role's password cannot be changed again, as in Cassandra: a change costs a hash, and a
/// client that repeats it would keep others from logging in. (`cassandra.role_password_update_min_interval_ms`, 5,000.)
const PASSWORD_CHANGE_INTERVAL: Duration = Duration::from_millis(5000);

/// Options of a server with logins.
pub struct RoleOptions {
    /// The superuser that is created if no role is stored, and its password.
    pub superuser: (String, String),
    /// How passwords are hashed.
    pub hashing: Hashing,
    /// Groups of addresses, which replace the stored ones. `None` means that addresses are not checked.
    pub cidr_groups: Option<CidrGroups>,
}

/// How passwords are hashed.
pub struct Hashing {
    /// Rounds, as a power of two: within [`password::COSTS`].
    pub cost: u32,
    /// Returns a fresh salt. `None` means there is no randomness, and the password is not hashed.
    pub salt: fn() -> Option<[u8; 16]>,
    /// Key of the digests of correct passwords, so that they cannot be compared with digests from elsewhere.
    pub key: [u8; 16],
}

impl std::fmt::Debug for RoleOptions {
    /// Prints no password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RoleOptions")
            .field("superuser", &self.superuser.0)
            .finish_non_exhaustive()
    }
}

/// The stored roles compared with the superuser of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRole {
    /// The role exists, with the password of the options.
    Right,
    /// The role exists, with another password.
    OtherPassword,
    /// There are roles, but not this one.
    Missing,
}

/// A permit to hash one password.
#[derive(Debug)]
pub struct HashPermit {
    _permit: OwnedSemaphorePermit,
}

/// A correct password: its digest, and the hash that it matched.
struct KnownPassword {
    salted_hash: String,
    digest: [u8; 32],
}

/// The roles of a server.
pub struct RoleService {
    /// Shared with the engine, which checks permissions.
    pub(super) current: Arc<ArcSwap<Roles>>,
    /// How often they were replaced.
    version: AtomicU64,
    pub(super) changing: tokio::sync::Mutex<Doubt>,
    /// At most one for each role.
    known: Mutex<HashMap<RoleName, KnownPassword>>,
    turns: Arc<Semaphore>,
    hashing: Hashing,
    /// Whether clients' addresses are checked at each request.
    pub(super) checks_addresses: bool,
    /// When passwords were last set, by role, within the last [`PASSWORD_CHANGE_INTERVAL`].
    set: Mutex<HashMap<RoleName, Duration>>,
}

/// Whether a change is in doubt: it failed, but may have been stored.
#[derive(Default)]
pub(super) struct Doubt(pub(super) bool);

impl std::fmt::Debug for RoleService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RoleService").finish_non_exhaustive()
    }
}

impl RoleService {
    /// Puts changed roles in force.
    pub(super) fn replace(&self, roles: Roles) {
        self.current.store(Arc::new(roles));
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// A number that rises whenever the roles are replaced.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn new(hashing: Hashing, checks_addresses: bool) -> Self {
        Self {
            current: Arc::default(),
            version: AtomicU64::new(0),
            changing: tokio::sync::Mutex::default(),
            known: Mutex::default(),
            turns: Arc::new(Semaphore::new(HASHED_AT_ONCE)),
            hashing,
            checks_addresses,
            set: Mutex::default(),
        }
    }

    /// Refuses to set a role's password again so soon. As in Cassandra this does not apply to a new role, nor to HASHED
    /// PASSWORD.
    pub(super) fn limit_passwords(&self, name: &str, now: Duration) -> Result<(), RoleRefusal> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Duration| now.saturating_sub(*at) <= PASSWORD_CHANGE_INTERVAL;
        if set.get(name).is_some_and(is_recent) {
            return Err(RoleRefusal::PasswordTooSoon(
                name.to_owned(),
                PASSWORD_CHANGE_INTERVAL.as_millis(),
            ));
        }
        Ok(())
    }

    /// Records whose passwords were set, and removes old entries.
    pub(super) fn record_passwords(&self, before: &Roles, after: &Roles, now: Duration) {
        let hash = |roles: &Roles, name: &str| roles.get(name).and_then(|role| role.salted_hash.clone());
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        set.retain(|_, at| now.saturating_sub(*at) <= PASSWORD_CHANGE_INTERVAL);
        for name in after.by_name.keys() {
            let of_role = hash(after, name);
            if of_role.is_some() && of_role != hash(before, name) {
                set.insert(Arc::clone(name), now);
            }
        }
    }

    /// The current roles.
    pub(super) fn load(&self) -> arc_swap::Guard<Arc<Roles>> {
        self.current.load()
    }

    fn digest(&self, password: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.hashing.key);
        digest.update(password);
        digest.finalize().into()
    }

    /// Whether this password was verified before for this role, and the role's password has not changed since. Needs no
    /// hashing of the password.
    #[must_use]
    pub fn is_known(&self, role: &str, password: &[u8]) -> bool {
        let digest = self.digest(password);
        let roles = self.load();
        let Some(hash) = roles.get(role).and_then(|role| role.salted_hash.as_deref()) else {
            return false;
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(role)
            .is_some_and(|known| known.salted_hash == hash && known.digest == digest)
    }

    /// Waits for a permit to hash a password. Never returns `None`: the semaphore is never closed.
    pub async fn turn(&self) -> Option<HashPermit> {
        Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .ok()
            .map(|permit| HashPermit { _permit: permit })
    }

    /// Whether the password matches a role's hash. A missing role takes as long as an existing one. The permit is held until
    /// the hash is computed, even if the caller drops the future.
    pub async fn is_right(&self, role: &str, password: Vec<u8>, turn: HashPermit) -> bool {
        let hash = self.load().get(role).and_then(|role| role.salted_hash.clone());
        let digest = self.digest(&password);
        let cost = self.hashing.cost;
        let compared = tokio::task::spawn_blocking({
            let hash = hash.clone();
            move || (password::is_right(&password, hash.as_deref(), cost), turn)
        });
        // The turn ends when the password is known: the next one in turn needs no hash then.
        let (is_right, _turn) = compared
            .await
            .map_or((false, None), |(is_right, turn)| (is_right, Some(turn)));
        if let Some(salted_hash) = hash.filter(|_| is_right) {
            let roles = self.load();
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|role, _| roles.contains(role));
            known.insert(role.into(), KnownPassword { salted_hash, digest });
        }
        is_right
    }

    /// The role that ADD IDENTITY bound to an identity.
    #[must_use]
    pub fn role_of(&self, identity: &str) -> Option<String> {
        self.load()
            .identities
            .get(identity)
            .map(|role| role.as_ref().to_owned())
    }

    /// Whether a role whose password or certificate was right may log in.
    ///
    /// # Errors
    /// The role may not log in.
    pub fn admit(&self, role: &str) -> Result<(), NoLogin> {
        if self.load().get(role).is_some_and(|role| role.can_login) {
            return Ok(());
        }
        Err(NoLogin::NotPermitted(role.to_owned()))
    }

    /// Whether clients' addresses are checked.
    #[must_use]
    pub const fn checks_addresses(&self) -> bool {
        self.checks_addresses
    }

    /// Whether a role may use a data center, and from this address, if addresses are checked.
    ///
    /// # Errors
    /// The role may not.
    pub fn admit_access(&self, role: &str, data_center: &str, address: IpAddr) -> Result<(), NoLogin> {
        let roles = self.load();
        if !roles.allows_data_center(role, data_center) {
            return Err(NoLogin::DataCenter(data_center.to_owned()));
        }
        if !self.checks_addresses || roles.allows_address(role, address) {
            return Ok(());
        }
        Err(NoLogin::Address(address))
    }

    /// The roles that are restricted to groups of addresses.
    #[must_use]
    pub fn restricted_to_addresses(&self) -> Vec<RoleName> {
        let roles = self.load();
        let is_restricted = |role: &Role| role.cidr_groups.as_ref().is_some_and(|groups| !groups.is_empty());
        let found = roles.by_name.iter().filter(|(_, role)| is_restricted(role));
        found.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Whether a role may read every keyspace, which figures of all keyspaces require.
    #[must_use]
    pub fn may_read_all(&self, role: &str) -> bool {
        self.load().allows(role, Permission::Select, &Resource::AllKeyspaces)
    }

    /// Whether a role has all permissions.
    #[must_use]
    pub fn is_superuser(&self, role: &str) -> bool {
        self.load().is_superuser(role)
    }

    pub(super) async fn with_superuser(&self, roles: &Roles, name: &str, password: String) -> Result<Roles, Error> {
        let hash = self.hash(password).await?;
        Ok(roles.with(name, |role| {
            role.can_login = true;
            role.is_superuser = true;
            role.salted_hash = Some(hash);
        }))
    }

    pub(super) async fn hash(&self, password: String) -> Result<String, Error> {
        let failed = || Error::Engine(engine::Error::Fault("a password cannot be hashed".to_owned()));
        let turn = self.turn().await.ok_or_else(failed)?;
        let salt = (self.hashing.salt)().ok_or_else(failed)?;
        let cost = self.hashing.cost;
        let hashed = tokio::task::spawn_blocking(move || {
            let hash = password::hash(&password, cost, salt);
            drop(turn);
            hash
        });
        hashed.await.ok().flatten().ok_or_else(failed)
    }
}
