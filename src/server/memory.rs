//! Memory goes back to the system when clients have gone.
//!
//! The allocator (mimalloc) gives back what is free a while after it was freed, and looks at its clock only when something is allocated:
//! of a process that has become idle it keeps all. Measured with 1 GB freed by other threads than those that had allocated it: all of
//! it kept for as long as the process is idle, 15 to 30 MB left after a second and a half of a few allocations every 200 ms.
//! So a task makes a few for as long as something goes on, and a while longer.

use std::hint::black_box;
use std::time::Duration;

use crate::metrics;
use crate::tasks::Tasks;

/// Time between allocations.
const INTERVAL: Duration = Duration::from_millis(250);

/// Intervals without bytes from or to clients after which nothing more is free: a minute, many times the allocator's delays.
const QUIET_MAX: u32 = 240;

/// Allocations of growing size, so that they come from many of the allocator's size classes, and bytes by which they grow.
const SMALL: usize = 50;
const SMALL_STEP_BYTES: usize = 37;
const LARGE_BYTES: usize = 1 << 20;

/// Lets the allocator return free memory, as long as clients send and receive and a while longer.
pub(super) fn spawn_returns(tasks: &Tasks) {
    let (mut seen, mut quiet) = (0, 0);
    tasks.every("return of free memory", INTERVAL, move || {
        let now = [
            &metrics::BYTES_RECEIVED,
            &metrics::BYTES_SENT,
            &metrics::CONNECTIONS_CLOSED,
        ];
        let now = now.iter().map(|counter| counter.value()).sum::<u64>();
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
        if quiet < QUIET_MAX {
            allocate();
        }
        std::future::ready(())
    });
}

/// Some microseconds; nothing is written to what is allocated.
fn allocate() {
    let small: Vec<Vec<u8>> = (1..=SMALL)
        .map(|step| Vec::with_capacity(step * SMALL_STEP_BYTES))
        .collect();
    drop(black_box(small));
    drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
}
