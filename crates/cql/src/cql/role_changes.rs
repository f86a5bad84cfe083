//! Statements about roles, and what follows a change of the schema: one change of the stored rows at a time.

use std::sync::Arc;

use futures::future::BoxFuture;
use grammar::ast::Statement;

use super::answer::{Answer, AnswerKind, QueryParams, SessionState};
use super::database::{Database, Member};
use super::role_refusal::RoleRefusal;
use super::roles::statements::{Change, Outcome, StatementChecker};
use super::roles::{Doubt, FirstRole, Hashing, RoleOptions, RoleService, functions, store};
use crate::cql::Error;
use helenus_engine::engine::RolesInForce;
use helenus_schema::command::{BatchKind, ChangeKind, ChangeTarget, SchemaChange};
use helenus_schema::roles::{Denied, Resource, Roles, password};
use helenus_schema::schema::{Schema, system};

/// Maximum statements of one batch; a change of more rows needs several batches.
const BATCH_STATEMENTS_MAX: usize = 1000;

impl Database {
    /// Requires roles of clients from now on: reads the stored ones, and creates the superuser of the options if there
    /// are none.
    ///
    /// # Errors
    /// Rows of `system_auth` cannot be read or written.
    pub async fn enable_roles(&self, options: RoleOptions) -> Result<FirstRole, Error> {
        let (name, password) = options.superuser;
        let service = Arc::new(RoleService::new(options.hashing, options.cidr_groups.is_some()));
        let stored = self.stored_roles().await?;
        let schema = self.engine().schema();
        let mut next = stored.without_resources(|resource| is_dropped(&schema, resource));
        let is_first = stored.by_name.is_empty();
        if is_first {
            self.remove_remains().await?;
            next = service.with_superuser(&next, &name, password.clone()).await?;
        }
        if let Some(groups) = options.cidr_groups {
            next.cidr_groups = Arc::new(groups);
        }
        self.store_roles(&stored, &next).await?;
        let is_there = next.contains(&name);
        service.replace(next);
        let first = match service.turn().await {
            Some(turn) if is_there && !is_first => match service.is_right(&name, password.into_bytes(), turn).await {
                true => FirstRole::Right,
                false => FirstRole::OtherPassword,
            },
            _ if is_there => FirstRole::Right,
            _ => FirstRole::Missing,
        };
        self.engine().require_roles(RolesInForce {
            current: Arc::clone(&service.current),
            checks_addresses: service.checks_addresses,
        });
        drop(self.roles.set(service));
        Ok(first)
    }

    /// Sets a role's password and gives it the right to log in and all other rights; creates it if necessary. Returns
    /// whether the role is new. For a server that is not serving, when all passwords are lost.
    ///
    /// # Errors
    /// Rows of `system_auth` cannot be read or written.
    pub async fn set_superuser(&self, name: &str, password: String, hashing: Hashing) -> Result<bool, Error> {
        let service = RoleService::new(hashing, false);
        let stored = self.stored_roles().await?;
        if stored.by_name.is_empty() {
            self.remove_remains().await?;
        }
        let next = service.with_superuser(&stored, name, password).await?;
        self.store_roles(&stored, &next).await?;
        Ok(!stored.contains(name))
    }

    /// The roles, for logins. `None` means no role is required.
    #[must_use]
    pub fn roles(&self) -> Option<&Arc<RoleService>> {
        self.roles.get()
    }

    /// Executes a statement about roles.
    pub(super) async fn change_roles(
        &self,
        session: &SessionState,
        keyspace: Option<&str>,
        statement: &Statement,
    ) -> Result<Answer, Error> {
        let (Some(service), Some(role)) = (self.roles.get(), &session.user) else {
            return Err(RoleRefusal::Denied(Denied::Anonymous).into());
        };
        let mut doubt = service.changing.lock().await;
        self.resolve_roles(service, &mut doubt).await?;
        let roles = service.current.load_full();
        let outcome = {
            let schema = self.engine().schema();
            let checker = StatementChecker {
                roles: &roles,
                role,
                keyspace,
                schema: &schema,
                data_centers: &[self.engine().node().data_center.clone()],
            };
            checker.outcome(statement)?
        };
        match outcome {
            Outcome::Rows(None) => Ok(Answer::new(AnswerKind::Void)),
            Outcome::Rows(Some(list)) => Ok(Answer::new(AnswerKind::Rows(list.into_rows()))),
            Outcome::Change(Change {
                mut next,
                password,
                warning,
            }) => {
                let now = self.engine().clock().monotonic();
                let advice = password.as_ref().and_then(|(_, password)| password::advice(password));
                if let Some((name, password)) = password {
                    if roles.contains(&name) {
                        service.limit_passwords(&name, now)?;
                    }
                    let hash = service.hash(password).await?;
                    next = next.with(&name, |role| role.salted_hash = Some(hash));
                }
                service.record_passwords(&roles, &next, now);
                self.publish_roles(service, &mut doubt, &roles, next).await?;
                let mut answer = Answer::new(AnswerKind::Void);
                answer.warnings.extend(warning);
                answer.warnings.extend(advice);
                Ok(answer)
            }
        }
    }

    /// After a schema change: grants the creator permissions on a new object, and revokes all permissions on a dropped
    /// one.
    pub(super) async fn follow_schema(&self, session: &SessionState, change: &SchemaChange) -> Result<(), Error> {
        let Some(service) = self.roles.get() else {
            return Ok(());
        };
        let mut doubt = service.changing.lock().await;
        self.resolve_roles(service, &mut doubt).await?;
        let roles = service.current.load_full();
        let next = match (change.kind, &session.user) {
            (ChangeKind::Created, Some(creator)) => {
                let mut next = Roles::clone(&roles);
                for resource in created(&self.engine().schema(), change) {
                    next = next.granted(creator, &resource, resource.applicable());
                }
                next
            }
            (ChangeKind::Dropped, _) => {
                let schema = self.engine().schema();
                roles.without_resources(|resource| is_dropped(&schema, resource))
            }
            _ => return Ok(()),
        };
        self.publish_roles(service, &mut doubt, &roles, next).await
    }

    /// Reads the roles again, because a client or an import wrote rows of `system_auth`.
    pub async fn reload_roles(&self) -> Result<(), Error> {
        let Some(service) = self.roles.get() else {
            return Ok(());
        };
        let mut doubt = service.changing.lock().await;
        *doubt = Doubt(true);
        self.resolve_roles(service, &mut doubt).await
    }

    async fn resolve_roles(&self, service: &RoleService, doubt: &mut Doubt) -> Result<(), Error> {
        if doubt.0 {
            service.replace(self.stored_roles().await?);
            *doubt = Doubt(false);
        }
        Ok(())
    }

    async fn publish_roles(
        &self,
        service: &RoleService,
        doubt: &mut Doubt,
        before: &Roles,
        next: Roles,
    ) -> Result<(), Error> {
        *doubt = Doubt(true);
        self.store_roles(before, &next).await?;
        service.replace(next);
        *doubt = Doubt(false);
        Ok(())
    }

    /// Removes what an interrupted restore left of roles that are not there: a new role of such a name would have it.
    async fn remove_remains(&self) -> Result<(), Error> {
        let (session, params) = (SessionState::default(), QueryParams::default());
        for table in store::BESIDE_ROLES {
            let text = format!("SELECT * FROM {}.{table} LIMIT 1", system::AUTH);
            let answer = self.query(&session, &text, &params).await?;
            if matches!(answer.kind, AnswerKind::Rows(rows) if !rows.cells().is_empty()) {
                self.engine().truncate_own(system::AUTH, table).await?;
            }
        }
        Ok(())
    }

    async fn store_roles(&self, before: &Roles, after: &Roles) -> Result<(), Error> {
        let statements = store::statements(before, after);
        let (session, params) = (SessionState::default(), QueryParams::default());
        for some in statements.chunks(BATCH_STATEMENTS_MAX) {
            let members = some.iter().map(|text| (Member::Text(text.clone()), Vec::new()));
            self.batch(&session, BatchKind::Logged, members.collect(), &params)
                .await?;
        }
        Ok(())
    }

    /// Boxed with an explicit type, because a query may lead to a statement about roles, and that back here.
    fn stored_roles(&self) -> BoxFuture<'_, Result<Roles, Error>> {
        Box::pin(async {
            let mut read = [const { Vec::new() }; 6];
            for (query, cells) in store::QUERIES.into_iter().zip(&mut read) {
                let (session, params) = (SessionState::default(), QueryParams::default());
                let answer = self.query(&session, query, &params).await?;
                if let AnswerKind::Rows(rows) = answer.kind {
                    *cells = rows.cells();
                }
            }
            Ok(store::load(read))
        })
    }
}

/// The resources on which a creator is granted permissions.
fn created(schema: &Schema, change: &SchemaChange) -> Vec<Resource> {
    let keyspace = change.keyspace.as_str();
    match change.target {
        ChangeTarget::Keyspace => vec![
            Resource::Keyspace(keyspace.into()),
            Resource::AllFunctionsIn(keyspace.into()),
        ],
        // Cassandra grants nothing on a view to who makes it.
        ChangeTarget::Table
            if schema
                .keyspace(keyspace)
                .is_some_and(|of| of.views.contains_key(&change.name)) =>
        {
            Vec::new()
        }
        ChangeTarget::Table => vec![Resource::table(keyspace, &change.name)],
        ChangeTarget::Function | ChangeTarget::Aggregate => functions::changed(schema, change).into_iter().collect(),
        ChangeTarget::Type => Vec::new(),
    }
}

/// Whether a resource was dropped.
fn is_dropped(schema: &Schema, resource: &Resource) -> bool {
    match resource {
        Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::AllFunctionsIn(keyspace) => {
            !schema.keyspaces.contains_key(keyspace.as_ref())
        }
        Resource::Table(keyspace, table) => schema.table_or_view(keyspace, table).is_none(),
        Resource::Function(signature) => !functions::has_function(schema, signature),
        Resource::AllKeyspaces
        | Resource::AllRoles
        | Resource::Role(_)
        | Resource::AllFunctions
        | Resource::AllMbeans => false,
    }
}
