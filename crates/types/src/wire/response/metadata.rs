//! Column specifications: names and types of a result's columns, or of a statement's markers.

use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};

use crate::types::CqlType;

use super::super::{Version, write};
use super::option::write_option;

/// The specification of a column or marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The name that the client sees.
    pub name: String,
    /// Its type.
    pub ty: CqlType,
}

/// Specifications of columns, in order; encoded once for each version in use.
#[derive(Debug)]
pub struct Metadata {
    columns: Vec<ColumnSpec>,
    global: bool,
    encoded: [OnceLock<Box<[u8]>>; Version::ALL.len()],
    id: OnceLock<[u8; 16]>,
}

impl Metadata {
    /// The metadata of these columns.
    #[must_use]
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        let global = match columns.split_first() {
            None => false,
            Some((first, rest)) => rest
                .iter()
                .all(|column| column.table == first.table && column.keyspace == first.keyspace),
        };
        Self {
            columns,
            global,
            encoded: [const { OnceLock::new() }; Version::ALL.len()],
            id: OnceLock::new(),
        }
    }

    /// The column specifications, in order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// Whether all columns belong to one table, which is then written once. False without columns.
    #[must_use]
    pub const fn is_global(&self) -> bool {
        self.global
    }

    /// A hash of the columns: equal columns have equal ids, on every node and at any time.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        *self
            .id
            .get_or_init(|| Md5::digest(self.specifications(Version::V5)).into())
    }

    /// The bytes after the counts: the table if it is global, then each column.
    #[must_use]
    pub fn specifications(&self, version: Version) -> &[u8] {
        let encode = || {
            let mut out = Vec::new();
            if let (true, Some(first)) = (self.global, self.columns.first()) {
                write::string(&mut out, &first.keyspace);
                write::string(&mut out, &first.table);
            }
            for column in &self.columns {
                if !self.global {
                    write::string(&mut out, &column.keyspace);
                    write::string(&mut out, &column.table);
                }
                write::string(&mut out, &column.name);
                write_option(&mut out, version, &column.ty);
            }
            out.into_boxed_slice()
        };
        self.encoded
            .get(version.index())
            .map_or(&[], |encoded| encoded.get_or_init(encode))
    }

    /// Approximate memory of the specifications, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let column = |column: &ColumnSpec| size_of::<ColumnSpec>() + 2 * column.name.len() + 64;
        size_of::<Self>() + self.columns.iter().map(column).sum::<usize>()
    }
}
