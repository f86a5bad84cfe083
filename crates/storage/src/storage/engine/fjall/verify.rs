//! Verifies the engine's directory without writing, before the engine opens it: the engine's recovery removes every
//! file that it takes for a leftover.
//!
//! ```text
//! engine/version                  "FJL" 03
//! engine/N.jnl                    the log, see log.rs
//! engine/keyspaces/0              the engine's own tree: which keyspaces there are
//! engine/keyspaces/K              the tree with everything of the store; exactly one such K
//!   current                       manifest's number u64 · its XXH3-128 u128 · 00        little-endian
//!   vM                            the manifest: an `sfa` archive, whose section `tables` names the tables
//!   tables/T                      a table
//! ```
//! **A whole table** is compared with the checksum that the manifest has of it by a diagnosis and a salvage only
//! ([`check_table`]): a start would read all data for that. A start relies on the checksums of the blocks that it reads, which a
//! table of another store passes too.
//!
//! Recovery removes a tree without `current`, since it takes it for a half-created one. It also removes trees and
//! tables without a reference. So three faults are refused here, by name: a tree without `current`, a manifest that
//! does not match its checksum, and a missing table that the manifest names. A table without a reference is the
//! remainder of an interrupted flush or compaction. Recovery removes it from its own links only
//! ([`super::super::aside`]); the original is removed after the chain of groups is verified.
//!
//! An interrupted creation leaves no group in its log, intact or torn, and no table in a tree of the store.
//!
//! Sources: fjall 3.1.13 (`recovery.rs`, `db.rs`), lsm-tree 3.1.10 (`tree/mod.rs`, `version/recovery.rs`), sfa 1.0.0.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use super::super::acknowledged::Expected;
use super::super::directory::io_error;
use super::log::Log;
use crate::storage::{Error, Result};

const VERSION: &[u8] = b"FJL\x03";

/// Bytes of `current`.
const CURRENT_BYTES: usize = 25;

/// Bytes of a table that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a table in a manifest: number, kind of checksum, checksum, sequence number.
const TABLE_BYTES: usize = 8 + 1 + 16 + 8;

/// The state of the engine's directory.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// The remains of an interrupted creation: nothing was ever written to it.
    HalfMade,
    /// An engine with every referenced file present.
    Engine {
        log: Log,
        /// Each tree's `current` and the manifest that it names.
        manifests: Vec<PathBuf>,
        /// Whether nothing was ever written to it. Its creation may have stopped before the engine's own tree named the
        /// store's.
        is_empty: bool,
    },
}

fn damaged(path: PathBuf, what: impl Into<String>) -> Error {
    Error::Corrupt {
        path,
        what: what.into(),
    }
}

pub(super) fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(io_error("listing", path)),
    }
}

fn read(path: &Path, missing: &str) -> Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(damaged(path.to_owned(), missing)),
        read => read.map_err(io_error("reading", path)),
    }
}

pub(super) fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Verifies the engine in a directory, whose log must agree with what is expected.
///
/// # Errors
/// The name of a missing or damaged file; a failure of the medium.
pub(super) fn verify(engine: &Path, expected: Expected) -> Result<Found> {
    if list(engine)?.is_empty() {
        return Ok(Found::Nothing);
    }
    let log = Log::read(engine, expected)?;
    match verify_trees(engine, &log) {
        Ok(manifests) => Ok(Found::Engine {
            is_empty: !log.is_used() && !has_tables(engine)?,
            log,
            manifests,
        }),
        Err(_) if !log.is_used() && !has_tables(engine)? => Ok(Found::HalfMade),
        Err(error) => Err(error),
    }
}

pub(super) fn keyspaces(engine: &Path) -> PathBuf {
    engine.join("keyspaces")
}

/// Whether a tree of the store has tables.
fn has_tables(engine: &Path) -> Result<bool> {
    for tree in list(&keyspaces(engine))? {
        if number(&tree) != Some(0) && !list(&tree.join("tables"))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn verify_trees(engine: &Path, log: &Log) -> Result<Vec<PathBuf>> {
    const GONE: &str = "it is missing, and there is data beside it";
    let version = engine.join("version");
    let found = read(&version, GONE)?;
    if !found.starts_with(VERSION) {
        return Err(damaged(
            version,
            "it is not the version of the engine that this program has",
        ));
    }
    if log.files.is_empty() {
        return Err(damaged(engine.join("*.jnl"), "the log is missing"));
    }
    let lock = engine.join("lock");
    if !lock.exists() {
        return Err(damaged(lock, "it is missing; it is an empty file: make it again"));
    }
    let all = keyspaces(engine);
    let (mut of_store, mut manifests) = (0, Vec::new());
    for tree in list(&all)? {
        let number = number(&tree).ok_or_else(|| damaged(tree.clone(), "it is none of the engine's trees"))?;
        of_store += usize::from(number > 0);
        manifests.extend(verify_tree(&tree)?);
    }
    if !all.join("0").is_dir() {
        return Err(damaged(all.join("0"), GONE));
    }
    match of_store {
        1 => Ok(manifests),
        0 => Err(damaged(all, "the store's tree is missing")),
        _ => Err(damaged(all, "there is more than one tree of the store")),
    }
}

/// Checks one tree: its manifest is intact, and every table that it names is present.
fn verify_tree(tree: &Path) -> Result<[PathBuf; 2]> {
    let manifest = read_manifest(tree)?;
    let folder = tree.join("tables");
    for table in manifest.tables.keys() {
        let path = folder.join(table.to_string());
        match fs::metadata(&path) {
            Ok(found) if found.len() > 0 => {}
            Ok(_) => return Err(damaged(path, "it is empty")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = manifest.path.file_name().unwrap_or_default().to_string_lossy();
                return Err(damaged(path, format!("it is missing, and {name} names it")));
            }
            Err(error) => return Err(io_error("reading", &path)(error)),
        }
    }
    match list(&folder)?.into_iter().find(|path| self::number(path).is_none()) {
        Some(stranger) => Err(damaged(stranger, "it is none of the engine's tables")),
        None => Ok([tree.join("current"), manifest.path]),
    }
}

/// An intact manifest.
pub(super) struct Manifest {
    path: PathBuf,
    /// By number, the checksum of each as a whole.
    pub(super) tables: BTreeMap<u64, u128>,
}

/// Compares all tables of a store with the checksums that its manifest has of them.
pub(super) fn check_tables(engine: &Path) -> Result<()> {
    for tree in list(&keyspaces(engine))? {
        for (table, sum) in read_manifest(&tree)?.tables {
            check_table(&tree.join("tables").join(table.to_string()), sum)?;
        }
    }
    Ok(())
}

/// Compares a table with its checksum as a whole.
pub(super) fn check_table(path: &Path, sum: u128) -> Result<()> {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut read = || {
        let mut file = File::open(path)?;
        loop {
            let bytes = file.read(&mut piece)?;
            match piece.get(..bytes) {
                Some([]) | None => return Ok(hasher.digest128()),
                Some(read) => hasher.update(read),
            }
        }
    };
    match read().map_err(io_error("reading", path))? {
        found if found == sum => Ok(()),
        _ => Err(damaged(
            path.to_owned(),
            "it is not the table of which the manifest has the checksum: it is damaged, or another store's",
        )),
    }
}

/// Reads the manifest that a tree's `current` names.
pub(super) fn read_manifest(tree: &Path) -> Result<Manifest> {
    let current_path = tree.join("current");
    let path = &current_path;
    let current = read(path, "it is missing, and names the tables beside it")?;
    let short = || damaged(path.clone(), "it names no manifest");
    let (number, rest) = current.split_first_chunk::<8>().ok_or_else(short)?;
    let (checksum, kind) = rest.split_first_chunk::<16>().ok_or_else(short)?;
    if current.len() != CURRENT_BYTES || kind != [0] {
        return Err(short());
    }
    let path = tree.join(format!("v{}", u64::from_le_bytes(*number)));
    let manifest = read(&path, "it is missing, and current names it")?;
    if xxhash_rust::xxh3::xxh3_128(&manifest) != u128::from_le_bytes(*checksum) {
        return Err(damaged(path, "it does not match the checksum in current"));
    }
    let tables = tables(&manifest).ok_or_else(|| damaged(path.clone(), "it names no tables"))?;
    Ok(Manifest { path, tables })
}

/// The tables that a manifest names. `None` means it cannot be read.
fn tables(manifest: &[u8]) -> Option<BTreeMap<u64, u128>> {
    let archive = sfa::Reader::from_reader(&mut Cursor::new(manifest)).ok()?;
    let section = archive.toc().section(b"tables")?;
    let start = usize::try_from(section.pos()).ok()?;
    let end = start.checked_add(usize::try_from(section.len()).ok()?)?;
    let (levels, mut rest) = manifest.get(start..end)?.split_first()?;
    let mut tables = BTreeMap::new();
    for _ in 0..*levels {
        let (runs, after) = rest.split_first()?;
        rest = after;
        for _ in 0..*runs {
            let (count, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            for _ in 0..u32::from_le_bytes(*count) {
                let (table, after) = rest.split_at_checked(TABLE_BYTES)?;
                rest = after;
                let (number, table) = table.split_first_chunk()?;
                let (_, table) = table.split_first_chunk::<1>()?;
                tables.insert(u64::from_le_bytes(*number), u128::from_le_bytes(*table.first_chunk()?));
            }
        }
    }
    Some(tables)
}
