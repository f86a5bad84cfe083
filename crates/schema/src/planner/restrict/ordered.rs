//! Ranges of the partition key of a table that is ordered by it.

use bytes::Bytes;

use super::super::error::Error;
use super::super::refusal::BoundRefusal;
use super::super::restriction::{Operand, SliceBound};
use super::super::term::Binding;
use super::key_value;
use crate::command::Partitions;
use crate::schema::Table;
use helenus_types::token::{KeyBound, KeySpan, Token};

/// The partitions from one bound to another.
pub(super) fn bind(
    table: &Table,
    lower: Option<&SliceBound>,
    upper: Option<&SliceBound>,
    binding: &Binding<'_>,
) -> Result<Partitions, Error> {
    let value = |bound: &SliceBound| -> Result<Bytes, Error> {
        match &bound.operand {
            Operand::One(term) => key_value(table, 0, term, binding),
            // A partition key is restricted by itself only.
            Operand::Each(_) | Operand::Tuple(_) => Err(BoundRefusal::NullInCondition(String::new()).into()),
        }
    };
    // Both are read before either is judged.
    let lower = lower
        .map(|bound| value(bound).map(|value| (value, bound.inclusive)))
        .transpose()?;
    let upper = upper
        .map(|bound| value(bound).map(|value| (value, bound.inclusive)))
        .transpose()?;
    let start = match lower {
        None => KeyBound::LOWEST,
        Some((key, true)) => KeyBound::at_key(Token::OF_ORDERED, &key),
        Some((key, false)) => KeyBound::behind_key(Token::OF_ORDERED, &key),
    };
    let end = upper.map(|(key, inclusive)| match inclusive {
        true => KeyBound::behind_key(Token::OF_ORDERED, &key),
        false => KeyBound::at_key(Token::OF_ORDERED, &key),
    });
    Ok(Partitions::Ring(KeySpan::new(start, end)))
}
