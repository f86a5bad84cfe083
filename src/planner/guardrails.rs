//! Guardrails: amounts above which a statement is answered with a warning, or refused.
//!
//! Those that Cassandra has on are on by default, the others off; names and texts are Cassandra's (`db.guardrails.Guardrails`,
//! `Guardrail#decorateMessage`, `BatchStatement#verifyBatchSize`). What takes planning or stored rows to know is counted by whoever
//! knows it; what a bound statement tells is counted here.
//!
//! Those on partitions as they are stored are logged when a partition is counted (`executor::logical`), as Cassandra logs them when it
//! compacts one. Switches and lists of values are in `switches`.
//!
//! Deliberately absent: guardrails about Cassandra's own machinery (disk usage, compaction, SSTables, replication factors, terms of
//! storage-attached indexes).

mod switches;

pub use switches::{Listed, Names, Switches};

use std::fmt;
use std::str::FromStr;

use grammar::ast::{AlterTableAction, AlterTypeAction, QualifiedName, Statement};

use super::error::Error;
use crate::command::{Clustering, ColumnChange, Partitions, Read, Write};
use crate::schema::{Keyspace, Schema, system};
use crate::types::CqlType;

/// An amount above which there is a warning, and one above which there is a refusal; `None`: never.
///
/// As text: both with a comma between, `off` for never, as in `1000,off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// A greater amount is warned of.
    pub warn: Option<u64>,
    /// A greater amount is refused.
    pub fail: Option<u64>,
}

impl Threshold {
    /// Warns above one amount, refuses above another.
    #[must_use]
    pub const fn new(warn: u64, fail: u64) -> Self {
        Self {
            warn: Some(warn),
            fail: Some(fail),
        }
    }

    /// What an amount comes to.
    #[must_use]
    pub fn judge(&self, amount: u64) -> Level {
        match (self.warn, self.fail) {
            (_, Some(fail)) if amount > fail => Level::Refuse(fail),
            (Some(warn), _) if amount > warn => Level::Warn(warn),
            _ => Level::Fine,
        }
    }

    /// Whether no amount is too great.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.warn.is_none() && self.fail.is_none()
    }
}

/// What an amount comes to, with the threshold that it is above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nothing to say.
    Fine,
    /// A warning.
    Warn(u64),
    /// A refusal.
    Refuse(u64),
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |amount: Option<u64>| amount.map_or_else(|| "off".to_owned(), |amount| amount.to_string());
        write!(formatter, "{},{}", part(self.warn), part(self.fail))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |text: &str| match text.trim() {
            "off" | "-1" => Ok(None),
            amount => amount
                .parse()
                .map(Some)
                .map_err(|_| "must be two amounts, WARN,FAIL, each a whole number or off".to_owned()),
        };
        let (warn, fail) = text.split_once(',').unwrap_or((text, "off"));
        let threshold = Self {
            warn: part(warn)?,
            fail: part(fail)?,
        };
        if let (Some(warn), Some(fail)) = (threshold.warn, threshold.fail)
            && warn > fail
        {
            return Err("the amount to warn above must not be greater than the one to refuse above".to_owned());
        }
        Ok(threshold)
    }
}

/// The thresholds of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guardrails {
    /// Bytes of a batch of several partitions, as Cassandra counts them.
    pub batch_bytes: Threshold,
    /// Partitions of an unlogged batch; only warned of.
    pub unlogged_batch_partitions: Threshold,
    /// Tombstones that one read walks over.
    pub tombstones: Threshold,
    /// Keyspaces that users made.
    pub keyspaces: Threshold,
    /// Tables in them.
    pub tables: Threshold,
    /// Columns of a table.
    pub columns_per_table: Threshold,
    /// Indexes of a table.
    pub secondary_indexes_per_table: Threshold,
    /// Materialized views of a table.
    pub materialized_views_per_table: Threshold,
    /// Fields of a user-defined type.
    pub fields_per_udt: Threshold,
    /// Partition keys of a SELECT.
    pub partition_keys_in_select: Threshold,
    /// Keys that the INs of a SELECT make by all combinations: partition keys, and clustering keys.
    pub in_select_cartesian_product: Threshold,
    /// Rows of a page that is asked for.
    pub page_size: Threshold,
    /// Elements that one write gives a collection.
    pub items_per_collection: Threshold,
    /// Bytes that one write gives a collection.
    pub collection_bytes: Threshold,
    /// Bytes of one value that is written.
    pub column_value_bytes: Threshold,
    /// Elements of a vector, by the type of a column or field.
    pub vector_dimensions: Threshold,
    /// Seconds that a timestamp may lie ahead of now.
    pub maximum_timestamp_seconds: Threshold,
    /// Seconds that a timestamp may lie behind now.
    pub minimum_timestamp_seconds: Threshold,
    /// Bytes of a partition as it is stored; only logged.
    pub partition_bytes: Threshold,
    /// Tombstones of a partition as it is stored; only logged.
    pub partition_tombstones: Threshold,
    /// Consistency levels of reads.
    pub read_levels: Listed,
    /// Consistency levels of writes.
    pub write_levels: Listed,
    /// Options of tables.
    pub table_properties: Listed,
    /// What may be done at all.
    pub switches: Switches,
}

impl Default for Guardrails {
    /// Cassandra's defaults.
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            batch_bytes: Threshold::new(5 * 1024, 50 * 1024),
            unlogged_batch_partitions: Threshold {
                warn: Some(10),
                fail: None,
            },
            tombstones: Threshold::new(1000, 100_000),
            keyspaces: off,
            tables: off,
            columns_per_table: off,
            secondary_indexes_per_table: off,
            materialized_views_per_table: off,
            fields_per_udt: off,
            partition_keys_in_select: off,
            in_select_cartesian_product: off,
            page_size: off,
            items_per_collection: off,
            collection_bytes: off,
            column_value_bytes: off,
            vector_dimensions: off,
            maximum_timestamp_seconds: off,
            minimum_timestamp_seconds: off,
            partition_bytes: off,
            partition_tombstones: off,
            read_levels: Listed::default(),
            write_levels: Listed::default(),
            table_properties: Listed::default(),
            switches: Switches::default(),
        }
    }
}

/// Bytes of a cell beside its value and path in Cassandra: timestamp, time to live, local deletion time.
pub(crate) const CELL_BYTES: usize = 20;

/// Bytes of the path of a list's cell.
const LIST_PATH_BYTES: usize = 16;

fn amount(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Adds a warning, or refuses. `text` is given whether it is a warning, and the threshold.
fn guard(
    name: &str,
    threshold: &Threshold,
    amount: u64,
    warnings: &mut Vec<String>,
    text: impl Fn(bool, u64) -> String,
) -> Result<(), Error> {
    let said = |is_warning, threshold| format!("Guardrail {name} violated: {}", text(is_warning, threshold));
    match threshold.judge(amount) {
        Level::Fine => Ok(()),
        Level::Warn(threshold) => {
            warnings.push(said(true, threshold));
            Ok(())
        }
        Level::Refuse(threshold) => Err(Error::invalid(said(false, threshold))),
    }
}

const fn grade(is_warning: bool) -> &'static str {
    if is_warning { "warning" } else { "failure" }
}

impl Guardrails {
    /// Looks at a change of the schema before it is carried out.
    ///
    /// # Errors
    ///
    /// When there would be more of something than there may be.
    pub fn ddl(
        &self,
        statement: &Statement,
        schema: &Schema,
        session_keyspace: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        self.switched(statement, warnings)?;
        let keyspace_of = |name: &QualifiedName| {
            let keyspace = name.keyspace.as_ref().map(grammar::ast::Name::as_str);
            schema.keyspaces.get(keyspace.or(session_keyspace)?)
        };
        match statement {
            Statement::CreateKeyspace(create) => {
                let count = amount(user_keyspaces(schema).count() + 1);
                let name = create.name.as_str();
                guard(
                    "keyspaces",
                    &self.keyspaces,
                    count,
                    warnings,
                    |is_warning, threshold| {
                        if is_warning {
                            format!(
                                "Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of {threshold}."
                            )
                        } else {
                            format!(
                                "Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {name}"
                            )
                        }
                    },
                )
            }
            Statement::CreateTable(create) => {
                let name = create.table.name.as_str();
                self.columns(name, create.columns.len(), warnings)?;
                let tables = user_keyspaces(schema)
                    .map(|keyspace| keyspace.tables.len())
                    .sum::<usize>();
                let count = amount(tables + 1);
                guard("tables", &self.tables, count, warnings, |is_warning, threshold| {
                    if is_warning {
                        format!(
                            "Creating table {name}, current number of tables {count} exceeds warning threshold of {threshold}."
                        )
                    } else {
                        format!("Cannot have more than {threshold} tables, aborting the creation of table {name}")
                    }
                })
            }
            Statement::AlterTable(alter) => {
                let table =
                    keyspace_of(&alter.table).and_then(|keyspace| keyspace.tables.get(alter.table.name.as_str()));
                let (Some(table), AlterTableAction::Add { columns, .. }) = (table, &alter.action) else {
                    return Ok(());
                };
                self.columns(&table.name, table.columns.len() + columns.len(), warnings)
            }
            Statement::CreateType(create) => self.fields(create.name.name.as_str(), create.fields.len(), warnings),
            Statement::AlterType(alter) => {
                let known = keyspace_of(&alter.name).and_then(|keyspace| keyspace.types.get(alter.name.name.as_str()));
                let (Some(known), AlterTypeAction::Add { .. }) = (known, &alter.action) else {
                    return Ok(());
                };
                self.fields(alter.name.name.as_str(), known.fields.len() + 1, warnings)
            }
            Statement::CreateIndex(create) => {
                let table =
                    keyspace_of(&create.table).and_then(|keyspace| keyspace.tables.get(create.table.name.as_str()));
                let Some(table) = table else { return Ok(()) };
                let count = amount(table.indexes.len() + 1);
                let name = create.name.as_ref().map(|name| format!("{} ", name.name.as_str()));
                let what = format!("{}on table {}", name.unwrap_or_default(), table.name);
                let threshold = &self.secondary_indexes_per_table;
                guard(
                    "secondary_indexes_per_table",
                    threshold,
                    count,
                    warnings,
                    |is_warning, threshold| {
                        if is_warning {
                            format!(
                                "Creating secondary index {what}, current number of indexes {count} exceeds warning threshold of \
                             {threshold}."
                            )
                        } else {
                            format!(
                                "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary \
                             index {what}"
                            )
                        }
                    },
                )
            }
            Statement::CreateView(create) => {
                let Some(keyspace) = keyspace_of(&create.base_table) else {
                    return Ok(());
                };
                let count = amount(keyspace.views_of(create.base_table.name.as_str()).count() + 1);
                let what = format!(
                    "{} on table {}",
                    create.name.name.as_str(),
                    create.base_table.name.as_str()
                );
                let threshold = &self.materialized_views_per_table;
                guard(
                    "materialized_views_per_table",
                    threshold,
                    count,
                    warnings,
                    |is_warning, threshold| {
                        if is_warning {
                            format!(
                                "Creating materialized view {what}, current number of views {count} exceeds warning threshold of \
                             {threshold}."
                            )
                        } else {
                            format!(
                                "Tables cannot have more than {threshold} materialized views, aborting the creation of materialized \
                             view {what}"
                            )
                        }
                    },
                )
            }
            _ => Ok(()),
        }
    }

    fn columns(&self, table: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), Error> {
        let threshold = &self.columns_per_table;
        guard(
            "columns_per_table",
            threshold,
            amount(count),
            warnings,
            |is_warning, threshold| {
                if is_warning {
                    format!("The table {table} has {count} columns, this exceeds the warning threshold of {threshold}.")
                } else {
                    format!("Tables cannot have more than {threshold} columns, but {count} provided for table {table}")
                }
            },
        )
    }

    fn fields(&self, name: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), Error> {
        let threshold = &self.fields_per_udt;
        // Cassandra calls them columns here.
        guard(
            "fields_per_udt",
            threshold,
            amount(count),
            warnings,
            |is_warning, threshold| {
                if is_warning {
                    format!(
                        "The user type {name} has {count} columns, this exceeds the warning threshold of {threshold}."
                    )
                } else {
                    format!(
                        "User types cannot have more than {threshold} columns, but {count} provided for user type {name}."
                    )
                }
            },
        )
    }

    /// Looks at a bound SELECT; `page_rows` is the size of its pages, if it is paged.
    ///
    /// # Errors
    ///
    /// When it asks for more than it may.
    pub fn select(&self, select: &Read, page_rows: Option<u32>, warnings: &mut Vec<String>) -> Result<(), Error> {
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

    fn product(&self, of: &str, count: u64, warnings: &mut Vec<String>) -> Result<(), Error> {
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

    /// Looks at what a bound modification does, and at the values that it writes.
    ///
    /// # Errors
    ///
    /// When it does what it may not, or a value is greater than it may be.
    pub fn modification(&self, modification: &Write, now_micros: i64, warnings: &mut Vec<String>) -> Result<(), Error> {
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

    fn value(&self, column: &str, bytes: usize, warnings: &mut Vec<String>) -> Result<(), Error> {
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

    fn collection(&self, column: &str, count: usize, bytes: usize, warnings: &mut Vec<String>) -> Result<(), Error> {
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
}

fn is_collection(ty: &CqlType) -> bool {
    matches!(ty.unfrozen(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}

/// Keyspaces that Cassandra does not make itself.
fn user_keyspaces(schema: &Schema) -> impl Iterator<Item = &Keyspace> {
    schema
        .keyspaces
        .values()
        .map(std::convert::AsRef::as_ref)
        .filter(|keyspace: &&Keyspace| {
            let name = keyspace.name.as_str();
            !system::is_local(name) && !matches!(name, "system_auth" | "system_distributed" | "system_traces")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_two_amounts() {
        assert_eq!("5,10".parse(), Ok(Threshold::new(5, 10)));
        let warn_only = Threshold {
            warn: Some(5),
            fail: None,
        };
        assert_eq!("5".parse(), Ok(warn_only));
        assert_eq!(warn_only.to_string().parse(), Ok(warn_only));
        assert_eq!("off,off".parse(), Ok(Threshold::default()));
        assert!("10,5".parse::<Threshold>().is_err());
        assert!("ten".parse::<Threshold>().is_err());
        let threshold = Threshold::new(5, 10);
        assert_eq!(
            [5, 6, 10, 11].map(|amount| threshold.judge(amount)),
            [Level::Fine, Level::Warn(5), Level::Warn(5), Level::Refuse(10)]
        );
    }
}
