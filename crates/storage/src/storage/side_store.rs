//! Side stores: stores next to the main one, at the same URL, each with its own log and writer, identified by a number.
//!
//! ```text
//! memory:          each in this process
//! file:DIR         DIR/stores/N                a directory like DIR itself
//! slate+…:         stores/N in the same bucket  a database like "engine"; a clone keeps referring to tables of "engine"
//! ```
//! The caller records each side store in its catalog from before the creation until after the removal: the store cannot
//! list them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::{fjall, io_error, memory, moments};
use super::{Error, KeyRange, Moment, Moments, Options, Result, Store, Url};
use helenus_base::clock::Clock;

/// The directory, or the part of a bucket, that holds them.
const STORES: &str = "stores";

fn directory(of: &Path, number: u32) -> PathBuf {
    of.join(STORES).join(number.to_string())
}

fn missing(path: PathBuf) -> Error {
    Error::Corrupt {
        path,
        what: "the catalog names this store and it is not there".to_owned(),
    }
}

impl Store {
    /// Opens the side store of a number; `url` is the URL of this store. With `is_new` it is created if it does not
    /// exist.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Corrupt`] if it does not exist and `is_new` is false.
    pub async fn open_side(
        &self,
        url: &Url,
        number: u32,
        is_new: bool,
        options: &Options,
        clock: Clock,
    ) -> Result<Self> {
        match (self, url) {
            #[cfg(feature = "simulation")]
            (Self::Simulated(store), _) => {
                let is_relaxed = options.durability != super::Durability::Group;
                let opened = store.open_side(number, is_new, options.times(), is_relaxed);
                opened.map(Self::Simulated)
            }
            (Self::Fjall(of), Url::File(main)) => {
                let path = directory(main, number);
                if !is_new && !fjall::is_store(&path) {
                    return Err(missing(path));
                }
                let options = Options {
                    must_exist: !is_new,
                    ..options.clone()
                };
                let identity = Some(of.identity().beside(number));
                Ok(Self::Fjall(fjall::Store::open(&path, identity, &options, clock).await?))
            }
            (Self::Slate(store), _) => {
                let path = format!("{STORES}/{number}");
                // Boxed, here and below: this engine's futures take kilobytes.
                if !is_new && !Box::pin(store.has_database(&path)).await? {
                    return Err(missing(PathBuf::from(path)));
                }
                Ok(Self::Slate(Box::pin(store.open_side(path, options)).await?))
            }
            _ => Ok(Self::Memory(memory::Store::new(options.times().drawn()))),
        }
    }

    /// Makes a side store with the current rows of a range of this one, without copying them. Returns whether the
    /// engine can; if not, nothing was done. Commits to this store wait meanwhile.
    ///
    /// # Errors
    /// The medium fails; then a part of the clone may exist, for [`Store::remove_side`].
    pub async fn clone_side(&self, number: u32, rows: &KeyRange) -> Result<bool> {
        match self {
            Self::Slate(store) => {
                Box::pin(store.clone_side(format!("{STORES}/{number}"), rows)).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Waits before a retry; on a simulated medium until the simulation ends the pause.
    pub async fn pause(&self, length: Duration) {
        #[cfg(feature = "simulation")]
        if let Self::Simulated(store) = self {
            return store.pause().await;
        }
        tokio::time::sleep(length).await;
    }

    /// Its entry for the other stores' `moments` files, to compare with their records. `None` means the engine has no
    /// such file.
    fn moment(&self) -> Option<Moment> {
        match self {
            Self::Fjall(store) => Some(store.moment()),
            Self::Slate(store) => store.moment(),
            _ => None,
        }
    }

    /// Removes the rows of a closed side store from the shared log. The side store's own objects stay.
    ///
    /// # Errors
    /// The medium fails.
    pub async fn forget_side(&self, number: u32) -> Result<()> {
        match self {
            Self::Slate(store) => Box::pin(store.forget_database(&format!("{STORES}/{number}"))).await,
            _ => Ok(()),
        }
    }

    /// Removes all of a closed side store; does nothing if it does not exist.
    ///
    /// # Errors
    /// The medium fails; then a part of it may still exist.
    pub async fn remove_side(&self, url: &Url, number: u32) -> Result<()> {
        #[cfg(feature = "simulation")]
        if let Self::Simulated(store) = self {
            store.remove_side(number);
            return Ok(());
        }
        if let Self::Slate(store) = self {
            Box::pin(store.remove_database(&format!("{STORES}/{number}"))).await?;
        }
        if let Url::File(main) | Url::SlateFile(main) = url {
            let path = directory(main, number);
            let removing = path.clone();
            let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(removing)).await;
            match removed {
                Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io_error("removing", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Moments {
    /// Compares stores that were opened together, by number, with the records that they hold of each other. With
    /// `is_forced`, a mismatch is logged and accepted.
    ///
    /// # Errors
    /// [`Error::EarlierMoment`], [`Error::OtherCopy`], [`Error::FollowsClose`]; a record is damaged or cannot be read.
    pub fn check(stores: &[(u32, Store)], is_forced: bool) -> Result<()> {
        moments::check(&moments_of(stores), is_forced)
    }

    /// Records, before stores that were opened together take writes, where they begin. SlateDB's do that as they are opened.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub fn begin(stores: &[(u32, Store)]) -> Result<()> {
        let stores = stores.iter().filter(|(_, store)| matches!(store, Store::Fjall(_)));
        moments::begin(&moments_of(stores))
    }

    /// Records the stores' progress once more, and stops. When the main store is closed, after all others, it records that
    /// they were closed.
    pub fn end_with(self, main: &Store) {
        if let Some(moment) = main.moment() {
            self.end(&moment);
        }
    }

    /// Adds a store.
    pub fn join(&self, number: u32, store: &Store) {
        if let Some(moment) = store.moment() {
            self.add(number, moment);
        }
    }

    /// Starts to record the progress of stores, by number. `None` means the engine has no such file, or there is one
    /// store only; then its file of earlier stores is removed.
    ///
    /// # Errors
    /// When the thread cannot be started, or the file cannot be removed.
    pub fn of(stores: &[(u32, Store)]) -> Result<Option<Self>> {
        let stores = moments_of(stores);
        match stores.as_slice() {
            [] => Ok(None),
            [(_, store)] => moments::forget(store).map(|()| None),
            _ => Self::start(stores).map(Some),
        }
    }
}

fn moments_of<'s>(stores: impl IntoIterator<Item = &'s (u32, Store)>) -> Vec<(u32, Moment)> {
    let stores = stores.into_iter();
    stores
        .filter_map(|(number, store)| Some((*number, store.moment()?)))
        .collect()
}
