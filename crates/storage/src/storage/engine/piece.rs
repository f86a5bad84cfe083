//! The contents of both engines' files: versions of keys, in tables and in a log.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::storage::engine::acknowledged::Expected;
use crate::storage::engine::durable::Durable;
use crate::storage::key::{after, covers};

/// The effect of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Put(Bytes),
    #[cfg_attr(
        not(feature = "slate"),
        expect(dead_code, reason = "only SlateDB's log has partial rows")
    )]
    Merge(Bytes),
    Delete,
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// In the engine's format.
    pub(super) key: Bytes,
    /// The higher one is newer.
    pub(super) seq: u64,
    pub(super) change: Change,
}

/// A file that is missing or unreadable: which keys it held is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// A range of keys that one file holds and that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The file.
    pub file: PathBuf,
    /// The last key read before it, in the engine's format. `None` means it begins with the range that was scanned.
    pub after: Option<Vec<u8>>,
    /// The first key that can be read again. `None` means it reaches the end of the range.
    pub until: Option<Vec<u8>>,
    /// The reason.
    pub why: String,
}

/// A reading position in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// From this key on.
    Key(Vec<u8>),
    /// From this block on.
    #[cfg_attr(
        not(feature = "slate"),
        expect(dead_code, reason = "only SlateDB's tables are read by block")
    )]
    Block(usize),
}

impl Place {
    /// Where a range begins.
    pub(super) fn of(start: &Bound<Vec<u8>>) -> Self {
        Self::Key(match start {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => after(key),
        })
    }
}

/// A part of a table, as read in one step.
#[derive(Debug)]
pub(super) struct Stretch {
    /// All versions of each key in it, or all that remain of one.
    pub(super) entries: Vec<Entry>,
    /// The position of the next step. `None` means the table is read.
    pub(super) next: Option<Place>,
    /// The unreadable part between the entries and `next`.
    pub(super) gap: Option<Gap>,
}

/// A log whose groups are numbered, and record the number of the last one.
#[derive(Debug)]
pub(super) struct LogOfGroups {
    /// What its groups must agree with. `None` means that it is not known which store it is.
    pub(super) expected: Option<Expected>,
    /// The last group that was acknowledged; 0 means no record names one.
    pub(super) acknowledged: u64,
    /// Its path.
    pub(super) place: PathBuf,
    /// Files of the log that cannot be read to their end. A kill leaves such files, too.
    pub(super) torn: Vec<Damage>,
}

/// What can be read of a store's files, with tables of an engine's own kind.
pub(super) struct Files<T> {
    /// Sorted by key.
    log: Vec<Entry>,
    pub(super) tables: Vec<T>,
    pub(super) damage: Vec<Damage>,
    /// `None` means the loss is listed in `damage`.
    pub(super) log_of_groups: Option<LogOfGroups>,
    /// Where the store is, if its groups are not numbered.
    pub(super) durable: Arc<Durable>,
}

impl<T> Files<T> {
    /// Takes the tables, the log's entries in any order, and the damage found.
    pub(super) fn new(tables: Vec<T>, mut log: Vec<Entry>, damage: Vec<Damage>) -> Self {
        log.sort_by(|one, other| one.key.cmp(&other.key));
        Self {
            log,
            tables,
            damage,
            log_of_groups: None,
            durable: Arc::default(),
        }
    }

    /// The same with the tables converted to another type.
    pub(super) fn map<U>(self, table: impl FnMut(T) -> U) -> Files<U> {
        Files {
            log: self.log,
            tables: self.tables.into_iter().map(table).collect(),
            damage: self.damage,
            log_of_groups: self.log_of_groups,
            durable: self.durable,
        }
    }

    /// The log's entries in a range.
    pub(super) fn of_log<'f>(
        &'f self,
        start: &'f Bound<Vec<u8>>,
        end: &'f Bound<Vec<u8>>,
    ) -> impl Iterator<Item = &'f Entry> {
        let Place::Key(first) = Place::of(start) else {
            return [].iter().take_while(ends_before(end));
        };
        let from = self.log.partition_point(|entry| *entry.key < *first);
        self.log
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(ends_before(end))
    }
}

fn ends_before<'e>(end: &'e Bound<Vec<u8>>) -> impl FnMut(&&'e Entry) -> bool {
    move |entry| covers(&Bound::Unbounded, end, &entry.key)
}
