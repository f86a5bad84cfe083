//! Reads: command → rows of one page, for a front end.
//!
//! The statement level: `source` spreads a read over parts (`engine::part`), which pass rows to a [`sink`]; those of another machine's partitions are sent to it (`elsewhere`). The sink groups and
//! sorts the rows and passes them to the front end's `row_sink`. `aside` keeps rows that are sorted later; `nearest` keeps the
//! rows nearest to a vector; `tombstones` has the warning about tombstones. `engine::terms` bounds the memory of the answer.
//!
//! Both levels use `engine::row`: which columns are read of a row, the current row, expressions and filters on it.

mod aside;
pub(crate) mod count;
mod elsewhere;
pub(crate) mod nearest;
mod order;
pub(crate) mod row_sink;
pub mod sink;
pub(crate) mod source;
pub(crate) mod spread;
mod system_columns;
pub(crate) mod tombstones;
pub(crate) mod virtual_rows;
