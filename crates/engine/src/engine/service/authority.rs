//! The roles in force, and whether a request has the permissions that it needs.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::super::action::{Action, Permitted};
use super::Engine;
use crate::engine::terms::request::Request;
use helenus_schema::roles::{Denied, Roles};
use helenus_schema::schema::Table;

/// The roles that clients need.
#[derive(Debug)]
pub struct RolesInForce {
    /// The roles as of the last change. Whoever stores roles replaces them.
    pub current: Arc<ArcSwap<Roles>>,
    /// Whether clients' addresses are checked at each request.
    pub checks_addresses: bool,
}

/// Whether roles are required, and which there are.
#[derive(Debug, Default)]
pub(in crate::engine) struct Authority {
    /// Empty means that clients need no role.
    roles: OnceLock<RolesInForce>,
}

impl Authority {
    /// `None` means that clients need no role.
    pub(in crate::engine) fn roles(&self) -> Option<&RolesInForce> {
        self.roles.get()
    }
}

impl Engine {
    /// Requires roles of clients from now on. Only the first call counts.
    pub fn require_roles(&self, roles: RolesInForce) {
        drop(self.authority.roles.set(roles));
    }

    /// Checks that a request may do this.
    pub(super) fn check_permission(&self, request: &Request<'_>, action: Action<'_>) -> Result<(), Denied> {
        let Some(in_force) = self.authority.roles() else {
            return Ok(());
        };
        if request.terms.user.is_none() {
            // The server's own requests have no client address.
            return match request.terms.client {
                None => Ok(()),
                Some(_) => Err(Denied::Anonymous),
            };
        }
        let roles = in_force.current.load();
        self.permitted(request, in_force, &roles)
            .map_or(Ok(()), |permitted| permitted.check(action))
    }

    /// Whether a request receives masks instead of the values of masked columns.
    pub(super) fn masks(&self, request: &Request<'_>, table: &Table) -> bool {
        self.authority.roles().is_some_and(|in_force| {
            let roles = in_force.current.load();
            self.permitted(request, in_force, &roles)
                .is_some_and(|permitted| permitted.masks(table))
        })
    }

    /// The permissions of a request's role. `None` means that it has no role.
    fn permitted<'a>(
        &'a self,
        request: &'a Request<'_>,
        in_force: &RolesInForce,
        roles: &'a Roles,
    ) -> Option<Permitted<'a>> {
        let client = request.terms.client.filter(|_| in_force.checks_addresses);
        Some(Permitted {
            roles,
            role: request.terms.user?,
            schema: request.schema(),
            data_center: &self.node().data_center,
            address: client.map(std::net::SocketAddr::ip),
            masks_columns: self.guardrails.switches.data_masking,
        })
    }
}
