//! A fleet that stands in for a server: `compat/fleet/through` runs the nodes, and clients speak to one that does not own the stores.
//!
//! ```text
//! Server::start ─► as-server ─► through.py   starts the nodes, or the one that was killed; names one that does not own
//! Server::kill  ─► as-server ends            the owner gets SIGKILL; the other nodes and the clients' connections live on
//!               ─► GO_ON later               connections of this process send nothing more, as if their server were gone
//! ```
//! So a run that kills a server kills the owner. Between the two moments its clients work through the takeover, and what they are refused
//! is in doubt, as what a server that is gone has not answered.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::Error;

/// How long clients go on after the owner was killed: longer than another node takes to own the stores.
const GO_ON: Duration = Duration::from_secs(6);

/// States of the server that a run has started last: it runs, it was killed, nothing more is sent to it.
const RUNS: u8 = 0;
const KILLED: u8 = 1;
const GONE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(RUNS);

/// Whether a fleet stands in for servers.
pub fn is_fleet() -> bool {
    std::env::var_os("HELENUS_COMPAT_FLEET").is_some()
}

/// Notes that a server is ready.
pub(crate) fn begin() {
    STATE.store(RUNS, Ordering::SeqCst);
}

/// Kills the owner by `kill`, and lets clients go on.
pub(crate) fn kill(kill: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<()> {
    if !is_fleet() {
        return kill();
    }
    STATE.store(KILLED, Ordering::SeqCst);
    kill()?;
    std::thread::sleep(GO_ON);
    STATE.store(GONE, Ordering::SeqCst);
    Ok(())
}

/// Whether an error is what a kill leaves of a request: the server is gone, or refuses after the owner was killed.
pub(crate) fn is_by_kill(error: &Error) -> bool {
    matches!(error, Error::Io { .. }) || (matches!(error, Error::Refused { .. }) && is_owner_killed())
}

/// Whether the owner was killed: a refusal leaves a request in doubt.
pub(crate) fn is_owner_killed() -> bool {
    STATE.load(Ordering::SeqCst) != RUNS
}

/// The error of a connection whose server is gone as far as a run is concerned.
pub(crate) fn sends() -> Result<(), Error> {
    if STATE.load(Ordering::SeqCst) != GONE {
        return Ok(());
    }
    let source = std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "the owner was killed");
    Err(Error::io("send")(source))
}
