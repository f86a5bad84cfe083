//! Faults that tests inject into a store: failed writes and reads of its medium, and broken invariants.

use std::sync::Arc;

use helenus_base::invariant::Invariant;

/// A point where a test can make the medium fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Before a group is written and synced.
    Commit,
    /// Before the store probes whether the medium takes writes again.
    Probe,
    /// When the free space is checked, by the `file:` engine while it writes in the background and for the reserve: a
    /// full disk means that there is too little.
    FreeSpace,
    /// After all acknowledged writes were made durable by a separate sync; the result is ignored.
    Synced,
}

/// Makes the medium fail: called at each point; returns the error to inject.
pub type Faults = Arc<dyn Fn(FaultPoint) -> Option<std::io::Error> + Send + Sync>;

/// Breaks invariants to test their checks: called before each check that it can break.
pub type Breaks = Arc<dyn Fn(Invariant) -> bool + Send + Sync>;

/// Makes reads of the medium fail: called before each; returns the error to inject.
pub type ReadFaults = Arc<dyn Fn() -> Option<std::io::Error> + Send + Sync>;
