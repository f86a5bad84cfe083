//! Roles: logins, permissions, and the statements that change them.
//!
//! ```text
//! AUTH_RESPONSE ─► RoleService::is_known, ::is_right ─► a role
//! request ───────► engine::Execution, by the current snapshot
//! CREATE ROLE … ─► statements::StatementChecker ─► store::statements ─► one logged batch ─► the next snapshot
//! ```
//! The snapshot is in memory; it is read from rows of `system_auth` at the start, and again when a client writes there.
//! Changes are made one at a time. The result of a failed change is resolved from the rows before the next change.

mod functions;
mod list;
mod refusal;
mod statements;
mod store;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use grammar::ast::Statement;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) use self::refusal::RoleRefusal;
use self::statements::{Change, Outcome, StatementChecker};
use super::answer::{Answer, AnswerKind, QueryParams, SessionState};
use super::database::{Database, Member};
use crate::cql::Error;
use helenus_engine::engine;
use helenus_engine::engine::RolesInForce;
use helenus_schema::command::{BatchKind, ChangeKind, ChangeTarget, SchemaChange};
use helenus_schema::roles::{CidrGroups, Denied, NoLogin, Permission, Resource, Role, RoleName, Roles, password};
use helenus_schema::schema::{Schema, system};

/// Maximum passwords that are hashed at the same time: each occupies a core for about 50 ms.
const HASHED_AT_ONCE: usize = 2;

/// Maximum statements of one batch; a change of more rows needs several batches.
const BATCH_STATEMENTS_MAX: usize = 1000;

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
    current: Arc<ArcSwap<Roles>>,
    changing: tokio::sync::Mutex<Doubt>,
    /// At most one for each role.
    known: Mutex<HashMap<RoleName, KnownPassword>>,
    turns: Arc<Semaphore>,
    hashing: Hashing,
    /// Whether clients' addresses are checked at each request.
    checks_addresses: bool,
    /// When passwords were last set, by role, within the last [`PASSWORD_CHANGE_INTERVAL`].
    set: Mutex<HashMap<RoleName, Duration>>,
}

/// Whether a change is in doubt: it failed, but may have been stored.
#[derive(Default)]
struct Doubt(bool);

impl std::fmt::Debug for RoleService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RoleService").finish_non_exhaustive()
    }
}

impl RoleService {
    fn new(hashing: Hashing, checks_addresses: bool) -> Self {
        Self {
            current: Arc::default(),
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
    fn limit_passwords(&self, name: &str, now: Duration) -> Result<(), RoleRefusal> {
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
    fn record_passwords(&self, before: &Roles, after: &Roles, now: Duration) {
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

    async fn with_superuser(&self, roles: &Roles, name: &str, password: String) -> Result<Roles, Error> {
        let hash = self.hash(password).await?;
        Ok(roles.with(name, |role| {
            role.can_login = true;
            role.is_superuser = true;
            role.salted_hash = Some(hash);
        }))
    }

    async fn hash(&self, password: String) -> Result<String, Error> {
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

impl Database {
    /// Requires roles of clients from now on: reads the stored ones, and creates the superuser of the options if there
    /// are none.
    ///
    /// # Errors
    /// Rows of `system_auth` cannot be read or written.
    pub async fn enable_roles(&self, options: RoleOptions) -> Result<FirstRole, Error> {
        let (name, password) = options.superuser;
        let service = Arc::new(RoleService::new(options.hashing, options.cidr_groups.is_some()));
        let stored = self.stored_roles().await?;
        let schema = self.engine().schema();
        let mut next = stored.without_resources(|resource| is_dropped(&schema, resource));
        let is_first = stored.by_name.is_empty();
        if is_first {
            self.remove_remains().await?;
            next = service.with_superuser(&next, &name, password.clone()).await?;
        }
        if let Some(groups) = options.cidr_groups {
            next.cidr_groups = Arc::new(groups);
        }
        self.store_roles(&stored, &next).await?;
        let is_there = next.contains(&name);
        service.current.store(Arc::new(next));
        let first = match service.turn().await {
            Some(turn) if is_there && !is_first => match service.is_right(&name, password.into_bytes(), turn).await {
                true => FirstRole::Right,
                false => FirstRole::OtherPassword,
            },
            _ if is_there => FirstRole::Right,
            _ => FirstRole::Missing,
        };
        self.engine().require_roles(RolesInForce {
            current: Arc::clone(&service.current),
            checks_addresses: service.checks_addresses,
        });
        drop(self.roles.set(service));
        Ok(first)
    }

    /// Sets a role's password and gives it the right to log in and all other rights; creates it if necessary. Returns
    /// whether the role is new. For a server that is not serving, when all passwords are lost.
    ///
    /// # Errors
    /// Rows of `system_auth` cannot be read or written.
    pub async fn set_superuser(&self, name: &str, password: String, hashing: Hashing) -> Result<bool, Error> {
        let service = RoleService::new(hashing, false);
        let stored = self.stored_roles().await?;
        if stored.by_name.is_empty() {
            self.remove_remains().await?;
        }
        let next = service.with_superuser(&stored, name, password).await?;
        self.store_roles(&stored, &next).await?;
        Ok(!stored.contains(name))
    }

    /// The roles, for logins. `None` means no role is required.
    #[must_use]
    pub fn roles(&self) -> Option<&Arc<RoleService>> {
        self.roles.get()
    }

    /// Executes a statement about roles.
    pub(super) async fn change_roles(
        &self,
        session: &SessionState,
        keyspace: Option<&str>,
        statement: &Statement,
    ) -> Result<Answer, Error> {
        let (Some(service), Some(role)) = (self.roles.get(), &session.user) else {
            return Err(RoleRefusal::Denied(Denied::Anonymous).into());
        };
        let mut doubt = service.changing.lock().await;
        self.resolve_roles(service, &mut doubt).await?;
        let roles = service.current.load_full();
        let outcome = {
            let schema = self.engine().schema();
            let checker = StatementChecker {
                roles: &roles,
                role,
                keyspace,
                schema: &schema,
                data_centers: &[self.engine().node().data_center.clone()],
            };
            checker.outcome(statement)?
        };
        match outcome {
            Outcome::Rows(None) => Ok(Answer::new(AnswerKind::Void)),
            Outcome::Rows(Some(list)) => Ok(Answer::new(AnswerKind::Rows(list.into_rows()))),
            Outcome::Change(Change {
                mut next,
                password,
                warning,
            }) => {
                let now = self.engine().clock().monotonic();
                let advice = password.as_ref().and_then(|(_, password)| password::advice(password));
                if let Some((name, password)) = password {
                    if roles.contains(&name) {
                        service.limit_passwords(&name, now)?;
                    }
                    let hash = service.hash(password).await?;
                    next = next.with(&name, |role| role.salted_hash = Some(hash));
                }
                service.record_passwords(&roles, &next, now);
                self.publish_roles(service, &mut doubt, &roles, next).await?;
                let mut answer = Answer::new(AnswerKind::Void);
                answer.warnings.extend(warning);
                answer.warnings.extend(advice);
                Ok(answer)
            }
        }
    }

    /// After a schema change: grants the creator permissions on a new object, and revokes all permissions on a dropped
    /// one.
    pub(super) async fn follow_schema(&self, session: &SessionState, change: &SchemaChange) -> Result<(), Error> {
        let Some(service) = self.roles.get() else {
            return Ok(());
        };
        let mut doubt = service.changing.lock().await;
        self.resolve_roles(service, &mut doubt).await?;
        let roles = service.current.load_full();
        let next = match (change.kind, &session.user) {
            (ChangeKind::Created, Some(creator)) => {
                let mut next = Roles::clone(&roles);
                for resource in created(&self.engine().schema(), change) {
                    next = next.granted(creator, &resource, resource.applicable());
                }
                next
            }
            (ChangeKind::Dropped, _) => {
                let schema = self.engine().schema();
                roles.without_resources(|resource| is_dropped(&schema, resource))
            }
            _ => return Ok(()),
        };
        self.publish_roles(service, &mut doubt, &roles, next).await
    }

    /// Reads the roles again, because a client or an import wrote rows of `system_auth`.
    pub async fn reload_roles(&self) -> Result<(), Error> {
        let Some(service) = self.roles.get() else {
            return Ok(());
        };
        let mut doubt = service.changing.lock().await;
        *doubt = Doubt(true);
        self.resolve_roles(service, &mut doubt).await
    }

    async fn resolve_roles(&self, service: &RoleService, doubt: &mut Doubt) -> Result<(), Error> {
        if doubt.0 {
            service.current.store(Arc::new(self.stored_roles().await?));
            *doubt = Doubt(false);
        }
        Ok(())
    }

    async fn publish_roles(
        &self,
        service: &RoleService,
        doubt: &mut Doubt,
        before: &Roles,
        next: Roles,
    ) -> Result<(), Error> {
        *doubt = Doubt(true);
        self.store_roles(before, &next).await?;
        service.current.store(Arc::new(next));
        *doubt = Doubt(false);
        Ok(())
    }

    /// Removes what an interrupted restore left of roles that are not there: a new role of such a name would have it.
    async fn remove_remains(&self) -> Result<(), Error> {
        let (session, params) = (SessionState::default(), QueryParams::default());
        for table in store::BESIDE_ROLES {
            let text = format!("SELECT * FROM {}.{table} LIMIT 1", system::AUTH);
            let answer = self.query(&session, &text, &params).await?;
            if matches!(answer.kind, AnswerKind::Rows(rows) if !rows.cells().is_empty()) {
                self.engine().truncate_own(system::AUTH, table).await?;
            }
        }
        Ok(())
    }

    async fn store_roles(&self, before: &Roles, after: &Roles) -> Result<(), Error> {
        let statements = store::statements(before, after);
        let (session, params) = (SessionState::default(), QueryParams::default());
        for some in statements.chunks(BATCH_STATEMENTS_MAX) {
            let members = some.iter().map(|text| (Member::Text(text.clone()), Vec::new()));
            self.batch(&session, BatchKind::Logged, members.collect(), &params)
                .await?;
        }
        Ok(())
    }

    /// Boxed with an explicit type, because a query may lead to a statement about roles, and that back here.
    fn stored_roles(&self) -> BoxFuture<'_, Result<Roles, Error>> {
        Box::pin(async {
            let mut read = [const { Vec::new() }; 6];
            for (query, cells) in store::QUERIES.into_iter().zip(&mut read) {
                let (session, params) = (SessionState::default(), QueryParams::default());
                let answer = self.query(&session, query, &params).await?;
                if let AnswerKind::Rows(rows) = answer.kind {
                    *cells = rows.cells();
                }
            }
            Ok(store::load(read))
        })
    }
}

/// The resources on which a creator is granted permissions.
fn created(schema: &Schema, change: &SchemaChange) -> Vec<Resource> {
    let keyspace = change.keyspace.as_str();
    match change.target {
        ChangeTarget::Keyspace => vec![
            Resource::Keyspace(keyspace.into()),
            Resource::AllFunctionsIn(keyspace.into()),
        ],
        // Cassandra grants nothing on a view to who makes it.
        ChangeTarget::Table
            if schema
                .keyspace(keyspace)
                .is_some_and(|of| of.views.contains_key(&change.name)) =>
        {
            Vec::new()
        }
        ChangeTarget::Table => vec![Resource::table(keyspace, &change.name)],
        ChangeTarget::Function | ChangeTarget::Aggregate => functions::changed(schema, change).into_iter().collect(),
        ChangeTarget::Type => Vec::new(),
    }
}

/// Whether a resource was dropped.
fn is_dropped(schema: &Schema, resource: &Resource) -> bool {
    match resource {
        Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::AllFunctionsIn(keyspace) => {
            !schema.keyspaces.contains_key(keyspace.as_ref())
        }
        Resource::Table(keyspace, table) => schema.table_or_view(keyspace, table).is_none(),
        Resource::Function(signature) => !functions::has_function(schema, signature),
        Resource::AllKeyspaces
        | Resource::AllRoles
        | Resource::Role(_)
        | Resource::AllFunctions
        | Resource::AllMbeans => false,
    }
}
