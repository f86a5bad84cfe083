//! `system_views.clients`: connections.

use super::super::cells::Cells;
use super::super::live::Client;
use super::super::view::View;
use helenus_schema::schema::encode::{bigint, boolean, inet, int, map, text, text_map};

pub(super) const VIEW: View = View::of("system_views", "clients", |sources| clients(&sources.live.clients));

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
