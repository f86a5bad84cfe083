//! Reads by way of an index: candidates from its entries, in the order of the ring, each brought to the sink as a scan would.
//!
//! ```text
//! one value        entries lie in the order of the ring:  seek · some entries · their rows · seek · …
//! several, ranges  entries lie in the order of values:    pass over all · keep the least places · their rows · pass again · …
//! ```
//! Memory is bounded: so many places at a time, whatever the index holds, and these count for the memory of the answer. An index of regular or clustering columns leads to rows; one
//! of static columns or of the partition key leads to partitions, which are then read whole. An index that would cost more than the
//! scan that it spares, or that is not complete, is not used: the caller scans and filters, with the same answer.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::Indexes;
use super::choice::{in_token, may_be_in, may_seek_in_keys};
use super::walk::{Probes, Walk};
use crate::command::{Partitions, Position, Read};
use crate::engine::read::logical::Logical;
use crate::engine::read::row_sink::RowSink;
use crate::engine::read::sink::{Sink, Step};
use crate::engine::read::source::{self, Visits, span_left};
use crate::engine::{Error, storage_read};
use crate::partition::entries::{EntryRange, PlaceRange};
use crate::partition::{ReadView, StoreId, TablePartitions};

/// Brings the rows of a SELECT to a sink by way of one of its probes. The index used; `None`: none is of use, and nothing was brought.
///
/// # Errors
/// As [`source::run`].
pub(crate) async fn run<'a>(
    indexes: &'a Indexes,
    partitions: &'a TablePartitions,
    select: &'a Read,
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Option<&'a str>, Error> {
    if select.probes.is_empty() || sink.is_exhausted() {
        return Ok(None);
    }
    // Boxed: most reads use no index, and every read's future would be as large.
    Box::pin(run_by_entries(indexes, partitions, select, view, resume, sink)).await
}

async fn run_by_entries<'a>(
    indexes: &'a Indexes,
    partitions: &'a TablePartitions,
    select: &'a Read,
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Option<&'a str>, Error> {
    match &select.partitions {
        Partitions::Keys(keys) => run_keys(indexes, partitions, select, keys, view, resume, sink).await,
        Partitions::Ring { lower, upper } => {
            let Some(span) = span_left(partitions, (*lower, *upper), resume) else {
                return Ok(None);
            };
            let probes = Probes::now(indexes, select);
            let mut used = None;
            for (number, partition) in partitions.touched(&span).iter().enumerate() {
                let Some(inside) = partition.span.and(&span) else {
                    continue;
                };
                let walk = probes
                    .walk(partition, view.at(partition), &inside, sink.rows_wanted())
                    .await?;
                if walk.is_some() || number > 0 {
                    let is_first = source::is_first_visit(partition, resume);
                    sink.enter(select.table.storage_id, partition, None, is_first);
                }
                let step = match walk {
                    Some(walk) => {
                        used = Some(walk.index());
                        walk.run(resume, sink).await?
                    }
                    // Nothing was brought yet: the caller may do it all.
                    None if number == 0 => return Ok(None),
                    None => source::ring(partition, select, &span, view, resume, sink).await?,
                };
                if step == Step::Stop {
                    break;
                }
            }
            Ok(used)
        }
    }
}

/// Entries of an index that a SELECT would go by, counted up to `most` in all physical partitions that it visits.
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
    for partition in source::concerned(partitions, select) {
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

/// The rows of some partitions. Where the entries of one value lie beside each other within a partition, they are sought there.
async fn run_keys<'a>(
    indexes: &'a Indexes,
    partitions: &'a TablePartitions,
    select: &'a Read,
    keys: &[Bytes],
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Option<&'a str>, Error> {
    let table = select.table.as_ref();
    if !may_seek_in_keys(select) {
        return Ok(None);
    }
    let (left, mut inside) = source::keys_left(keys, resume);
    let mut visits = Visits::new(partitions, keys, left, inside.is_some());
    let probes = Probes::now(indexes, select);
    let mut used = None;
    for (number, partition_key) in left.iter().enumerate() {
        let (token, partition, is_first) = visits.of(partition_key);
        let walk = in_token(&probes, partition, view.at(partition), token, sink.rows_wanted()).await?;
        let walk = walk.filter(Walk::seeks_rows);
        if walk.is_some() || number > 0 {
            sink.enter(table.storage_id, partition, Some((token, partition_key)), is_first);
        }
        let resume = inside.take();
        let logical = partition.logical(table.storage_id, token, partition_key)?;
        let step = match walk {
            Some(walk) => {
                used = Some(walk.index());
                let places = PlaceRange::of_logical(logical.prefix());
                walk.over(places).run(resume, sink).await?
            }
            None if number == 0 => return Ok(None),
            None => {
                let logical = Logical {
                    at: view.lend(partition),
                    select,
                    table,
                    partition: logical,
                    partition_key,
                };
                logical.run(resume, sink).await?
            }
        };
        if step == Step::Stop {
            break;
        }
    }
    Ok(used)
}
