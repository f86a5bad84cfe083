//! The claim of a prefix: a record of the fleet that the prefix belongs to.
//!
//! ```text
//! PREFIX/fleet/id     helenus store 5, slatedb 0.18 ⏎ identity 0123456789abcdef/0 ⏎ log shared ⏎ profile cosmos ⏎
//!                     the format, the database's number and its profile, see `identity.rs`; "log own": each database
//!                     has a log of its own     put if absent; replaced only by the owner of the lease, to change the profile
//! PREFIX/fleet/used   empty: there is a database                                       put after the first opening
//!                     "restoring": a backup is being restored into it              replaced once all is durable
//! ```

use futures::StreamExt;
use slatedb::object_store::path::Path;
use slatedb::object_store::{Error as StoreError, ObjectStoreExt, PutMode, PutPayload};

use super::Reached;
use super::check::{self, CHECK};
use super::found::refusal;
use crate::storage::bucket_refusal::Refusal;
use crate::storage::identity::{AskedProfile, Identity, MAIN, SLATE, profile_of_line};

const ID: &str = "fleet/id";
const USED: &str = "fleet/used";
/// Where the log of each database is, and the line of a claim that says so.
const LOGS: [(Logs, &str); 2] = [(Logs::Own, "log own"), (Logs::Shared, "log shared")];

/// What a claim says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Claim {
    pub(in crate::storage) logs: Logs,
    /// The main store of the database.
    pub(in crate::storage) identity: Identity,
    /// The name of its profile.
    profile: Option<String>,
}

impl Claim {
    /// The text of the claim, with this profile.
    fn text(&self, profile: Option<AskedProfile>) -> String {
        let logs = LOGS.iter().find(|(logs, _)| *logs == self.logs);
        let log = logs.map_or("", |(_, line)| line);
        let profile = profile.map(|asked| format!("{}\n", asked.line())).unwrap_or_default();
        format!("{SLATE}\n{}\n{log}\n{profile}", self.identity.line())
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let identity = Identity::of_line(lines.next()?)?;
        let log = lines.next()?;
        let (logs, _) = LOGS.iter().find(|(_, line)| *line == log)?;
        let profile = lines.next();
        let named = profile.and_then(profile_of_line);
        let is_whole = identity.store == MAIN && named.is_some() == profile.is_some() && lines.next().is_none();
        let claim = Self {
            logs: *logs,
            identity,
            profile: named.map(str::to_owned),
        };
        is_whole.then_some(claim)
    }

    /// Whether the claim has to be put anew with this profile.
    ///
    /// # Errors
    /// [`Refusal::OtherProfile`]
    pub(in crate::storage) fn is_to_record(&self, asked: Option<AskedProfile>) -> Result<bool, Refusal> {
        let is_to_record = asked.map(|asked| asked.is_to_record(self.profile.as_deref()));
        Ok(is_to_record.transpose()?.unwrap_or(false))
    }

    /// Puts the claim with this profile. Only the owner of the lease does it.
    ///
    /// # Errors
    /// The bucket cannot be reached.
    pub(in crate::storage) async fn record(
        &self,
        reached: &Reached,
        asked: Option<AskedProfile>,
    ) -> Result<(), Refusal> {
        let put = reached.objects.put(&Path::from(ID), self.text(asked).into()).await;
        put.map(drop).map_err(|error| refusal(&error))
    }
}

/// Where the commits of a bucket's databases are logged. Decided when the prefix is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Logs {
    /// Each database has a log of its own.
    Own,
    /// All share one (`engine/slate/log.rs`).
    Shared,
}

/// The claim of the prefix; `None` means that there is none. The request also shows whether the store can be reached and
/// used.
///
/// # Errors
/// The store cannot be reached, or another version claimed the prefix.
pub(in crate::storage) async fn claimed(reached: &Reached) -> Result<Option<Claim>, Refusal> {
    let failed = |error: StoreError| refusal(&error);
    let got = match reached.objects.get(&Path::from(ID)).await {
        Err(error @ StoreError::NotFound { .. }) => {
            return match refusal(&error) {
                Refusal::NoBucket => Err(Refusal::NoBucket),
                _ => Ok(None),
            };
        }
        got => got.map_err(failed)?.bytes().await.map_err(failed)?,
    };
    let text = String::from_utf8_lossy(&got);
    let found = text.lines().next().unwrap_or_default();
    if found != SLATE {
        return Err(Refusal::OtherFormat {
            object: ID,
            found: found.chars().filter(|c| !c.is_control()).take(80).collect(),
            known: SLATE,
        });
    }
    let claim = Claim::of_text(&text);
    claim.map(Some).ok_or(Refusal::DamagedClaim { object: ID })
}

/// Refuses an unclaimed prefix that has objects, which are another program's, and one within the prefix of another
/// database, which may remove objects below its own.
///
/// # Errors
/// There are objects below the prefix, or a database above it; the bucket cannot be reached.
pub(super) async fn refuse_others(reached: &Reached) -> Result<(), Refusal> {
    let mut listed = reached.objects.list(None);
    while let Some(meta) = listed.next().await {
        let meta = meta.map_err(|error| refusal(&error))?;
        if !meta.location.as_ref().starts_with(CHECK) {
            return Err(Refusal::NotOurs);
        }
    }
    for (prefix, objects) in &reached.above {
        match objects.head(&Path::from(ID)).await {
            Ok(_) => {
                return Err(Refusal::Within {
                    prefix: prefix.to_string(),
                });
            }
            Err(StoreError::NotFound { .. }) => {}
            // The credentials may be for this prefix alone.
            Err(StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. }) => {}
            Err(error) => return Err(refusal(&error)),
        }
    }
    Ok(())
}

/// How a prefix is claimed.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) struct Wish {
    /// The number of the new database, and of the check.
    pub(in crate::storage) draw: u64,
    /// Where it logs.
    pub(in crate::storage) logs: Logs,
    /// Its profile; `None` means that none is recorded.
    pub(in crate::storage) profile: Option<AskedProfile>,
}

/// Claims the prefix, if it is not claimed: checks the bucket and puts the claim, as wanted. Returns what is claimed.
///
/// # Errors
/// There are other objects below the prefix or a database above it, the bucket is not fit, or it cannot be reached.
pub(in crate::storage) async fn claim(reached: &Reached, wish: Wish) -> Result<Claim, Refusal> {
    if let Some(claim) = claimed(reached).await? {
        return Ok(claim);
    }
    refuse_others(reached).await?;
    tracing::info!("checking whether the bucket can keep a database; this is done once, and takes some seconds");
    let checked = check::check(reached, wish.draw).await?;
    for note in &checked.notes {
        tracing::warn!(note, "the bucket was checked");
    }
    let failed: Vec<String> = checked
        .trials
        .into_iter()
        .filter_map(|(trial, wrong)| wrong.map(|wrong| format!("{trial}: {wrong}")))
        .collect();
    if !failed.is_empty() {
        return Err(Refusal::Unfit { failed });
    }
    let wanted = Claim {
        logs: wish.logs,
        identity: Identity {
            database: wish.draw,
            store: MAIN,
        },
        profile: wish.profile.map(|asked| asked.name.to_owned()),
    };
    let body = PutPayload::from(wanted.text(wish.profile));
    match reached
        .objects
        .put_opts(&Path::from(ID), body, PutMode::Create.into())
        .await
    {
        Ok(_) | Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
        Err(error) => return Err(refusal(&error)),
    }
    // Another process may have put its own claim, of another version.
    Ok(claimed(reached).await?.unwrap_or(wanted))
}

/// What the mark of a database says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum Mark {
    /// A backup is being restored into the database, or its restore was interrupted.
    BeingRestored,
    /// There is a database.
    Used,
}

/// Whether there ever was a database below the prefix.
///
/// # Errors
/// [`Refusal::BeingRestored`]; the bucket cannot be reached.
pub(in crate::storage) async fn is_used(reached: &Reached) -> Result<bool, Refusal> {
    match reached.objects.head(&Path::from(USED)).await {
        Ok(mark) if mark.size > 0 => Err(Refusal::BeingRestored),
        Ok(_) => Ok(true),
        Err(StoreError::NotFound { .. }) => Ok(false),
        Err(error) => Err(refusal(&error)),
    }
}

/// Records that there is a database, or that one is being restored.
///
/// # Errors
/// The bucket cannot be reached.
pub(in crate::storage) async fn mark(reached: &Reached, mark: Mark) -> Result<(), Refusal> {
    let body = match mark {
        Mark::BeingRestored => "restoring",
        Mark::Used => "",
    };
    let put = reached.objects.put(&Path::from(USED), body.into()).await;
    put.map(drop).map_err(|error| refusal(&error))
}
