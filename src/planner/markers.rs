//! Bind markers: where each stands, what it is called and which type it takes.

use std::sync::Arc;

use foldhash::HashMap;
use grammar::ast::{Site, Statement};

use crate::command::Value;
use crate::types::CqlType;

/// One bind marker as a PREPARED response describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerSpec {
    /// The keyspace of the table it is compared with.
    pub keyspace: Arc<str>,
    /// That table.
    pub table: Arc<str>,
    /// Its own name, or the column's, or what Cassandra calls it (`[limit]`, `in(c)`, `key(m)`, …).
    pub name: String,
    /// The type its values have.
    pub ty: CqlType,
}

/// The markers of one statement while it is planned.
///
/// They are numbered in order of writing, but typed in the order in which Cassandra judges a statement; so they are found by
/// where they stand.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    index: HashMap<u32, usize>,
    names: Vec<Option<String>>,
    specs: Vec<Option<MarkerSpec>>,
    /// For each marker the key column that it is the value of: its place in the partition key.
    partition_key: Vec<Option<usize>>,
}

impl Markers {
    /// Numbers the markers of a statement; the parser has bounded how many there are.
    pub(crate) fn of(statement: &Statement) -> Self {
        let mut markers = Self::default();
        for (index, marker) in grammar::markers(statement).into_iter().enumerate() {
            markers.index.insert(marker.at.token(), index);
            markers.names.push(marker.name.map(|name| name.as_str().to_owned()));
        }
        markers.specs.resize_with(markers.names.len(), || None);
        markers.partition_key.resize(markers.names.len(), None);
        markers
    }

    /// Types the marker that stands there; its index.
    pub(crate) fn define(&mut self, at: Site, mut spec: MarkerSpec, partition_key: Option<usize>) -> usize {
        let index = self.index.get(&at.token()).copied();
        let index = index.expect("every marker of the tree was numbered");
        if let Some(Some(name)) = self.names.get(index) {
            spec.name.clone_from(name);
        }
        if let Some(slot) = self.specs.get_mut(index) {
            *slot = Some(spec);
        }
        if let Some(slot) = self.partition_key.get_mut(index) {
            *slot = partition_key;
        }
        index
    }

    /// All markers, and for each partition key column the index of the marker that gives it; empty where one has none, or the
    /// markers belong to several tables.
    pub(crate) fn finish(self, partition_key_count: usize) -> (Vec<MarkerSpec>, Vec<u16>) {
        let mut by_column: Vec<Option<u16>> = vec![None; partition_key_count];
        for (index, position) in self.partition_key.iter().enumerate() {
            // The last one wins, as in `IN (?, ?)`.
            if let Some(slot) = position.and_then(|position| by_column.get_mut(position)) {
                *slot = u16::try_from(index).ok();
            }
        }
        let specs: Vec<MarkerSpec> = self.specs.into_iter().flatten().collect();
        let one_table = specs
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.keyspace == b.keyspace && a.table == b.table));
        let indexes = if one_table {
            by_column.into_iter().collect()
        } else {
            None
        };
        (specs, indexes.unwrap_or_default())
    }
}

/// Puts values that came with names into the order of the markers; a marker without a value gets none, which binding refuses
/// by their number.
#[must_use]
pub fn arrange(markers: &[MarkerSpec], names: &[impl AsRef<str>], values: &[Value]) -> Vec<Value> {
    markers
        .iter()
        .filter_map(|marker| {
            let position = names.iter().position(|name| name.as_ref() == marker.name)?;
            values.get(position).cloned()
        })
        .collect()
}
