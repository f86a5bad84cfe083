//! Standard error, which may be unusable: a closed terminal, a pipe without a reader, a log on a full disk. Output that
//! cannot be written is lost, and the program continues.

use std::fmt::Display;
use std::io::{self, Write};

/// A writer that discards output that cannot be written.
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
        // Discarded like the bytes.
        let _ = self.0.flush();
        Ok(())
    }
}

/// Writes a line to standard error, if possible.
pub(super) fn say(line: impl Display) {
    // The writer never fails.
    let _ = writeln!(Lossy(io::stderr()), "{line}");
}

/// A number and its noun: `1 row`, `2 rows`.
#[must_use]
pub(super) fn count(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    if number == "1" {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) => format!("{number} {stem}ies"),
        None if noun.ends_with('x') => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// Whether the process has a controlling terminal.
#[must_use]
pub(super) fn is_there() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether a server should end with its terminal: it has one, and SIGHUP was not ignored, as under `nohup`. Call this
/// before a handler of SIGHUP is set. Only Linux shows which signals are ignored, so on other systems a server outlives
/// its terminal.
#[must_use]
pub(super) fn ends_programs() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_there() && ignores_hang_up(&status) == Some(false)
}

/// Whether the first bit of the mask `SigIgn` of proc_pid_status(5) is set: SIGHUP is signal 1. `None` means that there
/// is no mask.
fn ignores_hang_up(status: &str) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hang_up_is_seen() {
        let status = |mask: &str| format!("Name:\thelenus\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert_eq!(ignores_hang_up(&status("0000000000001001")), Some(true));
        assert_eq!(ignores_hang_up(&status("0000000000001000")), Some(false));
        assert_eq!(ignores_hang_up("Name:\thelenus\n"), None);
    }

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
