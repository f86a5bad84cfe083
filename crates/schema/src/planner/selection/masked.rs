//! What a client without permission to see the values of masked columns receives: in a SELECT, and from a conditional write
//! whose condition does not hold.
//!
//! A mask replaces its column wherever the SELECT clause computes with the column's value, inside functions, casts, tokens and
//! aggregates too (Cassandra's `SimpleSelector`). Write times, groups and the order of rows do not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use grammar::ast::Statement;

use super::{SelectionPlan, plan};
use crate::command::{ColumnMasks, Expression, Part};
use crate::planner::error::Error;
use crate::planner::markers::Markers;
use crate::planner::refusal::Unsupported;
use crate::planner::typing::CallMemo;
use crate::planner::typing::TypeChecker;
use crate::schema::{Column, Schema, Table};
use helenus_types::types::quoted;

/// The clause with masks; `None` means that it selects no masked column.
///
/// # Errors
///
/// A mask in the schema is invalid.
pub(crate) fn masked(
    schema: &Schema,
    table: &Arc<Table>,
    clear: &SelectionPlan,
) -> Result<Option<SelectionPlan>, Error> {
    let Some(masks) = masks(schema, table, clear.selected.iter().copied())? else {
        return Ok(None);
    };
    let mut masked = clear.clone();
    let template = Arc::make_mut(&mut masked.template);
    template
        .expressions
        .iter_mut()
        .for_each(|expression| substitute(expression, &masks));
    let arguments = template.aggregates.iter_mut().flat_map(|of| of.arguments.iter_mut());
    arguments.for_each(|argument| substitute(argument, &masks));
    Ok(Some(masked))
}

/// The masks of those of these columns that have one; `None` means that none has.
///
/// # Errors
///
/// A mask in the schema is invalid.
pub(crate) fn masks(
    schema: &Schema,
    table: &Arc<Table>,
    places: impl Iterator<Item = usize>,
) -> Result<Option<ColumnMasks>, Error> {
    if !table.is_masked() {
        return Ok(None);
    }
    let mut masks = BTreeMap::new();
    for place in places {
        if let Some(column) = table.columns.get(place)
            && column.mask.is_some()
        {
            masks.insert(place, mask(schema, table, column)?);
        }
    }
    Ok(Some(masks).filter(|masks| !masks.is_empty()))
}

/// The masks of all columns of a table that have one, as [`crate::command::MaskCalls`] says.
pub fn mask_calls(schema: &Schema, table: &Arc<Table>) -> Option<Arc<ColumnMasks>> {
    masks(schema, table, 0..table.columns.len())
        .ok()
        .flatten()
        .map(Arc::new)
}

/// The call that masks a column.
fn mask(schema: &Schema, table: &Arc<Table>, column: &Column) -> Result<Expression, Error> {
    let Some((function, arguments)) = &column.mask else {
        return Err(Unsupported::Selector.into());
    };
    let mut given = vec![quoted(&column.name)];
    given.extend(arguments.iter().cloned());
    // Planned as if it were selected; the table's name has no meaning here.
    let statement = grammar::parse(&format!("SELECT {function}({}) FROM t", given.join(", ")));
    let Ok(Statement::Select(select)) = &statement else {
        return Err(Unsupported::Selector.into());
    };
    let mut markers = Markers::default();
    let mut typer = TypeChecker {
        schema,
        keyspace: table.keyspace.as_str().into(),
        table_name: table.name.as_str().into(),
        table: Some(Arc::clone(table)),
        markers: &mut markers,
        calls: CallMemo::default(),
    };
    let planned = plan(&mut typer, table, select).map_err(|faults| faults.first())?;
    let call = planned.template.expressions.first().cloned();
    call.ok_or_else(|| Unsupported::Selector.into())
}

/// Replaces columns by their masks.
fn substitute(expression: &mut Expression, masks: &ColumnMasks) {
    match expression {
        Expression::Column(place) => {
            if let Some(mask) = masks.get(place) {
                *expression = mask.clone();
            }
        }
        Expression::Constant(_) | Expression::Marker(_) | Expression::Aggregate(_) => {}
        Expression::WriteTime { part, .. } | Expression::Ttl { part, .. } => {
            part.iter_mut().for_each(|part| substitute_part(part, masks));
        }
        Expression::Token(arguments)
        | Expression::Function { arguments, .. }
        | Expression::Construct {
            elements: arguments, ..
        } => {
            arguments.iter_mut().for_each(|argument| substitute(argument, masks));
        }
        Expression::Part { of, part, .. } => {
            substitute(of, masks);
            substitute_part(part, masks);
        }
    }
}

fn substitute_part(part: &mut Part, masks: &ColumnMasks) {
    match part {
        Part::Field(_) => {}
        Part::Element(key) => substitute(key, masks),
        Part::Slice(from, to) => {
            let ends = from.iter_mut().chain(to);
            ends.for_each(|end| substitute(end, masks));
        }
    }
}
