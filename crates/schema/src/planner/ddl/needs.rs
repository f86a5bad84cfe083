//! The permissions that a change of the schema needs.
//!
//! A name that the schema lacks, or that no role may change, needs none: the change itself is refused, in its own words.

use grammar::ast::{CreateAggregate, CreateFunction, DropFunction, DropKind, Name, QualifiedName, Statement, Type};

use super::argument_types;
use crate::roles::{Need, Permission, Resource};
use crate::schema::{Keyspace, Schema, Table, system};
use helenus_types::types::CqlType;

/// The permissions that a statement needs, in the order in which Cassandra checks them. `keyspace` is that of unqualified names.
#[must_use]
pub fn needs(statement: &Statement, keyspace: Option<&str>, schema: &Schema) -> Vec<Need> {
    use Permission::{Alter, Create, Drop};
    let names = Names { keyspace, schema };
    match statement {
        Statement::CreateKeyspace(_) => vec![Need::new(Create, Resource::AllKeyspaces)],
        Statement::AlterKeyspace(alter) => vec![on_keyspace(Alter, &alter.name)],
        Statement::DropKeyspace(drop) if system::is_name(drop.name.as_str()) => Vec::new(),
        Statement::DropKeyspace(drop) => vec![on_keyspace(Drop, &drop.name)],
        Statement::CreateTable(create) => names.on_all_tables(Create, &create.table),
        Statement::AlterTable(alter) => names.on_named(Alter, &alter.table),
        Statement::CreateIndex(create) => names.on_named(Alter, &create.table),
        Statement::CreateView(create) => names.on_named(Alter, &create.base_table),
        Statement::AlterView(alter) => names.on_view(&alter.name),
        Statement::CreateType(create) => names.on_all_tables(Create, &create.name),
        Statement::AlterType(alter) => names.on_all_tables(Alter, &alter.name),
        Statement::Drop(drop) => match drop.kind {
            DropKind::Table => names.on_named(Drop, &drop.name),
            DropKind::Type => names.on_all_tables(Drop, &drop.name),
            DropKind::Index => names.on_index(&drop.name),
            DropKind::View => names.on_view(&drop.name),
        },
        Statement::CreateFunction(create) => names.creates_function(create),
        Statement::CreateAggregate(create) => names.creates_aggregate(create),
        Statement::DropFunction(drop) => names.drops_functions(drop),
        Statement::CreateTrigger(create) => names.on_named(Alter, &create.table),
        Statement::DropTrigger(drop) => names.on_named(Alter, &drop.table),
        // No other statement changes the schema.
        _ => Vec::new(),
    }
}

fn on_keyspace(permission: Permission, name: &Name) -> Need {
    Need::new(permission, Resource::Keyspace(name.as_str().into()))
}

fn on_table(permission: Permission, table: &Table) -> Need {
    Need::new(permission, Resource::table(&table.keyspace, &table.name))
}

/// What names mean.
#[derive(Clone, Copy)]
struct Names<'a> {
    /// The keyspace of unqualified names.
    keyspace: Option<&'a str>,
    schema: &'a Schema,
}

impl<'a> Names<'a> {
    /// The keyspace of a name. `None` means no permission is needed: it is unknown, or no role may change it.
    fn keyspace_of(self, name: &'a QualifiedName) -> Option<&'a str> {
        let keyspace = name.keyspace.as_ref().map(Name::as_str).or(self.keyspace);
        keyspace.filter(|keyspace| !system::is_name(keyspace))
    }

    /// The same, if it exists.
    fn found(self, name: &'a QualifiedName) -> Option<&'a Keyspace> {
        self.schema.keyspace(self.keyspace_of(name)?).map(AsRef::as_ref)
    }

    fn on_all_tables(self, permission: Permission, name: &QualifiedName) -> Vec<Need> {
        let keyspace = self.keyspace_of(name);
        let need = keyspace.map(|keyspace| Need::new(permission, Resource::AllTables(keyspace.into())));
        need.into_iter().collect()
    }

    fn on_named(self, permission: Permission, name: &QualifiedName) -> Vec<Need> {
        let keyspace = self.keyspace_of(name);
        let need = keyspace.map(|keyspace| Need::new(permission, Resource::table(keyspace, name.name.as_str())));
        need.into_iter().collect()
    }

    /// The base table of a view.
    fn on_view(self, name: &QualifiedName) -> Vec<Need> {
        let base = self.found(name).and_then(|keyspace| {
            let view = keyspace.views.get(name.name.as_str())?;
            keyspace.tables.get(&view.base_table)
        });
        base.map(|base| on_table(Permission::Alter, base)).into_iter().collect()
    }

    /// The table of an index.
    fn on_index(self, name: &QualifiedName) -> Vec<Need> {
        let table = self.found(name).and_then(|keyspace| {
            let mut tables = keyspace.tables.values();
            tables.find(|table| table.indexes.contains_key(name.name.as_str()))
        });
        table
            .map(|table| on_table(Permission::Alter, table))
            .into_iter()
            .collect()
    }

    /// The types of a function's arguments. `None` means that the change refuses one of them.
    fn types(self, keyspace: &str, written: &[Type]) -> Option<Vec<CqlType>> {
        argument_types(self.schema, keyspace, written).ok()
    }

    /// A function or aggregate is made: CREATE in the keyspace, or ALTER on the one that is replaced.
    fn on_new_function(self, keyspace: &str, name: &Name, arguments: &[Type], replaces: bool) -> Need {
        let name = name.as_str();
        let types = self.types(keyspace, arguments);
        let of_name = types.map(|types| Resource::function(keyspace, name, &types));
        let found = self.schema.keyspace(keyspace);
        let mut existing = found.into_iter().flat_map(|found| functions(found, name));
        match of_name.filter(|_| replaces) {
            Some(replaced) if existing.any(|other| other == replaced) => Need::new(Permission::Alter, replaced),
            _ => Need::new(Permission::Create, Resource::AllFunctionsIn(keyspace.into())),
        }
    }

    fn creates_function(self, create: &CreateFunction) -> Vec<Need> {
        let Some(keyspace) = self.keyspace_of(&create.name) else {
            return Vec::new();
        };
        let arguments: Vec<Type> = create.arguments.iter().map(|(_, ty)| ty.clone()).collect();
        vec![self.on_new_function(keyspace, &create.name.name, &arguments, create.or_replace)]
    }

    /// An aggregate is made of functions that the role may call. They are looked up afterwards, as in Cassandra.
    fn creates_aggregate(self, create: &CreateAggregate) -> Vec<Need> {
        let Some(keyspace) = self.keyspace_of(&create.name) else {
            return Vec::new();
        };
        let state = std::slice::from_ref(&create.state_type);
        let taken: Vec<Type> = state.iter().chain(&create.arguments).cloned().collect();
        let call = |function: &Name, arguments: &[Type]| {
            let types = self.types(keyspace, arguments)?;
            let function = Resource::function(keyspace, function.as_str(), &types);
            Some(Need::new(Permission::Execute, function))
        };
        let mut needs = vec![self.on_new_function(keyspace, &create.name.name, &create.arguments, create.or_replace)];
        needs.extend(call(&create.state_function, &taken));
        needs.extend(create.final_function.as_ref().and_then(|last| call(last, state)));
        needs
    }

    /// Each function and aggregate that DROP may mean.
    fn drops_functions(self, drop: &DropFunction) -> Vec<Need> {
        let Some(keyspace) = self.found(&drop.name) else {
            return Vec::new();
        };
        let name = drop.name.name.as_str();
        let only = match &drop.arguments {
            None => None,
            Some(written) => match self.types(&keyspace.name, written) {
                Some(types) => Some(Resource::function(&keyspace.name, name, &types)),
                None => return Vec::new(),
            },
        };
        functions(keyspace, name)
            .filter(|function| only.as_ref().is_none_or(|only| only == function))
            .map(|function| Need::new(Permission::Drop, function))
            .collect()
    }
}

/// The functions and aggregates of a name.
pub fn functions<'k>(keyspace: &'k Keyspace, name: &'k str) -> impl Iterator<Item = Resource> + 'k {
    let of = &keyspace.name;
    let scalars = keyspace.functions.iter().filter(move |function| function.name == name);
    let aggregates = keyspace
        .aggregates
        .iter()
        .filter(move |aggregate| aggregate.name == name);
    scalars
        .map(move |function| Resource::function(of, name, function.argument_types()))
        .chain(aggregates.map(move |aggregate| Resource::function(of, name, &aggregate.arguments)))
}
