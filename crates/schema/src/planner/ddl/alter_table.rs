//! ALTER TABLE: rewrites no row. A new column gets an id that was never used. A dropped column is recorded by its name
//! with the time of the drop, up to which its cells are hidden. Added again, it has its old id, so that all its cells
//! compete by their timestamps, as in Cassandra.
//!
//! Source: Cassandra 5.0 `schema.TableMetadata#recordColumnDrop`, `db.rows.SerializationHelper#isDropped`.

use std::sync::Arc;

use grammar::ast::{AlterTable, AlterTableAction, ColumnDefinition, Mask, Name};

use super::error::DdlError;
use super::index_options;
use super::refusal::{AlterTableRefusal, NameRefusal, TableRefusal};
use super::table::{add_column, add_column_again, check_mixed, check_name, refuse_id, sort_columns};
use super::{Ddl, Right, SchemaOutcome, added_again, column_type, cosmos, mask, options};
use crate::command::{ChangeKind, ChangeTarget};
use crate::planner::text::owned;
use crate::schema::names::statement_order;
use crate::schema::{Column, ColumnKind, DroppedColumn, Keyspace, Schema, Table, View, typename};
use helenus_types::types::{CqlType, Native};

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn alter(ddl: &Ddl<'_>, statement: &AlterTable) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.table.name.as_str(), ddl.keyspace_name(&statement.table)?);
    Ddl::authorize(keyspace_name, Right::Alter, &format!("table {keyspace_name}.{name}"))?;
    if let AlterTableAction::AlterType { .. } = statement.action {
        return Err(AlterTableRefusal::ColumnType.into());
    }
    let partition_change = match &statement.action {
        AlterTableAction::Options(written) => {
            let found = ddl.find(keyspace_name, |keyspace| keyspace.tables.get(name));
            let is_ordered = found.is_some_and(|(_, table)| table.options.is_ordered);
            cosmos::partition_change(&written.properties, is_ordered)?
        }
        _ => None,
    };
    match &statement.action {
        _ if partition_change.is_some() => {}
        // Invalid options and types are refused whether or not the table exists.
        AlterTableAction::Options(written) => {
            options::read(written, None)?;
        }
        AlterTableAction::Add { columns, .. } => {
            columns
                .iter()
                .try_for_each(|column| column_type::check_syntax(&column.column_type))?;
        }
        _ => {}
    }
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
        return Err(AlterTableRefusal::View.into());
    }
    if let Some(change) = partition_change {
        return Ok(cosmos::outcome(ddl.schema, table, change));
    }
    let mut alteration = Alteration {
        before: keyspace,
        keyspace: Keyspace::clone(keyspace),
        table: Table::clone(table),
        now_micros: ddl.context.now_micros,
        schema: ddl.schema,
        masks_columns: ddl.context.masks_columns,
    };
    let before = alteration.table.options.clone();
    let is_of_entities = alteration.table.entity_layout().is_some();
    alteration.act(&statement.action)?;
    if is_of_entities && alteration.table.entity_layout().is_none() {
        return Err(AlterTableRefusal::Entities(alteration.table.name).into());
    }
    let Alteration {
        mut keyspace, table, ..
    } = alteration;
    check_name(keyspace_name, name)?;
    // Cassandra repeats this warning when columns are added.
    let warnings = match &statement.action {
        AlterTableAction::Add { .. } => index_options::of_vectors(&table),
        AlterTableAction::Options(_) => options::warnings(&before, &table.options, ddl.context.profile.is_cosmos()),
        _ => Vec::new(),
    };
    keyspace.tables.insert(name.to_owned(), Arc::new(table));
    let outcome = SchemaOutcome::changed(
        ddl.schema,
        ddl.with(keyspace),
        ChangeKind::Updated,
        ChangeTarget::Table,
        keyspace_name,
        name,
    );
    Ok(outcome.warned(warnings))
}

struct Alteration<'a> {
    before: &'a Keyspace,
    keyspace: Keyspace,
    table: Table,
    now_micros: i64,
    schema: &'a Schema,
    masks_columns: bool,
}

impl Alteration<'_> {
    fn act(&mut self, action: &AlterTableAction) -> Result<(), DdlError> {
        match action {
            AlterTableAction::Add { if_not_exists, columns } => {
                columns.iter().try_for_each(|column| self.add(column, *if_not_exists))?;
                check_mixed(&self.table)
            }
            AlterTableAction::Drop {
                if_exists,
                columns,
                timestamp,
            } => self.drop(columns, *if_exists, timestamp.as_deref()),
            AlterTableAction::Rename { if_exists: _, renames } => {
                let mut renames: Vec<&(Name, Name)> = renames.iter().collect();
                statement_order(&mut renames, |(from, _)| from.as_str());
                renames
                    .into_iter()
                    .try_for_each(|(from, to)| self.rename(from.as_str(), to.as_str()))
            }
            AlterTableAction::AlterType { .. } => Err(AlterTableRefusal::ColumnType.into()),
            AlterTableAction::AlterMask {
                if_exists,
                column,
                mask,
            } => self.mask(column.as_str(), *if_exists, mask.as_ref()),
            AlterTableAction::DropCompactStorage => self.drop_compact_storage(),
            AlterTableAction::Options(written) => self.options(written),
        }
    }

    fn full_name(&self) -> String {
        format!("{}.{}", self.table.keyspace, self.table.name)
    }

    fn views(&self) -> Vec<Arc<View>> {
        self.keyspace.views_of(&self.table.name).cloned().collect()
    }

    fn add(&mut self, written: &ColumnDefinition, if_not_exists: bool) -> Result<(), DdlError> {
        let name = written.name.as_str();
        let ty = column_type::resolve(&written.column_type, self.before)?;
        if self.table.column(name).is_some() {
            return if if_not_exists {
                Ok(())
            } else {
                Err(AlterTableRefusal::ColumnExists(name.to_owned()).into())
            };
        }
        column_type::check_length("Column", name)?;
        if self.table.compact_storage {
            return Err(AlterTableRefusal::AddToCompact.into());
        }
        if written.is_static && self.table.clustering_count == 0 {
            return Err(TableRefusal::StaticWithoutClustering.into());
        }
        column_type::check_nested(&ty).map_err(|error| AlterTableRefusal::NestedInColumn {
            cause: error,
            column: name.to_owned(),
        })?;
        let kind = if written.is_static {
            ColumnKind::Static
        } else {
            ColumnKind::Regular
        };
        self.check_dropped(name, &ty, kind)?;
        // Cassandra accepts a mask here even if masking is disabled.
        let mask = written.mask.as_ref();
        let mask = mask.map(|mask| mask::resolve(self.schema, &self.table.keyspace, &self.table.name, name, &ty, mask));
        let column = Column {
            id: 0,
            name: name.to_owned(),
            ty,
            kind,
            position: 0,
            descending: false,
            by_utf16: false,
            mask: mask.transpose()?,
        };
        match self.table.dropped.get(name).map(|dropped| dropped.column.id) {
            Some(id) => add_column_again(&mut self.table, Column { id, ..column.clone() }),
            None => add_column(&mut self.table, column.clone()),
        }
        if kind == ColumnKind::Regular {
            for view in self.views().into_iter().filter(|view| view.include_all_columns) {
                self.change_view(&view, |table| {
                    add_column(table, column.clone());
                });
            }
        }
        Ok(())
    }

    /// Allows a dropped column's name to be added again only if its old cells can be read as the new type.
    fn check_dropped(&self, name: &str, ty: &CqlType, kind: ColumnKind) -> Result<(), DdlError> {
        let Some(dropped) = self.table.dropped.get(name).map(|dropped| &dropped.column) else {
            return Ok(());
        };
        if !added_again::reads_as(&dropped.ty, ty) {
            return Err(AlterTableRefusal::DroppedType {
                column: name.to_owned(),
                new: ty.clone(),
                old: dropped.ty.clone(),
            }
            .into());
        }
        if kind != dropped.kind {
            let word = |kind: ColumnKind| {
                if kind == ColumnKind::Static {
                    "STATIC"
                } else {
                    "REGULAR"
                }
            };
            return Err(AlterTableRefusal::DroppedKind {
                column: name.to_owned(),
                new: word(kind),
                old: word(dropped.kind),
            }
            .into());
        }
        if self.table.is_counter {
            return Err(AlterTableRefusal::DroppedCounter(name.to_owned()).into());
        }
        Ok(())
    }

    fn drop(&mut self, columns: &[Name], if_exists: bool, timestamp: Option<&str>) -> Result<(), DdlError> {
        let given = timestamp
            .map(|text| {
                text.parse::<i64>()
                    .map_err(|_| AlterTableRefusal::Timestamp(text.to_owned()))
            })
            .transpose()?;
        // One timestamp for all columns. Timestamps after it are not reserved, and may be given to writes of a column
        // that is added again.
        let at = given.unwrap_or(self.now_micros);
        let mut columns: Vec<&Name> = columns.iter().collect();
        statement_order(&mut columns, |name| name.as_str());
        columns.dedup();
        for name in columns {
            self.drop_one(name.as_str(), if_exists, at)?;
        }
        Ok(())
    }

    fn drop_one(&mut self, name: &str, if_exists: bool, dropped_micros: i64) -> Result<(), DdlError> {
        let Some((at, column)) = self.table.column(name) else {
            return if if_exists {
                Ok(())
            } else if self.table.is_static_compact() && self.table.hidden_names().0 == name {
                Err(AlterTableRefusal::DropOfKey(name.to_owned()).into())
            } else {
                Err(AlterTableRefusal::ColumnMissing {
                    column: name.to_owned(),
                    table: self.full_name(),
                }
                .into())
            };
        };
        let mut column = Column::clone(column);
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(AlterTableRefusal::DropOfKey(name.to_owned()).into());
        }
        if let CqlType::User(user) = &column.ty {
            return Err(AlterTableRefusal::DropOfUserType {
                column: name.to_owned(),
                user_type: user.name.clone(),
            }
            .into());
        }
        if self.table.compact_value().is_some() {
            // Cassandra fails with an assertion error here.
            return Err(AlterTableRefusal::DropOfCompact(name.to_owned()).into());
        }
        let indexes = self.dependent_indexes(name);
        if !indexes.is_empty() {
            return Err(AlterTableRefusal::DropOfIndexed {
                column: name.to_owned(),
                indexes: owned(indexes),
            }
            .into());
        }
        if !self.views().is_empty() {
            return Err(AlterTableRefusal::DropUnderViews {
                column: name.to_owned(),
                table: self.table.name.clone(),
            }
            .into());
        }
        self.table.columns.remove(at);
        // The dropped column's record outlives the user-defined types in its type.
        column.ty = typename::without_users(&column.ty);
        self.table
            .dropped
            .insert(name.to_owned(), DroppedColumn { column, dropped_micros });
        Ok(())
    }

    fn dependent_indexes(&self, column: &str) -> Vec<&str> {
        self.table
            .indexes
            .values()
            .filter(|index| index.target_column().is_some_and(|(_, name)| name == column))
            .map(|index| index.name.as_str())
            .collect()
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DdlError> {
        // All renames of a statement refer to names from before it. Cassandra reports a missing column even with IF
        // EXISTS.
        let before = self.before.tables.get(&self.table.name);
        let Some((at, column)) = before.and_then(|before| before.column(from)) else {
            return Err(AlterTableRefusal::RenameOfMissing {
                column: from.to_owned(),
                table: self.full_name(),
            }
            .into());
        };
        let mut renamed = Column::clone(column);
        if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(AlterTableRefusal::RenameOfOther(from.to_owned()).into());
        }
        column_type::check_length("Column", to)?;
        if before.is_some_and(|before| before.column(to).is_some()) || self.table.column(to).is_some() {
            return Err(AlterTableRefusal::RenameToExisting {
                from: from.to_owned(),
                to: to.to_owned(),
                table: self.full_name(),
            }
            .into());
        }
        let indexes = self.dependent_indexes(from);
        if !indexes.is_empty() {
            return Err(AlterTableRefusal::RenameOfIndexed {
                column: from.to_owned(),
                indexes: owned(indexes),
            }
            .into());
        }
        renamed.name = to.to_owned();
        if let Some(slot) = self.table.columns.get_mut(at) {
            *slot = Arc::new(renamed);
        }
        for view in self.views() {
            self.change_view(&view, |table| {
                for column in table.columns.iter_mut().filter(|column| column.name == from) {
                    Arc::make_mut(column).name = to.to_owned();
                }
                sort_columns(table);
            });
            if let Some(view) = self.keyspace.views.get_mut(&view.table.name) {
                let view = Arc::make_mut(view);
                view.where_clause = super::view::renamed(&view.where_clause, from, to);
                let tests = view.tests.iter_mut().flat_map(|test| test.columns.iter_mut());
                for column in tests.filter(|column| *column == from) {
                    to.clone_into(column);
                }
            }
        }
        Ok(())
    }

    fn change_view(&mut self, view: &View, change: impl FnOnce(&mut Table)) {
        if let Some(slot) = self.keyspace.views.get_mut(&view.table.name) {
            change(Arc::make_mut(&mut Arc::make_mut(slot).table));
        }
    }

    fn mask(&mut self, name: &str, if_exists: bool, mask: Option<&Mask>) -> Result<(), DdlError> {
        if mask.is_some() && !self.masks_columns {
            return Err(TableRefusal::Mask.into());
        }
        let Some((_, column)) = self.table.column(name) else {
            if if_exists {
                return Ok(());
            }
            return Err(AlterTableRefusal::MaskOfMissing {
                column: name.to_owned(),
                table: self.table.name.clone(),
            }
            .into());
        };
        let ty = column.ty.clone();
        let mask = mask.map(|mask| mask::resolve(self.schema, &self.table.keyspace, &self.table.name, name, &ty, mask));
        let mask = mask.transpose()?;
        let set = |table: &mut Table| {
            let found = table.columns.iter_mut().find(|column| column.name == name);
            if let Some(column) = found.filter(|column| column.mask != mask) {
                Arc::make_mut(column).mask.clone_from(&mask);
            }
        };
        set(&mut self.table);
        for view in self.views() {
            self.change_view(&view, set);
        }
        Ok(())
    }

    /// Makes the hidden columns of such a table visible. Its rows stay as they are stored: those of a table without
    /// clustering columns are static rows already.
    ///
    /// Differs: the hidden value of a table with key columns only is null in existing rows, where Cassandra has an
    /// empty value.
    fn drop_compact_storage(&mut self) -> Result<(), DdlError> {
        if !self.table.compact_storage {
            return Err(AlterTableRefusal::NotCompact.into());
        }
        let (clustering, value) = self.table.hidden_names();
        let hidden = |name: String, ty: Native, kind: ColumnKind| Column {
            id: 0,
            name,
            ty: CqlType::Native(ty),
            kind,
            position: 0,
            descending: false,
            by_utf16: false,
            mask: None,
        };
        if self.table.is_static_compact() {
            // Older versions stored its columns as regular ones, in rows that this change would lose.
            if !self.table.others().is_empty() && !self.table.has_static() {
                return Err(AlterTableRefusal::HiddenColumns(self.full_name()).into());
            }
            let ty = if self.table.is_counter {
                Native::Counter
            } else {
                Native::Blob
            };
            add_column(
                &mut self.table,
                hidden(clustering, Native::Text, ColumnKind::Clustering),
            );
            self.table.clustering_count = 1;
            add_column(&mut self.table, hidden(value, ty, ColumnKind::Regular));
        } else if self.table.others().is_empty() {
            add_column(&mut self.table, hidden(value, Native::Empty, ColumnKind::Regular));
        }
        self.table.compact_storage = false;
        Ok(())
    }

    fn options(&mut self, written: &grammar::ast::TableOptions) -> Result<(), DdlError> {
        let given = options::read(written, Some(&self.table.options))?;
        given.check_names()?;
        let id = given.id.clone();
        let options = given.validate()?;
        refuse_id(id.as_deref())?;
        if self.table.is_counter && options.default_time_to_live > 0 {
            return Err(TableRefusal::CounterTimeToLive.into());
        }
        if options.gc_grace_seconds == 0 && !self.views().is_empty() {
            return Err(AlterTableRefusal::GraceUnderViews.into());
        }
        self.table.options = options;
        Ok(())
    }
}
