//! Records of a text file: the lines that belong together, and the cells of a record of CSV.
//!
//! ```text
//! cell begins ─"─► quoted ─"─► closed ─"─► quoted        a quoted cell may contain commas, line ends and doubled quotes
//!      └─other─► bare                                    in a bare cell a quote is a character, as in cqlsh's COPY
//! ```
//! A line end inside a quoted cell continues the record. Every line belongs to one record, so that an import can name
//! each line that it does not write.

use std::fmt;
use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use super::text::Form;

/// Bytes of one record of a file: more than any row may have.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;

/// What some editors write before the text of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Lines of a file, from 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last > self.first {
            true => write!(f, "lines {} to {}", self.first, self.last),
            false => write!(f, "line {}", self.first),
        }
    }
}

/// A record of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Its lines.
    pub(super) lines: Lines,
    /// Its text without its end of line. `None` means that it is not UTF-8.
    pub(super) text: Option<String>,
}

/// Why the rest of a file cannot be divided into records.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Where the lines of a record are unknown.
    #[error(transparent)]
    Endless(#[from] Endless),
}

/// A record without an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Endless {
    /// A quoted cell goes on to the end of the file.
    #[error("the quote that begins in line {line}, column {column}, is never closed: {lines} cannot be read")]
    Quote {
        /// The line of the quote.
        line: u64,
        /// Its column in characters, from 1.
        column: u64,
        /// The lines of the record.
        lines: Lines,
    },
    /// A record is too long.
    #[error("line {line}: a record is longer than {RECORD_BYTES_MAX} bytes, and the rest of the file is not read")]
    TooLong {
        /// Its first line.
        line: u64,
    },
    /// A quoted cell is too long.
    #[error(
        "the quote that begins in line {line}, column {column}, is not closed within {RECORD_BYTES_MAX} bytes: the file is not read from {lines} on"
    )]
    TooLongQuote {
        /// The line of the quote.
        line: u64,
        /// Its column in characters, from 1.
        column: u64,
        /// The lines of the record that were read.
        lines: Lines,
    },
}

/// Where a character is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: u64,
    column: u64,
}

/// The part of a cell of CSV behind which a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Nothing of a cell was read.
    Begin,
    /// A cell that does not begin with a quote.
    Bare,
    /// A cell that began with the quote in this place.
    Quoted(Place),
    /// Behind a quote in the cell that began there: it closed the cell unless another quote follows.
    Closed(Place),
}

impl Within {
    /// Behind a line, too.
    fn behind(mut self, line: u64, bytes: &[u8]) -> Self {
        let mut column = 0;
        for byte in bytes {
            // The bytes of a character after its first one begin with the bits 10.
            column += u64::from(byte & 0xC0 != 0x80);
            self = match (self, byte) {
                (Self::Begin, b'"') => Self::Quoted(Place { line, column }),
                (Self::Quoted(begin), b'"') => Self::Closed(begin),
                (Self::Closed(begin), b'"') => Self::Quoted(begin),
                (quoted @ Self::Quoted(_), _) => quoted,
                (_, b',') => Self::Begin,
                _ => Self::Bare,
            };
        }
        self
    }

    /// The quote that is not closed.
    const fn open(self) -> Option<Place> {
        match self {
            Self::Quoted(begin) => Some(begin),
            Self::Begin | Self::Bare | Self::Closed(_) => None,
        }
    }
}

/// The records of a file.
#[derive(Debug)]
pub(super) struct Records<R> {
    from: R,
    form: Form,
    line: u64,
}

impl<R: BufRead> Records<R> {
    pub(super) const fn new(from: R, form: Form) -> Self {
        Self { from, form, line: 0 }
    }

    /// The next record. `None` means there are no more. Empty lines are skipped.
    ///
    /// # Errors
    /// [`RecordError`]; nothing behind it can be read.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, RecordError> {
        let mut bytes = Vec::new();
        let mut first = self.line + 1;
        let mut within = Within::Begin;
        loop {
            let begin = bytes.len();
            let left = RECORD_BYTES_MAX.saturating_sub(begin as u64);
            let read = self.from.by_ref().take(left + 1).read_until(b'\n', &mut bytes)?;
            self.line += u64::from(read > 0);
            let lines = Lines { first, last: self.line };
            if self.form == Form::Csv {
                let line = bytes.get(begin..).unwrap_or_default();
                let mark = BYTE_ORDER_MARK.as_bytes();
                let unmarked = line.strip_prefix(mark).filter(|_| self.line == 1);
                within = within.behind(self.line, unmarked.unwrap_or(line));
            }
            let open = within.open();
            if bytes.len() as u64 > RECORD_BYTES_MAX {
                return Err(match open {
                    Some(Place { line, column }) => Endless::TooLongQuote { line, column, lines },
                    None => Endless::TooLong { line: first },
                }
                .into());
            }
            if let Some(Place { line, column }) = open {
                if read > 0 {
                    continue;
                }
                return Err(Endless::Quote { line, column, lines }.into());
            }
            if let Some(record) = whole(&bytes, lines) {
                return Ok(Some(record));
            }
            if read == 0 {
                return Ok(None);
            }
            bytes.clear();
            within = Within::Begin;
            first = self.line + 1;
        }
    }
}

/// The record of these lines. `None` means that they are empty.
fn whole(bytes: &[u8], lines: Lines) -> Option<Record> {
    let text = std::str::from_utf8(bytes).map(|text| {
        let text = text.trim_end_matches(['\n', '\r']);
        match lines.first {
            1 => text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text),
            _ => text,
        }
    });
    match text {
        Ok("") => None,
        text => Some(Record {
            lines,
            text: text.ok().map(str::to_owned),
        }),
    }
}

/// The cells of a record of CSV; `None` for an empty one without quotes.
pub(super) fn csv_cells(record: &str) -> Result<Vec<Option<String>>, String> {
    let (mut cells, mut rest) = (Vec::new(), record);
    loop {
        let cell = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (cell, behind) = rest.split_at(end);
                rest = behind;
                Some(cell.to_owned()).filter(|cell| !cell.is_empty())
            }
            Some(quoted) => {
                let (mut cell, mut left) = (String::new(), quoted);
                loop {
                    let end = left.find('"').ok_or("a quote that is not closed")?;
                    let (part, behind) = left.split_at(end);
                    cell.push_str(part);
                    match behind.strip_prefix("\"\"") {
                        Some(behind) => {
                            cell.push('"');
                            left = behind;
                        }
                        None => {
                            rest = behind.strip_prefix('"').unwrap_or(behind);
                            break;
                        }
                    }
                }
                Some(cell)
            }
        };
        cells.push(cell);
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(cells),
            None => return Err("text behind a closing quote".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first and the last line of a record, and its text; none where it is not UTF-8.
    type Found = (u64, u64, Option<String>);

    /// The lines and the text of each record, and the error at which they end.
    fn all(file: &[u8], form: Form) -> (Vec<Found>, Option<String>) {
        let mut records = Records::new(file, form);
        let mut found = Vec::new();
        loop {
            match records.next_record() {
                Ok(Some(Record { lines, text })) => found.push((lines.first, lines.last, text)),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn a_quote_inside_a_bare_cell_is_a_character() {
        let (found, error) = all(b"k,v\n1,a\n2,5\" pipe\n3,b\n", Form::Csv);
        assert_eq!(error, None);
        let lines: Vec<u64> = found.iter().map(|(first, ..)| *first).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
        assert_eq!(
            csv_cells("2,5\" pipe,\"\",\"a\"\"b\"").unwrap(),
            [
                Some("2".to_owned()),
                Some("5\" pipe".to_owned()),
                Some(String::new()),
                Some("a\"b".to_owned())
            ]
        );
    }

    #[test]
    fn text_behind_a_closing_quote_is_bad_in_its_own_line_only() {
        let (found, error) = all(b"1,\"5\" pipe\n2,\"x\"y\"\n3,c\n", Form::Csv);
        assert_eq!(error, None);
        assert_eq!(found.len(), 3);
        assert_eq!(csv_cells("1,\"5\" pipe").unwrap_err(), "text behind a closing quote");
    }

    #[test]
    fn a_quote_that_never_closes_is_named_by_its_place() {
        let (found, error) = all("1,a\n2,\"b\nc\",é,\"5 pipe\n3,d\n".as_bytes(), Form::Csv);
        assert_eq!(found.len(), 1);
        assert_eq!(
            error.unwrap(),
            "the quote that begins in line 3, column 6, is never closed: lines 2 to 4 cannot be read"
        );
    }

    #[test]
    fn a_record_has_all_its_lines() {
        let (found, error) = all(b"\n1,\"a\n\nb\"\r\n\r\n2,c", Form::Csv);
        assert_eq!(error, None);
        assert_eq!(
            found,
            [(2, 4, Some("1,\"a\n\nb\"".to_owned())), (6, 6, Some("2,c".to_owned()))]
        );
        let (found, _) = all(b"{\"a\": \"\n\"}\n", Form::Json);
        assert_eq!(found.len(), 2, "a record of JSON is a line");
    }

    #[test]
    fn lines_that_are_not_utf8_are_records_of_their_own() {
        let (found, error) = all(b"1,a\n2,\xff\n3,b\n", Form::Csv);
        assert_eq!(error, None);
        assert_eq!(found[1], (2, 2, None));
        assert_eq!(found[2], (3, 3, Some("3,b".to_owned())));
    }

    #[test]
    fn a_byte_order_mark_begins_a_file_only() {
        for form in [Form::Csv, Form::Json] {
            let (found, _) = all("\u{feff}k,v\n\u{feff}1,2\n".as_bytes(), form);
            assert_eq!(found[0].2.as_deref(), Some("k,v"));
            assert_eq!(found[1].2.as_deref(), Some("\u{feff}1,2"));
        }
        let (found, _) = all("\u{feff}\"k\",v\n".as_bytes(), Form::Csv);
        assert_eq!(found[0].2.as_deref(), Some("\"k\",v"));
    }

    proptest! {
        #[test]
        fn every_line_with_text_is_in_one_record_or_behind_an_error(file in "[a\",\n\r é]{0,40}") {
            let mut records = Records::new(file.as_bytes(), Form::Csv);
            let mut next = 1;
            let is_bare = |next: usize, first: u64| {
                let skipped = file.lines().skip(next - 1).take(usize::try_from(first).unwrap() - next);
                skipped.map(|line| line.trim_end_matches('\r')).all(str::is_empty)
            };
            loop {
                match records.next_record() {
                    Ok(Some(record)) => {
                        prop_assert!(is_bare(next, record.lines.first));
                        next = usize::try_from(record.lines.last).unwrap() + 1;
                    }
                    Ok(None) => {
                        prop_assert!(is_bare(next, file.lines().count() as u64 + 1));
                        break;
                    }
                    Err(RecordError::Endless(Endless::Quote { lines, .. })) => {
                        prop_assert!(is_bare(next, lines.first));
                        prop_assert_eq!(lines.last, file.lines().count() as u64);
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }

        #[test]
        fn any_record_is_cells_or_refused(record in any::<String>()) {
            drop(csv_cells(&record));
        }
    }
}
