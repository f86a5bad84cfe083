//! Standard error, which may be gone: a closed terminal, a pipe without a reader, a log on a full disk. What cannot be written is lost, and
//! the program goes on.

use std::fmt::Display;
use std::io::{self, Write};

/// A writer that drops what cannot be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lossy<W>(pub(super) W);

impl<W: Write> Write for Lossy<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Dropped like the bytes.
        let _ = self.0.flush();
        Ok(())
    }
}

/// Writes a line to standard error, if it is there.
pub(super) fn say(line: impl Display) {
    // It never fails.
    let _ = writeln!(Lossy(io::stderr()), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn what_cannot_be_written_is_lost() {
        let mut lossy = Lossy(Gone);
        assert!(lossy.write_all(b"line").is_ok() && lossy.flush().is_ok());
    }
}
