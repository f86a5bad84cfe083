//! The view rows that derive from writes to base tables.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

use super::rows::{Key, values_of};
use crate::engine::followed::Followed;
use crate::engine::row::dropped;
use crate::engine::snapshot::Snapshot;
use crate::engine::{Error, storage_read};
use crate::partition::rows::{DecodedChange, RowPlace, row_place};
use crate::partition::{Hosted, LogicalPartition, RowKey};
use helenus_base::mutant::{self, Mutant};
use helenus_schema::schema::{StorageId, Table};
use helenus_storage::storage::deletion::Covered;
use helenus_storage::storage::{Deletion, Deletions, RangeTombstone, Row};
use helenus_types::token::Token;

/// Writes to base tables, or base rows to check.
#[derive(Default)]
pub(crate) struct Touched(BTreeMap<(StorageId, Bytes), TouchedPartition>);

#[derive(Default)]
struct TouchedPartition {
    rows: BTreeMap<Vec<u8>, TouchedRow>,
    deletions: Deletions,
}

#[derive(Default)]
struct TouchedRow {
    /// The columns of the row that are written.
    written: Row,
    /// Keys in views that may have a row of it.
    rechecked: Vec<(StorageId, Key)>,
    /// Whether its rows in views are written even if they do not change.
    is_made_anew: bool,
}

/// The row that a view is to have under a key.
pub(crate) struct ViewRow {
    pub(crate) view: Arc<Table>,
    pub(crate) partition: Arc<Hosted>,
    pub(crate) token: Token,
    pub(crate) partition_key: Bytes,
    clustering: Vec<u8>,
    row: Row,
    pub(crate) is_removed: bool,
}

impl ViewRow {
    /// Whether the key is too long for any store, so that the row cannot exist.
    pub(crate) fn is_impossible(&self) -> Result<bool, Error> {
        Ok(self.logical()?.1.is_too_long())
    }

    /// The key of the row, and its new content.
    pub(crate) fn logical(&self) -> Result<(LogicalPartition<'_>, RowKey, &Row), Error> {
        let logical = self
            .partition
            .logical(self.view.storage_id, self.token, &self.partition_key)?;
        let key = logical.prefix().row(&self.clustering);
        Ok((logical, key, &self.row))
    }
}

impl Touched {
    /// Adds a partial row of a base table with views.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, change: DecodedChange) {
        match change {
            DecodedChange::Row { place, row: written } if snapshot.followed(place.table).is_some() => {
                if let Some(row) = self.row(place) {
                    row.written = Row::merge(std::mem::take(&mut row.written), written);
                }
            }
            DecodedChange::Deletion {
                table,
                partition_key,
                covered,
                deletion,
            } if snapshot.followed(table).is_some() => {
                let deletions = &mut self.0.entry((table, partition_key)).or_default().deletions;
                match covered {
                    Covered::Partition => deletions.partition = deletions.partition.max(Some(deletion)),
                    Covered::Range { start, end } => deletions.ranges.push(RangeTombstone { start, end, deletion }),
                }
            }
            DecodedChange::Row { .. } | DecodedChange::Deletion { .. } | DecodedChange::Nothing => {}
        }
    }

    fn row(&mut self, place: RowPlace) -> Option<&mut TouchedRow> {
        let clustering = place.clustering?;
        let partition = self.0.entry((place.table, place.partition_key)).or_default();
        Some(partition.rows.entry(clustering).or_default())
    }

    /// Adds a base row whose rows in views will be computed again.
    ///
    /// # Errors
    /// The key is damaged.
    pub(crate) fn make_anew(&mut self, key: &[u8]) -> Result<(), Error> {
        let place = row_place(key).map_err(|error| storage_read(&error))?;
        if let Some(row) = self.row(place) {
            row.is_made_anew = true;
        }
        Ok(())
    }

    /// Adds the key of a view's row that will be computed again.
    ///
    /// # Errors
    /// The key is damaged.
    pub(crate) fn recheck(&mut self, snapshot: &Snapshot, key: &[u8]) -> Result<(), Error> {
        let place = row_place(key).map_err(|error| storage_read(&error))?;
        // The view may have been dropped.
        let Some(followed) = snapshot.followed_by(place.table) else {
            return Ok(());
        };
        let mut views = followed.views.iter();
        let following = views.find(|following| following.view.storage_id == place.table);
        let (Some(following), Some(clustering)) = (following, place.clustering) else {
            return Ok(());
        };
        let key = Key {
            partition_key: place.partition_key,
            clustering,
        };
        if let Some(base) = following.base_key(&followed.base, &key)? {
            let partition = self
                .0
                .entry((followed.base.storage_id, base.partition_key))
                .or_default();
            let row = partition.rows.entry(base.clustering).or_default();
            row.rechecked.push((place.table, key));
            row.is_made_anew = true;
        }
        Ok(())
    }

    /// The logical partitions of the base tables.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = (StorageId, &Bytes)> {
        self.0.keys().map(|(table, key)| (*table, key))
    }

    /// The resulting rows of views, placed by the partition maps of a snapshot; if a view is given, only its rows. The
    /// caller holds the locks of the logical partitions and the latches of their physical partitions.
    ///
    /// # Errors
    /// A store fails.
    pub(crate) async fn following(
        self,
        snapshot: &Snapshot,
        only: Option<StorageId>,
        now_seconds: i64,
    ) -> Result<Vec<ViewRow>, Error> {
        let mut rows = Vec::new();
        for ((table, partition_key), touched) in self.0 {
            let Some(followed) = snapshot.followed(table) else {
                continue;
            };
            let of = OfPartition {
                snapshot,
                followed,
                partition_key,
                only,
                now_seconds,
            };
            of.follow(touched, &mut rows).await?;
        }
        Ok(rows)
    }
}

/// A logical partition of a base table that is written to.
struct OfPartition<'a> {
    snapshot: &'a Snapshot,
    followed: &'a Followed,
    partition_key: Bytes,
    only: Option<StorageId>,
    now_seconds: i64,
}

impl OfPartition<'_> {
    async fn follow(&self, mut touched: TouchedPartition, rows: &mut Vec<ViewRow>) -> Result<(), Error> {
        let table = &self.followed.base;
        let (token, partition) = self.snapshot.partitions(table)?.hosted(&self.partition_key)?;
        let logical = partition.logical(table.storage_id, token, &self.partition_key)?;
        let at = logical.now();
        let stored_deletions = logical.deletions(&at).await.map_err(|error| storage_read(&error))?;
        let mut stored: BTreeMap<Vec<u8>, Bytes> = BTreeMap::new();
        let whole = touched
            .deletions
            .partition
            .map(|_| (Bound::Unbounded, Bound::Unbounded));
        let ranges = touched.deletions.ranges.iter();
        let ranges = ranges.map(|range| {
            (
                range.start.as_ref().map(Vec::as_slice),
                range.end.as_ref().map(Vec::as_slice),
            )
        });
        for bounds in whole.into_iter().chain(ranges) {
            let scanned = logical.scan(bounds, false, &at, |clustering, row| {
                stored.insert(clustering.to_vec(), Bytes::copy_from_slice(row.value));
                ControlFlow::Continue(())
            });
            scanned.await.map_err(|error| storage_read(&error))?;
        }
        for clustering in stored.keys() {
            touched.rows.entry(clustering.clone()).or_default();
        }
        for (clustering, touched_row) in touched.rows {
            let found = match stored.remove(&clustering) {
                Some(found) => Some(found),
                None => {
                    let found = logical.get(&logical.prefix().row(&clustering), &at).await;
                    found.map_err(|error| storage_read(&error))?.map(|found| found.value)
                }
            };
            let mut before = match found {
                Some(found) => Row::decode(&found).map_err(|error| storage_read(&error))?,
                None => Row::default(),
            };
            let mut after = Row::merge(before.clone(), touched_row.written);
            let covering = stored_deletions.timestamp_covering(&clustering);
            if let Some(timestamp) = covering {
                before.shadow(timestamp);
            }
            if let Some(timestamp) = covering.max(touched.deletions.timestamp_covering(&clustering)) {
                after.shadow(timestamp);
            }
            for row in [&mut before, &mut after] {
                dropped::hide(table, row);
            }
            if before == after && !touched_row.is_made_anew {
                continue;
            }
            let base = Key {
                partition_key: self.partition_key.clone(),
                clustering,
            };
            self.follow_row(&base, [&before, &after], &touched_row.rechecked, rows)?;
        }
        Ok(())
    }

    fn follow_row(
        &self,
        base: &Key,
        [before, after]: [&Row; 2],
        rechecked: &[(StorageId, Key)],
        rows: &mut Vec<ViewRow>,
    ) -> Result<(), Error> {
        let values = values_of(&self.followed.base, base)?;
        for following in &self.followed.views {
            let id = following.view.storage_id;
            if self.only.is_some_and(|only| only != id) || !self.followed.passes(following, base)? {
                continue;
            }
            let row = following.row(after, self.now_seconds);
            let key = row.as_ref().and_then(|_| following.key(&values, after));
            let rechecked = rechecked
                .iter()
                .filter(|(view, _)| *view == id)
                .map(|(_, key)| key.clone());
            let was = (!before.is_empty()).then(|| following.key(&values, before)).flatten();
            let mut old: Vec<Key> = was.into_iter().chain(rechecked).collect();
            old.sort_unstable();
            old.dedup();
            if mutant::is_on(Mutant::ViewKeepsOldRow) {
                old.clear();
            }
            for old_key in old.into_iter().filter(|old| Some(old) != key.as_ref()) {
                // The whole row is replaced, hidden cells included, so the timestamp has no effect.
                let removed = Row {
                    deletion: Some(Deletion {
                        timestamp: 0,
                        at_seconds: self.now_seconds,
                    }),
                    ..Row::default()
                };
                let row = self.placed(&following.view, old_key, removed, true)?;
                if !row.is_impossible()? {
                    rows.push(row);
                }
            }
            if let (Some(key), Some(row)) = (key, row) {
                rows.push(self.placed(&following.view, key, row, false)?);
            }
        }
        Ok(())
    }

    fn placed(&self, view: &Arc<Table>, key: Key, row: Row, is_removed: bool) -> Result<ViewRow, Error> {
        let (token, partition) = self.snapshot.partitions(view)?.hosted(&key.partition_key)?;
        Ok(ViewRow {
            view: Arc::clone(view),
            partition: Arc::clone(partition),
            token,
            partition_key: key.partition_key,
            clustering: key.clustering,
            row,
            is_removed,
        })
    }
}
