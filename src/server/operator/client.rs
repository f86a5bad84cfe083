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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::server::operator::text::Form;
    use helenus_base::progress::Done;

    #[test]
    fn progress_comes_before_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let done = Done {
            rows: 3,
            parts: 30,
            parts_total: 100,
        };
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            BufReader::new(socket.try_clone().unwrap())
                .read_line(&mut String::new())
                .unwrap();
            for came in [Came::Progress(Done::default()), Came::Progress(done), Came::Exported(5)] {
                let line = serde_json::to_string(&came).unwrap();
                writeln!(socket, "{line}").unwrap();
            }
        });
        let export = Ask::Export {
            table: ("a".to_owned(), "b".to_owned()),
            form: Form::Csv,
            to: "/c".into(),
        };
        let progress = Progress::default();
        let came = ask(folder.path(), &export, &progress).unwrap();
        assert_eq!((came, progress.done()), (Some(Came::Exported(5)), done));
        server.join().unwrap();
    }
}
