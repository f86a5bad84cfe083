//! Selects the server for a verb: the one that has the data open, or the one that the settings describe.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::record::ServerRecord;
use super::{Failure, dev};
use crate::config::{Config, Origin, Values};
use crate::server::admin::client::Place;

/// Timeout of a connection that only shows whether a server is there.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// The data directory; `None` means that data is in memory.
#[must_use]
pub(super) fn data_directory(config: &Config) -> Option<PathBuf> {
    crate::assembly::opening::data_directory(&config.data)
}

/// Whether the data of the settings is in a bucket.
fn is_in_bucket(config: &Config) -> bool {
    crate::assembly::opening::is_in_bucket(config).unwrap_or(false)
}

/// Rejects a default data directory that depends on the working directory: a user without a home directory has no
/// default.
///
/// # Errors
/// There is no home directory, and no setting names the data directory.
pub(super) fn refuse_homeless(values: &Values) -> Result<(), Failure> {
    let is_home = |name| std::env::var_os(name).is_some_and(|path| Path::new(&path).is_absolute());
    let is_default = matches!(values.origin("data"), Some(Origin::Default | Origin::Profile(_)));
    let is_default = is_default && !values.is_set("ready-json");
    if is_default && !is_home("XDG_DATA_HOME") && !is_home("HOME") {
        return Err("data: there is no HOME to keep it in: give --data file:DIR, or --data memory:".into());
    }
    Ok(())
}

/// The file that `ready-json` names; `None`: the setting is not given, or means standard output.
fn record_file(config: &Config) -> Option<&Path> {
    config.ready_json.as_deref().filter(|path| *path != Path::new("-"))
}

/// The record in the file that `ready-json` names.
///
/// # Errors
/// There is no such file, it cannot be read, or its server no longer answers: another server must not take its place.
fn of_file(path: &Path) -> Result<ServerRecord, Failure> {
    let Some(record) = ServerRecord::read(path)? else {
        return Err(format!(
            "ready-json: there is no file {}: a server writes it once it is ready, and removes it when it stops; start that server, or \
             leave --ready-json and HELENUS_READY_JSON out",
            path.display()
        )
        .into());
    };
    if !answers(&record) {
        return Err(format!(
            "ready-json: the server of {} (process {}) does not answer: start it again",
            path.display(),
            record.pid
        )
        .into());
    }
    Ok(record)
}

/// The record of the server that has the data open: of `ready-json`, or in the data directory. A killed server leaves
/// its record in the directory; that counts as none.
///
/// # Errors
/// The record cannot be read, or `ready-json` names a file without a running server.
pub(super) fn running(config: &Config) -> Result<Option<ServerRecord>, Failure> {
    if let Some(path) = record_file(config) {
        return of_file(path).map(Some);
    }
    let Some(directory) = data_directory(config) else {
        return Ok(None);
    };
    let record = ServerRecord::read(&ServerRecord::path(&directory))?;
    // The socket proves that the server runs, even one whose process id means nothing here, as in another container.
    let is_there = |record: &ServerRecord| {
        Place::Directory(directory).is_listened_on() || (is_alive(record.pid) && answers(record))
    };
    Ok(record.filter(is_there))
}

/// The profile that was asked for. `None` means that it is a default.
fn asked_profile(values: &Values) -> Option<&str> {
    values.text("profile").filter(|_| is_given(values, "profile"))
}

/// Refuses a server with another profile than the one that was asked for.
///
/// # Errors
/// `profile` is set, and the server has another one.
pub(super) fn refuse_other_profile(values: &Values, record: &ServerRecord) -> Result<(), Failure> {
    match (asked_profile(values), &record.profile) {
        (Some(asked), Some(found)) if asked != found => {
            let address = record.cql.as_ref().or(record.tls.as_ref());
            Err(format!(
                "the server at {} has the profile {found}, and {asked} was asked for: leave --profile out, or name another server with \
                 --data or --listen",
                address.map_or("an unknown address", String::as_str)
            )
            .into())
        }
        _ => Ok(()),
    }
}

/// The record of the server that has the data open, or else of this user's `helenus dev` if no setting names another
/// server.
///
/// # Errors
/// As those of [`running`].
pub(super) fn running_or_dev(values: &Values, config: &Config) -> Result<Option<ServerRecord>, Failure> {
    if let Some(record) = running(config)? {
        refuse_other_profile(values, &record)?;
        return Ok(Some(record));
    }
    if is_other_than_dev(values) {
        return Ok(None);
    }
    let is_meant = |record: &ServerRecord| {
        refuse_other_profile(values, record).is_ok()
            && is_at(values, "listen", record.cql.as_deref())
            && is_at(values, "tls-listen", record.tls.as_deref())
    };
    Ok(dev::noted().filter(|record| is_meant(record) && is_alive(record.pid) && answers(record)))
}

/// Whether a setting names a server in another way than by its address.
fn is_other_than_dev(values: &Values) -> bool {
    let mut places = ["data", "admin-listen", "ready-json"].into_iter();
    places.any(|name| is_given(values, name))
}

/// Whether a server with this address is at the address of a setting, if that is given.
fn is_at(values: &Values, name: &'static str, address: Option<&str>) -> bool {
    let is_same = |given: &SocketAddr| address.is_some_and(|address| address.parse() == Ok(*given));
    !is_given(values, name) || values.addresses(name).is_ok_and(|given| given.iter().any(is_same))
}

/// Whether a setting has a value that is no default.
fn is_given(values: &Values, name: &str) -> bool {
    let origin = values.origin(name);
    origin.is_some_and(|origin| {
        !matches!(
            origin,
            Origin::Default | Origin::Memory | Origin::Profile(_) | Origin::Verb(_)
        )
    })
}

/// Whether a process other than this one has the id. In a container, the id of a killed server may be that of its reader.
fn is_alive(pid: u32) -> bool {
    let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(id) = id.filter(|_| pid != std::process::id()) else {
        return false;
    };
    // A process of another user exists too: it refuses the signal.
    !matches!(rustix::process::test_kill_process(id), Err(rustix::io::Errno::SRCH))
}

/// Whether an address of the record accepts connections.
fn answers(record: &ServerRecord) -> bool {
    let mut addresses = [&record.cql, &record.tls, &record.admin].into_iter().flatten();
    addresses.any(|address| {
        let address = address.parse::<SocketAddr>().ok();
        address.is_some_and(|address| connect(address).is_ok())
    })
}

/// Connects. An unspecified address (all of the machine's own) is reached at 127.0.0.1.
pub(super) fn connect(mut address: SocketAddr) -> Result<TcpStream, Failure> {
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let socket = TcpStream::connect_timeout(&address, LOOK_WITHIN);
    let socket = socket.map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => format!(
            "no server listens at {address}: start it with helenus, or give --listen ADDRESS:PORT of the one that is meant"
        ),
        _ => format!("cannot connect to {address}: {error}"),
    })?;
    socket.set_read_timeout(Some(LOOK_WITHIN))?;
    socket.set_write_timeout(Some(LOOK_WITHIN))?;
    Ok(socket)
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
    let is_address_given = values.origin("listen") == Some(&Origin::CommandLine);
    let Some(GivenTls {
        address,
        certificate_pem,
    }) = tls
    else {
        if is_address_given {
            return configured(config);
        }
        if let Some(record) = running_or_dev(values, config)? {
            return Ok(record);
        }
        refuse_other(values, config)?;
        return configured(config);
    };
    let address = address.to_string();
    let same = running(config)?.filter(|record| record.tls.as_ref() == Some(&address));
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

/// Rejects the default address for data that was named and that no known server has open: another server may have that address.
///
/// # Errors
/// The settings name a data directory or a bucket, and no address.
pub(super) fn refuse_other(values: &Values, config: &Config) -> Result<(), Failure> {
    let is_given = |name| is_given(values, name);
    let is_elsewhere = data_directory(config).is_some() || is_in_bucket(config);
    if is_elsewhere && is_given("data") && !is_given("listen") && !is_given("tls-listen") {
        return Err(format!(
            "{}: start it, or give --listen ADDRESS:PORT of the server that is meant",
            not_found(config)
        )
        .into());
    }
    Ok(())
}

/// That a server was not found by the data of the settings, as a sentence without an end.
pub(super) fn not_found(config: &Config) -> String {
    if is_in_bucket(config) {
        format!(
            "the address of a server of {} is not known on this machine",
            config.data
        )
    } else {
        format!("no server has {} open", config.data)
    }
}

/// The server as the settings describe it: its data may be in memory, or on another machine.
fn configured(config: &Config) -> Result<ServerRecord, Failure> {
    let (cql, tls) = addresses(config);
    if cql.is_none() && tls.is_none() {
        return Err("no address to connect to: give --listen ADDRESS:PORT as to the server".into());
    }
    if config.profile.is_cosmos() && config.server.credentials.is_none() {
        return Err(format!(
            "{}, so its key is not known: give --account-key as to the server",
            not_found(config)
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
///
/// # Errors
/// `ready-json` names a file without a running server, or the server has another profile than the one that was asked for.
pub(super) fn admin_socket(values: &Values, config: &Config) -> Result<Option<Place>, Failure> {
    let Some(directory) = data_directory(config) else {
        return Ok(None);
    };
    if let Some(path) = record_file(config) {
        // The data directory of the settings may be that of another server than the file's.
        let named = of_file(path)?;
        if ServerRecord::read(&ServerRecord::path(&directory))? != Some(named) {
            return Ok(None);
        }
    }
    let place = Some(Place::Directory(directory)).filter(Place::is_listened_on);
    if place.is_some()
        && let Some(record) = running(config)?
    {
        refuse_other_profile(values, &record)?;
    }
    Ok(place)
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
    if let Some(place) = admin_socket(values, &config)? {
        return Ok((place, None));
    }
    match running_or_dev(values, &config)? {
        Some(ServerRecord {
            admin: Some(admin),
            token,
            ..
        }) => Ok((admin.parse::<SocketAddr>()?.into(), given.or(token))),
        Some(ServerRecord { admin: None, .. }) => {
            Err("the server's admin port is off: start it with --admin-listen ADDRESS:PORT".into())
        }
        None => {
            if is_in_bucket(&config) {
                let bucket = not_found(&config);
                return Err(format!("{bucket}: give --admin-listen ADDRESS:PORT as to the server").into());
            }
            let dev = match is_other_than_dev(values) {
                true => "",
                false if is_given(values, "listen") || is_given(values, "tls-listen") => {
                    ", and no helenus dev of this user listens at the given address"
                }
                false => ", and no helenus dev of this user runs",
            };
            Err(format!(
                "no server has {} open{dev}: give --data as to the server, or --admin-listen ADDRESS:PORT (or HELENUS_ADMIN_LISTEN)",
                config.data
            )
            .into())
        }
    }
}
