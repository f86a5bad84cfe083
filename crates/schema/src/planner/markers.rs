//! Bind markers: the position, name and type of each.

use std::sync::Arc;

use foldhash::HashMap;
use grammar::ast::{Site, Statement};

use crate::command::Value;
use helenus_types::types::CqlType;

/// One bind marker as a PREPARED response describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerSpec {
    /// The keyspace of the table of its receiver.
    pub keyspace: Arc<str>,
    /// That table.
    pub table: Arc<str>,
    /// Its own name, the column's name, or Cassandra's name of another receiver (`[limit]`, `in(c)`, `key(m)`, …).
    pub name: String,
    /// The type of its values.
    pub ty: CqlType,
}

/// The markers of one statement while it is planned.
///
/// They are numbered in order of writing, but typed in the order in which Cassandra validates a statement. So they are
/// identified by their site in the statement.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    index: HashMap<u32, usize>,
    names: Vec<Option<String>>,
    specs: Vec<Option<MarkerSpec>>,
    /// For each marker, the position in the partition key of the column whose value it is.
    partition_key: Vec<Option<usize>>,
}

impl Markers {
    /// Numbers the markers of a statement; the parser limits their number.
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

    /// Types the marker at this site and returns its index.
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

    /// All markers, and for each partition key column the index of its marker. The second part is empty if a column has
    /// no marker or the markers belong to several tables.
    pub(crate) fn finish(self, partition_key_count: usize) -> (Vec<MarkerSpec>, Vec<u16>) {
        let mut by_column: Vec<Option<u16>> = vec![None; partition_key_count];
        for (index, position) in self.partition_key.iter().enumerate() {
            // The last marker of a column wins, as in `IN (?, ?)`.
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

/// Arranges named values in the order of the markers. A marker without a value gets none; binding then refuses the
/// number of values.
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
