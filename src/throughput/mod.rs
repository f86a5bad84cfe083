//! The `throughput` room: request units. What an operation costs, and whether a budget admits it. Pure: time is passed in.
//!
//! A [`Budget`] belongs to one physical partition. It fills at so many units a second up to one second's worth, admits a request
//! while its balance is positive, and is charged what the request really cost, into debt if need be; until the debt is worked off
//! nothing more is admitted. So a request larger than the whole budget is served, and those after it wait for it.
//!
//! The charges are those published for Azure Cosmos DB at their anchor points (1 KiB read 1, 1 KiB write 5), straight lines between.
//! Deliberately absent: who asks, and what is told to clients. Nothing charges requests yet.

mod budget;
mod units;

pub use budget::{Admission, Budget};
pub use units::{RequestUnits, read_charge, scan_charge, write_charge};
