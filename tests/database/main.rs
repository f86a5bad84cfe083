//! The database in one process, without a socket: what statements do, on each engine, and what is left after a crash.

mod backup;
mod backup_roles;
mod charges;
mod clock;
mod compact;
mod copies;
mod counts;
mod deleted_range_bounds;
mod dropped_columns;
mod edge;
mod engine;
mod entities;
mod failures;
mod feed;
mod full_feed;
mod gates;
mod golden;
mod guardrails;
mod heat;
mod indexes;
mod limits;
mod long_values;
mod masks;
mod moves;
mod nearest;
mod ordered;
mod ordered_cql;
mod orphans;
mod own_stores;
mod partitions;
#[path = "../raw/mod.rs"]
mod raw;
mod readiness;
mod roles;
mod schema;
mod second_front_end;
mod storage_recovery;
mod stores_of_one_server;
#[path = "../support/mod.rs"]
mod support;
mod throughput;
mod user_functions;
mod values;
mod versions;
mod views;
mod write_pause;
