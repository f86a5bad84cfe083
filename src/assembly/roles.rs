//! Roles of a server that starts, and of a stopped one, as its settings and its randomness define them.

use std::sync::Arc;

use super::opening::{RunError, open_alone};
use crate::config::Config;
use crate::server::identity::IdentityError;
use crate::server::{Credentials, DEFAULT_ROLE};
use helenus_base::clock::Clock;
use helenus_cql::cql::{Database, FirstRole, Hashing, RoleOptions, RoleService};

/// Switches logins on; `superuser` comes from the settings.
pub(super) async fn enable(
    config: &Config,
    database: &Database,
    superuser: Credentials,
) -> Result<Option<Arc<RoleService>>, RunError> {
    let is_default = superuser.user == DEFAULT_ROLE && superuser.password == DEFAULT_ROLE;
    let user = superuser.user.clone();
    let options = RoleOptions {
        superuser: (superuser.user, superuser.password),
        hashing: hashing(config.password_cost)?,
        cidr_groups: config.cidr_groups.clone(),
    };
    let first = database.enable_roles(options).await.map_err(failed(config))?;
    match first {
        FirstRole::Right if is_default => tracing::warn!(
            "the role {DEFAULT_ROLE} still has its default password, which is taken from this machine only: change it with \
             ALTER ROLE {DEFAULT_ROLE} WITH PASSWORD = '...'"
        ),
        FirstRole::OtherPassword if !is_default => tracing::warn!(
            %user,
            "password-file differs from the stored password of this role, which stays valid; `helenus passwd` changes it"
        ),
        FirstRole::Missing if !is_default => tracing::warn!(
            %user,
            "the setting user names no role: only the first start creates it; `helenus passwd` creates it now"
        ),
        FirstRole::Right | FirstRole::OtherPassword | FirstRole::Missing => {}
    }
    let roles = database.roles().cloned();
    let restricted = roles
        .as_ref()
        .map(|roles| roles.restricted_to_addresses())
        .unwrap_or_default();
    if config.cidr_groups.is_none() && !restricted.is_empty() {
        tracing::warn!(
            roles = restricted.join(", "),
            "ACCESS FROM CIDRS of these roles is not checked, because the setting cidr-groups is not set"
        );
    }
    Ok(roles)
}

/// Gives a role of a store that no server has open this password, the right to log in and all other rights. Returns
/// whether the role is new.
///
/// # Errors
/// The data cannot be opened or written, or the system gives no randomness.
pub async fn set_superuser(
    config: &Config,
    role: &str,
    password: String,
    clock: Clock,
    seed: u64,
) -> Result<bool, RunError> {
    let hashing = hashing(config.password_cost)?;
    let database = open_alone(config, clock, seed).await?;
    let set = database.set_superuser(role, password, hashing).await;
    let closed = database.close().await;
    let is_new = set.map_err(failed(config))?;
    closed.map_err(|error| failed(config)(error.into()))?;
    Ok(is_new)
}

fn failed(config: &Config) -> impl FnOnce(helenus_cql::cql::Error) -> RunError {
    |source| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source),
    }
}

/// How passwords are hashed: salts and the key are secrets, so they come from the system's randomness.
fn hashing(cost: u32) -> Result<Hashing, IdentityError> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(IdentityError::Randomness)?;
    let salt = || {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).ok().map(|()| salt)
    };
    Ok(Hashing { cost, salt, key })
}
