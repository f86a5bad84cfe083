//! The settings of what a schema may hold: COMPACT STORAGE, masks of columns, functions of users.

use super::setting::{Setting, setting, switch};

/// COMPACT STORAGE.
pub(super) const COMPACT: Setting = setting("compact-tables-enabled", "BOOL", Some("true"), "Allow COMPACT STORAGE");

/// Its end.
pub(super) const DROP_COMPACT: Setting = switch("drop-compact-storage-enabled", "Allow DROP COMPACT STORAGE");

/// Masks of columns.
pub(super) const MASKING: Setting = switch(
    "dynamic-data-masking-enabled",
    "Mask columns that are MASKED WITH a function for roles without UNMASK; off, every role sees their values",
);

/// Functions and aggregates of users.
pub(super) const FUNCTIONS: Setting = setting(
    "user-defined-functions-enabled",
    "BOOL",
    Some("true"),
    "Allow CREATE FUNCTION and CREATE AGGREGATE",
);
