//! Lookups by an index that CQL made of the properties: `CREATE INDEX … ON "T" (ENTRIES(properties))`.
//!
//! The service has none: a filter on a property never narrows its scans. Here one test that every match meets is looked up, and the
//! whole filter is tested on what it leads to, so that answers and their order stay the same. The engine decides whether that is cheaper.

use helenus_schema::command::{ClusteringRange, IndexProbe};
use helenus_schema::schema::entities::EntityLayout;
use helenus_schema::schema::{IndexPart, IndexTarget, Table};

use super::edm::Edm;
use super::entity::{PARTITION_KEY, ROW_KEY, TIMESTAMP};
use super::filter::{Comparison, Filter};
use super::row;

/// The index of a table's properties.
#[derive(Debug)]
pub(super) struct PropertyIndex {
    name: String,
    target: IndexTarget,
}

impl PropertyIndex {
    /// That of a table; `None` means that it has none.
    pub(super) fn of(table: &Table, layout: EntityLayout) -> Option<Self> {
        table.indexes.iter().find_map(|(name, index)| {
            let target = index.target(table)?;
            let is_of_entries = target.part == IndexPart::Entries && target.column == layout.properties;
            is_of_entries.then(|| Self {
                name: name.clone(),
                target,
            })
        })
    }

    /// The lookup that finds what matches a filter; `None` means that it finds too little.
    pub(super) fn probe(&self, filter: &Filter) -> Option<IndexProbe> {
        let all = match filter {
            Filter::All(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        all.iter().find_map(|test| match test {
            Filter::Test {
                name,
                comparison: Comparison::Eq,
                literal,
            } if ![PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name.as_str()) => self.equal(name, literal),
            Filter::IsTrue(name) => self.equal(name, &Edm::Boolean(true)),
            _ => None,
        })
    }

    fn equal(&self, name: &str, literal: &Edm) -> Option<IndexProbe> {
        let values = equal_values(literal)?;
        let ranges = values.iter().map(|value| {
            let start = self
                .target
                .encode_entry_probe(name.as_bytes(), Some(&row::encode(value)))?;
            let end = successor(&start);
            Some(ClusteringRange { start, end })
        });
        let mut ranges = ranges.collect::<Option<Vec<_>>>()?;
        ranges.sort_by(|one, other| one.start.cmp(&other.start));
        Some(IndexProbe {
            index: self.name.clone(),
            storage_id: self.target.storage_id,
            ranges,
            // Equal values of the type may have other bytes.
            is_equality: false,
        })
    }
}

/// All values that equal a literal, none twice; `None` means that they are not all known.
fn equal_values(literal: &Edm) -> Option<Vec<Edm>> {
    // Zero has two forms, and a double that is no number equals nothing.
    let double = |value: f64| match value {
        0.0 => vec![Edm::Double(0.0), Edm::Double(-0.0)],
        value => vec![Edm::Double(value)],
    };
    Some(match literal {
        Edm::Int32(value) => {
            let mut values = vec![Edm::Int32(*value), Edm::Int64(i64::from(*value))];
            values.extend(double(f64::from(*value)));
            values
        }
        // More than one whole number may round to a double.
        Edm::Int64(value) => {
            let value = i32::try_from(*value).ok()?;
            let mut values = vec![Edm::Int64(i64::from(value))];
            values.extend(double(f64::from(value)));
            values
        }
        Edm::Double(value) if value.is_nan() => return None,
        Edm::Double(value) => double(*value),
        other => vec![other.clone()],
    })
}

/// The least bytes above all that begin with these; `None` means that there are none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut bytes = prefix.get(..=kept)?.to_vec();
    *bytes.last_mut()? += 1;
    Some(bytes)
}
