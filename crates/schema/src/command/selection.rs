//! Selections: the columns that a read returns for each row or group. Made once for a statement and shared by all its
//! reads.

use std::sync::Arc;

use super::{Aggregate, Expression};
use crate::schema::Table;
use helenus_types::types::CqlType;

/// One column of a result: its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Name as the client sees it.
    pub name: String,
    /// Type.
    pub ty: CqlType,
}

/// The columns that a read returns for each row or group.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Metadata.
    pub columns: Arc<Vec<ResultColumn>>,
    /// One for each column. Plain columns are `Expression::Column`, so that a cell can be copied straight into an
    /// answer.
    pub expressions: Vec<Expression>,
    /// Aggregates that `expressions` refer to; empty if there are none.
    pub aggregates: Vec<Aggregate>,
    /// Positions in `table.columns` that must be read: for expressions, filters, grouping and sorting. Sorted.
    pub needed: Vec<usize>,
    /// Whether write times or expiries are needed.
    pub needs_metadata: bool,
    /// SELECT JSON: these columns, as they would be without JSON, are combined into one text, which is the only one in
    /// `columns`.
    pub json_columns: Option<Arc<Vec<ResultColumn>>>,
    /// SELECT JSON * of the change feed: in the profile `cosmos` the text also has the write times and expiries of its row.
    pub has_system_columns: bool,
}

impl Selection {
    /// These columns of a table, by their positions in `table.columns`, as stored. A position that the table lacks is
    /// left out.
    #[must_use]
    pub fn of_columns(table: &Table, places: &[usize]) -> Self {
        let columns = places
            .iter()
            .filter_map(|place| Some((*place, table.columns.get(*place)?)));
        let (places, columns): (Vec<usize>, Vec<ResultColumn>) = columns
            .map(|(place, column)| {
                let column = ResultColumn {
                    name: column.name.clone(),
                    ty: column.ty.clone(),
                };
                (place, column)
            })
            .unzip();
        let mut needed = places.clone();
        needed.sort_unstable();
        needed.dedup();
        Self {
            columns: Arc::new(columns),
            expressions: places.into_iter().map(Expression::Column).collect(),
            aggregates: Vec::new(),
            needed,
            needs_metadata: false,
            json_columns: None,
            has_system_columns: false,
        }
    }
}
