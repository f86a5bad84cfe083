//! The SELECT clause: what is computed for each row, what it is called, which columns it needs.
//!
//! A selector is judged from both sides, as in Cassandra's `Selectable`: it may have a type of its own (a column, a call), or
//! take the one that is expected of it (a literal, a marker, a tuple of those).

use std::sync::Arc;

use bytes::Bytes;
use grammar::ast::{self, MetadataKind, Selector, Term};

use super::bound::{Aggregate, Expression, Part, ResultColumn, Selection, Value};
use super::error::{Error, invalid};
use super::function::{self, Callee, Node, Resolved};
use super::restriction::column;
use super::term::{Binding, Receiver, Typed, Typer, type_fit};
use super::text::{Joined, TermText, operator_sign, type_text_full};
use crate::functions::Argument;
use crate::schema::{ColumnKind, Table};
use crate::types::{Assignment, CqlType, Native};

/// A planned SELECT clause.
#[derive(Clone, Debug)]
pub(crate) struct SelectionPlan {
    /// The clause. Its markers are numbers of `late`.
    pub(crate) template: Arc<Selection>,
    /// Columns that the clause itself names.
    pub(crate) selected: Vec<usize>,
    /// What is only known when values are bound.
    late: Vec<Typed>,
}

impl SelectionPlan {
    /// The clause with its values in.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Arc<Selection>, Error> {
        if self.late.is_empty() {
            return Ok(Arc::clone(&self.template));
        }
        let values = self
            .late
            .iter()
            .map(|term| match term.bind(binding)? {
                Value::Bytes(bytes) => Ok(Some(bytes)),
                Value::Null => Ok(None),
                Value::Unset => Err(Error::invalid(
                    "Invalid unset value for bind marker in the selection clause",
                )),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut bound = Selection::clone(&self.template);
        bound
            .expressions
            .iter_mut()
            .for_each(|expression| fill(expression, &values));
        let arguments = bound
            .aggregates
            .iter_mut()
            .flat_map(|aggregate| &mut aggregate.arguments);
        arguments.for_each(|expression| fill(expression, &values));
        Ok(Arc::new(bound))
    }

    /// More columns that must be read.
    pub(crate) fn need(&mut self, columns: impl Iterator<Item = usize>) {
        let template = Arc::make_mut(&mut self.template);
        template.needed.extend(columns);
        template.needed.sort_unstable();
        template.needed.dedup();
    }

    /// Whether no clustering or regular column is asked for, and some static one is.
    pub(crate) fn only_static_and_partition_key(&self, table: &Table) -> bool {
        let kinds = || {
            self.selected
                .iter()
                .filter_map(|index| table.columns.get(*index))
                .map(|column| column.kind)
        };
        kinds().any(|kind| kind == ColumnKind::Static)
            && kinds().all(|kind| matches!(kind, ColumnKind::Static | ColumnKind::PartitionKey))
    }
}

/// Puts values where their numbers are.
fn fill(expression: &mut Expression, values: &[Option<Bytes>]) {
    match expression {
        Expression::Marker(index) => *expression = Expression::Constant(values.get(*index).cloned().flatten()),
        Expression::Column(_) | Expression::Constant(_) | Expression::Aggregate(_) => {}
        Expression::WriteTime { part, .. } | Expression::Ttl { part, .. } => {
            part.iter_mut().for_each(|part| fill_part(part, values));
        }
        Expression::Token(arguments)
        | Expression::Function { arguments, .. }
        | Expression::Construct {
            elements: arguments, ..
        } => {
            arguments.iter_mut().for_each(|argument| fill(argument, values));
        }
        Expression::Part { of, part, .. } => {
            fill(of, values);
            fill_part(part, values);
        }
    }
}

fn fill_part(part: &mut Part, values: &[Option<Bytes>]) {
    match part {
        Part::Field(_) => {}
        Part::Element(key) => fill(key, values),
        Part::Slice(from, to) => from.iter_mut().chain(to).for_each(|end| fill(end, values)),
    }
}

/// What a selector became.
struct Selected {
    expression: Expression,
    ty: CqlType,
    name: String,
    has_aggregate: bool,
}

/// Reads selectors.
struct Selecting<'a, 'b> {
    typer: &'a mut Typer<'b>,
    table: Arc<Table>,
    aggregates: Vec<Aggregate>,
    late: Vec<Typed>,
    selected: Vec<usize>,
    needs_metadata: bool,
}

/// Plans the SELECT clause.
pub(crate) fn plan(typer: &mut Typer<'_>, table: &Arc<Table>, select: &ast::Select) -> Result<SelectionPlan, Error> {
    let mut reading = Selecting::new(typer, table);
    let mut columns = Vec::new();
    let mut expressions = Vec::new();
    match &select.selection {
        ast::Selection::All => {
            for (index, column) in table.columns.iter().enumerate() {
                columns.push(ResultColumn {
                    name: column.name.clone(),
                    ty: column.ty.clone(),
                });
                expressions.push(Expression::Column(index));
                reading.selected.push(index);
            }
        }
        ast::Selection::Selectors(selectors) => {
            for item in selectors {
                let selected = reading.select(&item.selector, None)?;
                let name = item
                    .alias
                    .as_ref()
                    .map_or(selected.name, |alias| alias.as_str().to_owned());
                columns.push(ResultColumn { name, ty: selected.ty });
                expressions.push(selected.expression);
            }
        }
    }
    let mut needed = reading.selected.clone();
    needed.sort_unstable();
    needed.dedup();
    let mut json_columns = None;
    if select.json {
        json_columns = Some(Arc::new(std::mem::take(&mut columns)));
        columns = vec![ResultColumn {
            name: "[json]".to_owned(),
            ty: CqlType::Native(Native::Text),
        }];
    }
    let template = Selection {
        columns: Arc::new(columns),
        expressions,
        aggregates: reading.aggregates,
        needed,
        needs_metadata: reading.needs_metadata,
        json_columns,
    };
    Ok(SelectionPlan {
        template: Arc::new(template),
        selected: reading.selected,
        late: reading.late,
    })
}

/// A function in GROUP BY, and the name of what it is called on.
pub(crate) fn group_function(
    typer: &mut Typer<'_>,
    table: &Arc<Table>,
    selector: &Selector,
) -> Result<(Expression, String), Error> {
    let mut reading = Selecting::new(typer, table);
    let selected = reading.select(selector, None)?;
    if !reading.late.is_empty() || selected.has_aggregate {
        return Err(Error::Unsupported("A marker in GROUP BY".into()));
    }
    if let Expression::Function { function, .. } = &selected.expression
        && !function::is_monotonic(function)
    {
        return invalid!(
            "Only monotonic functions are supported in the GROUP BY clause. Got: {} ",
            function
        );
    }
    Ok((selected.expression, selected.name))
}

impl<'a, 'b> Selecting<'a, 'b> {
    fn new(typer: &'a mut Typer<'b>, table: &Arc<Table>) -> Self {
        Self {
            typer,
            table: Arc::clone(table),
            aggregates: Vec::new(),
            late: Vec::new(),
            selected: Vec::new(),
            needs_metadata: false,
        }
    }

    fn column(&self, name: &ast::Name) -> Result<(usize, CqlType), Error> {
        let (index, column) = column(&self.table, name.as_str())?;
        Ok((index, column.ty.clone()))
    }

    /// The selector's own type, if it has one (`Selectable.getExactTypeIfKnown`).
    fn exact(&self, selector: &Selector) -> Result<Option<CqlType>, Error> {
        Ok(match selector {
            Selector::Column(name) => Some(self.column(name)?.1),
            Selector::Term(_) => None,
            Selector::CountRows(_) => Some(CqlType::Native(Native::Bigint)),
            Selector::Function { .. } | Selector::Arithmetic { .. } | Selector::Negate(_) => {
                let find = || Ok(Some(self.resolve(selector, None)?.returns));
                self.typer.known.natural(Node::selector(selector), find)?
            }
            Selector::Cast { target, .. } => Some(self.typer.resolve_type(target)?),
            Selector::Metadata { kind, of } => Some(self.metadata_type(*kind, of)?),
            Selector::Field { of, field } => match self.inner_exact(of)?.as_ref().map(CqlType::unfrozen) {
                Some(CqlType::User(user)) => super::operation::field_of(user, field).map(|(_, ty)| ty.clone()),
                _ => None,
            },
            Selector::Element { of, .. } => match self.exact(of)?.as_ref().map(CqlType::unfrozen) {
                Some(CqlType::Map(_, of) | CqlType::Set(of)) => Some((**of).clone()),
                _ => None,
            },
            Selector::Slice { of, .. } => self.exact(of)?,
            Selector::TypeHint { target, .. } => Some(self.typer.resolve_type(target)?),
            // One in parentheses may be a tuple of one, or nothing but itself.
            Selector::Tuple(of) if of.len() == 1 => None,
            Selector::Tuple(of) => {
                let types = of
                    .iter()
                    .map(|of| self.exact(of))
                    .collect::<Result<Option<Vec<_>>, _>>()?;
                types.map(|types| CqlType::Tuple(types.iter().map(CqlType::freeze).collect()))
            }
            Selector::List(of) => self
                .first_exact(of)?
                .map(|of| CqlType::List(Arc::new(of.freeze())).freeze()),
            Selector::Set(of) => self
                .first_exact(of)?
                .map(|of| CqlType::Set(Arc::new(of.freeze())).freeze()),
            Selector::Map(entries) => {
                let bare = entries.iter().all(|(key, _)| matches!(key, Selector::Column(_)));
                if bare {
                    return Ok(None);
                }
                let keys: Vec<&Selector> = entries.iter().map(|(key, _)| key).collect();
                let values: Vec<&Selector> = entries.iter().map(|(_, value)| value).collect();
                match (self.first_exact(keys)?, self.first_exact(values)?) {
                    (Some(key), Some(of)) => Some(CqlType::Map(Arc::new(key.freeze()), Arc::new(of.freeze())).freeze()),
                    _ => None,
                }
            }
        })
    }

    /// Like [`Self::exact`], and one in parentheses is itself.
    fn inner_exact(&self, selector: &Selector) -> Result<Option<CqlType>, Error> {
        match selector {
            Selector::Tuple(of) => match of.as_slice() {
                [only] => self.inner_exact(only),
                _ => self.exact(selector),
            },
            _ => self.exact(selector),
        }
    }

    fn first_exact<'s>(&self, selectors: impl IntoIterator<Item = &'s Selector>) -> Result<Option<CqlType>, Error> {
        for selector in selectors {
            if let Some(ty) = self.exact(selector)? {
                return Ok(Some(ty));
            }
        }
        Ok(None)
    }

    /// How well a selector fits a type (`Selectable.testAssignment`).
    fn fit(&self, selector: &Selector, ty: &CqlType) -> Result<Assignment, Error> {
        let all = |selectors: &[Selector], ty: &CqlType| -> Result<Assignment, Error> {
            let mut worst = Assignment::Weak;
            for selector in selectors {
                worst = worst.min(self.fit(selector, ty)?);
            }
            Ok(worst)
        };
        match (selector, ty.unfrozen()) {
            (Selector::Term(term), _) => self.typer.fit(term, ty),
            (Selector::Tuple(of), CqlType::Tuple(types)) => {
                if of.len() > types.len() {
                    return Ok(Assignment::No);
                }
                let mut worst = Assignment::Weak;
                for (selector, ty) in of.iter().zip(types.iter()) {
                    worst = worst.min(self.fit(selector, ty)?);
                }
                Ok(worst)
            }
            (Selector::Tuple(of), _) => match of.as_slice() {
                [only] => self.fit(only, ty),
                _ => Ok(Assignment::No),
            },
            (Selector::List(of), CqlType::List(element)) => all(of, element),
            (Selector::List(of), CqlType::Vector(element, dimension)) => {
                if usize::try_from(*dimension).is_ok_and(|dimension| dimension == of.len()) {
                    all(of, element)
                } else {
                    Ok(Assignment::No)
                }
            }
            (Selector::Set(of), CqlType::Set(element)) => all(of, element),
            (Selector::Set(of), CqlType::Map(..)) if of.is_empty() => Ok(Assignment::Weak),
            (Selector::Map(entries), CqlType::Map(key, value)) => {
                let mut worst = Assignment::Weak;
                for (k, v) in entries {
                    worst = worst.min(self.fit(k, key)?).min(self.fit(v, value)?);
                }
                Ok(worst)
            }
            (Selector::Map(entries), CqlType::User(user)) => {
                let mut worst = Assignment::Weak;
                for (k, v) in entries {
                    let field = match k {
                        Selector::Column(name) => super::operation::field_of(user, name),
                        _ => None,
                    };
                    worst = match field {
                        Some((_, ty)) => worst.min(self.fit(v, ty)?),
                        None => Assignment::No,
                    };
                }
                Ok(worst)
            }
            (Selector::List(_) | Selector::Set(_) | Selector::Map(_), _) => Ok(Assignment::No),
            // A call may mean another function where another type is wanted.
            (Selector::Function { .. } | Selector::Arithmetic { .. } | Selector::Negate(_), _) => {
                Ok(self.typer.known.fit(Node::selector(selector), ty, || {
                    match self
                        .resolve(selector, Some(ty))
                        .or_else(|_| self.resolve(selector, None))
                    {
                        Ok(resolved) => type_fit(&resolved.returns, ty),
                        Err(_) => Assignment::No,
                    }
                }))
            }
            _ => Ok(self
                .exact(selector)?
                .map_or(Assignment::No, |exact| type_fit(&exact, ty))),
        }
    }

    fn argument<'s>(&'s self, selector: &'s Selector) -> Result<Argument<'s>, Error> {
        let text = self.text(selector)?;
        let natural = match selector {
            Selector::Term(Term::BindMarker(_)) => return Ok(Argument::marker(text)),
            Selector::Term(Term::Literal(literal)) => crate::types::preferred_type(literal).map(CqlType::Native),
            Selector::Tuple(of) => match of.as_slice() {
                [only] => {
                    let mut inner = self.argument(only)?;
                    inner.text = text;
                    return Ok(inner);
                }
                _ => self.exact(selector)?,
            },
            _ => self.exact(selector)?,
        };
        let fits = move |ty: &CqlType| self.fit(selector, ty).unwrap_or(Assignment::No);
        let found = Argument::open(text, natural, fits);
        Ok(match selector {
            Selector::List(of) => found.with_elements(u32::try_from(of.len()).unwrap_or(u32::MAX)),
            _ => found,
        })
    }

    /// The function that a call means.
    fn resolve(&self, selector: &Selector, receiver: Option<&CqlType>) -> Result<Resolved, Error> {
        let (callee, selectors): (Callee<'_>, Vec<&Selector>) = match selector {
            Selector::Function { name, arguments } => (Callee::Name(name), arguments.iter().collect()),
            Selector::Arithmetic { operator, left, right } => (Callee::Operator(*operator), vec![left, right]),
            Selector::Negate(of) => (Callee::Negate, vec![of]),
            _ => return Err(Error::Unsupported("This selector".into())),
        };
        let arguments = selectors
            .into_iter()
            .map(|of| self.argument(of))
            .collect::<Result<Vec<_>, _>>()?;
        let unlike = || Error::Unsupported("This selector".into());
        function::resolve(self.typer, callee, arguments, receiver)?.ok_or_else(unlike)
    }

    /// The function that a call means where `expected` is wanted; whether it fits is somebody else's question.
    fn resolve_for(&self, selector: &Selector, expected: Option<&CqlType>) -> Result<Resolved, Error> {
        match (self.resolve(selector, expected), expected) {
            (Err(Error::Invalid(_)), Some(_)) => self.resolve(selector, None),
            (found, _) => found,
        }
    }

    /// A selector in Cassandra's words.
    fn text(&self, selector: &Selector) -> Result<String, Error> {
        let list = |of: &[Selector]| -> Result<String, Error> {
            let texts = of.iter().map(|of| self.text(of)).collect::<Result<Vec<_>, _>>()?;
            Ok(Joined(&texts, ", ").to_string())
        };
        Ok(match selector {
            Selector::Column(name) => name.as_str().to_owned(),
            Selector::Term(term) => term_text(term),
            Selector::CountRows(_) => "count".to_owned(),
            Selector::Function { name, arguments } => {
                let full = match &name.keyspace {
                    Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
                    None => name.name.as_str().to_owned(),
                };
                format!("{full}({})", list(arguments)?)
            }
            Selector::Metadata { kind, of } => format!("{}({})", metadata_name(*kind), self.text(of)?),
            Selector::Cast { selector, target } => {
                format!(
                    "cast({} as {})",
                    self.text(selector)?,
                    self.typer.resolve_type(target)?.cql_name()
                )
            }
            Selector::Field { of, field } => format!("{}.{}", self.text(of)?, field.as_str()),
            Selector::Element { of, key } => format!("{}[{}]", self.text(of)?, term_text(key)),
            Selector::Slice { of, from, to } => {
                let end = |term: &Option<Term>| term.as_ref().map(term_text).unwrap_or_default();
                format!("{}[{}..{}]", self.text(of)?, end(from), end(to))
            }
            Selector::Arithmetic { operator, left, right } => {
                format!(
                    "{} {} {}",
                    self.text(left)?,
                    operator_sign(*operator),
                    self.text(right)?
                )
            }
            Selector::Negate(of) => format!("-{}", self.text(of)?),
            Selector::TypeHint { target, selector } => {
                format!("({}){}", self.hint_text(target)?, self.text(selector)?)
            }
            Selector::Tuple(of) => format!("({})", list(of)?),
            Selector::List(of) => format!("[{}]", list(of)?),
            Selector::Set(of) => format!("{{{}}}", list(of)?),
            Selector::Map(entries) => {
                let texts = entries
                    .iter()
                    .map(|(key, value)| Ok(format!("{}: {}", self.text(key)?, self.text(value)?)))
                    .collect::<Result<Vec<_>, Error>>()?;
                format!("{{{}}}", Joined(&texts, ", "))
            }
        })
    }

    fn hint_text(&self, target: &ast::Type) -> Result<String, Error> {
        // Resolved first, for its errors.
        self.typer.resolve_type(target)?;
        Ok(type_text_full(target, &self.typer.keyspace))
    }

    /// A selector as an expression; `expected` is the type that its place wants.
    fn select(&mut self, selector: &Selector, expected: Option<&CqlType>) -> Result<Selected, Error> {
        match selector {
            Selector::Column(name) => {
                let (index, ty) = self.column(name)?;
                self.selected.push(index);
                Ok(Selected::new(Expression::Column(index), ty, name.as_str()))
            }
            Selector::Term(term) => {
                let Some(ty) = expected else {
                    return cannot_infer(&term_text(term));
                };
                let typed = self.typer.term(term, &Receiver::new("[selection]", ty.clone()))?;
                let expression = self.late(typed);
                Ok(Selected::new(expression, ty.clone(), &term_text(term)))
            }
            Selector::CountRows(_) => {
                let expression = self.aggregate(None, Vec::new());
                let mut selected = Selected::new(expression, CqlType::Native(Native::Bigint), "count");
                selected.has_aggregate = true;
                Ok(selected)
            }
            Selector::Function { name, arguments } => {
                if name.name.as_str() == "fromjson" || name.name.as_str() == "from_json" {
                    return invalid!(
                        "{}() cannot be used in the selection clause of a SELECT statement",
                        name.name.as_str()
                    );
                }
                let resolved = self.resolve_for(selector, expected)?;
                self.call(resolved, arguments.iter().collect())
            }
            Selector::Arithmetic { left, right, .. } => {
                let resolved = self.resolve_for(selector, expected)?;
                self.call(resolved, vec![left, right])
            }
            Selector::Negate(of) => {
                let resolved = self.resolve_for(selector, expected)?;
                self.call(resolved, vec![of])
            }
            Selector::Metadata { kind, of } => self.metadata(*kind, of),
            Selector::Cast { selector, target } => self.cast(selector, target),
            Selector::Field { of, field } => self.field(of, field),
            Selector::Element { of, key } => self.element(of, key),
            Selector::Slice { of, from, to } => self.slice(of, from.as_ref(), to.as_ref()),
            Selector::TypeHint { target, selector: of } => {
                let ty = self.typer.resolve_type(target)?;
                let text = self.text(selector)?;
                if self.fit(of, &ty)? == Assignment::No {
                    return invalid!("Cannot assign value {text} to {text} of type {}", ty.cql_name());
                }
                let mut selected = self.select(of, Some(&ty))?;
                selected.name = format!("({}){}", self.hint_text(target)?, selected.name);
                selected.ty = ty;
                Ok(selected)
            }
            Selector::Tuple(of) => self.tuple(selector, of, expected),
            Selector::List(of) | Selector::Set(of) => self.collection(selector, of, expected),
            Selector::Map(entries) => self.map(selector, entries, expected),
        }
    }

    /// A term that is part of a selector: a constant, or a number of `late`.
    fn late(&mut self, typed: Typed) -> Expression {
        match typed {
            Typed::Constant(value) => Expression::Constant(value),
            typed => {
                self.late.push(typed);
                Expression::Marker(self.late.len() - 1)
            }
        }
    }

    fn aggregate(&mut self, function: Option<crate::functions::Function>, arguments: Vec<Expression>) -> Expression {
        self.aggregates.push(Aggregate { function, arguments });
        Expression::Aggregate(self.aggregates.len() - 1)
    }

    fn call(&mut self, resolved: Resolved, of: Vec<&Selector>) -> Result<Selected, Error> {
        let mut arguments = Vec::with_capacity(of.len());
        let mut names = Vec::with_capacity(of.len());
        let mut has_aggregate = false;
        for (selector, ty) in of.iter().zip(&resolved.arguments) {
            let selected = self.select(selector, Some(ty))?;
            has_aggregate |= selected.has_aggregate;
            arguments.push(selected.expression);
            names.push(selected.name);
        }
        let is_aggregate = resolved.is_aggregate();
        if is_aggregate && has_aggregate {
            return Err(Error::invalid(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        let name = resolved.result_name(&names);
        let expression = match resolved.function {
            None => Expression::Token(arguments),
            Some(function) if is_aggregate => self.aggregate(Some(function), arguments),
            Some(function) => Expression::Function { function, arguments },
        };
        Ok(Selected {
            expression,
            ty: resolved.returns,
            name,
            has_aggregate: has_aggregate || is_aggregate,
        })
    }

    fn cast(&mut self, of: &Selector, target: &ast::Type) -> Result<Selected, Error> {
        let inner = self.select(of, None)?;
        let target = function::cast_target(target);
        let argument = Argument::typed(inner.name.clone(), inner.ty.clone());
        let Some(resolved) = function::resolve(self.typer, Callee::Cast(&target), vec![argument], None)? else {
            return Ok(inner);
        };
        let name = resolved.result_name(std::slice::from_ref(&inner.name));
        let Some(function) = resolved.function else {
            return Ok(inner);
        };
        let expression = Expression::Function {
            function,
            arguments: vec![inner.expression],
        };
        Ok(Selected {
            expression,
            ty: resolved.returns,
            name,
            has_aggregate: inner.has_aggregate,
        })
    }

    /// The value that a field or element is taken of: one in parentheses is itself.
    fn container(&mut self, of: &Selector) -> Result<Selected, Error> {
        match of {
            Selector::Tuple(inner) => match inner.as_slice() {
                [only] => {
                    let mut selected = self.container(only)?;
                    selected.name = format!("({})", selected.name);
                    Ok(selected)
                }
                _ => self.select(of, None),
            },
            _ => self.select(of, None),
        }
    }

    fn field(&mut self, of: &Selector, field: &ast::Name) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let CqlType::User(user) = selected.ty.unfrozen() else {
            return invalid!(
                "Invalid field selection: {} of type {} is not a user type",
                selected.name,
                selected.ty.cql_name()
            );
        };
        let Some((index, ty)) = super::operation::field_of(user, field) else {
            return invalid!(
                "{} of type {} has no field {}",
                selected.name,
                user.name,
                field.as_str()
            );
        };
        let ty = ty.clone();
        let name = format!("{}.{}", selected.name, field.as_str());
        Ok(selected.part(Part::Field(index), ty, name))
    }

    fn element(&mut self, of: &Selector, key: &Term) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let (receiver, ty) = element_receiver(&selected, "Element")?;
        let typed = self.typer.term(key, &receiver)?;
        let key_expression = self.late(typed);
        let name = format!("{}[{}]", selected.name, term_text(key));
        Ok(selected.part(Part::Element(key_expression), ty, name))
    }

    fn slice(&mut self, of: &Selector, from: Option<&Term>, to: Option<&Term>) -> Result<Selected, Error> {
        let selected = self.container(of)?;
        let (receiver, _) = element_receiver(&selected, "Slice")?;
        let mut end = |term: Option<&Term>| -> Result<Option<Expression>, Error> {
            let Some(term) = term else { return Ok(None) };
            let typed = self.typer.term(term, &receiver)?;
            Ok(Some(self.late(typed)))
        };
        let (first, last) = (end(from)?, end(to)?);
        let text = |term: Option<&Term>| term.map(term_text).unwrap_or_default();
        let name = format!("{}[{}..{}]", selected.name, text(from), text(to));
        let ty = selected.ty.clone();
        Ok(selected.part(Part::Slice(first, last), ty, name))
    }

    fn metadata_type(&self, kind: MetadataKind, of: &Selector) -> Result<CqlType, Error> {
        let native = CqlType::Native(if kind == MetadataKind::Ttl {
            Native::Int
        } else {
            Native::Bigint
        });
        let many = match of {
            Selector::Column(name) => self.column(name)?.1.is_multi_cell(),
            Selector::Slice { of, .. } => match &**of {
                Selector::Column(name) => self.column(name)?.1.is_multi_cell(),
                _ => false,
            },
            _ => false,
        };
        Ok(if many && kind != MetadataKind::MaxWriteTime {
            CqlType::List(Arc::new(native))
        } else {
            native
        })
    }

    fn metadata(&mut self, kind: MetadataKind, of: &Selector) -> Result<Selected, Error> {
        let function = metadata_name(kind);
        let name = match of {
            Selector::Column(name) => name,
            Selector::Field { of, .. } | Selector::Element { of, .. } | Selector::Slice { of, .. } => match &**of {
                Selector::Column(name) => name,
                _ => return invalid!("Cannot use selection function {function} on {}", self.text(of)?),
            },
            _ => return invalid!("Cannot use selection function {function} on {}", self.text(of)?),
        };
        let (index, ty) = self.column(name)?;
        let kind_of = self.table.columns.get(index).map(|column| column.kind);
        if matches!(kind_of, Some(ColumnKind::PartitionKey | ColumnKind::Clustering)) {
            return invalid!(
                "Cannot use selection function {function} on PRIMARY KEY part {}",
                name.as_str()
            );
        }
        let result = self.metadata_type(kind, of)?;
        let selected = self.select(of, None)?;
        let text = selected.name.clone();
        // What is one cell has one write time, whichever part is asked for.
        let part = match selected.expression {
            Expression::Part { part, .. } if ty.is_multi_cell() => Some(part),
            _ => None,
        };
        self.needs_metadata = true;
        let expression = match kind {
            MetadataKind::Ttl => Expression::Ttl { column: index, part },
            MetadataKind::WriteTime => Expression::WriteTime {
                column: index,
                max: false,
                part,
            },
            MetadataKind::MaxWriteTime => Expression::WriteTime {
                column: index,
                max: true,
                part,
            },
        };
        Ok(Selected::new(expression, result, &format!("{function}({text})")))
    }

    fn tuple(&mut self, selector: &Selector, of: &[Selector], expected: Option<&CqlType>) -> Result<Selected, Error> {
        let is_tuple = expected.is_some_and(|ty| matches!(ty.unfrozen(), CqlType::Tuple(_)));
        if let ([only], true) = (of, expected.is_some() && !is_tuple) {
            let mut selected = self.select(only, expected)?;
            selected.name = format!("({})", selected.name);
            return Ok(selected);
        }
        let Some(ty) = self.exact(selector)?.or_else(|| expected.cloned()) else {
            return cannot_infer(&self.text(selector)?);
        };
        let CqlType::Tuple(types) = ty.unfrozen() else {
            return invalid!(
                "Invalid tuple type literal for {} of type {}",
                self.text(selector)?,
                ty.cql_name()
            );
        };
        let types: Vec<CqlType> = types.to_vec();
        if of.len() > types.len() {
            return invalid!(
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                self.text(selector)?,
                ty.cql_name(),
                types.len(),
                of.len()
            );
        }
        let parts: Vec<(&Selector, &CqlType)> = of.iter().zip(&types).collect();
        self.construct(ty.clone(), &parts, |names| format!("({})", Joined(names, ", ")))
    }

    fn collection(
        &mut self,
        selector: &Selector,
        of: &[Selector],
        expected: Option<&CqlType>,
    ) -> Result<Selected, Error> {
        let Some(ty) = expected
            .cloned()
            .map_or_else(|| self.exact(selector), |ty| Ok(Some(ty)))?
        else {
            return cannot_infer(&self.text(selector)?);
        };
        let is_list = matches!(selector, Selector::List(_));
        let element = match (ty.unfrozen(), is_list) {
            (CqlType::List(element) | CqlType::Vector(element, _), true) | (CqlType::Set(element), false) => {
                (**element).clone()
            }
            (CqlType::Map(key, _), false) if of.is_empty() => (**key).clone(),
            _ => {
                let text = self.text(selector)?;
                return invalid!("Invalid literal {text} of type {}", ty.cql_name());
            }
        };
        let parts: Vec<(&Selector, &CqlType)> = of.iter().map(|of| (of, &element)).collect();
        self.construct(ty.clone(), &parts, |names| {
            let names = Joined(names, ", ");
            if is_list {
                format!("[{names}]")
            } else {
                format!("{{{names}}}")
            }
        })
    }

    fn map(
        &mut self,
        selector: &Selector,
        entries: &[(Selector, Selector)],
        expected: Option<&CqlType>,
    ) -> Result<Selected, Error> {
        let Some(ty) = self.exact(selector)?.or_else(|| expected.cloned()) else {
            return cannot_infer(&self.text(selector)?);
        };
        match ty.unfrozen() {
            CqlType::Map(key, value) => {
                let parts: Vec<(&Selector, &CqlType)> =
                    entries.iter().flat_map(|(k, v)| [(k, &**key), (v, &**value)]).collect();
                self.construct(ty.clone(), &parts, |names| {
                    let entries: Vec<String> = names
                        .chunks(2)
                        .map(|entry| match entry {
                            [key, value] => format!("{key}: {value}"),
                            other => other.concat(),
                        })
                        .collect();
                    format!("{{{}}}", Joined(&entries, ", "))
                })
            }
            CqlType::User(user) => {
                let mut elements = Vec::with_capacity(user.fields.len());
                let mut names = Vec::with_capacity(entries.len());
                let mut has_aggregate = false;
                for (field, ty) in &user.fields {
                    let named = |key: &Selector| matches!(key, Selector::Column(name) if name.as_str() == field);
                    match entries.iter().find(|(key, _)| named(key)) {
                        Some((_, value)) => {
                            let selected = self.select(value, Some(ty))?;
                            has_aggregate |= selected.has_aggregate;
                            elements.push(selected.expression);
                            names.push(format!("{field}: {}", selected.name));
                        }
                        None => elements.push(Expression::Constant(None)),
                    }
                }
                let name = format!("{{{}}}", Joined(&names, ", "));
                Ok(Selected {
                    expression: Expression::Construct {
                        ty: ty.clone(),
                        elements,
                    },
                    ty,
                    name,
                    has_aggregate,
                })
            }
            _ => cannot_infer(&self.text(selector)?),
        }
    }

    fn construct(
        &mut self,
        ty: CqlType,
        parts: &[(&Selector, &CqlType)],
        name: impl FnOnce(&[String]) -> String,
    ) -> Result<Selected, Error> {
        let mut elements = Vec::with_capacity(parts.len());
        let mut names = Vec::with_capacity(parts.len());
        let mut has_aggregate = false;
        for (selector, ty) in parts {
            let selected = self.select(selector, Some(ty))?;
            has_aggregate |= selected.has_aggregate;
            elements.push(selected.expression);
            names.push(selected.name);
        }
        let expression = Expression::Construct {
            ty: ty.clone(),
            elements,
        };
        Ok(Selected {
            expression,
            ty,
            name: name(&names),
            has_aggregate,
        })
    }
}

impl Selected {
    fn new(expression: Expression, ty: CqlType, name: &str) -> Self {
        Self {
            expression,
            ty,
            name: name.to_owned(),
            has_aggregate: false,
        }
    }

    /// A part of it.
    fn part(self, part: Part, ty: CqlType, name: String) -> Self {
        let expression = Expression::Part {
            of: Box::new(self.expression),
            of_type: self.ty,
            part: Box::new(part),
        };
        Self {
            expression,
            ty,
            name,
            has_aggregate: self.has_aggregate,
        }
    }
}

fn cannot_infer<T>(text: &str) -> Result<T, Error> {
    invalid!("Cannot infer type for term {text} in selection clause (try using a cast to force a type)")
}

/// What the key of an element, or the ends of a slice, are given to; and the type of an element.
fn element_receiver(selected: &Selected, what: &str) -> Result<(Receiver, CqlType), Error> {
    let name = &selected.name;
    match selected.ty.unfrozen() {
        CqlType::Map(key, value) => Ok((
            Receiver::new(format!("key({name})"), (**key).clone()),
            (**value).clone(),
        )),
        CqlType::Set(element) => Ok((
            Receiver::new(format!("value({name})"), (**element).clone()),
            (**element).clone(),
        )),
        CqlType::List(_) => invalid!("{what} selection is only allowed on sets and maps, but {name} is a list"),
        _ => invalid!(
            "Invalid {} selection: {name} is of type {} is not a collection",
            what.to_lowercase(),
            selected.ty.cql_name()
        ),
    }
}

const fn metadata_name(kind: MetadataKind) -> &'static str {
    match kind {
        MetadataKind::WriteTime => "writetime",
        MetadataKind::MaxWriteTime => "maxwritetime",
        MetadataKind::Ttl => "ttl",
    }
}

/// A term in a SELECT clause: as elsewhere, but null is loud.
fn term_text(term: &Term) -> String {
    match term {
        Term::Literal(ast::Literal::Null) => "NULL".to_owned(),
        _ => TermText(term).to_string(),
    }
}

/// Places of the columns that an expression reads.
pub(crate) fn columns_of(expression: &Expression) -> Vec<usize> {
    let mut found = Vec::new();
    collect(expression, &mut found);
    found
}

fn collect(expression: &Expression, found: &mut Vec<usize>) {
    match expression {
        Expression::Column(index) => found.push(*index),
        Expression::Constant(_) | Expression::Marker(_) | Expression::Aggregate(_) => {}
        Expression::WriteTime { column, part, .. } | Expression::Ttl { column, part } => {
            found.push(*column);
            part.iter().for_each(|part| collect_part(part, found));
        }
        Expression::Token(arguments)
        | Expression::Function { arguments, .. }
        | Expression::Construct {
            elements: arguments, ..
        } => {
            arguments.iter().for_each(|argument| collect(argument, found));
        }
        Expression::Part { of, part, .. } => {
            collect(of, found);
            collect_part(part, found);
        }
    }
}

fn collect_part(part: &Part, found: &mut Vec<usize>) {
    match part {
        Part::Field(_) => {}
        Part::Element(key) => collect(key, found),
        Part::Slice(from, to) => from.iter().chain(to).for_each(|end| collect(end, found)),
    }
}
