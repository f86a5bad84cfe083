//! `/api/clock` and `/api/reset`: time and a fresh start for tests. Only for a server that keeps nothing on disk:
//! stored data would keep dates in the future.
//!
//! ```text
//! GET  /api/clock   {"mode":"running","now_ms":…,"ahead_ms":…}
//! POST /api/clock   {"advance_ms":61000}, {"set_ms":1767225600000}, {"mode":"manual"} (stopped), {"mode":"running"}; also together
//! POST /api/reset   {} or {"keep":"schema"}, see `server::reset`
//! ```
//! A move is answered after the work that it makes due is done: a sweep, and the changes of the fault plan. Expiry and
//! budgets use this clock directly. It never goes back: 409. Timeouts of sockets and dates of certificates stay on the
//! machine's time.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::changes::{Refusal, body, guard};
use super::token::refuse;
use super::{Shape, Shared, json};
use crate::server::reset::{Keep, reset};
use helenus_base::clock::Clock;

/// The farthest move: a hundred years.
const MOVE_MS_MAX: u64 = 100 * 365 * 86_400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Stopped between moves.
    Manual,
    /// Runs by itself.
    Running,
}

/// A change of the clock: first stop it, then move it, then start it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// Milliseconds to move ahead by.
    advance_ms: Option<u64>,
    /// The wall time to move to, milliseconds since 1970-01-01 UTC.
    set_ms: Option<i64>,
    mode: Option<Mode>,
}

#[derive(Debug, Serialize)]
struct Shown {
    mode: Mode,
    now_ms: i64,
    ahead_ms: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Schema,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    keep: Option<Kept>,
}

fn refuse_boxed(status: StatusCode, why: &str) -> Refusal {
    Box::new(refuse(status, why))
}

fn shown(clock: &Clock) -> Response {
    json(&Shown {
        mode: if clock.is_stopped() {
            Mode::Manual
        } else {
            Mode::Running
        },
        now_ms: clock.wall_micros().div_euclid(1000),
        ahead_ms: clock.ahead_of_machine_micros().div_euclid(1000),
    })
}

pub(super) async fn show(State(shared): Shape) -> Response {
    shown(&shared.source.clock)
}

pub(super) async fn change(State(shared): Shape, request: Request) -> Response {
    let outcome = async {
        admit(&shared, &request)?;
        apply(&shared, body(request).await?).await
    };
    outcome.await.unwrap_or_else(|refused: Refusal| *refused)
}

/// Refuses a client that may not change the clock, and a clock that cannot be changed.
fn admit(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    if let Some(refused) = guard(shared, request) {
        return Err(Box::new(refused));
    }
    if !shared.source.clock.is_movable() {
        let why = "Only a server with its data in memory can be moved in time or reset: dates in the future would stay in data that is kept";
        return Err(refuse_boxed(StatusCode::CONFLICT, why));
    }
    Ok(())
}

async fn apply(shared: &Shared, change: Change) -> Result<Response, Refusal> {
    let clock = &shared.source.clock;
    let now_ms = clock.wall_micros().div_euclid(1000);
    let by_ms = match (change.advance_ms, change.set_ms) {
        (Some(_), Some(_)) => {
            return Err(refuse_boxed(
                StatusCode::BAD_REQUEST,
                "advance_ms and set_ms exclude each other",
            ));
        }
        (Some(by_ms), None) => by_ms,
        (None, Some(to_ms)) => u64::try_from(to_ms.saturating_sub(now_ms))
            .map_err(|_| refuse_boxed(StatusCode::CONFLICT, "The clock never goes back"))?,
        (None, None) => 0,
    };
    if by_ms > MOVE_MS_MAX {
        return Err(refuse_boxed(
            StatusCode::BAD_REQUEST,
            "The clock moves by at most a hundred years at once",
        ));
    }
    if change.mode == Some(Mode::Manual) {
        clock.stop();
    }
    clock.advance(Duration::from_millis(by_ms));
    if change.mode == Some(Mode::Running) {
        clock.run();
    }
    let database = &shared.source.database;
    database.engine().nodes().follow_time();
    if let Err(error) = database.engine().upkeep().sweep().await {
        tracing::warn!(%error, "the sweep after a move of the clock failed");
    }
    Ok(shown(clock))
}

pub(super) async fn start_over(State(shared): Shape, request: Request) -> Response {
    let outcome = async {
        admit(&shared, &request)?;
        let asked: Reset = body(request).await?;
        let keep = match asked.keep {
            None => Keep::Nothing,
            Some(Kept::Schema) => Keep::Schema,
        };
        let (database, clock) = (&shared.source.database, &shared.source.clock);
        let done = reset(database, clock, keep).await;
        done.map_err(|error| refuse_boxed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))?;
        Ok(shown(clock))
    };
    outcome.await.unwrap_or_else(|refused: Refusal| *refused)
}
