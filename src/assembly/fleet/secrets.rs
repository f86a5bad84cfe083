//! The secret of a fleet: read from the bucket, and again from time to time, so that it can be changed while nodes run.

use std::sync::Arc;
use std::time::Duration;

use super::{OwnerOptions, drawn};
use crate::assembly::opening::RunError;
use crate::config::Config;
use helenus_base::tasks::Tasks;
use helenus_fleet::fleet::{Endpoint, Secret, Secrets, Tcp, Tls};
use helenus_storage::storage as store;
use store::bucket::{PeerSecrets, SecretChange};

/// How often a node reads the secret again.
const READ_EVERY: Duration = Duration::from_secs(30);

/// How long all nodes may take to read the next secret.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(75);

fn secrets_of(found: &PeerSecrets) -> Secrets {
    Secrets {
        current: Secret::new(found.current),
        other: found.next.map(Secret::new),
    }
}

/// The secrets in the bucket; draws the first.
///
/// # Errors
/// The bucket cannot be used.
pub(super) async fn read(owner: &OwnerOptions) -> Result<Secrets, RunError> {
    let (url, reach) = (&owner.engine.url, &owner.engine.store.reach);
    Ok(secrets_of(&store::bucket::peer_secrets(url, reach, drawn()?).await?))
}

/// Uses what the bucket has, from now on. `used` is used already.
pub(super) fn follow(tasks: &Tasks, owner: OwnerOptions, endpoint: Endpoint, tcp: Arc<Tcp>, mut used: Secrets) {
    tasks.until_stop("secret of the fleet", async move {
        loop {
            tokio::time::sleep(READ_EVERY).await;
            match read(&owner).await {
                Ok(found) if found == used => {}
                Ok(found) => match Tls::of(&found) {
                    Ok(tls) => {
                        tcp.set_tls(tls);
                        endpoint.set_secrets(found.clone());
                        used = found;
                        tracing::info!("the secret of the fleet changes");
                    }
                    Err(error) => tracing::error!(%error, "the secret of the fleet cannot be used"),
                },
                Err(error) => tracing::warn!(%error, "the secret of the fleet cannot be read"),
            }
        }
    });
}

/// Changes the secret of the fleet at a URL while its nodes run. `told` gets a line for each step. If it is interrupted, it can be begun again.
///
/// # Errors
/// The URL names no bucket, the bucket cannot be reached, or has no secret.
pub async fn change(url: &str, config: &Config, told: impl Fn(&str)) -> Result<(), RunError> {
    let url = super::super::opening::bucket_of(url)?;
    store::bucket::change_secret(&url, &config.reach, SecretChange::Begin(drawn()?)).await?;
    let seconds = KNOWN_WITHIN.as_secs();
    told(&format!(
        "the next secret is in the bucket; waiting {seconds} s until all nodes have read it"
    ));
    tokio::time::sleep(KNOWN_WITHIN).await;
    store::bucket::change_secret(&url, &config.reach, SecretChange::End).await?;
    told("the former secret is removed");
    Ok(())
}
