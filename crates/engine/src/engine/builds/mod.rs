//! Builds in the background: the entries of an [`index`] and the rows of a [`view`], from the rows that were there before. Each goes on
//! in steps with a record of its progress, and resumes after a restart.

pub(in crate::engine) mod index;
pub(in crate::engine) mod view;
