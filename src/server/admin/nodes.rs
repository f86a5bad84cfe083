//! `DELETE /api/nodes/NAME`: the fleet forgets a node that is down, and it has no seats any more. One that asks the owner again is there again.
//!
//! `changes.rs` defines who may ask for it.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::changes::guard;
use super::token::refuse;
use super::{PLAIN, Shape, text};

/// Forgets a node.
pub(super) async fn forget(State(shared): Shape, Path(name): Path<String>, request: Request) -> Response {
    if let Some(refused) = guard(&shared, &request) {
        return refused;
    }
    let Some(relay) = &shared.source.relay else {
        return refuse(
            StatusCode::CONFLICT,
            "This is for a node of a fleet, not for a server that is alone",
        );
    };
    match relay.forget(name).await {
        Ok(()) => text(PLAIN, "forgotten\n".to_owned()),
        Err(why) => refuse(StatusCode::CONFLICT, &why),
    }
}
