//! The tests of a materialized view's WHERE clause on the key columns of its base table, with their values. They are
//! stored in the view's record, so that a write needs no planning.

use std::sync::Arc;

use grammar::ast::{Operator, Relation};

use super::Ddl;
use super::error::DdlError;
use super::refusal::ViewRefusal;
use crate::command::{Comparison, FilterTarget, Value};
use crate::planner;
use crate::planner::BoundRefusal;
use crate::planner::markers::Markers;
use crate::planner::restrict::FilterPlan;
use crate::planner::restriction::{Kind, Restriction};
use crate::planner::term::Binding;
use crate::planner::validate::RestrictionValidator;
use crate::schema::{Table, ViewTest};
use helenus_types::functions::{Context, Timeuuids};

/// The tests of these relations. IS NOT NULL is no test: it always holds for a key column, and Cassandra does not check
/// it for others. As in Cassandra, `check` looks at what is restricted behind the relations and before the values.
pub(super) fn of(
    ddl: &Ddl<'_>,
    relations: &[Relation],
    base: &Arc<Table>,
    check: impl FnOnce() -> Result<(), DdlError>,
) -> Result<Vec<ViewTest>, DdlError> {
    let relations_to_test = relations
        .iter()
        .filter(|relation| relation.operator != Operator::IsNotNull);
    let relations_to_test: Vec<Relation> = relations_to_test.cloned().collect();
    if relations_to_test.is_empty() {
        return check().map(|()| Vec::new());
    }
    let refused = |error: planner::Error| DdlError::from(ViewRefusal::Where(error.to_string()));
    let mut markers = Markers::default();
    let mut typer = planner::typer(ddl.schema, base, &mut markers);
    // No index of the base answers for a view.
    let unindexed = Table {
        indexes: Default::default(),
        ..Table::clone(base)
    };
    let validator = RestrictionValidator {
        typer: &mut typer,
        table: Arc::new(unindexed),
        kind: Kind::Select,
        allow_filtering: true,
        ann: None,
    };
    let restrictions = validator.validate(&relations_to_test, false).map_err(refused)?;
    if restrictions.clustering_skips && restrictions.partition.iter().any(Restriction::is_in) {
        return Err(ViewRefusal::InBesideFilter.into());
    }
    check()?;
    let context = Context::new(ddl.context.now_micros, Arc::new(Timeuuids::new(0)), 0);
    let binding = Binding {
        values: &[],
        json: None,
        context: &context,
    };
    let all = restrictions.partition.iter().chain(&restrictions.clustering);
    let all = all.chain(&restrictions.others);
    let plans = all.flat_map(|restriction| FilterPlan::of(base, restriction));
    plans
        .map(|plan| {
            let test = match plan.bind(base, &binding) {
                // No value compares with null, so no row passes.
                Err(planner::Error::Bound(error)) if matches!(*error, BoundRefusal::NullFilter { .. }) => {
                    return Ok(nothing(base, &plan));
                }
                bound => bound.map_err(refused)?,
            };
            let (columns, is_tuple) = match &test.target {
                FilterTarget::Tuple(columns) => (columns.clone(), true),
                FilterTarget::Column(column) | FilterTarget::Analysed(column, _) => (vec![*column], false),
                FilterTarget::Element(..) | FilterTarget::Field(..) | FilterTarget::Token => {
                    let text = "Elements of columns cannot be restricted in a materialized view";
                    return Err(ViewRefusal::Where(text.to_owned()).into());
                }
            };
            let operands = test.operands.iter().filter_map(|operand| match operand {
                Value::Bytes(bytes) => Some(bytes.to_vec()),
                Value::Null | Value::Unset => None,
            });
            Ok(ViewTest {
                columns: names(base, &columns),
                is_tuple,
                sign: test.comparison.sign().to_owned(),
                operands: operands.collect(),
            })
        })
        .collect()
}

fn names(base: &Table, columns: &[usize]) -> Vec<String> {
    let columns = columns.iter().filter_map(|place| base.columns.get(*place));
    columns.map(|column| column.name.clone()).collect()
}

/// A test that no row passes.
fn nothing(base: &Table, plan: &FilterPlan) -> ViewTest {
    ViewTest {
        columns: names(base, plan.columns().get(..1).unwrap_or_default()),
        is_tuple: false,
        sign: Comparison::In.sign().to_owned(),
        operands: Vec::new(),
    }
}
