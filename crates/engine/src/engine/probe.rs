//! Health check of the database: in each open store a real durable write, and a real read of it.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};

use super::Error;
use crate::partition::{StoreId, Stores};
use helenus_base::clock::Clock;
use helenus_storage::storage::{Batch, Space, Store};

/// The catalog's record that probes write, in each store: the wall time, µs as i64. No other code reads it.
pub(super) const PROBE: &[u8] = b"!probe";

/// Stores that one probe checks concurrently.
const STORES_AT_ONCE: usize = 32;

/// The durations of a store's probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// The durable write.
    pub write: Duration,
    /// The time of the read after the write.
    pub read: Duration,
}

/// The state of one store's probe.
#[derive(Debug)]
pub struct StoreProbe {
    /// Its number; 0 is the main store.
    pub store: u32,
    /// How long it took, or what failed; `None` means that it is not finished.
    pub outcome: Option<Result<Took, Error>>,
}

/// A probe of all stores. Results are filled in as the stores answer: a caller that stops waiting sees which ones did.
#[derive(Debug, Default)]
pub struct Probe {
    /// The open stores, the main one first. Empty as long as another probe runs.
    pub stores: Vec<StoreProbe>,
}

/// Probes stores, one probe after the other: concurrent probes may disturb each other.
#[derive(Debug, Default)]
pub(super) struct Prober {
    running: tokio::sync::Mutex<()>,
}

impl Prober {
    /// Writes a record in each open store, durably, and reads it back; concurrently, up to a limit. Skips a side store
    /// that is removed meanwhile. Takes as long as the slowest store: the caller limits the time by dropping the
    /// future.
    pub(super) async fn probe(&self, stores: &Stores, clock: &Clock, probe: &mut Probe) {
        let _one_at_a_time = self.running.lock().await;
        let open = stores.all();
        let of = |(id, _): &(StoreId, Store)| StoreProbe {
            store: id.0,
            outcome: None,
        };
        probe.stores = open.iter().map(of).collect();
        let asked = open
            .into_iter()
            .map(async |(id, store)| (id, write_and_read(&store, clock).await));
        let mut answers = stream::iter(asked).buffer_unordered(STORES_AT_ONCE);
        while let Some((id, outcome)) = answers.next().await {
            let place = probe.stores.iter().position(|store| store.store == id.0);
            if outcome.is_err() && stores.get(id).is_none() {
                place.map(|place| probe.stores.remove(place));
            } else if let Some(store) = place.and_then(|place| probe.stores.get_mut(place)) {
                store.outcome = Some(outcome);
            }
        }
    }
}

/// # Errors
/// When the store refuses, fails, or returns another value.
async fn write_and_read(store: &Store, clock: &Clock) -> Result<Took, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Fault(error.to_string());
    let began = clock.monotonic();
    let value = Bytes::copy_from_slice(&clock.wall_micros().to_be_bytes());
    let mut batch = Batch::new();
    batch.put(Space::Catalog, PROBE.to_vec(), value.clone());
    store.commit(batch).await.map_err(|error| failed(&error))?;
    let written = clock.monotonic();
    let found = store.get(Space::Catalog, PROBE, &store.snapshot()).await;
    if found.map_err(|error| failed(&error))? != Some(value) {
        return Err(Error::Fault("the store does not hold what it was given".to_owned()));
    }
    let read = clock.monotonic();
    Ok(Took {
        write: written.saturating_sub(began),
        read: read.saturating_sub(written),
    })
}
