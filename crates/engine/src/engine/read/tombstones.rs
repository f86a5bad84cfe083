//! The tombstones that a read has walked over, and the warning about them.
//!
//! Counted as Cassandra's `ReadCommand` does: cells that were deleted or have expired, deletions and expiries of whole
//! rows without such cells, and two for each deleted range; by partition where partitions are named, else over the
//! page.

use crate::engine::part::Walked;
use crate::engine::value;
use helenus_schema::command::{Clustering, FilterTarget, Partitions, Read, Value};
use helenus_schema::schema::Column;
use helenus_types::token::Token;
use helenus_types::types::quoted;

/// Longest text of a query in a warning, in characters.
const QUERY_CHARACTERS_MAX: usize = 512;

/// Cassandra's warning. `partition_key` is the last one that was read; `page_rows` the size of the page, if there are
/// pages.
pub(crate) fn warning(select: &Read, page_rows: Option<u32>, partition_key: &[u8], walked: Walked) -> String {
    let query: String = query_text(select, page_rows, partition_key)
        .chars()
        .take(QUERY_CHARACTERS_MAX)
        .collect();
    format!(
        "Read {} live rows and {} tombstone cells for query {query}; token {} (see tombstone_warn_threshold)",
        walked.rows,
        walked.tombstones,
        Token::of(partition_key).value()
    )
}

/// The read as Cassandra's `toCQLString` prints it. Ranges of clustering columns are left out: only their encoded keys
/// are known here.
fn query_text(select: &Read, page_rows: Option<u32>, partition_key: &[u8]) -> String {
    let table = select.table.as_ref();
    let keys = table.partition_key_count + table.clustering_count;
    let needed: Vec<usize> = select
        .selection
        .needed
        .iter()
        .copied()
        .filter(|place| *place >= keys)
        .collect();
    let names = |places: &[usize]| {
        let names = places.iter().filter_map(|place| table.columns.get(*place));
        names.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
    };
    let columns = if needed.is_empty() || needed.len() == table.columns.len() - keys {
        "*".to_owned()
    } else {
        names(&needed)
    };
    let mut text = format!(
        "SELECT {columns} FROM {}.{}",
        quoted(&table.keyspace),
        quoted(&table.name)
    );
    let restrictions = restrictions(select, partition_key);
    if !restrictions.is_empty() {
        text = format!("{text} WHERE {}", restrictions.join(" AND "));
    }
    if select.reversed {
        let orders = table.clustering().iter().map(|column| {
            let order = if column.descending { "ASC" } else { "DESC" };
            format!("{} {order}", quoted(&column.name))
        });
        text = format!("{text} ORDER BY {}", orders.collect::<Vec<_>>().join(", "));
    }
    if select.distinct {
        text.push_str(" PER PARTITION LIMIT 1");
    } else if let Some(limit) = select.per_partition_limit_rows {
        text = format!("{text} PER PARTITION LIMIT {limit}");
    }
    if !select.selection.aggregates.is_empty() && select.group_by.is_none() {
        // Cassandra prints the limits of an aggregation as nothing between two blanks.
        text.push(' ');
    } else if let Some(limit) = select.limit_rows.into_iter().chain(page_rows).min() {
        text = format!("{text} LIMIT {limit}");
    }
    text.push_str(" ALLOW FILTERING");
    text
}

fn restrictions(select: &Read, partition_key: &[u8]) -> Vec<String> {
    let table = select.table.as_ref();
    let mut found = Vec::new();
    let equal = |column: &Column, value: &[u8]| format!("{} = {}", quoted(&column.name), column.shown(value));
    if let Partitions::Keys(_) = &select.partitions {
        let components = value::key_components(partition_key, table.partition_key_count);
        found.extend(
            table
                .columns
                .iter()
                .zip(components)
                .map(|(column, value)| equal(column, value)),
        );
    }
    if let Clustering::Keys(keys) = &select.rows {
        match (keys.as_slice(), table.clustering()) {
            ([key], columns) => {
                let mut rest = key.as_slice();
                for column in columns {
                    let Ok(value) = column.ty.decode_key(&mut rest, column.key_order()) else {
                        break;
                    };
                    found.push(equal(column, &value));
                }
            }
            (keys, [column]) => {
                let values = keys.iter().filter_map(|key| {
                    let value = column.ty.decode_key(&mut key.as_slice(), column.key_order()).ok()?;
                    Some(column.shown(&value))
                });
                let values = values.collect::<Vec<_>>().join(", ");
                found.push(format!("{} IN ({values})", quoted(&column.name)));
            }
            _ => {}
        }
    }
    for filter in select.filter.required() {
        if let (FilterTarget::Column(place), [Value::Bytes(value)]) = (&filter.target, filter.operands.as_slice())
            && let Some(column) = table.columns.get(*place)
        {
            let sign = filter.comparison.sign();
            let value = match column.mask {
                Some(_) => column.shown(value),
                None => filter.ty.to_literal(value),
            };
            found.push(format!("{} {sign} {value}", quoted(&column.name)));
        }
    }
    found
}
