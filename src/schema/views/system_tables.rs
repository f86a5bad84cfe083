//! `system` and `system_views`.

use bytes::Bytes;

use super::encode::{bigint, boolean, double, inet, int, list, map, text, text_map, uuid};
use super::{Cells, Sources, figures};
use crate::schema::node::{Client, IndexBuild, NodeInfo, Peer};
use crate::schema::{Index, IndexFamily, Schema, Table, system};
use crate::types::{CqlType, Native};

fn tokens(tokens: &[i64]) -> Bytes {
    let mut texts: Vec<Bytes> = tokens.iter().map(|token| text(&token.to_string())).collect();
    texts.sort();
    list(&texts)
}

/// Rows of `system`. Tables of what we do not have (hints, paxos, compactions, ranges in transfer …) are empty.
pub(super) fn system(table: &str, sources: Sources<'_>) -> Vec<Cells> {
    let (node, schema) = (sources.node, sources.schema);
    match table {
        "local" => vec![local(node, schema)],
        "peers" => node.peers.iter().map(|peer| self::peer(peer, node, schema)).collect(),
        "peers_v2" => node.peers.iter().map(|peer| peer_v2(peer, node, schema)).collect(),
        "IndexInfo" => index_info(sources),
        "built_views" => built_views(schema),
        _ => Vec::new(),
    }
}

fn local(node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("key", text("local"))
        .set("bootstrapped", text("COMPLETED"))
        .set("broadcast_address", inet(node.address))
        .set("broadcast_port", int(node.port.into()))
        .set("cluster_name", text(&node.cluster_name))
        .set("cql_version", text(&node.cql_version))
        .set("data_center", text(&node.data_center))
        .set("gossip_generation", int(node.generation))
        .set("host_id", uuid(node.host_id))
        .set("listen_address", inet(node.address))
        .set("listen_port", int(node.port.into()))
        .set("native_protocol_version", text(&node.native_protocol_version))
        .set("partitioner", text(&node.partitioner))
        .set("rack", text(&node.rack))
        .set("release_version", text(&node.release_version))
        .set("rpc_address", inet(node.native_address))
        .set("rpc_port", int(node.native_port.into()))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&node.tokens))
}

fn peer(peer: &Peer, node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("peer", inet(peer.address))
        .set("data_center", text(&peer.data_center))
        .set("host_id", uuid(peer.host_id))
        .set("preferred_ip", inet(peer.address))
        .set("rack", text(&peer.rack))
        .set("release_version", text(&node.release_version))
        .set("rpc_address", inet(peer.native_address))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&peer.tokens))
}

fn peer_v2(peer: &Peer, node: &NodeInfo, schema: &Schema) -> Cells {
    Cells::new()
        .set("peer", inet(peer.address))
        .set("peer_port", int(peer.port.into()))
        .set("data_center", text(&peer.data_center))
        .set("host_id", uuid(peer.host_id))
        .set("native_address", inet(peer.native_address))
        .set("native_port", int(peer.native_port.into()))
        .set("preferred_ip", inet(peer.address))
        .set("preferred_port", int(peer.port.into()))
        .set("rack", text(&peer.rack))
        .set("release_version", text(&node.release_version))
        .set("schema_version", uuid(schema.version))
        .set("tokens", tokens(&peer.tokens))
}

/// An index and where it belongs.
struct Placed<'a> {
    table: &'a Table,
    index: &'a Index,
    /// `None`: it is complete.
    build: Option<&'a IndexBuild>,
}

/// The indexes of the users' keyspaces, by keyspace and name.
fn indexes(sources: Sources<'_>) -> Vec<Placed<'_>> {
    let mut indexes: Vec<Placed<'_>> = sources
        .schema
        .keyspaces
        .values()
        .filter(|keyspace| !system::is_name(&keyspace.name))
        .flat_map(|keyspace| keyspace.tables.values())
        .flat_map(|table| {
            table.indexes.values().map(move |index| {
                let builds = &sources.live.index_builds;
                let build = builds
                    .iter()
                    .find(|build| build.index == index.storage_id && index.storage_id != 0);
                Placed { table, index, build }
            })
        })
        .collect();
    indexes.sort_by_key(|placed| (&placed.table.keyspace, &placed.index.name));
    indexes
}

/// Indexes that are built, under the keyspace's name (the column's name is older than keyspaces).
fn index_info(sources: Sources<'_>) -> Vec<Cells> {
    let built = indexes(sources).into_iter().filter(|placed| placed.build.is_none());
    built
        .map(|placed| {
            Cells::new()
                .set("table_name", text(&placed.table.keyspace))
                .set("index_name", text(&placed.index.name))
                .set("value", Bytes::new())
        })
        .collect()
}

/// Storage-attached indexes, those that are being built included.
fn sai_column_indexes(sources: Sources<'_>) -> Vec<Cells> {
    let of_sai = indexes(sources)
        .into_iter()
        .filter(|placed| placed.index.family() == Some(IndexFamily::Sai));
    of_sai
        .map(|placed| {
            let column = placed
                .index
                .target_column()
                .and_then(|(_, name)| placed.table.column(&name));
            let of_texts = |ty: &CqlType| matches!(ty, CqlType::Native(Native::Text | Native::Ascii));
            let target = placed.index.target(placed.table);
            let option = |name: &str| placed.index.options.get(name).map(String::as_str);
            let analysed: Vec<String> = ["case_sensitive", "normalize", "ascii"]
                .into_iter()
                .filter_map(|name| Some(format!("{name}={}", option(name)?)))
                .collect();
            let analyzer = if analysed.is_empty() {
                "NoOpAnalyzer{}".to_owned()
            } else {
                format!("NonTokenizingAnalyzer{{{}}}", analysed.join(", "))
            };
            Cells::new()
                .set("keyspace_name", text(&placed.table.keyspace))
                .set("index_name", text(&placed.index.name))
                .set("table_name", text(&placed.table.name))
                .set_if("column_name", column.map(|(_, column)| text(&column.name)))
                .set("is_queryable", boolean(placed.build.is_none()))
                .set("is_building", boolean(placed.build.is_some()))
                .set("is_string", boolean(target.is_some_and(|target| of_texts(target.ty()))))
                .set("analyzer", text(&analyzer))
        })
        .collect()
}

/// Builds of indexes at work: the only tasks of Cassandra's kinds that we have.
fn sstable_tasks(sources: Sources<'_>) -> Vec<Cells> {
    let mut building: Vec<(Placed<'_>, IndexBuild)> = indexes(sources)
        .into_iter()
        .filter_map(|placed| placed.build.copied().map(|build| (placed, build)))
        .collect();
    building.sort_by_key(|(placed, build)| (&placed.table.keyspace, &placed.table.name, build.task));
    let count = |rows: u64| bigint(i64::try_from(rows).unwrap_or(i64::MAX));
    building
        .into_iter()
        .map(|(placed, build)| {
            // Counts of rows are far below where a double loses units.
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let ratio = if build.rows_total == 0 {
                0.0
            } else {
                build.rows_passed as f64 / build.rows_total as f64
            };
            Cells::new()
                .set("keyspace_name", text(&placed.table.keyspace))
                .set("table_name", text(&placed.table.name))
                .set("task_id", uuid(build.task))
                .set("completion_ratio", double(ratio))
                .set("kind", text("secondary_index_build"))
                .set("progress", count(build.rows_passed))
                .set("sstables", int(0))
                .set("total", count(build.rows_total))
                .set("unit", text("rows"))
        })
        .collect()
}

fn built_views(schema: &Schema) -> Vec<Cells> {
    let views = schema.keyspaces.values().flat_map(|keyspace| keyspace.views.values());
    views
        .map(|view| {
            Cells::new()
                .set("keyspace_name", text(&view.table.keyspace))
                .set("view_name", text(&view.table.name))
                .set("status_replicated", boolean(true))
        })
        .collect()
}

/// Rows of `system_views`.
pub(super) fn system_views(table: &str, sources: Sources<'_>) -> Vec<Cells> {
    match table {
        "clients" => clients(&sources.live.clients),
        "sai_column_indexes" => sai_column_indexes(sources),
        "sstable_tasks" => sstable_tasks(sources),
        "settings" => sources
            .live
            .settings
            .iter()
            .map(|(name, value)| Cells::new().set("name", text(name)).set("value", text(value)))
            .collect(),
        _ => figures::rows(table, sources.live),
    }
}

fn clients(clients: &[Client]) -> Vec<Cells> {
    let mut clients: Vec<&Client> = clients.iter().collect();
    clients.sort_by_key(|client| (client.address, client.port));
    clients
        .into_iter()
        .map(|client| {
            let options: Vec<(&String, &String)> =
                client.client_options.iter().map(|(key, value)| (key, value)).collect();
            let options = if options.is_empty() {
                map(&[])
            } else {
                text_map(options)
            };
            Cells::new()
                .set("address", inet(client.address))
                .set("port", int(client.port.into()))
                .set("client_options", options)
                .set("connection_stage", text(&client.connection_stage))
                .set_if("driver_name", client.driver_name.as_deref().map(text))
                .set_if("driver_version", client.driver_version.as_deref().map(text))
                .set("hostname", text(&client.address.to_string()))
                .set_if("keyspace_name", client.keyspace_name.as_deref().map(text))
                .set("protocol_version", int(client.protocol_version.into()))
                .set(
                    "request_count",
                    bigint(i64::try_from(client.request_count).unwrap_or(i64::MAX)),
                )
                .set_if("ssl_cipher_suite", client.ssl_cipher_suite.as_deref().map(text))
                .set("ssl_enabled", boolean(client.ssl_enabled))
                .set_if("ssl_protocol", client.ssl_protocol.as_deref().map(text))
                .set("username", text(&client.username))
        })
        .collect()
}
