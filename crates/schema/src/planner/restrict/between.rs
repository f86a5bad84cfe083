//! Slices whose two bounds exclude every row.

use std::cmp::Ordering;

use super::super::restriction::SliceBound;
use super::super::term::Binding;
use super::{at, bounds};
use crate::command::Value;
use crate::schema::Table;

/// The two bounds of a slice on the columns after those that have values, whether they bound the key range or filter.
/// Cassandra detects a slice whose bounds exclude every row.
#[derive(Clone, Debug)]
pub(super) struct Between {
    pub(super) columns: Vec<usize>,
    pub(super) lower: SliceBound,
    pub(super) upper: SliceBound,
}

impl Between {
    /// Whether the lower bound is not below the upper one (Cassandra's `Slice.isEmpty`), whether or not values lie
    /// between, and whatever the columns' directions. Values that cannot be bound are refused elsewhere.
    pub(super) fn is_none(&self, table: &Table, binding: &Binding<'_>) -> bool {
        let values = |bound| bounds::bound_values(table, &self.columns, bound, binding);
        let (Ok(lower), Ok(upper)) = (values(&self.lower), values(&self.upper)) else {
            return false;
        };
        for ((column, lower), upper) in self.columns.iter().zip(&lower).zip(&upper) {
            let column = at(table, *column);
            let order = match (lower, upper) {
                (Value::Bytes(lower), Value::Bytes(upper)) => column.compare(lower, upper),
                (Value::Null, Value::Null) => Ordering::Equal,
                // Null sorts before every value, whatever the direction.
                (Value::Bytes(_), Value::Null) if !column.descending => Ordering::Greater,
                (Value::Null, Value::Bytes(_)) if column.descending => Ordering::Greater,
                _ => return false,
            };
            match order {
                Ordering::Less => return false,
                Ordering::Greater => return true,
                Ordering::Equal => {}
            }
        }
        // Equal so far: the shorter bound is a prefix of the longer one, and contains it if it is inclusive.
        !match lower.len().cmp(&upper.len()) {
            Ordering::Less => self.lower.inclusive,
            Ordering::Greater => self.upper.inclusive,
            Ordering::Equal => self.lower.inclusive && self.upper.inclusive,
        }
    }
}
