//! The claim of a prefix: a record of the fleet that the prefix belongs to.
//!
//! ```text
//! PREFIX/fleet/id     helenus fleet 1, slatedb 0.18 ⏎ <id, 16 hexadecimal digits> ⏎    put if absent, never changed
//! PREFIX/fleet/used   empty: there is a database                                       put after the first opening
//! ```

use futures::StreamExt;
use slatedb::object_store::path::Path;
use slatedb::object_store::{Error as StoreError, ObjectStoreExt, PutMode, PutPayload};

use super::check::{self, CHECK};
use super::found::refusal;
use super::{Reached, Refusal};

const ID: &str = "fleet/id";
const USED: &str = "fleet/used";
const FORMAT: &str = "helenus fleet 1, slatedb 0.18";

/// Whether the prefix is already claimed in this version's format. The request also shows whether the store can be
/// reached and used.
///
/// # Errors
/// The store cannot be reached, or another version claimed the prefix.
pub(in crate::storage) async fn is_reached(reached: &Reached) -> Result<bool, Refusal> {
    let failed = |error: StoreError| refusal(&error);
    let got = match reached.objects.get(&Path::from(ID)).await {
        Err(error @ StoreError::NotFound { .. }) => {
            return match refusal(&error) {
                Refusal::NoBucket => Err(Refusal::NoBucket),
                _ => Ok(false),
            };
        }
        got => got.map_err(failed)?.bytes().await.map_err(failed)?,
    };
    let text = String::from_utf8_lossy(&got);
    match text.lines().next() {
        Some(FORMAT) => Ok(true),
        found => Err(Refusal::OtherFormat {
            object: ID,
            found: found
                .unwrap_or_default()
                .chars()
                .filter(|c| !c.is_control())
                .take(80)
                .collect(),
            known: FORMAT,
        }),
    }
}

/// Claims the prefix, if it is not claimed: checks the bucket and puts the claim. Returns whether it was claimed
/// before.
///
/// # Errors
/// There are other objects below the prefix, the bucket is not fit, or it cannot be reached.
pub(in crate::storage) async fn claim(reached: &Reached, draw: u64) -> Result<bool, Refusal> {
    if is_reached(reached).await? {
        return Ok(true);
    }
    let mut listed = reached.objects.list(None);
    while let Some(meta) = listed.next().await {
        let meta = meta.map_err(|error| refusal(&error))?;
        if !meta.location.as_ref().starts_with(CHECK) {
            return Err(Refusal::NotOurs);
        }
    }
    drop(listed);
    let checked = check::check(reached, draw).await?;
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
    let body = PutPayload::from(format!("{FORMAT}\n{draw:016x}\n"));
    match reached
        .objects
        .put_opts(&Path::from(ID), body, PutMode::Create.into())
        .await
    {
        Ok(_) | Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
        Err(error) => return Err(refusal(&error)),
    }
    // Another process may have put its own claim, of another version.
    is_reached(reached).await
}

/// Whether there ever was a database below the prefix.
///
/// # Errors
/// The bucket cannot be reached.
pub(in crate::storage) async fn is_used(reached: &Reached) -> Result<bool, Refusal> {
    match reached.objects.head(&Path::from(USED)).await {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound { .. }) => Ok(false),
        Err(error) => Err(refusal(&error)),
    }
}

/// Records that there is a database.
///
/// # Errors
/// The bucket cannot be reached.
pub(in crate::storage) async fn mark_used(reached: &Reached) -> Result<(), Refusal> {
    let put = reached.objects.put(&Path::from(USED), PutPayload::new()).await;
    put.map(drop).map_err(|error| refusal(&error))
}
