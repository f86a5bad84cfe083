//! The stores of a damaged database, as far as their files can be read, and blocks of a backup made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::backups::{Rest, fill_salvaged};
use super::ring::{MapError, PartitionMap, StoreId};
use helenus_base::clock::Clock;
use helenus_storage::backup::{Block, Kind};
use helenus_storage::storage::{self, KeyRange, Salvage, Space, TableId, Url};

/// The error of a damaged database that cannot be read, not even in part.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Unreadable(#[from] storage::Error);

/// The stores of a damaged database.
#[derive(Debug)]
pub struct Stores {
    url: Url,
    clock: Clock,
    all: BTreeMap<StoreId, Salvage>,
}

/// Unreadable parts of a range: by file and end key, the cause.
pub type Gaps = BTreeMap<(std::path::PathBuf, Option<Vec<u8>>), String>;

/// The recorded partition map; without a record all of a table is in the main store.
///
/// # Errors
/// The record is damaged.
pub fn map_of(record: Option<&Vec<u8>>) -> Result<PartitionMap, MapError> {
    match record {
        Some(record) => PartitionMap::decode(record),
        None => Ok(PartitionMap::evenly(1, StoreId::MAIN)),
    }
}

impl Stores {
    /// Opens the main store at a URL.
    ///
    /// # Errors
    /// It does not exist, another process has locked it, or the medium fails otherwise than by damage.
    pub async fn open(url: &str, clock: Clock) -> Result<Self, Unreadable> {
        let url: Url = url.parse()?;
        let main = Salvage::open(&url, StoreId::MAIN.0, clock.clone()).await?;
        Ok(Self {
            url,
            clock,
            all: BTreeMap::from([(StoreId::MAIN, main)]),
        })
    }

    /// Opens a side store.
    ///
    /// # Errors
    /// As [`Stores::open`].
    pub async fn open_side(&mut self, id: StoreId) -> Result<(), Unreadable> {
        let store = Salvage::open(&self.url, id.0, self.clock.clone()).await?;
        self.all.insert(id, store);
        Ok(())
    }

    /// Compares the open stores with their records of each other's progress.
    pub fn check_together(&mut self) {
        Salvage::check_together(self.all.iter_mut().map(|(id, store)| (id.0, store)));
    }

    /// The numbers of the side stores that exist.
    #[must_use]
    pub fn beside(&self) -> BTreeSet<StoreId> {
        let folder = self.url.directory().map(|directory| directory.join("stores"));
        let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
        let entries = entries.into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.map(StoreId).collect()
    }

    /// The numbers of the stores that are open.
    #[must_use]
    pub fn ids(&self) -> Vec<StoreId> {
        self.all.keys().copied().collect()
    }

    /// Walks the records of the catalog. Returns the unreadable files with their causes.
    pub async fn records(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Vec<(String, String)> {
        let Some(main) = self.all.get(&StoreId::MAIN) else {
            return Vec::new();
        };
        let all = KeyRange::all();
        let gaps = main.scan(Space::Catalog, &all, |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        });
        let gaps = gaps.await.into_iter();
        gaps.map(|gap| (gap.file.display().to_string(), gap.why)).collect()
    }

    /// Walks the records with a prefix that open side stores have for themselves. Unreadable files are reported with the rows.
    pub async fn records_beside(&self, prefix: &[u8], mut visit: impl FnMut(&[u8])) {
        let range = KeyRange::prefix(prefix);
        for (_, store) in self.all.iter().filter(|(id, _)| **id != StoreId::MAIN) {
            let gaps = store.scan(Space::Catalog, &range, |_, value| {
                visit(value);
                ControlFlow::Continue(())
            });
            drop(gaps.await);
        }
    }

    /// Adds entries to a block until it is full or none are left, and records unreadable parts in `gaps`. Returns how
    /// many; `None` means that the store is not open.
    pub async fn fill(&self, id: StoreId, block: &mut Block, rest: &mut Rest, gaps: &mut Gaps) -> Option<u64> {
        let (count, met) = fill_salvaged(self.all.get(&id)?, block, rest).await;
        for gap in met {
            let what = format!(
                "{} of {} cannot be read ({})",
                gap.tokens(),
                gap.file.display(),
                gap.why
            );
            gaps.entry(gap.id()).or_insert(what);
        }
        Some(count)
    }

    /// The lost files of a store, with their causes.
    #[must_use]
    pub fn damage(&self, id: StoreId) -> Vec<(String, String)> {
        let damage = self.all.get(&id).map(Salvage::damage).unwrap_or_default().iter();
        damage
            .map(|lost| (lost.file.display().to_string(), lost.what.clone()))
            .collect()
    }

    /// Rows of a table that the stores had counted, where their engine counts.
    pub fn counted(&self, ids: impl Iterator<Item = StoreId>, table: TableId) -> u64 {
        ids.filter_map(|id| self.all.get(&id)?.counted(table)).sum()
    }

    /// Tables with rows or deletions in a store, as far as it can be read.
    pub async fn tables(&self, id: StoreId) -> Vec<TableId> {
        match self.all.get(&id) {
            Some(store) => store.tables().await,
            None => Vec::new(),
        }
    }

    /// The highest timestamp that a store has recorded as issued, µs; `None` means that none is recorded.
    #[must_use]
    pub fn given_micros(&self) -> Option<i64> {
        self.all.values().filter_map(Salvage::given_micros).max()
    }
}

/// The consequence of a gap in entries of a kind.
#[must_use]
pub const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Row | Kind::LateRow => "rows there may be missing, or older than they were, and deleted ones may be back",
        Kind::Deletion | Kind::LateDeletion => {
            "records of deletions there may be missing, so that deleted rows may be back"
        }
    }
}
