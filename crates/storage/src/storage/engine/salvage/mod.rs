//! Reads the intact parts of a store with damaged files, file by file, without the engine and without writing anything.
//!
//! ```text
//! log files ──► batches, also those that follow a damaged one ─┐
//! tables ─────► blocks, around those that cannot be read ──────┴─► by key ─► the newest value, merged ─► rows, deletions, catalog
//! ```
//! An engine recovers before it serves, and refuses a directory of which one file is damaged. Here each file is read by
//! itself. A table that is missing or cannot be opened is left out. A block that cannot be read is a [`Gap`]. Reading
//! of the log continues after a damaged batch. Every value returned has passed its checksum. But a value may be older
//! than the last one written: if a newer file is damaged, its changes and tombstones are lost. [`Salvage::damage`] and
//! the gaps of a scan report this.
//!
//! The parts: `engine/piece.rs` has the contents of the engines' files; `fjall/salvage.rs` and `slate/salvage.rs` read them;
//! this module merges the pieces of one store by key.
//!
//! Memory: the log, and a block of each table of a scan.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fs4::fs_std::FileExt;

use super::acknowledged::{ChainEnd, Expected, Link, Recorded};
use super::directory::{Wanted, read_format};
use super::durable::Durable;
use super::fjall;
use super::layout::{OWN, Own, full_range, parse_own};
use super::moments::{self, Moment};
use super::piece::{Change, Damage, Entry, Files, Gap, Place, Stretch};
#[cfg(feature = "slate")]
use super::slate;
use crate::storage::batch::{Space, merge_values};
use crate::storage::identity::{self, Identity};
use crate::storage::key::{KeyRange, TableId};
use crate::storage::{Error, Result, Url};
use helenus_base::clock::Clock;

/// The number of the main store.
const MAIN: u32 = 0;

/// An opened table.
enum Table {
    Fjall(fjall::salvage::TableFile),
    #[cfg(feature = "slate")]
    Slate(Box<slate::salvage::TableObject>),
}

impl Table {
    /// Reads from a position on.
    async fn read(&self, place: Place, end: &Bound<Vec<u8>>) -> Stretch {
        match self {
            Self::Fjall(table) => table.read(&place, end),
            #[cfg(feature = "slate")]
            Self::Slate(table) => Box::pin(table.read(place, end)).await,
        }
    }
}

/// The readable part of one store.
pub struct Salvage {
    /// Where the records of other stores' progress are.
    directory: PathBuf,
    /// Which store it is. `None` means that it is not known.
    identity: Option<Identity>,
    /// Its last group, or object of the log.
    durable: Arc<Durable>,
    files: Files<Table>,
    /// Ranges whose deletion was not finished.
    unfinished: Vec<(Space, KeyRange)>,
    /// Rows that the store had counted, by table, if the engine counts them.
    counted: BTreeMap<TableId, u64>,
    given_micros: Option<i64>,
    /// Held while the store is read. `None` means there is no lock file.
    _lock: Option<File>,
}

/// One file of a scan, and the position reached in it.
struct Cursor<'s> {
    read: VecDeque<Entry>,
    /// The position of the next step. `None` means the table is read.
    next: Option<Place>,
    /// `None` means the log.
    table: Option<&'s Table>,
}

impl std::fmt::Debug for Salvage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Salvage")
            .field("damage", &self.files.damage)
            .finish_non_exhaustive()
    }
}

impl Salvage {
    /// Inspects the files of a store: the main one, or the side store of a number.
    ///
    /// # Errors
    /// There is no store, another process holds it, or the medium fails in another way than by damage.
    pub async fn open(url: &Url, number: u32, clock: Clock) -> Result<Self> {
        let main = url
            .directory()
            .ok_or_else(|| Error::NoDirectory { url: url.to_string() })?;
        let side = main.join("stores").join(number.to_string());
        let directory = if number == MAIN { main } else { &side };
        if !directory.is_dir() {
            return Err(Error::NoStore {
                directory: directory.to_owned(),
            });
        }
        // All databases of a bucket share the lock of the main one.
        let lock = match url {
            Url::SlateFile(_) if number != MAIN => None,
            _ => lock_to_read(directory)?,
        };
        let (store, mut unnamed) = named(url, main, directory, number)?;
        let files = match url {
            Url::File(_) => fjall::salvage::files(directory, store)?.map(Table::Fjall),
            #[cfg(feature = "slate")]
            _ => slate::salvage::files(main, number, store, clock)
                .await?
                .map(|table| Table::Slate(Box::new(table))),
            #[cfg(not(feature = "slate"))]
            _ => {
                drop(clock);
                return Err(Error::WithoutFeature {
                    url: url.to_string(),
                    feature: "slate",
                });
            }
        };
        let mut salvage = Self {
            directory: match url {
                Url::SlateFile(_) if number == MAIN => main.join("engine"),
                _ => directory.to_owned(),
            },
            identity: store,
            durable: Arc::clone(&files.durable),
            files,
            unfinished: Vec::new(),
            counted: BTreeMap::new(),
            given_micros: None,
            _lock: lock,
        };
        salvage.read_own(directory).await;
        salvage.files.damage.append(&mut unnamed);
        Ok(salvage)
    }

    /// Reads the store's own records: which groups are missing, and which deletions were unfinished.
    async fn read_own(&mut self, directory: &Path) {
        let (mut links, mut witnessed, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let range = (Bound::Included(vec![OWN]), Bound::Unbounded);
        let gaps = self.merged(range, |key, value| {
            own.extend(parse_own(key, value));
            ControlFlow::Continue(())
        });
        let gaps = gaps.await;
        for record in own {
            match record {
                Own::Chain(link, time) => {
                    links.push(link);
                    self.given_micros = time.map(|time| time.given_micros).or(self.given_micros);
                }
                Own::Origin(_, time) => {
                    self.given_micros = time.map(|time| time.given_micros).or(self.given_micros);
                }
                Own::Size(table, size) => {
                    self.counted.insert(table, size.rows);
                }
                Own::Range(_, space, range) => self.unfinished.push((space, range)),
                Own::Witnessed(end) => witnessed.push(end),
            }
        }
        if !gaps.is_empty() {
            self.files.damage.push(Damage {
                file: directory.to_owned(),
                what: "the store's own records cannot all be read: deletions that were under way may be undone"
                    .to_owned(),
            });
        }
        let log = self.files.log_of_groups.take();
        let Some(log) = log else { return };
        self.durable
            .raise(links.last().map_or_else(ChainEnd::default, |link| link.end));
        self.durable.found(&fjall::salvage::history(&links, &witnessed));
        let ends: Vec<u64> = links.iter().map(|link| link.end.seq).collect();
        // Each group removes the record of the group before it, so two records mean that a group between them is
        // missing.
        let missing = match ends.as_slice() {
            [first, .., last] => Some(format!("changes between group {first} and group {last} are missing")),
            [last] if *last < log.acknowledged => Some(format!(
                "the log ends with group {last}, and group {} was acknowledged",
                log.acknowledged
            )),
            [] if log.acknowledged > 0 => Some(format!(
                "group {} was acknowledged, and no group is found",
                log.acknowledged
            )),
            _ => None,
        };
        let of_other = log.expected.and_then(|expected| of_another_chain(&links, expected));
        if let Some(what) = missing.or(of_other) {
            // A file cut short by a kill lost nothing if no group is missing.
            self.files.damage.extend(log.torn);
            self.files.damage.push(Damage { file: log.place, what });
        }
    }

    /// Compares stores with their records of each other's progress, as a start does; a store of an earlier moment or of another
    /// copy is damaged.
    pub fn check_together<'s>(stores: impl Iterator<Item = (u32, &'s mut Self)>) {
        let mut stores: Vec<_> = stores.collect();
        // A store whose name is not known is damaged as it is.
        let moment = |store: &Self| {
            Some(Moment {
                directory: store.directory.clone(),
                identity: store.identity?,
                durable: Arc::clone(&store.durable),
            })
        };
        let moments = stores.iter();
        let moments: Vec<_> = moments
            .filter_map(|(number, store)| Some((*number, moment(store)?)))
            .collect();
        let Err(error) = moments::check(&moments, false) else {
            return;
        };
        let place = match &error {
            Error::EarlierMoment { directory, .. }
            | Error::OtherCopy { directory, .. }
            | Error::FollowsClose { directory, .. } => directory.clone(),
            _ => PathBuf::new(),
        };
        let at = stores
            .iter()
            .position(|(_, store)| store.directory == place)
            .unwrap_or(0);
        if let Some((_, store)) = stores.get_mut(at) {
            store.files.damage.push(Damage {
                file: store.directory.clone(),
                what: error.to_string(),
            });
        }
    }

    /// Files that are missing or unreadable, and changes missing from the log. Which keys they held is not known.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.files.damage
    }

    /// Rows that the store had counted in a table. `None` means it counted none, or its engine does not count.
    #[must_use]
    pub fn counted(&self, table: TableId) -> Option<u64> {
        self.counted.get(&table).copied()
    }

    /// The highest timestamp that the store recorded as issued, µs. `None` means none is recorded.
    #[must_use]
    pub const fn given_micros(&self) -> Option<i64> {
        self.given_micros
    }

    /// Reads a range in key order, as far as it is readable, until `visit` breaks; returns the gaps found. A scan that
    /// stops early returns only the gaps before its end; a resumed scan may return one of them again.
    pub async fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Vec<Gap> {
        if range.is_empty() {
            return Vec::new();
        }
        let of_space = self.unfinished.iter().filter(|(of, _)| *of == space);
        let deleted: Vec<&KeyRange> = of_space.map(|(_, range)| range).collect();
        self.merged(full_range(space, range), |key, value| {
            let key = key.get(1..).unwrap_or_default();
            if deleted.iter().any(|range| range.contains(key)) {
                return ControlFlow::Continue(());
            }
            visit(key, value)
        })
        .await
    }

    /// Ids of the tables that have rows or deletions, as far as can be read.
    pub async fn tables(&self) -> Vec<TableId> {
        let mut found = Vec::new();
        for space in [Space::Rows, Space::Deletions] {
            let mut from = Some(0_u32);
            while let Some(first) = from.take() {
                let range = KeyRange {
                    start: Bound::Included(first.to_be_bytes().to_vec()),
                    end: Bound::Unbounded,
                };
                self.scan(space, &range, |key, _| {
                    if let Some(table) = super::table_of(key) {
                        found.push(table);
                        from = table.checked_add(1);
                    }
                    ControlFlow::Break(())
                })
                .await;
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Visits the newest values of a range of the engine's keys.
    async fn merged(
        &self,
        (start, end): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut cursors = vec![Cursor {
            read: self.files.of_log(&start, &end).cloned().collect(),
            next: None,
            table: None,
        }];
        cursors.extend(self.files.tables.iter().map(|table| Cursor {
            read: VecDeque::new(),
            next: Some(Place::of(&start)),
            table: Some(table),
        }));
        let mut heads = BinaryHeap::new();
        for (number, cursor) in cursors.iter_mut().enumerate() {
            heads.extend(cursor.head(&end, &mut gaps).await.map(|key| Reverse((key, number))));
        }
        let mut versions: Vec<Entry> = Vec::new();
        while let Some(Reverse((key, number))) = heads.pop() {
            // A k-way merge: each cursor's next key is in the heap, so the smallest comes first and all versions of a
            // key meet.
            let Some(cursor) = cursors.get_mut(number) else { break };
            while cursor.head(&end, &mut gaps).await.as_ref() == Some(&key) {
                versions.extend(cursor.read.pop_front());
            }
            heads.extend(cursor.head(&end, &mut gaps).await.map(|key| Reverse((key, number))));
            if heads.peek().is_some_and(|Reverse((next, _))| *next == key) {
                continue;
            }
            if let Some(value) = newest(&key, std::mem::take(&mut versions))
                && visit(&key, &value).is_break()
            {
                break;
            }
        }
        gaps
    }
}

impl Cursor<'_> {
    /// The key of the next entry; reads the next part of the table if necessary.
    async fn head(&mut self, end: &Bound<Vec<u8>>, gaps: &mut Vec<Gap>) -> Option<Bytes> {
        while self.read.is_empty() {
            let (table, place) = (self.table?, self.next.take()?);
            let Stretch { entries, next, gap } = table.read(place, end).await;
            self.read = entries.into();
            self.next = next;
            gaps.extend(gap);
        }
        self.read.front().map(|entry| entry.key.clone())
    }
}

/// The value of a key from all its versions. `None` means it was deleted.
fn newest(key: &[u8], mut versions: Vec<Entry>) -> Option<Bytes> {
    versions.sort_by_key(|version| Reverse(version.seq));
    // The log and a table may both hold the same version.
    versions.dedup_by_key(|version| version.seq);
    let (mut merges, mut value) = (Vec::new(), None);
    for version in versions {
        match version.change {
            Change::Put(put) => {
                value = Some(put);
                break;
            }
            Change::Delete => break,
            Change::Merge(merge) => merges.push(merge),
        }
    }
    let space = Space::ALL.into_iter().find(|space| key.first() == Some(&space.byte()));
    for merge in merges.into_iter().rev() {
        value = Some(match (value, space) {
            (Some(before), Some(space)) => merge_values(space, &before, &merge).unwrap_or(before),
            (_, _) => merge,
        });
    }
    value
}

/// Which store a directory holds, by its format file, and what is wrong with that file.
///
/// # Errors
/// The data is of another program.
fn named(url: &Url, main: &Path, directory: &Path, number: u32) -> Result<(Option<Identity>, Vec<Damage>)> {
    let format = match url {
        Url::File(_) => identity::FJALL,
        _ => identity::SLATE,
    };
    let mut damage = Vec::new();
    let mut lose = |of: &Path, what: String| {
        damage.push(Damage {
            file: of.join("helenus.format"),
            what,
        });
    };
    let wanted = Wanted::existing(format);
    let main_store = match read_format(main, wanted) {
        Ok(Some(found)) => Some(found.identity),
        refused => {
            // The record of what was acknowledged names the store, too. That of another format number does not.
            let witness = witness_of(url, main);
            match refused {
                Err(error @ Error::UnknownFormat { .. }) if witness.is_none() => return Err(error),
                Err(Error::Corrupt { what, .. }) => lose(main, what),
                Err(error) => lose(main, error.to_string()),
                Ok(_) => lose(main, "it is missing".to_owned()),
            }
            witness
        }
    };
    let store = main_store.map(|main| main.beside(number));
    if directory != main && matches!(url, Url::File(_)) {
        let wanted = Wanted {
            identity: store,
            ..wanted
        };
        match read_format(directory, wanted) {
            Ok(Some(_)) => {}
            Ok(None) => lose(directory, "it is missing".to_owned()),
            Err(error) => lose(directory, error.to_string()),
        }
    }
    Ok((store, damage))
}

/// The main store that the record of acknowledged writes names.
fn witness_of(url: &Url, main: &Path) -> Option<Identity> {
    match url {
        Url::File(_) => Recorded::store_of(main),
        #[cfg(feature = "slate")]
        _ => slate::put_record::store_of(main),
        #[cfg(not(feature = "slate"))]
        _ => None,
    }
}

/// What a start would refuse the last groups of a log for.
fn of_another_chain(links: &[Link], expected: Expected) -> Option<String> {
    let other = links.iter().find(|link| link.store != expected.store);
    if let Some(other) = other {
        return Some(format!("the last group is of {}", other.store));
    }
    let acknowledged = expected.acknowledged?;
    let other = links.iter().find(|link| link.contradicts(acknowledged))?;
    Some(format!(
        "group {} does not go with the one that was acknowledged",
        other.end.seq
    ))
}

/// Locks a store while its files are read, so that no process opens it. Creates and writes no file: the lock is one of
/// the operating system.
fn lock_to_read(directory: &Path) -> Result<Option<File>> {
    let Ok(lock) = File::open(directory.join("helenus.lock")) else {
        return Ok(None);
    };
    match FileExt::try_lock_exclusive(&lock) {
        Ok(false) => Err(Error::Locked {
            directory: directory.to_owned(),
            holder: None,
        }),
        _ => Ok(Some(lock)),
    }
}

/// The token in an engine's key.
fn token_of(key: &[u8]) -> Option<i64> {
    let bytes = key.get(TOKEN_AT..)?.first_chunk::<8>()?;
    Some((u64::from_be_bytes(*bytes) ^ (1 << 63)).cast_signed())
}

/// Offset of the token in an engine's key: after the space and the table.
const TOKEN_AT: usize = 1 + 4;

impl Gap {
    /// The gap's position, as text for operators.
    #[must_use]
    pub fn tokens(&self) -> String {
        let end = |key: &Option<Vec<u8>>, none: &str| {
            let token = key.as_deref().and_then(token_of);
            token.map_or_else(|| none.to_owned(), |token| token.to_string())
        };
        format!(
            "tokens {} to {}",
            end(&self.after, "from the first"),
            end(&self.until, "the last")
        )
    }

    /// Identifies the gap when a scan is resumed.
    #[must_use]
    pub fn id(&self) -> (PathBuf, Option<Vec<u8>>) {
        (self.file.clone(), self.until.clone())
    }
}
