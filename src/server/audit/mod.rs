//! The audit log: which client sent what and when, and whether it was allowed.
//!
//! ```text
//! login, statement ─ selected? ─► Record ─► one line of JSON ─► queue ─► file::Writer ─► FILE, FILE.1, …
//! ```
//! Fields and their names are those of Cassandra's `AuditLogEntry`: `timestamp` (milliseconds), `user`, `source`,
//! `port`, `type`, `category`, `keyspace`, `scope`, `operation`. In addition: `allowed`, false if a login or a
//! permission was refused; for a statement that was refused or failed, `statement`, its own type, and `error`.
//!
//! Invariants: no password and no hash of one is written, because literals of statements about roles are
//! hidden, and other texts are cut after the word that precedes one. Its error is then left out, because it may repeat a part of the text. No control character is written raw. Bound values
//! are never written. A request does not wait for the log: a record that the queue or the disk does not accept is lost,
//! counted (`audit_records_lost_total`) and logged. The next record accepted reports how many were lost.
//!
//! A server without an audit log pays one check of an `Option` per request.
//!
//! Deliberately absent: bound values; the records of a batch's members, whose texts are in the record of the batch.

mod file;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;

use self::file::Writer;
pub use self::file::{AuditError, FILES_MAX};
use super::log::obeys;
use super::secrets;
use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{AuditCategory, Audited};
use helenus_engine::engine;
use helenus_types::wire::response::ErrorCode;

/// Most characters of a text that are written; longer texts end in «… cut».
const TEXT_CHARACTERS_MAX: usize = 4096;

/// Keyspaces whose reads are not recorded, as in Cassandra: drivers read them at each connection.
const UNRECORDED: [&str; 3] = ["system", "system_schema", "system_virtual_schema"];

/// Location and content of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// The current file; older ones lie next to it, with numbers.
    pub file: PathBuf,
    /// Bytes after which a file ends.
    pub file_bytes_max: u64,
    /// Files that are kept, from 1 to [`FILES_MAX`].
    pub files_max: usize,
    /// The categories that are recorded.
    pub categories: Vec<AuditCategory>,
}

/// The audit log of a server.
pub(super) struct Audit {
    categories: Vec<AuditCategory>,
    clock: Clock,
    writer: Writer,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Audit").finish_non_exhaustive()
    }
}

/// A line of the log.
#[derive(Serialize)]
struct Record<'a> {
    timestamp: i64,
    user: &'a str,
    source: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(rename = "type")]
    kind: &'a str,
    category: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyspace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// The client, and its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    /// The address and port. `None` means the port is not known.
    pub(super) source: (IpAddr, Option<u16>),
    /// `None` means no login is required.
    pub(super) user: Option<&'a str>,
    /// The keyspace of unqualified names.
    pub(super) keyspace: Option<&'a str>,
}

impl Audit {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened or written.
    pub(super) fn open(options: AuditOptions, clock: Clock) -> Result<Self, AuditError> {
        Ok(Self {
            writer: Writer::open(options.file, options.file_bytes_max, options.files_max)?,
            categories: options.categories,
            clock,
        })
    }

    /// Writes the queued records, and accepts no more.
    pub(super) fn finish(&self) {
        self.writer.finish();
    }

    fn records(&self, category: AuditCategory) -> bool {
        self.categories.contains(&category)
    }

    /// A login, and the reason if it was refused.
    pub(super) fn login(&self, source: IpAddr, user: &str, refused: Option<&dyn std::error::Error>) {
        let category = AuditCategory::Auth;
        if !self.records(category) {
            return;
        }
        let (user, error) = (cut(user), refused.map(|error| cut(&error.to_string())));
        self.write(&Record {
            timestamp: self.now(),
            user: &user,
            source,
            port: None,
            kind: if refused.is_none() {
                "LOGIN_SUCCESS"
            } else {
                "LOGIN_ERROR"
            },
            category: category.name(),
            allowed: refused.is_none(),
            statement: None,
            keyspace: None,
            scope: None,
            operation: None,
            error: error.as_deref(),
        });
    }

    /// A request to the admin port: a change, or one that was refused.
    pub(super) fn admin(&self, source: IpAddr, user: &str, operation: &str, allowed: bool) {
        let category = AuditCategory::Auth;
        if !self.records(category) {
            return;
        }
        let operation = cut(operation);
        self.write(&Record {
            timestamp: self.now(),
            user,
            source,
            port: None,
            kind: if allowed {
                "ADMIN_REQUEST"
            } else {
                "UNAUTHORIZED_ATTEMPT"
            },
            category: category.name(),
            allowed,
            statement: None,
            keyspace: None,
            scope: None,
            operation: Some(&operation),
            error: None,
        });
    }

    /// A statement that was executed, refused, or failed.
    pub(super) fn statement(&self, asker: Asker<'_>, text: &str, error: Option<&Error>) {
        let unrecorded = |category| !self.records(category);
        // Decided by the first word if possible: most requests are reads and writes that are not recorded.
        if !self.may_record(Audited::plain_category(text), error) {
            return;
        }
        let audited = Audited::of(text, asker.keyspace);
        let category = audited
            .as_ref()
            .map_or(AuditCategory::Error, |audited| audited.category);
        let of_drivers = category == AuditCategory::Query
            && audited
                .as_ref()
                .and_then(|audited| audited.keyspace.as_deref())
                .is_some_and(|keyspace| UNRECORDED.contains(&keyspace));
        if error.is_none() && (of_drivers || unrecorded(category)) {
            return;
        }
        self.entry(asker, masked(text), audited.as_ref(), error);
    }

    /// A statement that was prepared, or could not be.
    pub(super) fn prepared(&self, asker: Asker<'_>, text: &str, error: Option<&Error>) {
        if !self.may_record(Some(AuditCategory::Prepare), error) {
            return;
        }
        let audited = Audited::of(text, asker.keyspace).map(|audited| Audited {
            kind: "PREPARE_STATEMENT",
            category: AuditCategory::Prepare,
            ..audited
        });
        self.entry(asker, masked(text), audited.as_ref(), error);
    }

    /// A BATCH message, with the texts of its members.
    pub(super) fn batch(&self, asker: Asker<'_>, members: &[String], error: Option<&Error>) {
        let category = AuditCategory::Dml;
        if !self.may_record(Some(category), error) {
            return;
        }
        let audited = Audited {
            kind: "BATCH",
            category,
            keyspace: None,
            scope: None,
        };
        let mut has_secret = false;
        let mut operation = format!("BATCH of [{}] statements", members.len());
        for member in members {
            if operation.len() > 4 * TEXT_CHARACTERS_MAX {
                // The rest may have one.
                has_secret = true;
                break;
            }
            let (shown, has_one) = masked(member);
            operation.push_str("; ");
            operation.push_str(&shown);
            has_secret |= has_one;
        }
        self.entry(asker, (cut(&operation), has_secret), Some(&audited), error);
    }

    /// Whether a statement of this category may be recorded with this outcome. `None` means the category is not known
    /// before parsing.
    fn may_record(&self, category: Option<AuditCategory>, error: Option<&Error>) -> bool {
        match error {
            Some(Error::Engine(engine::Error::NoRoom { .. })) => false,
            Some(error) => self.records(outcome_of(error).1),
            None => category.is_none_or(|category| self.records(category)),
        }
    }

    /// A record of a text without its secrets, and whether it had one.
    fn entry(
        &self,
        asker: Asker<'_>,
        (operation, has_secret): (String, bool),
        audited: Option<&Audited>,
        error: Option<&Error>,
    ) {
        let statement = audited.map(|audited| audited.kind);
        let (kind, category) = match (error, audited) {
            (Some(error), _) => outcome_of(error),
            (None, Some(audited)) => (audited.kind, audited.category),
            // A text that was executed is a statement.
            (None, None) => ("REQUEST", AuditCategory::Other),
        };
        let why = error.map(|error| match has_secret {
            true => "(not shown, since the statement has a password)".to_owned(),
            false => cut(&error.to_string()),
        });
        self.write(&Record {
            timestamp: self.now(),
            user: asker.user.unwrap_or("anonymous"),
            source: asker.source.0,
            port: asker.source.1,
            kind,
            category: category.name(),
            allowed: category != AuditCategory::Auth,
            statement: statement.filter(|_| error.is_some()),
            keyspace: audited.and_then(|audited| audited.keyspace.as_deref()),
            scope: audited.and_then(|audited| audited.scope.as_deref()),
            operation: Some(&operation),
            error: why.as_deref(),
        });
    }

    fn now(&self) -> i64 {
        self.clock.wall_micros().div_euclid(1000)
    }

    fn write(&self, record: &Record<'_>) {
        if let Ok(line) = serde_json::to_string(record) {
            self.writer.write(plain(&line));
        }
    }
}

impl<'a> Asker<'a> {
    /// The client of a connection.
    pub(super) fn at(client: SocketAddr, user: Option<&'a str>, keyspace: Option<&'a str>) -> Self {
        Self {
            source: (client.ip(), Some(client.port())),
            user,
            keyspace,
        }
    }
}

/// The name of an error.
fn outcome_of(error: &Error) -> (&'static str, AuditCategory) {
    match error.code() {
        ErrorCode::Unauthorized => ("UNAUTHORIZED_ATTEMPT", AuditCategory::Auth),
        _ => ("REQUEST_FAILURE", AuditCategory::Error),
    }
}

/// A text without its secrets, and whether it had one. Of statements that are not about roles, the text after the first
/// word before a secret is left out.
fn masked(text: &str) -> (String, bool) {
    if let Some(shown) = secrets::of_roles(text) {
        return (cut(&shown), true);
    }
    if text.len() <= TEXT_CHARACTERS_MAX && secrets::up_to_secret(text).is_none() {
        return (text.to_owned(), false);
    }
    // A comment could push what the statement does out of the record.
    let text = secrets::without_comments(text);
    match secrets::up_to_secret(&text) {
        Some(shown) => (format!("{} *******", cut(shown)), true),
        None => (cut(&text), false),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… cut", text.get(..at).unwrap_or_default()),
    }
}

/// A line of JSON, with a line end, in which no character controls a terminal: control characters that JSON allows in
/// strings are escaped, too.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 1);
    for character in line.chars() {
        if obeys(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
