//! Modifications: bound statements → one batch a store → durable.
//!
//! A plain write reads nothing and locks nothing: it becomes fragments that the store merges. Counters, list positions and
//! discards read first, under the stripe lock of their partitions; conditions too ([`condition`]).

mod apply;
pub(crate) mod clock;
pub(crate) mod condition;
mod forms;
pub(crate) mod fragment;
mod newest;
mod one_partition;
pub(crate) mod passes;
mod prices;
pub(crate) mod request;
mod room;
pub(crate) mod size;
mod staged;
mod whole_row;

pub(crate) use prices::estimate;
pub(crate) use room::WriteRoom;
