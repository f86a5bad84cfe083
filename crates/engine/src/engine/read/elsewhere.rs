//! A part of a read whose physical partition another machine serves: this machine asks the owner, again until it has enough rows.

use bytes::Bytes;
use std::time::Duration;

use super::row_sink::RowSink;
use super::sink::Sink;
use super::spread::{Spread, Visit};
use crate::engine::Error;
use crate::engine::failure::FailureCause;
use crate::engine::owner::Asked;
use crate::engine::owner::carrier::unanswered;
use crate::engine::owner::question::Question;
use crate::engine::owner::rows_answer::{Place, replay};
#[cfg(feature = "simulation")]
use crate::engine::owner::{loopback, read::OwnersPage};
use crate::engine::part::{Cut, Ended, Receipt, Scratch, Walked};
use crate::partition::{Owner, ReadView};
use crate::throughput::PartitionRef;
use helenus_schema::command::codec::{self, ReadRequest};
use helenus_schema::command::{IndexProbe, Position};

/// How long a read waits for an answer of an owner, with the time in which there is none.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A part whose rows the owner reads.
pub(super) struct Elsewhere<'p, 'a> {
    pub(super) spread: &'a Spread<'a>,
    pub(super) visit: Visit<'p, 'a>,
    pub(super) owner: &'p Owner,
    /// The indexes that the owner may use.
    pub(super) probes: Vec<IndexProbe>,
    /// Tombstones that earlier parts have walked over, where they count together.
    pub(super) tombstones_before: u64,
    /// Whether no other part of the page follows.
    pub(super) is_last: bool,
}

impl<'a> Elsewhere<'_, 'a> {
    /// Reads the part, and passes its rows to the sink.
    pub(super) async fn run(
        &self,
        view: &mut ReadView,
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
    ) -> Receipt<'a> {
        let mut receipt = Receipt {
            ended: Ok(Ended::Whole),
            rows: 0,
            walked: Walked::default(),
            charged_micros: 0,
            index: None,
        };
        let charged_before = scratch.charges_mut().micros();
        let mut begun: Option<Place> = None;
        loop {
            let asked = self.asked(begun.as_ref(), receipt.walked.tombstones, sink.rows_wanted());
            match self.ask(&asked, view, scratch, sink, &mut receipt).await {
                Ok(Some(place)) if self.has_more(&place) => begun = Some(place),
                Ok(_) => break,
                Err(error) => {
                    receipt.ended = Err(error);
                    break;
                }
            }
        }
        receipt.charged_micros = scratch.charges_mut().micros().saturating_sub(charged_before);
        receipt
    }

    /// Whether anything of the part can be left behind a row.
    fn has_more(&self, place: &Place) -> bool {
        place.clustering.is_some() || matches!(self.visit.cut, Cut::Span(_))
    }

    /// What the owner is to read behind the answers so far.
    fn asked(&self, begun: Option<&Place>, walked: u64, rows_wanted: Option<usize>) -> ReadRequest {
        let cut = match self.visit.cut {
            Cut::Key(_, key) => codec::Cut::Key(key.clone()),
            // What lies outside is another owner's.
            Cut::Span(span) => codec::Cut::Span(self.visit.partition.span.and(span).unwrap_or_else(|| span.clone())),
        };
        let spread = self.spread;
        let behind = begun.map(|place| Position {
            partition_key: place.partition_key.clone(),
            clustering: place.clustering.clone(),
            of_one_partition: false,
            limit_rows: None,
            partition_limit_rows: place.left,
            charge_left_micros: 0,
            feed: None,
        });
        ReadRequest {
            probes: self.probes.clone(),
            is_first: self.visit.is_first && behind.is_none(),
            resume: behind.or_else(|| self.visit.resume.cloned()),
            rows_wanted: rows_wanted.and_then(|rows| u64::try_from(rows).ok()),
            tombstones_before: self.tombstones_before.saturating_add(walked),
            tombstones_max: spread.tombstones_max,
            ..ReadRequest::of(spread.read, cut, spread.request.now_seconds)
        }
    }

    /// Sends a message, and passes the rows of its answer to the sink. Returns the row behind which the part goes on.
    #[cfg_attr(
        not(feature = "simulation"),
        expect(
            unused_variables,
            reason = "only in a test this machine is its own owner, and has moments"
        )
    )]
    async fn ask(
        &self,
        asked: &ReadRequest,
        view: &mut ReadView,
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
        receipt: &mut Receipt<'a>,
    ) -> Result<Option<Place>, Error> {
        let message = asked.encode().map_err(|error| Error::Fault(error.to_string()))?;
        let spread = self.spread;
        #[cfg(feature = "simulation")]
        if let Some(owners) = &spread.request.owners {
            loopback::count_message();
            let mut page = OwnersPage {
                snapshot: owners,
                indexes: spread.indexes,
                view,
                context: &spread.request.context,
            };
            let answered = page.execute(&message, scratch, sink).await;
            receipt.ended = answered.ended;
            receipt.rows = answered.rows;
            receipt.walked = answered.walked;
            receipt.index = answered.index.and_then(|name| self.planned(&name));
            return Ok(None);
        }
        let answer = self.carry(message).await?;
        self.enter(scratch);
        let replayed = replay(&answer, spread.read, scratch, sink);
        receipt.rows += replayed.rows;
        receipt.walked.add(replayed.walked);
        receipt.index = self.planned(&replayed.index).or(receipt.index);
        receipt.ended = replayed.ended;
        Ok(replayed.goes_on.filter(|_| receipt.ended.is_ok()))
    }

    /// Sends a message, and returns the answer.
    async fn carry(&self, message: Bytes) -> Result<Bytes, Error> {
        let spread = self.spread;
        let consistency = spread.request.consistency();
        let Some(carrier) = spread.carrier else {
            let owner = &*self.owner.0;
            tracing::debug!(owner, "a read needs a partition whose owner cannot be reached");
            return Err(Error::ReadFailure {
                consistency,
                cause: FailureCause::Replica,
            });
        };
        let question = Question {
            consistency,
            page: spread.page,
            is_last: self.is_last,
            message,
        };
        let answer = carrier.carry(Asked::Rows, question.encode(), ANSWER_WITHIN).await;
        answer.map_err(|error| unanswered(&error, consistency, None))
    }

    /// Enters what the owner has charged, as a part that runs here does.
    fn enter(&self, scratch: &mut Scratch<'_>) {
        let partition = PartitionRef {
            table: self.spread.read.table.storage_id,
            partition: self.visit.partition.id.0,
        };
        let key = match self.visit.cut {
            Cut::Key(token, key) => Some((self.visit.partition.spread(token, key), key)),
            Cut::Span(_) => None,
        };
        scratch.charges_mut().enter(partition, key);
    }

    /// The name of an index as the plan has it.
    fn planned(&self, index: &str) -> Option<&'a str> {
        let mut planned = self.spread.read.probes.iter();
        planned
            .find(|probe| probe.index == index)
            .map(|probe| probe.index.as_str())
    }
}
