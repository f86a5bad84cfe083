//! One socket: its bytes, and the envelopes in them.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::envelope::{Decoder, Encoder, Envelope, HANDSHAKE_BODY_BYTES_MAX, Header};
use super::limits::READ_BYTES;
use super::transport::Cause;

/// A connected socket: TCP, TLS over it, or a simulated one.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Any socket.
pub type BoxSocket = Box<dyn Socket>;

/// A socket with its encoder and decoder.
pub(super) struct Link {
    socket: BoxSocket,
    decoder: Decoder,
    pub(super) encoder: Encoder,
    /// Whether the socket holds bytes that it was given.
    must_flush: bool,
}

fn failed(error: &std::io::Error) -> Cause {
    Cause::Socket(error.kind())
}

impl Link {
    /// A link that takes small messages only, until the peer is trusted.
    pub(super) fn new(socket: BoxSocket, compresses: bool) -> Self {
        Self {
            socket,
            decoder: Decoder::new(HANDSHAKE_BODY_BYTES_MAX),
            encoder: Encoder::new(compresses),
            must_flush: false,
        }
    }

    /// Takes bodies of this many bytes from now on.
    pub(super) fn trust(&mut self, body_bytes_max: usize) {
        self.decoder.limit(body_bytes_max);
    }

    /// Reads what has arrived; at most once, so that the caller can take the envelopes out.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        let buffer = self.decoder.buffer();
        buffer.reserve(READ_BYTES);
        let read = pin!(self.socket.read_buf(buffer));
        match ready!(read.poll(context)) {
            Ok(0) => Poll::Ready(Err(Cause::Closed)),
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(failed(&error))),
        }
    }

    /// The next envelope that has arrived completely.
    pub(super) fn next_envelope(&mut self) -> Result<Option<Envelope>, Cause> {
        self.decoder.next_envelope()
    }

    /// Writes what is encoded. Ready means that nothing is left.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        while self.encoder.queued() > 0 {
            let bytes = self.encoder.flush();
            match ready!(Pin::new(&mut self.socket).poll_write(context, bytes)) {
                Ok(0) => return Poll::Ready(Err(Cause::Closed)),
                Ok(written) => self.encoder.sent(written),
                Err(error) => return Poll::Ready(Err(failed(&error))),
            }
            self.must_flush = true;
        }
        if self.must_flush {
            let flushed = ready!(Pin::new(&mut self.socket).poll_flush(context));
            flushed.map_err(|error| failed(&error))?;
            self.must_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends one envelope.
    pub(super) async fn send(&mut self, header: Header, body: &[u8]) -> Result<(), Cause> {
        self.encoder.write(header, body);
        poll_fn(|context| self.poll_write(context)).await
    }

    /// Waits for one envelope.
    pub(super) async fn receive(&mut self) -> Result<Envelope, Cause> {
        loop {
            if let Some(envelope) = self.next_envelope()? {
                return Ok(envelope);
            }
            poll_fn(|context| self.poll_read(context)).await?;
        }
    }
}
