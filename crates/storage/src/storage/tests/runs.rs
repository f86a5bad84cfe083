//! Scans inside one partition give what a naive model does, whatever runs of rows are in memory: at the newest snapshot and at
//! older ones, in both orders, cut short and whole, between writes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use super::*;

const TABLE: TableId = 7;

/// Rows of the partition that a case writes and scans.
const ROWS: u32 = 120;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn prefix(partition: u32) -> Vec<u8> {
    key::partition_prefix(TABLE, i64::from(partition) + 1, &partition.to_be_bytes())
}

fn row_key(partition: u32, n: u32) -> Vec<u8> {
    key::row_key(&prefix(partition), &n.to_be_bytes())
}

/// The first `limit` rows of a range in this order.
fn expected(rows: &Rows, range: &KeyRange, order: Order, limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let within = rows.iter().filter(|(key, _)| range.contains(key));
    let copied = within.map(|(key, value)| (key.clone(), value.clone()));
    match order {
        Order::Forward => copied.take(limit).collect(),
        Order::Reverse => copied.rev().take(limit).collect(),
    }
}

async fn scanned(
    store: &Store,
    range: &KeyRange,
    order: Order,
    limit: usize,
    at: &Snapshot,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let visit = |key: &[u8], value: &[u8]| {
        rows.push((key.to_vec(), value.to_vec()));
        if rows.len() == limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    store.scan(Space::Rows, range, order, at, visit).await.unwrap();
    rows
}

/// A range of a partition's rows: two places, each in, out or open; now and then the whole partition.
fn drawn_range(random: &mut fastrand::Rng, partition: u32) -> KeyRange {
    if random.u32(0..10) == 0 {
        return key::partition_range(&prefix(partition));
    }
    let (one, other) = (random.u32(0..ROWS), random.u32(0..ROWS));
    let (least, greatest) = (one.min(other).to_be_bytes(), one.max(other).to_be_bytes());
    let start = match random.u32(0..4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(least.as_slice()),
        _ => Bound::Included(least.as_slice()),
    };
    let end = match random.u32(0..4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(greatest.as_slice()),
        _ => Bound::Included(greatest.as_slice()),
    };
    key::clustering_range(&prefix(partition), start, end)
}

/// Writes and scans by one seed. `row_bytes` is the length of a value at most.
async fn a_case(store: &Store, seed: u64, row_bytes: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut rows = Rows::new();
    // Snapshots that are still read, and what they show.
    let mut moments: Vec<(Snapshot, Rows)> = Vec::new();
    for step in 0..600_u32 {
        match random.u32(0..10) {
            0..=2 => {
                let mut batch = Batch::new();
                for _ in 0..random.u32(1..=4) {
                    let key = row_key(random.u32(0..2), random.u32(0..ROWS));
                    if random.u32(0..4) == 0 {
                        batch.delete(Space::Rows, key.clone());
                        rows.remove(&key);
                    } else {
                        let value = vec![step.to_le_bytes()[0]; random.usize(1..=row_bytes)];
                        batch.put(Space::Rows, key.clone(), value.clone());
                        rows.insert(key, value);
                    }
                }
                store.commit(batch).await.unwrap();
            }
            3 => {
                moments.push((store.snapshot(), rows.clone()));
                if moments.len() > 3 {
                    moments.remove(random.usize(0..3));
                }
            }
            _ => {
                let partition = random.u32(0..2);
                let range = drawn_range(&mut random, partition);
                let order = if random.bool() { Order::Forward } else { Order::Reverse };
                let limit = [1, 5, 40, usize::MAX][random.usize(0..4)];
                let now = (store.snapshot(), rows.clone());
                let old =
                    (!moments.is_empty() && random.u32(0..4) == 0).then(|| &moments[random.usize(0..moments.len())]);
                let (at, shown) = old.unwrap_or(&now);
                assert_eq!(
                    scanned(store, &range, order, limit, at).await,
                    expected(shown, &range, order, limit),
                    "seed {seed}, step {step}: {order:?}, {limit} rows of {range:?}"
                );
            }
        }
    }
}

async fn cases_on(scheme: &str) {
    for seed in 0..24_u64 {
        let mut place = Place::new(scheme);
        place.options.durability = Durability::Periodic(Duration::from_secs(60));
        // From no cache at all to one that holds everything.
        place.options.row_cache_bytes_max = [0, 40_000, 1 << 20, 64 << 20][usize::try_from(seed % 4).unwrap()];
        let store = place.open().await;
        a_case(&store, seed, [10, 300, 3000][usize::try_from(seed % 3).unwrap()]).await;
        assert!(
            store.figures().row_cache_bytes <= place.options.row_cache_bytes_max,
            "seed {seed}"
        );
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_scan_of_a_file_shows_what_is_stored_whatever_was_scanned_and_written_before() {
    cases_on("file").await;
}

#[cfg(feature = "slate")]
#[tokio::test]
async fn a_scan_of_slatedb_shows_what_is_stored_whatever_was_scanned_and_written_before() {
    cases_on("slate+memory").await;
}

#[tokio::test]
async fn the_second_scan_of_a_partition_stays_in_memory_until_a_row_changes() {
    let place = Place::new("file");
    let store = place.open().await;
    let mut batch = Batch::new();
    for n in 0..ROWS {
        batch.put(Space::Rows, row_key(0, n), vec![1; 100]);
    }
    store.commit(batch).await.unwrap();
    let range = key::partition_range(&prefix(0));
    let read = async || {
        scanned(&store, &range, Order::Forward, usize::MAX, &store.snapshot())
            .await
            .len()
    };
    let cached = || store.figures().row_cache_bytes;
    assert_eq!(read().await, 120);
    let noted = cached();
    assert!(noted < 1000, "one scan leaves no rows: {noted}");
    assert_eq!(read().await, 120);
    let kept = cached();
    assert!(kept > 12_000, "{kept}");
    assert_eq!((read().await, cached()), (120, kept));
    let mut batch = Batch::new();
    batch.delete(Space::Rows, row_key(0, 60));
    store.commit(batch).await.unwrap();
    assert_eq!(read().await, 119);
    store.close().await.unwrap();
}

/// Each batch writes three rows among others with its number. Every scan must show those of one batch, never of an older one than
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scans_beside_writes_show_whole_batches_and_never_go_back() {
    const BATCHES: u32 = 300;
    let mut place = Place::new("file");
    place.options.durability = Durability::Periodic(Duration::from_secs(60));
    let store = place.open().await;
    let write = async |number: u32| {
        let mut batch = Batch::new();
        for n in [0, ROWS / 2, ROWS - 1] {
            batch.put(Space::Rows, row_key(0, n), number.to_be_bytes().to_vec());
        }
        store.commit(batch).await.unwrap();
    };
    let mut batch = Batch::new();
    for n in 0..ROWS {
        batch.put(Space::Rows, row_key(0, n), Vec::new());
    }
    store.commit(batch).await.unwrap();
    write(0).await;
    let readers: Vec<_> = (0..3_u64)
        .map(|seed| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                let (mut last, mut scans) = (0, 0_u32);
                while last < BATCHES {
                    let range = drawn_range(&mut random, 0);
                    let order = if random.bool() { Order::Forward } else { Order::Reverse };
                    let rows = scanned(&store, &range, order, random.usize(1..ROWS as usize), &store.snapshot()).await;
                    let mut written = rows.iter().map(|(_, value)| value).filter(|value| !value.is_empty());
                    if let Some(first) = written.next() {
                        assert!(written.all(|value| value == first), "rows of two batches");
                        let number = u32::from_be_bytes(first.as_slice().try_into().unwrap());
                        assert!(number >= last, "batch {number} after batch {last}");
                        last = number;
                    }
                    scans += 1;
                }
                scans
            })
        })
        .collect();
    for number in 1..=BATCHES {
        write(number).await;
    }
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    store.close().await.unwrap();
}
