//! Settings of the memory of the server and of its caches.

use super::setting::{Setting, setting};

/// That of the whole server.
pub(super) const MEMORY: Setting = setting(
    "memory",
    "SIZE",
    None,
    "Memory that the server may take, such as 512MB or 2GiB, at least 64MB: what has no value of its own gets a part of it, among them the \
     three caches below, memtables, prepared statements and connections-memory-bytes-max [default: each part has a default of its own]",
);

/// That of rows.
pub(super) const ROW_CACHE: Setting = setting(
    "row-cache-bytes-max",
    "BYTES",
    Some("67108864"),
    "Memory for rows that have been read",
);

/// That of the absence filter.
pub(super) const KEY_FILTER: Setting = setting(
    "key-filter-bytes-max",
    "BYTES",
    Some("67108864"),
    "Memory of the filter that tells new rows from stored ones without a read; 0 turns it off",
);

/// That of blocks.
pub(super) const BLOCK_CACHE: Setting = setting(
    "block-cache-bytes-max",
    "BYTES",
    Some("67108864"),
    "Memory for blocks of the store",
);
