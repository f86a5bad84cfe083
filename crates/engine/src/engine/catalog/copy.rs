//! Copying rows from one store to another: a snapshot in batches, compared afterwards, and the keys that were written
//! meanwhile.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use super::leftovers::{STEP_BYTES, rest_after};
use crate::engine::refusal::MoveRefusal;
use crate::engine::{Error, storage_read, storage_write};
use crate::partition::PartitionLatch;
use helenus_storage::storage::{self as store, Batch, KeyRange, Order, Space, Store};

/// The number of entries of a range and their checksum.
#[derive(Clone, Default)]
pub(super) struct Sum {
    entries: u64,
    checksum: Xxh3,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        for part in [key, value] {
            self.checksum.update(&(part.len() as u64).to_le_bytes());
            self.checksum.update(part);
        }
    }

    fn is_of(&self, other: &Self) -> bool {
        self.entries == other.entries && self.checksum.digest128() == other.checksum.digest128()
    }
}

/// Copies a range of a snapshot into an empty one, and compares what the target holds then.
///
/// # Errors
/// A store fails; the target holds something else.
pub(super) async fn copy_and_compare(
    (source, at): (&Store, &store::Snapshot),
    space: Space,
    range: &KeyRange,
    target: &Store,
) -> Result<(), Error> {
    let put = |batch: &mut Batch, key: Vec<u8>, value: &[u8]| {
        batch.put(space, key, Bytes::copy_from_slice(value));
    };
    let wanted = copy_range(source, at, space, range, target, put).await?;
    let (snapshot, mut found) = (target.snapshot(), Sum::default());
    let scanned = target.scan(space, range, Order::Forward, &snapshot, |key, value| {
        found.add(key, value);
        ControlFlow::Continue(())
    });
    scanned.await.map_err(|error| storage_read(&error))?;
    if found.is_of(&wanted) {
        return Ok(());
    }
    Err(Error::Fault(format!(
        "a copy of a physical partition has {} entries of {space:?} with another checksum or number than the {} that were \
         copied; nothing was moved",
        found.entries, wanted.entries
    )))
}

/// Copies a range in batches; `add` adds each entry to the batch. Returns the sum of the entries.
pub(super) async fn copy_range(
    source: &Store,
    at: &store::Snapshot,
    space: Space,
    range: &KeyRange,
    target: &Store,
    add: impl Fn(&mut Batch, Vec<u8>, &[u8]) + Send + Sync,
) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    let mut rest = Some(range.clone());
    while let Some(left) = rest.take() {
        let (mut batch, mut last) = (Batch::new(), None);
        let scanned = source.scan(space, &left, Order::Forward, at, |key, value| {
            sum.add(key, value);
            add(&mut batch, key.to_vec(), value);
            if batch.bytes() < STEP_BYTES {
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        });
        scanned.await.map_err(|error| storage_read(&error))?;
        let committed = target.commit(batch).await;
        committed.map_err(|error| storage_write(&error))?;
        rest = last.map(|last| rest_after(last, left));
    }
    Ok(sum)
}

/// Copies the current values of the keys recorded since the last call. Returns how many there were.
pub(super) async fn copy_recorded(latch: &Arc<PartitionLatch>, source: &Store, target: &Store) -> Result<usize, Error> {
    let Some(recorded) = latch.take_recorded() else {
        return Err(MoveRefusal::TooMuchWritten.into());
    };
    let count = recorded.len();
    let at = source.snapshot();
    let mut batch = Batch::new();
    let failed = |error: store::Error| Error::Fault(error.to_string());
    for (space, key) in recorded {
        let value = source.get(space, &key, &at).await;
        // An absent key belongs to a commit that was not applied (latch.rs).
        if let Some(value) = value.map_err(|error| storage_read(&error))? {
            batch.put(space, key, value);
        }
        if batch.bytes() >= STEP_BYTES {
            target.commit(std::mem::take(&mut batch)).await.map_err(failed)?;
        }
    }
    target.commit(batch).await.map_err(failed)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::clock::Clock;
    use helenus_storage::storage::{Options, Url};

    async fn store(rows: &[(&[u8], &'static [u8])]) -> Store {
        let store = Store::open(&Url::Memory, &Options::default(), Clock::manual(0))
            .await
            .unwrap();
        let mut batch = Batch::new();
        for (key, value) in rows {
            batch.put(Space::Rows, key.to_vec(), Bytes::from_static(value));
        }
        store.commit(batch).await.unwrap();
        store
    }

    /// A target that holds more than was copied is refused. Another value of a copied key is replaced.
    #[tokio::test]
    async fn a_copy_that_differs_is_refused() {
        let source = store(&[(b"ka", b"1"), (b"kb", b"2"), (b"x", b"3")]).await;
        let (at, range) = (source.snapshot(), KeyRange::prefix(b"k"));
        for (held, is_same) in [
            (&[][..], true),
            (&[(&b"x"[..], &b"4"[..])], true),
            (&[(b"ka", b"9")], true),
            (&[(b"kc", b"2")], false),
        ] {
            let target = store(held).await;
            let copied = copy_and_compare((&source, &at), Space::Rows, &range, &target).await;
            match copied {
                Ok(()) => assert!(is_same, "{held:?}"),
                Err(error) => assert!(
                    !is_same && error.to_string().contains("has 3 entries"),
                    "{held:?}: {error}"
                ),
            }
        }
        let mut sums = [(&b"ab"[..], &b"c"[..]), (b"a", b"bc")].map(|(key, value)| {
            let mut sum = Sum::default();
            sum.add(key, value);
            sum
        });
        assert!(!sums[0].is_of(&sums[1]), "the border of key and value counts");
        sums[1] = sums[0].clone();
        assert!(sums[0].is_of(&sums[1]));
    }
}
