//! How a process takes the log over, and reads its end.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt;
use slatedb::object_store::path::Path;
use slatedb::object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, Result as StoreResult};
use slatedb::wal::WalError;
use tokio::sync::{Notify, OnceCell, watch};

use super::object::Object;
use super::putting::{Put, run};
use super::{Database, Log, State, path};
use crate::storage::engine::slate::clock::Ticks;
use crate::storage::engine::slate::failures::carried;
use crate::storage::engine::slate::medium::Medium;
use crate::storage::engine::slate::places::SHARED_LOG;
use crate::storage::engine::slate::tuning;
use crate::storage::{Error, Options};

/// Objects that other processes may put while this one takes the log over.
const FENCES_MAX: u64 = 1000;

/// Objects that were read for the openings under way: databases that open together read each object once.
#[derive(Default)]
pub(super) struct Tail {
    objects: Mutex<HashMap<u64, Arc<OnceCell<Arc<Object>>>>>,
    openings: AtomicUsize,
}

/// An opening of a database that reads the log.
pub(super) struct Reading<'t>(&'t Tail);

impl Tail {
    pub(super) fn begin(&self) -> Reading<'_> {
        self.openings.fetch_add(1, Ordering::AcqRel);
        Reading(self)
    }

    fn cell(&self, number: u64) -> Arc<OnceCell<Arc<Object>>> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(objects.entry(number).or_default())
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if self.0.openings.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.objects.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// The number in an object's name. `None` means that it is not one of the log.
fn number(location: &Path) -> Option<u64> {
    location.filename()?.strip_suffix(".log")?.parse().ok()
}

/// The first number of those that follow each other up to the last one. Fences lie below it, alone.
fn lowest(numbers: &BTreeSet<u64>) -> u64 {
    let mut lowest = numbers.last().copied().unwrap_or(1);
    for number in numbers.iter().rev().skip(1) {
        if number + 1 != lowest {
            break;
        }
        lowest = *number;
    }
    lowest
}

impl Log {
    /// Takes over the log of a bucket that this process owns, and starts to put. `is_used`: it was used before, so there
    /// is an object.
    pub(in crate::storage::engine::slate) async fn open(
        medium: Arc<Medium>,
        location: Arc<str>,
        process: String,
        ticks: Arc<Ticks>,
        options: &Options,
        is_used: bool,
    ) -> StoreResult<Arc<Self>> {
        let wake = Arc::new(Notify::new());
        let log = Arc::new(Self {
            medium,
            location,
            process,
            ticks,
            interval: tuning::log_interval(options, true),
            state: Mutex::default(),
            wake: Arc::clone(&wake),
            progress: Notify::new(),
            stalled: watch::Sender::default(),
            is_slow: AtomicBool::default(),
            tail: Tail::default(),
            is_cleaning: AtomicBool::default(),
        });
        log.take_over(is_used).await?;
        tokio::spawn(run(Arc::downgrade(&log), wake));
        Ok(log)
    }

    /// Puts a fence after the last object.
    async fn take_over(&self, is_used: bool) -> StoreResult<()> {
        let listed: Vec<_> = self.medium.list(Some(&Path::from(SHARED_LOG))).try_collect().await?;
        let numbers: BTreeSet<u64> = listed.iter().filter_map(|meta| number(&meta.location)).collect();
        if is_used && numbers.is_empty() {
            let gone = Error::Corrupt {
                path: self.medium.file(&Path::from(SHARED_LOG)),
                what: "all objects of the log are gone, with acknowledged rows; restore a backup into a new prefix"
                    .to_owned(),
            };
            return Err(carried(gone, false));
        }
        let mut last = numbers.last().copied().unwrap_or(0);
        let lowest = lowest(&numbers);
        for _ in 0..FENCES_MAX {
            let newest = match last {
                0 => Object {
                    of: self.medium.number(),
                    ..Object::default()
                },
                number => self.read(number).await?,
            };
            let fence = Object {
                number: last + 1,
                process: self.process.clone(),
                parts: Vec::new(),
                ..newest.clone()
            };
            match self.put(last + 1, &fence.encode()).await {
                Put::Landed => {
                    self.ticks.raise_to(newest.millis);
                    let of = |(name, first)| {
                        let database = Database {
                            unwritten: [(first, u64::MAX)].into(),
                            ..Database::default()
                        };
                        (name, database)
                    };
                    *self.state() = State {
                        next: last + 2,
                        databases: newest.needs.into_iter().map(of).collect(),
                        millis: newest.millis,
                        lowest,
                        fence: last + 1,
                        ..State::default()
                    };
                    return Ok(());
                }
                Put::Fenced => last += 1,
                Put::Failed(error) => return Err(error),
            }
        }
        let taken = Error::TakenOver {
            location: self.location.to_string(),
        };
        Err(carried(taken, false))
    }

    /// Reads an object, which must exist.
    pub(super) async fn read(&self, number: u64) -> StoreResult<Object> {
        let found = self.find(number).await?;
        found.ok_or_else(|| {
            self.damaged(
                number,
                "it is gone, and was acknowledged; restore a backup into a new prefix",
            )
        })
    }

    /// Reads an object. `None` means that there is none of this number.
    pub(super) async fn find(&self, number: u64) -> StoreResult<Option<Object>> {
        let bytes = match self.medium.get(&path(number)).await {
            Ok(found) => found.bytes().await?,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let decoded = Object::decode(&bytes);
        let object = decoded.ok_or_else(|| self.damaged(number, "its bytes are not those of its checksum"))?;
        if object.of != self.medium.number() {
            Err(self.damaged(number, "it is an object of another database"))
        } else if object.number == number {
            Ok(Some(object))
        } else {
            Err(self.damaged(number, &format!("it is object {}", object.number)))
        }
    }

    fn damaged(&self, number: u64, what: &str) -> StoreError {
        let damaged = Error::Corrupt {
            path: self.medium.file(&path(number)),
            what: what.to_owned(),
        };
        carried(damaged, false)
    }

    /// Reads an object for an opening.
    pub(super) async fn read_once(&self, number: u64) -> Result<Arc<Object>, WalError> {
        let cell = self.tail.cell(number);
        let read = cell.get_or_try_init(|| async { self.read(number).await.map(Arc::new) });
        read.await
            .cloned()
            .map_err(|error| WalError::Unavailable(Arc::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_that_were_kept_are_not_of_the_log() {
        for (numbers, expected) in [
            (vec![], 1),
            (vec![7], 7),
            (vec![1, 2, 3], 1),
            (vec![1, 40, 90, 91, 92], 90),
            (vec![1, 2, 5], 5),
        ] {
            assert_eq!(lowest(&BTreeSet::from_iter(numbers)), expected);
        }
    }
}
