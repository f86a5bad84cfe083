//! WHERE: relations become restrictions on columns, merged as Cassandra merges them, refused in its words.
//!
//! ```text
//! relation  c = ?              → Restriction { columns: [c], kind: Eq }
//! merged    c > ? AND c < ?    → Restriction { columns: [c], kind: Slice { lower, upper } }
//! judged    Restrictions       → which narrow partitions, which narrow rows, which only filter
//! ```
//! Sources: Cassandra's `StatementRestrictions`, `SingleColumnRelation`, `MultiColumnRelation`, `TokenRelation`.

use std::sync::Arc;

use grammar::ast::{Operator, Relation, RelationTarget, RelationValue, Term};

use super::bound::Comparison;
use super::error::{Error, invalid};
use super::term::{Receiver, Typed, Typer, type_name};
use super::text::{Joined, RelationText, TermText, quoted, relation_sign};
use super::value;
use crate::schema::{Column, ColumnKind, Table};
use crate::types::{CqlType, Native};

/// Said whenever a SELECT would have to look at rows that it does not return.
pub(crate) const FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

/// What kind of statement a WHERE belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SELECT.
    Select,
    /// INSERT: its key columns are equalities.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl Kind {
    /// Its name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// What one or several columns are compared with.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// One column's value.
    One(Typed),
    /// Several columns' values, each a term.
    Each(Vec<Typed>),
    /// Several columns' values as one tuple.
    Tuple(Typed),
}

/// One end of a slice.
#[derive(Clone, Debug)]
pub(crate) struct SliceBound {
    /// The value.
    pub(crate) operand: Operand,
    /// `<=`, `>=`.
    pub(crate) inclusive: bool,
}

/// How columns are restricted.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// `=`
    Eq(Operand),
    /// `IN (a, b)`
    In(Vec<Operand>),
    /// `IN ?`
    InMarker(Typed),
    /// `>`, `<` and their kin.
    Slice {
        /// `>`, `>=`
        lower: Option<SliceBound>,
        /// `<`, `<=`
        upper: Option<SliceBound>,
    },
    /// `CONTAINS`, `CONTAINS KEY`, `m[k] = v`, any number of each.
    Contains {
        /// CONTAINS.
        values: Vec<Typed>,
        /// CONTAINS KEY.
        keys: Vec<Typed>,
        /// `m[k] = v`
        entries: Vec<(Typed, Typed)>,
    },
}

/// A restriction on one column, or on several clustering columns together.
#[derive(Clone, Debug)]
pub(crate) struct Restriction {
    /// Places in `table.columns`, one after the other.
    pub(crate) columns: Vec<usize>,
    /// Written with a tuple on the left.
    pub(crate) multi: bool,
    /// How.
    pub(crate) test: Test,
}

impl Restriction {
    pub(crate) fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice { .. })
    }

    pub(crate) fn is_contains(&self) -> bool {
        matches!(self.test, Test::Contains { .. })
    }

    fn first(&self) -> usize {
        self.columns.first().copied().unwrap_or_default()
    }

    pub(crate) fn last(&self) -> usize {
        self.columns.last().copied().unwrap_or_default()
    }
}

/// Restrictions on `token(partition key)`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenRestriction {
    /// `=`
    pub(crate) eq: Option<Typed>,
    /// `>`, `>=`
    pub(crate) lower: Option<(Typed, bool)>,
    /// `<`, `<=`
    pub(crate) upper: Option<(Typed, bool)>,
}

/// A WHERE after judgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restrictions {
    /// On partition key columns, by place.
    pub(crate) partition: Vec<Restriction>,
    /// On `token(…)`.
    pub(crate) token: Option<TokenRestriction>,
    /// On clustering columns, by place.
    pub(crate) clustering: Vec<Restriction>,
    /// On other columns, by place.
    pub(crate) others: Vec<Restriction>,
    /// Partitions are looked for over a range of tokens.
    pub(crate) is_key_range: bool,
    /// An index would be used.
    pub(crate) uses_index: bool,
    /// The partition key restrictions do not name partitions, and filter instead.
    pub(crate) partition_filters: bool,
    /// The clustering restrictions do not all narrow, and some filter instead.
    pub(crate) clustering_filters: bool,
}

/// Reads relations.
pub(crate) struct Judge<'a, 'b> {
    /// Gives terms their types.
    pub(crate) typer: &'a mut Typer<'b>,
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The statement's kind.
    pub(crate) kind: Kind,
    /// ALLOW FILTERING.
    pub(crate) allow_filtering: bool,
}

/// The column of this name, or Cassandra's refusal.
pub(crate) fn column<'t>(table: &'t Table, name: &str) -> Result<(usize, &'t Arc<Column>), Error> {
    table.column(name).ok_or_else(|| {
        Error::invalid(format!(
            "Undefined column name {} in table {}.{}",
            quoted(name),
            table.keyspace,
            table.name
        ))
    })
}

fn column_at(table: &Table, index: usize) -> &Column {
    table
        .columns
        .get(index)
        .expect("restrictions hold places of columns of their table")
}

fn names(table: &Table, columns: &[usize]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|index| column_at(table, *index).name.as_str())
        .collect();
    Joined(&names, ", ").to_string()
}

impl Judge<'_, '_> {
    /// Reads and merges all relations, then judges them.
    pub(crate) fn judge(mut self, relations: &[Relation], only_static: bool) -> Result<Restrictions, Error> {
        let mut found = Restrictions::default();
        for relation in relations {
            self.relation(relation, &mut found)?;
        }
        self.finish(found, only_static)
    }

    /// Judges restrictions that were made elsewhere: an INSERT's key columns.
    pub(crate) fn finish(&self, mut found: Restrictions, only_static: bool) -> Result<Restrictions, Error> {
        let vector = |restriction: &&Restriction| {
            matches!(restriction.test, Test::Eq(_))
                && matches!(column_at(&self.table, restriction.first()).ty, CqlType::Vector(..))
                && index_for(&self.table, restriction) == Some(true)
        };
        if self.kind == Kind::Select && found.others.iter().any(|restriction| vector(&restriction)) {
            return Err(Error::invalid("Vector indexes only support ANN queries"));
        }
        let index = self.kind == Kind::Select && self.has_index(&found);
        self.partition(&mut found, index)?;
        if only_static && !found.clustering.is_empty() {
            match self.kind {
                Kind::Update | Kind::Delete => {
                    return invalid!(
                        "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                        self.kind.name()
                    );
                }
                Kind::Select => {
                    return Err(Error::invalid(
                        "Cannot restrict clustering columns when selecting only static columns",
                    ));
                }
                Kind::Insert => {}
            }
        }
        self.clustering(&mut found, index, only_static)?;
        if !found.others.is_empty() {
            if self.kind != Kind::Select {
                let columns: Vec<usize> = found
                    .others
                    .iter()
                    .flat_map(|restriction| restriction.columns.clone())
                    .collect();
                return invalid!(
                    "Non PRIMARY KEY columns found in where clause: {} ",
                    names(&self.table, &columns)
                );
            }
            if index {
                found.uses_index = true;
            } else if !self.allow_filtering {
                return Err(Error::invalid(FILTERING));
            }
        }
        Ok(found)
    }

    fn relation(&mut self, relation: &Relation, found: &mut Restrictions) -> Result<(), Error> {
        let operator = relation.operator;
        if matches!(operator, Operator::Contains | Operator::ContainsKey)
            && matches!(self.kind, Kind::Update | Kind::Delete)
        {
            return invalid!("Cannot use {} with {}", self.kind.name(), relation_sign(operator));
        }
        match &relation.target {
            RelationTarget::Index(name) => {
                invalid!(
                    "Invalid index name {}: there is no such index on table {}.{}",
                    quoted(name.as_str()),
                    self.table.keyspace,
                    self.table.name
                )
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
    fn single(&mut self, index: usize, key: Option<&Term>, relation: &Relation) -> Result<Test, Error> {
        let column = self.table.columns.get(index).cloned().expect("a place in the table");
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
                self.typer.term(one_term(relation)?, &receiver)?;
                invalid!(
                    "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                    RelationText(relation)
                )
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

    /// Adds a restriction to those there are.
    pub(crate) fn add(&self, new: Restriction, found: &mut Restrictions) -> Result<(), Error> {
        let kind = column_at(&self.table, new.first()).kind;
        match kind {
            ColumnKind::PartitionKey => merge_into(&self.table, &mut found.partition, new).map(|_| ()),
            ColumnKind::Static | ColumnKind::Regular => merge_into(&self.table, &mut found.others, new).map(|_| ()),
            ColumnKind::Clustering => self.add_clustering(new, found),
        }
    }

    fn add_clustering(&self, new: Restriction, found: &mut Restrictions) -> Result<(), Error> {
        let was_empty = found.clustering.is_empty();
        let (first, is_slice) = (new.first(), new.is_slice());
        merge_into(&self.table, &mut found.clustering, new)?;
        if was_empty || self.allow_filtering {
            return Ok(());
        }
        let Some(last) = found.clustering.last() else {
            return Ok(());
        };
        // Cassandra looks at the last restriction after the merge, and at the one before where the new one came last.
        let before = found
            .clustering
            .iter()
            .rev()
            .find(|restriction| restriction.first() < first);
        if let Some(before) = before
            && before.is_slice()
            && found.clustering.last().is_some_and(|last| last.first() == first)
        {
            return invalid!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                column_at(&self.table, first).name,
                column_at(&self.table, before.first()).name
            );
        }
        if first < last.first() && is_slice {
            let next = found.clustering.iter().find(|restriction| restriction.first() > first);
            let next = next.map_or(first, Restriction::first);
            return invalid!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                column_at(&self.table, next).name,
                column_at(&self.table, first).name
            );
        }
        Ok(())
    }

    fn partition(&self, found: &mut Restrictions, index: bool) -> Result<(), Error> {
        let count = self.table.partition_key_count;
        let missing = found.partition.len() < count;
        if self.kind == Kind::Select {
            if found.token.is_some() || found.partition.is_empty() {
                found.is_key_range = found.partition.len() < count;
                found.uses_index = index && found.partition.is_empty() && found.token.is_none();
            }
            let plain = |restriction: &Restriction| !restriction.is_slice() && !restriction.is_contains();
            let filters = !found.partition.is_empty() && (missing || !found.partition.iter().all(plain));
            if filters {
                if !self.allow_filtering && !index {
                    return Err(Error::invalid(FILTERING));
                }
                found.is_key_range = true;
                found.uses_index = index;
                found.partition_filters = true;
            }
            return Ok(());
        }
        if found.token.is_some() {
            return invalid!(
                "The token function cannot be used in WHERE clauses for {} statements",
                self.kind.name()
            );
        }
        if missing {
            let restricted: Vec<usize> = found.partition.iter().map(Restriction::first).collect();
            let rest: Vec<usize> = (0..count).filter(|index| !restricted.contains(index)).collect();
            return invalid!("Some partition key parts are missing: {}", names(&self.table, &rest));
        }
        if found.partition.iter().any(Restriction::is_slice) {
            return invalid!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {} statements",
                self.kind.name()
            );
        }
        Ok(())
    }

    fn clustering(&self, found: &mut Restrictions, index: bool, only_static: bool) -> Result<(), Error> {
        let start = self.table.partition_key_count;
        let slices = matches!(self.kind, Kind::Select | Kind::Delete);
        if !slices {
            if found.clustering.iter().any(Restriction::is_slice) {
                return invalid!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    self.kind.name()
                );
            }
            let restricted: Vec<usize> = found
                .clustering
                .iter()
                .flat_map(|restriction| restriction.columns.clone())
                .collect();
            if !only_static && restricted.len() < self.table.clustering_count {
                let rest: Vec<usize> = (start..start + self.table.clustering_count)
                    .filter(|index| !restricted.contains(index))
                    .collect();
                return invalid!("Some clustering keys are missing: {}", names(&self.table, &rest));
            }
            return Ok(());
        }
        if found.clustering.iter().any(Restriction::is_contains) && !index && !self.allow_filtering {
            return Err(Error::invalid(
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering",
            ));
        }
        let mut position = start;
        let mut filters = false;
        for restriction in &found.clustering {
            if restriction.is_contains() || position != restriction.first() {
                filters = true;
                break;
            }
            if !restriction.is_slice() {
                position = restriction.last() + 1;
            }
        }
        found.clustering_filters = filters;
        if filters {
            if index {
                found.uses_index = true;
            } else if !self.allow_filtering || self.kind != Kind::Select {
                let restricted = found
                    .clustering
                    .iter()
                    .flat_map(|restriction| restriction.columns.clone());
                for (expected, restricted) in (start..).zip(restricted) {
                    if expected != restricted {
                        return invalid!(
                            "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                            column_at(&self.table, restricted).name,
                            column_at(&self.table, expected).name
                        );
                    }
                }
            }
            let unusable = |restriction: &&Restriction| restriction.multi && restriction.is_slice();
            if found
                .clustering
                .iter()
                .skip(1)
                .any(|restriction| unusable(&restriction))
                || found
                    .clustering
                    .first()
                    .is_some_and(|first| unusable(&first) && first.first() != start)
            {
                return Err(Error::invalid(
                    "Multi-column slice restrictions cannot be used for filtering.",
                ));
            }
        }
        Ok(())
    }

    /// Whether some restriction has an index that could answer it.
    fn has_index(&self, found: &Restrictions) -> bool {
        let all = found.partition.iter().chain(&found.clustering).chain(&found.others);
        let mut restrictions = all.filter(|restriction| !restriction.multi);
        restrictions.any(|restriction| index_for(&self.table, restriction).is_some())
    }
}

/// Whether ALLOW FILTERING is needed beyond what was judged: rows are looked for over a range of keys, or by an index, and
/// something is left to filter.
pub(crate) fn needs_filtering(table: &Table, found: &Restrictions) -> bool {
    if !(found.is_key_range || found.uses_index) {
        return false;
    }
    let mut filters: Vec<&Restriction> = Vec::new();
    if found.uses_index || found.partition_filters {
        filters.extend(&found.partition);
    }
    if found.uses_index || found.clustering_filters {
        filters.extend(&found.clustering);
    }
    filters.extend(&found.others);
    if filters.is_empty() {
        return !found.clustering.is_empty();
    }
    let kinds: Vec<Option<bool>> = filters
        .iter()
        .map(|restriction| index_for(table, restriction))
        .collect();
    // The older index answers one restriction, the newer any number of its own.
    match kinds.as_slice() {
        [Some(_)] => false,
        kinds => !kinds.iter().all(|kind| *kind == Some(true)),
    }
}

/// The index that answers a restriction; `Some(true)`: a storage-attached one.
fn index_for(table: &Table, restriction: &Restriction) -> Option<bool> {
    let [place] = restriction.columns.as_slice() else {
        return None;
    };
    let column = table.columns.get(*place)?;
    table.indexes.values().find_map(|index| {
        let target = index.options.get("target")?;
        let (part, name) = match target.split_once('(') {
            Some((part, name)) => (part, name.trim_end_matches(')')),
            None => ("", target.as_str()),
        };
        if name.trim_matches('"') != column.name {
            return None;
        }
        let attached = index.options.get("class_name").is_some_and(|class| {
            class
                .rsplit('.')
                .next()
                .is_some_and(|class| class.eq_ignore_ascii_case("sai") || class == "StorageAttachedIndex")
        });
        let textual = matches!(
            column.ty.unfrozen(),
            CqlType::Native(Native::Text | Native::Ascii | Native::Blob | Native::Uuid)
        );
        let fits = match (&restriction.test, part) {
            (Test::Eq(_), "" | "full") => !value::is_collection(&column.ty) || part == "full",
            (Test::Slice { .. }, "") => attached && !textual,
            (Test::Contains { values, keys, entries }, "" | "values") => {
                !values.is_empty() && keys.is_empty() && entries.is_empty()
            }
            (Test::Contains { values, keys, entries }, "keys") => {
                values.is_empty() && !keys.is_empty() && entries.is_empty()
            }
            (Test::Contains { values, keys, entries }, "entries") => {
                values.is_empty() && keys.is_empty() && !entries.is_empty()
            }
            _ => false,
        };
        fits.then_some(attached)
    })
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

/// Adds a restriction, merging it with one on the same columns; keeps the order of columns.
fn merge_into(table: &Table, all: &mut Vec<Restriction>, new: Restriction) -> Result<(), Error> {
    let common = |old: &Restriction| -> Vec<usize> {
        old.columns
            .iter()
            .copied()
            .filter(|column| new.columns.contains(column))
            .collect()
    };
    let Some(place) = all.iter().position(|old| !common(old).is_empty()) else {
        let at = all.partition_point(|old| old.first() < new.first());
        all.insert(at, new);
        return Ok(());
    };
    let old = all.get_mut(place).expect("the place of an element");
    let shared = names(table, &common(old));
    match (&mut old.test, new.test) {
        (Test::Eq(_), _) => {
            invalid!("{shared} cannot be restricted by more than one relation if it includes an Equal")
        }
        (Test::In(_) | Test::InMarker(_), _) => {
            invalid!("{shared} cannot be restricted by more than one relation if it includes a IN")
        }
        (
            Test::Slice { lower, upper },
            Test::Slice {
                lower: new_lower,
                upper: new_upper,
            },
        ) => {
            if old.columns.first() != new.columns.first() {
                let later = old
                    .columns
                    .first()
                    .max(new.columns.first())
                    .copied()
                    .unwrap_or_default();
                return invalid!(
                    "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                    column_at(table, later).name
                );
            }
            if lower.is_some() && new_lower.is_some() {
                return invalid!("More than one restriction was found for the start bound on {shared}");
            }
            if upper.is_some() && new_upper.is_some() {
                return invalid!("More than one restriction was found for the end bound on {shared}");
            }
            *lower = lower.take().or(new_lower);
            *upper = upper.take().or(new_upper);
            old.multi |= new.multi;
            if new.columns.len() > old.columns.len() {
                old.columns = new.columns;
            }
            Ok(())
        }
        (Test::Slice { .. }, _) => {
            invalid!("Column \"{shared}\" cannot be restricted by both an equality and an inequality relation")
        }
        (
            Test::Contains { values, keys, entries },
            Test::Contains {
                values: new_values,
                keys: new_keys,
                entries: new_entries,
            },
        ) => {
            values.extend(new_values);
            keys.extend(new_keys);
            entries.extend(new_entries);
            Ok(())
        }
        (Test::Contains { .. }, _) => {
            invalid!(
                "Collection column {shared} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
            )
        }
    }
}

/// The comparison of one end of a slice.
pub(crate) const fn slice_comparison(lower: bool, inclusive: bool) -> Comparison {
    match (lower, inclusive) {
        (true, true) => Comparison::Gte,
        (true, false) => Comparison::Gt,
        (false, true) => Comparison::Lte,
        (false, false) => Comparison::Lt,
    }
}
