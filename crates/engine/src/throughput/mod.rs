//! The `throughput` module: request units. The cost of an operation, and whether a budget admits it. Pure: time is
//! passed in.
//!
//! ```text
//! Grant (units a second of a table or keyspace) ─ divided evenly ─→ Account of each physical partition ─→ Budget, Usage
//!                                                                     └─→ pool: the Account of a keyspace that is shared
//! ```
//! A [`Budget`] refills by its units a second, up to one second's worth. It admits a request while its remaining budget
//! is positive, and is charged the request's real cost. The charge may overdraw it; nothing more is admitted until the
//! overdraft is paid back. So a request larger than the whole budget is served, and later ones wait for it. For each
//! request in flight the budget reserves the average cost of recent requests: concurrent requests cannot overdraw more
//! than consecutive ones could.
//! Where bursts are allowed, unspent units are banked for 300 seconds and may be spent at up to 3,000 units a second.
//!
//! **Life.** A [`TableBudget`] belongs to one partition map of a table: a split, a merge or another throughput makes
//! the next one. Remaining budgets and overdrafts are carried over. They are in memory only: after a restart all
//! budgets are full. **Invariants.** In any time a budget admits at most its units a second times that time, one
//! second's worth, the banked units, and the overdraft left at the end. Memory: some 200 bytes for each physical
//! partition of a table with throughput.
//!
//! [`Charges`] are the charges of one statement, by physical partition and by [`Stage`], at the prices of the
//! [`Coefficients`]: by default those published for Azure Cosmos DB at their anchor points (1 KiB read 1, 1 KiB written
//! 5), linear between them.
//!
//! Deliberately absent: clocks, queues (which request waits, and for how long), tables' names.
//! Sources: Azure Cosmos DB's documentation of throughput, burst capacity and limits; answers of its team on the causes
//! of 429.

mod account;
mod budget;
mod charges;
mod coefficients;
mod offer;
mod refusal;
mod table;
mod units;
mod usage;

pub use account::{Account, AccountFigures, Held, Refusal, admit_all, peek_all};
pub use budget::{Admission, BURST_PER_SECOND, Budget};
pub use charges::{Charge, Charges, Mark, PartitionRef, ReadSums, Stage};
pub use coefficients::{Coefficients, PriceError, RowWrite};
pub use offer::{Footing, UNITS_MAX, autoscale_current};
pub use refusal::{REFUSED_CHARGE, activity_id, refusal_text, retry_after_millis};
pub use table::{Grant, PARTITION_PER_SECOND_MAX, Slice, TableBudget};
pub use units::RequestUnits;
pub use usage::Usage;
