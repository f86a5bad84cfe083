//! The audit log: who asked what and when, and whether they were allowed to.
//!
//! ```text
//! login, statement ─ selected? ─► Record ─► one line of JSON ─► queue ─► file::Writer ─► FILE, FILE.1, …
//! ```
//! Fields and their names are those of Cassandra's `AuditLogEntry`: `timestamp` (milliseconds), `user`, `source`, `port`, `type`,
//! `category`, `keyspace`, `scope`, `operation`. Besides them: `allowed`, false where a login or a permission was refused; of a
//! statement that was refused or failed, `statement`, its own type, and `error`.
//!
//! Invariants: no password and no hash of one is written, since a text is cut after the word that comes before it; and then no error
//! is, which may repeat a part of the text. No control character is written raw. Values that are bound are never written. A request
//! does not wait for the log: what the queue or the disk does not take is lost, counted (`audit_records_lost_total`), logged, and the
//! next record that is taken tells how many were.
//!
//! A server without an audit log has none of this: each request looks at one `Option`.
//!
//! Deliberately absent: bound values; the records of a batch's members, whose texts stand in the record of the batch.

mod file;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;

use self::file::Writer;
pub use self::file::{AuditError, FILES_MAX};
use super::log::obeys;
use crate::clock::Clock;
use crate::cql::Error;
use crate::cql::{AuditCategory, Audited};
use crate::engine;
use crate::wire::response::ErrorCode;

/// Most characters of a text that are written; then «… cut».
const TEXT_CHARACTERS_MAX: usize = 4096;

/// The words before what is never written.
const SECRETS: [&str; 2] = ["password", "salted_hash"];

/// Keyspaces whose reads are not recorded, as in Cassandra: drivers read them at each connection.
const UNRECORDED: [&str; 3] = ["system", "system_schema", "system_virtual_schema"];

/// Where an audit log is and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// The file; older ones stand beside it, with numbers.
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

/// A line.
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

/// Who asked, and from where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    /// The address; `None` of a port: it is not known.
    pub(super) source: (IpAddr, Option<u16>),
    /// `None`: no login is needed.
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

    /// Writes what is queued, and takes nothing more.
    pub(super) fn finish(&self) {
        self.writer.finish();
    }

    fn records(&self, category: AuditCategory) -> bool {
        self.categories.contains(&category)
    }

    /// A login, and why it was refused.
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

    /// A statement that was carried out, refused, or failed.
    pub(super) fn statement(&self, asker: Asker<'_>, text: &str, error: Option<&Error>) {
        let unrecorded = |category| !self.records(category);
        // Decided by the first word, where it can be: most requests are reads and writes that are not recorded.
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
        self.entry(asker, text, audited.as_ref(), error);
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
        self.entry(asker, text, audited.as_ref(), error);
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
        let mut operation = format!("BATCH of [{}] statements", members.len());
        for member in members {
            if operation.len() > 4 * TEXT_CHARACTERS_MAX {
                break;
            }
            operation.push_str("; ");
            operation.push_str(member);
        }
        self.entry(asker, &operation, Some(&audited), error);
    }

    /// Whether a statement of this category may be recorded with this outcome. `None`: it is not known before it is read.
    fn may_record(&self, category: Option<AuditCategory>, error: Option<&Error>) -> bool {
        match error {
            Some(Error::Engine(engine::Error::NoRoom { .. })) => false,
            Some(error) => self.records(outcome_of(error).1),
            None => category.is_none_or(|category| self.records(category)),
        }
    }

    fn entry(&self, asker: Asker<'_>, text: &str, audited: Option<&Audited>, error: Option<&Error>) {
        let statement = audited.map(|audited| audited.kind);
        let (kind, category) = match (error, audited) {
            (Some(error), _) => outcome_of(error),
            (None, Some(audited)) => (audited.kind, audited.category),
            // A text that was carried out is a statement.
            (None, None) => ("REQUEST", AuditCategory::Other),
        };
        let (operation, has_secret) = masked(text);
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

/// What an error is called.
fn outcome_of(error: &Error) -> (&'static str, AuditCategory) {
    match error.code() {
        ErrorCode::Unauthorized => ("UNAUTHORIZED_ATTEMPT", AuditCategory::Auth),
        _ => ("REQUEST_FAILURE", AuditCategory::Error),
    }
}

/// A text as far as it has no secret, and whether it had one. The text after the first such word is left out, whatever it is.
fn masked(text: &str) -> (String, bool) {
    let lower = text.to_ascii_lowercase();
    let end = SECRETS
        .iter()
        .filter_map(|word| Some(lower.find(word)? + word.len()))
        .min();
    match end.and_then(|end| text.get(..end)) {
        Some(shown) => (format!("{} *******", cut(shown)), true),
        None => (cut(text), false),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… cut", text.get(..at).unwrap_or_default()),
    }
}

/// A line of JSON, with a line's end, in which no character does something to a terminal: those that JSON lets stand in strings are
/// escaped, too.
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
