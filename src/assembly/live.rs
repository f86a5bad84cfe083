//! What only the server knows, as plain values for the views: facts of the start, connections, load.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::Config;
use crate::server::{Requests, Server, Session};
use helenus_base::clock::Clock;
use helenus_engine::views::LiveSource;
use helenus_engine::views::live::{Client, Facts, Live};

/// Facts that do not change while the server runs.
pub(super) fn facts(config: &Config, server: &Server, login_required: bool, clock: &Clock) -> Facts {
    let texts = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect();
    Facts {
        addresses: texts(server.addresses()),
        tls_addresses: texts(server.tls_addresses()),
        account: config.profile.is_cosmos().then(|| config.account_name.clone()),
        login_required,
        data: config.data.clone(),
        durability: config.durability.clone(),
        bucket_prices: config.bucket_prices,
        started_seconds: clock.wall_seconds(),
        started_bytes: 0,
    }
}

/// Figures for views that only the server has. The closure may outlive the server.
pub(super) fn live_source(
    config: &Config,
    server: &Server,
    requests: &Arc<Requests>,
    facts: Arc<Facts>,
    clock: Clock,
) -> LiveSource {
    let (sessions, load, started) = (server.sessions(), server.load(), clock.of_process());
    let (settings, requests) = (Arc::new(config.settings.clone()), Arc::downgrade(requests));
    Box::new(move || {
        let prepared = requests.upgrade().map(|requests| requests.prepared());
        let (prepared, prepared_bytes) = prepared.unwrap_or_default();
        Live {
            clients: sessions().iter().map(|session| client(session)).collect(),
            settings: Arc::clone(&settings),
            prepared,
            prepared_bytes,
            statements: Vec::new(),
            load: load(),
            uptime: clock.of_process().saturating_sub(started),
            facts: Arc::clone(&facts),
        }
    })
}

/// A connection as `system_views.clients` shows it.
fn client(session: &Session) -> Client {
    let state = session.state();
    let startup = session.startup();
    let options = startup.map(|startup| startup.options.clone()).unwrap_or_default();
    let option = |name: &str| {
        options
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
    };
    Client {
        address: session.client().ip(),
        port: session.client().port(),
        connection_stage: if session.is_ready() { "ready" } else { "authenticating" }.to_owned(),
        driver_name: option("DRIVER_NAME"),
        driver_version: option("DRIVER_VERSION"),
        keyspace_name: state.keyspace.as_deref().map(str::to_owned),
        protocol_version: startup.map_or(0, |startup| startup.version.number()),
        request_count: session.requests(),
        ssl_cipher_suite: None,
        ssl_enabled: session.is_tls(),
        ssl_protocol: None,
        username: state.user.as_deref().unwrap_or("anonymous").to_owned(),
        client_options: options,
    }
}
