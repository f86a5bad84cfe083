//! `/api/faults`: the active fault plan, as [`helenus_engine::partition::faults`] describes it.
//!
//! ```text
//! GET     the plan and the progress of each fault, as JSON
//! POST    replaces the active plan by the plan in the body: application/toml, or application/json with the same keys
//! DELETE  ends all faults
//! ```
//! The answer is always the plan that is active afterwards, with warnings of faults that can hit no table yet. `changes.rs` defines who may change it.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::changes::guard;
use super::token::refuse;
use super::{Shape, Shared, json};
use crate::server::fault_warnings;
use helenus_engine::partition::faults::Plan;
use helenus_engine::partition::nodes::Report;

/// The plan, its progress, and what is doubtful about it.
#[derive(serde::Serialize)]
struct Shown {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

fn shown(shared: &Shared) -> Shown {
    let database = &shared.source.database;
    let report = database.engine().nodes().report();
    let faults = report.fault.iter().map(|fault| &fault.fault);
    let warnings = fault_warnings::of(faults, &database.engine().schema());
    Shown { report, warnings }
}

/// Bytes of a plan.
const PLAN_BYTES_MAX: usize = 256 * 1024;

/// The active plan.
pub(super) async fn show(State(shared): Shape) -> Response {
    json(&shown(&shared))
}

/// Activates a plan.
pub(super) async fn set(State(shared): Shape, request: Request) -> Response {
    if let Some(refused) = guard(&shared, &request) {
        return refused;
    }
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let read = match content_type.split(';').next().unwrap_or_default().trim() {
        "application/toml" => Plan::from_toml,
        "application/json" => Plan::from_json,
        _ => {
            let why = "The content type must be application/toml or application/json";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
    };
    let Ok(body) = to_bytes(request.into_body(), PLAN_BYTES_MAX).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "A plan has at most 256 KiB");
    };
    let text = String::from_utf8_lossy(&body);
    let nodes = shared.source.database.engine().nodes();
    match read(&text).and_then(|plan| nodes.set_plan(plan)) {
        Ok(()) => {
            tracing::info!("a fault plan was activated through the admin port");
            let shown = shown(&shared);
            for warning in &shown.warnings {
                tracing::warn!(warning, "the fault plan");
            }
            json(&shown)
        }
        Err(error) => refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// Ends all faults.
pub(super) async fn clear(State(shared): Shape, request: Request) -> Response {
    if let Some(refused) = guard(&shared, &request) {
        return refused;
    }
    let nodes = shared.source.database.engine().nodes();
    nodes.clear();
    json(&shown(&shared))
}
