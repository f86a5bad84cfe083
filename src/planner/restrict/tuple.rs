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
use crate::types;

/// The names of columns, for error messages.
pub(super) fn names(table: &Table, columns: &[usize], separator: &'static str) -> String {
    let names: Vec<&str> = columns.iter().map(|column| at(table, *column).name.as_str()).collect();
    Joined(&names, separator).to_string()
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
            Value::Bytes(bytes) => {
                let mut fields = value::fields(&bytes, columns.len());
                fields.truncate(types::tuple_length(&bytes).max(1));
                Ok(fields
                    .into_iter()
                    .map(|field| field.map_or(Value::Null, Value::Bytes))
                    .collect())
            }
            Value::Null => Err(BoundRefusal::NullTuple(names(table, columns, ", ")).into()),
            Value::Unset => Err(BoundRefusal::UnsetTuple(names(table, columns, ",")).into()),
        },
    }
}

/// A tuple that names keys by equality: none of its fields may be null. One that `may_be_short` names all keys that begin with it.
pub(super) fn whole_tuple(
    table: &Table,
    columns: &[usize],
    values: Vec<Value>,
    several: bool,
    may_be_short: bool,
) -> Result<Vec<Bytes>, Error> {
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
    if let Some(missing) = columns.get(whole.len()).filter(|_| !may_be_short) {
        if !several {
            return Err(BoundRefusal::Null(at(table, *missing).name.clone()).into());
        }
        return Err(BoundRefusal::NullInTuple(names(table, columns, ", ")).into());
    }
    Ok(whole)
}
