//! CREATE and DROP INDEX and TRIGGER: what the schema says about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{CreateIndex, CreateTrigger, Drop, DropTrigger, IndexTargetKind};

use super::error::{DdlError, configuration, invalid};
use super::property::Properties;
use super::{ChangeKind, ChangeTarget, Ddl, DdlOutcome, Right};
use crate::schema::index::{SASI_CLASS, is_sai_class};
use crate::schema::{Column, ColumnKind, Index, Keyspace, StorageId, Table, typename};
use crate::types::{CqlType, quoted};

const SAI_OPTIONS: &[&str] = &[
    "ascii",
    "case_sensitive",
    "class_name",
    "construction_beam_width",
    "index_analyzer",
    "maximum_node_connections",
    "normalize",
    "optimize_for",
    "similarity_function",
    "source_model",
    "target",
];
/// The index that stands where no class is given. Cassandra finds it under this name.
const LEGACY: &str = "legacy_local_table";

/// The column of a target: `c`, `values(c)`, `"C"`.
pub(super) fn target_column(target: &str) -> String {
    let inside = target
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(target);
    match inside.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(name) => name.replace("\"\"", "\""),
        None => inside.to_owned(),
    }
}

fn kind_name(kind: IndexTargetKind) -> &'static str {
    match kind {
        IndexTargetKind::Simple => "",
        IndexTargetKind::Values => "values",
        IndexTargetKind::Keys => "keys",
        IndexTargetKind::Entries => "entries",
        IndexTargetKind::Full => "full",
    }
}

fn keyspace_name<'a>(ddl: &Ddl<'a>, statement: &'a CreateIndex) -> Result<&'a str, DdlError> {
    let of_index = statement.name.as_ref().and_then(|name| name.keyspace.as_ref());
    if let (Some(index), Some(table)) = (of_index, &statement.table.keyspace)
        && index != table
    {
        return Err(invalid!(
            "Keyspace name '{}' doesn't match index name '{}'",
            table.as_str(),
            statement
                .name
                .as_ref()
                .map(|name| name.name.as_str())
                .unwrap_or_default()
        ));
    }
    match of_index {
        Some(keyspace) if statement.table.keyspace.is_none() => Ok(keyspace.as_str()),
        _ => ddl.keyspace_name(&statement.table),
    }
}

pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateIndex) -> Result<DdlOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), keyspace_name(ddl, statement)?);
    let properties = Properties::new(&statement.properties)?;
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{table_name}"),
    )?;
    properties.only(&["options"])?;
    let given = properties.map("options")?.unwrap_or_default();
    let class = match (&statement.using, statement.custom) {
        (Some(class), _) => Some(class.as_str()).filter(|class| statement.custom || *class != LEGACY),
        (None, true) => Some(LEGACY),
        (None, false) => None,
    };
    if class.is_none() && !given.is_empty() {
        return Err(invalid!("Cannot specify options for a non-CUSTOM index"));
    }
    let keyspace = ddl.keyspace(keyspace_name)?;
    let Some(table) = keyspace.table_or_view(table_name) else {
        return Err(invalid!("Table '{table_name}' doesn't exist"));
    };
    let unchanged = || Ok(DdlOutcome::unchanged(ddl.schema));
    let own_name = statement.name.as_ref().map(|name| name.name.as_str());
    if let Some(name) = own_name.filter(|name| keyspace.indexed_table(name).is_some()) {
        return if statement.if_not_exists {
            unchanged()
        } else {
            Err(invalid!("Index '{name}' already exists"))
        };
    }
    if table.is_counter {
        return Err(invalid!("Secondary indexes on counter tables aren't supported"));
    }
    if keyspace.views.contains_key(table_name) {
        return Err(invalid!("Secondary indexes on materialized views aren't supported"));
    }
    let targets = targets(table, statement, class.is_some())?;
    let name = own_name.map_or_else(|| free_name(keyspace, table, &targets), str::to_owned);
    let index = index(&name, class, given, &targets, ddl.context.storage_id)?;
    if let Some(same) = table
        .indexes
        .values()
        .find(|other| other.kind == index.kind && other.options == index.options)
    {
        return if statement.if_not_exists {
            unchanged()
        } else {
            Err(invalid!("Index {name} is a duplicate of existing index {}", same.name))
        };
    }
    if let (Some(class), Some((_, column))) = (class, targets.first())
        && is_sai_class(class)
    {
        let taken = table.indexes.values().any(|other| {
            other.options.get("class_name").is_some_and(|class| is_sai_class(class))
                && other
                    .options
                    .get("target")
                    .is_some_and(|target| target_column(target) == column.name)
        });
        if taken {
            return Err(invalid!(
                "Cannot create more than one storage-attached index on the same column: {}",
                column.name
            ));
        }
    }
    let mut changed = Table::clone(table);
    changed.indexes.insert(name, index);
    let warnings = if class == Some(SASI_CLASS) {
        vec!["SASI indexes are experimental and are not recommended for production use.".to_owned()]
    } else {
        Vec::new()
    };
    let mut outcome = updated(ddl, keyspace, changed).warned(warnings);
    outcome.storage_id_used = true;
    Ok(outcome)
}

/// The schema with a table changed, and the news that it has.
fn updated(ddl: &Ddl<'_>, keyspace: &Keyspace, table: Table) -> DdlOutcome {
    let (keyspace_name, name) = (table.keyspace.clone(), table.name.clone());
    let mut next = Keyspace::clone(keyspace);
    next.tables.insert(name.clone(), Arc::new(table));
    DdlOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Updated,
        ChangeTarget::Table,
        &keyspace_name,
        &name,
    )
}

type Target<'a> = (IndexTargetKind, &'a Column);

fn targets<'a>(table: &'a Table, statement: &CreateIndex, custom: bool) -> Result<Vec<Target<'a>>, DdlError> {
    let mut targets: Vec<Target<'a>> = Vec::new();
    for (kind, name) in &statement.targets {
        let name = name.as_str();
        let Some((_, column)) = table.column(name) else {
            return Err(invalid!(
                "Undefined column name {} in table {}.{}",
                quoted(name),
                table.keyspace,
                table.name
            ));
        };
        let of_values = *kind == IndexTargetKind::Simple && typename::is_collection(&column.ty);
        targets.push((if of_values { IndexTargetKind::Values } else { *kind }, column));
    }
    if targets.is_empty() && !custom {
        return Err(invalid!(
            "Only CUSTOM indexes can be created without specifying a target column"
        ));
    }
    if targets.len() > 1 {
        if !custom {
            return Err(invalid!("Only CUSTOM indexes support multiple columns"));
        }
        let mut seen = BTreeSet::new();
        if let Some((_, column)) = targets.iter().find(|(_, column)| !seen.insert(&column.name)) {
            return Err(invalid!("Duplicate column '{}' in index target list", column.name));
        }
    }
    targets.iter().try_for_each(|target| check_target(table, target))?;
    Ok(targets)
}

fn check_target(table: &Table, (kind, column): &Target<'_>) -> Result<(), DdlError> {
    let (name, ty) = (&column.name, &column.ty);
    if ty.contains_duration() {
        let what = match ty.unfrozen() {
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => "collections containing durations",
            CqlType::Tuple(_) => "tuples containing durations",
            CqlType::User(_) => "UDTs containing durations",
            _ => "duration columns",
        };
        return Err(invalid!("Secondary indexes are not supported on {what}"));
    }
    if table.compact_storage && matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return Err(invalid!(
            "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables"
        ));
    }
    if column.kind == ColumnKind::PartitionKey && table.partition_key_count == 1 {
        return Err(invalid!(
            "Cannot create secondary index on the only partition key column {name}"
        ));
    }
    let collection = typename::is_collection(ty);
    let frozen_collection = collection && !ty.is_multi_cell();
    if frozen_collection && *kind != IndexTargetKind::Full {
        return Err(invalid!(
            "Cannot create {}() index on frozen column {name}. Frozen collections are immutable and must be fully indexed \
             by using the 'full({name})' modifier",
            kind_name(*kind)
        ));
    }
    if !frozen_collection && *kind == IndexTargetKind::Full {
        return Err(invalid!("full() indexes can only be created on frozen collections"));
    }
    if !collection && *kind != IndexTargetKind::Simple {
        return Err(invalid!(
            "Cannot create {}() index on {name}. Non-collection columns only support simple indexes",
            kind_name(*kind)
        ));
    }
    if !matches!(ty, CqlType::Map(..)) && matches!(kind, IndexTargetKind::Keys | IndexTargetKind::Entries) {
        return Err(invalid!(
            "Cannot create index on {} of column {name} with non-map type",
            kind_name(*kind)
        ));
    }
    if matches!(ty, CqlType::User(_)) {
        return Err(invalid!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(())
}

/// `table_column_idx`, with a number behind if there is such an index.
fn free_name(keyspace: &Keyspace, table: &Table, targets: &[Target<'_>]) -> String {
    let base = match targets {
        [(_, column)] => format!("{}_{}_idx", table.name, column.name),
        _ => format!("{}_idx", table.name),
    };
    let base: String = base
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    let mut name = base.clone();
    let mut number = 0;
    while keyspace.indexed_table(&name).is_some() {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

fn index(
    name: &str,
    class: Option<&str>,
    given: BTreeMap<String, String>,
    targets: &[Target<'_>],
    storage_id: StorageId,
) -> Result<Index, DdlError> {
    let texts: Vec<String> = targets
        .iter()
        .map(|(kind, column)| match kind {
            IndexTargetKind::Simple => quoted(&column.name),
            kind => format!("{}({})", kind_name(*kind), quoted(&column.name)),
        })
        .collect();
    let mut options = given;
    options.insert("target".to_owned(), texts.join(","));
    if let Some(class) = class {
        if is_sai_class(class) {
            let unknown: Vec<&str> = options
                .keys()
                .map(String::as_str)
                .filter(|option| !SAI_OPTIONS.contains(option))
                .collect();
            if !unknown.is_empty() {
                return Err(configuration!(
                    "Properties specified [{}] are not understood by StorageAttachedIndex",
                    unknown.join(", ")
                ));
            }
        } else if class != SASI_CLASS {
            return Err(configuration!("Unable to find custom indexer class '{class}'"));
        }
        options.insert("class_name".to_owned(), class.to_owned());
    }
    let kind = if class.is_some() { "CUSTOM" } else { "COMPOSITES" };
    Ok(Index {
        name: name.to_owned(),
        kind: kind.to_owned(),
        options,
        storage_id,
    })
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<DdlOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let Some((keyspace, table)) = ddl.find(keyspace_name, |keyspace| keyspace.indexed_table(name)) else {
        // The last quote stands there in Cassandra too.
        return ddl.absent(
            statement.if_exists,
            invalid!("Index '{keyspace_name}.{name}' doesn't exist'"),
        );
    };
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{}", table.name),
    )?;
    let mut changed = Table::clone(table);
    let dropped = changed.indexes.remove(name).map(|index| index.storage_id);
    let mut outcome = updated(ddl, keyspace, changed);
    outcome.dropped_storage = dropped.filter(|id| *id != 0).into_iter().collect();
    Ok(outcome)
}

pub(super) fn create_trigger(ddl: &Ddl<'_>, statement: &CreateTrigger) -> Result<DdlOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{table_name}"),
    )?;
    let keyspace = ddl.keyspace(keyspace_name)?;
    let Some(table) = keyspace.table_or_view(table_name) else {
        return Err(invalid!("Table '{keyspace_name}.{table_name}' doesn't exist"));
    };
    if keyspace.views.contains_key(table_name) {
        return Err(invalid!("Cannot CREATE TRIGGER for a materialized view"));
    }
    let name = statement.name.as_str();
    if table.triggers.contains_key(name) {
        return if statement.if_not_exists {
            Ok(DdlOutcome::unchanged(ddl.schema))
        } else {
            Err(invalid!("Trigger '{name}' already exists"))
        };
    }
    // There is no class of a user's in this server, so none can be loaded.
    Err(invalid!("Trigger class '{}' couldn't be loaded", statement.class))
}

pub(super) fn drop_trigger(ddl: &Ddl<'_>, statement: &DropTrigger) -> Result<DdlOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{table_name}"),
    )?;
    let name = statement.name.as_str();
    let found = ddl
        .find(keyspace_name, |keyspace| keyspace.tables.get(table_name))
        .filter(|(_, table)| table.triggers.contains_key(name));
    let Some((keyspace, table)) = found else {
        return ddl.absent(
            statement.if_exists,
            invalid!("Trigger '{name}' on '{keyspace_name}.{table_name}' doesn't exist"),
        );
    };
    let mut changed = Table::clone(table);
    changed.triggers.remove(name);
    Ok(updated(ddl, keyspace, changed))
}
