//! Spreads a read over parts: which physical and logical partitions it visits, in the order in which the sink wants
//! their rows.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::row_sink::RowSink;
use super::sink::{Shape, Sink};
use crate::command::{Partitions, Position, Read};
use crate::engine::index::Indexes;
use crate::engine::index::choice::may_seek_in_keys;
use crate::engine::index::walk::Probes;
use crate::engine::part::{Cut, Ended, PartRead, ReadPart, Receipt, Scratch, run_part};
use crate::engine::{Error, Request};
use crate::partition::{Hosted, KeyBound, KeySpan, PhysicalPartitionId, ReadView, TablePartitions};
use crate::token::Token;

/// The physical partitions that a SELECT may have to visit, in order of token. One that holds several of the keys
/// repeats.
pub(crate) fn concerned<'a>(partitions: &'a TablePartitions, select: &'a Read) -> impl Iterator<Item = &'a Hosted> {
    let (ring, keys): (_, &[Bytes]) = match (&select.partitions, partitions.all()) {
        // With a single physical partition no key needs to be hashed.
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

/// Those of the [`concerned`] that are still ahead of a page that begins after `resume`.
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

/// The rest of a span of the ring for a page that begins after `resume`. `None` means that nothing is left.
fn span_left(partitions: &TablePartitions, (lower, upper): (i64, i64), resume: Option<&Position>) -> Option<KeySpan> {
    let span = KeySpan::of_tokens(lower, upper)?;
    let Some(position) = resume else { return Some(span) };
    let from = KeyBound::at_key(partitions.token(&position.partition_key), &position.partition_key);
    KeySpan::new(from.max(span.start().clone()), span.end().cloned())
}

/// The way that a read took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way<'a> {
    /// The number of physical partitions that were read.
    pub(crate) visited: usize,
    /// The index that led to its rows. `None` means that it scanned.
    pub(crate) index: Option<&'a str>,
}

/// A read that is spread over parts.
pub(crate) struct Spread<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) partitions: &'a TablePartitions,
    pub(crate) read: &'a Read,
    pub(crate) shape: &'a Shape,
    pub(crate) indexes: &'a Indexes,
    /// Where the page before ended.
    pub(crate) resume: Option<&'a Position>,
    /// Tombstones at which it fails. `None` means no limit.
    pub(crate) tombstones_max: Option<u64>,
}

impl<'a> Spread<'a> {
    /// Runs its parts one after the other until the sink wants no more.
    ///
    /// # Errors
    /// When a store fails, or the sink.
    pub(crate) async fn run(
        &'a self,
        view: &mut ReadView,
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
    ) -> Result<Way<'a>, Error> {
        let mut way = Way::default();
        if sink.is_exhausted() {
            return Ok(way);
        }
        // Before any snapshot is taken: an index that is complete now is complete in all of them.
        let scans = self.read.probes.is_empty()
            || (matches!(self.read.partitions, Partitions::Keys(_)) && !may_seek_in_keys(self.read));
        let probes = (!scans).then(|| Probes::now(self.indexes, self.read));
        let mut probes = probes.as_ref().filter(|probes| !probes.is_empty());
        let bound = PartRead {
            read: self.read,
            layout: &self.shape.layout,
            context: &self.request.context,
            now_seconds: self.request.now_seconds,
            tombstones_max: self.tombstones_max,
        };
        match &self.read.partitions {
            Partitions::Keys(keys) => {
                let (left, mut inside) = keys_left(keys, self.resume);
                let mut visits = Visits::new(self.partitions, keys, left, inside.is_some());
                for (number, partition_key) in left.iter().enumerate() {
                    let (token, partition, is_first) = visits.of(partition_key);
                    way.visited += usize::from(is_first || number == 0);
                    let part = ReadPart {
                        partition,
                        cut: Cut::Key(token, partition_key),
                        resume: inside.take(),
                        is_first,
                        at: view.lend(partition),
                        probes,
                        rows_wanted: sink.rows_wanted(),
                        // Tombstones count by logical partition if the statement names partitions.
                        tombstones_before: 0,
                    };
                    let receipt = run_part(&bound, &part, scratch, sink).await;
                    if settle(receipt, &part, &mut way, sink)? == Ended::Stopped {
                        break;
                    }
                    probes = probes.filter(|_| way.index.is_some());
                }
            }
            Partitions::Ring { lower, upper } => {
                let Some(span) = span_left(self.partitions, (*lower, *upper), self.resume) else {
                    return Ok(way);
                };
                for partition in self.partitions.touched(&span) {
                    way.visited += 1;
                    let part = ReadPart {
                        partition,
                        cut: Cut::Span(&span),
                        resume: self.resume,
                        is_first: is_first_visit(partition, self.resume),
                        at: view.lend(partition),
                        probes,
                        rows_wanted: sink.rows_wanted(),
                        tombstones_before: sink.tombstones(),
                    };
                    // Boxed: a scan is rare, and would make every read's future larger.
                    let receipt = Box::pin(run_part(&bound, &part, scratch, sink)).await;
                    if settle(receipt, &part, &mut way, sink)? == Ended::Stopped {
                        break;
                    }
                    // If the first part uses no index, the others use none either.
                    probes = probes.filter(|_| way.index.is_some());
                }
            }
        }
        Ok(way)
    }
}

/// Takes the receipt of a part. Returns whether more is wanted, or why the read fails.
fn settle<'a>(
    receipt: Receipt<'a>,
    part: &ReadPart<'_, 'a>,
    way: &mut Way<'a>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Ended, Error> {
    tracing::trace!(
        partition = part.partition.id.0,
        epoch = part.partition.epoch,
        rows = receipt.rows,
        charged_micros = receipt.charged_micros,
        "a part of a read ended"
    );
    sink.add_walked(receipt.walked);
    way.index = receipt.index.or(way.index);
    receipt.ended
}

/// Whether no earlier page has visited a physical partition. A read in ring order has visited the partition of its last
/// row.
fn is_first_visit(partition: &Hosted, resume: Option<&Position>) -> bool {
    resume.is_none_or(|position| {
        let token = partition.token(&position.partition_key);
        !partition.span.contains(token.value(), &position.partition_key)
    })
}

/// The physical partitions that a read of several keys visits.
struct Visits<'a> {
    partitions: &'a TablePartitions,
    /// The first one visited. Most reads visit no other, which costs no allocation.
    first: Option<PhysicalPartitionId>,
    more: BTreeSet<PhysicalPartitionId>,
}

impl<'a> Visits<'a> {
    /// Before the first of the keys that are `left` of all; earlier pages have visited the partitions of the others.
    /// `inside`: the last page ended inside the first.
    fn new(partitions: &'a TablePartitions, keys: &[Bytes], left: &[Bytes], inside: bool) -> Self {
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

    /// The token and the physical partition of a key, and whether this is the read's first visit to that partition.
    fn of(&mut self, partition_key: &[u8]) -> (Token, &'a Hosted, bool) {
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

/// The partition keys that are left after the pages before, and the place inside the first of them, if it is begun. A
/// place in none of them, as a page of another read leaves it, leaves nothing.
fn keys_left<'k, 'p>(keys: &'k [Bytes], resume: Option<&'p Position>) -> (&'k [Bytes], Option<&'p Position>) {
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
