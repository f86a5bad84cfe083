//! The permissions that a plan needs. Checked at each execution, so that a REVOKE affects statements prepared before
//! it.

use grammar::ast::{DropKind, Name, QualifiedName, Statement};

use super::refusal::RoleRefusal;
use crate::planner::{Plan, SelectPlan};
use crate::roles::{Permission, Resource, Roles};
use crate::schema::{Schema, Table, system};

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
    /// Columns with masks are masked.
    pub(in crate::cql) masks_columns: bool,
}

impl<'a> Permitted<'a> {
    /// Checks that the role may use this data center.
    pub(in crate::cql) fn data_center(self) -> Result<(), RoleRefusal> {
        let role = self.roles.get(self.role);
        let Some(names) = role.and_then(|role| role.data_centers.as_ref()) else {
            return Ok(());
        };
        if names.contains(self.data_center) || self.roles.is_superuser(self.role) {
            return Ok(());
        }
        Err(RoleRefusal::NoAccess(self.data_center.to_owned()))
    }

    /// Checks that a plan may be executed. Statements about roles check themselves.
    pub(in crate::cql) fn plan(self, plan: &'a Plan) -> Result<(), RoleRefusal> {
        match plan {
            Plan::Select(plan) => {
                self.select(&plan.table)?;
                self.restricts_masked(plan)
            }
            Plan::Modify(plan) => self.modify(&plan.table, plan.is_conditional()),
            Plan::Batch(plan) => {
                let mut members = plan.modifications.iter();
                members.try_for_each(|member| self.modify(&member.table, member.is_conditional()))
            }
            Plan::Truncate(table) => self.modify(table, false),
            Plan::Explain(plan) => self.plan(plan),
            Plan::Ddl(statement) => self.change(statement),
            Plan::Use(_) | Plan::Describe(_) | Plan::Auth(_) => Ok(()),
        }
    }

    /// Whether the role receives masks instead of the values of masked columns in a SELECT. UNMASK on a view is checked on the
    /// view itself, while SELECT is checked on its base table.
    pub(in crate::cql) fn masks(self, plan: &Plan) -> bool {
        match plan {
            Plan::Select(plan) if self.masks_columns && plan.selects_masked() => {
                !self.has(Permission::Unmask, &plan.table)
            }
            _ => false,
        }
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

    /// Checks that a table may be written; a write with a condition also needs to read.
    pub(in crate::cql) fn modify(self, table: &Table, is_conditional: bool) -> Result<(), RoleRefusal> {
        self.on_table(Permission::Modify, table)?;
        if is_conditional {
            self.on_table(Permission::Select, table)?;
        }
        Ok(())
    }

    fn select(self, table: &Table) -> Result<(), RoleRefusal> {
        let is_readable = match table.keyspace.as_str() {
            "system" => READABLE.contains(&table.name.as_str()),
            "system_schema" | "system_virtual_schema" | "system_traces" => true,
            _ => false,
        };
        if is_readable && self.roles.contains(self.role) {
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
            Statement::CreateView(create) => {
                self.on_named(Alter, &create.base_table)?;
                self.on_all_tables(Create, &create.name)
            }
            Statement::AlterView(alter) => self.on_view(&alter.name),
            Statement::CreateType(create) => self.on_all_tables(Create, &create.name),
            Statement::AlterType(alter) => self.on_all_tables(Alter, &alter.name),
            Statement::Drop(drop) => match drop.kind {
                DropKind::Table => self.on_named(Drop, &drop.name),
                DropKind::Type => self.on_all_tables(Drop, &drop.name),
                DropKind::Index => self.on_index(&drop.name),
                DropKind::View => self.on_view(&drop.name),
            },
            Statement::CreateFunction(create) => self.on_functions(Create, &create.name),
            Statement::CreateAggregate(create) => self.on_functions(Create, &create.name),
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

    fn on_functions(self, permission: Permission, name: &'a QualifiedName) -> Result<(), RoleRefusal> {
        match self.keyspace_of(name) {
            None => Ok(()),
            Some(keyspace) => self.needs(permission, Resource::AllFunctionsIn(keyspace.into())),
        }
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
