//! The values of a tuple of clustering columns.

use bytes::Bytes;

use super::super::error::Error;
use super::super::refusal::BoundRefusal;
use super::super::restriction::Operand;
use super::super::term::Binding;
use super::super::text::Joined;
use super::super::value;
use super::at;
use crate::command::Value;
use crate::schema::Table;
use helenus_types::types;

/// The names of columns, for error messages.
pub(super) fn names(table: &Table, columns: &[usize], separator: &'static str) -> String {
    let names: Vec<&str> = columns.iter().map(|column| at(table, *column).name.as_str()).collect();
    Joined(&names, separator).to_string()
}

/// The fields that a marker's tuple has, at most as many as there are columns.
pub(super) fn given_fields(tuple: &Bytes, columns: usize) -> Vec<Value> {
    let mut fields = value::fields(tuple, columns);
    fields.truncate(types::tuple_length(tuple));
    let fields = fields.into_iter();
    fields.map(|field| field.map_or(Value::Null, Value::Bytes)).collect()
}

/// The values of a tuple, one for each column. A marker's tuple may end early: it has fewer values then, as in Cassandra.
pub(super) fn tuple_values(
    table: &Table,
    columns: &[usize],
    tuple: &Operand,
    binding: &Binding<'_>,
) -> Result<Vec<Value>, Error> {
    match tuple {
        Operand::One(term) => Ok(vec![term.bind(binding)?]),
        Operand::Each(terms) => terms
            .iter()
            .enumerate()
            .map(|(index, term)| match term.bind(binding)? {
                Value::Unset => Err(BoundRefusal::UnsetField(index).into()),
                value => Ok(value),
            })
            .collect(),
        Operand::Tuple(term) => match term.bind(binding)? {
            Value::Bytes(bytes) => Ok(given_fields(&bytes, columns.len())),
            Value::Null => Err(BoundRefusal::NullTuple(names(table, columns, ", ")).into()),
            Value::Unset => Err(BoundRefusal::UnsetTuple(names(table, columns, ",")).into()),
        },
    }
}

/// What a tuple names that has fewer values than columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortTuple {
    /// All keys that begin with it.
    Prefix,
    /// No row: every key has a value for each column.
    Nothing,
    /// Nothing that can be written.
    Refused,
}

/// A tuple that names keys by equality: none of its fields may be null. `None` means that it names no row.
pub(super) fn whole_tuple(
    table: &Table,
    columns: &[usize],
    values: Vec<Value>,
    several: bool,
    short: ShortTuple,
) -> Result<Option<Vec<Bytes>>, Error> {
    let mut whole = Vec::with_capacity(columns.len());
    for (column, value) in columns.iter().zip(values) {
        match value {
            Value::Bytes(bytes) => whole.push(bytes),
            Value::Null if several => {
                return Err(BoundRefusal::NullInTuple(names(table, columns, ", ")).into());
            }
            Value::Null => return Err(BoundRefusal::Null(at(table, *column).name.clone()).into()),
            Value::Unset => return Err(BoundRefusal::Unset(at(table, *column).name.clone()).into()),
        }
    }
    match (columns.get(whole.len()), short) {
        (None, _) | (_, ShortTuple::Prefix) => Ok(Some(whole)),
        (_, ShortTuple::Nothing) => Ok(None),
        // Differs: Cassandra writes a row without values for the last columns, which no statement can name.
        (_, ShortTuple::Refused) if several => Err(BoundRefusal::NullInTuple(names(table, columns, ", ")).into()),
        (Some(missing), ShortTuple::Refused) => Err(BoundRefusal::Null(at(table, *missing).name.clone()).into()),
    }
}
