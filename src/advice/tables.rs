//! Rules about table definitions.

use super::model::{Model, Modelled};
use super::{Finding, Level, names, rules};
use helenus_schema::schema::{Column, IndexPart};
use helenus_types::types::{CqlType, quoted};

/// More indexes on a table than this give a warning.
const INDEXES_MAX: usize = 3;

pub(super) fn check(model: &Model, found: &mut Vec<Finding>) {
    for table in model.tables() {
        partition_key(table, found);
        // A view has its base table's columns, and no indexes.
        if table.base.is_some() {
            continue;
        }
        collections(table, found);
        indexes(table, model.has_queries, found);
    }
}

fn list(columns: &[std::sync::Arc<Column>]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    names.join(", ")
}

/// The most partition keys that the column types allow.
fn keys_max(key: &[std::sync::Arc<Column>]) -> Option<u64> {
    key.iter()
        .map(|column| names::values_max(column))
        .try_fold(1_u64, |all, values| all.checked_mul(values?))
}

/// The clustering column of time that makes a partition grow for as long as the table lives. `None` means that the
/// partition is bounded.
pub(super) fn grows_for_ever(modelled: &Modelled) -> Option<&Column> {
    let table = &modelled.table;
    let bucketed = table.partition_key().iter().any(|column| names::is_bucket(column));
    let ends = bucketed || modelled.expires();
    let mut clustering = table.clustering().iter().map(|column| column.as_ref());
    clustering.find(|column| names::is_time(column)).filter(|_| !ends)
}

fn partition_key(modelled: &Modelled, found: &mut Vec<Finding>) {
    let table = &modelled.table;
    let key = table.partition_key();
    let (Some(first), clustering) = (key.first(), table.clustering()) else {
        return;
    };
    let spot = modelled.column_spot(&first.name);
    let name = modelled.name();
    let mut tell = |rule, level, message| found.push(spot.finding(rule, level, name.clone(), message));
    let wide = !clustering.is_empty();
    let few = |column: &Column| names::few(column) || names::values_max(column).is_some();
    let low = key.iter().all(|column| few(column));
    if let Some(values) = keys_max(key) {
        let level = if wide { Level::Error } else { Level::Note };
        let message = format!(
            "the partition key ({}) has {values} values at most, by its type",
            list(key)
        );
        tell(&rules::LOW_CARDINALITY, level, message);
    } else if low {
        let level = if wide { Level::Warning } else { Level::Note };
        let message = format!("the partition key ({}) has few values, by its name", list(key));
        tell(&rules::LOW_CARDINALITY, level, message);
    } else if key.iter().all(|column| names::is_time_bucket(column) || few(column)) && wide {
        // Together with a column of few values, the current time is a few partitions instead of one.
        let alone = key.iter().all(|column| names::is_time_bucket(column));
        let message = format!(
            "all rows of one {} go to {}",
            list(key),
            if alone { "one partition" } else { "a few partitions" }
        );
        tell(&rules::APPEND_HOT_RANGE, Level::Warning, message);
    } else if let [only] = key
        && (names::is_time(only) || names::is_sequence(only))
    {
        let level = if wide { Level::Warning } else { Level::Note };
        let message = format!("the partition key {} goes on with time", quoted(&only.name));
        tell(&rules::MONOTONIC, level, message);
    }
    if let Some(time) = grows_for_ever(modelled) {
        let level = if low { Level::Error } else { Level::Warning };
        let message = format!(
            "a partition of {} gets rows in order of {} for ever: no bucket of time in the partition key, no default_time_to_live",
            list(key),
            quoted(&time.name)
        );
        tell(&rules::UNBOUNDED, level, message);
    }
}

fn collections(modelled: &Modelled, found: &mut Vec<Finding>) {
    for column in modelled.table.others() {
        let inner = match column.ty.unfrozen() {
            CqlType::List(inner) | CqlType::Set(inner) | CqlType::Map(_, inner) => inner,
            _ => continue,
        };
        let nested = matches!(inner.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..));
        let why = if names::grows(column) {
            "by its name it grows with use"
        } else if nested {
            "it has collections in it, which are read and written as a whole"
        } else {
            continue;
        };
        let level = if names::grows(column) {
            Level::Warning
        } else {
            Level::Note
        };
        let message = format!("{} {}: {why}", quoted(&column.name), column.ty.cql_name());
        let spot = modelled.column_spot(&column.name);
        found.push(spot.finding(&rules::LARGE_COLLECTION, level, modelled.name(), message));
    }
}

fn indexes(modelled: &Modelled, has_queries: bool, found: &mut Vec<Finding>) {
    let table = &modelled.table;
    if table.indexes.len() > INDEXES_MAX {
        let message = format!(
            "{} indexes, each kept by every write that touches its column",
            table.indexes.len()
        );
        let finding = modelled
            .spot
            .finding(&rules::INDEX_TOO_MANY, Level::Warning, modelled.name(), message);
        found.push(finding);
    }
    for (name, index) in &table.indexes {
        let Some((part, column)) = index.target_column() else {
            continue;
        };
        let Some((_, column)) = table.column(&column) else {
            continue;
        };
        let spot = modelled.index_spot(name);
        // An index on the key finds partitions, whatever its values.
        let is_key = table.partition_key().iter().any(|key| key.name == column.name);
        if part != IndexPart::Value || is_key {
            continue;
        }
        if names::values_max(column).is_some() || names::few(column) {
            let message = format!("index {name} on {}, which has few values", quoted(&column.name));
            found.push(spot.finding(&rules::INDEX_FEW_VALUES, Level::Warning, modelled.name(), message));
        }
        // Where queries are known, they show which columns change.
        if !has_queries && names::changes(column) {
            let message = format!(
                "index {name} on {}, which changes often by its name",
                quoted(&column.name)
            );
            found.push(spot.finding(&rules::INDEX_CHANGING, Level::Warning, modelled.name(), message));
        }
    }
}
