//! One relation of a WHERE: the columns that it restricts and how, with its terms typed.

use std::sync::Arc;

use grammar::ast::{Operator, Relation, RelationTarget, RelationValue, Term};

use super::error::Error;
use super::index;
use super::refusal::RestrictionRefusal;
use super::restriction::{Kind, Operand, Restriction, Restrictions, SliceBound, Test, column, column_at, names};
use super::term::{ColumnSpec, type_name};
use super::text::{Joined, RelationText, TermText};
use super::validate::RestrictionValidator;
use super::value;
use crate::schema::{Column, ColumnKind};
use helenus_types::types::{CqlType, Native};

impl RestrictionValidator<'_, '_> {
    pub(crate) fn relation(&mut self, relation: &Relation, found: &mut Restrictions) -> Result<(), Error> {
        let operator = relation.operator;
        if matches!(operator, Operator::Contains | Operator::ContainsKey)
            && matches!(self.kind, Kind::Update | Kind::Delete)
        {
            return Err(RestrictionRefusal::ContainsInWrite {
                statement: self.kind.name(),
                operator,
            }
            .into());
        }
        match &relation.target {
            RelationTarget::Index(name) => {
                found.custom.push(name.as_str().to_owned());
                Ok(())
            }
            // A SELECT takes these out before.
            RelationTarget::Feed(_) => Err(RestrictionRefusal::Form(RelationText(relation).to_string()).into()),
            _ if operator == Operator::IsNotNull => {
                Err(RestrictionRefusal::Form(RelationText(relation).to_string()).into())
            }
            RelationTarget::Column(name) => {
                let (index, _) = column(&self.table, name.as_str())?;
                let test = self.single(index, None, relation)?;
                self.add(
                    Restriction {
                        columns: vec![index],
                        multi: false,
                        test,
                    },
                    found,
                )
            }
            RelationTarget::Element(name, key) => {
                let (index, _) = column(&self.table, name.as_str())?;
                let test = self.single(index, Some(key), relation)?;
                self.add(
                    Restriction {
                        columns: vec![index],
                        multi: false,
                        test,
                    },
                    found,
                )
            }
            RelationTarget::Tuple(columns) => {
                let restriction = self.multi(columns, relation)?;
                self.add(restriction, found)
            }
            RelationTarget::Token(columns) => self.token(columns, relation, found),
        }
    }

    /// A relation on one column, or on one entry of it.
    fn single(&mut self, place: usize, key: Option<&Term>, relation: &Relation) -> Result<Test, Error> {
        let column = self.table.columns.get(place).cloned().expect("a place in the table");
        let operator = relation.operator;
        match operator {
            Operator::Neq => {
                return Err(RestrictionRefusal::Operator {
                    operator,
                    relation: RelationText(relation).to_string(),
                }
                .into());
            }
            Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte if column.ty.contains_duration() => {
                let what = match column.ty.unfrozen() {
                    CqlType::Tuple(_) => "tuples containing durations",
                    CqlType::User(_) => "UDTs containing durations",
                    CqlType::Native(_) => "duration columns",
                    _ => "collections containing durations",
                };
                return Err(RestrictionRefusal::DurationSlice(what).into());
            }
            _ => {}
        }
        let receiver = self.receivable(&column, key, operator)?;
        if let Some(key) = key {
            let CqlType::Map(key_type, value_type) = column.ty.unfrozen() else {
                return Err(RestrictionRefusal::NotMap(column.name.clone()).into());
            };
            let entry_key = self.typer.term(key, &receiver.part("key", (**key_type).clone()))?;
            let term = one_term(relation)?;
            let entry_value = self.typer.term(term, &receiver.part("value", (**value_type).clone()))?;
            return Ok(Test::Contains {
                values: Vec::new(),
                keys: Vec::new(),
                entries: vec![(entry_key, entry_value)],
            });
        }
        match operator {
            Operator::Eq => Ok(Test::Eq(Operand::One(self.typer.term(one_term(relation)?, &receiver)?))),
            Operator::In => self.in_test(relation, &receiver),
            Operator::Like => {
                let restriction = Restriction {
                    columns: vec![place],
                    multi: false,
                    test: Test::Like(self.typer.term(one_term(relation)?, &receiver)?),
                };
                if self.kind != Kind::Select || !index::is_supported(&self.table, &restriction) {
                    return Err(RestrictionRefusal::LikeWithoutIndex(RelationText(relation).to_string()).into());
                }
                Ok(restriction.test)
            }
            Operator::Contains => Ok(Test::Contains {
                values: vec![self.typer.term(one_term(relation)?, &receiver)?],
                keys: Vec::new(),
                entries: Vec::new(),
            }),
            Operator::ContainsKey => Ok(Test::Contains {
                values: Vec::new(),
                keys: vec![self.typer.term(one_term(relation)?, &receiver)?],
                entries: Vec::new(),
            }),
            _ => {
                let operand = Operand::One(self.typer.term(one_term(relation)?, &receiver)?);
                Ok(slice(operator, operand))
            }
        }
    }

    fn in_test(&mut self, relation: &Relation, receiver: &ColumnSpec) -> Result<Test, Error> {
        match &relation.value {
            RelationValue::Terms(terms) => {
                let mut operands = Vec::with_capacity(terms.len());
                for term in terms {
                    operands.push(Operand::One(self.typer.term(term, receiver)?));
                }
                // IN with one value is an equality.
                if operands.len() == 1
                    && let Some(only) = operands.pop()
                {
                    return Ok(Test::Eq(only));
                }
                Ok(Test::In(operands))
            }
            _ => {
                let list = CqlType::List(Arc::new(receiver.ty.clone()));
                let receiver = ColumnSpec::new(format!("in({})", receiver.name), list);
                Ok(Test::InMarker(self.typer.term(one_term(relation)?, &receiver)?))
            }
        }
    }

    /// The receiver of the right side of a relation on this column (`SingleColumnRelation.toReceivers`).
    fn receivable(&self, column: &Column, key: Option<&Term>, operator: Operator) -> Result<ColumnSpec, Error> {
        let (name, bare) = (&column.name, column.ty.unfrozen());
        if operator == Operator::ContainsKey && !matches!(bare, CqlType::Map(..)) {
            return Err(RestrictionRefusal::ContainsKeyOutsideMap(name.clone()).into());
        }
        if operator == Operator::Contains && !value::is_collection(bare) {
            return Err(RestrictionRefusal::ContainsOutsideCollection(name.clone()).into());
        }
        if key.is_some() {
            if matches!(bare, CqlType::List(_)) {
                return Err(RestrictionRefusal::ListEntry(name.clone()).into());
            }
            if !matches!(bare, CqlType::Map(..)) {
                return Err(RestrictionRefusal::NotMap(name.clone()).into());
            }
            if !column.ty.is_multi_cell() {
                return Err(RestrictionRefusal::FrozenMapEntry(name.clone()).into());
            }
            if operator != Operator::Eq {
                return Err(RestrictionRefusal::MapEntryOperator.into());
            }
        }
        if matches!(column.ty, CqlType::User(_)) {
            return Err(RestrictionRefusal::MultiCellUdt {
                column: name.clone(),
                ty: type_name(&column.ty).to_string(),
            }
            .into());
        }
        let receiver = ColumnSpec::column(column);
        if value::is_collection(bare) {
            let legal = key.is_some() || matches!(operator, Operator::Contains | Operator::ContainsKey);
            if column.ty.is_multi_cell() && !legal {
                return Err(RestrictionRefusal::MultiCellCollection {
                    column: name.clone(),
                    ty: type_name(&column.ty).to_string(),
                    operator,
                }
                .into());
            }
            match (operator, bare) {
                (Operator::ContainsKey, CqlType::Map(of, _)) => return Ok(receiver.part("key", (**of).clone())),
                (Operator::Contains, CqlType::Map(_, of) | CqlType::List(of) | CqlType::Set(of)) => {
                    return Ok(receiver.part("value", (**of).clone()));
                }
                _ => {}
            }
        }
        Ok(receiver)
    }

    /// A relation on several clustering columns.
    fn multi(&mut self, columns: &[grammar::ast::Name], relation: &Relation) -> Result<Restriction, Error> {
        let table = Arc::clone(&self.table);
        let mut found: Vec<usize> = Vec::with_capacity(columns.len());
        if matches!(
            relation.operator,
            Operator::Neq | Operator::Like | Operator::Contains | Operator::ContainsKey
        ) {
            return Err(RestrictionRefusal::Operator {
                operator: relation.operator,
                relation: RelationText(relation).to_string(),
            }
            .into());
        }
        for name in columns {
            let (index, column) = column(&table, name.as_str())?;
            if column.kind != ColumnKind::Clustering {
                return Err(RestrictionRefusal::NotClustering(column.name.clone()).into());
            }
            if found.contains(&index) {
                return Err(RestrictionRefusal::TwiceInRelation {
                    column: column.name.clone(),
                    relation: RelationText(relation).to_string(),
                }
                .into());
            }
            if found.last().is_some_and(|last| index != last + 1) {
                return Err(RestrictionRefusal::ClusteringOrder(RelationText(relation).to_string()).into());
            }
            found.push(index);
        }
        let receivers: Vec<ColumnSpec> = found
            .iter()
            .map(|index| ColumnSpec::column(column_at(&table, *index)))
            .collect();
        let test = match relation.operator {
            Operator::Eq => Test::Eq(self.tuple_operand(one_term(relation)?, &receivers)?),
            Operator::In => match &relation.value {
                RelationValue::Terms(terms) => {
                    let mut operands = Vec::with_capacity(terms.len());
                    for term in terms {
                        operands.push(self.tuple_operand(term, &receivers)?);
                    }
                    if operands.len() == 1
                        && let Some(only) = operands.pop()
                    {
                        Test::Eq(only)
                    } else {
                        Test::In(operands)
                    }
                }
                _ => {
                    let ty = CqlType::List(Arc::new(tuple_type(&receivers)));
                    let name = format!("in{}", tuple_name(&receivers));
                    Test::InMarker(self.typer.term(one_term(relation)?, &ColumnSpec::new(name, ty))?)
                }
            },
            operator => slice(operator, self.tuple_operand(one_term(relation)?, &receivers)?),
        };
        Ok(Restriction {
            columns: found,
            multi: true,
            test,
        })
    }

    /// A tuple literal, whose elements are named after their columns, or one marker for the whole tuple.
    fn tuple_operand(&mut self, term: &Term, receivers: &[ColumnSpec]) -> Result<Operand, Error> {
        match term {
            Term::Tuple(elements) => {
                if elements.len() != receivers.len() {
                    return Err(RestrictionRefusal::TupleSize {
                        expected: receivers.len(),
                        found: elements.len(),
                        tuple: TermText(term).to_string(),
                    }
                    .into());
                }
                let mut typed = Vec::with_capacity(elements.len());
                for (element, receiver) in elements.iter().zip(receivers) {
                    typed.push(self.typer.term(element, receiver)?);
                }
                Ok(Operand::Each(typed))
            }
            _ => {
                let receiver = ColumnSpec::new(tuple_name(receivers), tuple_type(receivers));
                Ok(Operand::Tuple(self.typer.term(term, &receiver)?))
            }
        }
    }

    /// A relation on the partition key's token.
    fn token(
        &mut self,
        columns: &[grammar::ast::Name],
        relation: &Relation,
        found: &mut Restrictions,
    ) -> Result<(), Error> {
        let table = Arc::clone(&self.table);
        let mut places = Vec::with_capacity(columns.len());
        for name in columns {
            places.push(column(&table, name.as_str())?.0);
        }
        if matches!(
            relation.operator,
            Operator::Neq | Operator::Like | Operator::Contains | Operator::ContainsKey | Operator::In
        ) {
            return match relation.operator {
                Operator::In => Err(RestrictionRefusal::TokenIn.into()),
                _ => Err(RestrictionRefusal::Operator {
                    operator: relation.operator,
                    relation: RelationText(relation).to_string(),
                }
                .into()),
            };
        }
        let count = table.partition_key_count;
        if !(0..count).all(|component| places.contains(&component)) {
            return Err(RestrictionRefusal::TokenIncomplete.into());
        }
        if places.iter().any(|place| *place >= count) {
            return Err(RestrictionRefusal::TokenOfOthers.into());
        }
        if places.len() > count {
            return Err(RestrictionRefusal::TokenTwice.into());
        }
        if !places.iter().copied().eq(0..count) {
            let all: Vec<usize> = (0..count).collect();
            return Err(RestrictionRefusal::TokenOrder(names(&table, &all)).into());
        }
        let receiver = ColumnSpec::new("partition key token", CqlType::Native(Native::Bigint));
        let term = self.typer.term(one_term(relation)?, &receiver)?;
        let token = found.token.get_or_insert_default();
        let columns = || names(&table, &places);
        if token.eq.is_some() {
            return Err(RestrictionRefusal::BesideEqual(columns()).into());
        }
        match relation.operator {
            Operator::Eq => {
                if token.lower.is_some() || token.upper.is_some() {
                    return Err(RestrictionRefusal::TokenEqualBesideSlice(columns()).into());
                }
                token.eq = Some(term);
            }
            Operator::Gt | Operator::Gte => {
                if token.lower.is_some() {
                    return Err(RestrictionRefusal::TwoStarts(columns()).into());
                }
                token.lower = Some((term, relation.operator == Operator::Gte));
            }
            _ => {
                if token.upper.is_some() {
                    return Err(RestrictionRefusal::TwoEnds(columns()).into());
                }
                token.upper = Some((term, relation.operator == Operator::Lte));
            }
        }
        Ok(())
    }
}

fn one_term(relation: &Relation) -> Result<&Term, Error> {
    match &relation.value {
        RelationValue::Term(term) => Ok(term),
        _ => Err(RestrictionRefusal::Form(RelationText(relation).to_string()).into()),
    }
}

fn slice(operator: Operator, operand: Operand) -> Test {
    let inclusive = matches!(operator, Operator::Lte | Operator::Gte);
    let bound = Some(SliceBound { operand, inclusive });
    if matches!(operator, Operator::Gt | Operator::Gte) {
        Test::Slice {
            lower: bound,
            upper: None,
        }
    } else {
        Test::Slice {
            lower: None,
            upper: bound,
        }
    }
}

/// `(a,b)`
fn tuple_name(receivers: &[ColumnSpec]) -> String {
    let names: Vec<&str> = receivers.iter().map(|receiver| receiver.name.as_str()).collect();
    format!("({})", Joined(&names, ","))
}

fn tuple_type(receivers: &[ColumnSpec]) -> CqlType {
    CqlType::Tuple(receivers.iter().map(|receiver| receiver.ty.clone()).collect())
}
