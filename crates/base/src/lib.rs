//! What all rooms stand on: time, counters, tasks, checked assertions, modes of files. It knows nothing of a database.

pub mod budget;
pub mod clock;
pub mod invariant;
pub mod memory;
pub mod metrics;
pub mod mutant;
pub mod permissions;
pub mod progress;
pub mod tasks;
pub mod utf16;
