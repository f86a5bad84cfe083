//! The trace of a statement, as cqlsh prints it (`cqlshlib/tracing.py` of cqlsh 6.2). Differs: times are UTC, as this program knows no
//! time zones. Gap: tool-12.

use std::io::{self, Write};
use std::time::Duration;

use super::client::{ClientError, Column, Page};
use super::commands::cell;
use super::print;
use super::session::Session;
use super::split::Piece;
use helenus_types::types::{CqlType, Native, unix_100ns, uuid_text};

/// Tries until a trace must be complete: a server writes it behind the answer.
const TRIES_MAX: usize = 50;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(40);

/// The columns that are printed.
const NAMES: [&str; 5] = ["activity", "timestamp", "source", "source_elapsed", "client"];

impl<Out: Write> Session<Out> {
    /// Prints the traces of the last statement, in the order of its pages.
    pub(super) fn traces(&mut self, piece: &Piece, name: &str) -> io::Result<()> {
        for id in std::mem::take(&mut self.traced) {
            let id = uuid_text(id);
            match self.trace(&id) {
                Ok(Some(page)) => {
                    writeln!(self.results(), "\nTracing session: {id}\n")?;
                    print::table(&mut self.results(), &page, true)?;
                    writeln!(self.results())?;
                }
                Ok(None) => self.fail(name, piece.line, &format!("Session {id} wasn't found.")),
                Err(error) => self.refused(piece, name, &error)?,
            }
        }
        Ok(())
    }

    /// The rows of a trace as a page. `None` means that it is not complete in time.
    fn trace(&mut self, id: &str) -> Result<Option<Page>, ClientError> {
        let columns = "request, started_at, coordinator, client, duration";
        let text = format!("SELECT {columns} FROM system_traces.sessions WHERE session_id = {id}");
        let mut session = Page::default();
        for _ in 0..TRIES_MAX {
            session = self.connection.query(&text, self.plainly_asked())?;
            if cell(&session, 0, 4).is_some() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        let (Some(began), Some(took)) = (long(&session, 0, 1), cell(&session, 0, 4)) else {
            return Ok(None);
        };
        let began_micros = began.saturating_mul(1000);
        let took_micros: i64 = took.parse().unwrap_or(0);
        let of = |place| cell(&session, 0, place).unwrap_or_default();
        let (coordinator, client) = (of(2), of(3));
        let mut rows = vec![[
            of(0),
            moment(began_micros),
            coordinator.clone(),
            "0".to_owned(),
            client.clone(),
        ]];
        let columns = "activity, thread, event_id, source, source_elapsed";
        let text = format!("SELECT {columns} FROM system_traces.events WHERE session_id = {id}");
        let events = self.connection.query(&text, self.plainly_asked())?;
        for row in 0..events.rows.len() {
            let of = |place| cell(&events, row, place).unwrap_or_default();
            let at = events
                .rows
                .get(row)
                .and_then(|row| row.get(2)?.as_deref())
                .and_then(unix_100ns)
                .unwrap_or(0);
            rows.push([
                format!("{} [{}]", of(0), of(1)),
                moment(at / 10),
                of(3),
                of(4),
                client.clone(),
            ]);
        }
        let ended = moment(began_micros.saturating_add(took_micros));
        rows.push(["Request complete".to_owned(), ended, coordinator, took, client]);
        Ok(Some(of_texts(rows)))
    }
}

/// A page of texts.
fn of_texts(rows: Vec<[String; 5]>) -> Page {
    let column = |name: &str| Column {
        name: name.to_owned(),
        ty: CqlType::Native(Native::Text),
    };
    let cells = |row: [String; 5]| row.map(|cell| Some(cell.into_bytes())).to_vec();
    Page {
        columns: NAMES.map(column).to_vec(),
        rows: rows.into_iter().map(cells).collect(),
        ..Page::default()
    }
}

/// A cell of eight bytes.
fn long(page: &Page, row: usize, place: usize) -> Option<i64> {
    let bytes = page.rows.get(row)?.get(place)?.as_deref()?;
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

/// Microseconds since 1970-01-01 UTC as Python prints such a time: without a fraction if that is 0.
fn moment(micros: i64) -> String {
    let millis = micros.div_euclid(1000).to_be_bytes();
    let text = CqlType::Native(Native::Timestamp).to_text(&millis);
    let seconds: String = text.chars().take(19).collect();
    let seconds = seconds.replace('T', " ");
    match micros.rem_euclid(1_000_000) {
        0 => seconds,
        fraction => format!("{seconds}.{fraction:06}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_as_python_prints_it() {
        assert_eq!(moment(1_700_000_000_000_000), "2023-11-14 22:13:20");
        assert_eq!(moment(1_700_000_000_012_345), "2023-11-14 22:13:20.012345");
    }
}
