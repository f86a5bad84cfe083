//! The search for garbage that earlier runs left in stores (leftovers.rs says what garbage is).
//!
//! It runs in the background, one store after the other, from number to number. A number is garbage if the
//! schema had no table, view or index of it when the catalog was opened and it is below the next free number of that
//! moment: numbers are never used again, so none can come into use meanwhile. A range of a table is garbage in a store
//! to which the table's partition map does not assign it. That is decided while no partition is moved and no change of
//! the catalog is in doubt, since both have rows where no map assigns them yet. Each number that a store holds costs a
//! seek in each space, and each range that it should not hold two.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Weak};

use super::Catalog;
use super::leftovers::{Moved, PAUSE, SPACES, has_any};
use crate::engine::{Error, index, logical, storage_read};
use crate::partition::StoreId;
use helenus_base::mutant::{self, Mutant};
use helenus_schema::schema::{Schema, StorageId, system};
use helenus_storage::storage::{self as store, Batch, KeyRange, Order, Space, Store};

/// Failures after which the search goes on in the next space; the next start searches again.
const FAILURES_MAX: u32 = 120;

/// The numbers that had a meaning when the catalog was opened.
pub(in crate::engine) struct Numbers {
    used: BTreeSet<StorageId>,
    /// The first number that was free.
    next: StorageId,
}

impl Numbers {
    pub(super) fn of(schema: &Schema, next: StorageId) -> Self {
        Self {
            used: numbers_of(schema),
            next,
        }
    }
}

/// The numbers of a schema's tables, views, indexes, change feeds and change logs.
pub(super) fn numbers_of(schema: &Schema) -> BTreeSet<StorageId> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.all_tables());
    tables.flat_map(|table| table.all_storage_ids()).collect()
}

/// The progress of a search.
struct Search {
    numbers: Numbers,
    /// Garbage that is being removed, from all stores at once.
    removed: BTreeSet<StorageId>,
}

/// The result of a step.
enum Step {
    /// The number that was looked at.
    Passed(StorageId),
    /// Rows of the number are being removed after a move of this run. The step is to be repeated.
    Removing,
    /// The store has no further number in this space.
    End,
}

impl Catalog {
    /// Starts the search. It ends when the server stops; the next start searches again.
    pub(in crate::engine) fn remove_strays(self: &Arc<Self>, numbers: Numbers) {
        let tasks = self.published.tasks.clone();
        let search = Search {
            numbers,
            removed: BTreeSet::new(),
        };
        let run = search.run(Arc::downgrade(self), self.stores().all());
        self.published.tasks.spawn("search for leftovers", async move {
            tasks.unless_stopped(run).await;
        });
    }
}

impl Search {
    async fn run(mut self, catalog: Weak<Catalog>, stores: Vec<(StoreId, Store)>) {
        for (id, store) in &stores {
            if let Err(error) = self.forget_records(store).await {
                tracing::debug!(store = id.0, %error, "records of dropped tables stay in a store");
            }
            for space in SPACES {
                let (mut next, mut failures) = (system::USER_STORAGE_ID_MIN, 0);
                while failures < FAILURES_MAX {
                    // Held for one step only: a database that is dropped must let go of its stores.
                    let Some(catalog) = catalog.upgrade() else { return };
                    match self.step(&catalog, (*id, store), space, next).await {
                        Ok(Step::Passed(number)) => {
                            next = number.saturating_add(1);
                            tokio::task::yield_now().await;
                            continue;
                        }
                        Ok(Step::End) => break,
                        // A side store that was removed meanwhile.
                        Err(_) if catalog.stores().get(*id).is_none() => break,
                        Ok(Step::Removing) => {}
                        Err(error) => {
                            failures += 1;
                            tracing::debug!(store = id.0, %error, "the search for leftovers in a store is repeated");
                        }
                    }
                    let main = catalog.main().clone();
                    drop(catalog);
                    main.pause(PAUSE).await;
                }
            }
        }
    }

    /// Removes a store's records of numbers that are garbage.
    async fn forget_records(&self, store: &Store) -> store::Result<()> {
        let mut batch = Batch::new();
        for prefix in [index::RECORD, logical::RECORD] {
            let (at, range) = (store.snapshot(), KeyRange::prefix(prefix));
            let visit = |key: &[u8], _: &[u8]| {
                let number = key.get(prefix.len()..).and_then(|rest| rest.first_chunk());
                let number = number.map(|number| StorageId::from_be_bytes(*number));
                if number.is_some_and(|number| number < self.numbers.next && !self.numbers.used.contains(&number)) {
                    batch.delete(Space::Catalog, key.to_vec());
                }
                ControlFlow::Continue(())
            };
            store.scan(Space::Catalog, &range, Order::Forward, &at, visit).await?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        store.commit(batch).await.map(drop)
    }

    /// Looks at the next number of a space of a store, and starts the removal of what is garbage.
    async fn step(
        &mut self,
        catalog: &Arc<Catalog>,
        (id, store): (StoreId, &Store),
        space: Space,
        from: StorageId,
    ) -> Result<Step, Error> {
        let Some(number) = first_number(store, space, from..self.numbers.next).await? else {
            return Ok(Step::End);
        };
        if !self.numbers.used.contains(&number) {
            if self.removed.insert(number) {
                catalog.orphans.remove_number(number, None);
            }
            return Ok(Step::Passed(number));
        }
        let is_elsewhere = |catalog: &Catalog| {
            let map = catalog
                .load()
                .partitions_of(number)
                .map(|map| map.map().spans_outside(id));
            map.filter(|spans| !spans.is_empty())
        };
        let is_derived = matches!(space, Space::Indexes | Space::Feed);
        if is_derived || is_elsewhere(catalog).is_none() || mutant::is_on(Mutant::TargetNotEmptied) {
            return Ok(Step::Passed(number));
        }
        let _no_move = catalog.placement.moving.lock().await;
        let mut changing = catalog.changing.lock().await;
        catalog.resolve_locked(&mut changing).await?;
        for span in is_elsewhere(catalog).unwrap_or_default() {
            let moved = Moved {
                table: number,
                store: id,
                span,
            };
            if catalog.orphans.is_being_removed(&moved) {
                return Ok(Step::Removing);
            }
            if has_any(store, &moved).await? {
                catalog.orphans.remove_moved(moved, Vec::new());
            }
        }
        Ok(Step::Passed(number))
    }
}

/// The first number within these bounds of which a space has a key.
async fn first_number(
    store: &Store,
    space: Space,
    within: std::ops::Range<StorageId>,
) -> Result<Option<StorageId>, Error> {
    let range = KeyRange {
        start: Bound::Included(within.start.to_be_bytes().to_vec()),
        end: Bound::Excluded(within.end.to_be_bytes().to_vec()),
    };
    if within.is_empty() {
        return Ok(None);
    }
    let (at, mut found) = (store.snapshot(), None);
    let scanned = store.scan(space, &range, Order::Forward, &at, |key, _| {
        found = key.first_chunk().map(|number| StorageId::from_be_bytes(*number));
        ControlFlow::Break(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    Ok(found)
}
