//! Statements about roles: the outcome of each, given the roles at one time. Pure: nothing is stored and nothing is
//! hashed here.
//!
//! As in Cassandra a statement is authorized first, then validated, then executed.

use std::collections::BTreeSet;

use grammar::ast::{self, RoleOption, Statement, UserPassword};

use super::super::role_refusal::RoleRefusal;
use super::functions as user_functions;
use super::list::{self, List};
use helenus_schema::planner::ddl;
use helenus_schema::roles::{CidrGroups, Permission, Permissions, Resource, Role, RoleName, Roles, password};
use helenus_schema::schema::Schema;
use helenus_types::functions;

/// The context in which a statement is checked.
pub(in crate::cql) struct StatementChecker<'a> {
    pub(in crate::cql) roles: &'a Roles,
    /// The session's role.
    pub(in crate::cql) role: &'a str,
    /// The keyspace of unqualified tables.
    pub(in crate::cql) keyspace: Option<&'a str>,
    pub(in crate::cql) schema: &'a Schema,
    /// The existing data centers.
    pub(in crate::cql) data_centers: &'a [String],
}

/// The outcome of a statement.
#[derive(Debug)]
pub(in crate::cql) enum Outcome {
    /// The roles are changed.
    Change(Change),
    /// Rows. `None` means an answer without rows or columns.
    Rows(Option<List>),
}

/// The roles after a change.
#[derive(Debug)]
pub(in crate::cql) struct Change {
    pub(in crate::cql) next: Roles,
    /// A password to hash, and its role.
    pub(in crate::cql) password: Option<(RoleName, String)>,
    /// A warning to the client.
    pub(in crate::cql) warning: Option<String>,
}

impl From<Roles> for Outcome {
    fn from(next: Roles) -> Self {
        Self::Change(Change {
            next,
            password: None,
            warning: None,
        })
    }
}

/// The options of CREATE and ALTER of roles and users.
#[derive(Default)]
struct Options<'s> {
    password: Option<&'s str>,
    hash: Option<&'s str>,
    login: Option<bool>,
    superuser: Option<bool>,
    has_options: bool,
    /// `Some(None)` means all.
    data_centers: Option<Option<&'s [String]>>,
    cidrs: Option<Option<&'s [String]>>,
}

impl<'s> Options<'s> {
    fn of_role(options: &'s [RoleOption]) -> Self {
        let mut of = Self::default();
        for option in options {
            match option {
                RoleOption::Password(text) => of.password = Some(text),
                RoleOption::HashedPassword(text) => of.hash = Some(text),
                RoleOption::Options(_) => of.has_options = true,
                RoleOption::Superuser(is) => of.superuser = Some(*is),
                RoleOption::Login(is) => of.login = Some(*is),
                RoleOption::AllDatacenters => of.data_centers = Some(None),
                RoleOption::Datacenters(names) => of.data_centers = Some(Some(names)),
                RoleOption::AllCidrs => of.cidrs = Some(None),
                RoleOption::Cidrs(groups) => of.cidrs = Some(Some(groups)),
            }
        }
        of
    }

    fn of_user(password: Option<&'s UserPassword>, superuser: Option<bool>) -> Self {
        let mut of = Self {
            superuser,
            ..Self::default()
        };
        match password {
            Some(UserPassword::Plain(text)) => of.password = Some(text),
            Some(UserPassword::Hashed(text)) => of.hash = Some(text),
            None => {}
        }
        of
    }

    const fn is_empty(&self) -> bool {
        self.password.is_none()
            && self.hash.is_none()
            && self.login.is_none()
            && self.superuser.is_none()
            && !self.has_options
            && self.data_centers.is_none()
            && self.cidrs.is_none()
    }

    /// The first option that a role may not change for itself.
    fn of_others(&self) -> Option<&'static str> {
        if self.login.is_some() {
            return Some("LOGIN");
        }
        self.has_options.then_some("OPTIONS")
    }

    fn validate(&self, data_centers: &[String], groups: &CidrGroups) -> Result<(), RoleRefusal> {
        if self.has_options {
            return Err(RoleRefusal::Options);
        }
        if let Some(hash) = self.hash {
            let cost = password::cost_of(hash).ok_or(RoleRefusal::Hash)?;
            if !password::COSTS.contains(&cost) {
                return Err(RoleRefusal::HashCost);
            }
        }
        if let Some(Some(names)) = self.data_centers {
            let unknown = names.iter().filter(|name| !data_centers.contains(name));
            let unknown: Vec<String> = unknown.cloned().collect();
            if !unknown.is_empty() {
                return Err(RoleRefusal::DataCenters(unknown));
            }
        }
        match self.cidrs {
            Some(Some(names)) if names.iter().any(|name| !groups.contains(name)) => {
                let names: BTreeSet<&String> = names.iter().collect();
                Err(RoleRefusal::CidrGroups(
                    names.into_iter().cloned().collect(),
                    groups.ranges().keys().cloned().collect(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Sets them in a role, except for a password that is not hashed yet.
    fn set(&self, role: &mut Role) {
        role.is_superuser = self.superuser.unwrap_or(role.is_superuser);
        role.can_login = self.login.unwrap_or(role.can_login);
        if let Some(hash) = self.hash {
            role.salted_hash = Some(hash.to_owned());
        }
        if let Some(names) = self.data_centers {
            role.data_centers = names.map(|names| names.iter().cloned().collect::<BTreeSet<String>>());
        }
        if let Some(names) = self.cidrs {
            role.cidr_groups = Some(names.unwrap_or_default().iter().cloned().collect());
        }
    }

    fn change(&self, roles: &Roles, name: &str) -> Change {
        Change {
            next: roles.with(name, |role| self.set(role)),
            password: self.password.map(|text| (name.into(), text.to_owned())),
            warning: None,
        }
    }
}

impl StatementChecker<'_> {
    /// The outcome of a statement.
    pub(in crate::cql) fn outcome(&self, statement: &Statement) -> Result<Outcome, RoleRefusal> {
        match statement {
            Statement::CreateRole(create) => {
                let options = Options::of_role(&create.options);
                self.create(create.name.as_str(), create.if_not_exists, &options)
            }
            Statement::CreateUser(create) => {
                let superuser = Some(create.superuser.unwrap_or(false));
                let mut options = Options::of_user(create.password.as_ref(), superuser);
                options.login = Some(true);
                self.create(create.name.as_str(), create.if_not_exists, &options)
            }
            Statement::AlterRole(alter) => {
                let options = Options::of_role(&alter.options);
                self.alter(alter.name.as_str(), alter.if_exists, &options)
            }
            Statement::AlterUser(alter) => {
                let options = Options::of_user(alter.password.as_ref(), alter.superuser);
                self.alter(alter.name.as_str(), alter.if_exists, &options)
            }
            Statement::DropRole(drop) => self.drop(drop.name.as_str(), drop.if_exists),
            Statement::GrantRole(grant) => self.grant_role(grant),
            Statement::Grant(grant) => self.grant(grant),
            Statement::AddIdentity(add) => self.add_identity(add),
            Statement::DropIdentity(drop) => self.drop_identity(drop),
            Statement::ListRoles(of) => {
                let of_role = of.of.as_ref().map(ast::Name::as_str);
                let names = self.listed_roles(of_role, !of.no_recursive)?;
                Ok(Outcome::Rows(Some(list::roles(self.roles, &names))))
            }
            Statement::ListUsers => {
                let names = self.listed_roles(None, true)?;
                Ok(Outcome::Rows(Some(list::users(self.roles, &names))))
            }
            Statement::ListPermissions(of) => self.list_permissions(of),
            // The planner passes no other statement.
            _ => Ok(Outcome::Rows(None)),
        }
    }

    fn unchanged(&self) -> Outcome {
        self.roles.clone().into()
    }

    fn is_superuser(&self) -> bool {
        self.roles.is_superuser(self.role)
    }

    fn needs(&self, permission: Permission, resource: &Resource) -> Result<(), RoleRefusal> {
        Ok(self.roles.check(self.role, permission, resource.clone())?)
    }

    /// Checks a permission on a role; the message differs from that for other resources.
    fn needs_on_role(&self, permission: Permission, role: &Resource) -> Result<(), RoleRefusal> {
        let needed = self.needs(permission, role);
        needed.map_err(|_| RoleRefusal::NotPrivileged(self.role.to_owned()))
    }

    fn create(&self, name: &str, if_not_exists: bool, options: &Options<'_>) -> Result<Outcome, RoleRefusal> {
        self.needs_on_role(Permission::Create, &Resource::AllRoles)?;
        if options.superuser == Some(true) && !self.is_superuser() {
            return Err(RoleRefusal::CreatesSuperuser);
        }
        options.validate(self.data_centers, &self.roles.cidr_groups)?;
        if name.is_empty() {
            return Err(RoleRefusal::EmptyName);
        }
        if self.roles.contains(name) {
            if if_not_exists {
                return Ok(self.unchanged());
            }
            return Err(RoleRefusal::Exists(name.to_owned()));
        }
        let mut change = options.change(self.roles, name);
        // As in Cassandra, CREATE stores that all addresses are allowed.
        change.next = change.next.with(name, |role| {
            role.cidr_groups.get_or_insert_default();
        });
        let of_role = Resource::Role(name.into());
        change.next = change.next.granted(self.role, &of_role, of_role.applicable());
        Ok(Outcome::Change(change))
    }

    fn alter(&self, name: &str, if_exists: bool, options: &Options<'_>) -> Result<Outcome, RoleRefusal> {
        self.authorize_alter(name, options)?;
        options.validate(self.data_centers, &self.roles.cidr_groups)?;
        if options.is_empty() {
            return Err(RoleRefusal::EmptyAlter);
        }
        if !self.roles.contains(name) {
            if if_exists {
                return Ok(self.unchanged());
            }
            return Err(RoleRefusal::MissingRole(name.to_owned()));
        }
        Ok(Outcome::Change(options.change(self.roles, name)))
    }

    fn authorize_alter(&self, name: &str, options: &Options<'_>) -> Result<(), RoleRefusal> {
        let is_superuser = self.is_superuser();
        if options.superuser.is_some() {
            if self.roles.closure(self.role).keys().any(|role| role.as_ref() == name) {
                return Err(RoleRefusal::OwnSuperuser);
            }
            if !is_superuser {
                return Err(RoleRefusal::AltersSuperuser);
            }
        }
        if is_superuser {
            return Ok(());
        }
        if options.data_centers.is_some() {
            return Err(RoleRefusal::AltersDataCenters);
        }
        if options.cidrs.is_some() {
            return Err(RoleRefusal::AltersCidrs);
        }
        if name != self.role {
            return self.needs_on_role(Permission::Alter, &Resource::Role(name.into()));
        }
        options
            .of_others()
            .map_or(Ok(()), |option| Err(RoleRefusal::AltersOwn(option)))
    }

    fn drop(&self, name: &str, if_exists: bool) -> Result<Outcome, RoleRefusal> {
        self.needs_on_role(Permission::Drop, &Resource::Role(name.into()))?;
        if self.roles.is_superuser(name) && !self.is_superuser() {
            return Err(RoleRefusal::DropsSuperuser);
        }
        if !self.roles.contains(name) {
            if if_exists {
                return Ok(self.unchanged());
            }
            return Err(RoleRefusal::Missing(name.to_owned()));
        }
        if name == self.role {
            return Err(RoleRefusal::DropsItself);
        }
        Ok(self.roles.without(name).into())
    }

    fn grant_role(&self, grant: &ast::GrantRole) -> Result<Outcome, RoleRefusal> {
        let (role, grantee) = (grant.role.as_str(), grant.grantee.as_str());
        self.needs_on_role(Permission::Authorize, &Resource::Role(role.into()))?;
        for name in [role, grantee] {
            if !self.roles.contains(name) {
                return Err(RoleRefusal::Missing(name.to_owned()));
            }
        }
        if grant.revoke {
            // Cassandra counts a role among those that it is a member of.
            let is_member = role == grantee
                || self
                    .roles
                    .get(grantee)
                    .is_some_and(|member| member.member_of.contains(role));
            if !is_member {
                return Err(RoleRefusal::NoMember(grantee.to_owned(), role.to_owned()));
            }
            let next = self.roles.with(grantee, |member| {
                member.member_of.remove(role);
            });
            return Ok(next.into());
        }
        for (member, of) in [(grantee, role), (role, grantee)] {
            if self.roles.closure(member).keys().any(|name| name.as_ref() == of) {
                return Err(RoleRefusal::Member(member.to_owned(), of.to_owned()));
            }
        }
        let next = self.roles.with(grantee, |member| {
            member.member_of.insert(role.into());
        });
        Ok(next.into())
    }

    fn grant(&self, grant: &ast::Grant) -> Result<Outcome, RoleRefusal> {
        let resource = self.resource(&grant.resource)?;
        let permissions_named = requested(grant.permissions.as_deref());
        let permissions = permissions_named.intersection(resource.of.applicable());
        if permissions.is_empty() {
            return Err(RoleRefusal::NotApplicable(resource.of));
        }
        self.needs(Permission::Authorize, &resource.of)?;
        for permission in permissions.iter() {
            self.needs(permission, &resource.of)?;
        }
        let role = grant.role.as_str();
        if !self.roles.contains(role) {
            return Err(RoleRefusal::MissingRole(role.to_owned()));
        }
        if let Some(missing) = resource.missing {
            return Err(RoleRefusal::MissingResource(missing));
        }
        if !grant.revoke && !permissions.without(resource.of.grantable()).is_empty() {
            return Err(RoleRefusal::OnSystem);
        }
        let there = self
            .roles
            .get(role)
            .and_then(|role| role.grants.get(&resource.of))
            .copied()
            .unwrap_or_default();
        let (next, unchanged, verb) = if grant.revoke {
            let next = self.roles.revoked(role, &resource.of, permissions);
            (next, permissions.without(there), "was not granted")
        } else {
            let next = self.roles.granted(role, &resource.of, permissions);
            (next, permissions.intersection(there), "was already granted")
        };
        let names: Vec<&str> = unchanged.iter().map(Permission::name).collect();
        let warning =
            (!names.is_empty()).then(|| format!("Role '{role}' {verb} {} on {}", names.join(", "), resource.of));
        Ok(Outcome::Change(Change {
            next,
            password: None,
            warning,
        }))
    }

    fn add_identity(&self, add: &ast::AddIdentity) -> Result<Outcome, RoleRefusal> {
        self.needs_on_role(Permission::Create, &Resource::Role(self.role.into()))?;
        if !self.roles.contains(&add.role) {
            return Err(RoleRefusal::IdentityRole(add.role.clone()));
        }
        if self.roles.identities.contains_key(&add.identity) {
            if add.if_not_exists {
                return Ok(self.unchanged());
            }
            return Err(RoleRefusal::IdentityExists(add.identity.clone()));
        }
        let mut next = self.roles.clone();
        next.identities.insert(add.identity.clone(), add.role.as_str().into());
        Ok(next.into())
    }

    fn drop_identity(&self, drop: &ast::DropIdentity) -> Result<Outcome, RoleRefusal> {
        self.needs_on_role(Permission::Drop, &Resource::Role(self.role.into()))?;
        let mut next = self.roles.clone();
        if next.identities.remove(&drop.identity).is_none() && !drop.if_exists {
            return Err(RoleRefusal::IdentityMissing(drop.identity.clone()));
        }
        Ok(next.into())
    }

    /// The roles that LIST ROLES and LIST USERS show.
    fn listed_roles(&self, of: Option<&str>, recursive: bool) -> Result<Vec<RoleName>, RoleRefusal> {
        if let Some(of) = of.filter(|of| !self.roles.contains(of)) {
            return Err(RoleRefusal::MissingListed(Resource::Role(of.into())));
        }
        let granted_to = |role: &str| -> Vec<RoleName> {
            let roles = if recursive {
                self.roles.closure(role)
            } else {
                self.roles.direct(role)
            };
            roles.into_keys().cloned().collect()
        };
        let sees_all = self.roles.allows(self.role, Permission::Describe, &Resource::AllRoles);
        match of {
            None if sees_all => Ok(self.roles.by_name.keys().cloned().collect()),
            None => Ok(granted_to(self.role)),
            Some(of) if sees_all || self.roles.closure(self.role).keys().any(|role| role.as_ref() == of) => {
                Ok(granted_to(of))
            }
            Some(of) => Err(RoleRefusal::ListsRoles(of.to_owned())),
        }
    }

    fn list_permissions(&self, of: &ast::ListPermissions) -> Result<Outcome, RoleRefusal> {
        let resource = match &of.resource {
            None => None,
            Some(resource) => {
                let resource = self.resource(resource)?;
                if resource.missing.is_some() {
                    return Err(RoleRefusal::MissingListed(resource.of));
                }
                Some(resource.of)
            }
        };
        let role = of.of.as_ref().map(ast::Name::as_str);
        if let Some(missing) = role.filter(|role| !self.roles.contains(role)) {
            return Err(RoleRefusal::MissingListed(Resource::Role(missing.into())));
        }
        let own = self.roles.closure(self.role);
        let is_own = role.is_some_and(|role| own.keys().any(|name| name.as_ref() == role));
        let seen = role.map_or(Resource::AllRoles, |role| Resource::Role(role.into()));
        if !is_own && !self.roles.allows(self.role, Permission::Describe, &seen) {
            return Err(RoleRefusal::ListsPermissions(role.map(str::to_owned)));
        }
        let on = resource.map(|resource| match of.no_recursive {
            true => vec![resource],
            false => resource.chain().collect(),
        });
        let permissions_named = requested(of.permissions.as_deref());
        let listed = list::permissions(self.roles, role, permissions_named, on.as_deref());
        Ok(Outcome::Rows(listed))
    }

    /// The resource that a statement names.
    fn resource(&self, named: &ast::Resource) -> Result<Named, RoleRefusal> {
        let of = match named {
            ast::Resource::AllKeyspaces => Resource::AllKeyspaces,
            ast::Resource::Keyspace(keyspace) => Resource::Keyspace(keyspace.as_str().into()),
            ast::Resource::AllTables(keyspace) => Resource::AllTables(keyspace.as_str().into()),
            ast::Resource::Table(table) => {
                let keyspace = table.keyspace.as_ref().map(ast::Name::as_str).or(self.keyspace);
                Resource::table(keyspace.ok_or(RoleRefusal::NoKeyspace)?, table.name.as_str())
            }
            ast::Resource::AllRoles => Resource::AllRoles,
            ast::Resource::Role(role) => Resource::Role(role.as_str().into()),
            ast::Resource::AllFunctions => Resource::AllFunctions,
            ast::Resource::AllFunctionsIn(keyspace) => Resource::AllFunctionsIn(keyspace.as_str().into()),
            ast::Resource::AllMbeans => Resource::AllMbeans,
            ast::Resource::Function { name, arguments } => {
                let keyspace = name.keyspace.as_ref().map(ast::Name::as_str);
                let keyspace = keyspace.ok_or(RoleRefusal::NoKeyspaceOfFunction)?;
                if keyspace == functions::KEYSPACE {
                    return Err(RoleRefusal::BuiltIn);
                }
                let types = ddl::argument_types(self.schema, keyspace, arguments);
                let types = types.map_err(|error| RoleRefusal::Arguments(Box::new(error)))?;
                Resource::function(keyspace, name.name.as_str(), &types)
            }
            // There are no MBeans.
            ast::Resource::Mbean(name) | ast::Resource::Mbeans(name) => {
                return Ok(Named {
                    of: Resource::AllMbeans,
                    missing: Some(format!("<mbean {name}>")),
                });
            }
        };
        let is_there = match &of {
            Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::AllFunctionsIn(keyspace) => {
                self.schema.keyspaces.contains_key(keyspace.as_ref())
            }
            Resource::Table(keyspace, table) => self.schema.table_or_view(keyspace, table).is_some(),
            Resource::Role(role) => self.roles.contains(role),
            Resource::Function(signature) => user_functions::has_function(self.schema, signature),
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMbeans => true,
        };
        let missing = (!is_there).then(|| of.to_string());
        Ok(Named { of, missing })
    }
}

/// A resource that a statement names.
struct Named {
    of: Resource,
    /// The missing object, as messages name it.
    missing: Option<String>,
}

/// The permissions that a statement names. `None` means all.
fn requested(named: Option<&[ast::Permission]>) -> Permissions {
    let Some(named) = named else {
        return Permissions::of(&Permission::ALL);
    };
    let each: Vec<Permission> = named
        .iter()
        .map(|permission| match permission {
            ast::Permission::Create => Permission::Create,
            ast::Permission::Alter => Permission::Alter,
            ast::Permission::Drop => Permission::Drop,
            ast::Permission::Select => Permission::Select,
            ast::Permission::Modify => Permission::Modify,
            ast::Permission::Authorize => Permission::Authorize,
            ast::Permission::Describe => Permission::Describe,
            ast::Permission::Execute => Permission::Execute,
            ast::Permission::Unmask => Permission::Unmask,
            ast::Permission::SelectMasked => Permission::SelectMasked,
        })
        .collect();
    Permissions::of(&each)
}
