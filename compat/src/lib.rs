//! The world's opinion of Helenus: scripts whose answers Cassandra gave, other people's clients, load, crashes and
//! hostile frames, all against a server on a real port. Nothing here knows how the server works inside; it is started
//! as a program (`server`) or named by its address (`--target`).
//!
//! - [`raw`] speaks the native protocol frame by frame, so that what a server sends is seen as it is.
//! - [`oracle`] replays scripts and compares with recorded answers; [`golden`] does so with the facts in `golden/`.
//! - [`generate`] asks random questions of a server and of Cassandra.
//! - [`crash`], [`linear`], [`partitions`], [`malformed`], [`startup`], [`tables`], [`throttle`], [`metering`] and [`mod@bench`] start a server and
//!   press it.
//! - [`driver`] asks through the Rust driver; the other languages lie in `drivers/`.
//!
//! Deliberately absent: any use of the server's own codec, which would agree with itself.

pub mod bench;
pub mod cassandra;
pub mod cli;
pub mod clock;
pub mod crash;
pub mod driver;
pub mod error;
pub mod generate;
pub mod golden;
pub mod index;
pub mod linear;
pub mod malformed;
pub mod metering;
pub mod null;
pub mod oracle;
pub mod partitions;
pub mod proxy;
pub mod raw;
pub mod server;
pub mod startup;
pub mod tables;
pub mod throttle;

pub use error::Error;

/// What every run returns.
pub type Outcome<T> = Result<T, Error>;
