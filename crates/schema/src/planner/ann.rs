//! ORDER BY … ANN OF: approximate nearest neighbour (ANN) search for the rows closest to a given vector.
//!
//! The rules are Cassandra's (`StatementRestrictions`, `AnnRestriction`, `StorageAttachedIndex.validate`). The column
//! must have a storage-attached index, and so must every column that is restricted beside it, unless the primary key
//! finds the rows. ALLOW FILTERING does not relax this.
//!
//! Differs: the search is exact. A vector index holds no graph here: all rows that the rest of the statement selects
//! are compared, and these reads are charged. An approximate search aims at the same results.

use bytes::Bytes;
use grammar::ast::{Direction, OrderBy};

use super::error::Error;
use super::refusal::{AnnRefusal, RestrictionRefusal};
use super::restriction::{Restriction, Restrictions, Test, column, column_at};
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use crate::command::{ColumnChange, NEAREST_LIMIT_MAX as LIMIT_MAX, Nearest, Value};
use crate::schema::{Column, Index, IndexFamily, IndexPart, Table};
use helenus_types::functions::{Similarity, floats};
use helenus_types::types::{CqlType, Native};

/// Greatest absolute value of a vector's element. Source: Cassandra's responses.
const ELEMENT_MAX: f32 = 1e17;

/// The vector to search for, before binding.
#[derive(Clone, Debug)]
pub(crate) struct AnnPlan {
    /// The column: its position in `table.columns`.
    pub(crate) column: usize,
    index: String,
    similarity: Similarity,
    vector: TypedTerm,
}

/// ORDER BY … ANN OF as written.
#[derive(Clone, Debug)]
pub(crate) struct AnnOrdering {
    /// The column: its position in `table.columns`.
    pub(crate) column: usize,
    vector: TypedTerm,
    is_descending: bool,
}

/// The ANN orderings of a SELECT, with their terms typed.
pub(crate) fn ann_orderings(
    typer: &mut TypeChecker<'_>,
    table: &Table,
    order_by: &[OrderBy],
) -> Result<Vec<AnnOrdering>, Error> {
    let mut all = Vec::new();
    for order in order_by {
        match order {
            OrderBy::Column(name, _) => {
                column(table, name.as_str())?;
            }
            OrderBy::Ann(name, term, direction) => {
                let (place, column) = column(table, name.as_str())?;
                all.push(AnnOrdering {
                    column: place,
                    vector: typer.term(term, &ColumnSpec::column(column))?,
                    is_descending: *direction == Direction::Descending,
                });
            }
        }
    }
    Ok(all)
}

/// The only ANN ordering, if any. Refuses several, one beside other orderings, and DESC.
pub(crate) fn single(mut found: Vec<AnnOrdering>, orderings: usize) -> Result<Option<AnnOrdering>, Error> {
    if found.len() > 1 {
        return Err(AnnRefusal::Several.into());
    }
    let Some(only) = found.pop() else { return Ok(None) };
    if orderings > 1 {
        return Err(AnnRefusal::OtherOrdering.into());
    }
    if only.is_descending {
        return Err(AnnRefusal::Descending.into());
    }
    Ok(Some(only))
}

fn is_float_vector(column: &Column) -> bool {
    matches!(&column.ty, CqlType::Vector(of, _) if **of == CqlType::Native(Native::Float))
}

/// The storage-attached index of a vector column.
fn index_of<'t>(table: &'t Table, column: &Column) -> Option<&'t Index> {
    table.indexes.values().find(|index| {
        index.family() == Some(IndexFamily::Sai) && index.target_column().is_some_and(|(_, name)| name == column.name)
    })
}

/// Refuses restrictions beside an ANN ordering that only a legacy index answers. Cassandra fails on them with a server error.
pub(crate) fn refuse_legacy(table: &Table, found: &Restrictions) -> Result<(), Error> {
    let has_sai = |place: usize| {
        let name = &column_at(table, place).name;
        let mut indexes = table.indexes.values();
        indexes.any(|index| {
            index.family() == Some(IndexFamily::Sai) && index.target_column().is_some_and(|(_, column)| column == *name)
        })
    };
    if found.others.iter().all(|restriction| has_sai(restriction.first())) {
        return Ok(());
    }
    Err(AnnRefusal::Filtered.into())
}

/// Whether a storage-attached index of the vectors in a collection would answer a CONTAINS or CONTAINS KEY.
pub(crate) fn contains_vector(table: &Table, found: &Restrictions) -> bool {
    found.others.iter().any(|restriction| {
        let Test::Contains { values, keys, .. } = &restriction.test else {
            return false;
        };
        indexes_of_vectors(table, column_at(table, restriction.first())).any(|(part, _)| match part {
            IndexPart::Values => !values.is_empty(),
            IndexPart::Keys => !keys.is_empty(),
            IndexPart::Value | IndexPart::Entries | IndexPart::Full => false,
        })
    })
}

/// Why such a CONTAINS is refused. Cassandra takes the index for one that ANN orderings use: it asks for a LIMIT, and fails with a server error
/// if there is one.
#[cold]
pub(crate) fn refuse_contains(limit_rows: Option<u32>) -> Error {
    let rows = limit_rows.unwrap_or(i32::MAX.unsigned_abs());
    if rows > LIMIT_MAX {
        return AnnRefusal::ContainsLimit(rows).into();
    }
    AnnRefusal::Contains.into()
}

/// Whether the column has any index.
fn is_indexed(table: &Table, place: usize) -> bool {
    let name = &column_at(table, place).name;
    let mut indexes = table.indexes.values();
    indexes.any(|index| index.target_column().is_some_and(|(_, column)| column == *name))
}

impl AnnOrdering {
    /// Whether an index answers the ordering.
    pub(crate) fn is_supported(&self, table: &Table) -> bool {
        let column = column_at(table, self.column);
        is_float_vector(column) && index_of(table, column).is_some()
    }

    /// Refuses a restriction on the vector column itself.
    pub(crate) fn refuse_restricted(&self, table: &Table, found: &Restrictions) -> Result<(), Error> {
        let mut others = found.others.iter();
        let Some(restriction) = others.find(|restriction| restriction.columns.contains(&self.column)) else {
            return Ok(());
        };
        let name = &column_at(table, self.column).name;
        if restriction.is_slice() {
            return Err(RestrictionRefusal::EqualBesideSlice(name.clone()).into());
        }
        Err(RestrictionRefusal::BesideEqual(name.clone()).into())
    }

    /// Refuses restrictions that an ANN ordering does not permit beside it.
    pub(crate) fn check(&self, table: &Table, found: &Restrictions) -> Result<(), Error> {
        let column = column_at(table, self.column);
        if !is_float_vector(column) {
            return Err(AnnRefusal::NotFloatVector.into());
        }
        if !is_indexed(table, self.column) {
            return Err(AnnRefusal::NotIndexed.into());
        }
        if found.partition_filters {
            return Err(AnnRefusal::Filtered.into());
        }
        let mut others = found.others.iter().map(Restriction::first);
        let mut clustering = found.clustering.iter().flat_map(|restriction| &restriction.columns);
        let is_key_open = found.partition.len() < table.partition_key_count || found.clustering_skips;
        if others.any(|place| !is_indexed(table, place))
            || (is_key_open && clustering.any(|place| !is_indexed(table, *place)))
        {
            return Err(AnnRefusal::Filtered.into());
        }
        Ok(())
    }

    /// The plan of this ordering.
    pub(crate) fn plan(self, table: &Table) -> Result<AnnPlan, Error> {
        let column = column_at(table, self.column);
        let Some(index) = index_of(table, column) else {
            return Err(AnnRefusal::NotIndexed.into());
        };
        let option = index.options.get("similarity_function");
        Ok(AnnPlan {
            column: self.column,
            index: index.name.clone(),
            similarity: option.and_then(|name| Similarity::of_option(name)).unwrap_or_default(),
            vector: self.vector,
        })
    }
}

impl AnnPlan {
    /// The search with its vector bound.
    pub(crate) fn bind(&self, table: &Table, binding: &Binding<'_>) -> Result<Nearest, Error> {
        let name = &column_at(table, self.column).name;
        let bytes = match self.vector.bind(binding)? {
            Value::Null => return Err(AnnRefusal::Null(name.clone()).into()),
            Value::Unset => return Err(AnnRefusal::Unset(name.clone()).into()),
            Value::Bytes(bytes) => bytes,
        };
        let vector = floats(&bytes);
        refuse(&vector, self.similarity)?;
        Ok(Nearest {
            column: self.column,
            index: self.index.clone(),
            similarity: self.similarity,
            vector,
        })
    }
}

fn float(value: f32) -> String {
    CqlType::Native(Native::Float).to_literal(&value.to_be_bytes())
}

/// Refuses a vector that cannot be compared with others, with the message that Cassandra writes to its log.
///
/// Cassandra detects this so late that a client learns only that the replica failed (0x1300, 0x1500). The same code is sent here, with the reason
/// in addition.
fn refuse(vector: &[f32], similarity: Similarity) -> Result<(), Error> {
    if let Some((place, value)) = vector.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(AnnRefusal::NonFinite {
            place,
            value: float(*value),
        }
        .into());
    }
    if let Some((place, value)) = vector.iter().enumerate().find(|(_, value)| value.abs() > ELEMENT_MAX) {
        return Err(AnnRefusal::OutOfBounds {
            place,
            value: float(*value),
        }
        .into());
    }
    if similarity == Similarity::Cosine && vector.iter().all(|value| *value == 0.0) {
        return Err(AnnRefusal::Zero.into());
    }
    Ok(())
}

/// Refuses written vectors that a storage-attached index of their column cannot store.
pub(crate) fn refuse_written(table: &Table, column: &Column, operation: &ColumnChange) -> Result<(), Error> {
    for (part, similarity) in indexes_of_vectors(table, column) {
        let mut written = written(
            operation,
            part == IndexPart::Keys || matches!(column.ty, CqlType::Set(_)),
        );
        written.try_for_each(|vector| refuse(&floats(vector), similarity))?;
    }
    Ok(())
}

/// Refuses such a vector in the key of a written row.
pub(crate) fn refuse_value(table: &Table, column: &Column, vector: &Bytes) -> Result<(), Error> {
    indexes_of_vectors(table, column).try_for_each(|(_, similarity)| refuse(&floats(vector), similarity))
}

/// The storage-attached vector indexes of a column: the part that each stores, and its similarity function.
fn indexes_of_vectors<'t>(table: &'t Table, column: &'t Column) -> impl Iterator<Item = (IndexPart, Similarity)> + 't {
    let has_vectors = !table.indexes.is_empty() && column.ty.contains(&|ty| matches!(ty, CqlType::Vector(..)));
    let indexes = table.indexes.values().filter(move |_| has_vectors);
    indexes.filter_map(|index| {
        let (part, name) = index.target_column()?;
        let option = index.options.get("similarity_function");
        let similarity = option.and_then(|name| Similarity::of_option(name)).unwrap_or_default();
        (name == column.name && index.is_of_vectors(table)).then_some((part, similarity))
    })
}

/// The values that an operation writes, or the keys of its elements.
fn written(operation: &ColumnChange, keys: bool) -> Box<dyn Iterator<Item = &Bytes> + '_> {
    match operation {
        ColumnChange::Set(Value::Bytes(value)) | ColumnChange::SetAt(_, Some(value)) => {
            Box::new(std::iter::once(value))
        }
        ColumnChange::Replace(elements) if keys => Box::new(elements.iter().filter_map(|(key, _)| key.as_ref())),
        ColumnChange::Replace(elements) => Box::new(elements.iter().map(|(_, value)| value)),
        ColumnChange::Put(elements) if keys => {
            let put = elements.iter().filter(|(_, value)| value.is_some());
            Box::new(put.map(|(key, _)| key))
        }
        ColumnChange::Put(elements) => Box::new(elements.iter().filter_map(|(_, value)| value.as_ref())),
        ColumnChange::Append(values) | ColumnChange::Prepend(values) => Box::new(values.iter()),
        ColumnChange::Set(_)
        | ColumnChange::SetAt(_, None)
        | ColumnChange::Remove(_)
        | ColumnChange::Discard(_)
        | ColumnChange::Increment(_)
        | ColumnChange::Sum(_)
        | ColumnChange::Version => Box::new(std::iter::empty()),
    }
}
