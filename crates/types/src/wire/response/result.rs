//! RESULT: rows and prepared statements.
//!
//! ```text
//! Rows      2 · flags i32 · columns i32 · [paging state] · [new metadata id, v5] · [specifications] · rows i32 · cells [bytes]…
//! Prepared  4 · id · [result metadata id, v5] · flags i32 · markers i32 · [v4+: n i32, n × index u16] · specifications
//!             · flags i32 · columns i32 · [specifications]
//! flags     1 one table for all   2 more pages   4 no specifications   8 metadata changed (v5)
//! ```

use std::sync::Arc;

use bytes::Bytes;

use super::super::{Version, write};
use super::metadata::Metadata;

pub(super) const VOID: i32 = 1;
const ROWS: i32 = 2;
pub(super) const SET_KEYSPACE: i32 = 3;
const PREPARED: i32 = 4;
pub(super) const SCHEMA_CHANGE: i32 = 5;

const GLOBAL_TABLES_SPEC: i32 = 1;
const HAS_MORE_PAGES: i32 = 2;
const NO_METADATA: i32 = 4;
const METADATA_CHANGED: i32 = 8;

/// The metadata to send with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataMode {
    /// The specifications.
    Full,
    /// Only the number of columns: the client has the specifications.
    Skipped,
    /// The specifications and their new id, because the client has another one. Version 5; Full before.
    Changed,
}

/// Rows of a result.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The columns.
    pub metadata: Arc<Metadata>,
    /// The metadata to send.
    pub mode: MetadataMode,
    /// Where the next page begins. `None` means there is none.
    pub paging_state: Option<Bytes>,
    /// The number of rows.
    pub row_count: u32,
    /// `row_count` × columns cells, each a `[bytes]`.
    pub content: Bytes,
}

impl Rows {
    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        let specifications = if self.mode == MetadataMode::Skipped {
            &[]
        } else {
            self.metadata.specifications(version)
        };
        let changed = self.mode == MetadataMode::Changed && version >= Version::V5;
        out.reserve(64 + specifications.len() + self.content.len());
        let mut flags = 0;
        if self.mode == MetadataMode::Skipped {
            flags |= NO_METADATA;
        }
        // Set even without specifications, as in Cassandra.
        if self.metadata.is_global() {
            flags |= GLOBAL_TABLES_SPEC;
        }
        if self.paging_state.is_some() {
            flags |= HAS_MORE_PAGES;
        }
        if changed {
            flags |= METADATA_CHANGED;
        }
        write::int(out, ROWS);
        write::int(out, flags);
        write::count(out, self.metadata.columns().len());
        if let Some(state) = &self.paging_state {
            write::bytes(out, Some(state));
        }
        if changed {
            write::short_bytes(out, &self.metadata.id());
        }
        out.extend_from_slice(specifications);
        write::int(out, i32::try_from(self.row_count).unwrap_or(i32::MAX));
        out.extend_from_slice(&self.content);
    }
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The id for EXECUTE.
    pub id: [u8; 16],
    /// Its markers.
    pub markers: Arc<Metadata>,
    /// For each column of the partition key the marker that binds it; empty unless every column has one.
    pub partition_key_markers: Vec<u16>,
    /// The columns of its rows. `None` means no rows, or columns that depend on the outcome.
    pub result: Option<Arc<Metadata>>,
}

impl Prepared {
    /// The id of the result's metadata; a fixed one if there is no result.
    #[must_use]
    pub fn result_metadata_id(&self) -> [u8; 16] {
        result_metadata_id(self.result.as_deref())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) {
        write::int(out, PREPARED);
        write::short_bytes(out, &self.id);
        if version >= Version::V5 {
            write::short_bytes(out, &self.result_metadata_id());
        }
        write_specifications(out, &self.markers, |out| {
            if version >= Version::V4 {
                write::count(out, self.partition_key_markers.len());
                for index in &self.partition_key_markers {
                    write::short(out, *index);
                }
            }
        });
        out.extend_from_slice(self.markers.specifications(version));
        match &self.result {
            None => {
                write::int(out, NO_METADATA);
                write::int(out, 0);
            }
            Some(metadata) => {
                write_specifications(out, metadata, |_| {});
                out.extend_from_slice(metadata.specifications(version));
            }
        }
    }
}

/// The id of a result's metadata: MD5 of the specifications; of an empty text if there is no result.
#[must_use]
pub fn result_metadata_id(result: Option<&Metadata>) -> [u8; 16] {
    use md5::{Digest, Md5};
    result.map_or_else(|| Md5::digest([]).into(), Metadata::id)
}

fn write_specifications(out: &mut Vec<u8>, metadata: &Metadata, between: impl FnOnce(&mut Vec<u8>)) {
    write::int(out, if metadata.is_global() { GLOBAL_TABLES_SPEC } else { 0 });
    write::count(out, metadata.columns().len());
    between(out);
}
