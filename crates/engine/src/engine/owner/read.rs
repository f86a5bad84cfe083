//! A read of one physical partition that came as a message.

use std::sync::Arc;

use bytes::Bytes;

#[cfg(feature = "simulation")]
use super::tables::{OwnTables, undecodable};
use crate::engine::Error;
use crate::engine::index::Indexes;
use crate::engine::part::walk::Probes;
use crate::engine::part::{Cut, PartRead, PartSink, ReadPart, Receipt, Scratch, run_part};
#[cfg(feature = "simulation")]
use crate::engine::part::{Ended, Walked};
use crate::engine::row::layout::Layout;
use crate::engine::snapshot::Snapshot;
use crate::partition::{Hosted, ReadView};
use crate::throughput::PartitionRef;
use helenus_schema::command::Read;
use helenus_schema::command::codec::{self, ReadRequest};
use helenus_types::functions::Context;

/// What the owner keeps for the parts of one page.
pub(in crate::engine) struct OwnersPage<'a> {
    /// Its catalog, by which it finds the partitions.
    pub(in crate::engine) snapshot: &'a Snapshot,
    pub(in crate::engine) indexes: &'a Indexes,
    /// The moments of its stores.
    pub(in crate::engine) view: &'a mut ReadView,
    /// Time, for functions.
    pub(in crate::engine) context: &'a Context,
}

/// The outcome of a part that came as a message. Its charges are on the sheet of its page.
#[cfg(feature = "simulation")]
pub(in crate::engine) struct Answered {
    pub(in crate::engine) ended: Result<Ended, Error>,
    pub(in crate::engine) rows: u64,
    pub(in crate::engine) walked: Walked,
    /// The name of the index by which it found its rows. `None` means that it scanned.
    pub(in crate::engine) index: Option<String>,
}

#[cfg(feature = "simulation")]
impl Answered {
    pub(in crate::engine) fn failed(error: Error) -> Self {
        Self {
            ended: Err(error),
            rows: 0,
            walked: Walked::default(),
            index: None,
        }
    }
}

/// What a part is charged to.
pub(in crate::engine) struct ChargedTo {
    /// Its physical partition.
    pub(in crate::engine) partition: PartitionRef,
    /// The number and the key of its logical partition. `None` means that it names none.
    pub(in crate::engine) key: Option<(i64, Bytes)>,
}

/// A part that came as a message, with what it needs of this machine.
pub(in crate::engine) struct AskedPart<'a> {
    pub(in crate::engine) layout: Layout,
    pub(in crate::engine) charged: ChargedTo,
    partition: &'a Arc<Hosted>,
    cut: Cut<'a>,
}

impl<'s> OwnersPage<'s> {
    /// Executes a message, and passes its rows to a sink.
    #[cfg(feature = "simulation")]
    pub(in crate::engine) async fn execute(
        &mut self,
        message: &Bytes,
        scratch: &mut Scratch<'_>,
        rows: &mut impl PartSink,
    ) -> Answered {
        let tables = OwnTables {
            snapshot: self.snapshot,
            mask_calls: |_, _| None,
        };
        let asked = match ReadRequest::decode(message, &tables) {
            Ok(asked) => asked,
            Err(error) => return Answered::failed(undecodable(error)),
        };
        let read = asked.to_read();
        let part = match self.part(&asked, &read) {
            Ok(part) => part,
            Err(error) => return Answered::failed(error),
        };
        let receipt = self.run(&part, &asked, &read, scratch, rows).await;
        Answered {
            ended: receipt.ended,
            rows: receipt.rows,
            walked: receipt.walked,
            index: receipt.index.map(str::to_owned),
        }
    }

    /// Finds the physical partition of a message.
    ///
    /// # Errors
    /// It is served elsewhere; [`Error::Outdated`]: the message spans several.
    pub(in crate::engine) fn part<'m>(&self, asked: &'m ReadRequest, read: &Read) -> Result<AskedPart<'m>, Error>
    where
        's: 'm,
    {
        let map = self.snapshot.partitions(&read.table)?;
        let (partition, cut) = match &asked.cut {
            codec::Cut::Key(key) => {
                let (token, partition) = map.hosted(key)?;
                (partition, Cut::Key(token, key))
            }
            codec::Cut::Span(span) => {
                let partition = map.at_bound(span.start());
                let here = partition
                    .here()
                    .filter(|here| here.span.and(span).as_ref() == Some(span));
                // The partition was split since the machine that asks learnt of it.
                (here.ok_or(Error::Outdated)?, Cut::Span(span))
            }
        };
        let charged = ChargedTo {
            partition: PartitionRef {
                table: read.table.storage_id,
                partition: partition.id.0,
            },
            key: match cut {
                Cut::Key(token, key) => Some((partition.spread(token, key), key.clone())),
                Cut::Span(_) => None,
            },
        };
        Ok(AskedPart {
            layout: Layout::new(&read.table, asked.needed.iter().copied(), asked.needs_metadata),
            charged,
            partition,
            cut,
        })
    }

    /// Executes a part, and passes its rows to a sink.
    pub(in crate::engine) async fn run<'r>(
        &mut self,
        part: &AskedPart<'r>,
        asked: &'r ReadRequest,
        read: &'r Read,
        scratch: &mut Scratch<'_>,
        rows: &mut impl PartSink,
    ) -> Receipt<'r>
    where
        's: 'r,
    {
        // Before the snapshot is taken. The sender names those that were complete for the whole page.
        let probes = (!read.probes.is_empty()).then(|| Probes::now(self.indexes, read));
        let bound = PartRead {
            read,
            layout: &part.layout,
            context: self.context,
            now_seconds: asked.now_seconds,
            tombstones_max: asked.tombstones_max,
        };
        let read_part = ReadPart {
            partition: part.partition,
            cut: part.cut,
            resume: asked.resume.as_ref(),
            is_first: asked.is_first,
            at: self.view.lend(part.partition),
            probes: probes.as_ref().filter(|probes| !probes.is_empty()),
            rows_wanted: asked.rows_wanted.and_then(|rows| usize::try_from(rows).ok()),
            tombstones_before: asked.tombstones_before,
        };
        let receipt = run_part(&bound, &read_part, scratch, rows).await;
        let index = receipt.index.and_then(|name| {
            let mut planned = read.probes.iter();
            planned.find(|probe| probe.index == name)
        });
        Receipt {
            ended: receipt.ended,
            rows: receipt.rows,
            walked: receipt.walked,
            charged_micros: receipt.charged_micros,
            index: index.map(|probe| probe.index.as_str()),
        }
    }
}
