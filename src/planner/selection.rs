//! The SELECT clause: what is computed for each row, what it is called, which columns it needs.

use std::sync::Arc;

use grammar::ast::{self, Selector};

use super::bound::{Aggregate, Expression, Part, ResultColumn, Selection};
use super::error::Error;
use super::restriction::column;
use super::term::{Binding, Typer};
use crate::schema::{ColumnKind, Table};
use crate::types::{CqlType, Native};

/// A planned SELECT clause.
#[derive(Clone, Debug)]
pub(crate) struct SelectionPlan {
    /// The clause; its markers are still in it where `has_markers`.
    pub(crate) template: Arc<Selection>,
    /// Columns that the clause itself names.
    pub(crate) selected: Vec<usize>,
    /// Whether binding changes it.
    has_markers: bool,
}

impl SelectionPlan {
    /// The clause with its values in.
    pub(crate) fn bind(&self, _: &Binding<'_>) -> Result<Arc<Selection>, Error> {
        debug_assert!(!self.has_markers);
        Ok(Arc::clone(&self.template))
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

/// Plans the SELECT clause.
pub(crate) fn plan(_typer: &mut Typer<'_>, table: &Arc<Table>, select: &ast::Select) -> Result<SelectionPlan, Error> {
    let mut columns = Vec::new();
    let mut expressions = Vec::new();
    let mut aggregates = Vec::new();
    let mut selected = Vec::new();
    match &select.selection {
        ast::Selection::All => {
            for (index, column) in table.columns.iter().enumerate() {
                columns.push(ResultColumn {
                    name: column.name.clone(),
                    ty: column.ty.clone(),
                });
                expressions.push(Expression::Column(index));
                selected.push(index);
            }
        }
        ast::Selection::Selectors(selectors) => {
            for item in selectors {
                let (expression, name, ty) = match &item.selector {
                    Selector::Column(name) => {
                        let (index, column) = column(table, name.as_str())?;
                        selected.push(index);
                        (Expression::Column(index), column.name.clone(), column.ty.clone())
                    }
                    Selector::CountRows(_) => {
                        aggregates.push(Aggregate {
                            function: None,
                            arguments: Vec::new(),
                        });
                        let expression = Expression::Aggregate(aggregates.len() - 1);
                        (expression, "count".to_owned(), CqlType::Native(Native::Bigint))
                    }
                    _ => return Err(Error::Unsupported("This selector".into())),
                };
                let name = item.alias.as_ref().map_or(name, |alias| alias.as_str().to_owned());
                columns.push(ResultColumn { name, ty });
                expressions.push(expression);
            }
        }
    }
    let mut needed = selected.clone();
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
        aggregates,
        needed,
        needs_metadata: false,
        json_columns,
    };
    Ok(SelectionPlan {
        template: Arc::new(template),
        selected,
        has_markers: false,
    })
}

/// A function in GROUP BY.
pub(crate) fn group_function(_: &mut Typer<'_>, _: &Arc<Table>, _: &Selector) -> Result<(Expression, String), Error> {
    Err(Error::Unsupported("A function in GROUP BY".into()))
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
