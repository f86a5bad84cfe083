//! Settings of the front end of tables.

use super::setting::{Setting, setting, switch};

/// Where it listens.
pub(super) const LISTEN: Setting = Setting {
    name: "tables-listen",
    value: "ADDRESS:PORT",
    default: None,
    repeatable: true,
    help: "Where Azure Table storage is served, with TLS on the same port where there is a certificate; needs tables-account or tables-dev \
           [default: off, or 127.0.0.1:10002 with tables-dev]",
};

/// Whose tables.
pub(super) const ACCOUNT: Setting = Setting {
    name: "tables-account",
    value: "NAME[:KEY]",
    default: None,
    repeatable: true,
    help: "A storage account with its key in base64, or two keys as NAME:KEY:KEY; each account has a keyspace tables_NAME [default of KEY: \
           made at the first start, printed, kept beside the data]",
};

/// The account that every SDK knows.
pub(super) const DEV: Setting = switch(
    "tables-dev",
    "Serve the account devstoreaccount1 with the key that everyone knows, for UseDevelopmentStorage=true; on this machine's own addresses only",
);

/// How many entities a second.
pub(super) const THROTTLE: Setting = setting(
    "tables-throttle",
    "PROFILE",
    Some("off"),
    "Entities a second that are served: off, today (2,000 a partition, 20,000 an account), 2011 (500, 5,000)",
);

/// Where pages end.
pub(super) const PAGE_BOUNDARY: Setting = setting(
    "tables-page-boundary",
    "WHERE",
    Some("server"),
    "Where a page of entities ends though more follow: server (where another node is in charge), range (at each physical partition), none",
);

/// How long a range is offline after it was moved.
pub(super) const RELOAD: Setting = setting(
    "tables-reload-seconds",
    "SECONDS",
    Some("0"),
    "How long requests to a range of partition keys are refused with 503 after it was split or moved, as on the service; 0: not at all",
);
