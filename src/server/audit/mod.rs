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
//! The engine makes an entry at the end of each execution of a client ([`helenus_engine::engine::Execution`]), whatever its front end. A server
//! without an audit log pays one check of an `Option` per request.
//!
//! Deliberately absent: bound values; the records of a batch's members, whose texts are in the record of the batch.

mod file;

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Serialize;

use self::file::Writer;
pub use self::file::{AuditError, FILES_MAX};
use super::log::obeys;
use super::secrets;
use helenus_base::clock::Clock;
use helenus_engine::engine::audit::{AuditCategory, AuditEntry, AuditFailure, AuditLog, AuditText, Audited};

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
pub(crate) struct Audit {
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

impl Audit {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened or written.
    pub(crate) fn open(options: AuditOptions, clock: Clock) -> Result<Self, AuditError> {
        Ok(Self {
            writer: Writer::open(options.file, options.file_bytes_max, options.files_max)?,
            categories: options.categories,
            clock,
        })
    }

    /// Writes the queued records, and accepts no more.
    pub(crate) fn finish(&self) {
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

    /// Whether a request of this category may be recorded with this outcome. `None` means the category is not known
    /// before parsing.
    fn may_record(&self, category: Option<AuditCategory>, failure: Option<AuditFailure<'_>>) -> bool {
        match failure {
            Some(failure) => self.records(outcome_of(failure).1),
            None => category.is_none_or(|category| self.records(category)),
        }
    }

    fn entry(&self, entry: AuditEntry<'_>, audited: Option<&Audited>) {
        let Operation { shown, has_secret } = operation(entry.subject.text());
        let statement = audited.map(|audited| audited.kind);
        let (kind, category) = match (entry.failure, audited) {
            (Some(failure), _) => outcome_of(failure),
            (None, Some(audited)) => (audited.kind, audited.category),
            // A text that was executed is a statement.
            (None, None) => ("REQUEST", AuditCategory::Other),
        };
        let why = entry.failure.map(|failure| match has_secret {
            true => "(not shown, since the statement has a password)".to_owned(),
            false => cut(&failure.error.to_string()),
        });
        self.write(&Record {
            timestamp: self.now(),
            user: entry.user.unwrap_or("anonymous"),
            source: entry.client.ip(),
            port: Some(entry.client.port()),
            kind,
            category: category.name(),
            allowed: category != AuditCategory::Auth,
            statement: statement.filter(|_| entry.failure.is_some()),
            keyspace: audited.and_then(|audited| audited.keyspace.as_deref()),
            scope: audited.and_then(|audited| audited.scope.as_deref()),
            operation: shown.as_deref(),
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

impl AuditLog for Audit {
    fn record(&self, entry: AuditEntry<'_>) {
        // Decided by the first word if possible: most requests are reads and writes that are not recorded.
        if !self.may_record(entry.subject.category(), entry.failure) {
            return;
        }
        let audited = entry.subject.describe();
        let category = audited
            .as_ref()
            .map_or(AuditCategory::Error, |audited| audited.category);
        let of_drivers = category == AuditCategory::Query
            && audited
                .as_ref()
                .and_then(|audited| audited.keyspace.as_deref())
                .is_some_and(|keyspace| UNRECORDED.contains(&keyspace));
        if entry.failure.is_none() && (of_drivers || !self.records(category)) {
            return;
        }
        self.entry(entry, audited.as_ref());
    }
}

/// The name of a failure.
const fn outcome_of(failure: AuditFailure<'_>) -> (&'static str, AuditCategory) {
    match failure.is_denied {
        true => ("UNAUTHORIZED_ATTEMPT", AuditCategory::Auth),
        false => ("REQUEST_FAILURE", AuditCategory::Error),
    }
}

/// The text of a record.
struct Operation {
    /// `None` means that the request has no text.
    shown: Option<String>,
    /// Whether a secret was left out.
    has_secret: bool,
}

fn operation(text: AuditText<'_>) -> Operation {
    let members = match text {
        AuditText::None => {
            return Operation {
                shown: None,
                has_secret: false,
            };
        }
        AuditText::One(text) => {
            let (shown, has_secret) = masked(text);
            return Operation {
                shown: Some(shown),
                has_secret,
            };
        }
        AuditText::Members(members) => members,
    };
    let mut has_secret = false;
    let mut shown = format!("BATCH of [{}] statements", members.len());
    for member in members {
        if shown.len() > 4 * TEXT_CHARACTERS_MAX {
            // The rest may have one.
            has_secret = true;
            break;
        }
        let (member, has_one) = masked(member);
        shown.push_str("; ");
        shown.push_str(&member);
        has_secret |= has_one;
    }
    Operation {
        shown: Some(cut(&shown)),
        has_secret,
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
