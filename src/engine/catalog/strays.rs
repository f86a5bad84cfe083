//! The search for leftovers after a start: in the background, one store after the other, from number to number.
//!
//! A number is garbage if the schema had no table, view or index of it when the catalog was opened and it is below the
//! next free number of that moment: numbers are never used again, so none can come into use meanwhile. A range of a
//! table is garbage in a store to which the table's partition map does not assign it. That is decided while no
//! partition is moved and no change of the catalog is in doubt, since both have rows where no map assigns them yet.
//!
//! Each number that a store holds costs a seek in each space, and each range that it should not hold two.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Weak};

use super::Catalog;
use super::leftovers::{Moved, PAUSE, SPACES, has_any};
use crate::engine::{Error, storage_read};
use crate::mutant::{self, Mutant};
use crate::partition::StoreId;
use crate::partition::store::{KeyRange, Order, Space, Store};
use crate::schema::{Schema, StorageId, system};

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

/// The numbers of a schema's tables, views, indexes and change feeds.
pub(super) fn numbers_of(schema: &Schema) -> BTreeSet<StorageId> {
    let tables = schema.keyspaces.values().flat_map(|keyspace| keyspace.all_tables());
    tables.flat_map(|table| table.storage_ids()).collect()
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
    /// Rows of this range are being removed by a move of this run. The step is to be repeated when they are gone.
    Removing(Moved),
    /// The store has no further number in this space.
    End,
}

impl Catalog {
    /// Starts the search. It ends when the server stops; the next start searches again.
    pub(in crate::engine) fn remove_strays(self: &Arc<Self>, numbers: Numbers) {
        let tasks = self.tasks.clone();
        let search = Search {
            numbers,
            removed: BTreeSet::new(),
        };
        let run = search.run(Arc::downgrade(self), self.stores.all());
        self.tasks.spawn("search for leftovers", async move {
            tasks.unless_stopped(run).await;
        });
    }
}

impl Search {
    async fn run(mut self, catalog: Weak<Catalog>, stores: Vec<(StoreId, Store)>) {
        for (id, store) in &stores {
            for space in SPACES {
                let mut next = system::USER_STORAGE_ID_MIN;
                loop {
                    let Some(catalog) = catalog.upgrade() else { return };
                    match self.step(&catalog, (*id, store), space, next).await {
                        Ok(Step::Passed(number)) => next = number.saturating_add(1),
                        Ok(Step::Removing(moved)) => {
                            if catalog.leftovers.until_removed(&moved).await.is_err() {
                                return;
                            }
                        }
                        Ok(Step::End) => break,
                        // A side store that was removed meanwhile; or the server is closing.
                        Err(_) if catalog.stores.get(*id).is_none() => break,
                        Err(error) => {
                            tracing::debug!(store = id.0, %error, "the search for leftovers in a store is repeated");
                            let main = catalog.main().clone();
                            drop(catalog);
                            main.pause(PAUSE).await;
                        }
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
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
                catalog.leftovers.remove_number(number, None);
            }
            return Ok(Step::Passed(number));
        }
        let is_elsewhere = |catalog: &Catalog| {
            let map = catalog.load().partitions_of(number).map(|map| map.map().spans_outside(id));
            map.filter(|spans| !spans.is_empty())
        };
        if space == Space::Indexes || is_elsewhere(catalog).is_none() || mutant::is_on(Mutant::TargetNotEmptied) {
            return Ok(Step::Passed(number));
        }
        let _no_move = catalog.moving.lock().await;
        let mut changing = catalog.changing.lock().await;
        catalog.resolve_locked(&mut changing).await?;
        for span in is_elsewhere(catalog).unwrap_or_default() {
            let moved = Moved {
                table: number,
                store: id,
                span,
            };
            if catalog.leftovers.is_being_removed(&moved) {
                return Ok(Step::Removing(moved));
            }
            if has_any(store, &moved).await? {
                catalog.leftovers.remove_moved(moved, Vec::new());
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
