//! Takes the latches of the physical partitions that are written to (`partition::latch`).
//!
//! This comes after the locks of logical partitions, and before anything is read that the write depends on. If a
//! partition is being moved the writer waits. If it has been moved since the request began, the writer continues with
//! the current partition map.

use std::sync::Arc;

use super::write::Routed;
use crate::engine::Error;
use crate::partition::{BatchKeys, Entry, PartitionLatch, Pass, TablePartitions};

/// Holds the latches of all partitions that a request writes to.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Most writes have one latch; this field avoids an allocation.
    first: Option<Pass>,
    more: Vec<Pass>,
    /// Whether the written table has views, whose rows derive from its rows.
    is_followed: bool,
}

/// A latch that a writer cannot take now.
pub(crate) enum Closed {
    Held(Arc<PartitionLatch>),
    Superseded,
}

impl Passes {
    /// Takes the latch of a partition.
    pub(crate) fn add(&mut self, latch: &Arc<PartitionLatch>) -> Result<(), Closed> {
        let mut inside = self.more.iter().rev().chain(&self.first);
        if inside.any(|pass| Arc::ptr_eq(pass.latch(), latch)) {
            return Ok(());
        }
        let pass = match latch.acquire() {
            Entry::Passed(pass) => pass,
            Entry::Held => return Err(Closed::Held(Arc::clone(latch))),
            Entry::Superseded => return Err(Closed::Superseded),
        };
        self.is_followed |= latch.is_followed();
        if self.first.is_none() {
            self.first = Some(pass);
        } else {
            self.more.push(pass);
        }
        Ok(())
    }

    /// Takes the latches of the partitions of these keys, which are served here.
    pub(in crate::engine) fn of<'a>(
        routed: impl Iterator<Item = (&'a TablePartitions, &'a [bytes::Bytes])>,
    ) -> Result<Self, Closed> {
        let mut passes = Self::default();
        for (partitions, keys) in routed {
            for key in keys {
                // A partition that has gone elsewhere is one that has been moved: the newest map says where it is.
                let (_, partition) = partitions.place(key);
                passes.add(&partition.here().ok_or(Closed::Superseded)?.latch)?;
            }
        }
        Ok(passes)
    }

    /// Whether the written table has views, whose rows derive from its rows.
    pub(crate) const fn are_followed(&self) -> bool {
        self.is_followed
    }

    /// Whether any of the partitions is being copied.
    pub(crate) fn are_copied(&self) -> bool {
        let mut passes = self.first.iter().chain(&self.more);
        passes.any(|pass| pass.latch().is_copied())
    }

    /// The keys of a batch that must be recorded for a running copy; empty if no copy is running.
    pub(crate) fn keys_to_record(&self, keys: impl FnOnce() -> BatchKeys) -> BatchKeys {
        if self.are_copied() {
            keys()
        } else {
            BatchKeys::default()
        }
    }

    /// Records keys that were written, or may have been if the commit failed, for a running copy. Called after the
    /// commit, since a copy of an earlier moment would miss the write. Called while the latch is held, since no move
    /// waits for the writer afterwards.
    pub(crate) fn record(&self, keys: &BatchKeys, is_done: bool) {
        if keys.is_empty() {
            return;
        }
        for pass in self.first.iter().chain(&self.more) {
            if pass.latch().is_copied() {
                pass.latch().record(keys.iter(), is_done);
            }
        }
    }

    /// Takes the latches of partitions of the current partition maps, and waits where it must. `latches` returns them by
    /// the newest maps.
    ///
    /// # Errors
    /// Those of `latches`.
    pub(crate) async fn wait<T>(
        mut latches: impl FnMut() -> Result<(T, Vec<Arc<PartitionLatch>>), Error>,
    ) -> Result<(T, Self), Error> {
        loop {
            let (found, latches) = latches()?;
            let mut passes = Self::default();
            match latches.iter().try_for_each(|latch| passes.add(latch)) {
                Ok(()) => return Ok((found, passes)),
                Err(closed) => {
                    drop(passes);
                    if let Closed::Held(latch) = closed {
                        latch.wait().await;
                    }
                    // The new partition map is published before the latches of the previous one are superseded.
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// The modifications with other partition maps, if there are any.
pub(crate) fn by_maps<'a>(
    modifications: &[Routed<'a>],
    maps: Option<&'a Vec<Arc<TablePartitions>>>,
) -> Option<Vec<Routed<'a>>> {
    let modifications = modifications.iter().zip(maps?);
    let by_maps = modifications.map(|(routed, partitions)| Routed { partitions, ..*routed });
    Some(by_maps.collect())
}
