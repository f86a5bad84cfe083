//! Checks the guarantees of a bucket that the engine relies on: conditional puts of which one wins, listings that show
//! earlier puts, reads of parts, and objects that can be removed.
//!
//! SlateDB fences writers and orders manifests by conditional puts. A store that accepts two of them at once loses
//! acknowledged writes silently; so each race is run many times.
//!
//! Google Cloud Storage takes one change of an object a second and answers 429 to more of them, without doing them. So
//! the check waits and repeats what was answered so, and races for one object only once.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, Result as StoreResult,
    UpdateVersion,
};

use super::found::{is_answered, is_throttled, refusal};
use super::{Checked, Reached};
use crate::storage::bucket_refusal::Refusal;

/// Where the objects of checks are.
pub(super) const CHECK: &str = "fleet/check/";

const LISTED_OBJECTS: usize = 20;
const RACERS: usize = 8;
const RACE_ROUNDS: usize = 50;
/// Bytes of the object of which a part is read.
const PART_OF_BYTES: usize = 100_000;

/// Time until a store takes another change of an object. Google's is a second.
const THROTTLED_WAIT: Duration = Duration::from_millis(1_100);
/// How often a request that is answered 429 is repeated.
const THROTTLED_MAX: usize = 5;

/// The failure of a trial. `None` means that it passed.
type Wrong = StoreResult<Option<String>>;

struct Check<'b> {
    objects: &'b dyn ObjectStore,
    folder: String,
}

/// Checks a bucket, below `fleet/check/`, and removes its objects there.
///
/// # Errors
/// The bucket cannot be reached, or may not be written.
pub(super) async fn check(reached: &Reached, draw: u64) -> Result<Checked, Refusal> {
    let check = Check {
        objects: &*reached.objects,
        folder: format!("{CHECK}{draw:016x}"),
    };
    let tried = check.try_all().await;
    let cleared = check.clear().await;
    let mut checked = tried.map_err(|error| refusal(&error))?;
    // A store that is refused may be unable to list or remove, too.
    if checked.is_fit() {
        cleared.map_err(|error| refusal(&error))?;
    }
    if let Some(rules) = &reached.rules {
        rules.check(&mut checked).await;
    }
    Ok(checked)
}

impl Check<'_> {
    async fn try_all(&self) -> StoreResult<Checked> {
        let trials = vec![
            ("an object is created once", named(self.create_once().await)?),
            (
                "an object is replaced only by its tag",
                named(self.replace_by_tag().await)?,
            ),
            (
                "an object is listed once it is put",
                named(self.list_after_put().await)?,
            ),
            ("a part of an object is read", named(self.read_part().await)?),
            ("an object is removed", named(self.remove().await)?),
            ("one of eight creates it", named(self.race_to_create().await)?),
            ("one of eight replaces it", named(self.race_to_replace().await)?),
        ];
        Ok(Checked {
            trials,
            notes: Vec::new(),
        })
    }

    fn at(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.folder))
    }

    async fn put_once(&self, at: &Path, body: &str, mode: PutMode) -> StoreResult<PutResult> {
        let body = PutPayload::from(body.to_owned());
        self.objects.put_opts(at, body, mode.into()).await
    }

    /// As [`Self::put_once`], repeated while it is throttled.
    async fn put(&self, at: &Path, body: &str, mode: PutMode) -> StoreResult<PutResult> {
        for _ in 0..THROTTLED_MAX {
            match self.put_once(at, body, mode.clone()).await {
                Err(error) if is_throttled(&error) => tokio::time::sleep(THROTTLED_WAIT).await,
                answered => return answered,
            }
        }
        self.put_once(at, body, mode).await
    }

    async fn create(&self, at: &Path, body: &str) -> StoreResult<PutResult> {
        self.put(at, body, PutMode::Create).await
    }

    async fn replace(&self, at: &Path, body: &str, tag: UpdateVersion) -> StoreResult<PutResult> {
        self.put(at, body, PutMode::Update(tag)).await
    }

    async fn delete(&self, at: &Path) -> StoreResult<()> {
        for _ in 0..THROTTLED_MAX {
            match self.objects.delete(at).await {
                Err(error) if is_throttled(&error) => tokio::time::sleep(THROTTLED_WAIT).await,
                answered => return answered,
            }
        }
        self.objects.delete(at).await
    }

    async fn body(&self, at: &Path) -> StoreResult<Bytes> {
        self.objects.get(at).await?.bytes().await
    }

    async fn create_once(&self) -> Wrong {
        let at = self.at("once");
        self.create(&at, "first").await?;
        Ok(match self.create(&at, "second").await {
            Err(error) if is_lost_race(&error) => {
                (self.body(&at).await? != "first").then(|| "a refused put took effect".to_owned())
            }
            Err(error) => return Err(error),
            Ok(_) => Some("put-if-absent puts over an object that is there".to_owned()),
        })
    }

    async fn replace_by_tag(&self) -> Wrong {
        let at = self.at("tag");
        let first = tag(self.create(&at, "1").await?);
        self.replace(&at, "2", first.clone()).await?;
        Ok(match self.replace(&at, "3", first).await {
            Err(error) if is_lost_race(&error) => {
                (self.body(&at).await? != "2").then(|| "a refused put took effect".to_owned())
            }
            Err(error) => return Err(error),
            Ok(_) => Some("put-if-match takes a tag that is no longer the object's".to_owned()),
        })
    }

    async fn list_after_put(&self) -> Wrong {
        let folder = self.at("list");
        for number in 0..LISTED_OBJECTS {
            let at = self.at(&format!("list/{number:03}"));
            self.create(&at, "x").await?;
            let listed: Vec<Path> = self
                .objects
                .list(Some(&folder))
                .map_ok(|meta| meta.location)
                .try_collect()
                .await?;
            if !listed.contains(&at) || listed.len() != number + 1 {
                return Ok(Some("a list misses what was put before it".to_owned()));
            }
        }
        Ok(None)
    }

    async fn read_part(&self) -> Wrong {
        let at = self.at("part");
        let body: Vec<u8> = (0_u8..=250).cycle().take(PART_OF_BYTES).collect();
        self.objects.put(&at, PutPayload::from(body.clone())).await?;
        let got = self.objects.get_range(&at, 70_001..90_001).await?;
        let is_right = body.get(70_001..90_001).is_some_and(|part| got == part);
        Ok((!is_right).then(|| "a range of bytes is answered with other bytes".to_owned()))
    }

    async fn remove(&self) -> Wrong {
        let at = self.at("remove");
        self.create(&at, "x").await?;
        let removed = self.delete(&at).await;
        if let Err(error @ (StoreError::PermissionDenied { .. } | StoreError::Precondition { .. })) = &removed {
            return Ok(Some(format!(
                "it cannot be removed, by a permission that lacks or a retention: {}",
                refusal(error)
            )));
        }
        removed?;
        Ok(match self.objects.get(&at).await {
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
            Ok(_) => Some("it is still there after it was removed".to_owned()),
        })
    }

    async fn race_to_create(&self) -> Wrong {
        for round in 0..RACE_ROUNDS {
            let at = self.at(&format!("create/{round}"));
            if let Some(wrong) = self.race(&at, round, PutMode::Create).await? {
                return Ok(Some(wrong));
            }
        }
        Ok(None)
    }

    async fn race_to_replace(&self) -> Wrong {
        let at = |round| self.at(&format!("replace/{round}"));
        for round in 0..RACE_ROUNDS {
            self.create(&at(round), "start").await?;
        }
        for round in 0..RACE_ROUNDS {
            let at = at(round);
            let meta = self.objects.head(&at).await?;
            let current = UpdateVersion {
                e_tag: meta.e_tag,
                version: meta.version,
            };
            if let Some(wrong) = self.race(&at, round, PutMode::Update(current)).await? {
                return Ok(Some(wrong));
            }
        }
        Ok(None)
    }

    /// Puts an object several times at once. A race of which each put was throttled is run again.
    async fn race(&self, at: &Path, round: usize, mode: PutMode) -> Wrong {
        let bodies: Vec<String> = (0..RACERS).map(|racer| format!("{round} {racer}")).collect();
        let mut throttled = 0;
        let raced = loop {
            let racers = bodies.iter().map(|body| self.put_once(at, body, mode.clone()));
            let raced = future::join_all(racers).await;
            let is_won = raced.iter().any(Result::is_ok);
            let is_slowed = raced.iter().any(|put| put.as_ref().is_err_and(is_throttled));
            if is_won || !is_slowed || throttled == THROTTLED_MAX {
                break raced;
            }
            throttled += 1;
            tokio::time::sleep(THROTTLED_WAIT).await;
        };
        let wrong = self.check_race(at, &bodies, raced).await?;
        Ok(wrong.map(|wrong| format!("{wrong} (round {round})")))
    }

    /// Whether exactly one racer won and the object has its body.
    async fn check_race(&self, at: &Path, bodies: &[String], raced: Vec<StoreResult<PutResult>>) -> Wrong {
        let mut winners = Vec::new();
        for (body, put) in bodies.iter().zip(raced) {
            match put {
                Ok(_) => winners.push(body),
                Err(error) if is_lost_race(&error) || is_throttled(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let [winner] = winners.as_slice() else {
            return Ok(Some(format!(
                "{} of {RACERS} puts at once were answered as the winner",
                winners.len()
            )));
        };
        let is_there = self.body(at).await? == winner.as_bytes();
        Ok((!is_there).then(|| "the winner's body is not what is there".to_owned()))
    }

    async fn clear(&self) -> StoreResult<()> {
        for _ in 0..THROTTLED_MAX {
            match self.clear_once().await {
                Err(error) if is_throttled(&error) => tokio::time::sleep(THROTTLED_WAIT).await,
                cleared => return cleared,
            }
        }
        self.clear_once().await
    }

    async fn clear_once(&self) -> StoreResult<()> {
        let folder = Path::from(self.folder.as_str());
        let listed: Vec<StoreResult<Path>> = self
            .objects
            .list(Some(&folder))
            .map_ok(|meta| meta.location)
            .collect()
            .await;
        let removed = self.objects.delete_stream(futures::stream::iter(listed).boxed());
        let removed: Vec<StoreResult<Path>> = removed.collect().await;
        let failed = removed.into_iter().find_map(|removed| match removed {
            // The answer to an earlier attempt was lost.
            Ok(_) | Err(StoreError::NotFound { .. }) => None,
            Err(error) => Some(error),
        });
        failed.map_or(Ok(()), Err)
    }
}

/// Makes the store's refusal of a request the failure of the trial. Other errors say nothing about the store.
fn named(tried: Wrong) -> Wrong {
    match tried {
        Err(error) if is_answered(&error) => Ok(Some(match refusal(&error) {
            Refusal::Unreachable { .. } => "the client cannot read the store's answer".to_owned(),
            answered => answered.to_string(),
        })),
        tried => tried,
    }
}

fn tag(put: PutResult) -> UpdateVersion {
    UpdateVersion {
        e_tag: put.e_tag,
        version: put.version,
    }
}

fn is_lost_race(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }
    )
}
