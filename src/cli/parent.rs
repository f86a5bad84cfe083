//! `--exit-with-stdin`: the server ends when its standard input does.
//!
//! The kernel closes the pipe when the process at its other end dies, however it dies. Signals on the death of a parent
//! (`PR_SET_PDEATHSIG`) are sent when the *thread* dies that started the child, which ends servers of test runners too early.

use std::io::Read;

use tokio::sync::oneshot;

/// Bytes read and discarded at a time.
const PIECE_BYTES: usize = 1024;

/// Resolves when standard input ends or fails. Input before that is discarded.
///
/// A dedicated thread blocks in the read, since nothing can interrupt a read of standard input. A task of the runtime
/// would keep the runtime from ending. The thread ends with the process.
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
        // An error means that there is no receiver: the server is already stopping.
        let _ = ended.send(());
    });
    // An error would mean that the thread has ended, and with it standard input.
    let _ = end.await;
}
