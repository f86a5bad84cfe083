//! All virtual tables of a server, and what only the server knows, for the engine that reads them.

use std::sync::OnceLock;

use bytes::Bytes;

use super::live::{Live, PreparedText};
use super::{Sources, define, rows, show_sizes};
use crate::engine::{Engine, Seen, VirtualTables, Wanted};
use helenus_schema::schema::{Schema, Table, system};

/// Returns the state that only the server has; called whenever a view shows it.
pub type LiveSource = Box<dyn Fn() -> Live + Send + Sync>;

/// Returns the prepared statements; called when a table shows them.
pub(super) type PreparedSource = Box<dyn Fn() -> Vec<PreparedText> + Send + Sync>;

/// The virtual tables of a server.
#[derive(Default)]
pub struct Tables {
    live: OnceLock<LiveSource>,
    prepared: OnceLock<PreparedSource>,
}

impl Tables {
    /// Sets the source of the server's own state, such as connected clients. Only the first call counts.
    pub fn set_live_source(&self, source: LiveSource) {
        // A second source would be a second server on one database, which does not happen.
        drop(self.live.set(source));
    }

    /// Sets the source of prepared statements. Only the first call counts.
    pub fn set_prepared_source(&self, source: PreparedSource) {
        drop(self.prepared.set(source));
    }

    fn live(&self) -> Live {
        self.live.get().map(|live| live()).unwrap_or_default()
    }

    /// Builds a view of this moment, as clients of the first node see it.
    pub fn show<T>(&self, engine: &Engine, of: impl FnOnce(Sources<'_>) -> T) -> T {
        let (schema, live) = (engine.schema(), self.live());
        of(Sources {
            schema: &schema,
            node: engine.node(),
            live: &live,
            token: engine.virtual_token(),
            figures: Some(engine.figures()),
        })
    }
}

impl VirtualTables for Tables {
    fn define(&self, schema: &mut Schema) {
        define(schema);
    }

    fn show_sizes(&self, table: &Table) -> bool {
        show_sizes(table)
    }

    fn rows(&self, table: &Table, seen: Seen<'_>, wanted: Wanted<'_>) -> Vec<Vec<Option<Bytes>>> {
        // Drivers read the other keyspaces, which need nothing of the server, much more often.
        let shows_server = matches!(table.keyspace.as_str(), "system_views" | system::COSMOS);
        let mut live = if shows_server { self.live() } else { Live::default() };
        if system::is_prepared_statements(table) {
            live.statements = self.prepared.get().map(|source| source()).unwrap_or_default();
        }
        let sources = Sources {
            schema: seen.schema,
            node: seen.node,
            live: &live,
            token: seen.token,
            figures: Some(seen.figures),
        };
        rows(table, sources, wanted).unwrap_or_default()
    }
}
