//! Modifications: bound commands → parts → one batch a store → durable.
//!
//! A plain write reads nothing and locks nothing: it becomes partial rows that the store merges. Counters, list
//! positions and discards first read the stored rows, under the locks of their partitions; so do conditions
//! ([`condition`]). How a part of a write treats stored rows is in [`super::part::write`].

mod apply;
pub(crate) mod condition;
mod services;
mod staged;
mod views;

pub(crate) use services::WriteServices;
