//! Returns memory to the system after clients have disconnected.
//!
//! The allocator (mimalloc) returns free memory with a delay, and checks its clock only on an allocation: an idle
//! process keeps all of it. Measured with 1 GB freed by other threads than those that had allocated it: an idle process
//! kept all of it; with a few allocations every 200 ms, 15 to 30 MB were left after a second and a half. So a task
//! makes a few allocations while there is traffic, and for a while longer.

use std::hint::black_box;
use std::time::Duration;

use helenus_base::metrics;
use helenus_base::tasks::Tasks;

/// Time between allocations.
const INTERVAL: Duration = Duration::from_millis(250);

/// Intervals without traffic after which the task pauses: a minute, many times the allocator's delays.
const QUIET_MAX: u32 = 240;

/// Allocations of growing size, so that they use many of the allocator's size classes, and the growth in bytes.
const SMALL: usize = 50;
const SMALL_STEP_BYTES: usize = 37;
const LARGE_BYTES: usize = 1 << 20;

/// Starts the task that makes the allocator return free memory, during traffic and a while longer.
pub(crate) fn spawn_returns(tasks: &Tasks) {
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

/// Takes some microseconds; writes nothing to the allocated memory.
fn allocate() {
    let small: Vec<Vec<u8>> = (1..=SMALL)
        .map(|step| Vec::with_capacity(step * SMALL_STEP_BYTES))
        .collect();
    drop(black_box(small));
    drop(black_box(Vec::<u8>::with_capacity(LARGE_BYTES)));
}
