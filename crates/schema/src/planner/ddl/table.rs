//! CREATE TABLE; DROP TABLE, TYPE, INDEX and MATERIALIZED VIEW.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{self, CreateTable, Drop};
use uuid::Uuid;

use super::error::DdlError;
use super::refusal::{AlterTableRefusal, CosmosRefusal, NameRefusal, TableRefusal};
use super::{Ddl, Right, SchemaOutcome, column_type, mask, options};
use crate::command::{ChangeKind, ChangeTarget};
use crate::planner::rules;
use crate::planner::text::{owned, qualified};
use crate::schema::names::{self, compare_columns, statement_order};
use crate::schema::{Column, ColumnId, ColumnKind, Keyspace, Schema, Table, TableOptions, typename};
use helenus_types::types::{CqlType, Native};

/// Maximum number of characters of a table's name. Source: Cassandra's SchemaConstants.
const NAME_CHARACTERS_MAX: usize = names::TABLE_NAME_CHARACTERS_MAX;

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateTable) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    statement
        .columns
        .iter()
        .try_for_each(|column| column_type::check_syntax(&column.column_type))?;
    let key = primary_key(statement, &qualified(&statement.table))?;
    Ddl::authorize(keyspace_name, Right::Create, &format!("all tables in {keyspace_name}"))?;
    let given = options::read(&statement.options, None)?;
    if !ddl.context.masks_columns && statement.columns.iter().any(|column| column.mask.is_some()) {
        return Err(TableRefusal::Mask.into());
    }
    let keyspace = ddl.keyspace(keyspace_name)?;
    if keyspace.table_or_view(name).is_some() {
        return ddl.table_exists(statement.if_not_exists, keyspace_name, name);
    }
    given.check_names()?;
    let id = given.id.clone();
    let mut options = given.validate()?;
    let mut before = TableOptions::default();
    if !options::is_written(&statement.options, "bloom_filter_fp_chance") {
        // It follows from the strategy of compaction.
        before.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
    }
    let warnings = options::warnings(&before, &options, ddl.context.profile.is_cosmos());
    if ddl.context.profile.is_cosmos() {
        rules::table_defaults(&mut options);
    }
    let mut types = BTreeMap::new();
    let mut written: Vec<&ast::ColumnDefinition> = statement.columns.iter().collect();
    statement_order(&mut written, |column| column.name.as_str());
    for column in written {
        column_type::check_length("Column", column.name.as_str())?;
        types.insert(
            column.name.as_str(),
            column_type::resolve(&column.column_type, keyspace)?,
        );
    }
    types.values().try_for_each(column_type::check_nested)?;
    let mut masks = BTreeMap::new();
    for column in &statement.columns {
        let column_name = column.name.as_str();
        if let (Some(mask), Some(ty)) = (&column.mask, types.get(column_name)) {
            let mask = mask::resolve(ddl.schema, keyspace_name, name, column_name, ty, mask)?;
            masks.insert(column_name, mask);
        }
    }
    check_key(statement, &key, &types, name)?;
    let descending = clustering_order(&statement.options, &key.clustering, name)?;
    check_shape(statement, &key, &types)?;
    let is_counter = statement
        .columns
        .iter()
        .any(|column| column_type::is_counter(&column.column_type));
    if is_counter {
        check_counters(&key, &types, options.default_time_to_live)?;
    }
    if options.is_ordered {
        check_ordered(&options, &key, &types)?;
    }
    let id = table_id(ddl, id.as_deref())?;
    check_name(keyspace_name, name)?;

    let mut table = Table {
        id,
        storage_id: ddl.context.storage_id,
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        columns: Vec::new(),
        partition_key_count: key.partition.len(),
        clustering_count: key.clustering.len(),
        is_counter,
        is_virtual: false,
        compact_storage: statement.options.compact_storage,
        options,
        indexes: BTreeMap::new(),
        triggers: BTreeMap::new(),
        dropped: BTreeMap::new(),
        next_column_id: 0,
    };
    for mut column in columns(statement, &key, &types, &descending, table.options.is_ordered) {
        column.mask = masks.remove(column.name.as_str());
        number_column(&mut table, column);
    }
    sort_columns(&mut table);
    check_mixed(&table)?;
    let mut next = Keyspace::clone(keyspace);
    next.tables.insert(name.to_owned(), Arc::new(table));
    let mut outcome = SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Created,
        ChangeTarget::Table,
        keyspace_name,
        name,
    );
    outcome.storage_id_used = true;
    Ok(outcome.warned(warnings))
}

/// Checks that a table can lie in the order of its partition key: that its bytes are in the order of its values.
fn check_ordered(options: &TableOptions, key: &Key<'_>, types: &BTreeMap<&str, CqlType>) -> Result<(), DdlError> {
    match key.partition.as_slice() {
        [name] if is_text(types.get(name)) => {}
        names => {
            return Err(CosmosRefusal::OrderedKey(names.join(", ")).into());
        }
    }
    if options.partitions.is_some() {
        return Err(CosmosRefusal::OrderedPartitions.into());
    }
    Ok(())
}

fn is_text(ty: Option<&CqlType>) -> bool {
    matches!(ty, Some(CqlType::Native(Native::Text | Native::Ascii)))
}

/// Names of the columns of the primary key.
pub(super) struct Key<'a> {
    pub(super) partition: Vec<&'a str>,
    pub(super) clustering: Vec<&'a str>,
}

impl<'a> Key<'a> {
    pub(super) fn of(key: &'a ast::PrimaryKey) -> Self {
        Self {
            partition: key.partition_key.iter().map(|name| name.as_str()).collect(),
            clustering: key.clustering.iter().map(|name| name.as_str()).collect(),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.partition.iter().chain(&self.clustering).copied()
    }
}

/// The primary key. Refuses several, none, and duplicate columns, as Cassandra's parser does.
fn primary_key<'a>(statement: &'a CreateTable, name: &str) -> Result<Key<'a>, DdlError> {
    let mut seen = BTreeSet::new();
    for column in &statement.columns {
        let column = column.name.as_str();
        if !seen.insert(column) {
            return Err(TableRefusal::DuplicateColumn {
                column: column.to_owned(),
                table: name.to_owned(),
            }
            .into());
        }
    }
    let own = statement.columns.iter().filter(|column| column.is_primary_key);
    let own = own.map(|column| Key {
        partition: vec![column.name.as_str()],
        clustering: Vec::new(),
    });
    let mut keys = own.chain(statement.primary_keys.iter().map(Key::of));
    let key = keys.next().ok_or_else(|| TableRefusal::NoKey(name.to_owned()))?;
    match keys.next() {
        Some(_) => Err(TableRefusal::SeveralKeys(name.to_owned()).into()),
        None => Ok(key),
    }
}

fn check_key(
    statement: &CreateTable,
    key: &Key<'_>,
    types: &BTreeMap<&str, CqlType>,
    table: &str,
) -> Result<(), DdlError> {
    let mut seen = BTreeSet::new();
    for name in key.names() {
        let ty = types.get(name).ok_or_else(|| TableRefusal::UnknownKeyColumn {
            column: name.to_owned(),
            table: table.to_owned(),
        })?;
        if !seen.insert(name) {
            return Err(TableRefusal::DuplicateKeyColumn {
                column: name.to_owned(),
                table: table.to_owned(),
            }
            .into());
        }
        if let CqlType::User(user) = ty {
            return Err(TableRefusal::UserTypeInKey {
                keyspace: user.keyspace.clone(),
                user_type: user.name.clone(),
                column: name.to_owned(),
            }
            .into());
        }
        if ty.is_multi_cell() {
            return Err(TableRefusal::CollectionInKey {
                ty: ty.clone(),
                column: name.to_owned(),
            }
            .into());
        }
        if typename::is_counter(ty) {
            return Err(TableRefusal::CounterInKey(name.to_owned()).into());
        }
        if ty.contains_duration() {
            return Err(TableRefusal::DurationInKey(name.to_owned()).into());
        }
        if statement
            .columns
            .iter()
            .any(|column| column.is_static && column.name.as_str() == name)
        {
            return Err(TableRefusal::StaticInKey(name.to_owned()).into());
        }
    }
    Ok(())
}

/// Names of the descending clustering columns.
pub(super) fn clustering_order<'a>(
    written: &'a ast::TableOptions,
    clustering: &[&str],
    table: &str,
) -> Result<BTreeSet<&'a str>, DdlError> {
    let mut order: Vec<(&str, ast::Direction)> = Vec::new();
    for (name, direction) in &written.clustering_order {
        let name = name.as_str();
        if order.iter().any(|(known, _)| *known == name) {
            return Err(TableRefusal::DuplicateOrder {
                column: name.to_owned(),
                table: table.to_owned(),
            }
            .into());
        }
        order.push((name, *direction));
    }
    let others: Vec<&str> = order
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !clustering.contains(name))
        .collect();
    if !others.is_empty() {
        return Err(TableRefusal::OrderOfOthers(owned(others)).into());
    }
    for ((name, _), column) in order.iter().zip(clustering) {
        if name == column {
            continue;
        }
        return Err(if order.iter().any(|(known, _)| known == column) {
            TableRefusal::OrderOfOrder {
                column: (*column).to_owned(),
                other: (*name).to_owned(),
            }
            .into()
        } else {
            TableRefusal::OrderMissing((*column).to_owned()).into()
        });
    }
    Ok(order
        .into_iter()
        .filter(|(_, direction)| *direction == ast::Direction::Descending)
        .map(|(name, _)| name)
        .collect())
}

fn check_shape(statement: &CreateTable, key: &Key<'_>, types: &BTreeMap<&str, CqlType>) -> Result<(), DdlError> {
    let has_static = statement.columns.iter().any(|column| column.is_static);
    if !statement.options.compact_storage {
        if has_static && key.clustering.is_empty() {
            return Err(TableRefusal::StaticWithoutClustering.into());
        }
        return Ok(());
    }
    if types.values().any(CqlType::is_multi_cell) {
        return Err(TableRefusal::MultiCellInCompact.into());
    }
    if has_static {
        return Err(TableRefusal::StaticInCompact.into());
    }
    let others: Vec<&str> = types
        .keys()
        .copied()
        .filter(|name| !key.names().any(|part| part == *name))
        .collect();
    if key.clustering.is_empty() && others.is_empty() {
        return Err(TableRefusal::NothingInCompact.into());
    }
    if !key.clustering.is_empty() && others.len() > 1 {
        return Err(TableRefusal::SeveralInCompact(owned(others)).into());
    }
    Ok(())
}

fn check_counters(key: &Key<'_>, types: &BTreeMap<&str, CqlType>, default_time_to_live: i32) -> Result<(), DdlError> {
    let mixed = types
        .iter()
        .any(|(name, ty)| !typename::is_counter(ty) && !key.names().any(|part| part == *name));
    if mixed {
        return Err(TableRefusal::Mixed.into());
    }
    if default_time_to_live > 0 {
        return Err(TableRefusal::CounterTimeToLive.into());
    }
    Ok(())
}

/// The table id in the statement, or a new one.
pub(super) fn table_id(ddl: &Ddl<'_>, given: Option<&str>) -> Result<Uuid, DdlError> {
    let Some(text) = given else {
        return Ok(ddl.context.new_id);
    };
    let id = Uuid::try_parse(text).map_err(|_| TableRefusal::Id)?;
    // Differs: Cassandra responds with a Java exception here, as a server error.
    match ddl
        .schema
        .keyspaces
        .values()
        .flat_map(|keyspace| keyspace.all_tables())
        .find(|table| table.id == id)
    {
        Some(table) => Err(TableRefusal::IdTaken {
            id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
        }
        .into()),
        None => Ok(id),
    }
}

/// Refuses the option `id`, which only CREATE takes.
pub(super) fn refuse_id(given: Option<&str>) -> Result<(), DdlError> {
    match given.map(Uuid::try_parse) {
        None => Ok(()),
        Some(Ok(_)) => Err(AlterTableRefusal::Id.into()),
        Some(Err(_)) => Err(TableRefusal::Id.into()),
    }
}

pub(super) fn check_name(keyspace: &str, name: &str) -> Result<(), DdlError> {
    if !names::has_name_characters(name) {
        return Err(TableRefusal::NameCharacters {
            keyspace: keyspace.to_owned(),
            table: name.to_owned(),
        }
        .into());
    }
    if name.len() > NAME_CHARACTERS_MAX {
        return Err(TableRefusal::NameLength {
            keyspace: keyspace.to_owned(),
            table: name.to_owned(),
            length: name.len(),
            characters_max: NAME_CHARACTERS_MAX,
        }
        .into());
    }
    Ok(())
}

/// Refuses counters beside other columns. A counter may be written as its class, which only this refuses.
pub(super) fn check_mixed(table: &Table) -> Result<(), DdlError> {
    let counts = table.is_counter;
    let mut others = table.others().iter();
    let Some(column) = others.find(|column| typename::is_counter(&column.ty) != counts) else {
        return Ok(());
    };
    let (table, column) = (format!("{}.{}", table.keyspace, table.name), column.name.clone());
    Err(if counts {
        AlterTableRefusal::ValueInCounterTable { table, column }.into()
    } else {
        AlterTableRefusal::CounterInValueTable { table, column }.into()
    })
}

/// All columns, without ids, in any order.
fn columns(
    statement: &CreateTable,
    key: &Key<'_>,
    types: &BTreeMap<&str, CqlType>,
    descending: &BTreeSet<&str>,
    is_ordered: bool,
) -> Vec<Column> {
    let place = |names: &[&str], name: &str| names.iter().position(|part| *part == name);
    // As in Cassandra: such a table's columns are static, so a partition's only row is its static row. It exists by its
    // values.
    let is_static_compact = statement.options.compact_storage && key.clustering.is_empty();
    let column = |written: &ast::ColumnDefinition| {
        let name = written.name.as_str();
        let (kind, position) = if let Some(position) = place(&key.partition, name) {
            (ColumnKind::PartitionKey, position)
        } else if let Some(position) = place(&key.clustering, name) {
            (ColumnKind::Clustering, position)
        } else if written.is_static || is_static_compact {
            (ColumnKind::Static, 0)
        } else {
            (ColumnKind::Regular, 0)
        };
        Column {
            id: 0,
            name: name.to_owned(),
            ty: types.get(name).cloned().unwrap_or(CqlType::Native(Native::Blob)),
            kind,
            position,
            descending: kind == ColumnKind::Clustering
                && (descending.contains(name) || column_type::is_reversed(&written.column_type)),
            by_utf16: is_ordered
                && matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
                && is_text(types.get(name)),
            mask: None,
        }
    };
    statement.columns.iter().map(column).collect()
}

/// Inserts a column at its position and gives it the next id.
pub(super) fn add_column(table: &mut Table, column: Column) {
    number_column(table, column);
    sort_columns(table);
}

/// Inserts a column that was dropped at its position, with the id that it had.
pub(super) fn add_column_again(table: &mut Table, column: Column) {
    table.columns.push(Arc::new(column));
    sort_columns(table);
}

/// Gives a column the next id and appends it. A caller that adds many columns sorts them once at the end.
fn number_column(table: &mut Table, mut column: Column) -> ColumnId {
    let id = table.next_column_id;
    column.id = id;
    table.next_column_id += 1;
    table.columns.push(Arc::new(column));
    id
}

/// Columns in the order of `SELECT *`.
pub(super) fn sort_columns(table: &mut Table) {
    table.columns.sort_by(|a, b| {
        let rank = |kind: ColumnKind| match kind {
            ColumnKind::PartitionKey => 0,
            ColumnKind::Clustering => 1,
            ColumnKind::Static => 2,
            ColumnKind::Regular => 3,
        };
        (rank(a.kind), a.position)
            .cmp(&(rank(b.kind), b.position))
            .then_with(|| compare_columns(&a.name, &b.name))
    });
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    Ddl::authorize(keyspace_name, Right::Drop, &format!("table {keyspace_name}.{name}"))?;
    let Some((keyspace, table)) = ddl.find(keyspace_name, |keyspace| keyspace.table_or_view(name)) else {
        return ddl.absent(
            statement.if_exists,
            NameRefusal::TableMissing {
                keyspace: keyspace_name.to_owned(),
                table: name.to_owned(),
            },
        );
    };
    if keyspace.views.contains_key(name) {
        return Err(TableRefusal::DropOfView.into());
    }
    if keyspace.views_of(name).next().is_some() {
        return Err(TableRefusal::ViewsDepend(keyspace_name.to_owned()).into());
    }
    let mut next = Keyspace::clone(keyspace);
    next.tables.remove(name);
    let schema: Schema = ddl.with(next);
    let mut outcome = SchemaOutcome::changed(
        ddl.schema,
        schema,
        ChangeKind::Dropped,
        ChangeTarget::Table,
        keyspace_name,
        name,
    );
    outcome.dropped_storage = table.storage_ids().collect();
    Ok(outcome)
}
