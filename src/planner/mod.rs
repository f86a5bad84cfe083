//! The `planner` room: statement + schema → [`Plan`]; plan + values → a bound command that the executor carries out.
//!
//! Both steps are pure. [`plan`](self) resolves names, types markers and judges restrictions once for each prepared statement;
//! binding puts in the values, and yields keys and byte ranges, so that the executor never sees a term or a marker.
//! How rows are stored, and anything asynchronous, is deliberately absent.

pub mod bound;
