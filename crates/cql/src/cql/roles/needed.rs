//! The permissions that a plan needs. Checked at each execution, so that a REVOKE affects statements prepared before
//! it.

use std::net::IpAddr;
use std::sync::Arc;

use grammar::ast::{CreateAggregate, CreateFunction, DropFunction, DropKind, Name, QualifiedName, Statement, Type};

use super::refusal::{NoLogin, RoleRefusal};
use helenus_schema::command::SchemaChange;
use helenus_schema::planner::{ModifyPlan, Plan, SelectPlan, ddl};
use helenus_schema::roles::{Permission, Resource, Roles, Signature};
use helenus_schema::schema::{Keyspace, Schema, Table, UserAggregate, UserFunction, system, typename};
use helenus_types::functions::Function;
use helenus_types::types::CqlType;

/// Tables of `system` that every role may read, because drivers and tools do.
const READABLE: [&str; 5] = ["local", "peers", "peers_v2", "size_estimates", "table_estimates"];

/// A role's permissions at one time.
#[derive(Clone, Copy)]
pub(in crate::cql) struct Permitted<'a> {
    pub(in crate::cql) roles: &'a Roles,
    pub(in crate::cql) role: &'a str,
    /// The keyspace of unqualified names.
    pub(in crate::cql) keyspace: Option<&'a str>,
    pub(in crate::cql) schema: &'a Schema,
    /// This server's data center.
    pub(in crate::cql) data_center: &'a str,
    /// The client's address. `None` means that addresses are not checked.
    pub(in crate::cql) address: Option<IpAddr>,
    /// Columns with masks are masked.
    pub(in crate::cql) masks_columns: bool,
}

impl<'a> Permitted<'a> {
    /// Checks that the role may use this data center from the client's address.
    pub(in crate::cql) fn access(self) -> Result<(), RoleRefusal> {
        if !self.roles.allows_data_center(self.role, self.data_center) {
            let refused = NoLogin::DataCenter(self.data_center.to_owned());
            return Err(RoleRefusal::NoAccess(refused));
        }
        match self.address {
            Some(address) if !self.roles.allows_address(self.role, address) => {
                Err(RoleRefusal::NoAccess(NoLogin::Address(address)))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a plan may be executed. Statements about roles check themselves.
    pub(in crate::cql) fn plan(self, plan: &'a Plan) -> Result<(), RoleRefusal> {
        match plan {
            Plan::Select(plan) => {
                self.select(&plan.table)?;
                self.calls(plan.calls())?;
                self.restricts_masked(plan)
            }
            Plan::Modify(plan) => self.modify(plan),
            Plan::Batch(plan) => {
                let mut members = plan.modifications.iter();
                members.try_for_each(|member| self.modify(member))
            }
            Plan::Truncate(table) => self.on_table(Permission::Modify, table),
            Plan::Explain(plan) => self.plan(plan),
            Plan::Ddl(statement) => self.change(statement),
            Plan::Use(_) | Plan::Describe(_) | Plan::Auth(_) => Ok(()),
        }
    }

    /// Whether the role receives masks instead of the values of masked columns: in a SELECT, or from a condition that does not hold.
    /// UNMASK on a view is checked on the view itself, while SELECT is checked on its base table.
    pub(in crate::cql) fn masks(self, plan: &Plan) -> bool {
        match plan {
            Plan::Select(plan) => plan.selects_masked() && self.masks_table(&plan.table),
            Plan::Modify(plan) => self.masks_refusal(plan),
            Plan::Batch(plan) => plan.modifications.iter().any(|member| self.masks_refusal(member)),
            _ => false,
        }
    }

    /// Differs: in Cassandra 5.0.9 the answer of a condition that does not hold has the values, whatever the role may see.
    pub(in crate::cql) fn masks_refusal(self, plan: &ModifyPlan) -> bool {
        plan.returns_masked() && self.masks_table(&plan.table)
    }

    fn masks_table(self, table: &Table) -> bool {
        self.masks_columns && !self.has(Permission::Unmask, table)
    }

    /// Checks that the role may restrict masked columns. Otherwise a client could guess their values.
    fn restricts_masked(self, plan: &SelectPlan) -> Result<(), RoleRefusal> {
        let columns = plan.masked_restricted();
        let table = &plan.table;
        let may = || self.has(Permission::Unmask, table) || self.has(Permission::SelectMasked, table);
        if !self.masks_columns || columns.is_empty() || may() {
            return Ok(());
        }
        Err(RoleRefusal::RestrictsMasked {
            role: self.role.to_owned(),
            table: format!("{}.{}", table.keyspace, table.name),
            columns: columns.to_vec(),
        })
    }

    fn has(self, permission: Permission, table: &Table) -> bool {
        let resource = Resource::table(&table.keyspace, &table.name);
        self.roles.is_superuser(self.role) || self.roles.allows(self.role, permission, &resource)
    }

    /// Checks that a table may be written and that the functions may be called; a write with a condition also needs to
    /// read.
    pub(in crate::cql) fn modify(self, plan: &ModifyPlan) -> Result<(), RoleRefusal> {
        self.on_table(Permission::Modify, &plan.table)?;
        if plan.is_conditional() {
            self.on_table(Permission::Select, &plan.table)?;
        }
        // The rows of views derive from those of the base, which are read first.
        let keyspace = self.schema.keyspace(&plan.table.keyspace);
        let mut views = keyspace
            .into_iter()
            .flat_map(|keyspace| keyspace.views_of(&plan.table.name))
            .peekable();
        if views.peek().is_some() {
            self.on_table(Permission::Select, &plan.table)?;
        }
        views.try_for_each(|view| self.on_table(Permission::Modify, &view.table))?;
        self.calls(plan.calls())
    }

    /// Checks that user-defined functions may be called. An aggregate needs the permission on its state function and its
    /// final function as well.
    fn calls(self, functions: &[Function]) -> Result<(), RoleRefusal> {
        functions.iter().try_for_each(|function| {
            let (keyspace, name) = (function.keyspace(), function.name());
            self.needs(
                Permission::Execute,
                Resource::function(keyspace, name, function.argument_types()),
            )
        })
    }

    fn select(self, table: &Table) -> Result<(), RoleRefusal> {
        let is_readable = match table.keyspace.as_str() {
            "system" => READABLE.contains(&table.name.as_str()),
            "system_schema" | "system_virtual_schema" | "system_traces" => true,
            _ => false,
        };
        if is_readable {
            return Ok(());
        }
        self.on_table(Permission::Select, self.base_of(table))
    }

    /// The base table of a view; any other table itself.
    fn base_of<'t>(self, table: &'t Table) -> &'t Table
    where
        'a: 't,
    {
        let base = self.schema.keyspace(&table.keyspace).and_then(|keyspace| {
            let view = keyspace.views.get(&table.name)?;
            keyspace.tables.get(&view.base_table)
        });
        base.map_or(table, |base| base)
    }

    /// Checks the base table of a named view. The lookup of the view refuses a missing one.
    fn on_view(self, name: &'a QualifiedName) -> Result<(), RoleRefusal> {
        let keyspace = self.keyspace_of(name);
        let Some(keyspace) = keyspace.and_then(|keyspace| self.schema.keyspace(keyspace)) else {
            return Ok(());
        };
        let view = keyspace.views.get(name.name.as_str());
        let base = view.and_then(|view| keyspace.tables.get(&view.base_table));
        base.map_or(Ok(()), |base| self.on_table(Permission::Alter, base))
    }

    fn on_table(self, permission: Permission, table: &Table) -> Result<(), RoleRefusal> {
        if self.roles.is_superuser(self.role) {
            return Ok(());
        }
        self.needs(permission, Resource::table(&table.keyspace, &table.name))
    }

    fn needs(self, permission: Permission, resource: Resource) -> Result<(), RoleRefusal> {
        if self.roles.allows(self.role, permission, &resource) {
            return Ok(());
        }
        Err(RoleRefusal::Lacks(self.role.to_owned(), permission, resource))
    }

    /// Checks a schema change. The planner refuses changes that no role may make.
    fn change(self, statement: &'a Statement) -> Result<(), RoleRefusal> {
        use Permission::{Alter, Create, Drop};
        match statement {
            Statement::CreateKeyspace(_) => self.needs(Create, Resource::AllKeyspaces),
            Statement::AlterKeyspace(alter) => self.needs(Alter, Resource::Keyspace(alter.name.as_str().into())),
            Statement::DropKeyspace(drop) if system::is_name(drop.name.as_str()) => Ok(()),
            Statement::DropKeyspace(drop) => self.needs(Drop, Resource::Keyspace(drop.name.as_str().into())),
            Statement::CreateTable(create) => self.on_all_tables(Create, &create.table),
            Statement::AlterTable(alter) => self.on_named(Alter, &alter.table),
            Statement::CreateIndex(create) => self.on_named(Alter, &create.table),
            Statement::CreateView(create) => self.on_named(Alter, &create.base_table),
            Statement::AlterView(alter) => self.on_view(&alter.name),
            Statement::CreateType(create) => self.on_all_tables(Create, &create.name),
            Statement::AlterType(alter) => self.on_all_tables(Alter, &alter.name),
            Statement::Drop(drop) => match drop.kind {
                DropKind::Table => self.on_named(Drop, &drop.name),
                DropKind::Type => self.on_all_tables(Drop, &drop.name),
                DropKind::Index => self.on_index(&drop.name),
                DropKind::View => self.on_view(&drop.name),
            },
            Statement::CreateFunction(create) => self.creates_function(create),
            Statement::CreateAggregate(create) => self.creates_aggregate(create),
            Statement::DropFunction(drop) => self.drops_functions(drop),
            Statement::CreateTrigger(create) => self.on_named(Alter, &create.table),
            Statement::DropTrigger(drop) => self.on_named(Alter, &drop.table),
            // The planner makes no plan of this kind from any other statement.
            _ => Ok(()),
        }
    }

    /// The keyspace of a name. `None` means no permission is needed: it is unknown, or no role may change it.
    fn keyspace_of(self, name: &'a QualifiedName) -> Option<&'a str> {
        let keyspace = name.keyspace.as_ref().map(Name::as_str).or(self.keyspace);
        keyspace.filter(|keyspace| !system::is_name(keyspace))
    }

    fn on_all_tables(self, permission: Permission, name: &'a QualifiedName) -> Result<(), RoleRefusal> {
        match self.keyspace_of(name) {
            None => Ok(()),
            Some(keyspace) => self.needs(permission, Resource::AllTables(keyspace.into())),
        }
    }

    /// The types of a function's arguments. `None` means that the planner refuses one of them.
    fn types(self, keyspace: &str, written: &[Type]) -> Option<Vec<CqlType>> {
        ddl::argument_types(self.schema, keyspace, written).ok()
    }

    /// Checks that a function may be made: CREATE in the keyspace, or ALTER on the one that is replaced.
    fn on_new_function(
        self,
        keyspace: &str,
        name: &str,
        arguments: &[Type],
        replaces: bool,
    ) -> Result<(), RoleRefusal> {
        let of_name = self
            .types(keyspace, arguments)
            .map(|types| Resource::function(keyspace, name, &types));
        let found = self.schema.keyspace(keyspace);
        let mut existing = found.into_iter().flat_map(|found| functions(found, name));
        match of_name.filter(|_| replaces) {
            Some(replaced) if existing.any(|other| other == replaced) => self.needs(Permission::Alter, replaced),
            _ => self.needs(Permission::Create, Resource::AllFunctionsIn(keyspace.into())),
        }
    }

    fn creates_function(self, create: &'a CreateFunction) -> Result<(), RoleRefusal> {
        let Some(keyspace) = self.keyspace_of(&create.name) else {
            return Ok(());
        };
        let arguments: Vec<Type> = create.arguments.iter().map(|(_, ty)| ty.clone()).collect();
        self.on_new_function(keyspace, create.name.name.as_str(), &arguments, create.or_replace)
    }

    /// Checks that an aggregate may be made, and that its functions may be called. They are looked up afterwards, as in
    /// Cassandra.
    fn creates_aggregate(self, create: &'a CreateAggregate) -> Result<(), RoleRefusal> {
        let Some(keyspace) = self.keyspace_of(&create.name) else {
            return Ok(());
        };
        self.on_new_function(
            keyspace,
            create.name.name.as_str(),
            &create.arguments,
            create.or_replace,
        )?;
        let state = std::slice::from_ref(&create.state_type);
        let taken: Vec<Type> = state.iter().chain(&create.arguments).cloned().collect();
        let may_call = |function: &Name, arguments: &[Type]| match self.types(keyspace, arguments) {
            Some(types) => {
                let function = Resource::function(keyspace, function.as_str(), &types);
                self.needs(Permission::Execute, function)
            }
            None => Ok(()),
        };
        may_call(&create.state_function, &taken)?;
        let last = create.final_function.as_ref();
        last.map_or(Ok(()), |last| may_call(last, state))
    }

    /// Checks each function and aggregate that DROP may mean. A missing one is refused at its look-up.
    fn drops_functions(self, drop: &'a DropFunction) -> Result<(), RoleRefusal> {
        let keyspace = self.keyspace_of(&drop.name);
        let Some(keyspace) = keyspace.and_then(|keyspace| self.schema.keyspace(keyspace)) else {
            return Ok(());
        };
        let name = drop.name.name.as_str();
        let only = match &drop.arguments {
            None => None,
            Some(written) => match self.types(&keyspace.name, written) {
                Some(types) => Some(Resource::function(&keyspace.name, name, &types)),
                None => return Ok(()),
            },
        };
        functions(keyspace, name)
            .filter(|function| only.as_ref().is_none_or(|only| only == function))
            .try_for_each(|function| self.needs(Permission::Drop, function))
    }

    fn on_named(self, permission: Permission, name: &'a QualifiedName) -> Result<(), RoleRefusal> {
        match self.keyspace_of(name) {
            None => Ok(()),
            Some(keyspace) => self.needs(permission, Resource::table(keyspace, name.name.as_str())),
        }
    }

    /// Checks the table of an index. The lookup of the index refuses a missing one.
    fn on_index(self, name: &'a QualifiedName) -> Result<(), RoleRefusal> {
        let Some(keyspace) = self
            .keyspace_of(name)
            .and_then(|keyspace| self.schema.keyspace(keyspace))
        else {
            return Ok(());
        };
        let mut tables = keyspace.tables.values();
        let table = tables.find(|table| table.indexes.contains_key(name.name.as_str()));
        table.map_or(Ok(()), |table| self.on_table(Permission::Alter, table))
    }
}

/// The functions and aggregates of a name.
fn functions<'k>(keyspace: &'k Keyspace, name: &'k str) -> impl Iterator<Item = Resource> + 'k {
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

/// Whether there is a function or an aggregate of this signature.
pub(super) fn has_function(schema: &Schema, signature: &Signature) -> bool {
    let keyspace = schema.keyspace(&signature.keyspace);
    keyspace.is_some_and(|keyspace| {
        functions(keyspace, &signature.name)
            .any(|function| matches!(function, Resource::Function(of) if *of == *signature))
    })
}

/// The function or aggregate that was made. `None` means that it is gone already.
pub(super) fn changed(schema: &Schema, change: &SchemaChange) -> Option<Resource> {
    let keyspace = schema.keyspace(&change.keyspace)?;
    let is_changed = |name: &str, types: &mut dyn Iterator<Item = &CqlType>| {
        name == change.name && types.map(typename::written_name).eq(change.arguments.iter().cloned())
    };
    let scalar = |function: &&Arc<UserFunction>| is_changed(&function.name, &mut function.argument_types());
    let aggregate = |aggregate: &&Arc<UserAggregate>| is_changed(&aggregate.name, &mut aggregate.arguments.iter());
    let of = |types: Vec<&CqlType>| Resource::function(&keyspace.name, &change.name, types);
    let found = keyspace
        .functions
        .iter()
        .find(scalar)
        .map(|function| of(function.argument_types().collect()));
    found.or_else(|| {
        let found = keyspace.aggregates.iter().find(aggregate)?;
        Some(of(found.arguments.iter().collect()))
    })
}
