//! The rules of the profile `cosmos`: all statements and options that Azure Cosmos DB for Apache Cassandra refuses, ignores
//! or names differently.
//!
//! ```text
//! text ─ grammar ─► ast::Statement ─ Rules::translate ─► ast::Statement ─ plan ─► Planned ─ Rules::check ─► Planned
//!                                     refused statements  in Cassandra's terms               rules that need the table
//! ```
//! In the profile `cassandra` no statement is changed. Columns to be indexed are checked by `index_target`, and a new
//! table's options are filled in by `table_defaults`: `ddl` calls both while it executes a statement.
//!
//! If Cosmos's own message is known, it is used here as its users have reported it. If only the fact is known, the
//! message is ours and the code is 0x2200. Where the sources contradict each other or are silent, the statement is
//! accepted unless [`Strict`] forbids it.
//!
//! Deliberately absent: throughput (`ddl::cosmos`), sizes (limits), consistency levels (the engine).
//!
//! Sources: Azure Cosmos DB's documentation of CQL support, secondary indexing, lightweight transactions, tokens;
//! azure-docs#15767, jaeger#1105 and #5185, akka-persistence-cassandra#764, JanusGraph#2499, kairosdb#580 on GitHub.

mod refusal;
mod rename;
mod select;
mod write;

use std::collections::BTreeMap;

use grammar::ast::{
    AlterTableAction, CreateIndex, IndexTargetKind, Literal, Modification, Name, Property, PropertyValue, Statement,
    Type,
};

pub use self::refusal::{Code, Refusal};
use super::{Planned, batch};
use crate::command::BatchKind;
use crate::profile::{Rules, Strict};
use crate::schema::index::is_cosmos_class;
use crate::schema::{Column, ColumnKind, TableOptions, typename};
use helenus_types::types::{CqlType, Native};

/// The class of indexes on clustering columns, which permit ORDER BY.
pub const CLUSTERING_INDEX_CLASS: &str = "CosmosClusteringIndex";

impl Rules {
    /// Translates a statement, written as `text`, into one that makes Cassandra do what Cosmos does.
    ///
    /// # Errors
    /// Cosmos refuses it whatever the schema is.
    pub fn translate(&self, mut statement: Statement, text: &str) -> Result<Statement, Refusal> {
        if self.profile.is_cosmos() {
            if matches!(statement, Statement::CreateTable(_)) {
                no_comma_at_end(text)?;
            }
            self.translate_in_place(&mut statement)?;
        }
        Ok(statement)
    }

    fn translate_in_place(&self, statement: &mut Statement) -> Result<(), Refusal> {
        if let Some(what) = unsupported_feature(statement) {
            return Err(Refusal::Unsupported(what));
        }
        let strict = &self.account.strict;
        match statement {
            Statement::Explain(explained) => self.translate_in_place(explained),
            Statement::Select(select) => {
                select::translate(select, strict)?;
                rename::select(select);
                Ok(())
            }
            Statement::Insert(insert) => {
                rename::insert(insert);
                write::insert(insert, strict)
            }
            Statement::Update(update) => {
                rename::update(update);
                write::update(update, strict)
            }
            Statement::Delete(delete) => write::delete(delete, strict),
            Statement::Batch(batch) => {
                self.batch(batch::kind(batch.kind))?;
                batch.modifications.iter_mut().try_for_each(|member| match member {
                    Modification::Insert(insert) => {
                        rename::insert(insert);
                        write::insert(insert, strict)
                    }
                    Modification::Update(update) => {
                        rename::update(update);
                        write::update(update, strict)
                    }
                    Modification::Delete(delete) => write::delete(delete, strict),
                })
            }
            Statement::CreateKeyspace(create) => {
                create.properties.retain(is_throughput);
                create.properties.push(replication());
                Ok(())
            }
            Statement::AlterKeyspace(alter) => {
                alter.properties.retain(is_throughput);
                Ok(())
            }
            Statement::CreateTable(create) => {
                if create.options.compact_storage {
                    return Err(Refusal::Unsupported("COMPACT STORAGE"));
                }
                let types = create.columns.iter().map(|column| &column.column_type);
                no_duration(types, strict)?;
                table_options(&mut create.options.properties)
            }
            Statement::AlterTable(alter) => match &mut alter.action {
                AlterTableAction::Options(options) => table_options(&mut options.properties),
                _ if strict.alter => Err(Refusal::Unsupported("ALTER TABLE of columns")),
                AlterTableAction::Add { columns, .. } => {
                    no_duration(columns.iter().map(|column| &column.column_type), strict)
                }
                _ => Ok(()),
            },
            Statement::CreateType(create) => no_duration(create.fields.iter().map(|(_, ty)| ty), strict),
            Statement::CreateIndex(create) => index_class(create),
            _ => Ok(()),
        }
    }

    /// Checks a planned statement against the tables that it reads or writes.
    ///
    /// # Errors
    /// Cosmos refuses it.
    pub fn check(&self, statement: &Statement, planned: &Planned) -> Result<(), Refusal> {
        if !self.profile.is_cosmos() {
            return Ok(());
        }
        let strict = &self.account.strict;
        match statement {
            Statement::Explain(explained) => self.check(explained, planned),
            Statement::Select(select) => planned.tables.iter().try_for_each(|table| select::check(select, table)),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Batch(_) => {
                write::check(statement, &planned.tables, strict)
            }
            _ => Ok(()),
        }
    }

    /// Checks the kind of a batch.
    ///
    /// # Errors
    /// Cosmos refuses it.
    pub fn batch(&self, kind: BatchKind) -> Result<(), Refusal> {
        if self.profile.is_cosmos() && kind == BatchKind::Logged {
            return Err(Refusal::LoggedBatch);
        }
        Ok(())
    }
}

/// Features that Cosmos does not have at all: user-defined code, roles and permissions, changes of types.
fn unsupported_feature(statement: &Statement) -> Option<&'static str> {
    Some(match statement {
        Statement::CreateFunction(_) => "CREATE FUNCTION",
        Statement::CreateAggregate(_) => "CREATE AGGREGATE",
        Statement::DropFunction(drop) if drop.aggregate => "DROP AGGREGATE",
        Statement::DropFunction(_) => "DROP FUNCTION",
        Statement::CreateTrigger(_) => "CREATE TRIGGER",
        Statement::DropTrigger(_) => "DROP TRIGGER",
        Statement::AlterType(_) => "ALTER TYPE",
        Statement::Grant(grant) if grant.revoke => "REVOKE",
        Statement::Grant(_) => "GRANT",
        Statement::GrantRole(grant) if grant.revoke => "REVOKE",
        Statement::GrantRole(_) => "GRANT",
        Statement::ListPermissions(_) => "LIST PERMISSIONS",
        Statement::ListRoles(_) => "LIST ROLES",
        Statement::ListUsers => "LIST USERS",
        Statement::CreateRole(_) => "CREATE ROLE",
        Statement::AlterRole(_) => "ALTER ROLE",
        Statement::CreateUser(_) => "CREATE USER",
        Statement::AlterUser(_) => "ALTER USER",
        Statement::DropRole(_) => "DROP ROLE",
        Statement::AddIdentity(_) => "ADD IDENTITY",
        Statement::DropIdentity(_) => "DROP IDENTITY",
        _ => return None,
    })
}

/// Refuses a comma after the last column, which Cassandra's grammar accepts.
fn no_comma_at_end(text: &str) -> Result<(), Refusal> {
    let mut quote = None;
    let mut after_comma = false;
    let (mut line, mut column) = (1, 0);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if after_comma && c == ')' => {
                return Err(Refusal::CommaAtEnd { line, column });
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            None => {}
        }
        after_comma = quote.is_none() && (c == ',' || (after_comma && c.is_whitespace()));
        column += 1;
        if c == '\n' {
            (line, column) = (line + 1, 0);
        }
    }
    Ok(())
}

fn is_throughput(property: &Property) -> bool {
    property.name.as_str().starts_with("cosmosdb_")
}

/// The replication that clients see: one copy, whatever they request. There are four.
fn replication() -> Property {
    let text = |text: &str| Literal::String(text.to_owned());
    Property {
        name: Name("replication".to_owned()),
        value: PropertyValue::Map(vec![
            (text("class"), text("SimpleStrategy")),
            (text("replication_factor"), text("1")),
        ]),
    }
}

/// Drops the options that Cosmos ignores, after a check of the one that it does not ignore.
fn table_options(properties: &mut Vec<Property>) -> Result<(), Refusal> {
    let is_zero = |value: &PropertyValue| match value {
        PropertyValue::Literal(Literal::Integer(text) | Literal::String(text)) => {
            text.parse::<i64>().is_ok_and(|seconds| seconds == 0)
        }
        _ => false,
    };
    if properties
        .iter()
        .any(|property| property.name.as_str() == "gc_grace_seconds" && !is_zero(&property.value))
    {
        return Err(Refusal::Grace);
    }
    properties.retain(|property| {
        let name = property.name.as_str();
        ["default_time_to_live", "placement"].contains(&name)
            || name.starts_with("cosmosdb_")
            || name.starts_with("helenus_")
    });
    Ok(())
}

fn no_duration<'t>(mut types: impl Iterator<Item = &'t Type>, strict: &Strict) -> Result<(), Refusal> {
    if strict.duration && types.any(names_duration) {
        return Err(Refusal::Unsupported("The type duration"));
    }
    Ok(())
}

fn names_duration(ty: &Type) -> bool {
    match ty {
        Type::Named(name) => name.keyspace.is_none() && name.name.as_str() == "duration",
        Type::Custom(_) => false,
        Type::List(of) | Type::Set(of) | Type::Frozen(of) | Type::Vector(of, _) => names_duration(of),
        Type::Map(key, value) => names_duration(key) || names_duration(value),
        Type::Tuple(parts) => parts.iter().any(names_duration),
    }
}

fn index_class(create: &CreateIndex) -> Result<(), Refusal> {
    let class = match (&create.using, create.custom) {
        (None, false) => return Ok(()),
        (class, _) => class.as_deref().unwrap_or_default(),
    };
    if create.custom && is_cosmos_class(class) {
        return Ok(());
    }
    Err(Refusal::IndexClass {
        class: class.to_owned(),
    })
}

/// A column that Cosmos cannot index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secondary indexes are not supported on {what} in the profile cosmos ({column})")]
pub struct IndexTargetRefusal {
    /// The kind of column.
    pub what: &'static str,
    /// The column.
    pub column: String,
}

/// Checks that Cosmos can index a column.
///
/// # Errors
/// Cosmos cannot index the column.
pub(super) fn index_target(
    kind: IndexTargetKind,
    column: &Column,
    class: Option<&str>,
) -> Result<(), IndexTargetRefusal> {
    let refused = |what: &'static str| IndexTargetRefusal {
        what,
        column: column.name.clone(),
    };
    match column.kind {
        ColumnKind::Static => return Err(refused("static columns")),
        ColumnKind::Clustering if class != Some(CLUSTERING_INDEX_CLASS) => {
            return Err(refused(
                "clustering columns without a custom index CosmosClusteringIndex",
            ));
        }
        ColumnKind::Clustering | ColumnKind::PartitionKey | ColumnKind::Regular => {}
    }
    if kind == IndexTargetKind::Full || (typename::is_collection(&column.ty) && !column.ty.is_multi_cell()) {
        return Err(refused("frozen collections"));
    }
    match column.ty {
        CqlType::Native(Native::Decimal) => Err(refused("decimal columns")),
        CqlType::Native(Native::Varint) => Err(refused("varint columns")),
        _ => Ok(()),
    }
}

/// Sets the options that Cosmos shows for every new table, whatever the statement requests.
///
/// Source: DESCRIBE TABLE in a published session of cqlsh with Azure Cosmos DB.
pub(super) fn table_defaults(options: &mut TableOptions) {
    let written = std::mem::take(options);
    *options = TableOptions {
        compression: BTreeMap::from([
            ("chunk_length_in_kb".to_owned(), "64".to_owned()),
            (
                "class".to_owned(),
                "org.apache.cassandra.io.compress.LZ4Compressor".to_owned(),
            ),
        ]),
        gc_grace_seconds: 0,
        memtable_flush_period_in_ms: 3_600_000,
        speculative_retry: "99PERCENTILE".to_owned(),
        default_time_to_live: written.default_time_to_live,
        partitions: written.partitions,
        is_ordered: written.is_ordered,
        throughput: written.throughput,
        throughput_highest: written.throughput_highest,
        cell_level: written.cell_level,
        full_fidelity: written.full_fidelity,
        ..TableOptions::default()
    };
}
