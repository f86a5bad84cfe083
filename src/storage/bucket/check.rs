//! Checks the guarantees of a bucket that the engine relies on: conditional puts of which one wins, listings that show
//! earlier puts, reads of parts, and objects that can be removed.
//!
//! SlateDB fences writers and orders manifests by conditional puts. A store that accepts two of them at once loses
//! acknowledged writes silently; so each race is run many times.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, Result as StoreResult,
    UpdateVersion,
};

use super::found::refusal;
use super::{Checked, Reached, Refusal};

/// Where the objects of checks are.
pub(super) const CHECK: &str = "fleet/check/";

const LISTED_OBJECTS: usize = 20;
const RACERS: usize = 8;
const RACE_ROUNDS: usize = 50;
/// Bytes of the object of which a part is read.
const PART_OF_BYTES: usize = 100_000;

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
    cleared.map_err(|error| refusal(&error))?;
    if let Some(rules) = &reached.rules {
        rules.check(&mut checked).await;
    }
    Ok(checked)
}

impl Check<'_> {
    async fn try_all(&self) -> StoreResult<Checked> {
        let trials = vec![
            ("an object is created once", self.create_once().await?),
            ("an object is replaced only by its tag", self.replace_by_tag().await?),
            ("an object is listed once it is put", self.list_after_put().await?),
            ("a part of an object is read", self.read_part().await?),
            ("an object is removed", self.remove().await?),
            ("one of eight creates it", self.race_to_create().await?),
            ("one of eight replaces it", self.race_to_replace().await?),
        ];
        Ok(Checked {
            trials,
            notes: Vec::new(),
        })
    }

    fn at(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.folder))
    }

    async fn create(&self, at: &Path, body: &str) -> StoreResult<PutResult> {
        let body = PutPayload::from(body.to_owned());
        self.objects.put_opts(at, body, PutMode::Create.into()).await
    }

    async fn replace(&self, at: &Path, body: &str, tag: UpdateVersion) -> StoreResult<PutResult> {
        let body = PutPayload::from(body.to_owned());
        self.objects.put_opts(at, body, PutMode::Update(tag).into()).await
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
        let removed = self.objects.delete(&at).await;
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
            let bodies: Vec<String> = (0..RACERS).map(|racer| format!("{round} {racer}")).collect();
            let raced = future::join_all(bodies.iter().map(|body| self.create(&at, body))).await;
            if let Some(wrong) = self.check_race(&at, &bodies, raced).await? {
                return Ok(Some(format!("{wrong} (round {round})")));
            }
        }
        Ok(None)
    }

    async fn race_to_replace(&self) -> Wrong {
        let at = self.at("replace");
        let mut current = tag(self.create(&at, "start").await?);
        for round in 0..RACE_ROUNDS {
            let bodies: Vec<String> = (0..RACERS).map(|racer| format!("{round} {racer}")).collect();
            let racers = bodies.iter().map(|body| self.replace(&at, body, current.clone()));
            let raced = future::join_all(racers).await;
            if let Some(wrong) = self.check_race(&at, &bodies, raced).await? {
                return Ok(Some(format!("{wrong} (round {round})")));
            }
            let meta = self.objects.head(&at).await?;
            current = UpdateVersion {
                e_tag: meta.e_tag,
                version: meta.version,
            };
        }
        Ok(None)
    }

    /// Whether exactly one racer won and the object has its body.
    async fn check_race(&self, at: &Path, bodies: &[String], raced: Vec<StoreResult<PutResult>>) -> Wrong {
        let mut winners = Vec::new();
        for (body, put) in bodies.iter().zip(raced) {
            match put {
                Ok(_) => winners.push(body),
                Err(error) if is_lost_race(&error) => {}
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
        let folder = Path::from(self.folder.as_str());
        let listed: Vec<StoreResult<Path>> = self
            .objects
            .list(Some(&folder))
            .map_ok(|meta| meta.location)
            .collect()
            .await;
        let removed = self.objects.delete_stream(futures::stream::iter(listed).boxed());
        removed.try_collect::<Vec<Path>>().await.map(drop)
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
