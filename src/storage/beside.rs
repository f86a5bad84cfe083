//! Stores beside the main one: of one URL, each with a log and a writer of its own, told apart by a number.
//!
//! ```text
//! memory:          each in this process
//! file:DIR         DIR/stores/N                a directory like DIR itself
//! slate+…:         stores/N in the same bucket  a database like "engine"; begun as a clone it goes on naming tables of "engine"
//! ```
//! Who uses them keeps a record of each before it is made and until it is removed: what is here cannot be found without it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::{fjall, io_error, memory, moments};
use super::{Error, KeyRange, Moment, Moments, Options, Result, Store, Url};
use crate::clock::Clock;

/// The directory, and the part of a bucket, in which they lie.
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
    /// Opens the store of a number beside this one, which was opened at `url`. `is_new`: makes it if it is not there.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Corrupt`] when it is not there and not new.
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
            (Self::Simulated(store), _) => store.open_side(number, is_new, options).map(Self::Simulated),
            (Self::Fjall(_), Url::File(main)) => {
                let path = directory(main, number);
                if !is_new && !fjall::is_store(&path) {
                    return Err(missing(path));
                }
                let options = Options {
                    must_exist: !is_new,
                    ..options.clone()
                };
                Ok(Self::Fjall(fjall::Store::open(&path, &options, clock).await?))
            }
            (Self::Slate(store), _) => {
                let path = format!("{STORES}/{number}");
                // Boxed, here and below: this engine's futures take kilobytes.
                if !is_new && !Box::pin(store.has_database(&path)).await? {
                    return Err(missing(PathBuf::from(path)));
                }
                Ok(Self::Slate(Box::pin(store.open_side(path, options)).await?))
            }
            _ => Ok(Self::Memory(memory::Store::default())),
        }
    }

    /// Makes a store beside this one that shows a range of this one's rows as they are now, without copying them. Whether the engine can;
    /// if not, nothing was done. Commits to this store wait meanwhile.
    ///
    /// # Errors
    /// When the medium fails; then something of it may be there, for [`Store::remove_side`].
    pub async fn clone_side(&self, number: u32, rows: &KeyRange) -> Result<bool> {
        match self {
            Self::Slate(store) => {
                Box::pin(store.clone_side(format!("{STORES}/{number}"), rows)).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Waits before something that failed is tried again; on a simulated medium until the simulation says so.
    pub async fn pause(&self, length: Duration) {
        #[cfg(feature = "simulation")]
        if let Self::Simulated(store) = self {
            return store.pause().await;
        }
        tokio::time::sleep(length).await;
    }

    /// What is known of its moment, to be noted beside it and held against what others noted; `None`: the engine has no need of it.
    fn moment(&self) -> Option<Moment> {
        match self {
            Self::Fjall(store) => Some(store.moment()),
            Self::Slate(store) => store.moment(),
            _ => None,
        }
    }

    /// Removes all of a closed store beside this one; nothing if it is not there.
    ///
    /// # Errors
    /// When the medium fails; then part of it may be there still.
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
    /// Holds stores that were opened together, by number, against what they have noted of each other. With `is_forced`, what does not go
    /// together is told and let pass.
    ///
    /// # Errors
    /// [`Error::EarlierMoment`]; when a note is damaged or cannot be read.
    pub fn check(stores: &[(u32, Store)], is_forced: bool) -> Result<()> {
        moments::check(&moments_of(stores), is_forced)
    }

    /// A store belongs to them from now on.
    pub fn join(&self, number: u32, store: &Store) {
        if let Some(moment) = store.moment() {
            self.add(number, moment);
        }
    }

    /// Begins to note the moments of stores, by number; `None`: the engine has no need of it, or there is one store only.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn of(stores: &[(u32, Store)]) -> Result<Option<Self>> {
        let stores = moments_of(stores);
        if stores.len() < 2 {
            return Ok(None);
        }
        Self::start(stores).map(Some)
    }
}

fn moments_of(stores: &[(u32, Store)]) -> Vec<(u32, Moment)> {
    let stores = stores.iter();
    stores
        .filter_map(|(number, store)| Some((*number, store.moment()?)))
        .collect()
}
