//! Guardrails of CQL statements: checks that need the statement. Checks of commands are in [`crate::guardrails`].

mod switches;

use grammar::ast::{AlterTableAction, AlterTypeAction, QualifiedName, Statement};

use crate::guardrails::{Guardrails, Violation, amount, guard};
use crate::schema::{Keyspace, Schema, system};

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
