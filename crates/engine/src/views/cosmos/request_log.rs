//! `system_cosmos.request_log`: the last statements, under the names of Azure Monitor's CDBCassandraRequests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, Sources, View};
use super::common::COSMOS;
use crate::engine::shown::LoggedRequest;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "request_log",
    own: Some(Own {
        comment: "the last statements of users, with what they were charged",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, requests(sources))),
};

/// A statement with the identity of its node and its client.
struct RequestRow {
    request: LoggedRequest,
    account: String,
    region: String,
    agent: Option<String>,
}

// Server-side retries count as one request.
static FIGURES: &[Figure<RequestRow>] = &[
    Figure::new("The account, or cluster.", |of: &RequestRow| Value::text(&of.account)).keyed(
        Kind::Partition,
        "account_name",
        "text",
    ),
    Figure::new("Rises by one for each.", |of: &RequestRow| {
        Value::Count(of.request.number)
    })
    .keyed(Kind::Clustering, "number", "bigint"),
    Figure::new("Its identity.", |of: &RequestRow| Value::Uuid(of.request.activity_id)).column("activity_id", "uuid"),
    Figure::new("The client; null: it came over no connection.", |of: &RequestRow| {
        Value::optional(of.request.address, |address| Value::Inet(address.ip()))
    })
    .column("address", "inet"),
    Figure::new("How the client logged in; null: it did not.", |of: &RequestRow| {
        Value::optional(of.request.user.as_ref(), |_| Value::text("PrimaryMasterKey"))
    })
    .column("authorization_token_type", "text"),
    Figure::new("The first table in it.", |of: &RequestRow| {
        Value::optional(of.request.table.as_ref(), |(_, table)| Value::text(table))
    })
    .column("collection_name", "text"),
    Figure::new("Its keyspace.", |of: &RequestRow| {
        Value::optional(of.request.table.as_ref(), |(keyspace, _)| Value::text(keyspace))
    })
    .column("database_name", "text"),
    Figure::new("How long it took, ms.", |of: &RequestRow| {
        Value::Float(of.request.duration_ms)
    })
    .column("duration_ms", "double"),
    Figure::new("The protocol's error code; -1: none.", |of: &RequestRow| {
        Value::Int(of.request.error_code.into())
    })
    .column("error_code", "int"),
    Figure::new("The kind of statement.", |of: &RequestRow| {
        Value::text(of.request.operation)
    })
    .column("operation_name", "text"),
    Figure::new("Its text without values.", |of: &RequestRow| {
        Value::text(&of.request.command)
    })
    .column("pii_command_text", "text"),
    Figure::new("How long it waited for request units, ms.", |of: &RequestRow| {
        Value::Float(of.request.delay_ms.unwrap_or_default())
    })
    .column("rate_limiting_delay_ms", "double"),
    Figure::new("The region, or data center.", |of: &RequestRow| Value::text(&of.region)).column("region_name", "text"),
    Figure::new("Request units.", |of: &RequestRow| {
        Value::Float(of.request.request_charge)
    })
    .column("request_charge", "double"),
    Figure::new("Bytes of the request's body; 0: not known.", |of: &RequestRow| {
        Value::Count(of.request.request_bytes)
    })
    .column("request_length", "bigint"),
    Figure::new("Bytes of the rows answered.", |of: &RequestRow| {
        Value::Count(of.request.response_bytes)
    })
    .column("response_length", "bigint"),
    Figure::new("Whether it waited for request units.", |of: &RequestRow| {
        Value::Bool(of.request.delay_ms.is_some())
    })
    .column("retried_due_to_rate_limiting", "boolean"),
    Figure::new("How often it was tried again.", |of: &RequestRow| {
        Value::Int(of.request.delay_ms.is_some().into())
    })
    .column("retry_count", "int"),
    Figure::new("When it began, ms since 1970-01-01 UTC.", |of: &RequestRow| {
        Value::Int(of.request.at_millis)
    })
    .column("time_generated", "timestamp"),
    Figure::new("The client's driver.", |of: &RequestRow| {
        Value::optional(of.agent.as_deref(), Value::text)
    })
    .column("user_agent", "text"),
];

fn requests(sources: Sources<'_>) -> Vec<RequestRow> {
    let clients = sources.live.clients.iter();
    let agents: BTreeMap<SocketAddr, &String> = clients
        .filter_map(|client| {
            let address = SocketAddr::new(client.address, client.port);
            Some((address, client.driver_name.as_ref()?))
        })
        .collect();
    let facts = &sources.live.facts;
    let account = facts.account.as_ref().unwrap_or(&sources.node.cluster_name);
    let requests = sources.of_services(|figures| figures.requests()).into_iter();
    let rows = requests.map(|request| RequestRow {
        agent: request
            .address
            .and_then(|address| agents.get(&address).map(|&agent| agent.clone())),
        account: account.clone(),
        region: sources.node.data_center.clone(),
        request,
    });
    rows.collect()
}
