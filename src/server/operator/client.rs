//! A client of a running server, by the socket in its data directory. Blocks.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::super::socket;
use super::{Ask, Came, SOCKET};
use helenus_base::progress::Progress;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The server refused.
    #[error("{0}")]
    Refused(String),
    /// The socket fails.
    #[error("no answer from the server of {}: {source}", directory.display())]
    Io {
        /// Its data directory.
        directory: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another version answers.
    #[error("the server of {} does not answer as this version expects: use the program that the server runs", directory.display())]
    Strange {
        /// Its data directory.
        directory: PathBuf,
    },
}

/// Sends a request to the server of a data directory and waits for the result, with its progress meanwhile. `None` means no server
/// runs there.
///
/// # Errors
/// It refuses, or does not answer.
pub fn ask(directory: &Path, ask: &Ask, progress: &Progress) -> Result<Option<Came>, AskError> {
    let io = |source| AskError::Io {
        directory: directory.to_owned(),
        source,
    };
    let strange = || AskError::Strange {
        directory: directory.to_owned(),
    };
    let connected = socket::path(directory, SOCKET).and_then(|(_handle, path)| UnixStream::connect(path));
    let mut socket = match connected {
        Ok(socket) => socket,
        // No directory, no socket, or the socket of a killed server.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let mut line = serde_json::to_vec(ask).map_err(|_| strange())?;
    line.push(b'\n');
    socket.write_all(&line).map_err(io)?;
    let mut lines = BufReader::new(&socket).lines();
    loop {
        let line = lines.next().unwrap_or_else(|| Err(ErrorKind::UnexpectedEof.into()));
        match serde_json::from_str(&line.map_err(io)?).map_err(|_| strange())? {
            Came::Progress(done) => progress.take(done),
            Came::Refused(why) => return Err(AskError::Refused(why)),
            came => return Ok(Some(came)),
        }
    }
}
