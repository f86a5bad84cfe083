//! Behaviour of a connection while memory is short: it begins no further request, keeps requests until there is memory
//! for their responses, and refuses those that have waited too long.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::inflight::Waited;
use super::super::{Handled, Postponed, incoming};
use super::Connection;
use helenus_base::metrics;
use helenus_types::wire::Header;
use helenus_types::wire::response::ErrorBody;

/// The refusal of a request that got no memory for its response in time.
const MEMORY_IN_USE: &str = "The memory for answers is in use by other connections, whose clients do not read: try again later, ask for \
                             smaller pages, or raise connections-memory-bytes-max";

/// Bytes of requests in progress, per connection, above which none is begun while memory is short: one or two that
/// execute, or some fifty that wait for memory.
const IN_WORK_WHILE_SHORT_BYTES: usize = 32 * 1024;

impl<S, F> Connection<S, F>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Handled> + Send + 'static,
{
    /// Whether so much waits for the client that nothing more is begun or read; while memory is short, anything that
    /// waits counts.
    pub(super) fn is_full(&self) -> bool {
        let queued = self.encoder.queued();
        queued >= self.shared.limits.queued_bytes_max || (queued > 0 && self.shared.budget.is_short())
    }

    /// Whether nothing more is begun or read for now, also because of many requests in progress while memory is short.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_full() || (self.in_flight.holds() >= IN_WORK_WHILE_SHORT_BYTES && self.shared.budget.is_short())
    }

    pub(super) fn record_held(&mut self) {
        if self.shared.budget.is_short() {
            self.in_flight.shrink();
        }
        let reading = if self.incoming.is_none() {
            self.decoder.capacity()
        } else {
            0
        };
        let buffers = self.encoder.capacity() + reading + self.waiting_bytes;
        let in_flight = self.in_flight.holds() + self.in_flight.spare_bytes();
        self.held.record(buffers + in_flight, self.encoder.queued());
    }

    /// Sends a request's response, or keeps the request until there is memory.
    pub(super) fn handled(&mut self, context: &mut Context<'_>, stream: i16, handled: Handled) {
        match handled {
            Handled::Answer(response) => self.answer(context, stream, &response),
            Handled::NoRoom(postponed) => self.postpone(stream, postponed),
        }
    }

    fn postpone(&mut self, stream: i16, postponed: Postponed) {
        self.shared.admission.begin(postponed.body.len());
        self.in_flight.wait(stream, Arc::clone(self.held.share()), postponed);
    }

    /// Begins a request that has waited for memory, or refuses it.
    pub(super) fn begin_again(
        &mut self,
        context: &mut Context<'_>,
        waited: Waited,
        work: &impl Fn(Header, Bytes) -> F,
    ) {
        let Waited { header, body, granted } = waited;
        match granted {
            Ok(granted) => {
                self.held.share().hand(granted);
                self.begin(context, header, body, work);
                drop(self.held.share().take_handed());
            }
            Err(_) => {
                let error = ErrorBody::overloaded(MEMORY_IN_USE);
                self.answer(context, header.stream, &error.into());
            }
        }
    }

    /// Refuses the large request that has arrived in part: it got no memory in time.
    pub(super) fn refuse_incoming(&mut self, context: &mut Context<'_>) {
        if let Some(header) = self.decoder.give_up_awaited() {
            metrics::REQUESTS_OVERLOADED.increment();
            self.answer(context, header.stream, &ErrorBody::overloaded(incoming::REFUSAL).into());
        }
    }
}
