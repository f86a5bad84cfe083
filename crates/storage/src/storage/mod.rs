//! One store's bytes: keys, rows and cells, and three engines that keep them.
//!
//! A [`Store`] is one ordered, durable key space with one log and one writer. It handles bytes in order, rows of cells
//! and the merge of two versions of a row. It does not depend on CQL's types or on the meaning of a token. It can have
//! side stores (side_store.rs), which are opened, cloned from it, and removed independently of its own data.
//!
//! **Life of a write.** The caller fills a [`Batch`] with partial rows ([`Batch::upsert`]), deletions and other changes
//! that must be atomic. [`Store::commit`] sends it to the engine's committer. The committer takes all queued batches,
//! merges partial rows with the stored rows, writes one group, makes it durable once, and updates the row cache. Then
//! it publishes a new snapshot and answers all. So a reader sees only durable, whole batches, and a read after the
//! answer sees the write.
//!
//! **Life of a read.** [`Store::snapshot`] takes what the committer published last, at the cost of a reference count.
//! [`Store::get`] tries the row cache, then the engine. [`Store::scan`] reads the engine; inside one logical partition of
//! it takes what it can from the row cache. The reader applies the partition's [`Deletions`], looked up only for tables that have any, and hides expired cells.
//!
//! **Invariants.**
//! - A batch takes effect as a whole or not at all, in memory and on disk.
//! - An acknowledged commit is on the medium as [`Options::durability`] says; an error answered for a batch is never called a success
//!   later (though the batch may have taken effect, as with any lost answer).
//! - A snapshot never changes. Row cache and engine agree at every snapshot.
//! - In `memory:` and `file:` a stored row is always fully merged; in SlateDB it may be partial rows that are merged
//!   when read.
//! - Index entries are exactly what the rows derive ([`derivation`]), at every commit since their derivation was
//!   registered.
//! - Damaged files are refused by name and never served.
//!
//! **Deliberately absent.** Reads do not apply expiry and deletions (the reader has the clock and the columns). There
//! is no lock on keys (callers hold their own, then take a snapshot), and no replication.
//!
//! ```text
//! space byte · key            keys of the engines with one key space (`file:`, `slate…:`)
//!   01 rows                   key.rs        value: row/codec.rs
//!   02 deletions              deletion.rs   value: deletion.rs
//!   03 indexes                derivation.rs entries derived from rows
//!   04 changes                change_log.rs entries of changes of rows
//!   05 catalog                             opaque here
//!   FF the store's own        engine/fjall.rs, engine/slate.rs
//! ```

mod absence;
mod address;
mod batch;
pub mod bucket;
mod bucket_refusal;
mod cache;
pub mod change_log;
mod damaged;
pub mod deletion;
pub mod derivation;
mod engine;
mod error;
mod faults;
pub mod feed;
mod identity;
pub mod key;
mod location;
mod look;
mod purge;
mod reserve;
pub mod row;
mod scanning;
mod side_store;
mod sizes;
mod sweep;
mod times;
mod written;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use address::{Address, Cloud};
pub use batch::{Batch, KEY_BYTES_MAX, Logged, Space, check_row_bytes};
pub use bucket_refusal::Refusal as BucketRefusal;
pub use damaged::{Damaged, Record};
pub use deletion::{Deletions, RangeTombstone};
pub use derivation::{Both, Derivation, Derivations, Entries, LogOnly, TooLong, split_entry};
use engine::moments::Moment;
pub use engine::moments::Moments;
pub use engine::options::{BucketCache, Durability, Options};
pub use engine::piece::{Damage, Gap};
pub use engine::restoring::Restoring;
pub use engine::salvage::Salvage;
#[cfg(feature = "simulation")]
use engine::simulated;
#[cfg(feature = "simulation")]
pub use engine::simulated::{Medium, MediumFaults};
use engine::{fjall, memory, slate};
pub use error::{Error, Result};
pub use faults::{Breaks, FaultPoint, Faults, ReadFaults};
pub use feed::Positions;
pub use identity::AskedProfile;
pub use key::{KeyRange, TableId};
pub use location::Url;
pub use look::Look;
pub use reserve::Reserve;
pub use row::{Cell, CellState, ColumnId, Deletion, Expiry, Marker, Row, RowView};
pub use scanning::Order;
pub use sizes::Estimate;
pub use sweep::{Sweep, Swept};
pub use written::{Committed, Written};

use helenus_base::clock::Clock;

/// The position of a commit in a store's order. A commit answered later has a higher or, within one group, an equal
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitSeq(pub u64);

impl CommitSeq {
    /// The one after it.
    const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Identifies an opening of a store. A new opening begins after each failure from which the store recovers by itself,
/// even if its engine stayed open. It may make a commit visible that was answered with an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening(pub(in crate::storage) u64);

/// What a store did since it was opened. All zero where there is no row cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Point reads that the row cache answered.
    pub row_cache_hits: u64,
    /// Point reads that went to the engine.
    pub row_cache_misses: u64,
    /// Bytes in the row cache now.
    pub row_cache_bytes: usize,
    /// What else is in memory.
    pub held: Held,
}

/// Bytes that a store holds in memory, beside the row cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Memtables, with those that are flushed and not yet released.
    pub memtables: u64,
    /// Blocks of tables, indexes and filters that were read.
    pub block_cache: u64,
    /// Indexes and filters of tables that stay in memory.
    pub table_indexes: u64,
    /// The filter by which new rows are known.
    pub key_filter: u64,
}

/// One store. Clones are the same store; it closes when the last one is dropped, or by [`Store::close`].
#[derive(Clone, Debug)]
pub enum Store {
    /// `memory:`
    Memory(memory::Store),
    /// `file:DIR`
    Fjall(fjall::Store),
    /// `slate+file:DIR`, `slate+memory:` and buckets
    Slate(slate::Store),
    /// `memory:` on a simulated medium
    #[cfg(feature = "simulation")]
    Simulated(simulated::Store),
}

/// A consistent view of a store. Cheap to clone. While it lives the engine keeps the data that it shows, so hold it for
/// one request.
#[derive(Clone, Debug)]
pub struct Snapshot(View);

/// Refuses data in a directory whose first file names another profile. Opens nothing and changes no file.
///
/// # Errors
/// [`Error::OtherProfile`]
pub fn check_profile(url: &Url, asked: AskedProfile) -> Result<()> {
    engine::check_profile(url, asked)
}

#[derive(Clone, Debug)]
enum View {
    Memory(Arc<memory::State>),
    Fjall(Arc<fjall::Published>),
    Slate(Arc<slate::Published>),
    /// Taken while the store could not be read, for this reason.
    Unavailable(Error),
}

impl View {
    /// Why the store cannot read this snapshot.
    fn refusal(&self) -> Error {
        match self {
            Self::Unavailable(reason) => reason.clone(),
            Self::Memory(_) | Self::Fjall(_) | Self::Slate(_) => Error::ForeignSnapshot,
        }
    }
}

impl Snapshot {
    /// The last commit it shows.
    #[must_use]
    pub fn seq(&self) -> CommitSeq {
        match &self.0 {
            View::Memory(state) => state.seq,
            View::Fjall(published) => published.seq,
            View::Slate(published) => published.seq,
            View::Unavailable(_) => CommitSeq(0),
        }
    }

    /// Whether it can be read: the store was open, and this server its owner.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        !matches!(self.0, View::Unavailable(_))
    }

    /// Whether any partition or range of the table was deleted and its record not yet purged.
    #[must_use]
    pub fn has_deletions(&self, table: TableId) -> bool {
        match &self.0 {
            View::Memory(state) => state.deletion_tables.contains(&table),
            View::Fjall(published) => published.deletion_tables.contains(&table),
            View::Slate(published) => published.deletion_tables.contains(&table),
            View::Unavailable(_) => true,
        }
    }
}

impl Store {
    /// Opens the store at a URL, creating it if necessary.
    ///
    /// # Errors
    /// Another process holds it, its format is newer than this version's, it is damaged, or the medium fails.
    pub async fn open(url: &Url, options: &Options, clock: Clock) -> Result<Self> {
        #[cfg(feature = "simulation")]
        if let (Url::Memory, Some(medium)) = (url, &options.medium) {
            return Ok(Self::Simulated(
                medium.open(options.times(), options.durability != Durability::Group),
            ));
        }
        if let (Some(directory), false) = (url.directory(), options.is_restored_into) {
            engine::restoring::refuse(directory)?;
        }
        match url {
            Url::Memory => Ok(Self::Memory(memory::Store::new(options.times().drawn()))),
            Url::File(directory) => Ok(Self::Fjall(fjall::Store::open(directory, None, options, clock).await?)),
            // Boxed: this engine's futures take kilobytes.
            Url::SlateFile(_) | Url::SlateMemory | Url::Bucket(_) => {
                Ok(Self::Slate(Box::pin(slate::Store::open(url, options, clock)).await?))
            }
        }
    }

    /// The latest committed state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        match self {
            Self::Memory(store) => Snapshot(View::Memory(store.snapshot())),
            Self::Fjall(store) => {
                let published = store.snapshot();
                Snapshot(published.map_or(View::Unavailable(Error::Closed), View::Fjall))
            }
            Self::Slate(store) => {
                let published = store.snapshot();
                Snapshot(published.map_or_else(|| View::Unavailable(store.why_unavailable()), View::Slate))
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => {
                let published = store.snapshot();
                Snapshot(published.map_or(View::Unavailable(Error::Closed), View::Memory))
            }
        }
    }

    /// The current opening of the store. A snapshot taken after this call shows the state of this opening, or of a
    /// later one.
    #[must_use]
    pub fn opening(&self) -> Opening {
        match self {
            Self::Memory(_) => Opening::default(),
            Self::Fjall(store) => store.opening(),
            Self::Slate(store) => store.opening(),
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.opening(),
        }
    }

    /// The value of a key. A row is merged from all its partial rows; partition and range deletions are not applied.
    ///
    /// # Errors
    /// When the medium fails or is damaged, or the store is closed.
    pub async fn get(&self, space: Space, key: &[u8], at: &Snapshot) -> Result<Option<Bytes>> {
        match (self, &at.0) {
            (Self::Memory(_), View::Memory(state)) => Ok(state.get(space, key)),
            (Self::Fjall(store), View::Fjall(published)) => match space {
                Space::Rows => published.get_row(key, store.cache()),
                _ => published.get(space, key),
            },
            // Boxed, here and below: this engine's futures take kilobytes, and every request's future would be as large.
            (Self::Slate(store), View::Slate(published)) => match space {
                Space::Rows => Box::pin(published.get_row(key, store.cache())).await,
                _ => Box::pin(published.get(space, key)).await,
            },
            #[cfg(feature = "simulation")]
            (Self::Simulated(store), View::Memory(state)) => {
                store.wait().await;
                Ok(state.get(space, key))
            }
            (_, view) => Err(view.refusal()),
        }
    }

    /// The deletions of a logical partition. Costs nothing for a table without deletions.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub async fn deletions(
        &self,
        table: TableId,
        token: i64,
        partition_key: &[u8],
        at: &Snapshot,
    ) -> Result<Deletions> {
        if !at.has_deletions(table) {
            return Ok(Deletions::default());
        }
        let prefix = key::partition_prefix(table, token, partition_key);
        self.deletions_of(table, &prefix, at).await
    }

    /// As [`Store::deletions`], by the prefix of the logical partition's keys ([`key::partition_prefix`]).
    ///
    /// # Errors
    /// As [`Store::get`].
    pub async fn deletions_of(&self, table: TableId, prefix: &[u8], at: &Snapshot) -> Result<Deletions> {
        let mut deletions = Deletions::default();
        if !at.has_deletions(table) {
            return Ok(deletions);
        }
        let mut outcome = Ok(());
        self.scan(
            Space::Deletions,
            &key::partition_range(prefix),
            Order::Forward,
            at,
            |key, value| {
                outcome = deletions.add_record(prefix.len(), key, value);
                if outcome.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            },
        )
        .await?;
        outcome.map(|()| deletions)
    }

    /// Visits the entries of a range in order, until `visit` breaks. Yields to other tasks at intervals.
    ///
    /// # Errors
    /// As [`Store::get`]. The entries visited before an error are correct.
    pub async fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        order: Order,
        at: &Snapshot,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let mut rest = None;
        loop {
            let range = rest.as_ref().unwrap_or(range);
            #[cfg(feature = "simulation")]
            if let Self::Simulated(store) = self {
                store.wait().await;
            }
            let stride = match (self, &at.0) {
                #[cfg(feature = "simulation")]
                (Self::Simulated(_), View::Memory(state)) => state.scan(space, range, order, &mut visit)?,
                (Self::Memory(_), View::Memory(state)) => state.scan(space, range, order, &mut visit)?,
                (Self::Fjall(store), View::Fjall(published)) => match space {
                    Space::Rows => published.scan_rows(range, order, store.cache(), &mut visit)?,
                    _ => published.scan(space, range, order, &mut visit)?,
                },
                (Self::Slate(store), View::Slate(published)) => {
                    return match space {
                        Space::Rows => Box::pin(published.scan_rows(range, order, store.cache(), visit)).await,
                        _ => Box::pin(published.scan(space, range, order, visit)).await,
                    };
                }
                (_, view) => return Err(view.refusal()),
            };
            match stride {
                engine::Stride::Done => return Ok(()),
                engine::Stride::After(key) => rest = Some(engine::rest_of_range(range, order, key)),
                engine::Stride::Rest(range) => rest = Some(range),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Commits a batch, all or nothing, and durable as [`Options::durability`] says when it returns. Once called it
    /// completes even if the future is dropped.
    ///
    /// # Errors
    /// The medium takes no writes: the batch may or may not take effect. It did not with [`Error::BatchTooLarge`],
    /// [`Error::KeyTooLarge`], [`Error::RowTooLarge`], [`Error::OpenedAgain`] and [`Error::WritesRefused`].
    pub async fn commit(&self, batch: Batch) -> Result<CommitSeq> {
        self.commit_rows(batch).await.map(|committed| committed.seq)
    }

    /// As [`Store::commit`]; also returns the effect on the rows that the engine read.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn commit_rows(&self, batch: Batch) -> Result<Committed> {
        batch.check()?;
        match self {
            Self::Memory(store) => store.commit(batch),
            Self::Fjall(store) => store.commit(batch).await,
            Self::Slate(store) => Box::pin(store.commit(batch)).await.map(Committed::from),
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.commit(batch).await,
        }
    }

    /// Refuses a batch that [`Store::commit`] would never accept, or does not accept now, so that the caller can check
    /// before it writes anything that depends on it.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`], [`Error::KeyTooLarge`]; the failure of a bucket that does not take the log.
    pub fn check_batch(&self, batch: &Batch) -> Result<()> {
        batch.check()?;
        match self {
            Self::Fjall(store) => store.check_batch(batch),
            Self::Slate(store) => store.check_batch(batch),
            Self::Memory(_) => Ok(()),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Registers the derivations of index entries ([`derivation`]), in place of those registered before. Commits that
    /// are answered after a commit that began after this call apply them; earlier ones may or may not. A store that is
    /// opened has none.
    pub fn set_derivations(&self, derivations: Derivations) {
        match self {
            Self::Memory(store) => store.set_derivations(derivations),
            Self::Fjall(store) => store.set_derivations(derivations),
            Self::Slate(store) => store.set_derivations(derivations),
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.set_derivations(derivations),
        }
    }

    /// State that the store's sweeps share with its committer.
    fn sweeps(&self) -> &Arc<purge::Sweeps> {
        match self {
            Self::Memory(store) => store.sweeps(),
            Self::Fjall(store) => store.sweeps(),
            Self::Slate(store) => store.sweeps(),
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.sweeps(),
        }
    }

    /// Tells that a range of row keys will be read soon. Only a store in a bucket does something: it reads the beginning
    /// of the range in the background.
    pub fn read_ahead(&self, range: impl FnOnce() -> KeyRange) {
        if let Self::Slate(store) = self {
            store.read_ahead(range);
        }
    }

    /// The current size of a range of row keys.
    #[must_use]
    pub fn bytes_in(&self, range: &KeyRange) -> Estimate {
        match self {
            Self::Memory(store) => store.snapshot().sizes.estimate(range),
            Self::Slate(store) => store.estimate(range),
            Self::Fjall(store) => store
                .snapshot()
                .map(|published| published.sizes.estimate(range))
                .unwrap_or_default(),
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store
                .snapshot()
                .map_or_else(Estimate::default, |state| state.sizes.estimate(range)),
        }
    }

    /// As [`Store::bytes_in`], for a table whose rows in this store lie in `part` 2^64ths of the ring only.
    #[must_use]
    pub fn bytes_in_part(&self, range: &KeyRange, part: u128) -> Estimate {
        let whole = 1_u128 << 64;
        let mut estimate = self.bytes_in(range);
        if part == whole || matches!(self, Self::Slate(_)) {
            return estimate;
        }
        // The figures above assume the whole ring; scale them up, because the rows fill only this part of it.
        let scaled = |of_whole: u64| {
            let scaled = u128::from(of_whole).saturating_mul(whole) / part.max(1);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        estimate.bytes = scaled(estimate.bytes);
        estimate.rows = scaled(estimate.rows);
        estimate
    }

    /// Figures since the store was opened; for metrics and virtual tables.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let cache = match self {
            Self::Memory(_) => return Figures::default(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => return Figures::default(),
            Self::Fjall(store) => store.cache(),
            Self::Slate(store) => store.cache(),
        };
        let (row_cache_hits, row_cache_misses) = cache.hits_and_misses();
        Figures {
            row_cache_hits,
            row_cache_misses,
            row_cache_bytes: cache.bytes(),
            held: match self {
                Self::Fjall(store) => store.held(),
                _ => Held::default(),
            },
        }
    }

    /// Releases the original files kept by [`Options::is_accepted_later`]: from now on the store takes writes.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn accept(&self) -> Result<()> {
        match self {
            Self::Memory(_) | Self::Slate(_) => Ok(()),
            Self::Fjall(store) => store.accept().await,
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Why nothing can be read or written here until the server restarts. `None` means it can be read, or will be
    /// again.
    #[must_use]
    pub fn lost(&self) -> Option<Arc<Error>> {
        match self {
            Self::Memory(_) => None,
            Self::Fjall(store) => store.lost(),
            Self::Slate(store) => store.lost(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => None,
        }
    }

    /// How long the lease of the bucket lasts unless it is renewed. `None` means that the data is in no bucket.
    #[must_use]
    pub fn lease_left(&self) -> Option<Duration> {
        match self {
            Self::Memory(_) | Self::Fjall(_) => None,
            Self::Slate(store) => store.lease_left(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => None,
        }
    }

    /// The newest put of the lease of the bucket, for other nodes. `None` means that the data is in no bucket.
    #[must_use]
    pub fn lease_put(&self) -> Option<bucket::LeasePut> {
        match self {
            Self::Memory(_) | Self::Fjall(_) => None,
            Self::Slate(store) => store.lease_put(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => None,
        }
    }

    /// Why another server may have written here since this one did. `None` means that this one is the only writer.
    #[must_use]
    pub fn taken_over(&self) -> Option<Error> {
        match self {
            Self::Memory(_) | Self::Fjall(_) => None,
            Self::Slate(store) => match store.snapshot() {
                Some(_) => None,
                None => {
                    let why = store.why_unavailable();
                    matches!(why, Error::TakenOver { .. } | Error::LeaseOver { .. } | Error::Closed).then_some(why)
                }
            },
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.snapshot().is_none().then_some(Error::Closed),
        }
    }

    /// Flushes the memtables to tables, so that the next opening is quick. Durability never needs it.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn flush(&self) -> Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Fjall(store) => store.flush().await,
            Self::Slate(store) => store.flush().await,
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Makes the acknowledged writes durable, whatever [`Options::durability`]: another store is about to record
    /// something that depends on them.
    ///
    /// # Errors
    /// When the medium fails; then it is unknown what is durable.
    pub async fn sync(&self) -> Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Fjall(store) => store.sync().await,
            Self::Slate(store) => store.sync().await,
            #[cfg(feature = "simulation")]
            Self::Simulated(store) => store.sync().await,
        }
    }

    /// Answers all queued commits, makes them durable and closes. Later commits are refused.
    ///
    /// # Errors
    /// When the medium fails; the store is closed nevertheless.
    pub async fn close(&self) -> Result<()> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Fjall(store) => store.close().await,
            Self::Slate(store) => store.close().await,
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
