//! Tests of partition maps: what cannot be one, growth, records.

use proptest::prelude::*;

use super::*;

fn token(at: i64) -> KeyBound {
    KeyBound::at_token(at)
}

fn key(key: &[u8]) -> KeyBound {
    KeyBound::at_key(Placement::ONE, key)
}

fn assert_covers(map: &PartitionMap) {
    assert_eq!(map.flaw(), None);
    let all = map.all();
    assert_eq!((all[0].lower(), all[all.len() - 1].upper()), (i64::MIN, i64::MAX));
    let mut ids: Vec<u64> = all.iter().map(|partition| partition.id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len());
}

#[test]
fn what_cannot_be_is_refused() {
    let map = PartitionMap::evenly(3, StoreId(0));
    let id = PhysicalPartitionId;
    let refused = |result: Result<PartitionMap, MapError>| result.unwrap_err();
    let at = map.all()[1].lower();
    assert_eq!(refused(map.split(&token(at))), MapError::AtBoundary { at, id: 1 });
    assert_eq!(
        refused(map.split(&token(i64::MIN))),
        MapError::AtBoundary { at: i64::MIN, id: 0 }
    );
    assert_eq!(refused(map.merge(id(0), id(7))), MapError::Unknown(7));
    for (left, right) in [(0, 2), (1, 0), (1, 1)] {
        let wrong = MapError::NotNeighbours { left, right };
        assert_eq!(refused(map.merge(id(left), id(right))), wrong);
    }
    let full = PartitionMap::evenly(usize::MAX, StoreId(0));
    assert_eq!(full.all().len(), PARTITIONS_MAX);
    assert_eq!(refused(full.split(&token(5))), MapError::TooMany);
}

#[test]
fn a_map_grows_by_as_many_as_it_takes() {
    let map = PartitionMap::evenly(3, StoreId(0)).grown_to(5).unwrap();
    assert_covers(&map);
    // Two of the three were split, one keeps twice the tokens of the others.
    assert_eq!(map.all().len(), 5);
    assert!(map.all().iter().any(|partition| partition.epoch == 0));
    assert_eq!(map.grown_to(2).unwrap().all().len(), 5);
}

#[test]
fn the_keys_of_one_token_are_divided() {
    let map = PartitionMap::ordered(StoreId(0));
    assert!(!map.is_unrecorded());
    let map = map.split(&key(b"m")).unwrap().split(&key(b"t")).unwrap();
    assert_covers(&map);
    let of = |key: &[u8]| {
        let token = map.placement().token(key);
        map.all()[map.number(token.value(), key)].id.0
    };
    // The split at "t" is of partition 2, so 1, 3 and 4 are left.
    for (key, id) in [
        (&b""[..], 1),
        (b"a", 1),
        (b"lz", 1),
        (b"m", 3),
        (b"s", 3),
        (b"t", 4),
        (b"zz", 4),
    ] {
        assert_eq!(of(key), id, "{key:?}");
    }
    // Tokens are rounded outward.
    let shown: Vec<(i64, i64)> = map.all().iter().map(|one| (one.lower(), one.upper())).collect();
    assert_eq!(shown, [(i64::MIN, 0), (0, 0), (0, i64::MAX)]);
    assert_eq!(
        map.split(&key(b"t")).unwrap_err(),
        MapError::AtBoundary { at: 0, id: 4 }
    );
    let merged = map.merge(PhysicalPartitionId(1), PhysicalPartitionId(3)).unwrap();
    assert_covers(&merged);
    assert_eq!(merged.all().len(), 2);
    let moved = map.moved(PhysicalPartitionId(3), StoreId(7)).unwrap();
    assert_eq!(
        moved.spans_outside(StoreId(0)),
        [KeySpan::new(key(b"m"), Some(key(b"t"))).unwrap()]
    );
    for map in [map, merged, moved] {
        let bytes = map.encode();
        assert_eq!(bytes[0], BY_KEY);
        assert_eq!(PartitionMap::decode(&bytes), Ok(map));
        for cut in 0..bytes.len() {
            let read = PartitionMap::decode(&bytes[..cut]);
            assert!(read.is_err() || read.unwrap().all().len() < 3, "{cut}");
        }
    }
}

/// The record, in version 1, of a map of two partitions: every directory of an older program has this form.
const OF_BEFORE: &[u8] = b"\x01\
    \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x03\
    \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x80\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\x09";

#[test]
fn records_of_version_1_are_read_and_written_as_before() {
    let map = PartitionMap::decode(OF_BEFORE).unwrap();
    let read: Vec<_> = map
        .all()
        .iter()
        .map(|one| (one.id.0, one.epoch, one.lower(), one.upper(), one.store_id.0))
        .collect();
    assert_eq!(read, [(1, 1, i64::MIN, 4, 0), (2, 1, 5, i64::MAX, 9)]);
    assert_eq!((map.epoch(), map.next_id, map.placement()), (1, 3, Placement::Hash));
    assert_eq!(map.encode(), OF_BEFORE);
    // Written in version 2 only while a bound lies inside a token.
    let inside = map.split(&KeyBound::at_key(Token::bound(7), b"k")).unwrap();
    assert_eq!(inside.encode()[0], BY_KEY);
    let joined = inside.merge(PhysicalPartitionId(3), PhysicalPartitionId(4)).unwrap();
    assert_eq!(joined.encode()[0], BY_TOKEN);
}

#[test]
fn a_version_that_is_not_known_is_refused() {
    for version in [0, 3, 0xFF] {
        let mut bytes = OF_BEFORE.to_vec();
        bytes[0] = version;
        assert_eq!(PartitionMap::decode(&bytes), Err(MapError::Damaged));
    }
}

#[test]
fn damaged_records_are_refused() {
    let bytes = PartitionMap::evenly(3, StoreId(0)).encode();
    for len in 0..bytes.len() {
        // Cut between two partitions it is a shorter map that covers the ring too.
        if len > 17 && (len - 17) % 28 == 0 {
            continue;
        }
        assert!(PartitionMap::decode(&bytes[..len]).is_err(), "{len}");
    }
    // An id that was never assigned, a lowest token that is not the ring's, an epoch in the future.
    for at in [0, 17, 33] {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x80;
        assert!(PartitionMap::decode(&wrong).is_err(), "{at}");
    }
}

#[test]
fn a_map_with_a_gap_is_not_made() {
    let map = PartitionMap::evenly(2, StoreId(0));
    let broken = MapError::Broken(Broken(Invariant::RingIsCovered));
    assert_eq!(map.with(1..=1, Vec::new()), Err(broken));
    for count in 1..100 {
        PartitionMap::evenly(count, StoreId(0)).check().unwrap();
    }
}

#[test]
fn a_map_whose_epochs_do_not_rise_is_not_made() {
    let map = PartitionMap::evenly(1, StoreId(0));
    let mut child = map.all()[0].clone();
    child.epoch = 9;
    let broken = Broken(Invariant::EpochRises);
    assert_eq!(map.with(0..=0, vec![child]), Err(MapError::Broken(broken)));
    let next = map.split(&KeyBound::at_token(5)).unwrap();
    assert_eq!(next.check_follows(&map), Ok(()));
    assert_eq!(map.check_follows(&next), Err(broken));
    assert_eq!(next.check_follows(&next), Err(broken));
}

proptest! {
    #[test]
    fn splits_and_merges_leave_the_ring_covered(
        count in 1_usize..20,
        steps in prop::collection::vec(
            (any::<bool>(), any::<i64>(), prop::collection::vec(any::<u8>(), 0..2), any::<prop::sample::Index>()),
            0..60,
        ),
    ) {
        let mut map = PartitionMap::evenly(count, StoreId(0));
        assert_covers(&map);
        for (splits, at, key, place) in steps {
            let next = if splits {
                map.split(&KeyBound::at_key(Token::bound(at), &key))
            } else {
                let place = place.index(map.all().len());
                let right = map.all().get(place + 1).map_or(PhysicalPartitionId(u64::MAX), |right| right.id);
                map.merge(map.all()[place].id, right)
            };
            if let Ok(next) = next {
                assert_covers(&next);
                prop_assert_eq!(next.epoch(), map.epoch() + 1);
                prop_assert_eq!(next.all().len() > map.all().len(), splits);
                // What did not change is the same as before.
                let kept = next.all().iter().filter(|one| one.epoch <= map.epoch());
                prop_assert!(kept.into_iter().all(|one| map.all().contains(one)));
                map = next;
            }
            prop_assert_eq!(PartitionMap::decode(&map.encode()), Ok(map.clone()));
        }
    }
}
