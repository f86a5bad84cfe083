//! Which server a verb asks: the one that has the data open, or the one that the settings describe.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::Failure;
use super::record::ServerRecord;
use crate::config::{Config, Origin, Values};

/// The directory of the data; `None`: it is in memory.
#[must_use]
pub(super) fn data_directory(config: &Config) -> Option<PathBuf> {
    crate::server::run::data_directory(&config.data)
}

/// The record of the server that has the data open: of `ready-json`, or in the data directory.
///
/// # Errors
/// The record cannot be read.
pub(super) fn running(config: &Config) -> Result<Option<ServerRecord>, Failure> {
    if let Some(path) = config.ready_json.as_deref().filter(|path| *path != Path::new("-")) {
        return Ok(ServerRecord::read(path)?);
    }
    match data_directory(config) {
        Some(directory) => Ok(ServerRecord::read(&ServerRecord::path(&directory))?),
        None => Ok(None),
    }
}

/// The server that clients connect to: at the address on the command line, else the one that has the data open, else as the settings
/// say.
///
/// # Errors
/// There is no address, or the login is not known.
pub(super) fn to_connect_to(values: &Values, config: &Config) -> Result<ServerRecord, Failure> {
    let is_address_given = values.iter().any(|(setting, values, origin)| {
        ["listen", "tls-listen"].contains(&setting.name) && !values.is_empty() && *origin == Origin::CommandLine
    });
    if !is_address_given && let Some(record) = running(config)? {
        return Ok(record);
    }
    configured(config)
}

/// The server as the settings describe it: its data may be in memory, or on another machine.
fn configured(config: &Config) -> Result<ServerRecord, Failure> {
    let (cql, tls) = addresses(config);
    if cql.is_none() && tls.is_none() {
        return Err("no address to connect to: give --listen ADDRESS:PORT as to the server".into());
    }
    if config.profile.is_cosmos() && config.server.credentials.is_none() {
        return Err(format!(
            "no server has {} open, so its key is not known: give --account-key as to the server",
            config.data
        )
        .into());
    }
    let (account, key) = match &config.server.credentials {
        Some(credentials) => (Some(credentials.user.clone()), Some(credentials.password.clone())),
        None => (None, None),
    };
    Ok(ServerRecord::new(cql, tls, account, key))
}

/// The first addresses of the settings: without TLS, and with it.
#[must_use]
pub(super) fn addresses(config: &Config) -> (Option<String>, Option<String>) {
    let first = |addresses: &[SocketAddr]| addresses.first().map(ToString::to_string);
    let tls = config.server.tls.as_ref();
    (first(&config.server.listen), tls.and_then(|tls| first(&tls.listen)))
}

/// The admin port of a running server.
///
/// # Errors
/// No server has the data open, or its admin port is off.
pub(super) fn admin(values: &Values) -> Result<SocketAddr, Failure> {
    if let Some(address) = values.admin_listen()? {
        return Ok(address);
    }
    let config = Config::new(values)?;
    match running(&config)? {
        Some(ServerRecord { admin: Some(admin), .. }) => Ok(admin.parse()?),
        Some(ServerRecord { admin: None, .. }) => {
            Err("the server's admin port is off: start it with --admin-listen ADDRESS:PORT".into())
        }
        None => Err(format!(
            "no server has {} open: give --data as to the server, or --admin-listen ADDRESS:PORT (or HELENUS_ADMIN_LISTEN)",
            config.data
        )
        .into()),
    }
}
