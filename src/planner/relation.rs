//! One relation of a WHERE: what it says of which columns, with its terms typed.

use std::sync::Arc;

use grammar::ast::{Operator, Relation, RelationTarget, RelationValue, Term};

use super::error::{Error, invalid};
use super::index;
use super::judge::Judge;
use super::restriction::{Kind, Operand, Restriction, Restrictions, SliceBound, Test, column, column_at, names};
use super::term::{Receiver, type_name};
use super::text::{Joined, RelationText, TermText, relation_sign};
use super::value;
use crate::schema::{Column, ColumnKind};
use crate::types::{CqlType, Native};

impl Judge<'_, '_> {
    pub(crate) fn relation(&mut self, relation: &Relation, found: &mut Restrictions) -> Result<(), Error> {
        let operator = relation.operator;
        if matches!(operator, Operator::Contains | Operator::ContainsKey)
            && matches!(self.kind, Kind::Update | Kind::Delete)
        {
            return invalid!("Cannot use {} with {}", self.kind.name(), relation_sign(operator));
        }
        match &relation.target {
            RelationTarget::Index(name) => {
                found.custom.push(name.as_str().to_owned());
                Ok(())
            }
            _ if operator == Operator::IsNotNull => invalid!("Unsupported restriction: {}", RelationText(relation)),
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
            Operator::Neq => return invalid!("Unsupported \"!=\" relation: {}", RelationText(relation)),
            Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte if column.ty.contains_duration() => {
                let what = match column.ty.unfrozen() {
                    CqlType::Tuple(_) => "tuples containing durations",
                    CqlType::User(_) => "UDTs containing durations",
                    CqlType::Native(_) => "duration columns",
                    _ => "collections containing durations",
                };
                return invalid!("Slice restrictions are not supported on {what}");
            }
            _ => {}
        }
        let receiver = self.receivable(&column, key, operator)?;
        if let Some(key) = key {
            let CqlType::Map(key_type, value_type) = column.ty.unfrozen() else {
                return invalid!("Column {} cannot be used as a map", column.name);
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
                    return invalid!(
                        "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                        RelationText(relation)
                    );
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

    fn in_test(&mut self, relation: &Relation, receiver: &Receiver) -> Result<Test, Error> {
        match &relation.value {
            RelationValue::Terms(terms) => {
                let mut operands = Vec::with_capacity(terms.len());
                for term in terms {
                    operands.push(Operand::One(self.typer.term(term, receiver)?));
                }
                // One value is an equality.
                if operands.len() == 1
                    && let Some(only) = operands.pop()
                {
                    return Ok(Test::Eq(only));
                }
                Ok(Test::In(operands))
            }
            _ => {
                let list = CqlType::List(Arc::new(receiver.ty.clone()));
                let receiver = Receiver::new(format!("in({})", receiver.name), list);
                Ok(Test::InMarker(self.typer.term(one_term(relation)?, &receiver)?))
            }
        }
    }

    /// What the right side of a relation on this column is given to (`SingleColumnRelation.toReceivers`).
    fn receivable(&self, column: &Column, key: Option<&Term>, operator: Operator) -> Result<Receiver, Error> {
        let (name, bare) = (&column.name, column.ty.unfrozen());
        if operator == Operator::ContainsKey && !matches!(bare, CqlType::Map(..)) {
            return invalid!("Cannot use CONTAINS KEY on non-map column {name}");
        }
        if operator == Operator::Contains && !value::is_collection(bare) {
            return invalid!("Cannot use CONTAINS on non-collection column {name}");
        }
        if key.is_some() {
            if matches!(bare, CqlType::List(_)) {
                return invalid!("Indexes on list entries ({name}[index] = value) are not currently supported.");
            }
            if !matches!(bare, CqlType::Map(..)) {
                return invalid!("Column {name} cannot be used as a map");
            }
            if !column.ty.is_multi_cell() {
                return invalid!("Map-entry equality predicates on frozen map column {name} are not supported");
            }
            if operator != Operator::Eq {
                return Err(Error::invalid("Only EQ relations are supported on map entries"));
            }
        }
        if matches!(column.ty, CqlType::User(_)) {
            return invalid!(
                "Non-frozen UDT column '{name}' ({}) cannot be restricted by any relation",
                type_name(&column.ty)
            );
        }
        let receiver = Receiver::column(column);
        if value::is_collection(bare) {
            let legal = key.is_some() || matches!(operator, Operator::Contains | Operator::ContainsKey);
            if column.ty.is_multi_cell() && !legal {
                return invalid!(
                    "Collection column '{name}' ({}) cannot be restricted by a '{}' relation",
                    type_name(&column.ty),
                    relation_sign(operator)
                );
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
            return invalid!(
                "Unsupported \"{}\" relation: {}",
                relation_sign(relation.operator),
                RelationText(relation)
            );
        }
        for name in columns {
            let (index, column) = column(&table, name.as_str())?;
            if column.kind != ColumnKind::Clustering {
                return invalid!(
                    "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                    column.name
                );
            }
            if found.contains(&index) {
                return invalid!(
                    "Column \"{}\" appeared twice in a relation: {}",
                    column.name,
                    RelationText(relation)
                );
            }
            if found.last().is_some_and(|last| index != last + 1) {
                return invalid!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                    RelationText(relation)
                );
            }
            found.push(index);
        }
        let receivers: Vec<Receiver> = found
            .iter()
            .map(|index| Receiver::column(column_at(&table, *index)))
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
                    Test::InMarker(self.typer.term(one_term(relation)?, &Receiver::new(name, ty))?)
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

    /// A tuple's literal, each element with its column's name, or one marker for all.
    fn tuple_operand(&mut self, term: &Term, receivers: &[Receiver]) -> Result<Operand, Error> {
        match term {
            Term::Tuple(elements) => {
                if elements.len() != receivers.len() {
                    return invalid!(
                        "Expected {} elements in value tuple, but got {}: {}",
                        receivers.len(),
                        elements.len(),
                        TermText(term)
                    );
                }
                let mut typed = Vec::with_capacity(elements.len());
                for (element, receiver) in elements.iter().zip(receivers) {
                    typed.push(self.typer.term(element, receiver)?);
                }
                Ok(Operand::Each(typed))
            }
            _ => {
                let receiver = Receiver::new(tuple_name(receivers), tuple_type(receivers));
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
                Operator::In => Err(Error::invalid("IN cannot be used with the token function")),
                operator => invalid!(
                    "Unsupported \"{}\" relation: {}",
                    relation_sign(operator),
                    RelationText(relation)
                ),
            };
        }
        let count = table.partition_key_count;
        if !(0..count).all(|component| places.contains(&component)) {
            return Err(Error::invalid(
                "The token() function must be applied to all partition key components or none of them",
            ));
        }
        if places.iter().any(|place| *place >= count) {
            return Err(Error::invalid(
                "The token() function must contains only partition key components",
            ));
        }
        if places.len() > count {
            return Err(Error::invalid(
                "The token() function contains duplicate partition key components",
            ));
        }
        if !places.iter().copied().eq(0..count) {
            let all: Vec<usize> = (0..count).collect();
            return invalid!(
                "The token function arguments must be in the partition key order: {}",
                names(&table, &all)
            );
        }
        let receiver = Receiver::new("partition key token", CqlType::Native(Native::Bigint));
        let term = self.typer.term(one_term(relation)?, &receiver)?;
        let token = found.token.get_or_insert_default();
        let columns = || names(&table, &places);
        if token.eq.is_some() {
            return invalid!(
                "{} cannot be restricted by more than one relation if it includes an Equal",
                columns()
            );
        }
        match relation.operator {
            Operator::Eq => {
                if token.lower.is_some() || token.upper.is_some() {
                    return invalid!(
                        "Columns \"{}\" cannot be restricted by both an equality and an inequality relation",
                        columns()
                    );
                }
                token.eq = Some(term);
            }
            Operator::Gt | Operator::Gte => {
                if token.lower.is_some() {
                    return invalid!(
                        "More than one restriction was found for the start bound on {}",
                        columns()
                    );
                }
                token.lower = Some((term, relation.operator == Operator::Gte));
            }
            _ => {
                if token.upper.is_some() {
                    return invalid!("More than one restriction was found for the end bound on {}", columns());
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
        _ => invalid!("Unsupported restriction: {}", RelationText(relation)),
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
fn tuple_name(receivers: &[Receiver]) -> String {
    let names: Vec<&str> = receivers.iter().map(|receiver| receiver.name.as_str()).collect();
    format!("({})", Joined(&names, ","))
}

fn tuple_type(receivers: &[Receiver]) -> CqlType {
    CqlType::Tuple(receivers.iter().map(|receiver| receiver.ty.clone()).collect())
}
