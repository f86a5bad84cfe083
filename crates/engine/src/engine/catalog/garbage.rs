//! The check of the numbers whose rows are about to be removed.

use std::collections::BTreeSet;

use super::strays::numbers_of;
use helenus_base::invariant::{Broken, Invariant};
use helenus_schema::schema::{Schema, StorageId};

/// Checks that no table or index of a schema has a number whose rows are being removed: its rows would be lost.
pub(super) fn check_garbage(schema: &Schema, garbage: &BTreeSet<StorageId>) -> Result<(), Broken> {
    if garbage.is_empty() {
        return Ok(());
    }
    match numbers_of(schema).intersection(garbage).next() {
        None => Ok(()),
        Some(id) => Err(Invariant::GarbageIsUnused.broken(&format_args!("number {id}"))),
    }
}
