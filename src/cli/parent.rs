//! `--exit-with-stdin`: the server ends when its standard input does.
//!
//! The kernel closes the pipe when the process at its other end dies, however it dies. Signals on the death of a parent
//! (`PR_SET_PDEATHSIG`) are sent when the *thread* dies that started the child, which ends servers of test runners too early.

use std::io::Read;

use tokio::sync::oneshot;

/// Bytes that are read and dropped at a time.
const PIECE_BYTES: usize = 1024;

/// Resolves when standard input ends or fails. What arrives before is dropped.
///
/// A thread of its own waits in the read, since nothing can interrupt a read of standard input: a task of the runtime would keep the
/// runtime from ending. The thread ends with the process.
pub async fn stdin_ends() {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let mut piece = [0; PIECE_BYTES];
        let mut stdin = std::io::stdin().lock();
        loop {
            match stdin.read(&mut piece) {
                Ok(0) => break,
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => break,
                Ok(_) | Err(_) => {}
            }
        }
        // An error means that there is no receiver: the server stops already.
        let _ = ended.send(());
    });
    // An error would mean that the thread is gone, and with it standard input.
    let _ = end.await;
}
