//! Runs the pieces of a script against a server and prints what cqlsh would.

use std::io::{self, Write};

use std::fs::File;

use super::client::{Asked, ClientError, Connection, Page, Target};
use super::print;
use super::split::{Piece, pieces};
use super::value;

/// Page size in rows unless PAGING sets another.
const PAGE_ROWS: i32 = 100;

/// Maximum nesting of SOURCE; a deeper script most likely calls itself.
const DEPTH_MAX: usize = 16;

/// Names of consistency levels (native_protocol_v4.spec §3), each at its number.
const CONSISTENCIES: &[&str] = &[
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
];

/// What follows a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Piece,
    End,
}

/// A connection, and the state that commands set.
pub(super) struct Session<Out> {
    pub(super) connection: Connection,
    /// Where the connection leads, and its login.
    pub(super) target: Target,
    pub(super) out: Out,
    /// The file of CAPTURE, and its name.
    pub(super) capture: Option<(String, File)>,
    is_traced: bool,
    /// The ids of the last statement's traces.
    pub(super) traced: Vec<[u8; 16]>,
    consistency: usize,
    serial_consistency: usize,
    /// The page size; `None` means that paging is off.
    page_rows: Option<i32>,
    is_expanded: bool,
    /// The keyspace in use. DESCRIBE TABLES prints keyspaces only while there is none.
    pub(super) keyspace: Option<String>,
    /// Whether the script is one argument; cqlsh does not count its lines.
    is_argument: bool,
    /// Whether any statement failed.
    pub(super) has_failed: bool,
}

impl<Out: Write> Session<Out> {
    pub(super) fn new(connection: Connection, target: Target, out: Out, is_argument: bool) -> Self {
        Self {
            connection,
            target,
            out,
            capture: None,
            is_traced: false,
            traced: Vec::new(),
            consistency: 1,
            serial_consistency: 8,
            page_rows: Some(PAGE_ROWS),
            is_expanded: false,
            keyspace: None,
            is_argument,
            has_failed: false,
        }
    }

    /// Uses a keyspace.
    ///
    /// # Errors
    /// There is no keyspace of that name.
    pub(super) fn use_keyspace(&mut self, name: &str) -> Result<(), ClientError> {
        let page = self.connection.query(&use_of(name), self.asked(None))?;
        self.keyspace = page.keyspace;
        Ok(())
    }

    /// Runs a script. `name` is what errors call it. A statement that fails does not end it, as in cqlsh.
    ///
    /// # Errors
    /// Output cannot be written, or the connection is lost.
    pub(super) fn script(&mut self, script: &str, name: &str, depth: usize) -> io::Result<()> {
        for piece in pieces(script) {
            if !piece.is_whole && !piece.text.trim().is_empty() {
                self.fail(name, piece.line, "Incomplete statement at end of file");
                break;
            }
            if self.piece(&piece, name, depth)? == Next::End {
                break;
            }
        }
        self.out.flush()
    }

    /// Prints an error, after flushing the output.
    pub(super) fn fail(&mut self, name: &str, line: usize, what: &str) {
        self.has_failed = true;
        let line = if self.is_argument { 1 } else { line };
        drop(self.out.flush());
        super::super::terminal::say(format_args!("{name}:{line}:{what}"));
    }

    fn piece(&mut self, piece: &Piece, name: &str, depth: usize) -> io::Result<Next> {
        let words: Vec<&str> = piece.text.split_whitespace().collect();
        let upper: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        match upper.as_slice() {
            ["EXIT" | "QUIT"] => return Ok(Next::End),
            ["EXPAND", to @ ..] => self.expand(to)?,
            ["PAGING", to @ ..] => self.paging(to)?,
            ["CONSISTENCY"] => writeln!(self.out, "Current consistency level is {}.", level(self.consistency))?,
            ["SERIAL", "CONSISTENCY"] => {
                writeln!(
                    self.out,
                    "Current serial consistency level is {}.",
                    level(self.serial_consistency)
                )?;
            }
            ["CONSISTENCY", to] => match number(to) {
                Some(number) => {
                    self.consistency = number;
                    writeln!(self.out, "Consistency level set to {to}.")?;
                }
                None => self.fail(name, piece.line, "Improper CONSISTENCY command."),
            },
            ["SERIAL", "CONSISTENCY", to] => match number(to).filter(|_| to.ends_with("SERIAL")) {
                Some(number) => {
                    self.serial_consistency = number;
                    writeln!(self.out, "Serial consistency level set to {to}.")?;
                }
                None => self.fail(name, piece.line, "Improper SERIAL CONSISTENCY command."),
            },
            ["SOURCE", ..] => self.source(piece, name, depth)?,
            ["DESCRIBE" | "DESC", what, ..] => self.describe(piece, name, what)?,
            ["SHOW", what @ ..] => self.show(piece, name, what)?,
            ["HELP", topics @ ..] => self.help(piece, name, topics)?,
            ["CAPTURE", ..] => self.capture(piece, name)?,
            ["LOGIN", ..] => self.log_in(piece, name)?,
            ["TRACING", to @ ..] => self.is_traced = self.switch("TRACING", self.is_traced, to)?,
            [word @ ("CLEAR" | "CLS" | "COPY" | "DEBUG" | "HISTORY" | "UNICODE"), ..] => {
                let what = format!(
                    "{word} is not known to this cqlsh, which comes with helenus: `pipx install cqlsh` brings one that knows it"
                );
                self.fail(name, piece.line, &what);
            }
            _ => self.statement(piece, name)?,
        }
        Ok(Next::Piece)
    }

    fn switch(&mut self, name: &str, is_on: bool, to: &[&str]) -> io::Result<bool> {
        let state = |is_on: bool| if is_on { "ON" } else { "OFF" };
        let wanted = match to {
            ["ON"] => true,
            ["OFF"] => false,
            _ => {
                writeln!(self.out, "{name} is {}", state(is_on))?;
                return Ok(is_on);
            }
        };
        let word = if wanted == is_on { "is already" } else { "set to" };
        writeln!(self.out, "{name} {word} {}", state(wanted))?;
        Ok(wanted)
    }

    fn expand(&mut self, to: &[&str]) -> io::Result<()> {
        self.is_expanded = self.switch("EXPAND", self.is_expanded, to)?;
        Ok(())
    }

    fn paging(&mut self, to: &[&str]) -> io::Result<()> {
        let rows = match to {
            [rows] => rows.parse().ok().filter(|rows| *rows > 0),
            _ => None,
        };
        self.page_rows = match rows {
            Some(rows) => Some(rows),
            None if self.switch("PAGING", self.page_rows.is_some(), to)? => self.page_rows.or(Some(PAGE_ROWS)),
            None => None,
        };
        match self.page_rows {
            Some(rows) => writeln!(self.out, "Page size: {rows}"),
            None => Ok(()),
        }
    }

    fn source(&mut self, piece: &Piece, name: &str, depth: usize) -> io::Result<()> {
        let file = piece
            .text
            .split_once(char::is_whitespace)
            .map_or("", |(_, file)| file.trim());
        let file = file.trim_matches('\'').replace("''", "'");
        match std::fs::read_to_string(&file) {
            Ok(_) if depth >= DEPTH_MAX => self.fail(
                name,
                piece.line,
                &format!("'{file}' is called by SOURCE for the {DEPTH_MAX}th time"),
            ),
            Ok(script) => self.script(&script, &file, depth + 1)?,
            Err(error) => self.fail(
                name,
                piece.line,
                &format!("Could not open '{file}': {}", python(&error, &file)),
            ),
        }
        Ok(())
    }

    /// As the statements of a script are asked.
    pub(super) fn asked<'a>(&self, from: Option<&'a [u8]>) -> Asked<'a> {
        let short = |number: usize| u16::try_from(number).unwrap_or(1);
        Asked {
            consistency: short(self.consistency),
            serial_consistency: short(self.serial_consistency),
            page_rows: self.page_rows,
            from,
            is_traced: self.is_traced,
        }
    }

    /// As a statement of this program is asked: without a trace, all rows at once.
    pub(super) fn plainly_asked(&self) -> Asked<'static> {
        Asked {
            page_rows: None,
            is_traced: false,
            ..self.asked(None)
        }
    }

    /// Keeps the id of a trace until the statement is printed.
    fn keep_trace(&mut self, page: &Page) {
        self.traced.extend(page.trace);
    }

    fn statement(&mut self, piece: &Piece, name: &str) -> io::Result<()> {
        // With its terminator, as cqlsh sends it: syntax errors quote the text that was sent.
        let text = format!("{};", piece.text);
        let page = match self.connection.query(&text, self.asked(None)) {
            Ok(page) => page,
            Err(error) => return self.refused(piece, name, &error),
        };
        self.keep_trace(&page);
        if page.keyspace.is_some() {
            self.keyspace.clone_from(&page.keyspace);
        }
        let start = piece.text.split_whitespace().next().unwrap_or_default().to_lowercase();
        let mut warnings = page.warnings.clone();
        if start == "select" || start == "list" {
            warnings = self.pages(piece, name, page)?;
        } else if !page.rows.is_empty() {
            writeln!(self.results())?;
            self.page(&page, true, 0)?;
        }
        self.warn(&warnings)?;
        self.traces(piece, name)
    }

    /// Prints all pages and their total of rows. Returns the warnings of the last page.
    fn pages(&mut self, piece: &Piece, name: &str, first: Page) -> io::Result<Vec<String>> {
        writeln!(self.results())?;
        let (mut page, mut count, mut is_first) = (first, 0, true);
        loop {
            if is_first || !page.rows.is_empty() {
                self.page(&page, is_first, count)?;
                count += page.rows.len();
            }
            let Some(from) = page.next.take() else { break };
            is_first = false;
            page = match self.connection.query(&piece.text, self.asked(Some(&from))) {
                Ok(page) => {
                    self.keep_trace(&page);
                    page
                }
                Err(error) => {
                    self.refused(piece, name, &error)?;
                    return Ok(Vec::new());
                }
            };
        }
        writeln!(self.results(), "\n({count} rows)")?;
        Ok(page.warnings)
    }

    fn page(&mut self, page: &Page, with_header: bool, before: usize) -> io::Result<()> {
        if page.columns.is_empty() {
            Ok(())
        } else if self.is_expanded && !page.rows.is_empty() {
            print::expanded(&mut self.results(), page, before)
        } else {
            print::table(&mut self.results(), page, with_header)
        }
    }

    fn warn(&mut self, warnings: &[String]) -> io::Result<()> {
        if warnings.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "\nWarnings :")?;
        warnings
            .iter()
            .try_for_each(|warning| writeln!(self.out, "{warning}\n"))
    }

    /// Prints an error of the server; the script continues. A lost connection ends it.
    pub(super) fn refused(&mut self, piece: &Piece, name: &str, error: &ClientError) -> io::Result<()> {
        match error {
            ClientError::Refused { code, message, exists } => {
                self.fail(name, piece.line, &super::errors::text(*code, message, exists));
                Ok(())
            }
            lost => Err(io::Error::other(lost.to_string())),
        }
    }

    fn describe(&mut self, piece: &Piece, name: &str, what: &str) -> io::Result<()> {
        let mut page = Page::default();
        let mut rows: Vec<Vec<String>> = Vec::new();
        loop {
            let from = page.next.take();
            let asked = Asked {
                is_traced: false,
                ..self.asked(from.as_deref())
            };
            page = match self.connection.query(&piece.text, asked) {
                Ok(page) => page,
                Err(ClientError::Refused { message, .. }) => {
                    self.fail(name, piece.line, &message);
                    return Ok(());
                }
                Err(lost) => return Err(io::Error::other(lost.to_string())),
            };
            rows.extend(plain(&page));
            if page.next.is_none() {
                break;
            }
        }
        let place = |column: &str| page.columns.iter().position(|one| one.name == column);
        let of = |row: &[String], column: &str| {
            place(column)
                .and_then(|place| row.get(place).cloned())
                .unwrap_or_default()
        };
        match what {
            "KEYSPACES" => {
                let names: Vec<String> = rows.iter().map(|row| of(row, "name")).collect();
                writeln!(self.out)?;
                print::names(&mut self.out, &names, print::LINE_COLUMNS)?;
                writeln!(self.out)?;
            }
            "TABLES" | "COLUMNFAMILIES" | "TYPES" | "FUNCTIONS" | "AGGREGATES" => {
                let of_keyspaces = rows.chunk_by(|a, b| of(a, "keyspace_name") == of(b, "keyspace_name"));
                for rows in of_keyspaces {
                    let keyspace = rows.first().map(|row| of(row, "keyspace_name")).unwrap_or_default();
                    writeln!(self.out)?;
                    if self.keyspace.is_none() {
                        writeln!(self.out, "Keyspace {keyspace}\n---------{}", "-".repeat(keyspace.len()))?;
                    }
                    let names: Vec<String> = rows.iter().map(|row| of(row, "name")).collect();
                    print::names(&mut self.out, &names, print::LINE_COLUMNS)?;
                }
                if !rows.is_empty() {
                    writeln!(self.out)?;
                }
            }
            "CLUSTER" => {
                for row in &rows {
                    let (cluster, partitioner, snitch) =
                        (of(row, "cluster"), of(row, "partitioner"), of(row, "snitch"));
                    writeln!(
                        self.out,
                        "\nCluster: {cluster}\nPartitioner: {partitioner}\nSnitch: {snitch}\n"
                    )?;
                }
            }
            _ => {
                for row in &rows {
                    writeln!(self.out, "\n{}", of(row, "create_statement"))?;
                }
            }
        }
        self.warn(&page.warnings)
    }
}

/// Cells as they are: texts of DESCRIBE hold line ends, which tables show escaped.
fn plain(page: &Page) -> Vec<Vec<String>> {
    let cell = |cell: &Option<Vec<u8>>| match cell {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => value::NULL.to_owned(),
    };
    page.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn level(number: usize) -> &'static str {
    CONSISTENCIES.get(number).copied().unwrap_or_default()
}

fn number(name: &str) -> Option<usize> {
    CONSISTENCIES.iter().position(|one| *one == name)
}

/// An error of the system as Python prints it.
pub(super) fn python(error: &io::Error, file: &str) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    match error.raw_os_error() {
        Some(number) => format!("[Errno {number}] {text}: '{file}'"),
        None => text.to_owned(),
    }
}

/// The statement that uses a keyspace.
pub(super) fn use_of(keyspace: &str) -> String {
    format!("USE \"{}\"", keyspace.replace('"', "\"\""))
}
