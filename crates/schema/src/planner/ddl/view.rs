//! CREATE, ALTER and DROP MATERIALIZED VIEW: their changes of the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{
    AlterView, CreateView, Drop, Name, Operator, Relation, RelationTarget, RelationValue, Selection, Selector,
    Statement, Term,
};

use super::error::DdlError;
use super::refusal::{CosmosRefusal, NameRefusal, ViewRefusal};
use super::table::{Key, add_column, check_name, clustering_order, refuse_id, table_id};
use super::{Ddl, Right, SchemaOutcome, options, view_tests};
use crate::command::{ChangeKind, ChangeTarget};
use crate::planner::text::{order_fields, owned};
use crate::schema::{Column, ColumnKind, Keyspace, Table, TableOptions, View};
use uuid::Uuid;

const EXPERIMENTAL: &str = "Materialized views are experimental and are not recommended for production use.";

#[expect(
    clippy::too_many_lines,
    reason = "the checks of a statement, in the order of the faults of Cassandra"
)]
pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateView) -> Result<SchemaOutcome, DdlError> {
    if ddl.context.profile.is_cosmos() {
        return Err(ViewRefusal::Cosmos.into());
    }
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let base_name = statement.base_table.name.as_str();
    if statement.options.compact_storage {
        return Err(ViewRefusal::Compact.into());
    }
    // Not that of the session: a table without a keyspace is in the view's.
    let base_keyspace = statement
        .base_table
        .keyspace
        .as_ref()
        .map_or(keyspace_name, Name::as_str);
    if base_keyspace != keyspace_name {
        return Err(ViewRefusal::OtherKeyspace.into());
    }
    Ddl::authorize(
        base_keyspace,
        Right::Alter,
        &format!("table {base_keyspace}.{base_name}"),
    )?;
    let given = options::read(&statement.options, None)?;
    let keyspace = ddl.keyspace(keyspace_name)?;
    check_markers(statement)?;
    let Some(base) = keyspace.tables.get(base_name) else {
        return Err(ViewRefusal::BaseMissing(base_name.to_owned()).into());
    };
    if keyspace.tables.contains_key(name) {
        return Err(ViewRefusal::NameOfTable(name.to_owned()).into());
    }
    if keyspace.views.contains_key(name) {
        let there = ddl.table_exists(statement.if_not_exists, keyspace_name, name)?;
        return Ok(there.warned(vec![EXPERIMENTAL.to_owned()]));
    }
    check_base(base, name)?;
    let selected = selected(statement, base, name)?;
    let key = Key::of(&statement.primary_key);
    let order = &statement.options.clustering_order;
    let ordered: Vec<&str> = order.iter().map(|(column, _)| column.as_str()).collect();
    check_columns_of_key(&key, base, &selected, name)?;
    if !order.is_empty() && ordered != key.clustering {
        return Err(ViewRefusal::Order.into());
    }
    check_key(&key, base, name)?;
    let restricted = Restricted::of(statement, base)?;
    let tests = view_tests::of(ddl, &statement.relations, base, || restricted.check(&key))?;
    let descending = if order.is_empty() {
        descending_in_base(&key, base)
    } else {
        clustering_order(&statement.options, &key.clustering, name)?
    };
    given.check_names()?;
    let given_id = given.id.clone();
    let options = given.validate()?;
    if options.full_fidelity.is_some() {
        return Err(CosmosRefusal::LogOfView.into());
    }
    if options.is_ordered {
        return Err(CosmosRefusal::OrderedView.into());
    }
    if options.default_time_to_live > 0 {
        return Err(ViewRefusal::TimeToLive.into());
    }
    let id = table_id(ddl, given_id.as_deref())?;
    check_name(keyspace_name, name)?;

    let mut table = empty_table(ddl, statement, &key, options, id)?;
    for column in base
        .columns
        .iter()
        .filter(|column| selected.contains(column.name.as_str()) || key.names().any(|part| part == column.name))
    {
        add_column(&mut table, in_view(column, &key, &descending));
    }
    let where_clause: Vec<String> = statement.relations.iter().map(kept_text).collect();
    let view = View {
        table: Arc::new(table),
        base_table: base_name.to_owned(),
        base_id: base.id,
        include_all_columns: statement.selection == Selection::All,
        where_clause: where_clause.join(" AND "),
        tests,
    };
    let mut next = Keyspace::clone(keyspace);
    next.views.insert(name.to_owned(), Arc::new(view));
    let mut outcome = SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Created,
        ChangeTarget::Table,
        keyspace_name,
        name,
    );
    outcome.storage_id_used = true;
    Ok(outcome.warned(vec![EXPERIMENTAL.to_owned()]))
}

/// Refuses a base table that can have no views.
fn check_base(base: &Table, view: &str) -> Result<(), DdlError> {
    if base.is_counter {
        return Err(ViewRefusal::OnCounters.into());
    }
    if base.options.gc_grace_seconds == 0 {
        return Err(ViewRefusal::Grace {
            view: view.to_owned(),
            base: base.name.clone(),
        }
        .into());
    }
    Ok(())
}

/// Columns of the view's clustering key that descend in the base. As in Cassandra, whose types of columns have their direction: a
/// view without an order of its own has its base's.
fn descending_in_base<'a>(key: &Key<'a>, base: &Table) -> BTreeSet<&'a str> {
    let descends = |name: &&str| {
        base.columns
            .iter()
            .any(|column| column.descending && column.name == **name)
    };
    key.clustering.iter().copied().filter(descends).collect()
}

/// The view's table, without its columns.
fn empty_table(
    ddl: &Ddl<'_>,
    statement: &CreateView,
    key: &Key<'_>,
    options: TableOptions,
    id: Uuid,
) -> Result<Table, DdlError> {
    Ok(Table {
        id,
        storage_id: ddl.context.storage_id,
        keyspace: ddl.keyspace_name(&statement.name)?.to_owned(),
        name: statement.name.name.as_str().to_owned(),
        columns: Vec::new(),
        partition_key_count: key.partition.len(),
        clustering_count: key.clustering.len(),
        is_counter: false,
        is_virtual: false,
        compact_storage: false,
        options,
        indexes: BTreeMap::new(),
        triggers: BTreeMap::new(),
        dropped: BTreeMap::new(),
        next_column_id: 0,
    })
}

/// The view's column for a column of the base table.
fn in_view(column: &Column, key: &Key<'_>, descending: &BTreeSet<&str>) -> Column {
    let place = |names: &[&str]| names.iter().position(|part| *part == column.name);
    let (kind, position) = if let Some(position) = place(&key.partition) {
        (ColumnKind::PartitionKey, position)
    } else if let Some(position) = place(&key.clustering) {
        (ColumnKind::Clustering, position)
    } else {
        (ColumnKind::Regular, 0)
    };
    Column {
        kind,
        position,
        descending: match kind {
            // As in Cassandra, whose types of columns have their direction.
            ColumnKind::PartitionKey => column.descending,
            _ => descending.contains(column.name.as_str()),
        },
        // A view lies in the order of its hash.
        by_utf16: false,
        ..column.clone()
    }
}

/// A selector in Cassandra's messages, where the bounds of a slice have no blanks between them.
fn selector_text(selector: &Selector) -> String {
    let bound = |bound: &Option<_>| bound.as_ref().map_or(String::new(), ToString::to_string);
    match selector {
        Selector::Slice { of, from, to } => format!("{of}[{}..{}]", bound(from), bound(to)),
        other => other.to_string(),
    }
}

/// Names of the base table's columns that the view includes.
fn selected<'a>(statement: &'a CreateView, base: &'a Table, name: &str) -> Result<BTreeSet<&'a str>, DdlError> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    match &statement.selection {
        Selection::All => names.extend(base.columns.iter().map(|column| column.name.as_str())),
        Selection::Selectors(selectors) => {
            for selector in selectors {
                if selector.alias.is_some() {
                    return Err(ViewRefusal::Alias(selector.to_string()).into());
                }
                let Selector::Column(column) = &selector.selector else {
                    return Err(ViewRefusal::Selector(selector_text(&selector.selector)).into());
                };
                if base.column(column.as_str()).is_none() {
                    return Err(undefined(column.as_str(), base));
                }
                names.insert(column.as_str());
            }
        }
    }
    let statics = base.columns.iter().filter(|column| column.kind == ColumnKind::Static);
    if let Some(column) = statics.into_iter().find(|column| names.contains(column.name.as_str())) {
        return Err(ViewRefusal::Static {
            column: column.name.clone(),
            view: name.to_owned(),
        }
        .into());
    }
    Ok(names)
}

fn undefined(column: &str, base: &Table) -> DdlError {
    NameRefusal::UndefinedColumn {
        column: column.to_owned(),
        keyspace: base.keyspace.clone(),
        table: base.name.clone(),
    }
    .into()
}

fn is_key(column: &Column) -> bool {
    matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
}

/// Each column of the key by itself.
fn check_columns_of_key(key: &Key<'_>, base: &Table, selected: &BTreeSet<&str>, view: &str) -> Result<(), DdlError> {
    let mut seen = BTreeSet::new();
    for name in key.names() {
        let Some((_, column)) = base.column(name).filter(|_| selected.contains(name)) else {
            return Err(ViewRefusal::UnknownKeyColumn {
                column: name.to_owned(),
                view: view.to_owned(),
            }
            .into());
        };
        if !seen.insert(name) {
            return Err(ViewRefusal::DuplicateKeyColumn {
                column: name.to_owned(),
                view: view.to_owned(),
            }
            .into());
        }
        if column.ty.is_multi_cell() {
            return Err(ViewRefusal::MultiCellInKey {
                kind: if matches!(column.ty, helenus_types::types::CqlType::User(_)) {
                    "user-defined"
                } else {
                    "collection"
                },
                class_name: column.ty.marshal_name(),
                column: name.to_owned(),
            }
            .into());
        }
    }
    Ok(())
}

/// The columns of the key together.
fn check_key(key: &Key<'_>, base: &Table, view: &str) -> Result<(), DdlError> {
    let names: BTreeSet<&str> = key.names().collect();
    let is_other = |name: &&str| base.column(name).is_some_and(|(_, column)| !is_key(column));
    let others: Vec<&str> = key.names().filter(is_other).collect();
    let missing: Vec<&str> = base
        .columns
        .iter()
        .filter(|column| is_key(column) && !names.contains(column.name.as_str()))
        .map(|column| column.name.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(ViewRefusal::KeyColumnsMissing {
            view: view.to_owned(),
            columns: owned(missing),
            base: base.name.clone(),
        }
        .into());
    }
    if others.len() > 1 {
        return Err(ViewRefusal::SeveralOthers(owned(others)).into());
    }
    Ok(())
}

fn has_marker(term: &Term) -> bool {
    match term {
        Term::BindMarker { .. } => true,
        Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => terms.iter().any(has_marker),
        Term::Function { arguments, .. } => arguments.iter().any(has_marker),
        _ => false,
    }
}

fn check_markers(statement: &CreateView) -> Result<(), DdlError> {
    let marked = statement.relations.iter().any(|relation| match &relation.value {
        RelationValue::Term(term) => has_marker(term),
        RelationValue::Terms(terms) => terms.iter().any(has_marker),
        RelationValue::None => false,
    });
    if marked {
        return Err(ViewRefusal::Markers.into());
    }
    Ok(())
}

/// The columns that the WHERE clause restricts.
struct Restricted<'a> {
    all: BTreeSet<&'a str>,
    /// Columns outside the base table's key with other restrictions than IS NOT NULL.
    otherwise: Vec<&'a str>,
}

impl<'a> Restricted<'a> {
    fn of(statement: &'a CreateView, base: &Table) -> Result<Self, DdlError> {
        let mut all = BTreeSet::new();
        let mut otherwise: Vec<&str> = Vec::new();
        for relation in &statement.relations {
            let names: Vec<&Name> = match &relation.target {
                RelationTarget::Token(_) => {
                    return Err(ViewRefusal::Token.into());
                }
                RelationTarget::Column(name) | RelationTarget::Element(name, _) | RelationTarget::Index(name) => {
                    vec![name]
                }
                RelationTarget::Tuple(names) => names.iter().collect(),
                RelationTarget::Feed(function) => return Err(undefined(function.name(), base)),
            };
            for name in names {
                let Some((_, column)) = base.column(name.as_str()) else {
                    return Err(undefined(name.as_str(), base));
                };
                all.insert(name.as_str());
                if relation.operator != Operator::IsNotNull && !is_key(column) && !otherwise.contains(&name.as_str()) {
                    otherwise.push(name.as_str());
                }
            }
        }
        Ok(Self { all, otherwise })
    }

    fn check(self, key: &Key<'_>) -> Result<(), DdlError> {
        if !self.otherwise.is_empty() {
            return Err(ViewRefusal::RestrictedOthers(owned(self.otherwise)).into());
        }
        let free: Vec<&str> = key.names().filter(|name| !self.all.contains(name)).collect();
        if !free.is_empty() {
            return Err(ViewRefusal::KeyNotRestricted(owned(free)).into());
        }
        Ok(())
    }
}

pub(super) fn alter(ddl: &Ddl<'_>, statement: &AlterView) -> Result<SchemaOutcome, DdlError> {
    if ddl.context.profile.is_cosmos() {
        return Err(ViewRefusal::Cosmos.into());
    }
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let Some((keyspace, view)) = ddl.find(keyspace_name, |keyspace| keyspace.views.get(name)) else {
        return ddl.absent(
            statement.if_exists,
            ViewRefusal::Missing {
                keyspace: keyspace_name.to_owned(),
                view: name.to_owned(),
            },
        );
    };
    Ddl::authorize(
        keyspace_name,
        Right::Alter,
        &format!("table {keyspace_name}.{}", view.base_table),
    )?;
    let given = options::read(&statement.options, Some(&view.table.options))?;
    given.check_names()?;
    let id = given.id.clone();
    let options = given.validate()?;
    if options.full_fidelity.is_some() {
        return Err(CosmosRefusal::LogOfView.into());
    }
    refuse_id(id.as_deref())?;
    if options.gc_grace_seconds == 0 {
        return Err(ViewRefusal::AlterGrace.into());
    }
    if options.default_time_to_live > 0 {
        return Err(ViewRefusal::AlterTimeToLive.into());
    }
    let mut changed = View::clone(view);
    Arc::make_mut(&mut changed.table).options = options;
    let mut next = Keyspace::clone(keyspace);
    next.views.insert(name.to_owned(), Arc::new(changed));
    Ok(SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Updated,
        ChangeTarget::Table,
        keyspace_name,
        name,
    ))
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    let Some((keyspace, view)) = ddl.find(keyspace_name, |keyspace| keyspace.views.get(name)) else {
        return ddl.absent(
            statement.if_exists,
            ViewRefusal::Missing {
                keyspace: keyspace_name.to_owned(),
                view: name.to_owned(),
            },
        );
    };
    let storage_id = view.table.storage_id;
    let mut next = Keyspace::clone(keyspace);
    next.views.remove(name);
    let mut outcome = SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Dropped,
        ChangeTarget::Table,
        keyspace_name,
        name,
    );
    outcome.dropped_storage = vec![storage_id];
    Ok(outcome)
}

/// A relation as Cassandra keeps it: the fields of user-typed literals in the order of its hash table.
fn kept_text(relation: &Relation) -> String {
    let mut relation = relation.clone();
    match &mut relation.value {
        RelationValue::Term(term) => order_fields(term),
        RelationValue::Terms(terms) => terms.iter_mut().for_each(order_fields),
        RelationValue::None => {}
    }
    relation.to_string()
}

/// A WHERE clause with a column renamed.
pub(super) fn renamed(where_clause: &str, from: &str, to: &str) -> String {
    let Ok(Statement::Select(select)) = grammar::parse(&format!("SELECT * FROM t WHERE {where_clause}")) else {
        return where_clause.to_owned();
    };
    let rename = |name: &mut Name| {
        if name.as_str() == from {
            *name = Name::from(to);
        }
    };
    let mut texts = Vec::with_capacity(select.relations.len());
    for mut relation in select.relations {
        match &mut relation.target {
            RelationTarget::Column(name) | RelationTarget::Element(name, _) => rename(name),
            RelationTarget::Tuple(names) | RelationTarget::Token(names) => names.iter_mut().for_each(rename),
            RelationTarget::Index(_) | RelationTarget::Feed(_) => {}
        }
        texts.push(relation.to_string());
    }
    texts.join(" AND ")
}
