//! The number of a table's definition, which each message carries: computed once for each definition that a thread meets.
//!
//! A definition is recognised by its address. It is kept weakly, so the address belongs to no other definition meanwhile,
//! and a definition with weak references cannot be changed in place.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use md5::{Digest, Md5};

use super::bytes::Encoder;
use super::limits::COLUMNS_MAX;
use crate::schema::{ColumnKind, Table};

/// Definitions that a thread knows at once; then it forgets those that are gone, or else all.
const KNOWN_MAX: usize = 1024;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Numbers of definitions, by the addresses of these.
#[derive(Default)]
struct Known(HashMap<usize, (Weak<Table>, u64)>);

/// The number of a table's definition.
pub(super) fn number_of(table: &Arc<Table>) -> u64 {
    KNOWN.with_borrow_mut(|known| known.number_of(table, number))
}

impl Known {
    fn number_of(&mut self, table: &Arc<Table>, number: impl FnOnce(&Table) -> u64) -> u64 {
        let address = Arc::as_ptr(table).addr();
        if let Some((_, known)) = self.0.get(&address) {
            return *known;
        }
        if self.0.len() >= KNOWN_MAX {
            self.0.retain(|_, (table, _)| table.strong_count() > 0);
        }
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        let number = number(table);
        self.0.insert(address, (Arc::downgrade(table), number));
        number
    }
}

/// The first bytes of a digest of its columns, which are encoded as messages are.
fn number(table: &Table) -> u64 {
    let mut encoder = Encoder::bare();
    encoder.u32(table.storage_id);
    encoder.bool(table.is_counter);
    for column in &table.columns {
        encoder.u64(column.id.into());
        encoder.u8(match column.kind {
            ColumnKind::PartitionKey => 1,
            ColumnKind::Clustering => 2,
            ColumnKind::Static => 3,
            ColumnKind::Regular => 4,
        });
        encoder.bool(column.descending);
        encoder.bool(column.by_utf16);
        encoder.cql_type(&column.ty);
        encoder.option(column.mask.as_ref(), |encoder, (function, arguments)| {
            encoder.text(function);
            encoder.list(COLUMNS_MAX, arguments, |encoder, argument| encoder.text(argument));
        });
    }
    let digest: [u8; 16] = Md5::digest(encoder.unbounded()).into();
    digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::system;

    #[test]
    fn number_is_computed_once_for_each_definition() {
        let (mut known, mut computed) = (Known::default(), 0);
        let mut find = |table: &Arc<Table>| {
            known.number_of(table, |table| {
                computed += 1;
                number(table)
            })
        };
        let schema = system::base();
        let mut table = Arc::clone(schema.table("system", "local").unwrap());
        drop(schema);
        let first = find(&table);
        assert_eq!(find(&Arc::clone(&table)), first);
        // Another definition lies elsewhere, whether it is a copy or was moved for the change.
        Arc::make_mut(&mut table).is_counter = true;
        assert_ne!(find(&table), first);
        Arc::make_mut(&mut table).is_counter = false;
        assert_eq!(find(&table), first);
        assert_eq!(computed, 3);
    }

    #[test]
    fn definitions_that_are_gone_are_forgotten() {
        let (mut known, schema) = (Known::default(), system::base());
        let table = schema.table("system", "local").unwrap();
        let kept = known.number_of(table, number);
        for _ in 0..2 * KNOWN_MAX {
            known.number_of(&Arc::new(Table::clone(table)), |_| 7);
            assert!(known.0.len() <= KNOWN_MAX);
        }
        assert_eq!(known.number_of(table, |_| 8), kept, "it was there all the time");
    }
}
