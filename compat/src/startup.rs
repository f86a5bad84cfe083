//! How long a server takes from its start to the first answer on an empty directory, and what it holds when idle.

use crate::server::{Server, rss_kib};
use crate::{Outcome, clock};
use std::time::Duration;

/// Longest start, in milliseconds.
const START_MS_MAX: f64 = 100.0;
/// Most memory of an idle server, in KiB.
const IDLE_KIB_MAX: u64 = 50 * 1024;

/// Measures `runs` starts and prints the median; true when both figures hold.
///
/// # Errors
/// When the server does not start or answer.
pub fn run(runs: usize) -> Outcome<bool> {
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..runs.max(1) {
        let folder = tempfile::tempdir()?;
        let start = clock::now();
        let server = Server::start(&format!("file:{}", folder.path().join("data").display()), folder.path())?;
        server
            .connect()?
            .must("SELECT key FROM system.local WHERE key = 'local'")?;
        times.push(clock::millis_since(start));
        std::thread::sleep(Duration::from_secs(1));
        memory.push(rss_kib(server.pid())?);
    }
    times.sort_by(f64::total_cmp);
    memory.sort_unstable();
    let time = times.get(times.len() / 2).copied().unwrap_or(f64::MAX);
    let kib = memory.get(memory.len() / 2).copied().unwrap_or(u64::MAX);
    println!(
        "startup: {time:.1} ms to the first answer (≤ {START_MS_MAX}), {} MiB when idle (≤ {}), median of {}",
        kib / 1024,
        IDLE_KIB_MAX / 1024,
        times.len()
    );
    Ok(time <= START_MS_MAX && kib <= IDLE_KIB_MAX)
}
