//! Tests of rows as bytes and of their merge.

use proptest::prelude::*;

use super::strategy::{deletion, row};
use super::*;

proptest! {
    #[test]
    fn decoding_gives_back_the_row(row in row()) {
        let row = row.canonical();
        prop_assert_eq!(&Row::decode(&row.encode()).unwrap(), &row);
        let bytes = row.encode();
        let view = RowView::parse(&bytes).unwrap();
        prop_assert_eq!(view.is_live(2, None).unwrap(), row.is_live(2));
    }

    #[test]
    fn encoding_makes_canonical(row in row()) {
        prop_assert_eq!(Row::decode(&row.encode()).unwrap(), row.canonical());
    }

    #[test]
    fn canonical_is_stable(row in row()) {
        let once = row.canonical();
        prop_assert_eq!(once.clone().canonical(), once);
    }

    #[test]
    fn merging_commutes(a in row(), b in row()) {
        prop_assert_eq!(Row::merge(a.clone(), b.clone()), Row::merge(b, a));
    }

    #[test]
    fn merging_associates(a in row(), b in row(), c in row()) {
        let left = Row::merge(Row::merge(a.clone(), b.clone()), c.clone());
        prop_assert_eq!(left, Row::merge(a, Row::merge(b, c)));
    }

    #[test]
    fn merging_twice_changes_nothing(a in row(), b in row()) {
        let once = Row::merge(a.clone(), b.clone());
        prop_assert_eq!(&Row::merge(once.clone(), a), &once);
        prop_assert_eq!(&Row::merge(once.clone(), b), &once);
        prop_assert_eq!(Row::merge(once.clone(), once.clone()), once);
    }

    #[test]
    fn merging_bytes_is_merging_rows(a in row(), b in row()) {
        let bytes = merge_encoded(&a.encode(), &b.encode()).unwrap();
        prop_assert_eq!(Row::decode(&bytes).unwrap(), Row::merge(a, b));
    }

    #[test]
    fn merging_bytes_without_deletions_is_merging_rows(mut a in row(), mut b in row()) {
        for row in [&mut a, &mut b] {
            row.deletion = None;
            row.complex.clear();
        }
        let bytes = merge_encoded(&a.encode(), &b.encode()).unwrap();
        prop_assert_eq!(bytes, Row::merge(a, b).encode());
    }

    #[test]
    fn a_shadow_from_outside_is_a_deletion_inside(row in row(), deletion in deletion()) {
        let mut shadowed = row.clone().canonical();
        shadowed.shadow(deletion.timestamp);
        let inside = Row::merge(row.clone(), Row { deletion: Some(deletion), ..Row::default() });
        prop_assert_eq!(&shadowed.cells, &inside.cells);
        prop_assert_eq!(shadowed.marker, inside.marker);
        let bytes = row.encode();
        let view = RowView::parse(&bytes).unwrap();
        prop_assert_eq!(view.is_live(2, Some(deletion.timestamp)).unwrap(), shadowed.is_live(2));
    }

    #[test]
    fn purging_changes_nothing_that_is_seen(row in row(), now in 0_i64..4, grace in 0_i64..4) {
        let mut purged = row.clone().canonical();
        purged.purge(now, now - grace);
        let seen = |row: &Row| row.cells.iter().filter(|cell| cell.is_live(now)).cloned().collect::<Vec<_>>();
        prop_assert_eq!(seen(&purged), seen(&row.canonical()));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(row) = Row::decode(&bytes) {
            prop_assert_eq!(Row::decode(&row.encode()).unwrap(), row.canonical());
        }
    }

    #[test]
    fn a_cut_row_is_not_another_row(row in row(), keep in 0.0_f64..1.0) {
        let bytes = row.encode();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small row")]
        let cut = (bytes.len() as f64 * keep) as usize;
        if let Ok(cut) = Row::decode(&bytes[..cut]) {
            // A cut between two cells is undetectable here; the engines' checksums detect it. Decoding never invents a
            // cell.
            let row = row.canonical();
            prop_assert!(cut.cells.iter().all(|cell| row.cells.contains(cell)));
        }
    }
}

/// What Cassandra 5.0.9 keeps when it compacts a row written at second 60 whose cells all expire at second 100, with a
/// grace of 30 seconds: the cells are removed at once, because their tombstones are as old as their write; the marker
/// stays until second 130.
#[test]
fn what_expired_is_forgotten_as_cassandra_forgets_it() {
    let expiry = Expiry {
        at_seconds: 100,
        ttl_seconds: 40,
    };
    let marker = Marker {
        timestamp: 5,
        expiry: Some(expiry),
    };
    let row = Row {
        marker: Some(marker),
        cells: vec![expiring(5, b"v", 100, 40)],
        ..Row::default()
    };
    let purged = |now_seconds: i64, grace_seconds: i64| {
        let mut purged = row.clone();
        purged.purge(now_seconds, now_seconds - grace_seconds);
        (purged.marker.is_some(), purged.cells)
    };
    assert_eq!(purged(99, 30), (true, row.cells.clone()));
    assert_eq!(purged(100, 30), (true, vec![]));
    assert_eq!(purged(130, 30), (true, vec![]));
    assert_eq!(purged(131, 30), (false, vec![]));
    // With a longer grace a tombstone replaces the cell.
    assert_eq!(purged(100, 41), (true, vec![tombstone(5, 60)]));
    assert_eq!(purged(100, 0), (true, vec![]));
    assert_eq!(purged(101, 0), (false, vec![]));
}

/// A position is no content: a purge leaves it with the rest, and takes it with the last of it. No deletion hides it.
#[test]
fn a_position_stays_with_its_row_and_makes_none() {
    let row = Row {
        cells: vec![live(5, b"v")],
        ..Row::default()
    };
    let plain = row.encode();
    let stamped = codec::with_position(&plain, Some(1 << 50)).unwrap();
    assert_eq!(
        Row::decode(&stamped).unwrap(),
        Row {
            position: Some(1 << 50),
            ..row.clone()
        }
    );
    let again = codec::with_position(&stamped, Some(7)).unwrap();
    assert_eq!(RowView::parse(&again).unwrap().position(), Some(7));
    let merged = merge_encoded(&stamped, &again).unwrap();
    assert_eq!(merged, stamped, "the greater position is kept");
    assert_eq!(RowView::parse(&plain).unwrap().position(), None);
    assert_eq!(codec::with_position(&stamped, None).unwrap(), plain);
    assert_eq!(codec::with_position(&plain, None).unwrap(), plain);
    let mut gone = Row::decode(&stamped).unwrap();
    gone.shadow(i64::MAX);
    assert!(gone.is_empty());
    assert_eq!(gone.position, Some(1 << 50));
    assert!(codec::with_position(b"", Some(1)).is_none());
}

fn live(timestamp: i64, value: &'static [u8]) -> Cell {
    Cell {
        column: ColumnId(1),
        path: None,
        timestamp,
        state: CellState::Live {
            value: Bytes::from_static(value),
            expiry: None,
        },
    }
}

fn expiring(timestamp: i64, value: &'static [u8], at_seconds: i64, ttl_seconds: u32) -> Cell {
    let expiry = Some(Expiry {
        at_seconds,
        ttl_seconds,
    });
    Cell {
        state: CellState::Live {
            value: Bytes::from_static(value),
            expiry,
        },
        ..live(timestamp, b"")
    }
}

fn tombstone(timestamp: i64, at_seconds: i64) -> Cell {
    Cell {
        state: CellState::Tombstone { at_seconds },
        ..live(timestamp, b"")
    }
}

/// The winner comes first; from the byte code of `Cells#resolveRegular` in Cassandra 5.0.9.
#[test]
fn cells_reconcile_as_in_cassandra() {
    for (winner, loser) in [
        (live(2, b"a"), live(1, b"z")),
        (live(2, b"a"), tombstone(1, 9)),
        (tombstone(1, 9), live(1, b"z")),
        (expiring(1, b"a", 5, 5), live(1, b"z")),
        (tombstone(1, 0), expiring(1, b"z", 9, 5)),
        (tombstone(1, 9), tombstone(1, 8)),
        (expiring(1, b"a", 9, 5), expiring(1, b"z", 8, 5)),
        (expiring(1, b"a", 9, 4), expiring(1, b"z", 9, 5)),
        (expiring(1, b"z", 9, 5), expiring(1, b"a", 9, 5)),
        (live(1, b"\x80"), live(1, b"\x7F")),
        (live(1, b"aa"), live(1, b"a")),
    ] {
        let row = |cell: &Cell| Row {
            cells: vec![cell.clone()],
            ..Row::default()
        };
        let merged = Row::merge(row(&loser), row(&winner));
        assert_eq!(merged.cells, std::slice::from_ref(&winner), "against {loser:?}");
    }
}

#[test]
fn a_plain_cell_costs_two_bytes_in_addition_to_its_value() {
    let row = Row {
        marker: Some(Marker {
            timestamp: 1_700_000_000_000_000,
            expiry: None,
        }),
        cells: (1..=3)
            .map(|column| Cell {
                column: ColumnId(column),
                ..live(1_700_000_000_000_000, b"1234")
            })
            .collect(),
        ..Row::default()
    };
    assert_eq!(row.encode().len(), 2 + 8 + 3 * (2 + 4));
}
