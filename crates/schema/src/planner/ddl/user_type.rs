//! CREATE, ALTER and DROP TYPE.
//!
//! Every type that uses a user-defined type embeds its definition, so a change of one changes all columns that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammar::ast::{AlterType, AlterTypeAction, CreateType, Drop, Name, Type};

use super::error::DdlError;
use super::refusal::UserTypeRefusal;
use super::{Ddl, Right, SchemaOutcome, column_type};
use crate::command::{ChangeKind, ChangeTarget};
use crate::schema::entities::is_value_type;
use crate::schema::{Column, Keyspace, Table, in_dependency_order, typename};
use helenus_types::types::{CqlType, TYPE_PARTS_MAX, UserType};

/// Names reserved for future types. Source: Cassandra's grammar.
const RESERVED: &[&str] = &["bitstring", "byte", "complex", "enum", "interval", "macaddr"];

fn check_field(written: &Type) -> Result<(), DdlError> {
    if column_type::is_counter(written) {
        return Err(UserTypeRefusal::Counter.into());
    }
    if column_type::is_user(written) {
        return Err(UserTypeRefusal::MultiCell.into());
    }
    Ok(())
}

pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateType) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    if RESERVED.contains(&name) {
        return Err(UserTypeRefusal::Reserved(name.to_owned()).into());
    }
    statement
        .fields
        .iter()
        .try_for_each(|(_, written)| column_type::check_syntax(written))?;
    Ddl::authorize(keyspace_name, Right::Create, &format!("all tables in {keyspace_name}"))?;
    let keyspace = ddl.keyspace(keyspace_name)?;
    if keyspace.types.contains_key(name) {
        return if statement.if_not_exists {
            Ok(SchemaOutcome::unchanged(ddl.schema))
        } else {
            Err(UserTypeRefusal::Exists(name.to_owned()).into())
        };
    }
    column_type::check_length("Type", name)?;
    let mut seen = BTreeSet::new();
    for (field, _) in &statement.fields {
        column_type::check_length("Field", field.as_str())?;
        if !seen.insert(field) {
            return Err(UserTypeRefusal::DuplicateField {
                field: field.as_str().to_owned(),
                user_type: name.to_owned(),
            }
            .into());
        }
    }
    statement
        .fields
        .iter()
        .try_for_each(|(_, written)| check_field(written))?;
    let mut fields = Vec::with_capacity(statement.fields.len());
    for (field, written) in &statement.fields {
        fields.push((field.as_str().to_owned(), column_type::resolve(written, keyspace)?));
    }
    let ty = UserType {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        fields,
    };
    let ty = Arc::new(ty);
    check_parts(&ty)?;
    let mut next = Keyspace::clone(keyspace);
    next.types.insert(name.to_owned(), ty);
    Ok(SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Created,
        ChangeTarget::Type,
        keyspace_name,
        name,
    ))
}

pub(super) fn alter(ddl: &Ddl<'_>, statement: &AlterType) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    if let AlterTypeAction::Add { field_type, .. } = &statement.action {
        column_type::check_syntax(field_type)?;
    }
    Ddl::authorize(keyspace_name, Right::Alter, &format!("all tables in {keyspace_name}"))?;
    let Some((keyspace, before)) = ddl.find(keyspace_name, |keyspace| keyspace.types.get(name)) else {
        return ddl.absent(
            statement.if_exists,
            UserTypeRefusal::AlterOfMissing {
                keyspace: keyspace_name.to_owned(),
                user_type: name.to_owned(),
            },
        );
    };
    if is_value_type(before) {
        return Err(UserTypeRefusal::Entities(name.to_owned()).into());
    }
    let mut next = UserType::clone(before);
    match &statement.action {
        AlterTypeAction::Add {
            if_not_exists,
            field,
            field_type,
        } => {
            if !add_field(keyspace, &mut next, field.as_str(), field_type, *if_not_exists)? {
                return Ok(SchemaOutcome::unchanged(ddl.schema));
            }
        }
        AlterTypeAction::Rename { if_exists, renames } => rename_fields(before, &mut next, renames, *if_exists)?,
        AlterTypeAction::AlterField { .. } => return Err(UserTypeRefusal::FieldType.into()),
    }
    let next = with_type(keyspace, next);
    next.types.values().try_for_each(check_parts)?;
    let schema = ddl.with(next);
    Ok(SchemaOutcome::changed(
        ddl.schema,
        schema,
        ChangeKind::Updated,
        ChangeTarget::Type,
        keyspace_name,
        name,
    ))
}

/// Limits the size of a type, since result metadata spells it out.
fn check_parts(ty: &Arc<UserType>) -> Result<(), DdlError> {
    if CqlType::User(Arc::clone(ty)).parts(TYPE_PARTS_MAX) <= TYPE_PARTS_MAX {
        return Ok(());
    }
    Err(UserTypeRefusal::Parts {
        keyspace: ty.keyspace.clone(),
        user_type: ty.name.clone(),
        parts_max: TYPE_PARTS_MAX,
    }
    .into())
}

/// Adds a field; false means that there is nothing to do.
fn add_field(
    keyspace: &Keyspace,
    ty: &mut UserType,
    field: &str,
    written: &Type,
    if_not_exists: bool,
) -> Result<bool, DdlError> {
    let full_name = format!("{}.{}", ty.keyspace, ty.name);
    check_field(written)?;
    if ty.fields.iter().any(|(name, _)| name == field) {
        return if if_not_exists {
            Ok(false)
        } else {
            Err(UserTypeRefusal::FieldExists {
                field: field.to_owned(),
                user_type: full_name,
            }
            .into())
        };
    }
    column_type::check_length("Field", field)?;
    let field_type = column_type::resolve(written, keyspace)?;
    let shown = typename::with_keyspace(&field_type);
    if field_type.references_user_type(&ty.keyspace, &ty.name) {
        return Err(UserTypeRefusal::Circular {
            field: field.to_owned(),
            ty: shown,
            user_type: full_name,
        }
        .into());
    }
    // The bytes of a partition key locate its rows, so they must not change.
    let tables: Vec<String> = keyspace
        .all_tables()
        .filter(|table| {
            table
                .partition_key()
                .iter()
                .any(|column| column.ty.references_user_type(&ty.keyspace, &ty.name))
        })
        .map(|table| format!("{}.{}", table.keyspace, table.name))
        .collect();
    if !tables.is_empty() {
        return Err(UserTypeRefusal::InPartitionKey {
            field: field.to_owned(),
            ty: shown,
            user_type: full_name,
            tables,
        }
        .into());
    }
    ty.fields.push((field.to_owned(), field_type));
    Ok(true)
}

/// Applies all renames at once: each `from` is a name from before the statement.
fn rename_fields(
    before: &UserType,
    ty: &mut UserType,
    renames: &[(Name, Name)],
    if_exists: bool,
) -> Result<(), DdlError> {
    for (from, to) in renames {
        let place = before.fields.iter().position(|(name, _)| name == from.as_str());
        match place.and_then(|place| ty.fields.get_mut(place)) {
            Some((name, _)) => to.as_str().clone_into(name),
            None if if_exists => {}
            None => {
                return Err(UserTypeRefusal::FieldMissing {
                    field: from.as_str().to_owned(),
                    keyspace: ty.keyspace.clone(),
                    user_type: ty.name.clone(),
                }
                .into());
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (name, _) in &ty.fields {
        column_type::check_length("Field", name)?;
        if !seen.insert(name) {
            // Cassandra's message names the keyspace here.
            return Err(UserTypeRefusal::DuplicateRename {
                field: name.clone(),
                keyspace: ty.keyspace.clone(),
            }
            .into());
        }
    }
    Ok(())
}

/// The keyspace with a changed type, and with all types and columns that use it.
fn with_type(before: &Keyspace, changed: UserType) -> Keyspace {
    let mut next = before.clone();
    let mut made: BTreeMap<String, Arc<UserType>> = BTreeMap::from([(changed.name.clone(), Arc::new(changed))]);
    // In this order each type follows the types that it uses.
    for ty in in_dependency_order(&before.types) {
        let touched = !made.contains_key(&ty.name)
            && ty.fields.iter().any(|(_, field)| {
                field.contains(&|inner| matches!(inner, CqlType::User(user) if made.contains_key(&user.name)))
            });
        if touched {
            let fields = ty
                .fields
                .iter()
                .map(|(field, ty)| (field.clone(), changed_type(ty, &made)))
                .collect();
            let changed = UserType {
                keyspace: ty.keyspace.clone(),
                name: ty.name.clone(),
                fields,
            };
            made.insert(ty.name.clone(), Arc::new(changed));
        }
    }
    let touched: Vec<String> = next
        .tables
        .values()
        .filter(|table| touches(table, &made))
        .map(|table| table.name.clone())
        .collect();
    for name in touched {
        if let Some(table) = next.tables.get_mut(&name) {
            change_columns(table, &made);
        }
    }
    for view in next.views.values_mut() {
        if touches(&view.table, &made) {
            change_columns(&mut Arc::make_mut(view).table, &made);
        }
    }
    for function in &mut next.functions {
        let function = Arc::make_mut(function);
        for (_, ty) in &mut function.arguments {
            *ty = changed_type(ty, &made);
        }
        function.returns = changed_type(&function.returns, &made);
    }
    for aggregate in &mut next.aggregates {
        let aggregate = Arc::make_mut(aggregate);
        for ty in &mut aggregate.arguments {
            *ty = changed_type(ty, &made);
        }
        aggregate.state_type = changed_type(&aggregate.state_type, &made);
        aggregate.returns = changed_type(&aggregate.returns, &made);
    }
    next.types.extend(made);
    next
}

fn changed_type(ty: &CqlType, made: &BTreeMap<String, Arc<UserType>>) -> CqlType {
    typename::with_users(ty, &|user| {
        made.get(&user.name).map_or_else(|| Arc::new(user.clone()), Arc::clone)
    })
}

fn touches(table: &Table, made: &BTreeMap<String, Arc<UserType>>) -> bool {
    let hit = |column: &Column| {
        column
            .ty
            .contains(&|inner| matches!(inner, CqlType::User(user) if made.contains_key(&user.name)))
    };
    table.columns.iter().any(|column| hit(column))
}

fn change_columns(table: &mut Arc<Table>, made: &BTreeMap<String, Arc<UserType>>) {
    if !touches(table, made) {
        return;
    }
    let table = Arc::make_mut(table);
    for column in &mut table.columns {
        let column = Arc::make_mut(column);
        column.ty = changed_type(&column.ty, made);
    }
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &Drop) -> Result<SchemaOutcome, DdlError> {
    let (name, keyspace_name) = (statement.name.name.as_str(), ddl.keyspace_name(&statement.name)?);
    Ddl::authorize(keyspace_name, Right::Drop, &format!("all tables in {keyspace_name}"))?;
    let found = ddl
        .schema
        .keyspace(keyspace_name)
        .filter(|keyspace| keyspace.types.contains_key(name));
    let Some(keyspace) = found else {
        return ddl.absent(
            statement.if_exists,
            UserTypeRefusal::DropOfMissing {
                keyspace: keyspace_name.to_owned(),
                user_type: name.to_owned(),
            },
        );
    };
    let uses = |ty: &CqlType| ty.references_user_type(keyspace_name, name);
    let used_by = |kind: &'static str, names: Vec<String>| {
        if names.is_empty() {
            return Ok(());
        }
        Err(UserTypeRefusal::Used {
            keyspace: keyspace_name.to_owned(),
            user_type: name.to_owned(),
            kind,
            names,
        })
    };
    let functions = keyspace
        .functions
        .iter()
        .filter(|function| function.arguments.iter().any(|(_, ty)| uses(ty)) || uses(&function.returns))
        .map(|function| &function.name);
    let aggregates = keyspace
        .aggregates
        .iter()
        .filter(|aggregate| {
            aggregate.arguments.iter().any(uses) || uses(&aggregate.state_type) || uses(&aggregate.returns)
        })
        .map(|aggregate| &aggregate.name);
    let named = |name: &String| format!("{keyspace_name}.{name}");
    used_by("functions", functions.chain(aggregates).map(named).collect())?;
    let types = keyspace
        .types
        .values()
        .filter(|ty| ty.name != name && ty.fields.iter().any(|(_, field)| uses(field)));
    used_by("user types", types.map(|ty| ty.name.clone()).collect())?;
    let tables = keyspace
        .tables
        .values()
        .filter(|table| table.columns.iter().any(|column| uses(&column.ty)));
    used_by("tables", tables.map(|table| table.name.clone()).collect())?;

    let mut next = Keyspace::clone(keyspace);
    next.types.remove(name);
    Ok(SchemaOutcome::changed(
        ddl.schema,
        ddl.with(next),
        ChangeKind::Dropped,
        ChangeTarget::Type,
        keyspace_name,
        name,
    ))
}
