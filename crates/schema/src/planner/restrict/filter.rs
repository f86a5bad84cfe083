//! Row filters: the restrictions of a WHERE clause that select no keys or ranges.

use super::super::error::Error;
use super::super::refusal::{BoundRefusal, RestrictionRefusal};
use super::super::restriction::{Operand, Restriction, Test, slice_comparison};
use super::super::term::{Binding, TypedTerm};
use super::super::{index, value};
use super::at;
use crate::command::{Comparison, FilterTarget, Like, Predicate, Value};
use crate::schema::Table;
use helenus_types::types::{CqlType, Native};

/// A filter that is tested on each row, before binding.
#[derive(Clone, Debug)]
pub(crate) struct FilterPlan {
    target: TargetPlan,
    comparison: Comparison,
    operands: Operands,
    ty: CqlType,
    column: usize,
}

#[derive(Clone, Debug)]
enum TargetPlan {
    Column(usize),
    Element(usize, TypedTerm),
    Tuple(Vec<usize>),
    /// No row can be tested: the statement is refused.
    Refused,
}

#[derive(Clone, Debug)]
enum Operands {
    Each(Vec<Operand>),
    List(TypedTerm),
}

/// The target and type of one bound of a slice, which may have fewer columns than the other bound.
fn cut_to(operand: &Operand, target: &TargetPlan, ty: &CqlType) -> (TargetPlan, CqlType) {
    let width = match operand {
        Operand::One(_) => 1,
        Operand::Each(terms) => terms.len(),
        Operand::Tuple(TypedTerm::Marker(_, of)) => match of.unfrozen() {
            CqlType::Tuple(types) => types.len(),
            _ => usize::MAX,
        },
        Operand::Tuple(_) => usize::MAX,
    };
    match (target, ty, operand) {
        (TargetPlan::Tuple(columns), CqlType::Tuple(types), Operand::One(_)) => {
            match (columns.first(), types.first()) {
                (Some(column), Some(of)) => (TargetPlan::Column(*column), of.clone()),
                _ => (target.clone(), ty.clone()),
            }
        }
        (TargetPlan::Tuple(columns), CqlType::Tuple(types), _) if width < columns.len() => {
            let columns: Vec<usize> = columns.iter().take(width).copied().collect();
            let types: Vec<CqlType> = types.iter().take(width).cloned().collect();
            (TargetPlan::Tuple(columns), CqlType::Tuple(types.into()))
        }
        _ => (target.clone(), ty.clone()),
    }
}

impl FilterPlan {
    /// In the place of a slice of several columns, which is refused once the filters before it are bound.
    pub(crate) fn refused() -> Self {
        Self {
            target: TargetPlan::Refused,
            comparison: Comparison::Eq,
            operands: Operands::Each(Vec::new()),
            ty: CqlType::Native(Native::Empty),
            column: 0,
        }
    }

    /// The filters of a restriction.
    #[expect(clippy::too_many_lines, reason = "one arm for each test of a restriction")]
    pub(crate) fn of(table: &Table, restriction: &Restriction) -> Vec<Self> {
        let first = restriction.columns.first().copied().unwrap_or_default();
        let plan = |comparison, operands: Operands, target: TargetPlan, ty: CqlType| Self {
            target,
            comparison,
            operands,
            ty,
            column: first,
        };
        let column = at(table, first);
        let (target, ty) = if restriction.multi {
            let types = restriction
                .columns
                .iter()
                .map(|index| at(table, *index).ty.clone())
                .collect();
            (TargetPlan::Tuple(restriction.columns.clone()), CqlType::Tuple(types))
        } else {
            (TargetPlan::Column(first), column.ty.clone())
        };
        match &restriction.test {
            Test::Eq(operand) => vec![plan(Comparison::Eq, Operands::Each(vec![operand.clone()]), target, ty)],
            Test::In(operands) => vec![plan(Comparison::In, Operands::Each(operands.clone()), target, ty)],
            Test::InMarker(term) => vec![plan(Comparison::In, Operands::List(term.clone()), target, ty)],
            Test::Like(term) => vec![plan(
                Comparison::Like,
                Operands::Each(vec![Operand::One(term.clone())]),
                target,
                ty,
            )],
            Test::Slice { lower, upper } => {
                let ends = [(true, lower), (false, upper)];
                ends.into_iter()
                    .filter_map(|(is_lower, bound)| {
                        let bound = bound.as_ref()?;
                        let comparison = slice_comparison(is_lower, bound.inclusive);
                        let (target, ty) = cut_to(&bound.operand, &target, &ty);
                        Some(plan(
                            comparison,
                            Operands::Each(vec![bound.operand.clone()]),
                            target,
                            ty,
                        ))
                    })
                    .collect()
            }
            Test::Contains { values, keys, entries } => {
                let (key_type, value_type) = match column.ty.unfrozen() {
                    CqlType::Map(key, of) => ((**key).clone(), (**of).clone()),
                    CqlType::List(of) | CqlType::Set(of) => ((**of).clone(), (**of).clone()),
                    other => (other.clone(), other.clone()),
                };
                let one = |term: &TypedTerm| Operands::Each(vec![Operand::One(term.clone())]);
                let values = values.iter().map(|term| {
                    plan(
                        Comparison::Contains,
                        one(term),
                        TargetPlan::Column(first),
                        value_type.clone(),
                    )
                });
                let keys = keys.iter().map(|term| {
                    plan(
                        Comparison::ContainsKey,
                        one(term),
                        TargetPlan::Column(first),
                        key_type.clone(),
                    )
                });
                let entries = entries.iter().map(|(key, term)| {
                    plan(
                        Comparison::Eq,
                        one(term),
                        TargetPlan::Element(first, key.clone()),
                        value_type.clone(),
                    )
                });
                values.chain(keys).chain(entries).collect()
            }
        }
    }

    /// Positions of the columns that it tests.
    pub(crate) fn columns(&self) -> Vec<usize> {
        match &self.target {
            TargetPlan::Column(column) | TargetPlan::Element(column, _) => vec![*column],
            TargetPlan::Tuple(columns) => columns.clone(),
            TargetPlan::Refused => Vec::new(),
        }
    }

    /// The filter with bound values, if Cassandra selects clustering keys by its restriction. There, null sorts before every value in
    /// either direction. `None` means that each row passes.
    /// `looks_up`: an index may find the rows, and then values are compared as the index does.
    pub(crate) fn bind_of_keys(
        &self,
        table: &Table,
        binding: &Binding<'_>,
        looks_up: bool,
    ) -> Result<Option<Predicate>, Error> {
        match self.bind_to(table, binding, looks_up) {
            Err(Error::Bound(error)) if matches!(*error, BoundRefusal::NullFilter { .. }) => {
                let is_lower = matches!(self.comparison, Comparison::Gt | Comparison::Gte);
                let passes = is_lower != at(table, self.column).descending;
                Ok((!passes).then(|| Predicate {
                    target: FilterTarget::Column(self.column),
                    comparison: Comparison::In,
                    operands: Vec::new(),
                    ty: self.ty.clone(),
                }))
            }
            bound => bound.map(Some),
        }
    }

    /// Filters with bound values.
    pub(crate) fn bind_all(plans: &[Self], table: &Table, binding: &Binding<'_>) -> Result<Vec<Predicate>, Error> {
        plans.iter().map(|plan| plan.bind(table, binding)).collect()
    }

    /// The filter with bound values, which are compared as an index of the column does.
    pub(crate) fn bind(&self, table: &Table, binding: &Binding<'_>) -> Result<Predicate, Error> {
        self.bind_to(table, binding, true)
    }

    #[expect(
        clippy::too_many_lines,
        reason = "the checks of a bound filter, in the order of the faults of Cassandra"
    )]
    fn bind_to(&self, table: &Table, binding: &Binding<'_>, looks_up: bool) -> Result<Predicate, Error> {
        let name = &at(table, self.column).name;
        let entry = matches!(self.target, TargetPlan::Element(..));
        let what = if entry { "map value" } else { "value" };
        let target = match &self.target {
            TargetPlan::Column(column) => FilterTarget::Column(*column),
            TargetPlan::Tuple(columns) => FilterTarget::Tuple(columns.clone()),
            TargetPlan::Refused => return Err(RestrictionRefusal::MultiColumnFilter.into()),
            TargetPlan::Element(column, key) => match key.bind(binding)? {
                Value::Null => return Err(BoundRefusal::NullMapKey(name.clone()).into()),
                Value::Unset => return Err(BoundRefusal::UnsetMapKey(name.clone()).into()),
                key => FilterTarget::Element(*column, key),
            },
        };
        let mut operands = match &self.operands {
            Operands::Each(each) => each
                .iter()
                .map(|operand| match operand {
                    Operand::One(term) | Operand::Tuple(term) => term.bind(binding),
                    Operand::Each(terms) => {
                        let values = terms
                            .iter()
                            .map(|term| term.bind(binding))
                            .collect::<Result<Vec<_>, _>>()?;
                        value::construct(&self.ty, values).map(Value::Bytes)
                    }
                })
                .collect::<Result<Vec<_>, _>>()?,
            Operands::List(term) => match term.bind_list(binding)? {
                Ok(elements) => elements.into_iter().flatten().map(Value::Bytes).collect(),
                Err(Value::Unset) => return Err(BoundRefusal::Unset(name.clone()).into()),
                Err(_) => return Err(BoundRefusal::Null(name.clone()).into()),
            },
        };
        if self.comparison == Comparison::In && matches!(self.operands, Operands::Each(_)) {
            // Cassandra drops unset values from `IN (?, ?)`.
            operands.retain(|operand| *operand != Value::Unset);
        }
        if operands.contains(&Value::Unset) {
            return Err(BoundRefusal::UnsetFilter {
                what,
                column: name.clone(),
            }
            .into());
        }
        if self.comparison == Comparison::In {
            // Nothing equals null.
            operands.retain(|operand| *operand != Value::Null);
        } else if operands.contains(&Value::Null) {
            return Err(BoundRefusal::NullFilter {
                what,
                column: name.clone(),
            }
            .into());
        }
        let mut comparison = self.comparison;
        let target = match (target, operands.as_slice()) {
            (FilterTarget::Column(column), [Value::Bytes(operand)]) if looks_up && !table.indexes.is_empty() => {
                if comparison == Comparison::Eq && operand.is_empty() && index::skips_empty_texts(table, column) {
                    comparison = Comparison::In;
                    operands.clear();
                    FilterTarget::Column(column)
                } else if comparison == Comparison::Like {
                    let Some((kind, text)) = Like::of(operand) else {
                        return Err(BoundRefusal::EmptyLike.into());
                    };
                    FilterTarget::Analysed(column, index::like(table, column, kind, text)?)
                } else {
                    match index::analysis(table, column, comparison) {
                        Some(analysis) => FilterTarget::Analysed(column, analysis),
                        None => FilterTarget::Column(column),
                    }
                }
            }
            (target, _) => target,
        };
        Ok(Predicate {
            target,
            comparison,
            operands,
            ty: self.ty.clone(),
        })
    }
}
