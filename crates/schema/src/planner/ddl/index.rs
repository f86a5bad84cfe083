//! CREATE and DROP INDEX and TRIGGER: their changes of the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{CreateIndex, CreateTrigger, Drop, DropTrigger, IndexTargetKind};

use super::error::DdlError;
use super::index_options;
use super::property::Properties;
use super::refusal::{IndexRefusal, NameRefusal};
use super::{Ddl, Right, SchemaOutcome};
use crate::command::{ChangeKind, ChangeTarget};
use crate::planner::rules;
use crate::schema::index::{SASI_CLASS, is_cosmos_class};
use crate::schema::{Column, ColumnKind, Index, Keyspace, StorageId, Table, system, typename};
use helenus_types::types::{CqlType, quoted};

/// The kind of an index without a class; this is Cassandra's name of it.
const LEGACY: &str = "legacy_local_table";

/// Maximum number of bytes of an index's name: Cassandra creates a directory `.NAME`, and fails with a message of its
/// own if the file system does not allow that name.
const NAME_BYTES_MAX: usize = 254;

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
    if let (Some(name), Some(table)) = (&statement.name, &statement.table.keyspace)
        && of_index.is_some_and(|keyspace| keyspace != table)
    {
        let refusal = IndexRefusal::OtherKeyspace {
            keyspace: table.as_str().to_owned(),
            index: name.name.as_str().to_owned(),
        };
        return Err(refusal.into());
    }
    match of_index {
        Some(keyspace) if statement.table.keyspace.is_none() => Ok(keyspace.as_str()),
        _ => ddl.keyspace_name(&statement.table),
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateIndex) -> Result<SchemaOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), keyspace_name(ddl, statement)?);
    let properties = Properties::new(&statement.properties)?;
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{table_name}"),
    )?;
    properties.only(&["options"])?;
    let given = properties.map("options")?.unwrap_or_default();
    let in_order = properties.entries("options");
    let class = match (&statement.using, statement.custom) {
        (Some(class), _) => {
            Some(class.as_str()).filter(|class| statement.custom || !class.eq_ignore_ascii_case(LEGACY))
        }
        (None, true) => Some(LEGACY),
        (None, false) => None,
    };
    if class.is_none() && !given.is_empty() {
        return Err(IndexRefusal::OptionsWithoutClass.into());
    }
    index_options::reserved(&given)?;
    let keyspace = ddl.keyspace(keyspace_name)?;
    let Some(table) = keyspace.table_or_view(table_name) else {
        return Err(IndexRefusal::TableMissing(table_name.to_owned()).into());
    };
    let unchanged = || Ok(SchemaOutcome::unchanged(ddl.schema));
    let own_name = statement.name.as_ref().map(|name| name.name.as_str());
    if let Some(name) = own_name.filter(|name| keyspace.indexed_table(name).is_some()) {
        return if statement.if_not_exists {
            unchanged()
        } else {
            Err(IndexRefusal::Exists(name.to_owned()).into())
        };
    }
    if table.is_counter {
        return Err(IndexRefusal::OnCounters.into());
    }
    if keyspace.views.contains_key(table_name) {
        return Err(IndexRefusal::OnView.into());
    }
    let targets = targets(table, statement, class)?;
    let is_cosmos = ddl.context.profile.is_cosmos();
    if is_cosmos {
        let check = |(kind, column): &Target<'_>| rules::index_target(*kind, column, class);
        targets.iter().try_for_each(check)?;
    }
    let name = own_name.map_or_else(|| free_name(keyspace, table, &targets), str::to_owned);
    let index = index(&name, class, given, &targets, ddl.context.storage_id);
    if let Some(same) = table
        .indexes
        .values()
        .find(|other| other.kind == index.kind && other.options == index.options)
    {
        return if statement.if_not_exists {
            unchanged()
        } else {
            Err(IndexRefusal::Duplicate {
                index: name,
                other: same.name.clone(),
            }
            .into())
        };
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(IndexRefusal::NameCharacters(name).into());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(IndexRefusal::NameLength {
            bytes: name.len(),
            bytes_max: NAME_BYTES_MAX,
        }
        .into());
    }
    if let Some(class) = class.filter(|class| !(is_cosmos && is_cosmos_class(class))) {
        index_options::validate(class, &in_order, table, &targets)?;
    }
    let mut changed = Table::clone(table);
    changed.indexes.insert(name, index);
    let warnings = index_options::warnings(class, &changed);
    let mut outcome = updated(ddl, keyspace, changed).warned(warnings);
    outcome.storage_id_used = true;
    Ok(outcome)
}

/// The outcome of a changed table.
fn updated(ddl: &Ddl<'_>, keyspace: &Keyspace, table: Table) -> SchemaOutcome {
    let (keyspace_name, name) = (table.keyspace.clone(), table.name.clone());
    let mut next = Keyspace::clone(keyspace);
    next.tables.insert(name.clone(), Arc::new(table));
    SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Updated,
        ChangeTarget::Table,
        &keyspace_name,
        &name,
    )
}

type Target<'a> = (IndexTargetKind, &'a Column);

fn targets<'a>(table: &'a Table, statement: &CreateIndex, class: Option<&str>) -> Result<Vec<Target<'a>>, DdlError> {
    let custom = class.is_some();
    let mut targets: Vec<Target<'a>> = Vec::new();
    for (kind, name) in &statement.targets {
        let name = name.as_str();
        let Some((_, column)) = table.column(name) else {
            return Err(NameRefusal::UndefinedColumn {
                column: name.to_owned(),
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
            }
            .into());
        };
        let of_values = *kind == IndexTargetKind::Simple && typename::is_collection(&column.ty);
        targets.push((if of_values { IndexTargetKind::Values } else { *kind }, column));
    }
    if targets.is_empty() && !custom {
        return Err(IndexRefusal::NoTarget.into());
    }
    if targets.len() > 1 {
        if !custom {
            return Err(IndexRefusal::SeveralTargets.into());
        }
        let mut seen = BTreeSet::new();
        if let Some((_, column)) = targets.iter().find(|(_, column)| !seen.insert(&column.name)) {
            return Err(IndexRefusal::DuplicateTarget(column.name.clone()).into());
        }
    }
    targets.iter().try_for_each(|target| {
        check_file_name(class, target)?;
        check_target(table, target, class == Some(SASI_CLASS))
    })?;
    Ok(targets)
}

/// A storage-attached index names its files after its column (`StorageAttachedIndex.validateOptions`).
fn check_file_name(class: Option<&str>, (_, column): &Target<'_>) -> Result<(), DdlError> {
    let is_attached =
        class.is_some_and(|class| class.eq_ignore_ascii_case("sai") || class.ends_with("StorageAttachedIndex"));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if is_attached && (column.name.is_empty() || !column.name.chars().all(plain)) {
        return Err(IndexRefusal::ColumnCharacters(column.name.clone()).into());
    }
    Ok(())
}

fn check_target(table: &Table, (kind, column): &Target<'_>, is_sasi: bool) -> Result<(), DdlError> {
    let (name, ty) = (&column.name, &column.ty);
    if ty.contains_duration() {
        let what = match ty.unfrozen() {
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => "collections containing durations",
            CqlType::Tuple(_) => "tuples containing durations",
            CqlType::User(_) => "UDTs containing durations",
            _ => "duration columns",
        };
        return Err(IndexRefusal::Durations(what).into());
    }
    if table.compact_storage && matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return Err(IndexRefusal::KeyOfCompact.into());
    }
    if table.compact_value().is_some_and(|value| value.name == *name) {
        return Err(IndexRefusal::ValueOfCompact.into());
    }
    // Differs: Cassandra refuses an index of a whole partition key, which applications for Cosmos create. It finds
    // nothing beyond the key itself, so no entries are stored for it.
    if column.kind == ColumnKind::PartitionKey && table.partition_key_count == 1 && is_sasi {
        return Err(IndexRefusal::OnlyKeyColumn(name.clone()).into());
    }
    let collection = typename::is_collection(ty);
    let frozen_collection = collection && !ty.is_multi_cell();
    if frozen_collection && *kind != IndexTargetKind::Full {
        return Err(IndexRefusal::FrozenCollection {
            part: kind_name(*kind),
            column: name.clone(),
        }
        .into());
    }
    if !frozen_collection && *kind == IndexTargetKind::Full {
        return Err(IndexRefusal::FullOfOther.into());
    }
    if !collection && *kind != IndexTargetKind::Simple {
        return Err(IndexRefusal::PartOfOther {
            part: kind_name(*kind),
            column: name.clone(),
        }
        .into());
    }
    if !matches!(ty, CqlType::Map(..)) && matches!(kind, IndexTargetKind::Keys | IndexTargetKind::Entries) {
        return Err(IndexRefusal::PartOfNonMap {
            part: kind_name(*kind),
            column: name.clone(),
        }
        .into());
    }
    if matches!(ty, CqlType::User(_)) {
        return Err(IndexRefusal::MultiCellUserType(name.clone()).into());
    }
    Ok(())
}

/// `table_column_idx`, followed by a number if that name is taken.
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
) -> Index {
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
        options.insert("class_name".to_owned(), class.to_owned());
    }
    let kind = if class.is_some() { "CUSTOM" } else { "COMPOSITES" };
    Index {
        name: name.to_owned(),
        kind: kind.to_owned(),
        options,
        storage_id,
    }
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let Some((keyspace, table)) = ddl.find(keyspace_name, |keyspace| keyspace.indexed_table(name)) else {
        // Cassandra's message has this last quote too.
        return ddl.absent(
            statement.if_exists,
            IndexRefusal::Missing {
                keyspace: keyspace_name.to_owned(),
                index: name.to_owned(),
            },
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

pub(super) fn create_trigger(ddl: &Ddl<'_>, statement: &CreateTrigger) -> Result<SchemaOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    if system::is_local(keyspace_name) {
        return Err(IndexRefusal::TriggerOnSystem(keyspace_name.to_owned()).into());
    }
    let keyspace = ddl.keyspace(keyspace_name)?;
    let Some(table) = keyspace.table_or_view(table_name) else {
        return Err(IndexRefusal::TriggerTable(table_name.to_owned()).into());
    };
    if keyspace.views.contains_key(table_name) {
        return Err(IndexRefusal::TriggerOnView.into());
    }
    let name = statement.name.as_str();
    if table.triggers.contains_key(name) {
        return if statement.if_not_exists {
            Ok(SchemaOutcome::unchanged(ddl.schema))
        } else {
            Err(IndexRefusal::TriggerExists(name.to_owned()).into())
        };
    }
    // This server runs no user-supplied classes, so none can be loaded.
    Err(IndexRefusal::TriggerClass(statement.class.clone()).into())
}

pub(super) fn drop_trigger(ddl: &Ddl<'_>, statement: &DropTrigger) -> Result<SchemaOutcome, DdlError> {
    let (table_name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    if system::is_local(keyspace_name) {
        return Err(IndexRefusal::TriggerOnSystem(keyspace_name.to_owned()).into());
    }
    let name = statement.name.as_str();
    let found = ddl
        .find(keyspace_name, |keyspace| keyspace.tables.get(table_name))
        .filter(|(_, table)| table.triggers.contains_key(name));
    let Some((keyspace, table)) = found else {
        return ddl.absent(
            statement.if_exists,
            IndexRefusal::TriggerMissing {
                trigger: name.to_owned(),
                keyspace: keyspace_name.to_owned(),
                table: table_name.to_owned(),
            },
        );
    };
    let mut changed = Table::clone(table);
    changed.triggers.remove(name);
    Ok(updated(ddl, keyspace, changed))
}
