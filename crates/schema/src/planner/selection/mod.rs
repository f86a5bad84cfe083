//! The SELECT clause: the expressions for each row, their names, and the columns that they need.
//!
//! As in Cassandra's `Selectable`, a selector has a type of its own (a column, a call) or the type that its receiver
//! expects (a literal, a marker, a tuple of those). `typing` decides which. `parts` builds expressions from columns, calls
//! and parts of values, `construct` from tuples, collections and user-defined types.
//!
//! Life of a [`SelectionPlan`]: made once for a statement. Each execution binds the deferred terms, its markers, or shares
//! the template if there are none. Invariant: a bound selection has no `Expression::Marker`. Source: Cassandra's
//! `cql3.selection`.

mod construct;
mod masked;
mod parts;
mod typing;

pub use self::masked::mask_calls;
pub(crate) use self::masked::{masked, masks};

use std::sync::Arc;

use bytes::Bytes;
use grammar::ast::{self, Selector, Term};

use super::error::Error;
use super::function;
use super::rank::{Faults, Rank, Stage};
use super::refusal::SelectionRefusal;
use super::restriction::column;
use super::term::{Binding, ColumnSpec, TypedTerm};
use super::text::{TermText, owned};
use super::typing::TypeChecker;
use crate::command::{Aggregate, Expression, Part, ResultColumn, Selection, Value};
use crate::schema::{ColumnKind, Table};
use helenus_types::types::{Assignment, CqlType, Native};

const BIGINT: CqlType = CqlType::Native(Native::Bigint);

/// A planned SELECT clause.
#[derive(Clone, Debug)]
pub(crate) struct SelectionPlan {
    /// The clause. Its markers are indexes into `deferred`.
    pub(crate) template: Arc<Selection>,
    /// Columns that the clause itself names.
    pub(crate) selected: Vec<usize>,
    /// Terms whose values are only known at binding.
    deferred: Vec<DeferredTerm>,
}

/// A term whose value is only known at binding.
#[derive(Clone, Debug)]
struct DeferredTerm {
    term: TypedTerm,
    place: TermPosition,
}

/// The position of a term in a selector; it determines the meaning of null and unset.
#[derive(Clone, Debug)]
enum TermPosition {
    /// A value by itself, or in a tuple or collection.
    Value,
    /// An argument of the function of this name.
    Argument(String),
    /// The key of an element of the selector of this name.
    Element(String),
    /// An end of a slice of the selector of this name.
    Slice(String),
}

impl DeferredTerm {
    /// The bound value. It is unset only for the end of a slice, which then has no bound.
    fn bind(&self, binding: &Binding<'_>) -> Result<Value, Error> {
        match (self.term.bind(binding)?, &self.place) {
            // Cassandra's unset is an empty value, and is treated as one wherever it is not checked.
            (Value::Unset, TermPosition::Value) => Ok(Value::Bytes(Bytes::new())),
            (Value::Unset, TermPosition::Argument(name)) => Err(SelectionRefusal::UnsetArgument(name.clone()).into()),
            (Value::Unset, TermPosition::Element(name)) => Err(SelectionRefusal::UnsetElement(name.clone()).into()),
            (Value::Null, TermPosition::Element(name)) => Err(SelectionRefusal::NullElement(name.clone()).into()),
            (Value::Null, TermPosition::Slice(name)) => Err(SelectionRefusal::NullSlice(name.clone()).into()),
            (value, _) => Ok(value),
        }
    }
}

fn bind_all(deferred: &[DeferredTerm], binding: &Binding<'_>) -> Result<Vec<Value>, Error> {
    deferred.iter().map(|term| term.bind(binding)).collect()
}

/// A planned GROUP BY.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPlan {
    expressions: Vec<Expression>,
    deferred: Vec<DeferredTerm>,
}

impl GroupPlan {
    /// Forgets a function that another function follows: Cassandra then groups by its column.
    fn forget_function(&mut self) {
        if let Some(last) = self.expressions.last_mut()
            && let Some(column) = columns_of(last).first()
        {
            *last = Expression::Column(*column);
        }
    }

    /// Adds a column to group by, after all others.
    pub(crate) fn push_column(&mut self, index: usize) {
        self.expressions.push(Expression::Column(index));
    }

    /// Positions of the columns that it reads.
    pub(crate) fn columns(&self) -> Vec<usize> {
        self.expressions.iter().flat_map(columns_of).collect()
    }

    /// The expressions with bound values.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Vec<Expression>, Error> {
        let mut bound = self.expressions.clone();
        if !self.deferred.is_empty() {
            let values = bind_all(&self.deferred, binding)?;
            bound.iter_mut().for_each(|expression| fill(expression, &values));
        }
        Ok(bound)
    }
}

impl SelectionPlan {
    /// The clause with bound values.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Arc<Selection>, Error> {
        if self.deferred.is_empty() {
            return Ok(Arc::clone(&self.template));
        }
        let values = bind_all(&self.deferred, binding)?;
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

    /// Adds columns that must be read.
    pub(crate) fn need(&mut self, columns: impl Iterator<Item = usize>) {
        let template = Arc::make_mut(&mut self.template);
        template.needed.extend(columns);
        template.needed.sort_unstable();
        template.needed.dedup();
    }
}

/// Replaces markers by their values.
fn fill(expression: &mut Expression, values: &[Value]) {
    match expression {
        Expression::Marker(index) => {
            let value = match values.get(*index) {
                Some(Value::Bytes(bytes)) => Some(bytes.clone()),
                _ => None,
            };
            *expression = Expression::Constant(value);
        }
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

fn fill_part(part: &mut Part, values: &[Value]) {
    match part {
        Part::Field(_) => {}
        Part::Element(key) => fill(key, values),
        Part::Slice(from, to) => {
            for end in [from, to] {
                if let Some(Expression::Marker(index)) = end
                    && values.get(*index) == Some(&Value::Unset)
                {
                    *end = None;
                } else if let Some(end) = end {
                    fill(end, values);
                }
            }
        }
    }
}

/// A planned selector.
struct Selected {
    expression: Expression,
    ty: CqlType,
    name: String,
    has_aggregate: bool,
}

/// Plans selectors.
struct SelectorPlanner<'a, 'b> {
    typer: &'a mut TypeChecker<'b>,
    table: Arc<Table>,
    aggregates: Vec<Aggregate>,
    deferred: Vec<DeferredTerm>,
    /// The position of the next term.
    place: TermPosition,
    selected: Vec<usize>,
    needs_metadata: bool,
}

/// Plans the SELECT clause.
///
/// # Errors
/// The faults that Cassandra may report first, at least one; their positions are those of selectors.
pub(crate) fn plan(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    select: &ast::Select,
) -> Result<SelectionPlan, Box<Faults>> {
    let mut reading = SelectorPlanner::new(typer, table);
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
            let mut faults = None;
            for (place, item) in selectors.iter().enumerate() {
                let selected = match reading.select(&item.selector, None) {
                    Ok(selected) => selected,
                    Err(error) => {
                        let stage = if error.is_of_lookup() {
                            Stage::Prepare
                        } else {
                            Stage::Factory
                        };
                        Faults::add(&mut faults, Rank { stage, place }, error);
                        // Cassandra detects no later selector's fault before this one.
                        if stage == Stage::Prepare {
                            break;
                        }
                        continue;
                    }
                };
                let name = item
                    .alias
                    .as_ref()
                    .map_or(selected.name, |alias| alias.as_str().to_owned());
                columns.push(ResultColumn { name, ty: selected.ty });
                expressions.push(selected.expression);
            }
            if let Some(faults) = faults {
                return Err(Box::new(faults));
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
        has_system_columns: false,
    };
    Ok(SelectionPlan {
        template: Arc::new(template),
        selected: reading.selected,
        deferred: reading.deferred,
    })
}

/// Plans a function in GROUP BY as the last expression of a plan; returns the position of its clustering column.
pub(crate) fn group_function(
    typer: &mut TypeChecker<'_>,
    table: &Arc<Table>,
    selector: &Selector,
    plan: &mut GroupPlan,
) -> Result<usize, Error> {
    let mut reading = SelectorPlanner::new(typer, table);
    if let Selector::Function { .. } = selector
        && let resolved = reading.resolve(selector, None)?
        && resolved.is_aggregate()
    {
        return Err(SelectionRefusal::GroupByAggregate(resolved.name()).into());
    }
    let selected = reading.select(selector, None)?;
    let mut columns = columns_of(&selected.expression);
    columns.dedup();
    let column = match columns.as_slice() {
        [] => {
            return Err(SelectionRefusal::GroupByNoColumn.into());
        }
        [only] => table.columns.get(*only),
        several => {
            let names: Vec<&str> = several
                .iter()
                .filter_map(|index| table.columns.get(*index))
                .map(|column| column.name.as_str())
                .collect();
            return Err(SelectionRefusal::GroupBySeveralColumns(owned(names)).into());
        }
    };
    if let Some(column) = column
        && column.kind != ColumnKind::Clustering
    {
        return Err(SelectionRefusal::GroupByOtherColumn(column.name.clone()).into());
    }
    if let Expression::Function { function, arguments } = &selected.expression
        && !function::is_monotonic(function)
    {
        let constant = |index: usize| matches!(arguments.get(index), Some(Expression::Constant(_)));
        return Err(SelectionRefusal::GroupByUnordered(function.partial_text(constant)).into());
    }
    if !plan.deferred.is_empty() || matches!(plan.expressions.last(), Some(Expression::Function { .. })) {
        plan.forget_function();
    }
    plan.expressions.push(selected.expression);
    plan.deferred = reading.deferred;
    Ok(columns.first().copied().unwrap_or(usize::MAX))
}

impl<'a, 'b> SelectorPlanner<'a, 'b> {
    fn new(typer: &'a mut TypeChecker<'b>, table: &Arc<Table>) -> Self {
        Self {
            typer,
            table: Arc::clone(table),
            aggregates: Vec::new(),
            deferred: Vec::new(),
            place: TermPosition::Value,
            selected: Vec::new(),
            needs_metadata: false,
        }
    }

    fn column(&self, name: &ast::Name) -> Result<(usize, CqlType), Error> {
        let (index, column) = column(&self.table, name.as_str())?;
        Ok((index, column.ty.clone()))
    }

    /// Plans a selector as an expression; `expected` is the type that its receiver requires.
    #[expect(clippy::too_many_lines, reason = "one arm for each selector")]
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
                let typed = self.typer.term(term, &ColumnSpec::new("[selection]", ty.clone()))?;
                let expression = self.deferred(typed);
                Ok(Selected::new(expression, ty.clone(), &term_text(term)))
            }
            Selector::CountRows(_) => {
                let expression = self.aggregate(None, Vec::new());
                let mut selected = Selected::new(expression, BIGINT, "count");
                selected.has_aggregate = true;
                Ok(selected)
            }
            Selector::Function { name, arguments, .. } => {
                let counts_rows = match (name.name.as_str(), arguments.as_slice()) {
                    // A literal is never null.
                    ("count", [Selector::Term(Term::Literal(literal))]) => *literal != ast::Literal::Null,
                    ("count_rows" | "countRows", []) => true,
                    _ => false,
                };
                let is_system = name
                    .keyspace
                    .as_ref()
                    .is_none_or(|keyspace| keyspace.as_str() == helenus_types::functions::KEYSPACE);
                if counts_rows && is_system {
                    let mut selected = Selected::new(self.aggregate(None, Vec::new()), BIGINT, "count");
                    selected.has_aggregate = true;
                    return Ok(selected);
                }
                if name.name.as_str() == "fromjson" || name.name.as_str() == "from_json" {
                    return Err(SelectionRefusal::FromJson(name.name.as_str().to_owned()).into());
                }
                let resolved = self.resolve_for(selector, expected)?;
                self.typer.calls.note(resolved.function.as_ref());
                self.call(resolved, arguments.iter().collect())
            }
            Selector::Arithmetic { left, right, .. } => {
                let resolved = self.resolve_for(selector, expected)?;
                self.call(resolved, vec![left, right])
            }
            Selector::Negate { of, .. } => {
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
                // A hint names the frozen type, which no multi-cell value has.
                let is_unlike = self.exact(of)?.is_some_and(|of| of.is_multi_cell());
                if is_unlike || self.fit(of, &ty)? == Assignment::No {
                    return Err(SelectionRefusal::Hint {
                        text,
                        ty: ty.freeze().cql_name(),
                    }
                    .into());
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

    /// A term in a selector: a constant, or an index into `deferred`.
    fn deferred(&mut self, typed: TypedTerm) -> Expression {
        let names_part = matches!(self.place, TermPosition::Element(_) | TermPosition::Slice(_));
        match typed {
            // Null names no part. Like Cassandra we refuse it at execution, after all errors of the restrictions.
            TypedTerm::Constant(value) if value.is_some() || !names_part => Expression::Constant(value),
            term => {
                let place = self.place.clone();
                self.deferred.push(DeferredTerm { term, place });
                Expression::Marker(self.deferred.len() - 1)
            }
        }
    }

    fn aggregate(
        &mut self,
        function: Option<helenus_types::functions::Function>,
        arguments: Vec<Expression>,
    ) -> Expression {
        self.aggregates.push(Aggregate { function, arguments });
        Expression::Aggregate(self.aggregates.len() - 1)
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

    /// A part of this selector's value.
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
    Err(SelectionRefusal::NoType(text.to_owned()).into())
}

/// A term in a SELECT clause: formatted as elsewhere, but null is in capitals.
fn term_text(term: &Term) -> String {
    match term {
        Term::Literal(ast::Literal::Null) => "NULL".to_owned(),
        _ => TermText(term).to_string(),
    }
}

/// Positions of the columns that an expression reads.
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
