//! Random rows for property tests: few columns, paths, times and values, so that collisions are frequent.

use bytes::Bytes;
use proptest::prelude::*;

use super::{Cell, CellState, ColumnId, Deletion, Expiry, Marker, Row};

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..6, 1 => any::<i64>()]
}

fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..4, 1 => any::<i64>()]
}

fn expiry() -> impl Strategy<Value = Option<Expiry>> {
    prop::option::of((seconds(), 1_u32..4).prop_map(|(at_seconds, ttl_seconds)| Expiry {
        at_seconds,
        ttl_seconds,
    }))
}

pub(crate) fn deletion() -> impl Strategy<Value = Deletion> {
    (timestamp(), seconds()).prop_map(|(timestamp, at_seconds)| Deletion { timestamp, at_seconds })
}

fn column() -> impl Strategy<Value = ColumnId> {
    prop_oneof![8 => 0_u32..4, 1 => any::<u32>()].prop_map(ColumnId)
}

fn value() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(0_u8..3, 0..3).prop_map(Bytes::from)
}

fn cell() -> impl Strategy<Value = Cell> {
    let state = prop_oneof![
        3 => (value(), expiry()).prop_map(|(value, expiry)| CellState::Live { value, expiry }),
        1 => seconds().prop_map(|at_seconds| CellState::Tombstone { at_seconds }),
    ];
    (column(), prop::option::of(value()), timestamp(), state).prop_map(|(column, path, timestamp, state)| Cell {
        column,
        path,
        timestamp,
        state,
    })
}

/// Any row, canonical or not.
pub(crate) fn row() -> impl Strategy<Value = Row> {
    let marker = (timestamp(), expiry()).prop_map(|(timestamp, expiry)| Marker { timestamp, expiry });
    (
        prop::option::of(marker),
        prop::option::weighted(0.2, deletion()),
        prop::collection::vec((column(), deletion()), 0..3),
        prop::collection::vec(cell(), 0..8),
        prop::option::weighted(0.2, timestamp()),
    )
        .prop_map(|(marker, deletion, complex, cells, position)| Row {
            marker,
            deletion,
            complex,
            cells,
            position,
        })
}
