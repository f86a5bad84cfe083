//! Assembly: from settings to a running server, or to data that is opened without one.
//!
//! ```text
//! config ──► run       addresses are bound, the data is opened, connections, tables and the admin port are served
//!            ├─ fleet  a node of several over one bucket
//!            ├─ jobs   what recurs while the server runs
//!            └─ live   what only the server knows, for the views
//!        ──► opening   the data alone: to serve it, for a verb, to restore into it, or to look at it
//!            └─ offline, survey, roles: verbs on data that no server has open
//! ```
//! It is above the settings and the rooms that they configure: a room has options of its own, and knows no settings.
//!
//! Deliberately absent: sockets, requests, statements. Those are the server's and the front ends'.

mod fleet;
mod jobs;
mod live;
pub mod offline;
pub mod opening;
pub mod roles;
pub mod run;
pub mod survey;

pub use fleet::{FLEET_SECRET_KNOWN_WITHIN, change_fleet_secret};
