//! The progress of long work on a terminal: one line of standard error, which is written over each second.
//!
//! ```text
//! import   45 %  212,736 rows  16,000 rows/s  12 s left
//! ```

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use super::Failure;
use super::terminal::Lossy;
use helenus_base::clock::Clock;
use helenus_base::progress::{Done, Progress, watch};

/// Time between two lines.
const LINE_EVERY: Duration = Duration::from_millis(500);

/// Shortest part of the work after which its end is predicted, in percent.
const PREDICTED_FROM_PERCENT: u64 = 2;

/// Does work, and shows its progress on a terminal. Ctrl-C ends the work, and tells what was done.
///
/// # Errors
/// Those of the work; Ctrl-C.
pub(super) async fn shown<T, E: Into<Failure>>(
    verb: &str,
    progress: Arc<Progress>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    let is_terminal = io::stderr().is_terminal();
    let clock = Clock::system();
    let mut work = std::pin::pin!(watch(Arc::clone(&progress), work));
    loop {
        tokio::select! {
            done = &mut work => {
                clear(is_terminal);
                return done.map_err(Into::into);
            }
            _ = tokio::signal::ctrl_c() => {
                clear(is_terminal);
                return Err(format!("{verb} was interrupted: {}", so_far(progress.done())).into());
            }
            () = tokio::time::sleep(LINE_EVERY) => {
                if is_terminal {
                    let line = line(verb, progress.done(), clock.monotonic());
                    // The writer never fails.
                    let _ = write!(Lossy(io::stderr()), "\r{line}\x1b[K");
                }
            }
        }
    }
}

/// Removes the line from a terminal.
fn clear(is_terminal: bool) {
    if is_terminal {
        // The writer never fails.
        let _ = write!(Lossy(io::stderr()), "\r\x1b[K");
    }
}

/// What an interrupted work did.
fn so_far(done: Done) -> String {
    let rows = format!("{} rows were done", grouped(done.rows));
    match percent(done) {
        Some(percent) => format!("{rows}, {percent} % of the work"),
        None => rows,
    }
}

fn percent(done: Done) -> Option<u64> {
    done.parts.saturating_mul(100).checked_div(done.parts_total)
}

/// A line about work that has taken this long.
fn line(verb: &str, done: Done, taken: Duration) -> String {
    let millis = u64::try_from(taken.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = done.rows.saturating_mul(1000) / millis;
    let rows = format!("{} rows  {} rows/s", grouped(done.rows), grouped(rate));
    let Some(percent) = percent(done) else {
        return format!("{verb}  {rows}");
    };
    let rest = done.parts_total - done.parts;
    let left = match rest.saturating_mul(millis).checked_div(done.parts) {
        Some(millis) if percent >= PREDICTED_FROM_PERCENT => format!("  {} left", time(millis.div_ceil(1000))),
        _ => String::new(),
    };
    format!("{verb}  {percent:>3} %  {rows}{left}")
}

/// Seconds as people say them.
fn time(seconds: u64) -> String {
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// A number with commas between its thousands.
#[must_use]
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_part_rows_rate_and_time_left() {
        let done = |rows, parts, parts_total| Done {
            rows,
            parts,
            parts_total,
        };
        let at = Duration::from_secs;
        assert_eq!(
            line("import", done(212_736, 45, 100), at(10)),
            "import   45 %  212,736 rows  21,273 rows/s  13 s left"
        );
        assert_eq!(line("verify", done(999, 999, 0), at(1)), "verify  999 rows  999 rows/s");
        assert_eq!(
            line("restore", done(1_000_000, 1, 100), at(1)),
            "restore    1 %  1,000,000 rows  1,000,000 rows/s"
        );
        assert_eq!(line("backup", Done::default(), at(0)), "backup  0 rows  0 rows/s");
        assert_eq!(so_far(done(76_992, 19, 100)), "76,992 rows were done, 19 % of the work");
        assert_eq!([time(59), time(100), time(6000)], ["59 s", "2 min", "2 h"]);
    }
}
