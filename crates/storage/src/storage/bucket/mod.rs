//! Buckets of S3, Azure Blob Storage and Google Cloud Storage: their names, connections, checks, and our marks in them.
//!
//! ```text
//! s3://bucket/prefix                       credentials, region as the AWS tools take them (environment, files, roles)
//! az://account/container/prefix            az://emulator/… is Azurite, with its well-known key
//! gs://bucket/prefix                       credentials as gcloud keeps them, or a service account's
//!
//! PREFIX/fleet/id                          the fleet that owns the prefix (claim.rs): put once, replaced only to change the profile
//! PREFIX/fleet/used                        marks that there is a database, or that one is being restored
//! PREFIX/fleet/owner                       the server that has it open (lease.rs): replaced by its tag only
//! PREFIX/fleet/secret                      by which its nodes know each other (secret.rs): put once, replaced by its tag only
//! PREFIX/fleet/check/<draw>/…              objects of a check (check.rs), removed at its end
//! PREFIX/engine/… PREFIX/stores/N/…        databases, as in `slate+file:` (engine/slate/places.rs)
//! PREFIX/log/…                             the log that they share, if there are several (engine/slate/log.rs)
//! ```
//! **Life of an opening.** [`Url`] and [`Reach`] make a client (connect.rs). The claim is read: a failure there
//! gives one sentence about bucket, permission, region or credentials ([`Refusal`]). If there is no claim, nothing else
//! may lie below the prefix; then the bucket is checked, and the claim is put. Then the lease is acquired (owner.rs),
//! and kept until the last store is closed. Before the lease is held, nothing else is written, and only objects of the
//! check are deleted.
//!
//! **Invariants.** No credential is part of a URL, a setting or an error. A store's answer is classified, never
//! repeated: an error shows only its HTTP status and error code.
//!
//! **Deliberately absent.** A check of the lifecycle rules of Azure and Google: the protocol of blobs does not have
//! them.

#[cfg(feature = "slate")]
mod check;
#[cfg(feature = "slate")]
mod claim;
#[cfg(feature = "slate")]
mod connect;
#[cfg(feature = "slate")]
mod counted;
#[cfg(feature = "slate")]
mod files;
#[cfg(feature = "slate")]
mod found;
#[cfg(feature = "slate")]
mod lease;
#[cfg(feature = "slate")]
mod owner;
mod peers;
#[cfg(feature = "slate")]
mod removal;
#[cfg(feature = "slate")]
mod rules;
#[cfg(feature = "slate")]
mod secret;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "slate")]
pub(super) use self::claim::{Logs, Mark, Wish, claim, claimed, is_used, mark};
#[cfg(feature = "slate")]
pub(super) use self::connect::Reached;
#[cfg(feature = "slate")]
pub(super) use self::found::refusal;
#[cfg(feature = "slate")]
pub(super) use self::owner::Owner;
pub use self::peers::{PeerSecrets, SecretBytes, SecretChange};

use super::bucket_refusal::Refusal;
use super::{Error, Result, Url};

/// Settings for reaching and checking a bucket, besides its address and credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// `http://HOST:PORT` or `https://HOST:PORT` of a store that is not the cloud's own. `None` means the cloud's.
    pub endpoint: Option<String>,
    /// The bucket's region. `None` means the environment's.
    pub region: Option<String>,
    /// Whether the bucket is part of the host's name; otherwise it is part of the path.
    pub is_virtual_hosted: bool,
    /// How S3 encrypts objects.
    pub encryption: Encryption,
    /// PEM file of certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// How long this server's lease lasts. `None` means 2.5 s.
    pub lease: Option<Duration>,
    /// The name of this server, which appears in the messages of another server that requests the same prefix.
    pub name: String,
    /// The address at which this server serves.
    pub address: String,
    /// A random number that identifies this process's claim and check.
    pub draw: u64,
    /// What the holder of the lease has said of it. `None` means that nothing is known but what the bucket has.
    pub heard: Option<HeardLease>,
}

/// One put of a lease, by its holder's count. No two puts of a prefix have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePut {
    /// Identifies the acquisition.
    pub incarnation: String,
    /// Number of puts of the incarnation, including this one.
    pub number: u64,
}

/// A put of which its holder has told that it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardLease {
    /// The put.
    pub put: LeasePut,
    /// How long ago it was heard, by a clock that counts the machine's sleep.
    pub age: Duration,
}

/// Encryption by S3, by the header of each put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// The bucket's own default encryption.
    #[default]
    Bucket,
    /// By S3's own keys (SSE-S3).
    Sse,
    /// By a key of KMS. `None` means the account's own.
    Kms(Option<String>),
}

impl FromStr for Encryption {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        match text.split_once(':') {
            None if text == "bucket" => Ok(Self::Bucket),
            None if text == "sse" => Ok(Self::Sse),
            None if text == "kms" => Ok(Self::Kms(None)),
            Some(("kms", key)) if !key.is_empty() => Ok(Self::Kms(Some(key.to_owned()))),
            _ => Err(Refusal::Setting {
                what: "bucket-encryption is one of bucket, sse, kms, kms:KEY".to_owned(),
            }),
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The trials, in order; each with what went wrong, or `None` if nothing did.
    pub trials: Vec<(&'static str, Option<String>)>,
    /// Rules that could not be checked, a sentence each.
    pub notes: Vec<String>,
}

impl Checked {
    /// Whether the bucket may be used.
    #[must_use]
    pub fn is_fit(&self) -> bool {
        self.trials.iter().all(|(_, wrong)| wrong.is_none())
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (trial, wrong) in &self.trials {
            writeln!(out, "{trial}: {}", wrong.as_deref().unwrap_or("ok"))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
    }
}

/// A client of the bucket, and what makes its refusals errors of this URL.
#[cfg(feature = "slate")]
fn reached(url: &Url, reach: &Reach) -> Result<(Reached, impl Fn(Refusal) -> Error)> {
    let Url::Bucket(address) = url else {
        return Err(Error::NoBucket { url: url.to_string() });
    };
    let refused = |refusal| Error::Bucket {
        url: url.to_string(),
        refusal,
    };
    let reached = Reached::new(address, reach).map_err(refused)?;
    Ok((reached, refused))
}

/// Checks whether a bucket keeps what the engine relies on. Writes and removes objects below `PREFIX/fleet/check/`
/// only.
///
/// # Errors
/// The URL names no bucket, the prefix has another program's objects, or the bucket cannot be reached.
#[cfg(feature = "slate")]
pub async fn check(url: &Url, reach: &Reach) -> Result<Checked> {
    let (reached, refused) = reached(url, reach)?;
    if claimed(&reached).await.map_err(&refused)?.is_none() {
        claim::refuse_others(&reached).await.map_err(&refused)?;
    }
    check::check(&reached, reach.draw).await.map_err(refused)
}

/// Whether there is a database below the prefix.
///
/// # Errors
/// As [`check`].
#[cfg(feature = "slate")]
pub async fn is_there(url: &Url, reach: &Reach) -> Result<bool> {
    let (reached, refused) = reached(url, reach)?;
    Ok(claimed(&reached).await.map_err(&refused)?.is_some() && is_used(&reached).await.map_err(refused)?)
}

/// The secrets of the fleet that owns a prefix; if it has none yet, `draw` becomes its secret. Only for a server that has
/// found the prefix claimed.
///
/// # Errors
/// The URL names no bucket, the bucket cannot be reached, or the object is damaged or another version's.
#[cfg(feature = "slate")]
pub async fn peer_secrets(url: &Url, reach: &Reach, draw: SecretBytes) -> Result<PeerSecrets> {
    let (reached, refused) = reached(url, reach)?;
    secret::secrets(&reached, draw).await.map_err(refused)
}

/// Carries out one step of the change of a fleet's secret; returns the secrets after it.
///
/// # Errors
/// As [`peer_secrets`]; or there is no secret yet.
#[cfg(feature = "slate")]
pub async fn change_secret(url: &Url, reach: &Reach, change: SecretChange) -> Result<PeerSecrets> {
    let (reached, refused) = reached(url, reach)?;
    secret::change(&reached, change).await.map_err(refused)
}

/// The server that has or had the lease of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// The address that it told.
    pub address: String,
    /// Whether it has not released the lease. It may be dead.
    pub is_live: bool,
}

/// Who has, or had last, the lease of the prefix. `None` means that nobody had it.
///
/// # Errors
/// As [`check`].
#[cfg(feature = "slate")]
pub async fn holder(url: &Url, reach: &Reach) -> Result<Option<Holder>> {
    let (reached, refused) = reached(url, reach)?;
    owner::holder(&reached).await.map_err(refused)
}

/// The identity of the database below the prefix. `None` means that there is none.
///
/// # Errors
/// As [`check`].
#[cfg(feature = "slate")]
pub async fn cluster(url: &Url, reach: &Reach) -> Result<Option<String>> {
    let (reached, refused) = reached(url, reach)?;
    let claim = claimed(&reached).await.map_err(refused)?;
    Ok(claim.map(|claim| claim.identity.line()))
}

/// Ends a restore into a bucket ([`super::Options::is_restored_into`]): all is restored and durable.
///
/// # Errors
/// The bucket cannot be reached; the database stays refused.
#[cfg(feature = "slate")]
pub async fn end_restore(url: &Url, reach: &Reach) -> Result<()> {
    let (reached, refused) = reached(url, reach)?;
    mark(&reached, Mark::Used).await.map_err(refused)
}

/// Whether the stores of this data share one log, or would if it were begun now: the data is in a bucket whose prefix is
/// not claimed, or was claimed so.
///
/// # Errors
/// The bucket cannot be reached.
#[cfg(feature = "slate")]
pub async fn shares_log(url: &Url, reach: &Reach) -> Result<bool> {
    if !matches!(url, Url::Bucket(_)) {
        return Ok(false);
    }
    let (reached, refused) = reached(url, reach)?;
    let claim = claimed(&reached).await.map_err(refused)?;
    Ok(claim.is_some_and(|claim| claim.logs == Logs::Shared))
}

/// Without buckets no log is shared.
///
/// # Errors
/// Never.
#[cfg(not(feature = "slate"))]
pub async fn shares_log(_: &Url, _: &Reach) -> Result<bool> {
    Ok(false)
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn peer_secrets(url: &Url, reach: &Reach, draw: SecretBytes) -> Result<PeerSecrets> {
    let next = None;
    check(url, reach).await.map(|_| PeerSecrets { current: draw, next })
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn change_secret(url: &Url, reach: &Reach, _: SecretChange) -> Result<PeerSecrets> {
    peer_secrets(url, reach, SecretBytes::default()).await
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn end_restore(url: &Url, reach: &Reach) -> Result<()> {
    check(url, reach).await.map(drop)
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn is_there(url: &Url, reach: &Reach) -> Result<bool> {
    check(url, reach).await.map(|_| false)
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn holder(url: &Url, reach: &Reach) -> Result<Option<Holder>> {
    check(url, reach).await.map(|_| None)
}

/// As [`check`].
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn cluster(url: &Url, reach: &Reach) -> Result<Option<String>> {
    check(url, reach).await.map(|_| None)
}

/// The check in a build without buckets.
///
/// # Errors
/// Always.
#[cfg(not(feature = "slate"))]
pub async fn check(url: &Url, _: &Reach) -> Result<Checked> {
    Err(Error::WithoutFeature {
        url: url.to_string(),
        feature: "slate",
    })
}

#[cfg(feature = "slate")]
#[cfg(test)]
mod tests;
