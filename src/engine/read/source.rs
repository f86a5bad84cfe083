//! Where the rows of a read come from: its physical partitions and logical partitions, in the order in which the sink wants them.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::logical::Logical;
use super::ring::Ring;
use super::row_sink::RowSink;
use super::sink::{Sink, Step};
use crate::command::{Clustering, Partitions, Position, Read};
use crate::engine::Error;
use crate::partition::{Hosted, KeyBound, KeySpan, PhysicalPartitionId, ReadView, TablePartitions};
use crate::token::Token;

/// The physical partitions that a SELECT may have to visit, in order of token; one that several keys lead to comes several times.
pub(crate) fn concerned<'a>(partitions: &'a TablePartitions, select: &'a Read) -> impl Iterator<Item = &'a Hosted> {
    let (ring, keys): (_, &[Bytes]) = match (&select.partitions, partitions.all()) {
        // Keys need not be hashed where there is one place only.
        (_, [_]) => (partitions.all(), &[]),
        (Partitions::Keys(keys), _) => (Default::default(), keys),
        (Partitions::Ring { lower, upper }, _) => match KeySpan::of_tokens(*lower, *upper) {
            Some(span) => (partitions.touched(&span), &[]),
            None => (Default::default(), &[]),
        },
    };
    let of_keys = keys.iter().map(|key| partitions.place(key).1.as_ref());
    ring.iter().map(AsRef::as_ref).chain(of_keys)
}

/// Those of the [`concerned`] that are not passed yet when a page begins behind `resume`.
pub(crate) fn ahead<'a>(
    partitions: &'a TablePartitions,
    select: &'a Read,
    resume: Option<&Position>,
) -> impl Iterator<Item = &'a Hosted> {
    let passed = match (&select.partitions, resume) {
        (Partitions::Ring { .. }, Some(position)) => Some((partitions.token(&position.partition_key), position)),
        _ => None,
    };
    concerned(partitions, select).filter(move |partition| {
        passed.is_none_or(|(token, position)| partition.span.ends_after(token.value(), &position.partition_key))
    })
}

/// The part of a span of the ring that is left when a page begins behind `resume`; `None`: nothing is.
pub(crate) fn span_left(
    partitions: &TablePartitions,
    (lower, upper): (i64, i64),
    resume: Option<&Position>,
) -> Option<KeySpan> {
    let span = KeySpan::of_tokens(lower, upper)?;
    let Some(position) = resume else { return Some(span) };
    let from = KeyBound::at_key(partitions.token(&position.partition_key), &position.partition_key);
    KeySpan::new(from.max(span.start().clone()), span.end().cloned())
}

/// Brings the rows of a SELECT to a sink, from behind `resume` where a page before has ended. How many parts of the ring in different
/// physical partitions were read.
///
/// # Errors
/// When a store fails, or the sink.
pub(crate) async fn run(
    partitions: &TablePartitions,
    select: &Read,
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<usize, Error> {
    if sink.is_exhausted() {
        return Ok(0);
    }
    match &select.partitions {
        Partitions::Keys(keys) => run_keys(partitions, select, keys, view, resume, sink).await,
        Partitions::Ring { lower, upper } => {
            let Some(span) = span_left(partitions, (*lower, *upper), resume) else {
                return Ok(0);
            };
            let mut visited = 0;
            for partition in partitions.touched(&span) {
                let is_first = is_first_visit(partition, resume);
                sink.enter(select.table.storage_id, partition, None, is_first);
                visited += 1;
                // Boxed: a scan is rare, and would make every read's future larger.
                let step = Box::pin(ring(partition, select, &span, view, resume, sink)).await?;
                if step == Step::Stop {
                    break;
                }
            }
            Ok(visited)
        }
    }
}

/// Whether no page before has come to a physical partition. Where the ring is read in its order, one has come to that of its last row.
pub(crate) fn is_first_visit(partition: &Hosted, resume: Option<&Position>) -> bool {
    resume.is_none_or(|position| {
        let token = partition.token(&position.partition_key);
        !partition.span.contains(token.value(), &position.partition_key)
    })
}

/// The physical partitions that reads of several keys come to.
pub(crate) struct Visits<'a> {
    partitions: &'a TablePartitions,
    /// The one that was come to first: most reads come to no other, which costs no allocation.
    first: Option<PhysicalPartitionId>,
    more: BTreeSet<PhysicalPartitionId>,
}

impl<'a> Visits<'a> {
    /// Before the first of the keys that are `left` of all; the pages before have come to where the others lie. `inside`: one has ended
    /// inside the first.
    pub(crate) fn new(partitions: &'a TablePartitions, keys: &[Bytes], left: &[Bytes], inside: bool) -> Self {
        let passed = keys.len() - left.len() + usize::from(inside);
        let mut visits = Self {
            partitions,
            first: None,
            more: BTreeSet::new(),
        };
        for key in keys.iter().take(passed) {
            visits.of(key);
        }
        visits
    }

    /// The token and the physical partition of a key, and whether the read comes to that for the first time.
    pub(crate) fn of(&mut self, partition_key: &[u8]) -> (Token, &'a Hosted, bool) {
        let (token, partition) = self.partitions.place(partition_key);
        let is_first = match self.first {
            None => {
                self.first = Some(partition.id);
                true
            }
            Some(first) => first != partition.id && self.more.insert(partition.id),
        };
        (token, partition, is_first)
    }
}

/// Brings the rows of a span of the ring that lie in one physical partition.
///
/// # Errors
/// As [`run`].
pub(crate) async fn ring(
    partition: &Hosted,
    select: &Read,
    span: &KeySpan,
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Step, Error> {
    match Ring::new(partition, view.at(partition), select, span) {
        Some(ring) => ring.run(resume, sink).await,
        None => Ok(Step::Continue),
    }
}

/// The partition keys that are left after the pages before, and the place inside the first of them, if it is begun. A place in none of
/// them, as a page of another read leaves it, leaves nothing.
pub(crate) fn keys_left<'k, 'p>(
    keys: &'k [Bytes],
    resume: Option<&'p Position>,
) -> (&'k [Bytes], Option<&'p Position>) {
    let Some(position) = resume else {
        return (keys, None);
    };
    let Some(place) = keys.iter().position(|key| *key == position.partition_key) else {
        return (&[], None);
    };
    let first = place + usize::from(position.clustering.is_none());
    (
        keys.get(first..).unwrap_or_default(),
        resume.filter(|position| position.clustering.is_some()),
    )
}

async fn run_keys(
    partitions: &TablePartitions,
    select: &Read,
    keys: &[Bytes],
    view: &mut ReadView,
    resume: Option<&Position>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<usize, Error> {
    let (left, resume) = keys_left(keys, resume);
    let mut visits = Visits::new(partitions, keys, left, resume.is_some());
    let mut visited = 0;
    for (number, partition_key) in left.iter().enumerate() {
        let (token, partition, is_first) = visits.of(partition_key);
        visited += usize::from(is_first || number == 0);
        sink.enter(
            select.table.storage_id,
            partition,
            Some((token, partition_key)),
            is_first,
        );
        let inside = if number == 0 { resume } else { None };
        let logical = Logical {
            at: view.lend(partition),
            select,
            table: &select.table,
            partition: partition.logical(select.table.storage_id, token, partition_key)?,
            partition_key,
        };
        if logical.run(inside, sink).await? == Step::Stop {
            break;
        }
    }
    Ok(visited)
}

/// Whether a statement's rows include this clustering key.
pub(crate) fn covers(rows: &Clustering, clustering: &[u8]) -> bool {
    match rows {
        Clustering::All => true,
        Clustering::Keys(keys) => keys.binary_search_by(|key| key.as_slice().cmp(clustering)).is_ok(),
        Clustering::Ranges(ranges) => {
            let after = ranges.partition_point(|range| range.start.as_slice() <= clustering);
            after
                .checked_sub(1)
                .and_then(|place| ranges.get(place))
                .is_some_and(|range| range.end.as_deref().is_none_or(|end| clustering < end))
        }
    }
}
