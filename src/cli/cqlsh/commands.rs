//! Commands of cqlsh that are no CQL: SHOW, HELP, CAPTURE, LOGIN.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use super::client::{Connection, Page};
use super::session::{Session, python, use_of};
use super::split::Piece;
use super::{print, unreachable, value};

/// The topics of HELP (`cqlshlib/cqlshmain.py` of cqlsh 6.2).
const SHELL_TOPICS: &[&str] = &[
    "CAPTURE",
    "CLEAR",
    "CLS",
    "CONSISTENCY",
    "COPY",
    "DESC",
    "DESCRIBE",
    "EXIT",
    "EXPAND",
    "HELP",
    "HISTORY",
    "LOGIN",
    "PAGING",
    "SERIAL",
    "SHOW",
    "SOURCE",
    "TRACING",
    "UNICODE",
];

/// Those of CQL (`pylib/cqlshlib/cqldocs`).
const CQL_TOPICS: &[&str] = &[
    "AGGREGATES",
    "ALTER_KEYSPACE",
    "ALTER_MATERIALIZED_VIEW",
    "ALTER_TABLE",
    "ALTER_TYPE",
    "ALTER_USER",
    "APPLY",
    "ASCII",
    "BATCH",
    "BEGIN",
    "BLOB",
    "BOOLEAN",
    "COUNTER",
    "CREATE_AGGREGATE",
    "CREATE_COLUMNFAMILY",
    "CREATE_FUNCTION",
    "CREATE_INDEX",
    "CREATE_KEYSPACE",
    "CREATE_MATERIALIZED_VIEW",
    "CREATE_ROLE",
    "CREATE_TABLE",
    "CREATE_TRIGGER",
    "CREATE_TYPE",
    "CREATE_USER",
    "DATE",
    "DELETE",
    "DROP_AGGREGATE",
    "DROP_COLUMNFAMILY",
    "DROP_FUNCTION",
    "DROP_INDEX",
    "DROP_KEYSPACE",
    "DROP_MATERIALIZED_VIEW",
    "DROP_ROLE",
    "DROP_TABLE",
    "DROP_TRIGGER",
    "DROP_TYPE",
    "DROP_USER",
    "FUNCTIONS",
    "GRANT",
    "INSERT",
    "INSERT_JSON",
    "INT",
    "JSON",
    "KEYWORDS",
    "LIST_PERMISSIONS",
    "LIST_ROLES",
    "LIST_USERS",
    "PERMISSIONS",
    "REVOKE",
    "SELECT",
    "SELECT_JSON",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TRUNCATE",
    "TYPES",
    "UPDATE",
    "USE",
    "UUID",
];

/// Where tables go: to the output, or to the file of CAPTURE.
pub(super) enum Results<'a, Out> {
    Shown(&'a mut Out),
    Captured(&'a mut File),
}

impl<Out: Write> Write for Results<'_, Out> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Shown(out) => out.write(bytes),
            Self::Captured(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Shown(out) => out.flush(),
            Self::Captured(file) => file.flush(),
        }
    }
}

impl<Out: Write> Session<Out> {
    /// Where tables go now.
    pub(super) fn results(&mut self) -> Results<'_, Out> {
        match &mut self.capture {
            Some((_, file)) => Results::Captured(file),
            None => Results::Shown(&mut self.out),
        }
    }

    /// SHOW HOST and SHOW VERSION. `what`: the words after SHOW, in upper case.
    pub(super) fn show(&mut self, piece: &Piece, name: &str, what: &[&str]) -> io::Result<()> {
        if !matches!(what, ["HOST" | "VERSION"]) {
            self.fail(
                name,
                piece.line,
                "SHOW of this cqlsh, which comes with helenus, is SHOW HOST or SHOW VERSION",
            );
            return Ok(());
        }
        let text = "SELECT cluster_name, release_version, cql_version FROM system.local";
        let page = match self.connection.query(text, self.asked(None)) {
            Ok(page) => page,
            Err(error) => return self.refused(piece, name, &error),
        };
        let of = |place: usize| cell(&page, 0, place).unwrap_or_default();
        match what {
            ["HOST"] => writeln!(
                self.out,
                "Connected to {} at {}:{}",
                of(0),
                self.target.host,
                self.target.port
            ),
            _ => writeln!(
                self.out,
                "[cqlsh of helenus {} | Cassandra {} | CQL spec {} | Native protocol v4]",
                env!("CARGO_PKG_VERSION"),
                of(1),
                of(2)
            ),
        }
    }

    /// HELP. The texts of topics are cqlsh's own, so only their list is here.
    pub(super) fn help(&mut self, piece: &Piece, name: &str, topics: &[&str]) -> io::Result<()> {
        if !topics.is_empty() {
            let what = "the texts of HELP are in the real cqlsh: `pipx install cqlsh`, or read the book";
            self.fail(name, piece.line, what);
            return Ok(());
        }
        for (heading, topics) in [
            ("\nDocumented shell commands:", SHELL_TOPICS),
            ("CQL help topics:", CQL_TOPICS),
        ] {
            writeln!(self.out, "{heading}\n{}", "=".repeat(heading.len()))?;
            let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
            // `cmd.Cmd.print_topics` leaves the last column free.
            print::names(&mut self.out, &topics, print::LINE_COLUMNS - 1)?;
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// CAPTURE. Differs: `CAPTURE OFF` ends it; that of cqlsh 6.2 is read as CAPTURE without a file, and goes on. Gap: tool-7.
    pub(super) fn capture(&mut self, piece: &Piece, name: &str) -> io::Result<()> {
        let file = piece
            .text
            .split_once(char::is_whitespace)
            .map_or("", |(_, file)| file.trim());
        match (&self.capture, file) {
            (None, "") => writeln!(self.out, "Currently not capturing query output."),
            (Some((captured, _)), "") => writeln!(self.out, "Currently capturing query output to {}.", repr(captured)),
            (None, off) if off.eq_ignore_ascii_case("off") => {
                self.fail(name, piece.line, "Not currently capturing output.");
                Ok(())
            }
            (Some(_), off) if off.eq_ignore_ascii_case("off") => {
                self.capture = None;
                Ok(())
            }
            (Some((captured, _)), _) => {
                let what = format!("Already capturing output to {captured}. Use CAPTURE OFF to disable.");
                self.fail(name, piece.line, &what);
                Ok(())
            }
            (None, file) => self.begin_capture(piece, name, &file.trim_matches('\'').replace("''", "'")),
        }
    }

    fn begin_capture(&mut self, piece: &Piece, name: &str, file: &str) -> io::Result<()> {
        match OpenOptions::new().create(true).append(true).open(file) {
            Ok(open) => {
                self.capture = Some((file.to_owned(), open));
                writeln!(self.out, "Now capturing query output to {}.", repr(file))
            }
            Err(error) => {
                let error = python(&error, file);
                self.fail(
                    name,
                    piece.line,
                    &format!("Could not open {} for append: {error}", repr(file)),
                );
                Ok(())
            }
        }
    }

    /// LOGIN USER 'PASSWORD': another connection, which replaces this one if it is admitted.
    pub(super) fn log_in(&mut self, piece: &Piece, name: &str) -> io::Result<()> {
        let mut words = piece.text.split_whitespace().skip(1);
        let (user, password) = match (words.next(), words.next(), words.next()) {
            (Some(user), Some(password), None) => (user, password),
            _ => {
                self.fail(
                    name,
                    piece.line,
                    "Improper LOGIN command: give LOGIN USER 'PASSWORD', since there is no prompt.",
                );
                return Ok(());
            }
        };
        let bare = |word: &str| word.trim_matches('\'').to_owned();
        let before = self.target.login.replace((bare(user), bare(password)));
        let opened = Connection::open(&self.target).and_then(|mut connection| match &self.keyspace {
            Some(keyspace) => connection
                .query(&use_of(keyspace), self.asked(None))
                .map(|_| connection),
            None => Ok(connection),
        });
        match opened {
            Ok(connection) => self.connection = connection,
            Err(error) => {
                self.fail(name, piece.line, &unreachable(&self.target, &error));
                self.target.login = before;
            }
        }
        Ok(())
    }
}

/// A cell of a page as text. `None`: null, or no such cell.
pub(super) fn cell(page: &Page, row: usize, place: usize) -> Option<String> {
    let bytes = page.rows.get(row)?.get(place)?.as_deref()?;
    Some(value::print(&page.columns.get(place)?.ty, Some(bytes), false))
}

/// A name as Python's `repr` prints it.
fn repr(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}
