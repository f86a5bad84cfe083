//! A part of a read whose physical partition another machine serves: the message to its owner.

use bytes::Bytes;

use super::row_sink::RowSink;
use super::sink::Sink;
use super::source::{Spread, Visit};
use crate::engine::Error;
use crate::engine::failure::FailureCause;
#[cfg(feature = "simulation")]
use crate::engine::owner::{loopback, read::OwnersPage};
use crate::engine::part::{Cut, Receipt, Scratch, Walked};
use crate::partition::{Owner, ReadView};
use helenus_schema::command::IndexProbe;
use helenus_schema::command::codec::{self, ReadRequest};

impl<'a> Spread<'a> {
    /// What the owner of a visited physical partition is to read. `probes` are the indexes that it may use.
    ///
    /// # Errors
    /// The read is beyond a bound of messages.
    pub(super) fn message(
        &self,
        visit: &Visit<'_, 'a>,
        probes: Vec<IndexProbe>,
        rows_wanted: Option<usize>,
        tombstones_before: u64,
    ) -> Result<Bytes, Error> {
        let cut = match visit.cut {
            Cut::Key(_, key) => codec::Cut::Key(key.clone()),
            // What lies outside is another owner's.
            Cut::Span(span) => codec::Cut::Span(visit.partition.span.and(span).unwrap_or_else(|| span.clone())),
        };
        let request = ReadRequest {
            probes,
            resume: visit.resume.cloned(),
            is_first: visit.is_first,
            rows_wanted: rows_wanted.and_then(|rows| u64::try_from(rows).ok()),
            tombstones_before,
            tombstones_max: self.tombstones_max,
            ..ReadRequest::of(self.read, cut, self.request.now_seconds)
        };
        request.encode().map_err(|error| Error::Fault(error.to_string()))
    }

    /// Sends a message to an owner, and passes the rows of its answer to the sink.
    #[cfg_attr(
        not(feature = "simulation"),
        expect(
            unused_variables,
            clippy::unused_async,
            reason = "no connection carries messages yet"
        )
    )]
    pub(super) async fn ask(
        &'a self,
        owner: &Owner,
        message: &Bytes,
        view: &mut ReadView,
        scratch: &mut Scratch<'_>,
        sink: &mut Sink<'_, impl RowSink>,
    ) -> Receipt<'a> {
        #[cfg(feature = "simulation")]
        if let Some(owners) = &self.request.owners {
            loopback::count_message();
            let mut page = OwnersPage {
                snapshot: owners,
                indexes: self.indexes,
                view,
                context: &self.request.context,
            };
            let answered = page.execute(message, scratch, sink).await;
            let index = answered.index.and_then(|name| {
                let mut planned = self.read.probes.iter();
                planned.find(|probe| probe.index == name)
            });
            return Receipt {
                ended: answered.ended,
                rows: answered.rows,
                walked: answered.walked,
                charged_micros: answered.charged_micros,
                index: index.map(|probe| probe.index.as_str()),
            };
        }
        tracing::debug!(
            owner = &*owner.0,
            "a read needs a partition whose owner cannot be reached"
        );
        Receipt {
            ended: Err(Error::ReadFailure {
                consistency: self.request.consistency(),
                cause: FailureCause::Replica,
            }),
            rows: 0,
            walked: Walked::default(),
            charged_micros: 0,
            index: None,
        }
    }
}
