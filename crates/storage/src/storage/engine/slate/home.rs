//! The location of a database, so that it can be opened again: directory, medium, clock. Also SlateDB's operations on
//! databases that are not open.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use slatedb::ErrorKind;
use slatedb::admin::{Admin, AdminBuilder, CloneSourceSpec};
use slatedb::db_cache::DbCache;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::local::LocalFileSystem;
use slatedb_common::clock::SystemClock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::clock::{LastPut, Pace, Ticks};
use super::disk_cache::DiskCache;
use super::failures::{failure, failure_of_store};
use super::log::{Log, LogAdmin, Logged};
use super::medium::Medium;
use super::places::{DATABASE, number_of};
use super::put_record;
use super::tuning::{Patience, READS_AHEAD_MAX, block_cache};
use crate::storage::address::Address;
use crate::storage::bucket::{LeasePut, Logs, Mark, Owner, Reached, Wish, claim, claimed, is_used, mark};
use crate::storage::bucket_refusal::Refusal;
use crate::storage::engine::directory::{Directory, Wanted, check_identity};
use crate::storage::engine::durable::Durable;
use crate::storage::engine::layout::Origin;
use crate::storage::engine::moments::Moment;
use crate::storage::identity::Identity;
use crate::storage::{Error, Options, Result};
use helenus_base::clock::Clock;

/// The content of such a store's format file.
pub(in crate::storage::engine) const FORMAT: &str = crate::storage::identity::SLATE;

/// The location of a database.
pub(super) struct Home {
    /// `None` means that it is in memory.
    pub(super) directory: Option<Arc<Directory>>,
    /// One for all databases of the bucket.
    pub(super) medium: Arc<Medium>,
    pub(super) location: Arc<str>,
    /// Where the database lies in its object store.
    pub(super) database: Arc<str>,
    /// The store that it is.
    pub(super) identity: Identity,
    /// One for all databases of the bucket.
    pub(super) ticks: Arc<Ticks>,
    /// The last object of the log that is durable.
    pub(super) durable: Arc<Durable>,
    /// The bucket, if it is in a cloud.
    pub(super) bucket: Option<Arc<Bucket>>,
    /// `None` means no cache.
    pub(super) blocks: Option<Arc<Blocks>>,
    /// The log that all databases of the bucket share. `None` means that each has its own.
    pub(super) log: Option<Arc<Log>>,
}

/// A bucket of a cloud.
pub(super) struct Bucket {
    reached: Reached,
    owner: Owner,
    /// Databases that are open, or being opened.
    databases: AtomicUsize,
    /// Whether there was a database when the bucket was first reached.
    is_used: AtomicBool,
    /// What marks the database, once there is one.
    mark: Mark,
}

/// The cache of blocks, indexes and filters for all databases of the bucket or directory.
pub(super) struct Blocks {
    cache: Arc<dyn DbCache>,
    /// Distinguishes the openings of the databases.
    openings: AtomicU64,
    /// For reads ahead of scans.
    ahead: Arc<Semaphore>,
}

/// The cache of blocks, and the number of an opening there.
pub(super) type NumberedBlocks = (Arc<dyn DbCache>, u64);

impl Blocks {
    /// `None` means no cache.
    pub(super) fn new(options: &Options) -> Option<Arc<Self>> {
        let cache = block_cache(options)?;
        Some(Arc::new(Self {
            cache,
            openings: AtomicU64::default(),
            ahead: Arc::new(Semaphore::new(READS_AHEAD_MAX)),
        }))
    }
}

impl std::fmt::Debug for Home {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Home")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl Home {
    pub(super) fn in_directory(path: PathBuf, location: Arc<str>, options: &Options, clock: Clock) -> Result<Self> {
        let directory = Directory::open(&path, Wanted::main(options, FORMAT))?;
        let objects = LocalFileSystem::new_with_prefix(&path).map_err(|error| Error::Engine {
            location: location.to_string(),
            what: error.to_string(),
        })?;
        let identity = directory.identity();
        let medium = Medium::new(Arc::new(objects.with_fsync(true)), Some(path), identity);
        Ok(Self {
            directory: Some(Arc::new(directory)),
            medium: Arc::new(medium),
            identity,
            location,
            database: DATABASE.into(),
            ticks: Arc::new(Ticks::new(clock)),
            durable: Arc::default(),
            bucket: None,
            blocks: Blocks::new(options),
            log: None,
        })
    }

    /// Reaches a bucket and claims its prefix.
    pub(super) async fn in_bucket(
        address: &Address,
        location: Arc<str>,
        options: &Options,
        clock: Clock,
    ) -> Result<Self> {
        let refused = |refusal| Error::Bucket {
            url: location.to_string(),
            refusal,
        };
        let reached = Reached::new(address, &options.reach).map_err(refused)?;
        Self::of_reached(reached, location, options, clock).await
    }

    /// Claims the prefix of a bucket, and acquires its lease.
    #[expect(
        clippy::too_many_lines,
        reason = "a prefix is claimed, leased and opened, in an order that matters"
    )]
    pub(super) async fn of_reached(
        reached: Reached,
        location: Arc<str>,
        options: &Options,
        clock: Clock,
    ) -> Result<Self> {
        let refused = |refusal| Error::Bucket {
            url: location.to_string(),
            refusal,
        };
        let wish = Wish {
            draw: options.reach.draw,
            logs: if options.data_stores.is_some_and(|stores| stores > 0) {
                Logs::Shared
            } else {
                Logs::Own
            },
            profile: options.profile,
        };
        let claim = claim(&reached, wish).await.map_err(refused)?;
        let is_to_record = claim.is_to_record(options.profile).map_err(refused)?;
        let (logs, identity) = (claim.logs, claim.identity);
        let objects: Arc<dyn ObjectStore> = match &options.bucket_cache {
            Some(cache) => Arc::new(DiskCache::open(Arc::clone(&reached.objects), cache)?),
            None => Arc::clone(&reached.objects),
        };
        let medium = Arc::new(Medium::remote(objects, Arc::clone(&location), identity));
        let taken = Error::TakenOver {
            location: location.to_string(),
        };
        let taken_medium = Arc::clone(&medium);
        let lost = move || taken_medium.end(taken.clone());
        // The machine's time, not the clock that dates the rows: with a clock that stands still, a lease would never
        // end.
        let owner = Owner::acquire(&reached, &options.reach, Clock::system(), lost);
        let owner = owner.await.map_err(refused)?;
        let ticks = Arc::new(Ticks::new(clock));
        medium.ask_owner(owner.asked(), &ticks);
        // Read only after this process owns the bucket: another server may have created the database while this one
        // waited.
        let recorded = match is_to_record {
            true => claim.record(&reached, options.profile).await,
            false => Ok(()),
        };
        let is_used = match recorded {
            Ok(()) => is_used(&reached).await,
            Err(refusal) => Err(refusal),
        };
        let is_used = match is_used {
            Ok(is_used) => is_used,
            Err(refusal) => {
                owner.release().await;
                return Err(refused(refusal));
            }
        };
        let log = match logs {
            Logs::Own => None,
            Logs::Shared => {
                let (of, process) = (Arc::clone(&location), owner.incarnation().to_owned());
                match Log::open(Arc::clone(&medium), of, process, Arc::clone(&ticks), options, is_used).await {
                    Ok(log) => Some(log),
                    Err(error) => {
                        owner.release().await;
                        return Err(failure_of_store(&location, error));
                    }
                }
            }
        };
        Ok(Self {
            directory: None,
            medium,
            identity,
            location,
            database: DATABASE.into(),
            ticks,
            durable: Arc::default(),
            bucket: Some(Arc::new(Bucket {
                reached,
                owner,
                databases: AtomicUsize::default(),
                is_used: AtomicBool::new(is_used),
                mark: match options.is_restored_into {
                    true => Mark::BeingRestored,
                    false => Mark::Used,
                },
            })),
            blocks: Blocks::new(options),
            log,
        })
    }

    /// Whether a failure of a bucket may pass. All of them are classified when the database is opened again.
    pub(super) fn may_pass(&self, error: &Error) -> bool {
        self.is_remote() && !matches!(error, Error::TakenOver { .. } | Error::Corrupt { .. })
    }

    /// Whether a database of a bucket that did not open at a start may open when it is tried again.
    pub(super) fn may_open(&self, error: &Error) -> bool {
        match error {
            Error::Bucket { refusal, .. } => refusal.may_pass(),
            Error::MetItself { .. } => true,
            _ => false,
        }
    }

    /// What the log that all databases share has of this one. Take it before tables are written.
    pub(super) fn logged(&self) -> Option<Logged> {
        self.log.as_ref()?.logged(&self.database)
    }

    /// Tells the log that tables have these rows: they were written, and a manifest in the bucket names them. SlateDB's own
    /// status says so before the manifest is put.
    pub(super) fn tables_have(&self, logged: Option<Logged>) {
        if let (Some(log), Some(logged)) = (&self.log, logged) {
            log.have_tables(&self.database, logged);
        }
    }

    /// Whether reads return the newest data; in a bucket this holds while this process owns it. Check it after taking a
    /// snapshot.
    pub(super) fn is_owner(&self) -> bool {
        self.bucket.as_ref().is_none_or(|bucket| bucket.owner.is_owner())
    }

    /// How long the lease of the bucket lasts unless it is renewed. `None` means that there is none.
    pub(super) fn lease_left(&self) -> Option<Duration> {
        self.bucket.as_ref().map(|bucket| bucket.owner.lease_left())
    }

    /// The newest put of the lease of the bucket. `None` means that there is none.
    pub(super) fn lease_put(&self) -> Option<LeasePut> {
        self.bucket.as_ref().map(|bucket| bucket.owner.lease_put())
    }

    /// Counts a database that is being opened.
    pub(super) fn begin(&self) {
        if let Some(bucket) = &self.bucket {
            bucket.databases.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Counts a database that was closed. The last one releases the bucket.
    pub(super) async fn end(&self) {
        if let Some(bucket) = &self.bucket
            && bucket.databases.fetch_sub(1, Ordering::AcqRel) == 1
        {
            if let Some(log) = &self.log {
                log.stop();
            }
            bucket.owner.release().await;
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        self.bucket.is_some()
    }

    pub(super) fn patience(&self) -> Patience {
        Patience::of(self.is_remote())
    }

    /// The cache of blocks for an opening, and its number there.
    pub(super) fn blocks(&self) -> Option<NumberedBlocks> {
        let blocks = self.blocks.as_ref()?;
        Some((
            Arc::clone(&blocks.cache),
            blocks.openings.fetch_add(1, Ordering::Relaxed),
        ))
    }

    /// A permit for a read ahead. `None` means that it would not be faster, or that too many are under way.
    pub(super) fn ahead(&self) -> Option<OwnedSemaphorePermit> {
        let blocks = self.blocks.as_ref().filter(|_| self.is_remote())?;
        Arc::clone(&blocks.ahead).try_acquire_owned().ok()
    }

    /// Refuses to create the main database if it was used before: then a manifest must exist.
    pub(super) fn may_begin(&self, options: &Options) -> Result<()> {
        match &self.bucket {
            Some(bucket)
                if *self.database == *DATABASE && bucket.is_used.load(Ordering::Acquire) && !options.create =>
            {
                Err(Error::Bucket {
                    url: self.location.to_string(),
                    refusal: Refusal::Gone,
                })
            }
            _ => Ok(()),
        }
    }

    /// Marks the store as used, durably.
    pub(super) async fn mark_used(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            directory.mark_used()?;
            directory.write_holder();
        }
        if let Some(bucket) = &self.bucket
            && !bucket.is_used.load(Ordering::Acquire)
        {
            self.within(self.patience().put_max, async {
                mark(&bucket.reached, bucket.mark)
                    .await
                    .map_err(|refusal| self.refused(refusal))
            })
            .await?;
            bucket.is_used.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Checks whether the medium answers: a bucket, by a request.
    pub(super) async fn probe(&self) -> Result<()> {
        if let Some(directory) = &self.directory {
            directory.probe(0)?;
        }
        if let Some(bucket) = &self.bucket {
            let probed = claimed(&bucket.reached).await;
            probed.map(drop).map_err(|refusal| self.refused(refusal))?;
        }
        Ok(())
    }

    fn refused(&self, refusal: Refusal) -> Error {
        Error::Bucket {
            url: self.location.to_string(),
            refusal,
        }
    }

    /// Why the log that all databases of the bucket share cannot be put now. `None` means that it can, or that there is no
    /// such log.
    pub(super) fn log_stalled(&self) -> Option<Error> {
        self.log.as_ref()?.stalled()
    }

    /// Waits until a put of a bucket's log is late, and returns why: the shared log says that its puts fail, or the put has
    /// taken too long since it began.
    pub(super) async fn late(self: Arc<Self>, began: Duration) -> Error {
        let longest = self.patience().put_max;
        let taken = self.ticks.monotonic().saturating_sub(began);
        let stalls = async {
            match &self.log {
                Some(log) => log.stalls().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            error = stalls => error,
            () = tokio::time::sleep(longest.saturating_sub(taken)) => self.silent(longest),
        }
    }

    /// Waits for the result of a call, at most this long.
    pub(super) async fn within<T>(&self, longest: Duration, call: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout(longest, call).await {
            Ok(answer) => answer,
            Err(_) => Err(self.silent(longest)),
        }
    }

    /// The error for a medium that did not answer.
    pub(super) fn silent(&self, longest: Duration) -> Error {
        let what = format!("the object store did not answer in {} s", longest.as_secs());
        if self.is_remote() {
            return self.refused(Refusal::Unreachable { what });
        }
        Error::Engine {
            location: self.location.to_string(),
            what,
        }
    }

    /// The location of another database of the same bucket.
    pub(super) fn beside(&self, database: String) -> Self {
        Self {
            directory: self.directory.clone(),
            medium: Arc::clone(&self.medium),
            location: format!("{} {database}", self.location).into(),
            identity: self.identity.beside(number_of(&database)),
            database: database.into(),
            ticks: Arc::clone(&self.ticks),
            durable: Arc::default(),
            bucket: self.bucket.clone(),
            blocks: self.blocks.clone(),
            log: self.log.clone(),
        }
    }

    /// Its entry for the records of progress. `None` means that it is in memory. A group is an object of the log here.
    pub(super) fn moment(&self) -> Option<Moment> {
        let directory = self.directory.as_ref()?.path().join(self.database.as_ref());
        Some(Moment {
            directory,
            identity: self.identity,
            durable: Arc::clone(&self.durable),
        })
    }

    /// What a group names that is written now.
    pub(super) fn origin(&self) -> Origin {
        let (object, sum) = self.medium.last_of_log(&self.database).unwrap_or_default();
        Origin {
            store: self.identity,
            object,
            sum,
        }
    }

    /// Refuses a database whose groups name another store.
    pub(super) fn check_origin(&self, origin: Option<Origin>) -> Result<()> {
        let expected = self.identity;
        origin.map_or(Ok(()), |origin| check_identity(&self.path(), origin.store, expected))
    }

    /// The clock for an opening of the database.
    pub(super) fn pace(&self) -> Arc<dyn SystemClock> {
        if !self.is_remote() {
            return Arc::clone(&self.ticks) as _;
        }
        let last_put = Arc::new(LastPut::new(Arc::clone(&self.ticks)));
        self.medium.date_puts(self.database.as_ref(), &last_put);
        Arc::new(Pace(last_put))
    }

    /// The object store, for SlateDB.
    pub(super) fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.medium) as _
    }

    /// The database's path.
    pub(super) fn path(&self) -> PathBuf {
        self.medium.file(&self.database.as_ref().into())
    }

    pub(super) fn admin(&self, path: &str) -> Admin {
        let admin = AdminBuilder::new(path, self.objects()).with_system_clock(Arc::clone(&self.ticks) as _);
        match &self.log {
            Some(log) => admin.with_wal_admin(Arc::new(LogAdmin(Arc::clone(log)))).build(),
            None => admin.build(),
        }
    }

    /// Classifies an error of SlateDB. Once the medium is lost, every error means that. A database that SlateDB closed
    /// because the disk was full refuses everything else too, for that reason. A server that has taken over removes
    /// objects that it no longer needs: what this process misses then is not damage. While this process owns the bucket, a
    /// database that seems to be another writer's is its own.
    pub(super) fn failure(&self, error: &slatedb::Error) -> Error {
        if let Some(lost) = self.medium.lost() {
            return Error::clone(&lost);
        }
        match (failure(&self.location, error), self.medium.full()) {
            (Error::Engine { .. }, Some(full)) if matches!(error.kind(), ErrorKind::Closed(_)) => Error::clone(&full),
            (Error::Corrupt { .. }, _) if !self.is_owner() => self.lease_over(),
            (Error::TakenOver { location }, _) if self.is_remote() && self.is_owner() => Error::MetItself { location },
            (failure, _) => failure,
        }
    }

    /// The error of a request while this process does not own the bucket.
    pub(super) fn lease_over(&self) -> Error {
        Error::LeaseOver {
            location: self.location.to_string(),
        }
    }

    /// Makes the shared log forget a database that is removed or begun.
    pub(super) async fn forget(&self, path: &str) -> Result<()> {
        match &self.log {
            None => Ok(()),
            Some(log) => log.forget(path).await.map_err(|error| {
                let error = slatedb::Error::unavailable("the log".to_owned()).with_source(Box::new(error));
                self.failure(&error)
            }),
        }
    }

    pub(super) async fn has_database(&self, path: &str) -> Result<bool> {
        let manifest = self.admin(path).read_manifest(None).await;
        let manifest = manifest.map_err(|error| self.failure(&error))?;
        Ok(manifest.is_some())
    }

    pub(super) async fn remove_database(&self, path: &str) -> Result<()> {
        if let Some(directory) = &self.directory {
            // Ended first: otherwise a database that is half removed would look like one that has lost something.
            self.medium.end_put_record(path);
            put_record::remove(directory.path(), path)?;
        }
        self.forget(path).await?;
        let removed = self.admin(path).delete_db(true).await;
        removed.map(drop).map_err(|error| self.failure(&error))
    }

    pub(super) async fn clone_database(&self, path: &str, range: (Bound<Bytes>, Bound<Bytes>)) -> Result<()> {
        self.forget(path).await?;
        let source = CloneSourceSpec::new(self.database.as_ref()).with_projection_range(range);
        let cloned = self.admin(path).create_clone_builder_from_source(source).build().await;
        cloned.map_err(|error| self.failure(&error))
    }
}
