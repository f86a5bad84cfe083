//! The ends of a slice of clustering columns, with bound values.

use super::super::error::Error;
use super::super::range::BoundPart;
use super::super::refusal::BoundRefusal;
use super::super::restriction::{Operand, SliceBound};
use super::super::term::{Binding, TypedTerm};
use super::at;
use super::tuple::tuple_values;
use crate::command::Value;
use crate::schema::Table;
use helenus_types::types::CqlType;

/// The values of one end of a slice, one for each column that it restricts.
pub(super) fn bound_values(
    table: &Table,
    columns: &[usize],
    bound: &SliceBound,
    binding: &Binding<'_>,
) -> Result<Vec<Value>, Error> {
    // One bound may have fewer columns than the other.
    let width = match &bound.operand {
        Operand::Tuple(TypedTerm::Marker(_, ty)) => match ty.unfrozen() {
            CqlType::Tuple(types) => types.len(),
            _ => columns.len(),
        },
        _ => columns.len(),
    };
    let mut values = tuple_values(table, columns, &bound.operand, binding)?;
    values.truncate(width);
    Ok(values)
}

/// One end of a slice, column by column.
pub(super) fn bound_parts(
    table: &Table,
    columns: &[usize],
    refuses_null: bool,
    bound: &SliceBound,
    binding: &Binding<'_>,
) -> Result<(Vec<BoundPart>, bool), Error> {
    let values = bound_values(table, columns, bound, binding)?;
    let mut parts = Vec::with_capacity(values.len());
    for (column, value) in columns.iter().zip(values) {
        let column = at(table, *column);
        let mut whole = Vec::new();
        let encoded = match value {
            Value::Bytes(bytes) => {
                let mut encoded = Vec::new();
                column.ty.encode_key(&bytes, column.key_order(), &mut whole);
                // The bytes that equal values share, so that a bound includes all of them or none.
                column.ty.encode_key_order(&bytes, column.key_order(), &mut encoded);
                Some(encoded)
            }
            Value::Null if refuses_null => {
                return Err(BoundRefusal::NullInCondition(column.name.clone()).into());
            }
            Value::Null => None,
            Value::Unset => return Err(BoundRefusal::Unset(column.name.clone()).into()),
        };
        parts.push(BoundPart {
            encoded,
            whole,
            descending: column.descending,
        });
    }
    Ok((parts, bound.inclusive))
}
