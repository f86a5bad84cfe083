//! The check of an approximate nearest neighbour (ANN) search: what Cassandra refuses and warns of only at execution
//! (`SelectStatement.execute`).

use crate::engine::refusal::NearestRefusal;
use crate::engine::{Error, levels};
use helenus_schema::command::{NEAREST_LIMIT_MAX as LIMIT_MAX, Read};
use helenus_types::consistency::Consistency;

/// Refuses clauses that an ANN search does not support, and returns warnings where the search deviates from the
/// statement.
///
/// # Errors
/// Aggregates and groups, a serial level, no LIMIT or one that is too great, PER PARTITION LIMIT.
pub(super) fn check(
    select: &Read,
    asked: Consistency,
    page_rows: Option<u32>,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    if !select.selection.aggregates.is_empty() || select.group_by.is_some() {
        return Err(NearestRefusal::Aggregation.into());
    }
    if asked.is_serial() {
        return Err(NearestRefusal::Level(asked).into());
    }
    if let Some(level) = levels::of_nearest(asked) {
        warnings.push(format!(
            "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level {} was \
             requested. Downgrading the consistency level to {}.",
            asked.name(),
            level.name()
        ));
    }
    if select.per_partition_limit_rows.is_some() {
        return Err(NearestRefusal::PerPartitionLimit.into());
    }
    // Cassandra treats the greatest integer as no limit.
    let Some(limit) = select.limit_rows.filter(|rows| *rows < i32::MAX.unsigned_abs()) else {
        return Err(NearestRefusal::NoLimit.into());
    };
    if let Some(rows) = page_rows
        && rows < limit
    {
        warnings.push(format!(
            "Top-K queries do not support paging and the page size is set to {rows}, which is less than LIMIT {limit}. The page \
             size has been set to {limit} to match the LIMIT."
        ));
    }
    if limit > LIMIT_MAX {
        let refusal = NearestRefusal::Limit {
            rows: limit,
            rows_max: LIMIT_MAX,
        };
        return Err(refusal.into());
    }
    Ok(())
}
