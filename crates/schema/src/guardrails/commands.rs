//! Guardrails of reads and writes that a command alone decides.

use super::{CELL_BYTES, Guardrails, Violation, amount, ensure, grade, guard};
use crate::command::{Clustering, ColumnChange, Partitions, Read, Write};
use helenus_types::types::CqlType;

/// Bytes of the path of a list's cell.
const LIST_PATH_BYTES: usize = 16;

impl Guardrails {
    /// Checks a bound SELECT; `page_rows` is the size of its pages, if it is paged.
    ///
    /// # Errors
    ///
    /// The SELECT exceeds a guardrail.
    pub fn select(&self, select: &Read, page_rows: Option<u32>, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let table = select.table.name.as_str();
        if let Partitions::Keys(keys) = &select.partitions
            && keys.len() > 1
        {
            let count = amount(keys.len());
            if select.table.partition_key_count > 1 {
                self.product("partition key", count, warnings)?;
            }
            let threshold = &self.partition_keys_in_select;
            guard(
                "partition_keys_in_select",
                threshold,
                count,
                warnings,
                |is_warning, threshold| {
                    if is_warning {
                        format!(
                            "Query with partition keys in IN clause on table {table}, with number of partition keys {count} exceeds \
                         warning threshold of {threshold}."
                        )
                    } else {
                        format!(
                            "Aborting query with partition keys in IN clause on table {table}, number of partition keys {count} \
                         exceeds fail threshold of {threshold}."
                        )
                    }
                },
            )?;
        }
        if let Clustering::Keys(keys) = &select.rows
            && keys.len() > 1
        {
            self.product("clustering key", amount(keys.len()), warnings)?;
        }
        let Some(rows) = page_rows.filter(|rows| select.limit_rows.is_none_or(|limit| limit > *rows)) else {
            return Ok(());
        };
        guard(
            "page_size",
            &self.page_size,
            u64::from(rows),
            warnings,
            |is_warning, threshold| {
                if is_warning {
                    format!("Query for table {table} with page size {rows} exceeds warning threshold of {threshold}.")
                } else {
                    format!("Aborting query for table {table}, page size {rows} exceeds fail threshold of {threshold}.")
                }
            },
        )
    }

    fn product(&self, of: &str, count: u64, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let threshold = &self.in_select_cartesian_product;
        guard(
            "in_select_cartesian_product",
            threshold,
            count,
            warnings,
            |is_warning, threshold| {
                if is_warning {
                    format!(
                        "The cartesian product of the IN restrictions on {of} produces {count} values, this exceeds warning \
                     threshold of {threshold}."
                    )
                } else {
                    format!(
                        "Aborting query because the cartesian product of the IN restrictions on {of} produces {count} values, this \
                     exceeds fail threshold of {threshold}."
                    )
                }
            },
        )
    }

    /// Checks what a bound modification does, and the values that it writes.
    ///
    /// # Errors
    ///
    /// The modification, or one of its values, exceeds a guardrail.
    pub fn modification(
        &self,
        modification: &Write,
        now_micros: i64,
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
        self.ways(modification, now_micros, warnings)?;
        if self.items_per_collection.is_off() && self.collection_bytes.is_off() && self.column_value_bytes.is_off() {
            return Ok(());
        }
        for (place, operation) in &modification.operations {
            let Some(column) = modification.table.columns.get(*place) else {
                continue;
            };
            let mut count = 0;
            let mut bytes = 0;
            let mut value = |path: usize, value: usize, warnings: &mut Vec<String>| {
                count += 1;
                bytes += CELL_BYTES + path + value;
                self.value(&column.name, value, warnings)
            };
            match operation {
                ColumnChange::Set(crate::command::Value::Bytes(frozen)) => {
                    value(0, frozen.len(), warnings)?;
                    if !is_collection(&column.ty) {
                        continue;
                    }
                    let head = frozen.first_chunk().map_or(0, |head| u32::from_be_bytes(*head));
                    count = usize::try_from(head).unwrap_or(usize::MAX);
                }
                ColumnChange::Replace(elements) => {
                    for (key, bytes) in elements {
                        value(
                            key.as_ref().map_or(LIST_PATH_BYTES, bytes::Bytes::len),
                            bytes.len(),
                            warnings,
                        )?;
                    }
                }
                ColumnChange::Put(elements) => {
                    for (key, bytes) in elements {
                        value(key.len(), bytes.as_ref().map_or(0, bytes::Bytes::len), warnings)?;
                    }
                }
                ColumnChange::Append(values) | ColumnChange::Prepend(values) => {
                    for bytes in values {
                        value(LIST_PATH_BYTES, bytes.len(), warnings)?;
                    }
                }
                _ => continue,
            }
            if is_collection(&column.ty) {
                self.collection(&column.name, count, bytes, warnings)?;
            }
        }
        Ok(())
    }

    fn value(&self, column: &str, bytes: usize, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let threshold = &self.column_value_bytes;
        guard(
            "column_value_size",
            threshold,
            amount(bytes),
            warnings,
            |is_warning, threshold| {
                format!(
                    "Value of column '{column}' has size {bytes}, this exceeds the {} threshold of {threshold}.",
                    grade(is_warning)
                )
            },
        )
    }

    fn collection(
        &self,
        column: &str,
        count: usize,
        bytes: usize,
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
        let threshold = &self.items_per_collection;
        guard(
            "items_per_collection",
            threshold,
            amount(count),
            warnings,
            |is_warning, threshold| {
                format!(
                    "Detected collection {column} with {count} items, this exceeds the {} threshold of {threshold}.",
                    grade(is_warning)
                )
            },
        )?;
        let threshold = &self.collection_bytes;
        guard(
            "collection_size",
            threshold,
            amount(bytes),
            warnings,
            |is_warning, threshold| {
                format!(
                    "Detected collection {column} of size {bytes}, this exceeds the {} threshold of {threshold}.",
                    grade(is_warning)
                )
            },
        )
    }

    /// Checks a modification apart from its values: its timestamp, and lists that it has to read.
    fn ways(&self, modification: &Write, now_micros: i64, warnings: &mut Vec<String>) -> Result<(), Violation> {
        if let Some(timestamp) = modification.timestamp {
            ensure(
                self.switches.user_timestamps,
                "user_timestamps",
                "User provided timestamps (USING TIMESTAMP)",
            )?;
            self.timestamp(&modification.table.name, timestamp, now_micros, warnings)?;
        }
        if self.switches.read_before_write_list_operations {
            return Ok(());
        }
        for (_, operation) in &modification.operations {
            let what = match operation {
                ColumnChange::SetAt(_, Some(_)) => "Setting of list items by index",
                ColumnChange::SetAt(_, None) => "Removal of list items by index",
                ColumnChange::Discard(_) => "Removal of list items",
                _ => continue,
            };
            let what = format!("{what} requiring read before write");
            ensure(false, "read_before_write_list_operations", &what)?;
        }
        Ok(())
    }

    /// Checks a timestamp by its distance from now, to the millisecond as in Cassandra.
    fn timestamp(
        &self,
        table: &str,
        timestamp: i64,
        now_micros: i64,
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
        let now = now_micros - now_micros.rem_euclid(1000);
        let micros =
            |seconds: u64| i64::try_from(seconds).map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000_000));
        let future = (
            "maximum_timestamp",
            &self.maximum_timestamp_seconds,
            1,
            "after the maximum",
            "future can lead to data that can't be easily overwritten",
        );
        let past = (
            "minimum_timestamp",
            &self.minimum_timestamp_seconds,
            -1,
            "before the minimum",
            "past can cause writes can be unexpectedly lost",
        );
        for (name, threshold, sign, where_it_is, danger) in [future, past] {
            // The distance in whole seconds, rounded up, so that it exceeds a threshold exactly if the timestamp does.
            let off = timestamp.saturating_sub(now).saturating_mul(sign);
            let off = u64::try_from(off).unwrap_or(0).div_ceil(1_000_000);
            guard(name, threshold, off, warnings, |is_warning, threshold| {
                let bound = now.saturating_add(micros(threshold).saturating_mul(sign));
                format!(
                    "The modification to table {table} has a timestamp {timestamp} {where_it_is} allowable {} threshold {bound}. \
                     Timestamps too far in the {danger}",
                    grade(is_warning),
                )
            })?;
        }
        Ok(())
    }
}

fn is_collection(ty: &CqlType) -> bool {
    matches!(ty.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}
