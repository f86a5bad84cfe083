//! Spreads a read over parts: selects the physical and logical partitions, in the order in which the sink needs their
//! rows.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::elsewhere::Elsewhere;
use super::row_sink::RowSink;
use super::sink::Sink;
use super::spread::{Spread, Visit};
use crate::engine::Error;
use crate::engine::part::choice::may_seek_in_keys;
use crate::engine::part::walk::Probes;
use crate::engine::part::{Cut, Ended, PartRead, ReadPart, Receipt, Scratch, run_part};
use crate::engine::targets::{keys_left, span_left};
use crate::partition::{PhysicalPartition, PhysicalPartitionId, Placed, ReadView, TablePartitions};
use helenus_schema::command::{Partitions, Position};
use helenus_schema::schema::StorageId;
use helenus_types::token::KeySpan;

/// The access path that a read used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way<'a> {
    /// The number of physical partitions that were read.
    pub(crate) visited: usize,
    /// The index that led to its rows. `None` means that it scanned.
    pub(crate) index: Option<&'a str>,
}

impl Way<'_> {
    /// What a client learns of it: the index, or in a trace how many of all physical partitions were read.
    pub(crate) fn note(&self, all: usize, is_traced: bool) -> Option<String> {
        match self.index {
            Some(used) => Some(format!("Scanned with index {used}")),
            None if is_traced => Some(format!("Read {} of {all} physical partitions", self.visited)),
            None => None,
        }
    }
}

impl<'a> Spread<'a> {
    /// Runs its parts one after the other until the sink needs no more.
    ///
    /// # Errors
    /// A store or the sink fails.
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
        let span = match &self.read.partitions {
            Partitions::Keys(_) => None,
            Partitions::Ring(span) => match span_left(self.partitions, span.as_ref(), self.resume) {
                Some(span) => Some(span),
                None => return Ok(way),
            },
        };
        let mut visits = Visits::new(self, span.as_ref());
        let mut ahead = probes.is_none().then(Ahead::default);
        while let Some(visit) = visits.next() {
            if let Some(ahead) = &mut ahead {
                ahead.go_on(visits.ring_left(), self.read.table.storage_id, sink.rows_wanted());
            }
            way.visited += usize::from(visit.counts);
            let partition = visit.partition;
            // Tombstones count by logical partition if the statement names partitions.
            let tombstones_before = if span.is_some() { sink.tombstones() } else { 0 };
            let receipt = match visit.partition {
                Placed::Here(partition) => {
                    let part = ReadPart {
                        partition,
                        cut: visit.cut,
                        resume: visit.resume,
                        is_first: visit.is_first,
                        at: view.lend(partition),
                        probes,
                        rows_wanted: sink.rows_wanted(),
                        tombstones_before,
                    };
                    run_part(&bound, &part, scratch, sink).await
                }
                Placed::There(remote) => {
                    let elsewhere = Elsewhere {
                        spread: self,
                        owner: &remote.owner,
                        probes: probes.map(Probes::usable).unwrap_or_default(),
                        tombstones_before,
                        is_last: visits.is_over(),
                        visit,
                    };
                    // Boxed, since it is rare: every read's future would be as large.
                    Box::pin(elsewhere.run(view, scratch, sink)).await
                }
            };
            if take_receipt(receipt, partition, &mut way, sink)? == Ended::Stopped {
                break;
            }
            // If the first part uses no index, the others use none either.
            probes = probes.filter(|_| way.index.is_some());
        }
        Ok(way)
    }
}

/// Takes the receipt of a part. Returns whether more is needed, or why the read fails.
fn take_receipt<'a>(
    receipt: Receipt<'a>,
    partition: &PhysicalPartition,
    way: &mut Way<'a>,
    sink: &mut Sink<'_, impl RowSink>,
) -> Result<Ended, Error> {
    tracing::trace!(
        partition = partition.id.0,
        epoch = partition.epoch,
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
fn is_first_visit(partition: &Placed, resume: Option<&Position>) -> bool {
    resume.is_none_or(|position| {
        let token = partition.token(&position.partition_key);
        !partition.span.contains(token.value(), &position.partition_key)
    })
}

/// The visits of a page that are left, in order.
enum Visits<'p, 'a> {
    /// The partition keys that are left, and where the page before ended in the first of them.
    Keys {
        partitions: &'a TablePartitions,
        left: std::slice::Iter<'a, Bytes>,
        inside: Option<&'a Position>,
        visited: Visited,
        is_begun: bool,
    },
    /// The physical partitions that are left of a span of the ring.
    Ring {
        left: std::slice::Iter<'a, Placed>,
        span: &'p KeySpan,
        resume: Option<&'a Position>,
    },
}

impl<'p, 'a: 'p> Visits<'p, 'a> {
    /// `span` is what is left of a read of the ring.
    fn new(spread: &Spread<'a>, span: Option<&'p KeySpan>) -> Self {
        let (partitions, resume) = (spread.partitions, spread.resume);
        let keys: &'a [Bytes] = match (&spread.read.partitions, span) {
            (_, Some(span)) => {
                return Self::Ring {
                    left: partitions.touched(span).iter(),
                    span,
                    resume,
                };
            }
            (Partitions::Keys(keys), None) => keys,
            (Partitions::Ring(_), None) => &[],
        };
        let (left, inside) = keys_left(keys, resume);
        let passed = keys.len() - left.len() + usize::from(inside.is_some());
        let mut visited = Visited::default();
        for key in keys.iter().take(passed) {
            visited.add(partitions.place(key).1.id);
        }
        Self::Keys {
            partitions,
            left: left.iter(),
            inside,
            visited,
            is_begun: false,
        }
    }

    /// Whether none is left.
    fn is_over(&self) -> bool {
        match self {
            Self::Keys { left, .. } => left.as_slice().is_empty(),
            Self::Ring { left, .. } => left.as_slice().is_empty(),
        }
    }

    /// The physical partitions that are left of a span of the ring.
    fn ring_left(&self) -> &'a [Placed] {
        match self {
            Self::Keys { .. } => &[],
            Self::Ring { left, .. } => left.as_slice(),
        }
    }

    fn next(&mut self) -> Option<Visit<'p, 'a>> {
        match self {
            Self::Keys {
                partitions,
                left,
                inside,
                visited,
                is_begun,
            } => {
                let key = left.next()?;
                let (token, partition) = partitions.place(key);
                let is_first = visited.add(partition.id);
                let begins = !std::mem::replace(is_begun, true);
                Some(Visit {
                    partition,
                    cut: Cut::Key(token, key),
                    resume: inside.take(),
                    is_first,
                    counts: is_first || begins,
                })
            }
            Self::Ring { left, span, resume } => {
                let partition = left.next()?;
                Some(Visit {
                    partition,
                    cut: Cut::Span(span),
                    resume: *resume,
                    is_first: is_first_visit(partition, *resume),
                    counts: true,
                })
            }
        }
    }
}

/// Most physical partitions after the current one whose beginnings are read ahead.
const PARTS_AHEAD_MAX: usize = 8;

/// Rows below which nothing is read ahead: the current partition is likely to have them.
const AHEAD_ROWS_MIN: usize = 500;

/// Reads the beginnings of the physical partitions ahead that a scan will visit next: in a bucket each would take the time of
/// several requests.
#[derive(Default)]
struct Ahead {
    /// How many of those that are left were begun.
    begun: usize,
}

impl Ahead {
    /// `left` are those after the current one.
    fn go_on(&mut self, left: &[Placed], table: StorageId, rows_wanted: Option<usize>) {
        self.begun = self.begun.saturating_sub(1);
        if rows_wanted.is_some_and(|rows| rows < AHEAD_ROWS_MIN) {
            return;
        }
        for partition in left.iter().take(PARTS_AHEAD_MAX).skip(self.begun) {
            if let Some(here) = partition.here() {
                here.store().read_ahead(|| here.key_range(table));
            }
            self.begun += 1;
        }
    }
}

/// The physical partitions that a read of several keys has visited.
#[derive(Default)]
struct Visited {
    /// The first one. Most reads visit no other, which costs no allocation.
    first: Option<PhysicalPartitionId>,
    more: BTreeSet<PhysicalPartitionId>,
}

impl Visited {
    /// Adds one. Returns whether it is new.
    fn add(&mut self, id: PhysicalPartitionId) -> bool {
        match self.first {
            None => {
                self.first = Some(id);
                true
            }
            Some(first) => first != id && self.more.insert(id),
        }
    }
}
