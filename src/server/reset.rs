//! Resets a server that keeps nothing to its state at the start, for tests: in milliseconds, without a restart and with
//! its connections.
//!
//! ```text
//! keep nothing   keyspaces are dropped (clients get events)      faults end   budgets are full   wall time is the machine's
//! keep schema    tables are emptied, prepared statements stay   the same
//! ```
//! Counters of the admin port continue: they belong to the process. Refused for data on disk, because its timestamps
//! would contradict a clock that goes back.

use std::time::Duration;

use helenus_base::clock::Clock;
use helenus_cql::cql::Error;
use helenus_cql::cql::{Database, QueryParams, SessionState};
use helenus_engine::engine;
use helenus_schema::schema::system;

/// What a reset keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No user data at all.
    Nothing,
    /// Keyspaces, tables and prepared statements.
    Schema,
}

/// How far monotonic time is advanced so that budgets are full again: longer than any of them takes to fill.
const BUDGETS_FILL: Duration = Duration::from_secs(3600);

/// How far the clock is advanced when a statement of the reset itself lacks request units.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Most retries of one statement for lack of request units.
const RETRIES_MAX: usize = 8;

/// Resets a database whose clock can be moved.
///
/// # Errors
/// A statement of the reset failed; then it is done in part, and can be repeated.
pub async fn reset(database: &Database, clock: &Clock, keep: Keep) -> Result<(), Error> {
    database.engine().nodes().clear();
    clock.run();
    clock.advance(BUDGETS_FILL);
    for statement in statements(database, keep) {
        carry_out(database, clock, &statement).await?;
    }
    clock.reset_wall();
    database.engine().upkeep().forget_timestamps();
    Ok(())
}

/// The statements that remove users' data.
fn statements(database: &Database, keep: Keep) -> Vec<String> {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let schema = database.engine().schema();
    let keyspaces = schema.keyspaces.iter().filter(|(name, _)| !system::is_name(name));
    match keep {
        Keep::Nothing => keyspaces
            .map(|(name, _)| format!("DROP KEYSPACE {}", quote(name)))
            .collect(),
        Keep::Schema => keyspaces
            .flat_map(|(name, keyspace)| {
                let tables = keyspace.tables.keys();
                tables.map(move |table| format!("TRUNCATE {}.{}", quote(name), quote(table)))
            })
            .collect(),
    }
}

async fn carry_out(database: &Database, clock: &Clock, statement: &str) -> Result<(), Error> {
    let (session, params) = (SessionState::default(), QueryParams::default());
    let mut refusals = 0;
    loop {
        match database.query(&session, statement, &params).await {
            Ok(_) => return Ok(()),
            Err(Error::Engine(engine::Error::Throttled { .. })) if refusals < RETRIES_MAX => {
                refusals += 1;
                clock.advance(RETRY_AFTER);
            }
            Err(error) => return Err(error),
        }
    }
}
