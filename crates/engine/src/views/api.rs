//! The admin port's JSON: a route for each list of figures. Names are part of the interface: they are added, never renamed.

use serde_json::{Value, json};

use super::bucket;
use super::cosmos::{hot_keys, largest_partitions, nodes, partitions, tables};
use super::figure::{self, Figure};
use super::memory;
use super::server::{self, Server};
use super::statements;
use super::view::Sources;

/// Maximum rows in one response: some 4 MB.
const LISTED_MAX: usize = 10_000;

/// A route.
#[derive(Clone, Copy)]
pub struct Route {
    /// Its path.
    pub path: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// What answers it.
    pub answer: fn(Sources<'_>) -> Value,
    /// Whether it shows sizes of physical partitions, which must be counted first.
    pub shows_sizes: bool,
}

/// All routes of figures.
pub const ROUTES: [Route; 5] = [
    Route {
        path: "/api/status",
        summary: "the whole server in one object",
        answer: status,
        shows_sizes: true,
    },
    Route {
        path: "/api/statements",
        summary: "statements by kind, and errors by code",
        answer: of_statements,
        shows_sizes: false,
    },
    Route {
        path: "/api/tables",
        summary: "sizes and latencies by table",
        answer: |sources| {
            let all = tables::all(sources);
            json!({ "total": all.len(), "tables": list(tables::FIGURES, &all) })
        },
        shows_sizes: true,
    },
    Route {
        path: "/api/partitions",
        summary: "physical partitions with range, size and replicas",
        answer: |sources| {
            let all = sources.of_services(|figures| figures.partitions());
            json!({ "total": all.len(), "partitions": list(partitions::FIGURES, &all) })
        },
        shows_sizes: true,
    },
    Route {
        path: "/api/keys",
        summary: "partition keys that are asked most, and the largest",
        answer: |sources| {
            let hot = sources.of_services(|figures| figures.hot_keys());
            let largest = sources.of_services(|figures| figures.largest_partitions());
            json!({ "hot": list(hot_keys::FIGURES, &hot), "largest": list(largest_partitions::FIGURES, &largest) })
        },
        shows_sizes: false,
    },
];

/// The fields of `/api/status` that only the owner of the stores knows.
pub const OF_STORES: [&str; 7] = [
    "partitions",
    "bytes",
    "rows",
    "row_cache",
    "throttled",
    "request_units",
    "users_request_units",
];

fn list<R>(figures: &'static [Figure<R>], rows: &[R]) -> Vec<Value> {
    rows.iter()
        .take(LISTED_MAX)
        .map(|row| figure::json(figures, row))
        .collect()
}

fn status(sources: Sources<'_>) -> Value {
    let mut status = figure::json(server::FIGURES, &Server::of(sources));
    if let Some(status) = status.as_object_mut() {
        status.insert("statements".to_owned(), of_statements(sources));
        let holders = memory::holders(sources);
        status.insert("memory".to_owned(), list(memory::FIGURES, &holders).into());
        let cluster = sources.of_services(|figures| figures.cluster());
        status.insert("nodes".to_owned(), list(nodes::FIGURES, &cluster).into());
        let requests = bucket::requests(sources);
        if let Some(costs) = bucket::costs(sources, &requests) {
            let mut told = figure::json(bucket::COSTS, &costs);
            if let Some(told) = told.as_object_mut() {
                told.insert("requests".to_owned(), list(bucket::REQUESTS, &requests).into());
            }
            status.insert("bucket".to_owned(), told);
        }
    }
    status
}

fn of_statements(sources: Sources<'_>) -> Value {
    let mut errors = statements::errors();
    errors.retain(|error| error.count > 0);
    json!({
        "kinds": list(statements::KINDS, &statements::kinds(sources)),
        "errors": list(statements::ERRORS, &errors),
        "prepared": figure::json(statements::PREPARED, &statements::prepared(sources)),
    })
}
