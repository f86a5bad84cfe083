//! What the files of both engines are made of: versions of keys, in tables and in a log.

use std::ops::Bound;
use std::path::PathBuf;

use bytes::Bytes;

use crate::storage::key::covers;

/// What a version does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::engine) enum Change {
    Put(Bytes),
    Merge(Bytes),
    Delete,
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::engine) struct Entry {
    /// As the engine has it.
    pub(in crate::storage::engine) key: Bytes,
    /// The higher one is the newer.
    pub(in crate::storage::engine) seq: u64,
    pub(in crate::storage::engine) change: Change,
}

/// A file that is gone or cannot be read: which keys it held is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// A range of keys of which one file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The file.
    pub file: PathBuf,
    /// The last key that was read before it, as the engine has it; `None`: it begins with the range that was walked.
    pub after: Option<Vec<u8>>,
    /// The first key from which on can be read again; `None`: it goes on to the end of the range.
    pub until: Option<Vec<u8>>,
    /// Why.
    pub why: String,
}

/// How far a table was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage::engine) enum Place {
    /// Keys from this one on.
    Key(Vec<u8>),
    /// Blocks from this one on.
    #[cfg_attr(
        not(feature = "slate"),
        expect(dead_code, reason = "only SlateDB's tables are read by block")
    )]
    Block(usize),
}

impl Place {
    /// Where a range begins.
    pub(in crate::storage::engine) fn of(start: &Bound<Vec<u8>>) -> Self {
        Self::Key(match start {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => after(key),
        })
    }
}

/// The least key above another one.
pub(in crate::storage::engine) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A part of a table.
#[derive(Debug)]
pub(in crate::storage::engine) struct Stretch {
    /// All versions of each key in it, or all that are left of one.
    pub(in crate::storage::engine) entries: Vec<Entry>,
    /// Where to go on; `None`: nothing is left.
    pub(in crate::storage::engine) next: Option<Place>,
    /// What cannot be read between the entries and `next`.
    pub(in crate::storage::engine) gap: Option<Gap>,
}

/// A log whose groups are numbered, and record the number of the last one.
#[derive(Debug)]
pub(in crate::storage::engine) struct LogOfGroups {
    /// The last group that was acknowledged; 0: nothing says of any.
    pub(in crate::storage::engine) acknowledged: u64,
    /// Where it lies.
    pub(in crate::storage::engine) place: PathBuf,
    /// Where a file of it cannot be read to its end. A kill leaves that, too.
    pub(in crate::storage::engine) torn: Vec<Damage>,
}

/// What can be read of a store's files, with tables of an engine's own kind.
pub(in crate::storage::engine) struct Files<T> {
    /// By key.
    log: Vec<Entry>,
    pub(in crate::storage::engine) tables: Vec<T>,
    pub(in crate::storage::engine) damage: Vec<Damage>,
    /// `None`: what is missing of the log is among the damage.
    pub(in crate::storage::engine) log_of_groups: Option<LogOfGroups>,
}

impl<T> Files<T> {
    /// These tables, what the log holds, in any order, and what is damaged.
    pub(in crate::storage::engine) fn new(tables: Vec<T>, mut log: Vec<Entry>, damage: Vec<Damage>) -> Self {
        log.sort_by(|one, other| one.key.cmp(&other.key));
        Self {
            log,
            tables,
            damage,
            log_of_groups: None,
        }
    }

    /// With tables of another kind.
    pub(super) fn map<U>(self, table: impl FnMut(T) -> U) -> Files<U> {
        Files {
            log: self.log,
            tables: self.tables.into_iter().map(table).collect(),
            damage: self.damage,
            log_of_groups: self.log_of_groups,
        }
    }

    /// What the log holds of a range.
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
