//! Counts the index entries that a read would use, without reading any row.

use std::ops::ControlFlow;

use crate::engine::targets;
use crate::engine::{Error, storage_read};
use crate::partition::entries::EntryRange;
use crate::partition::{ReadView, StoreId, TablePartitions};
use helenus_schema::command::{Partitions, Read};
use helenus_types::token::Token;

/// Entries of an index that a SELECT would use, counted up to `most` in all physical partitions that it visits.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn count(
    partitions: &TablePartitions,
    select: &Read,
    index: &str,
    most: usize,
) -> Result<usize, Error> {
    let Some(probe) = select.probes.iter().find(|probe| probe.index == index) else {
        return Ok(0);
    };
    let mut stores: Vec<StoreId> = Vec::new();
    for partition in targets::concerned(partitions, select) {
        if !stores.contains(&partition.store_id) {
            stores.push(partition.store_id);
        }
    }
    let (mut counted, mut view) = (0_usize, ReadView::default());
    for store in stores {
        for range in &probe.ranges {
            let range = EntryRange::of_values(probe.storage_id, &range.start, range.end.as_deref());
            let counting = partitions.entries_in(store, &range, &mut view, |token| {
                counted += usize::from(may_be_in(partitions, select, token));
                if counted < most {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            counting.await.map_err(|error| storage_read(&error))?;
        }
    }
    Ok(counted)
}

/// Whether a SELECT may read partitions of this token.
fn may_be_in(partitions: &TablePartitions, select: &Read, token: Token) -> bool {
    match &select.partitions {
        Partitions::Keys(keys) => keys.iter().any(|key| partitions.token(key) == token),
        Partitions::Ring(span) => span
            .as_ref()
            .is_some_and(|span| (span.lower()..=span.upper()).contains(&token.value())),
    }
}
