//! The `memory:` engine: a persistent ordered map for each space. A snapshot is the root of the maps, so old ones cost
//! nothing. It is the reference model for the other engines.
//!
//! A commit of one change copies the nodes of the maps that a living snapshot shows, and changes the others in place. Readers wait
//! for it. Any other commit works on a copy: a long one keeps no reader waiting.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use imbl::OrdMap;

use super::{DeletionTables, Order, Stride, add_table, bounds, is_counted, remove_tables, table_of, walk_stride};
use crate::storage::batch::{Batch, Change, Space, check_row_bytes, merge_values};
use crate::storage::change_log::Logging;
use crate::storage::derivation::{self, Derivations};
use crate::storage::feed::{Drawn, Stamped};
use crate::storage::key::KeyRange;
use crate::storage::purge::{Effect, Sweeps};
use crate::storage::sizes::Sizes;
use crate::storage::written::is_there;
use crate::storage::{CommitSeq, Committed, Deletions, Result, Written};
#[cfg(feature = "simulation")]
use helenus_base::clock::TimeMark;

type Map = OrdMap<Arc<[u8]>, Bytes>;

/// The content of the store at one moment.
#[derive(Clone, Debug, Default)]
pub(in crate::storage) struct State {
    maps: [Map; Space::ALL.len()],
    pub(in crate::storage) seq: CommitSeq,
    pub(in crate::storage) deletion_tables: DeletionTables,
    pub(in crate::storage) sizes: Sizes,
    /// The time mark of the last commit, on a simulated medium. `None` means it had none.
    #[cfg(feature = "simulation")]
    pub(in crate::storage) time: Option<TimeMark>,
}

/// The `memory:` engine. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Held by the one writer at a time. Taken before the state.
    writer: Mutex<Drawn>,
    state: Mutex<Arc<State>>,
    derivations: ArcSwap<Derivations>,
    sweeps: Arc<Sweeps>,
}

impl Store {
    pub(in crate::storage) fn new(drawn: Drawn) -> Self {
        Self(Arc::new(Inner {
            writer: Mutex::new(drawn),
            state: Mutex::default(),
            derivations: ArcSwap::default(),
            sweeps: Arc::default(),
        }))
    }

    pub(in crate::storage) fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state())
    }

    fn state(&self) -> MutexGuard<'_, Arc<State>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::storage) fn commit(&self, batch: Batch) -> Result<Committed> {
        let mut drawn = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let committed = self.commit_as_writer(batch, &mut drawn);
        drawn.all_published();
        committed
    }

    fn commit_as_writer(&self, batch: Batch, drawn: &mut Drawn) -> Result<Committed> {
        let derivations = self.0.derivations.load();
        let row_bytes_max = batch.row_bytes_max();
        let mut changes = batch.into_changes();
        let stamped = drawn.stamp(&mut changes, &derivations);
        if let Some(watch) = self.0.sweeps.watch() {
            watch.record(changes.iter().filter_map(Change::written_row));
        }
        if matches!(changes.as_slice(), [one] if !matches!(one, Change::DeleteRange { .. })) && !stamped.is_logged {
            // One change is refused before it takes effect, so nothing has to be taken back.
            return Arc::make_mut(&mut self.state()).commit(changes, row_bytes_max, &derivations);
        }
        let mut next = State::clone(&self.snapshot());
        next.log(&changes, stamped, &derivations);
        let committed = next.commit(changes, row_bytes_max, &derivations)?;
        let before = std::mem::replace(&mut *self.state(), Arc::new(next));
        drop(before);
        Ok(committed)
    }

    pub(in crate::storage) fn sweeps(&self) -> &Arc<Sweeps> {
        &self.0.sweeps
    }

    pub(in crate::storage) fn set_derivations(&self, derivations: Derivations) {
        self.0.derivations.store(Arc::new(derivations));
    }
}

impl State {
    /// Applies a batch. After an error some of its changes may be here.
    fn commit(
        &mut self,
        changes: Vec<Change>,
        row_bytes_max: Option<usize>,
        derivations: &Derivations,
    ) -> Result<Committed> {
        let mut committed = Committed::default();
        for (number, change) in changes.into_iter().enumerate() {
            if let Some(bytes_max) = row_bytes_max {
                self.check_row(&change, bytes_max)?;
            }
            self.apply(number, change, derivations, &mut committed)?;
        }
        self.seq = self.seq.next();
        Ok(committed.at(self.seq))
    }

    fn map(&self, space: Space) -> &Map {
        let [rows, deletions, indexes, feed, catalog] = &self.maps;
        match space {
            Space::Rows => rows,
            Space::Deletions => deletions,
            Space::Indexes => indexes,
            Space::Feed => feed,
            Space::Catalog => catalog,
        }
    }

    fn map_mut(&mut self, space: Space) -> &mut Map {
        let [rows, deletions, indexes, feed, catalog] = &mut self.maps;
        match space {
            Space::Rows => rows,
            Space::Deletions => deletions,
            Space::Indexes => indexes,
            Space::Feed => feed,
            Space::Catalog => catalog,
        }
    }

    /// A checksum of all keys and values.
    #[cfg(feature = "simulation")]
    pub(super) fn digest(&self) -> u32 {
        let mut digest = crc32fast::Hasher::new();
        for (key, value) in self.maps.iter().flatten() {
            digest.update(key);
            digest.update(value);
        }
        digest.finalize()
    }

    pub(in crate::storage) fn get(&self, space: Space, key: &[u8]) -> Option<Bytes> {
        self.map(space).get(key).cloned()
    }

    /// One stride of a scan; `visit` as in [`crate::storage::Store::scan`].
    pub(in crate::storage) fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        order: Order,
        visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<Stride> {
        if range.is_empty() {
            return Ok(Stride::Done);
        }
        let entries = self.map(space).range::<_, [u8]>(bounds(range)).map(Ok);
        match order {
            Order::Forward => walk_stride(entries, visit),
            Order::Reverse => walk_stride(entries.rev(), visit),
        }
    }

    /// Adds the entries of the change logs, before the changes are applied.
    pub(super) fn log(&mut self, changes: &[Change], stamped: Stamped, derivations: &Derivations) {
        let (true, Some(position)) = (stamped.is_logged, stamped.position) else {
            return;
        };
        let mut logging = Logging::of(changes, derivations);
        for key in logging.row_keys().collect::<Vec<_>>() {
            logging.row_is(key, self.map(Space::Rows).get(key).cloned());
        }
        for prefix in logging.prefixes().collect::<Vec<_>>() {
            let mut deletions = Deletions::default();
            let range = KeyRange::prefix(prefix);
            for (key, value) in self.map(Space::Deletions).range::<_, [u8]>(bounds(&range)) {
                // A damaged record is refused by reads.
                drop(deletions.add_record(prefix.len(), key, value));
            }
            logging.deletions_are(prefix, deletions);
        }
        for (entry, value) in logging.entries(position) {
            self.map_mut(Space::Feed).insert(Arc::from(entry), value);
        }
    }

    /// Refuses a partial row that makes a row longer than allowed.
    pub(super) fn check_row(&self, change: &Change, bytes_max: usize) -> Result<()> {
        let Change::Merge {
            space: Space::Rows,
            key,
            value,
        } = change
        else {
            return Ok(());
        };
        let old = self.map(Space::Rows).get(key.as_slice());
        // A merged row is hardly longer than the sum of both; only one that comes near the limit is merged to check.
        let together = old.map_or(0, Bytes::len) + value.len();
        if together <= bytes_max {
            return Ok(());
        }
        let after = match old {
            Some(old) => merge_values(Space::Rows, old, value)?.len(),
            None => value.len(),
        };
        check_row_bytes(old.map(Bytes::len), value, after, bytes_max)
    }

    /// `number` is the change's position in its batch.
    pub(super) fn apply(
        &mut self,
        number: usize,
        change: Change,
        derivations: &Derivations,
        committed: &mut Committed,
    ) -> Result<()> {
        match change {
            Change::Put { space, key, value } => self.set(space, key, Some(value), derivations),
            Change::Delete { space, key } => self.set(space, key, None, derivations),
            Change::Merge { space, key, value } => {
                let old = self.map(space).get(key.as_slice());
                let value = match old {
                    Some(old) => merge_values(space, old, &value)?,
                    None => value,
                };
                if space == Space::Rows {
                    let there = old.filter(|old| is_there(old));
                    committed.add(Written {
                        change: number,
                        before_bytes: there.map(|old| key.len() + old.len()),
                        after_bytes: Some(key.len() + value.len()),
                    });
                }
                self.set(space, key, Some(value), derivations);
            }
            Change::Purge { .. } | Change::Forget { .. } => {
                let Some((space, key)) = change.place() else {
                    return Ok(());
                };
                let left = match change.effect_on(self.map(space).get(key))? {
                    Effect::Unchanged => return Ok(()),
                    Effect::Removed => None,
                    Effect::Shrunk(value) => Some(value),
                };
                self.set(space, key.to_vec(), left, derivations);
            }
            Change::DeleteRange { space, range } => {
                if range.is_empty() {
                    return Ok(());
                }
                let removed: Vec<_> = self
                    .map(space)
                    .range::<_, [u8]>(bounds(&range))
                    .map(|(key, _)| key.to_vec())
                    .collect();
                for key in removed {
                    self.set(space, key, None, derivations);
                }
                if space == Space::Deletions {
                    remove_tables(&mut self.deletion_tables, &range);
                }
            }
            Change::Reindex { key, index } => {
                if let Some(derivation) = derivation::of_row(derivations, &key) {
                    let row = self.map(Space::Rows).get(key.as_slice()).cloned();
                    for (entry, value) in derivation::entries_in(derivation.as_ref(), index, &key, row.as_deref()) {
                        self.map_mut(Space::Indexes).insert(Arc::from(entry), value);
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, space: Space, key: Vec<u8>, value: Option<Bytes>, derivations: &Derivations) {
        if space == Space::Rows
            && let Some(derivation) = derivation::of_row(derivations, &key)
        {
            let before = self.map(space).get(key.as_slice());
            let changes = derivation::changes(derivation.as_ref(), &key, before.map(Bytes::as_ref), value.as_deref());
            let entries = self.map_mut(Space::Indexes);
            for (entry, value) in changes {
                match value {
                    Some(value) => drop(entries.insert(Arc::from(entry), value)),
                    None => drop(entries.remove(entry.as_slice())),
                }
            }
        }
        let after = value.as_ref().map(Bytes::len);
        if space == Space::Deletions && after.is_some() {
            add_table(&mut self.deletion_tables, &key);
        }
        let counted = table_of(&key)
            .filter(|_| is_counted(space))
            .map(|table| (table, key.len()));
        let map = self.map_mut(space);
        let before = match value {
            Some(value) => map.insert(Arc::from(key), value),
            None => map.remove(key.as_slice()),
        };
        if let Some((table, key_len)) = counted {
            self.sizes.count(table, key_len, before.as_ref().map(Bytes::len), after);
        }
    }
}
