//! A read of one physical partition that came as a message.

use bytes::Bytes;

use super::tables::{OwnTables, undecodable};
use crate::engine::Error;
use crate::engine::index::Indexes;
use crate::engine::part::walk::Probes;
use crate::engine::part::{Cut, Ended, PartRead, PartSink, ReadPart, Scratch, Walked, run_part};
use crate::engine::row::layout::Layout;
use crate::engine::snapshot::Snapshot;
use crate::partition::ReadView;
use helenus_base::invariant::Invariant;
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
pub(in crate::engine) struct Answered {
    pub(in crate::engine) ended: Result<Ended, Error>,
    pub(in crate::engine) rows: u64,
    pub(in crate::engine) walked: Walked,
    pub(in crate::engine) charged_micros: u64,
    /// The name of the index by which it found its rows. `None` means that it scanned.
    pub(in crate::engine) index: Option<String>,
}

impl Answered {
    pub(in crate::engine) fn failed(error: Error) -> Self {
        Self {
            ended: Err(error),
            rows: 0,
            walked: Walked::default(),
            charged_micros: 0,
            index: None,
        }
    }
}

impl OwnersPage<'_> {
    /// Executes a message, and passes its rows to a sink.
    pub(in crate::engine) async fn execute(
        &mut self,
        message: &Bytes,
        scratch: &mut Scratch<'_>,
        rows: &mut impl PartSink,
    ) -> Answered {
        match self.execute_within(message, scratch, rows).await {
            Ok(answered) => answered,
            Err(error) => Answered::failed(error),
        }
    }

    async fn execute_within(
        &mut self,
        message: &Bytes,
        scratch: &mut Scratch<'_>,
        rows: &mut impl PartSink,
    ) -> Result<Answered, Error> {
        let tables = OwnTables {
            snapshot: self.snapshot,
            mask_calls: |_, _| None,
        };
        let request = ReadRequest::decode(message, &tables).map_err(undecodable)?;
        let read = request.to_read();
        let layout = Layout::new(&read.table, request.needed.iter().copied(), request.needs_metadata);
        let map = self.snapshot.partitions(&read.table)?;
        let (partition, cut) = match &request.cut {
            codec::Cut::Key(key) => {
                let (token, partition) = map.hosted(key)?;
                (partition, Cut::Key(token, key))
            }
            codec::Cut::Span(span) => {
                let partition = map.at_bound(span.start());
                let here = partition
                    .here()
                    .filter(|here| here.span.and(span).as_ref() == Some(span));
                let found = format_args!("physical partition {} and a span of another", partition.id.0);
                (
                    here.ok_or_else(|| Invariant::KeyIsHosted.broken(&found))?,
                    Cut::Span(span),
                )
            }
        };
        // Before the snapshot is taken. The sender names those that were complete for the whole page.
        let probes = (!read.probes.is_empty()).then(|| Probes::now(self.indexes, &read));
        let bound = PartRead {
            read: &read,
            layout: &layout,
            context: self.context,
            now_seconds: request.now_seconds,
            tombstones_max: request.tombstones_max,
        };
        let part = ReadPart {
            partition,
            cut,
            resume: request.resume.as_ref(),
            is_first: request.is_first,
            at: self.view.lend(partition),
            probes: probes.as_ref().filter(|probes| !probes.is_empty()),
            rows_wanted: request.rows_wanted.and_then(|rows| usize::try_from(rows).ok()),
            tombstones_before: request.tombstones_before,
        };
        let receipt = run_part(&bound, &part, scratch, rows).await;
        Ok(Answered {
            ended: receipt.ended,
            rows: receipt.rows,
            walked: receipt.walked,
            charged_micros: receipt.charged_micros,
            index: receipt.index.map(str::to_owned),
        })
    }
}
