//! The terms on which a command is executed: what a [`request`] brought and began with, its [`claim`] on budgets, the [`room`] for its
//! answer; the requests of a [`write`], its timestamps ([`clock`]) and its [`passes`] through the latches of partitions.
//!
//! Deliberately absent: execution. Checks, parts, reads and writes use these terms, and none of them is used here.

pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod passes;
pub(crate) mod request;
pub(crate) mod room;
pub(crate) mod write;
