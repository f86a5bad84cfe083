//! Modifications: bound commands → parts → one batch a store → durable.
//!
//! A plain write reads nothing and locks nothing: it becomes fragments that the store merges. Counters, list positions and
//! discards read first, under the stripe lock of their partitions; conditions too ([`condition`]). What a part does with stored rows is
//! [`super::part::write`]'s.

mod apply;
pub(crate) mod clock;
pub(crate) mod condition;
pub(crate) mod passes;
pub(crate) mod request;
mod room;
mod staged;
mod views;

pub(crate) use room::WriteRoom;
