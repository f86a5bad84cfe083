//! Tests of rows in the range of a physical partition.

use std::sync::Arc;

use super::super::entries::{EntryRange, Place, PlaceRange};
use super::super::ring::StoreId;
use super::super::{Hosted, ReadView, TablePartitions};
use super::*;
use helenus_base::clock::Clock;
use helenus_base::invariant::Invariant;
use helenus_storage::storage::{Damaged, Derivation, Derivations, Entries, Marker, Options, RowView, Url};
use helenus_types::token::KeyBound;

const TABLE: TableId = 7;
const INDEX: TableId = 8;

/// One entry of the value `v` for each row.
#[derive(Debug)]
struct EachRow;

impl Derivation for EachRow {
    fn derive(&self, key: &[u8], _: &RowView<'_>, entries: &mut Entries) {
        entries.add(INDEX, b"v", 1, key);
    }
}

async fn store() -> Store {
    let store = Store::open(&Url::Memory, &Options::default(), Clock::manual(0))
        .await
        .unwrap();
    let each: Arc<dyn Derivation> = Arc::new(EachRow);
    store.set_derivations(Derivations::from_iter([(TABLE, each)]));
    store
}

fn row() -> Row {
    Row {
        marker: Some(Marker {
            timestamp: 1,
            expiry: None,
        }),
        ..Row::default()
    }
}

async fn write(map: &TablePartitions, partition_key: &[u8], clustering: &[u8]) {
    let (token, partition) = map.hosted(partition_key).unwrap();
    let logical = partition.logical(TABLE, token, partition_key).unwrap();
    let mut batch = Batch::new();
    logical.put_row(&mut batch, logical.prefix().row(clustering), row());
    partition.store().commit(batch).await.unwrap();
}

/// The partition keys that a physical partition shows.
async fn keys(partition: &Hosted) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let (range, at) = (partition.rows(TABLE), partition.now());
    let scanned = partition.scan(&range, &at, |row| {
        keys.push(row.partition().unwrap().2.into_owned());
        ControlFlow::Continue(())
    });
    scanned.await.unwrap();
    keys
}

/// The partition keys that the index finds in a physical partition, and the number of entries that the walk visits.
async fn indexed(partition: &Hosted) -> (Vec<Vec<u8>>, usize) {
    let (mut keys, mut passed) = (Vec::new(), 0);
    let (range, at) = (EntryRange::all(INDEX), partition.now());
    let walked = partition.entries(&range, &at, |entry| {
        passed += 1;
        keys.extend(
            entry
                .place
                .map(|place| place.to_place().logical().unwrap().1.into_owned()),
        );
        ControlFlow::Continue(())
    });
    walked.await.unwrap();
    (keys, passed)
}

#[tokio::test]
async fn rows_that_a_move_left_behind_cannot_be_seen() {
    let (main, own) = (store().await, store().await);
    let before = TablePartitions::evenly(4, StoreId(0), &main);
    for number in 0..40_u8 {
        write(&before, &[number], b"c").await;
    }
    let lifted = before.all()[1].id;
    let after = before.moved(lifted, StoreId(1), &own).unwrap();
    let all: usize = 40;
    let mut seen = 0;
    for (old, new) in before.here().zip(after.here()) {
        assert!(!keys(old).await.is_empty());
        assert_eq!(keys(old).await, indexed(old).await.0);
        if new.id == lifted {
            // Nothing is copied yet, and the rows left in the main store no longer belong to this partition.
            assert!(keys(new).await.is_empty());
            assert_eq!(indexed(new).await, (Vec::new(), 0));
        } else {
            seen += keys(new).await.len();
            // The walk visits all entries of the store and returns its own.
            assert_eq!(indexed(new).await, (keys(new).await, all));
        }
    }
    assert_eq!(seen + keys(before.here().nth(1).unwrap()).await.len(), all);
    let mut found = 0;
    let (range, mut view) = (EntryRange::all(INDEX), ReadView::default());
    let counting = after.entries_in(StoreId(0), &range, &mut view, |_| {
        found += 1;
        ControlFlow::Continue(())
    });
    counting.await.unwrap();
    assert_eq!(found, seen);
}

#[tokio::test]
async fn a_table_in_order_of_its_keys_is_split_between_any_two() {
    let map = TablePartitions::ordered(StoreId(0), &store().await);
    for key in [&b"a"[..], b"m", b"m\0", b"mm", b"t", b"z"] {
        write(&map, key, b"c").await;
    }
    let token = map.token(b"m");
    let bound = |key: &[u8]| KeyBound::at_key(token, key);
    let (map, splits) = map
        .split_all(&[bound(b"m"), bound(b"m\0"), bound(b"t"), bound(b"t")])
        .unwrap();
    assert_eq!((splits, map.all().len()), (3, 4));
    let expected: [&[&[u8]]; 4] = [&[b"a"], &[b"m"], &[b"m\0", b"mm"], &[b"t", b"z"]];
    for (partition, expected) in map.here().zip(expected) {
        assert_eq!(keys(partition).await, expected);
        assert_eq!(indexed(partition).await, (keys(partition).await, 6));
        for key in expected {
            let (token, place) = map.hosted(key).unwrap();
            assert_eq!(place.id, partition.id);
            let logical = partition.logical(TABLE, token, key).unwrap();
            let found = logical.get(&logical.prefix().row(b"c"), &partition.now()).await;
            assert!(found.unwrap().is_some());
        }
        // Seeking one value among the places of the partition finds the same.
        let range = EntryRange::of_value(INDEX, b"v", &PlaceRange::of_span(&partition.span)).unwrap();
        let mut places: Vec<Place> = Vec::new();
        let at = partition.now();
        let sought = partition.entries(&range, &at, |entry| {
            places.push(entry.place.unwrap().to_place());
            ControlFlow::Continue(())
        });
        sought.await.unwrap();
        assert_eq!(places.len(), expected.len());
    }
    // Keys of one token that lie in different partitions are still spread over the locks.
    let spread = |key: &[u8]| map.placement().spread(map.token(key), key);
    assert_ne!(spread(b"a"), spread(b"m"));
}

#[tokio::test]
async fn a_key_outside_a_partition_is_not_staged_there() {
    let map = TablePartitions::evenly(2, StoreId(0), &store().await);
    let (token, partition) = map.hosted(b"k").unwrap();
    let other = map.here().find(|other| other.id != partition.id).unwrap();
    let refused = other.logical(TABLE, token, b"k").map(drop);
    assert_eq!(refused, Err(Broken(Invariant::KeyIsHosted)));
}

#[tokio::test]
async fn a_key_that_is_no_row_is_malformed() {
    let store = store().await;
    let map = TablePartitions::whole(StoreId(0), store.clone());
    let (token, partition) = map.hosted(b"k").unwrap();
    let logical = partition.logical(TABLE, token, b"k").unwrap();
    let mut batch = Batch::new();
    // The prefix of a logical partition alone, and with a kind that is none.
    batch.put(Space::Rows, key::with_table(TABLE, &[0x80, 0, 0]), row().encode());
    store.commit(batch).await.unwrap();
    let mut outcome = Ok(());
    let (range, at) = (partition.rows(TABLE), partition.now());
    let scanned = partition.scan(&range, &at, |passed| {
        outcome = passed.partition().map(drop);
        assert!(passed.token().is_err());
        ControlFlow::Break(())
    });
    scanned.await.unwrap();
    assert!(matches!(outcome, Err(Error::Damaged(Damaged::KEY))));
    assert!(
        logical
            .get(&logical.prefix().row(b"c"), &partition.now())
            .await
            .unwrap()
            .is_none()
    );
}
