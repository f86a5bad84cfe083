//! The world's opinion of Helenus: scripts whose answers Cassandra gave, other people's clients, load, crashes and
//! hostile frames, all against a server on a real port. Nothing here knows how the server works inside; it is started
//! as a program (`server`) or named by its address (`--target`).
//!
//! - [`raw`] speaks the native protocol frame by frame, so that what a server sends is seen as it is.
//! - [`oracle`] replays scripts and compares with recorded answers; [`golden`] does so with the facts in `golden/`.
//! - [`generate`] asks random questions of a server and of Cassandra.
//! - [`crash`], [`linear`], [`partitions`], [`malformed`], [`startup`], [`tables`], [`throttle`], [`metering`] and [`mod@bench`] start a server and
//!   press it.
//! - [`power`], [`eio`], [`damage`], [`jumps`], [`deaf`], [`replay`] and [`soak`] fail what is around a server: its disk's power, calls,
//!   files, the clock, clients that do not read, a long log, all at once. [`disk`], [`launch`] and [`tools`] serve them.
//! - [`cpu`] counts the instructions of two programs under the same load; [`figures`] has what is made of several rounds.
//! - [`bucket_speed`] measures a server over a store of [`objects`] that takes its time; [`bucket_faults`] has the store fail.
//! - [`bucket_cache`] damages the local cache of a server over a bucket.
//! - [`owners`] has two servers on one bucket, of which one is killed, or stopped and resumed.
//! - [`through`] has a fleet stand in for a server that a run kills: `crash`, `linear`, `partitions`, `feed` ask it through another node.
//! - [`backup`] restores backups of a server under load, and compares.
//! - [`driver`] asks through the Rust driver; the other languages lie in `drivers/`.
//!
//! Deliberately absent: any use of the server's own codec, which would agree with itself.

pub mod backup;
pub mod bench;
pub mod bucket_cache;
pub mod bucket_faults;
pub mod bucket_speed;
pub mod cassandra;
pub mod cli;
pub mod clock;
pub mod cpu;
pub mod crash;
pub mod damage;
pub mod deaf;
pub mod disk;
pub mod driver;
pub mod eio;
pub mod error;
pub mod feed;
pub mod figures;
pub mod footprint;
pub mod generate;
pub mod golden;
pub mod index;
pub mod jumps;
pub mod launch;
mod layout_mover;
pub mod linear;
pub mod malformed;
pub mod metering;
pub(crate) mod mover;
pub mod null;
pub mod objects;
pub mod oracle;
pub mod owners;
pub mod partitions;
pub mod power;
pub mod proxy;
pub mod raw;
pub mod replay;
pub mod server;
pub mod soak;
pub mod startup;
pub mod tables;
pub mod throttle;
pub mod through;
pub mod tools;

/// A path inside this crate.
#[must_use]
pub fn here(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub use error::Error;

/// What every run returns.
pub type Outcome<T> = Result<T, Error>;
