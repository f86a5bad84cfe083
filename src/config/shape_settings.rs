//! The settings of what a schema may hold: COMPACT STORAGE, masks of columns, materialized
//! views, functions of users, and what these may take.

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

/// Materialized views.
pub(super) const VIEWS: Setting = setting(
    "materialized-views-enabled",
    "BOOL",
    Some("true"),
    "Allow CREATE MATERIALIZED VIEW",
);

/// Functions and aggregates of users.
pub(super) const FUNCTIONS: Setting = setting(
    "user-defined-functions-enabled",
    "BOOL",
    Some("true"),
    "Allow CREATE FUNCTION and CREATE AGGREGATE",
);

/// The limits of their calls.
pub(super) const CALLS: [Setting; 3] = [
    setting(
        "user-function-steps-max",
        "COUNT",
        Some("5000000"),
        "Most steps of one call of a user function: operations of its body, and what methods read; 5,000,000 take about a tenth of a second",
    ),
    setting(
        "user-function-bytes-max",
        "BYTES",
        Some("16777216"),
        "Most bytes that one call of a user function allocates; all are freed when it ends",
    ),
    setting(
        "user-function-request-steps-max",
        "COUNT",
        Some("1000000000"),
        "Most steps of all calls of user functions in one request, a page being a request",
    ),
];
