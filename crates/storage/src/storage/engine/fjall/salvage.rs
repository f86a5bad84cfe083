//! Reads the files of a `file:` directory one by one, even if files around them are damaged; see `../salvage/mod.rs`.
//!
//! **Tables** are those that the manifest names, or, if it cannot be read, all that are present. A damaged block ends a
//! scan; the search for the next readable key tries keys at growing and then shrinking distances ([`next_readable`]).
//! Readable keys between two damaged blocks that are close together may be skipped; they count as part of the gap.
//!
//! **The log** is read batch by batch (log.rs draws the layout). After a damaged batch the reader searches for the next
//! intact one, by the mark at the end of each batch.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::{Cache, DescriptorTable, Slice, ValueType};
use num_bigint::BigUint;
use xxhash_rust::xxh3::xxh3_64;

use super::super::acknowledged::{Expected, Recorded};
use super::super::directory::{Directory, io_error};
use super::super::layout::{Own, parse_own};
use super::opening::check_log;
pub(in crate::storage::engine) use super::opening::history;
use super::verify::{Found, check_table, keyspaces, list, number, read_manifest, verify};
use super::{describe, guard};
use crate::storage::engine::piece::{Change, Damage, Entry, Files, Gap, LogOfGroups, Place, Stretch};
use crate::storage::identity::Identity;
use crate::storage::key::after;
use crate::storage::{Error, Result};

/// Bytes of a key that the search for the next readable position uses: space, table, token, and enough of the key to
/// distinguish rows.
const WIDTH_BYTES: usize = 128;

/// Entries read from a table in one step; all versions of the last key are added.
const STRETCH_ENTRIES: usize = 512;

/// Bytes of decoded blocks that are cached, for all tables of a store.
const CACHE_BYTES: u64 = 16 << 20;

/// Most tables that are open at once.
const OPEN_MAX: usize = 64;

/// The mark at the end of a batch.
const END_MARK: &[u8] = b"FJL\x03";

/// Reads the files in a store's directory, as far as possible.
///
/// # Errors
/// The medium fails in another way than by damage.
pub(in crate::storage::engine) fn files(directory: &Path, store: Option<Identity>) -> Result<Files<TableFile>> {
    let mut opened = Vec::new();
    let mut damage = Vec::new();
    // An interrupted opening leaves the original directory under this name (aside.rs).
    let kept = directory.join("engine.kept");
    let engine = if kept.is_dir() { kept } else { directory.join("engine") };
    let recorded = acknowledged(directory, store, &mut damage);
    let trees: Vec<PathBuf> = list(&keyspaces(&engine))?
        .into_iter()
        .filter(|tree| number(tree).is_some_and(|number| number > 0))
        .collect();
    if trees.is_empty() {
        damage.push(Damage {
            file: keyspaces(&engine),
            what: "the store's tree is missing".to_owned(),
        });
    }
    for tree in trees {
        opened.extend(tables(&tree, &mut damage)?);
    }
    let mut log = Vec::new();
    let mut torn = Vec::new();
    let mut numbered: Vec<PathBuf> = list(&engine)?;
    numbered.retain(|path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("jnl")));
    numbered.sort_unstable();
    for path in numbered {
        let bytes = fs::read(&path).map_err(io_error("reading", &path))?;
        let LogRead { passed, foreign } = read_log(&bytes, store, &mut log);
        if let Some(foreign) = foreign {
            damage.push(Damage {
                file: path.clone(),
                what: format!("it is of {foreign}: what it has is left out"),
            });
        }
        if passed > 0 {
            torn.push(Damage {
                file: path,
                what: format!("{passed} bytes of the log cannot be read"),
            });
        }
    }
    if let Some(store) = store
        && damage.is_empty()
        && let Err(error) = check_as_a_start(directory, &engine, recorded, store)
    {
        damage.push(lost(directory, &error));
    }
    let mut files = Files::new(opened, log, damage);
    files.log_of_groups = Some(LogOfGroups {
        expected: store.map(|store| Expected {
            store,
            acknowledged: recorded.end(),
        }),
        acknowledged: recorded.end().map_or(0, |end| end.seq),
        place: engine.join("*.jnl"),
        torn,
    });
    Ok(files)
}

/// The recorded end of the log. Without one it cannot be known whether the log has lost its end.
fn acknowledged(directory: &Path, store: Option<Identity>, damage: &mut Vec<Damage>) -> Recorded {
    let recorded = Recorded::read(directory).and_then(|recorded| match store {
        Some(store) => recorded.of(directory, store),
        None => Ok(recorded),
    });
    recorded.unwrap_or_else(|error| {
        let mut lost = lost(directory, &error);
        lost.what += ": whether the log has lost its end cannot be told";
        damage.push(lost);
        Recorded::Nothing
    })
}

/// Checks what a start checks before it opens the engine.
fn check_as_a_start(directory: &Path, engine: &Path, recorded: Recorded, store: Identity) -> Result<()> {
    let expected = Expected {
        store,
        acknowledged: recorded.end(),
    };
    let log = match verify(engine, expected)? {
        Found::Engine { log, .. } => log,
        Found::Nothing | Found::HalfMade => return Ok(()),
    };
    if recorded == Recorded::Nothing && Directory::is_marked_used(directory) {
        return Err(Error::Corrupt {
            path: directory.join("acknowledged"),
            what: "it is gone or empty: whether the log has lost its end cannot be told".to_owned(),
        });
    }
    check_log(directory, &log, recorded)
}

fn lost(directory: &Path, error: &Error) -> Damage {
    match error {
        Error::Corrupt { path, what } => Damage {
            file: path.clone(),
            what: what.clone(),
        },
        Error::OtherStore { path, found, .. } => Damage {
            file: path.clone(),
            what: format!("it is of {found}"),
        },
        error => Damage {
            file: directory.to_owned(),
            what: error.to_string(),
        },
    }
}

/// An opened table.
pub(in crate::storage::engine) struct TableFile {
    path: PathBuf,
    table: lsm_tree::Table,
}

/// Opens the tables of a tree.
fn tables(tree: &Path, damage: &mut Vec<Damage>) -> Result<Vec<TableFile>> {
    let folder = tree.join("tables");
    let there: BTreeSet<u64> = list(&folder)?.iter().filter_map(|path| number(path)).collect();
    let named: Vec<(u64, Option<u128>)> = match read_manifest(tree) {
        Ok(manifest) => manifest.tables.into_iter().map(|(id, sum)| (id, Some(sum))).collect(),
        Err(error) => {
            let mut lost = lost(tree, &error);
            lost.what += ": all tables beside it are read, those of before a compaction too, so that what was deleted may come back";
            damage.push(lost);
            there.iter().map(|id| (*id, None)).collect()
        }
    };
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
    let descriptors = Arc::new(DescriptorTable::new(OPEN_MAX));
    let mut opened = Vec::new();
    for (id, whole) in named {
        let path = folder.join(id.to_string());
        if !there.contains(&id) {
            damage.push(Damage {
                file: path,
                what: "it is missing, and the manifest names it".to_owned(),
            });
            continue;
        }
        if let Some(Err(error)) = whole.map(|whole| check_table(&path, whole)) {
            damage.push(lost(&path, &error));
        }
        let (cache, descriptors) = (Arc::clone(&cache), Arc::clone(&descriptors));
        let sum = lsm_tree::Checksum::from_raw(0);
        let of = path.clone();
        let table = guard(&path, || {
            lsm_tree::Table::recover(of, sum, 0, 0, cache, Some(descriptors), false, false)
        });
        match table {
            Ok(Ok(table)) => opened.push(TableFile { path, table }),
            Ok(Err(error)) => damage.push(Damage {
                file: path,
                what: describe(&error),
            }),
            Err(panicked) => damage.push(lost(&path, &panicked)),
        }
    }
    Ok(opened)
}

impl TableFile {
    /// Reads from a position on.
    pub(in crate::storage::engine) fn read(&self, place: &Place, end: &Bound<Vec<u8>>) -> Stretch {
        let (Place::Key(from), Bound::Included(last) | Bound::Excluded(last)) = (place, end) else {
            return self.read_to_end(place);
        };
        if matches!(end, Bound::Included(_)) && from > last || matches!(end, Bound::Excluded(_)) && from >= last {
            return Stretch {
                entries: Vec::new(),
                next: None,
                gap: None,
            };
        }
        self.stretch(from, end)
    }

    fn read_to_end(&self, place: &Place) -> Stretch {
        match place {
            Place::Key(from) => self.stretch(from, &Bound::Unbounded),
            Place::Block(_) => Stretch {
                entries: Vec::new(),
                next: None,
                gap: None,
            },
        }
    }

    fn stretch(&self, from: &[u8], end: &Bound<Vec<u8>>) -> Stretch {
        let mut entries: Vec<Entry> = Vec::new();
        let mut next = None;
        let walked = guard(&self.path, || {
            for entry in self.table.range(bounds(from, end)) {
                let entry = entry?;
                let key = Bytes::from(entry.key.user_key);
                if entries.len() >= STRETCH_ENTRIES && entries.last().is_some_and(|last| last.key != key) {
                    next = Some(Place::Key(key.to_vec()));
                    break;
                }
                let change = match entry.key.value_type {
                    ValueType::Value => Change::Put(Bytes::from(entry.value)),
                    _ => Change::Delete,
                };
                entries.push(Entry {
                    key,
                    seq: entry.key.seqno,
                    change,
                });
            }
            Ok(())
        });
        let why = match walked {
            Ok(Ok(())) => {
                return Stretch {
                    entries,
                    next,
                    gap: None,
                };
            }
            Ok(Err(error)) => describe(&error),
            Err(panicked) => panicked.to_string(),
        };
        let last = entries.last().map(|entry| entry.key.to_vec());
        let found = self.next_readable(&last.as_deref().map_or_else(|| from.to_vec(), after), end);
        Stretch {
            entries,
            next: found.clone().map(Place::Key),
            gap: Some(Gap {
                file: self.path.clone(),
                after: last,
                until: found,
                why,
            }),
        }
    }

    /// Whether keys from this one on can be read: the first of them can, or there is none.
    fn is_readable(&self, from: &[u8], end: &Bound<Vec<u8>>) -> bool {
        let tried = guard(&self.path, || self.table.range(bounds(from, end)).next());
        !matches!(tried, Ok(Some(Err(_))) | Err(_))
    }

    /// The least key above `from`, as far as the search finds it, at which the table is readable again. `None` means
    /// the rest is unreadable.
    fn next_readable(&self, from: &[u8], end: &Bound<Vec<u8>>) -> Option<Vec<u8>> {
        let base = place_of(from);
        let (mut unreadable, mut readable) = (base.clone(), BigUint::ZERO);
        let mut step = BigUint::from(1_u8);
        // Doubling steps find some readable key; bisection then narrows the gap to its true end.
        while readable == BigUint::ZERO {
            let next = &base + &step;
            match key_of(&next).filter(|key| is_before(key, end)) {
                Some(key) if !self.is_readable(&key, end) => unreadable = next,
                Some(_) => readable = next,
                // The end of the range counts as readable: the search may have skipped readable keys before it.
                None => {
                    readable = match end {
                        Bound::Included(last) | Bound::Excluded(last) => place_of(last),
                        Bound::Unbounded => BigUint::from(1_u8) << (8 * WIDTH_BYTES),
                    };
                }
            }
            step <<= 1;
        }
        while readable > unreadable && &readable - &unreadable > BigUint::from(1_u8) {
            let middle = (&readable + &unreadable) >> 1;
            if key_of(&middle).is_none_or(|key| self.is_readable(&key, end)) {
                readable = middle;
            } else {
                unreadable = middle;
            }
        }
        let found = key_of(&readable).filter(|key| is_before(key, end))?;
        let first = guard(&self.path, || self.table.range(bounds(&found, end)).next());
        match first {
            Ok(Some(Ok(entry))) => Some(entry.key.user_key.to_vec()),
            _ => None,
        }
    }
}

fn is_before(key: &[u8], end: &Bound<Vec<u8>>) -> bool {
    crate::storage::key::covers(&Bound::Unbounded, end, key)
}

fn bounds(from: &[u8], end: &Bound<Vec<u8>>) -> (Bound<Slice>, Bound<Slice>) {
    let slice = |key: &Vec<u8>| Slice::from(key.as_slice());
    (Bound::Included(Slice::from(from)), end.as_ref().map(slice))
}

/// A key as a number: its first bytes.
fn place_of(key: &[u8]) -> BigUint {
    let mut wide = key.to_vec();
    wide.resize(WIDTH_BYTES, 0);
    BigUint::from_bytes_be(&wide)
}

/// The least key of a number. `None` means the number is above every key.
fn key_of(number: &BigUint) -> Option<Vec<u8>> {
    let bytes = number.to_bytes_be();
    let zeros = WIDTH_BYTES.checked_sub(bytes.len())?;
    Some([vec![0; zeros], bytes].concat())
}

/// How much of a log file was read.
struct LogRead {
    /// Bytes that cannot be read, without the zeros at its end.
    passed: usize,
    /// Another store whose groups are in it.
    foreign: Option<Identity>,
}

/// The store that a batch names.
fn store_of(batch: &[Entry]) -> Option<Identity> {
    batch.iter().find_map(|entry| match &entry.change {
        Change::Put(value) => match parse_own(&entry.key, value)? {
            Own::Chain(link, _) => Some(link.store),
            Own::Origin(..) | Own::Size(..) | Own::Range(..) | Own::Witnessed(_) => None,
        },
        Change::Merge(_) | Change::Delete => None,
    })
}

/// Adds the entries of a log file that are of this store.
fn read_log(bytes: &[u8], store: Option<Identity>, log: &mut Vec<Entry>) -> LogRead {
    let mut foreign = None;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (mut at, mut passed) = (0, 0);
    while at < end {
        let rest = bytes.get(at..).unwrap_or_default();
        let mut read = Vec::new();
        if let Some(left) = batch(rest, &mut read) {
            match store_of(&read).filter(|of| store.is_some_and(|store| store != *of)) {
                Some(other) => foreign = Some(other),
                None => log.append(&mut read),
            }
            at += rest.len() - left;
            continue;
        }
        let mark = rest.windows(END_MARK.len()).position(|four| four == END_MARK);
        let step = mark.map_or(rest.len(), |mark| mark + END_MARK.len());
        passed += step.min(end - at);
        at += step;
    }
    LogRead { passed, foreign }
}

/// Reads a batch; returns how many bytes are left after it. `None` means no intact batch begins here.
fn batch(bytes: &[u8], read: &mut Vec<Entry>) -> Option<usize> {
    let (start, mut rest) = bytes.split_first()?;
    if *start != 1 {
        return None;
    }
    let items = u32::from_le_bytes(*take(&mut rest)?);
    let seq = u64::from_le_bytes(*take(&mut rest)?);
    let body = rest;
    for _ in 0..items {
        match take::<1>(&mut rest)? {
            [2] => read.extend(item(&mut rest, seq)?),
            [4] => drop(take::<8>(&mut rest)?),
            _ => return None,
        }
    }
    let body = body.get(..body.len() - rest.len())?;
    let is_end = take(&mut rest)? == &[3];
    let sum = u64::from_le_bytes(*take(&mut rest)?);
    (is_end && sum == xxh3_64(body) && take::<4>(&mut rest)? == END_MARK).then_some(rest.len())
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(taken)
}

/// Reads an item; `Some(None)` means it belongs to the engine's own tree.
fn item(rest: &mut &[u8], seq: u64) -> Option<Option<Entry>> {
    let [kind, compression] = *take(rest)?;
    let tree = u64::from_le_bytes(*take(rest)?);
    let key_bytes = usize::from(u16::from_le_bytes(*take(rest)?));
    let value_bytes = usize::try_from(u32::from_le_bytes(*take(rest)?)).ok()?;
    let stored_bytes = usize::try_from(u32::from_le_bytes(*take(rest)?)).ok()?;
    let (key, left) = rest.split_at_checked(key_bytes)?;
    let (stored, left) = left.split_at_checked(stored_bytes)?;
    *rest = left;
    if tree == 0 {
        return Some(None);
    }
    let change = match (ValueType::try_from(kind).ok()?, compression) {
        (ValueType::Value, 0) => Change::Put(Bytes::copy_from_slice(stored)),
        (ValueType::Value, 1) => Change::Put(lz4_flex::block::decompress(stored, value_bytes).ok()?.into()),
        (ValueType::Value, _) => return None,
        _ => Change::Delete,
    };
    Some(Some(Entry {
        key: Bytes::copy_from_slice(key),
        seq,
        change,
    }))
}
