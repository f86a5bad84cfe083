//! The end of a connection: sent responses arrive, and requests in progress are completed.
//!
//! When the server stops, it sends FIN after the last whole response, and continues to read until the client closes too
//! or `drain` is over. If a socket is closed with unread bytes, the system resets the connection, and a reset discards
//! responses that are still on their way.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Handled;
use super::admission::Admission;
use super::inflight::InFlight;

/// Why a connection ended; for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client closed it, or the server did after a response that announced it.
    Closed,
    /// The socket failed.
    Broken,
    /// The input was invalid beyond recovery.
    Lost,
    /// The login failed.
    Refused,
    /// Not logged in in time.
    LoginDeadline,
    /// The client did not read.
    Slow,
    /// The client did not write.
    Idle,
    /// The server stops.
    Drained,
    /// The server needs the slot for a client that sends requests.
    Evicted,
    /// Its virtual node went down.
    Cut,
}

/// How long the end of a connection waits for the client to stop sending.
const LINGER: Duration = Duration::from_secs(1);

/// The same when the server stops, for a client that has sent nothing since: it is unlikely to send now.
const LINGER_QUIET: Duration = Duration::from_millis(250);

/// Closes the socket. `sends_still` means that the server stops and the client has sent requests that are no longer
/// begun; it then has until `drain`.
pub(super) async fn close(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    end: End,
    sends_still: bool,
    drain: Duration,
) {
    match end {
        End::Lost | End::Refused => drop(timeout(LINGER, linger(&mut socket, LINGER)).await),
        End::Drained => {
            let quiet = if sends_still { drain } else { LINGER_QUIET };
            drop(timeout(drain, linger(&mut socket, quiet)).await);
        }
        _ => {}
    }
}

/// Closes the sending half and discards further input: if the socket were closed with unread bytes, earlier responses
/// would be lost on their way. Ends when the client closes, or sends nothing for `quiet` from the beginning; a client
/// that does send may take its time afterwards.
async fn linger(socket: &mut (impl AsyncRead + AsyncWrite + Unpin), quiet: Duration) -> std::io::Result<()> {
    socket.shutdown().await?;
    let mut sink = [0; 4096];
    match timeout(quiet, socket.read(&mut sink)).await {
        Ok(Ok(1..)) => while socket.read(&mut sink).await? > 0 {},
        _ => return Ok(()),
    }
    Ok(())
}

/// Completes requests in progress, even after the client has disconnected: half a schema change would be worse. Requests
/// that wait for memory are dropped, and reads end at their next row ([`helenus_base::budget::Share::leave`]).
pub(super) async fn finish<F: Future<Output = Handled> + Send + 'static>(
    mut in_flight: InFlight<F>,
    admission: &Admission,
) {
    for bytes in in_flight.give_up_waiting() {
        admission.end(bytes);
    }
    while let Some(done) = std::future::poll_fn(|context| in_flight.poll_done(context)).await {
        admission.end(done.bytes);
    }
}
