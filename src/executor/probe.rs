//! Whether the database answers: a real durable write, and a real read of it.

use std::time::Duration;

use bytes::Bytes;

use super::{Database, Error};
use crate::partition::store::{Batch, Space};

/// The catalog's record that probes write: the wall time, µs as i64. It means nothing to anybody.
pub(super) const PROBE: &[u8] = b"!probe";

impl Database {
    /// Writes a record, durably, and reads it back. Gives how long the two took. Probes that run at once may disturb each other, so
    /// one runs after the other.
    ///
    /// # Errors
    /// When the store refuses, fails, or does not hold what it was given.
    pub async fn probe(&self) -> Result<(Duration, Duration), Error> {
        let _one_at_a_time = self.probing().lock().await;
        let (store, clock) = self.store_and_clock();
        let failed = |error: &dyn std::fmt::Display| Error::Server(error.to_string());
        let began = clock.monotonic();
        let value = Bytes::copy_from_slice(&clock.wall_micros().to_be_bytes());
        let mut batch = Batch::new();
        batch.put(Space::Catalog, PROBE.to_vec(), value.clone());
        store.commit(batch).await.map_err(|error| failed(&error))?;
        let written = clock.monotonic();
        let found = store.get(Space::Catalog, PROBE, &store.snapshot()).await;
        if found.map_err(|error| failed(&error))? != Some(value) {
            return Err(Error::Server("the store does not hold what it was given".to_owned()));
        }
        let read = clock.monotonic();
        Ok((written.saturating_sub(began), read.saturating_sub(written)))
    }
}
