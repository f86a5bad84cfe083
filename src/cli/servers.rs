//! Selects the server for a verb: the one that has the data open, or the one that the settings describe.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::Failure;
use super::record::ServerRecord;
use crate::config::{Config, Origin, Values};
use crate::server::admin::client::Place;

/// The data directory; `None` means that data is in memory.
#[must_use]
pub(super) fn data_directory(config: &Config) -> Option<PathBuf> {
    crate::server::run::data_directory(&config.data)
}

/// Rejects a default data directory that depends on the working directory: a user without a home directory has no
/// default.
///
/// # Errors
/// There is no home directory, and no setting names the data directory.
pub(super) fn refuse_homeless(values: &Values) -> Result<(), Failure> {
    let is_home = |name| std::env::var_os(name).is_some_and(|path| Path::new(&path).is_absolute());
    let is_default = values.origin("data") == Some(&Origin::Default) && !values.is_set("ready-json");
    if is_default && !is_home("XDG_DATA_HOME") && !is_home("HOME") {
        return Err("data: there is no HOME to keep it in: give --data file:DIR, or --data memory:".into());
    }
    Ok(())
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

/// An address with TLS on the command line, for a client.
#[derive(Debug)]
pub(super) struct GivenTls {
    address: SocketAddr,
    /// The certificate to trust; `None`: that of the server that has the data open.
    certificate_pem: Option<String>,
}

/// Takes `tls-listen` of the command line out of the settings. A client needs the address and a certificate to trust; a
/// server needs the certificate's key too.
///
/// # Errors
/// It is no address, or the certificate's file cannot be read.
pub(super) fn given_tls(values: &mut Values) -> Result<Option<GivenTls>, Failure> {
    if values.origin("tls-listen") != Some(&Origin::CommandLine) {
        return Ok(None);
    }
    let Some(address) = values.addresses("tls-listen")?.into_iter().next() else {
        return Ok(None);
    };
    let read = |path: &str| {
        std::fs::read_to_string(path).map_err(|error| format!("tls-certificate: cannot read {path}: {error}"))
    };
    let certificate_pem = values.text("tls-certificate").map(read).transpose()?;
    for name in [
        "tls-listen",
        "tls-certificate",
        "tls-key",
        "tls-client-ca",
        "tls-client-auth",
    ] {
        values.forget(name);
    }
    Ok(Some(GivenTls {
        address,
        certificate_pem,
    }))
}

/// The server for clients: at the address on the command line, else the one that has the data open, else the one in the
/// settings.
///
/// # Errors
/// There is no address, or the login or the certificate is not known.
pub(super) fn to_connect_to(values: &Values, config: &Config, tls: Option<GivenTls>) -> Result<ServerRecord, Failure> {
    let running = running(config)?;
    let is_address_given = values.origin("listen") == Some(&Origin::CommandLine);
    let Some(GivenTls {
        address,
        certificate_pem,
    }) = tls
    else {
        return match running.filter(|_| !is_address_given) {
            Some(record) => Ok(record),
            None => configured(config),
        };
    };
    let address = address.to_string();
    let same = running.filter(|record| record.tls.as_ref() == Some(&address));
    let mut record = match same {
        Some(record) => record,
        None => configured(config)?,
    };
    record.cql = None;
    record.tls = Some(address);
    record.certificate_pem = certificate_pem.or(record.certificate_pem);
    if record.certificate_pem.is_none() {
        return Err(
            "give --tls-certificate FILE with the certificate to trust; helenus cert prints that of a server".into(),
        );
    }
    Ok(record)
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

/// The admin socket of the server that has the data open; `None` means that there is no socket.
pub(super) fn admin_socket(config: &Config) -> Option<Place> {
    data_directory(config)
        .map(Place::Directory)
        .filter(Place::is_listened_on)
}

/// The admin port of a running server: the address of the settings, or that of the server that has the data open.
/// Includes the token if it is known: servers with roles require it on a TCP address.
///
/// # Errors
/// No server has the data open, or it keeps none and its admin port is off.
pub(super) fn admin(values: &Values) -> Result<(Place, Option<String>), Failure> {
    let given = values.text("admin-token").map(str::to_owned);
    if let Some(address) = values.admin_listen()? {
        // A token is valid only for the server that issued it.
        let record = Config::new(values).map(|config| running(&config).ok().flatten());
        let same = record.ok().flatten().filter(|record| {
            let of_record = record.admin.as_deref().and_then(|admin| admin.parse().ok());
            of_record == Some(address)
        });
        return Ok((address.into(), given.or_else(|| same?.token)));
    }
    let config = Config::new(values)?;
    if let Some(place) = admin_socket(&config) {
        return Ok((place, None));
    }
    match running(&config)? {
        Some(ServerRecord {
            admin: Some(admin),
            token,
            ..
        }) => Ok((admin.parse::<SocketAddr>()?.into(), given.or(token))),
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
