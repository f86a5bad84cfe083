//! Scripts of statements, replayed on a server and compared with what Cassandra answered.
//!
//! A script is `scripts/NAME.cql`; the answers of Cassandra lie beside it in `NAME.answers`, a line of JSON each, so
//! that comparing needs no Java. Each script runs in its own keyspace `oracle_NAME`, made before and dropped after.
//! `README.md` in `oracle/scripts` describes the form; [`script`] reads it, [`values`] reads bound values, [`replay`]
//! runs it, [`report`] compares. What is known to differ stands in `known.toml` or, in the script itself, after
//! `@differs`.
//!
//! What changes from run to run is left out of answers: prepared ids, metadata ids, paging states, tracing ids, and
//! the columns that `@mask` names.

pub mod replay;
pub mod report;
pub mod script;
pub mod signatures;
pub mod values;
