//! Disk space kept free, so that the statements that free space still succeed when the disk is nearly full.
//!
//! ```text
//! free bytes   ≥ 2 × reserve      < 2 × reserve       < reserve                    ≥ 5/4 × reserve
//!              nothing            a warning, once     writes of rows are refused   writes are taken again
//! ```
//! Deletions, TRUNCATE and schema changes are accepted until the disk is full: they need space before they free any.
//! The reserve is at most a twentieth of the disk, so that a small disk is not kept empty.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::faults::{FaultPoint, Faults};

/// Largest share of a disk that may be reserved: one part in this many.
const PART_OF_DISK: u64 = 20;

/// A reserve of a disk, and the state found by the last check.
#[derive(Debug, Default)]
pub struct Reserve {
    bytes: u64,
    is_low: AtomicBool,
    is_short: AtomicBool,
}

/// A change found by a check of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Less than twice the reserve is free.
    Low,
    /// Less than the reserve is free.
    Short,
    /// More than the reserve is free again.
    Well,
}

impl Reserve {
    /// A reserve of this many bytes; 0 means no reserve.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// Whether the last check found less free space than the reserve.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Checks the disk of a directory, and logs what changed. A failed check changes nothing.
    pub fn check(&self, directory: &Path, faults: Option<&Faults>) {
        let fault = faults.and_then(|faults| faults(FaultPoint::FreeSpace));
        let free = if fault.is_some() {
            Ok(0)
        } else {
            fs4::available_space(directory)
        };
        let (Ok(free), Ok(total)) = (free, fs4::total_space(directory)) else {
            return;
        };
        let (change, reserve) = self.change(free, total);
        let directory = directory.display();
        match change {
            None => {}
            Some(Change::Low) => tracing::warn!(
                free_bytes = free, reserve_bytes = reserve, %directory,
                "the disk is nearly full: below the reserve only deletions, TRUNCATE and schema changes are accepted"
            ),
            Some(Change::Short) => tracing::error!(
                free_bytes = free, reserve_bytes = reserve, %directory,
                "the free disk space is below the reserve: only deletions, TRUNCATE and schema changes are accepted"
            ),
            Some(Change::Well) => tracing::info!(
                free_bytes = free, reserve_bytes = reserve, %directory, "the disk has free space again: all writes are accepted"
            ),
        }
    }

    /// The change that this many free bytes make, and the bytes that are reserved.
    fn change(&self, free: u64, total: u64) -> (Option<Change>, u64) {
        let reserve = self.bytes.min(total / PART_OF_DISK);
        let was_short = self.is_short();
        let is_short = free < if was_short { reserve / 4 * 5 } else { reserve };
        self.is_short.store(is_short, Ordering::Relaxed);
        let is_low = free < reserve.saturating_mul(2);
        let was_low = self.is_low.swap(is_low, Ordering::Relaxed);
        let change = match (was_short, is_short) {
            (false, true) => Some(Change::Short),
            (true, false) => Some(Change::Well),
            _ => (is_low && !was_low).then_some(Change::Low),
        };
        (change, reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_then_short_then_well_again() {
        let reserve = Reserve::of(100);
        let total = 10_000;
        for (free, change, is_short) in [
            (200, None, false),
            (199, Some(Change::Low), false),
            (100, None, false),
            (99, Some(Change::Short), true),
            (0, None, true),
            // Hysteresis: a little free space does not switch writes on and off.
            (124, None, true),
            (125, Some(Change::Well), false),
            (500, None, false),
            (50, Some(Change::Short), true),
        ] {
            assert_eq!(reserve.change(free, total), (change, 100), "{free}");
            assert_eq!(reserve.is_short(), is_short, "{free}");
        }
    }

    #[test]
    fn the_reserve_is_at_most_a_twentieth_of_the_disk() {
        assert_eq!(Reserve::of(1000).change(50, 1000), (Some(Change::Low), 50));
        assert_eq!(Reserve::of(0).change(0, 1000), (None, 0));
    }
}
