//! Ranges that are loaded by another server: after a split, a merge or a move they are offline for some seconds.
//!
//! Data does not move then, in the service as here: what takes time is that a server takes over. A range is offline from the first request
//! on that finds it changed. That one is answered as if it had begun before; later ones are refused.
//!
//! Source: Designing a scalable partitioning strategy (load balancing).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use helenus_schema::schema::StorageId;

use super::fault::Fault;

/// Ranges that are remembered; further ones are never offline.
const RANGES_MAX: usize = 65_536;

/// A physical partition at an epoch.
type Range = (StorageId, u64, u64);

/// Until when ranges are offline, by the monotonic clock.
#[derive(Debug)]
pub(super) struct Reloads {
    takes: Duration,
    offline: Mutex<HashMap<Range, Duration, foldhash::fast::RandomState>>,
}

impl Reloads {
    pub(super) fn new(takes: Duration) -> Self {
        Self {
            takes,
            offline: Mutex::default(),
        }
    }

    /// Checks whether a range is served now.
    ///
    /// # Errors
    /// [`Fault::OperationTimedOut`] of the first request, then [`Fault::ServerBusy`].
    pub(super) fn check(&self, now: Duration, range: Range) -> Result<(), Fault> {
        let mut offline = self.offline.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = offline.get(&range) {
            return if now < *until { Err(Fault::ServerBusy) } else { Ok(()) };
        }
        if offline.len() >= RANGES_MAX {
            return Ok(());
        }
        offline.insert(range, now + self.takes);
        Err(Fault::OperationTimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_range_is_offline_for_a_while_and_once() {
        let reloads = Reloads::new(Duration::from_secs(5));
        let at = |seconds, epoch| reloads.check(Duration::from_secs(seconds), (1, 2, epoch));
        assert_eq!(at(0, 1), Err(Fault::OperationTimedOut));
        assert_eq!((at(4, 1), at(5, 1), at(6, 1)), (Err(Fault::ServerBusy), Ok(()), Ok(())));
        assert_eq!(at(6, 2), Err(Fault::OperationTimedOut));
    }
}
