//! The settings of the audit log.

use super::setting::{Setting, setting};

/// The file.
pub(super) const LOG: Setting = setting(
    "audit-log",
    "FILE",
    None,
    "File of the audit log: a line of JSON for each login, refusal and statement of audit-categories; what a full disk refuses is lost, counted and logged [default: none]",
);

/// The recorded categories.
pub(super) const CATEGORIES: Setting = setting(
    "audit-categories",
    "NAMES",
    Some("auth,ddl,dcl"),
    "What the audit log records, with commas between: auth (logins, missing permissions), ddl, dcl (roles and permissions), dml, query, prepare, error (what failed otherwise), other, or all",
);

/// The size of a file.
pub(super) const FILE_BYTES: Setting = setting(
    "audit-file-bytes-max",
    "BYTES",
    Some("67108864"),
    "Bytes of a file of the audit log; then it is FILE.1 and a new one begins",
);

/// The number of files.
pub(super) const FILES: Setting = setting(
    "audit-files-max",
    "NUMBER",
    Some("10"),
    "Files of the audit log that are kept, 1 to 1000; the oldest is removed",
);
