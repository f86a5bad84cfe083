//! IF: the conditions under which a modification is applied.
//!
//! Source: Cassandra's `ColumnCondition`.

use std::sync::Arc;

use grammar::ast::{self, ConditionTarget, Operator, RelationValue};

use super::error::Error;
use super::operation::field_of;
use super::refusal::ConditionRefusal;
use super::restriction::column;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::typing::TypeChecker;
use super::value;
use crate::command::{Comparison, Condition, FilterTarget, Predicate, Value};
use crate::schema::{Column, ColumnKind, Table};
use helenus_types::types::{CqlType, Native};

/// The IF clause, before binding.
#[derive(Clone, Debug)]
pub(crate) enum ConditionPlan {
    /// No IF.
    Always,
    /// IF EXISTS.
    Exists,
    /// IF NOT EXISTS.
    NotExists,
    /// Conditions that must all hold.
    Columns(Vec<ColumnCondition>),
}

/// One condition.
#[derive(Clone, Debug)]
pub(crate) struct ColumnCondition {
    column: usize,
    part: Part,
    operator: Operator,
    operands: Operands,
    ty: CqlType,
    /// Whether the part is a list element, given by its position.
    list_element: bool,
}

#[derive(Clone, Debug)]
enum Part {
    Whole,
    Element(TypedTerm),
    Field(usize),
}

#[derive(Clone, Debug)]
enum Operands {
    Each(Vec<TypedTerm>),
    List(TypedTerm),
}

impl ConditionPlan {
    /// Whether there is an IF.
    pub(crate) fn is_conditional(&self) -> bool {
        !matches!(self, Self::Always)
    }

    /// Positions of the columns that it names.
    pub(crate) fn columns(&self) -> Vec<usize> {
        match self {
            Self::Columns(conditions) => conditions.iter().map(|condition| condition.column).collect(),
            _ => Vec::new(),
        }
    }

    /// The columns that a failed condition returns: regular ones in order of writing, then static ones.
    pub(crate) fn answer_columns(&self, table: &Table) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for wanted_static in [false, true] {
            for index in self.columns() {
                let is_static = table
                    .columns
                    .get(index)
                    .is_some_and(|column| column.kind == ColumnKind::Static);
                if is_static == wanted_static && !found.contains(&index) {
                    found.push(index);
                }
            }
        }
        found
    }

    /// The condition with bound values.
    pub(crate) fn bind(&self, _: &Table, binding: &Binding<'_>) -> Result<Condition, Error> {
        Ok(match self {
            Self::Always => Condition::Always,
            Self::Exists => Condition::Exists,
            Self::NotExists => Condition::NotExists,
            Self::Columns(conditions) => Condition::Columns(
                conditions
                    .iter()
                    .map(|condition| condition.bind(binding))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

impl ColumnCondition {
    #[expect(
        clippy::too_many_lines,
        reason = "the checks of a bound condition, in the order of the faults of Cassandra"
    )]
    fn bind(&self, binding: &Binding<'_>) -> Result<Predicate, Error> {
        let target = match &self.part {
            Part::Whole => FilterTarget::Column(self.column),
            Part::Field(index) => FilterTarget::Field(self.column, *index),
            Part::Element(key) => match key.bind(binding)? {
                Value::Unset if self.list_element => {
                    return Err(ConditionRefusal::Unset.into());
                }
                // No element has an unset key, so none is found.
                Value::Unset => FilterTarget::Element(self.column, Value::Unset),
                Value::Null => {
                    return Err(ConditionRefusal::NullElement(if self.list_element { "list" } else { "map" }).into());
                }
                key => {
                    if let (Value::Bytes(bytes), true) = (&key, self.list_element)
                        && let Some(index) = value::int(bytes)
                        && index < 0
                    {
                        return Err(ConditionRefusal::NegativeIndex(index).into());
                    }
                    FilterTarget::Element(self.column, key)
                }
            },
        };
        let mut operands = match &self.operands {
            Operands::Each(terms) => terms
                .iter()
                .map(|term| term.bind(binding))
                .collect::<Result<Vec<_>, _>>()?,
            Operands::List(term) => match term.bind_list(binding)? {
                Ok(elements) => elements
                    .into_iter()
                    .map(|element| element.map_or(Value::Null, Value::Bytes))
                    .collect(),
                Err(Value::Unset) => return Err(ConditionRefusal::Unset.into()),
                Err(_) => return Err(ConditionRefusal::NullList.into()),
            },
        };
        let contains = matches!(self.operator, Operator::Contains | Operator::ContainsKey);
        match self.operator {
            // Unset values are dropped from the list.
            Operator::In => operands.retain(|operand| *operand != Value::Unset),
            // The engine treats unset as a value that no collection contains.
            Operator::Contains | Operator::ContainsKey => {}
            _ if operands.contains(&Value::Unset) => {
                return Err(ConditionRefusal::Unset.into());
            }
            _ => {}
        }
        let orders = matches!(
            self.operator,
            Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte
        );
        if (orders || contains) && operands.contains(&Value::Null) {
            return Err(ConditionRefusal::CompareNull(self.operator).into());
        }
        if let (Part::Whole, false, Some(kind)) = (&self.part, contains, multi_cell_name(&self.ty)) {
            // An empty multi-cell collection is null, so an empty operand is compared as null.
            for operand in &mut operands {
                if matches!(operand, Value::Bytes(bytes) if value::int(bytes.get(..4).unwrap_or_default()) == Some(0)) {
                    if orders {
                        return Err(ConditionRefusal::CompareEmpty {
                            kind,
                            operator: self.operator,
                        }
                        .into());
                    }
                    *operand = Value::Null;
                }
            }
        }
        Ok(Predicate {
            target,
            comparison: comparison(self.operator),
            operands,
            ty: self.ty.clone(),
        })
    }
}

/// Cassandra's name of a multi-cell collection type; `None` for any other type.
const fn multi_cell_name(ty: &CqlType) -> Option<&'static str> {
    match ty {
        CqlType::List(_) => Some("list"),
        CqlType::Set(_) => Some("set"),
        CqlType::Map(..) => Some("map"),
        _ => None,
    }
}

const fn comparison(operator: Operator) -> Comparison {
    match operator {
        Operator::Eq | Operator::IsNotNull => Comparison::Eq,
        Operator::Neq => Comparison::Neq,
        Operator::Lt => Comparison::Lt,
        Operator::Lte => Comparison::Lte,
        Operator::Gt => Comparison::Gt,
        Operator::Gte => Comparison::Gte,
        Operator::In => Comparison::In,
        Operator::Contains => Comparison::Contains,
        Operator::ContainsKey => Comparison::ContainsKey,
        Operator::Like => Comparison::Like,
    }
}

/// Plans the conditions of an IF.
pub(crate) fn columns(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    conditions: &[ast::Condition],
) -> Result<Vec<ColumnCondition>, Error> {
    let mut found = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let name = match &condition.target {
            ConditionTarget::Column(name) | ConditionTarget::Element(name, _) | ConditionTarget::Field(name, _) => name,
        };
        let (index, column) = column(table, name.as_str())?;
        let read = one(typer, index, column, condition)?;
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(ConditionRefusal::KeyColumn(column.name.clone()).into());
        }
        found.push(read);
    }
    Ok(found)
}

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a condition, in the order of the faults of Cassandra"
)]
fn one(
    typer: &mut TypeChecker<'_>,
    index: usize,
    column: &Column,
    condition: &ast::Condition,
) -> Result<ColumnCondition, Error> {
    let name = &column.name;
    if column.ty == CqlType::Native(Native::Counter) {
        return Err(ConditionRefusal::Counter.into());
    }
    let receiver = ColumnSpec::column(column);
    let mut list_element = false;
    let (part, receiver) = match &condition.target {
        ConditionTarget::Column(_) => (Part::Whole, receiver),
        ConditionTarget::Element(_, key) => match column.ty.unfrozen() {
            CqlType::List(of) => {
                list_element = true;
                let key = typer.term(key, &receiver.part("idx", CqlType::Native(Native::Int)))?;
                (Part::Element(key), receiver.part("value", (**of).clone()))
            }
            CqlType::Map(of_key, of) => {
                let key = typer.term(key, &receiver.part("key", (**of_key).clone()))?;
                (Part::Element(key), receiver.part("value", (**of).clone()))
            }
            CqlType::Set(_) => return Err(ConditionRefusal::SetElement(name.clone()).into()),
            _ => return Err(ConditionRefusal::NoCollectionElement(name.clone()).into()),
        },
        ConditionTarget::Field(_, field) => {
            let CqlType::User(user) = column.ty.unfrozen() else {
                // Differs: Cassandra fails with a ClassCastException.
                return Err(ConditionRefusal::NoFields(name.clone()).into());
            };
            let Some((number, ty)) = field_of(user, field) else {
                return Err(ConditionRefusal::UnknownField {
                    field: field.as_str().to_owned(),
                    column: name.clone(),
                }
                .into());
            };
            (
                Part::Field(number),
                ColumnSpec::new(format!("{name}.{}", field.as_str()), ty.clone()),
            )
        }
    };
    let operator = condition.operator;
    if matches!(operator, Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte)
        && receiver.ty.contains_duration()
    {
        return match receiver.ty.unfrozen() {
            CqlType::Native(_) => Err(ConditionRefusal::DurationSlice(operator).into()),
            CqlType::Tuple(_) => Err(ConditionRefusal::DurationsSlice("tuples").into()),
            CqlType::User(_) => Err(ConditionRefusal::DurationsSlice("UDTs").into()),
            _ => Err(ConditionRefusal::DurationsSlice("collections").into()),
        };
    }
    let receiver = match (operator, receiver.ty.unfrozen()) {
        (Operator::Contains, CqlType::List(of) | CqlType::Set(of) | CqlType::Map(_, of)) => {
            receiver.part("value", (**of).clone())
        }
        (Operator::Contains, _) => return Err(ConditionRefusal::ContainsOutsideCollection(name.clone()).into()),
        (Operator::ContainsKey, CqlType::Map(key, _)) => receiver.part("key", (**key).clone()),
        (Operator::ContainsKey, _) => return Err(ConditionRefusal::ContainsKeyOutsideMap(name.clone()).into()),
        _ => receiver,
    };
    let operands = match (&condition.value, operator) {
        (RelationValue::Terms(terms), _) => {
            let typed = terms
                .iter()
                .map(|term| typer.term(term, &receiver))
                .collect::<Result<Vec<_>, _>>()?;
            Operands::Each(typed)
        }
        (RelationValue::Term(term), Operator::In) => {
            let list = CqlType::List(Arc::new(receiver.ty.clone()));
            Operands::List(typer.term(term, &ColumnSpec::new(format!("in({})", receiver.name), list))?)
        }
        (RelationValue::Term(term), _) => Operands::Each(vec![typer.term(term, &receiver)?]),
        (RelationValue::None, _) => return Err(ConditionRefusal::NoValue(name.clone()).into()),
    };
    Ok(ColumnCondition {
        column: index,
        part,
        operator,
        operands,
        ty: receiver.ty,
        list_element,
    })
}
