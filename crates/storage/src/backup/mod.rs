//! Backups as directories of files: the contents of tables, as bytes, with checksums. This module knows neither rows
//! nor schemas.
//!
//! ```text
//! DIR/manifest.json        what the backup holds, and the checksum of each file; written last, by rename
//! DIR/table-N-F.rows       rows and deletions of the table of number N in the manifest; F counts its files from 1
//!
//! file     = "HLNSBKUP" · version u16 · block*                     all numbers big-endian; at most FILE_BYTES_MAX and a block
//! block    = length u32 · XXH3-64 of the payload u64 · payload     a payload of about BLOCK_BYTES
//! payload  = entry*
//! entry    = kind u8 · key length u32 · key · value length u32 · value
//! kind       1 a row   2 a deletion   3 a row to merge   4 a deletion to merge
//! ```
//! A key is the store's key without the number of its table, because a restored table has another number
//! (storage/key.rs). A value is the store's own: rows with all timestamps, times to live and tombstones
//! (storage/row/codec.rs, storage/deletion.rs). Entries to merge come after all others of their table: they belong to
//! logged batches in progress, so that the backup holds each batch as a whole.
//!
//! A directory without a manifest is no backup, so an interrupted one cannot be mistaken for one. Directories have mode
//! 0700, files 0600. Every file is durable before the manifest is, and the manifest before the backup counts as made.
//!
//! Memory: a writer holds one block, a reader two, whatever the size of a table. A row larger than BLOCK_BYTES makes
//! its own block.

mod manifest;
mod reader;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

pub use self::manifest::{FileEntry, Loss, Manifest, RecordEntry, Scope, TableEntry};
pub use self::reader::{Blocks, Reader, entries};
pub use self::writer::{Block, Writer};

/// The version of the format that is written.
pub const FORMAT: u32 = 1;

/// The manifest's name.
pub const MANIFEST: &str = "manifest.json";

/// The first bytes of a data file.
const MAGIC: &[u8; 8] = b"HLNSBKUP";

/// The version of a data file.
const FILE_VERSION: u16 = 1;

/// Bytes of a data file before its first block.
const HEAD_BYTES: usize = MAGIC.len() + 2;

/// Bytes of a block before its payload.
const BLOCK_HEAD_BYTES: usize = 4 + 8;

/// Bytes of a payload after which a block is complete: large enough that restarting a scan for each block costs
/// nothing, small enough that a few fit into any memory.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Bytes of a data file after which the next one begins.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Most bytes of a payload that a reader accepts: a longer one is damage. A block has at least one entry, and a store's
/// values are shorter.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A row as it was stored.
    Row = 1,
    /// A deletion as it was stored.
    Deletion = 2,
    /// A row of a logged batch, to be merged.
    LateRow = 3,
    /// A deletion of a logged batch, to be merged.
    LateDeletion = 4,
}

impl Kind {
    const fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Row),
            2 => Some(Self::Deletion),
            3 => Some(Self::LateRow),
            4 => Some(Self::LateDeletion),
            _ => None,
        }
    }
}

/// One entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The store's key without the table's number.
    pub key: &'a [u8],
    /// The store's value.
    pub value: &'a [u8],
}

/// Why a backup cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is not empty.
    #[error("{} is not empty: give a directory that is new or empty", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// It has no manifest.
    #[error(
        "{} is no backup: it has no {MANIFEST}. A backup that was interrupted has none; make it again",
        directory.display()
    )]
    NoManifest {
        /// The directory.
        directory: PathBuf,
    },
    /// It is of another version.
    #[error("{} has format {found}; this version reads format {FORMAT}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The format that it names.
        found: u64,
    },
    /// Its bytes differ from those written.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: &'static str,
    },
    /// The medium fails.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
