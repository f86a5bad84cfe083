//! The open stores of a server: the main one, which holds the catalog, and side stores, each for partitions of one table
//! that were moved out, or for a part of all tables ([`super::homes`]).
//!
//! This list has the open stores. The catalog records which ones should exist, from before a store is created until it
//! is removed (`engine::catalog::lift`). A hosted partition has its store itself, so reads and writes of rows do not
//! search here.
//!
//! ```text
//! open the main one ─► read which side stores exist ─► open those ─► accept all ─► write
//!                            └──── any failure, or a contradiction with the catalog ────► all stay as they were found
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;

use super::ring::StoreId;
use helenus_base::clock::Clock;
use helenus_storage::storage::{
    Batch, Committed, Derivations, Durability, Error, KeyRange, Moments, Options, Positions, Reserve, Result, Store,
    TableId, Url, bucket,
};

/// Side stores that are closed at once.
const CLOSED_AT_ONCE_MAX: usize = 8;

/// Open stores. Clones share them.
#[derive(Clone, Debug)]
pub struct Stores(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    url: Url,
    options: Options,
    clock: Clock,
    /// Whether newly opened stores are accepted at once.
    is_accepted: AtomicBool,
    /// Dropped before the stores. `None` means that the main store is the only one, or the engine needs no record of
    /// moments.
    moments: Mutex<Option<Moments>>,
    main: Store,
    /// The side stores, by number.
    beside: ArcSwap<imbl::OrdMap<StoreId, Store>>,
    /// The derivations registered with every store.
    derivations: ArcSwap<Derivations>,
    /// Held while they are changed.
    registering: Mutex<()>,
    reserve: Reserve,
}

impl StoreId {
    /// The main store, with the catalog and all partitions without a store of their own.
    pub const MAIN: Self = Self(0);
}

impl Stores {
    /// Opens the main store at a URL; creates it if it does not exist. Open stores take no writes before
    /// [`Stores::accept`]. They stay as they were found if that is never called.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open(url: &Url, options: &Options, clock: Clock) -> Result<Self> {
        let sharers = match options.data_stores {
            Some(data_stores) => data_stores.max(1),
            None if bucket::shares_log(url, &options.reach).await? => Options::SHARERS_OF_LOG,
            None => 1,
        };
        // SlateDB's stores have one cache of blocks together.
        let block_sharers = if matches!(url, Url::File(_)) { sharers } else { 1 };
        let options = Options {
            is_accepted_later: true,
            row_cache_bytes_max: options.row_cache_bytes_max / sharers,
            key_filter_bytes_max: options.key_filter_bytes_max / sharers,
            block_cache_bytes_max: options.block_cache_bytes_max / block_sharers,
            memtable_bytes_max: options.memtable_bytes_max.map(|bytes| bytes / sharers as u64),
            ..options.clone()
        };
        let main = Store::open(url, &options, clock.clone()).await?;
        let reserve = Reserve::of(options.disk_reserve_bytes);
        Ok(Self(Arc::new(Inner {
            url: url.clone(),
            options,
            clock,
            is_accepted: AtomicBool::new(false),
            moments: Mutex::default(),
            main,
            beside: ArcSwap::default(),
            derivations: ArcSwap::default(),
            registering: Mutex::default(),
            reserve,
        })))
    }

    /// A position of now in the change feed, which no change has.
    #[must_use]
    pub fn position_of_now(&self) -> i64 {
        self.positions().pass(self.0.options.timestamps.as_ref())
    }

    /// The positions of the change feed in all stores.
    #[must_use]
    pub fn positions(&self) -> &Positions {
        &self.0.options.positions
    }

    /// Accepts the opened stores, after a check that all are from one moment.
    ///
    /// # Errors
    /// As [`Moments::check`], [`Moments::begin`] and [`Store::accept`].
    pub async fn accept(&self) -> Result<()> {
        Moments::check(&self.numbered(), self.0.options.create)?;
        Moments::begin(&self.numbered())?;
        for (_, store) in self.all().into_iter().rev() {
            store.accept().await?;
        }
        self.0.is_accepted.store(true, Ordering::Release);
        *self.moments() = Moments::of(&self.numbered())?;
        Ok(())
    }

    fn moments(&self) -> MutexGuard<'_, Option<Moments>> {
        self.0.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn numbered(&self) -> Vec<(u32, Store)> {
        self.all().into_iter().map(|(id, store)| (id.0, store)).collect()
    }

    /// Records the moment of a newly opened store in the others, and theirs in it.
    fn record_moments(&self, id: StoreId, store: &Store) -> Result<()> {
        let mut moments = self.moments();
        match &*moments {
            Some(moments) => moments.join(id.0, store),
            None if self.0.is_accepted.load(Ordering::Acquire) => *moments = Moments::of(&self.numbered())?,
            None => {}
        }
        Ok(())
    }

    /// The store that holds the catalog.
    #[must_use]
    pub fn main(&self) -> &Store {
        &self.0.main
    }

    /// An open store by its number.
    #[must_use]
    pub fn get(&self, id: StoreId) -> Option<Store> {
        if id == StoreId::MAIN {
            return Some(self.0.main.clone());
        }
        self.0.beside.load().get(&id).cloned()
    }

    /// All open stores, the main one first.
    #[must_use]
    pub fn all(&self) -> Vec<(StoreId, Store)> {
        let beside = self.0.beside.load();
        let beside = beside.iter().map(|(id, store)| (*id, store.clone()));
        std::iter::once((StoreId::MAIN, self.0.main.clone()))
            .chain(beside)
            .collect()
    }

    /// The first open store that cannot be read until the server restarts, with the cause.
    #[must_use]
    pub fn lost(&self) -> Option<(StoreId, Arc<Error>)> {
        let lost = |(id, store): (StoreId, Store)| Some((id, store.lost()?));
        self.all().into_iter().find_map(lost)
    }

    /// Checks the free space of the stores' disk; does nothing in memory and in a bucket.
    pub fn check_disk(&self) {
        if let Some(directory) = self.0.url.directory() {
            self.0.reserve.check(directory, self.0.options.faults.as_ref());
        }
    }

    /// Whether the last check found less free space than the reserve.
    #[must_use]
    pub fn is_disk_short(&self) -> bool {
        self.0.reserve.is_short()
    }

    /// Most bytes of the row cache of one store.
    #[must_use]
    pub fn row_cache_bytes_max(&self) -> usize {
        self.0.options.row_cache_bytes_max
    }

    /// Most side stores.
    #[must_use]
    pub fn beside_max(&self) -> usize {
        self.0.options.stores_beside_max
    }

    /// Data stores that are missing, if so many are recorded. Without a number in the options those that there are suffice.
    #[must_use]
    pub fn data_stores_missing(&self, recorded: usize) -> usize {
        self.0.options.data_stores.unwrap_or(0).saturating_sub(recorded)
    }

    /// Whether the main store is the only one.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.0.beside.load().is_empty()
    }

    /// Opens the side store of a number. `is_new` creates it if it does not exist.
    ///
    /// # Errors
    /// As [`Store::open_side`].
    pub async fn open_side(&self, id: StoreId, is_new: bool) -> Result<Store> {
        let inner = &self.0;
        let options = Options {
            is_accepted_later: !inner.is_accepted.load(Ordering::Acquire),
            ..inner.options.clone()
        };
        let opened = inner
            .main
            .open_side(&inner.url, id.0, is_new, &options, inner.clock.clone());
        let store = opened.await?;
        store.set_derivations(Derivations::clone(&inner.derivations.load()));
        inner.beside.rcu(|beside| beside.update(id, store.clone()));
        self.record_moments(id, &store)?;
        // Derivations may have been registered meanwhile.
        store.set_derivations(Derivations::clone(&inner.derivations.load()));
        Ok(store)
    }

    /// Creates a side store that shows a range of the main one's rows, if the engine can without copying. It is not
    /// opened.
    ///
    /// # Errors
    /// As [`Store::clone_side`].
    pub async fn clone_side(&self, from: &Store, id: StoreId, rows: &KeyRange) -> Result<bool> {
        from.clone_side(id.0, rows).await
    }

    /// How long a dropped side store is kept before it is removed. Zero outside buckets.
    #[must_use]
    pub fn removal_delay(&self) -> Duration {
        match self.0.url {
            Url::Bucket(_) => self.0.options.bucket_removal_delay,
            _ => Duration::ZERO,
        }
    }

    /// Closes a side store that is kept for [`Stores::removal_delay`] and then removed.
    ///
    /// # Errors
    /// As [`Store::forget_side`].
    pub async fn leave(&self, id: StoreId) -> Result<()> {
        self.close_side(id).await;
        self.0.main.forget_side(id.0).await
    }

    /// Closes a side store, if it is open, and removes all of it.
    ///
    /// # Errors
    /// As [`Store::remove_side`].
    pub async fn remove(&self, id: StoreId) -> Result<()> {
        self.close_side(id).await;
        self.0.main.remove_side(&self.0.url, id.0).await
    }

    async fn close_side(&self, id: StoreId) {
        let before = self.0.beside.rcu(|beside| beside.without(&id));
        if let Some(moments) = &*self.moments() {
            moments.remove(id.0);
        }
        if let Some(store) = before.get(&id)
            && let Err(error) = store.close().await
        {
            tracing::debug!(store = id.0, %error, "closing a store that is removed");
        }
    }

    /// Makes a store's acknowledged commits durable, whatever its durability, before a record outside the store depends
    /// on them.
    ///
    /// # Errors
    /// As [`Store::sync`].
    pub async fn make_durable(&self, store: &Store) -> Result<()> {
        match self.0.options.durability {
            Durability::Group => Ok(()),
            Durability::Periodic(_) | Durability::Os => store.sync().await,
        }
    }

    /// Commits to the main store a record about other stores. First makes all that they have acknowledged durable,
    /// whatever the durability: no power loss leaves the record without the rows that it refers to.
    ///
    /// # Errors
    /// As [`Store::sync`], and nothing is committed then; as [`Store::commit`].
    pub async fn record_after_durable(&self, others: &[Store], batch: Batch) -> Result<Committed> {
        self.record_in_after_durable(&self.0.main, others, batch).await
    }

    /// As [`Stores::record_after_durable`], in another store than the main one.
    ///
    /// # Errors
    /// As there.
    pub async fn record_in_after_durable(&self, home: &Store, others: &[Store], batch: Batch) -> Result<Committed> {
        for store in others {
            self.make_durable(store).await?;
        }
        home.commit_rows(batch).await
    }

    /// The derivations that are registered.
    #[must_use]
    pub fn derivations(&self) -> Derivations {
        Derivations::clone(&self.0.derivations.load())
    }

    /// Registers derivations with all open stores and with those opened later.
    pub fn set_derivations(&self, derivations: Derivations) {
        let _one_at_a_time = self.0.registering.lock().unwrap_or_else(PoisonError::into_inner);
        self.register(derivations);
    }

    /// Ends the derivation of a number under which nothing is written any more.
    pub fn end_derivation(&self, of: TableId) {
        let _one_at_a_time = self.0.registering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut derivations = self.derivations();
        if derivations.remove(&of).is_some() {
            self.register(derivations);
        }
    }

    fn register(&self, derivations: Derivations) {
        self.0.derivations.store(Arc::new(derivations.clone()));
        for (_, store) in self.all() {
            store.set_derivations(derivations.clone());
        }
    }

    /// Closes all stores, the main one last.
    ///
    /// # Errors
    /// The first failure; all are closed nevertheless.
    pub async fn close(&self) -> Result<()> {
        let mut outcome = Ok(());
        let moments = self.moments().take();
        if let Some(moments) = moments {
            for (_, store) in self.all() {
                // A failure here is reported again by `close`.
                drop(self.make_durable(&store).await);
            }
            // Recorded while the directories are still locked.
            let main = self.main().clone();
            drop(tokio::task::spawn_blocking(move || moments.end_with(&main)).await);
        }
        let beside: Vec<Store> = self.0.beside.load().values().cloned().collect();
        for together in beside.chunks(CLOSED_AT_ONCE_MAX) {
            let mut closing = Vec::with_capacity(together.len());
            for store in together {
                closing.push(Box::pin(store.close()));
            }
            for closed in join_all(closing).await {
                outcome = outcome.and(match closed {
                    // A concurrent removal has closed it.
                    Err(Error::Closed) => Ok(()),
                    closed => closed,
                });
            }
        }
        outcome.and(self.main().close().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stores_are_missing_only_when_a_number_is_given() {
        for (given, recorded, missing) in [
            (None, 0, 0),
            (None, 8, 0),
            (Some(0), 0, 0),
            (Some(3), 0, 3),
            (Some(3), 1, 2),
        ] {
            let options = Options {
                data_stores: given,
                ..Options::default()
            };
            let stores = Stores::open(&Url::Memory, &options, Clock::manual(0)).await.unwrap();
            assert_eq!(
                stores.data_stores_missing(recorded),
                missing,
                "{given:?} of which {recorded} are there"
            );
        }
    }
}
