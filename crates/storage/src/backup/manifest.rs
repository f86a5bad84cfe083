//! The manifest: the list of a backup's contents.
//!
//! JSON, so that people can read it too. Its last field is the checksum of all the others, as this version writes them.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Error, FORMAT, MANIFEST, io_error};

/// The requested scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Scope {
    /// Every keyspace of users.
    Whole,
    /// One keyspace.
    Keyspace {
        /// Its name.
        keyspace: String,
    },
    /// One table.
    Table {
        /// Its keyspace.
        keyspace: String,
        /// Its name.
        table: String,
    },
}

/// A record of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordEntry {
    /// Its key in the catalog.
    pub key: String,
    /// The version of its format.
    pub format: u8,
    /// The rest of its value.
    pub record: String,
}

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// XXH3-64 of all of it, in hexadecimal digits.
    pub xxh3: String,
}

/// A table or materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// The token at which each physical partition but the first began, in order.
    pub splits: Vec<i64>,
    /// Rows, including static ones.
    pub rows: u64,
    /// Deletions of partitions and ranges.
    pub deletions: u64,
    /// Entries to merge.
    pub late: u64,
    /// Its files, in order.
    pub files: Vec<FileEntry>,
}

/// Data that salvage could not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The table or file.
    pub place: String,
    /// The missing part, and the reason.
    pub what: String,
}

/// The contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// The version of the program that wrote it.
    pub helenus: String,
    /// The compatibility profile of the database.
    pub profile: String,
    /// The requested scope.
    pub scope: Scope,
    /// The time that it shows, µs since 1970-01-01 UTC by the server's wall clock.
    pub moment_micros: i64,
    /// Upper bound of all timestamps that the server had issued, µs.
    pub timestamp_max_micros: i64,
    /// The schema.
    pub records: Vec<RecordEntry>,
    /// Tables, by keyspace and name; a table's position here, from 1, is the number in the names of its files.
    pub tables: Vec<TableEntry>,
    /// Missing data; only salvage leaves something out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Loss>,
    /// XXH3-64 of the manifest with this field empty, as compact JSON, in hexadecimal digits.
    pub checksum: String,
}

/// Only the version, of a manifest of any version.
#[derive(Deserialize)]
struct Version {
    format: u64,
}

impl Manifest {
    fn sum(&self) -> Result<String, serde_json::Error> {
        let unsummed = Self {
            checksum: String::new(),
            ..self.clone()
        };
        Ok(hex(xxh3_64(&serde_json::to_vec(&unsummed)?)))
    }

    /// The bytes of its file.
    pub(super) fn encode(&self, path: &Path) -> Result<String, Error> {
        let summed = Self {
            checksum: self.sum().map_err(|error| io_error("writing", path)(error.into()))?,
            ..self.clone()
        };
        serde_json::to_string_pretty(&summed).map_err(|error| io_error("writing", path)(error.into()))
    }

    /// Reads the manifest of a backup.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(MANIFEST);
        let damaged = |what| Error::Damaged {
            path: path.clone(),
            what,
        };
        // A device could be read without end.
        if path.exists() && !path.is_file() {
            return Err(damaged("it is no file"));
        }
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoManifest {
                    directory: directory.to_owned(),
                });
            }
            Err(error) => return Err(io_error("reading", &path)(error)),
        };
        let version: Version = serde_json::from_slice(&text).map_err(|_| damaged("it is no manifest"))?;
        if version.format != u64::from(FORMAT) {
            return Err(Error::Version {
                path,
                found: version.format,
            });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|_| damaged("it is no manifest"))?;
        let sum = manifest
            .sum()
            .map_err(|error| io_error("reading", &path)(error.into()))?;
        if sum != manifest.checksum {
            return Err(damaged("its checksum is wrong"));
        }
        // File names must not lead out of the directory: a manifest may come from anywhere.
        let mut names = manifest.tables.iter().flat_map(|table| &table.files);
        if names.any(|file| file.name.contains(['/', '\\']) || file.name.starts_with('.')) {
            return Err(damaged("it names a file outside the backup"));
        }
        Ok(manifest)
    }
}

/// A checksum as text.
pub(super) fn hex(sum: u64) -> String {
    format!("{sum:016x}")
}
