//! The end of a connection: what was answered arrives, what was begun is carried through.
//!
//! When the server stops, FIN is said after the last whole answer, and reading goes on until the client closes too or `drain` is over: a
//! socket closed over unread bytes resets the connection, and a reset takes the answers along that are still on their way.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Handled;
use super::connection::{End, Shared};
use super::inflight::InFlight;

/// How long the end of a connection waits for the client to stop sending.
const LINGER: Duration = Duration::from_secs(1);

/// The same when the server stops, where the client has sent nothing since: that it is about to is not likely.
const LINGER_QUIET: Duration = Duration::from_millis(250);

/// Closes the socket. `sends_still`: the server stops, and the client has sent what was not begun any more; it then has until `drain`.
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

/// Says that nothing more is written and reads what the client is still sending, into nothing: were the socket closed over
/// unread bytes, the answers before would be lost on their way. Ends when the client closes, or sends nothing for `quiet` from the
/// beginning; one that sends may take its time afterwards.
async fn linger(socket: &mut (impl AsyncRead + AsyncWrite + Unpin), quiet: Duration) -> std::io::Result<()> {
    socket.shutdown().await?;
    let mut sink = [0; 4096];
    match timeout(quiet, socket.read(&mut sink)).await {
        Ok(Ok(1..)) => while socket.read(&mut sink).await? > 0 {},
        _ => return Ok(()),
    }
    Ok(())
}

/// What has been begun is carried through, even when the client is gone: half a schema change would be worse. Reads that wait for memory
/// are not.
pub(super) async fn finish<F: Future<Output = Handled> + Send + 'static>(mut in_flight: InFlight<F>, shared: &Shared) {
    for bytes in in_flight.give_up_waiting() {
        shared.admission.end(bytes);
    }
    while let Some(done) = std::future::poll_fn(|context| in_flight.poll_done(context)).await {
        shared.admission.end(done.bytes);
    }
}
