//! Guardrails of CQL statements: checks that need the statement. Checks of commands are in [`crate::guardrails`].

mod switches;

use grammar::ast::{AlterTableAction, AlterTypeAction, QualifiedName, Statement};

use crate::guardrails::{Guardrails, Violation, amount, guard};
use crate::schema::{Keyspace, Schema, Table, system};

impl Guardrails {
    /// Checks a schema change before it is executed.
    ///
    /// # Errors
    ///
    /// The change exceeds a threshold or uses a disabled feature.
    pub fn ddl(
        &self,
        statement: &Statement,
        schema: &Schema,
        session_keyspace: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Violation> {
        self.switched(statement, warnings)?;
        let keyspace_of = |name: &QualifiedName| {
            let keyspace = name.keyspace.as_ref().map(grammar::ast::Name::as_str);
            schema.keyspaces.get(keyspace.or(session_keyspace)?)
        };
        match statement {
            Statement::CreateKeyspace(create) => self.more_keyspaces(create.name.as_str(), schema, warnings),
            Statement::CreateTable(create) => {
                let name = create.table.name.as_str();
                self.columns(name, create.columns.len(), warnings)?;
                self.more_tables(name, schema, warnings)
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
                let name = create.name.as_ref().map(|name| format!("{} ", name.name.as_str()));
                self.more_indexes(&name.unwrap_or_default(), table, warnings)
            }
            Statement::CreateView(create) => match keyspace_of(&create.base_table) {
                Some(keyspace) => {
                    let base = create.base_table.name.as_str();
                    let count = keyspace.views_of(base).count() + 1;
                    self.more_views(
                        &format!("{} on table {base}", create.name.name.as_str()),
                        count,
                        warnings,
                    )
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn more_keyspaces(&self, name: &str, schema: &Schema, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let count = amount(user_keyspaces(schema).count() + 1);
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
                    format!("Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {name}")
                }
            },
        )
    }

    fn more_tables(&self, name: &str, schema: &Schema, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let tables = user_keyspaces(schema).map(|keyspace| keyspace.tables.len());
        let count = amount(tables.sum::<usize>() + 1);
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

    /// `name` ends with a blank, unless the index has none yet.
    fn more_indexes(&self, name: &str, table: &Table, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let count = amount(table.indexes.len() + 1);
        let what = format!("{name}on table {}", table.name);
        let (guardrail, limit) = ("secondary_indexes_per_table", &self.secondary_indexes_per_table);
        guard(guardrail, limit, count, warnings, |is_warning, threshold| {
            if is_warning {
                format!(
                    "Creating secondary index {what}, current number of indexes {count} exceeds warning threshold of {threshold}."
                )
            } else {
                format!(
                    "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary index {what}"
                )
            }
        })
    }

    fn more_views(&self, what: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let count = amount(count);
        let (guardrail, limit) = ("materialized_views_per_table", &self.materialized_views_per_table);
        guard(guardrail, limit, count, warnings, |is_warning, threshold| {
            if is_warning {
                format!(
                    "Creating materialized view {what}, current number of views {count} exceeds warning threshold of {threshold}."
                )
            } else {
                format!(
                    "Tables cannot have more than {threshold} materialized views, aborting the creation of materialized view \
                     {what}"
                )
            }
        })
    }

    fn columns(&self, table: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), Violation> {
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

    fn fields(&self, name: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), Violation> {
        let threshold = &self.fields_per_udt;
        // Cassandra's message calls them columns.
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
}

/// Keyspaces that are not Cassandra's own.
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
