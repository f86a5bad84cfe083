//! `helenus dev`: a server to try things with. Data in memory, the admin port on, plain and TLS connections on one port.

use std::path::{Path, PathBuf};

use super::Failure;
use super::record::{ServerRecord, Written};
use crate::config::{Config, Values};
use crate::server::{TlsIdentity, TlsOptions};
use helenus_base::permissions;

/// The verb's defaults, which replace the program's.
pub(super) fn suggest(values: &mut Values) {
    values.suggest("dev", "data", "memory:");
    values.suggest("dev", "admin-listen", "127.0.0.1:0");
}

/// The settings with one port for plain and TLS connections: the addresses of `listen`, or those of TLS if there are no
/// others.
///
/// # Errors
/// A value is invalid, or settings contradict each other.
pub(super) fn config(values: &Values) -> Result<Config, Failure> {
    let mut config = Config::new(values)?;
    let server = &mut config.server;
    let tls = server.tls.get_or_insert_with(|| TlsOptions {
        listen: Vec::new(),
        identity: TlsIdentity::SelfMade,
        clients: None,
    });
    if server.listen.is_empty() {
        server.listen.clone_from(&tls.listen);
    }
    // The host names in the certificate.
    tls.listen.clone_from(&server.listen);
    server.is_port_shared = true;
    Ok(config)
}

/// The file of the record of this user's `helenus dev`, in a directory that only the user can write to: that of the session, or else that
/// of programs' states. `None` means that there is no home.
pub(super) fn record_file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = || absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let directory = absolute("XDG_RUNTIME_DIR").or_else(state)?;
    Some(directory.join("helenus/dev.server"))
}

/// Writes the record where `helenus shell`, `status` and `health` look for it. A server that cannot write there serves all the same.
pub(super) fn note(record: &ServerRecord) -> Option<Written> {
    let file = record_file()?;
    let written = file
        .parent()
        .map_or(Ok(()), permissions::create_directory)
        .and_then(|()| record.write(&file));
    match written {
        Ok(written) => Some(written),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "helenus shell, status and health find this server by its address only");
            None
        }
    }
}

/// The record of this user's `helenus dev`. `None` means that there is none, or that the file is another user's.
pub(super) fn noted() -> Option<ServerRecord> {
    let file = record_file()?;
    is_own(&file)
        .then(|| ServerRecord::read(&file).ok().flatten())
        .flatten()
}

/// Whether a file belongs to the user of this process.
fn is_own(file: &Path) -> bool {
    let owner = std::fs::metadata(file).map(|found| std::os::unix::fs::MetadataExt::uid(&found));
    owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
}

/// How five drivers connect.
pub(super) fn connections(config: &Config, record: &ServerRecord) -> String {
    let Some(address) = record.cql.as_deref() else {
        return String::new();
    };
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "9042"));
    let center = &config.data_center;
    let (mut python, mut java, mut go, mut node, mut rust) = Default::default();
    if let (Some(user), Some(key)) = (&record.account, &record.key) {
        python = format!(", auth_provider=PlainTextAuthProvider('{user}', '{key}')");
        java = format!(".withAuthCredentials(\"{user}\", \"{key}\")");
        go = format!(
            "; cluster.Authenticator = gocql.PasswordAuthenticator{{Username: \"{user}\", Password: \"{key}\"}}"
        );
        node = format!(", credentials: {{ username: '{user}', password: '{key}' }}");
        rust = format!(".user(\"{user}\", \"{key}\")");
    }
    let verbs = "helenus shell, helenus status and helenus health find this server without arguments";
    let verbs = record_file().map(|_| ("verbs", verbs.to_owned()));
    let lines: [(&str, String); 6] = [
        ("python", format!("Cluster(['{host}'], port={port}{python}).connect()")),
        (
            "java",
            format!(
                "CqlSession.builder().addContactPoint(new InetSocketAddress(\"{host}\", {port})).withLocalDatacenter(\"{center}\"){java}.build()"
            ),
        ),
        ("go", format!("cluster := gocql.NewCluster(\"{address}\"){go}")),
        (
            "node",
            format!("new Client({{ contactPoints: ['{address}'], localDataCenter: '{center}'{node} }})"),
        ),
        (
            "rust",
            format!("SessionBuilder::new().known_node(\"{address}\"){rust}.build().await"),
        ),
        (
            "TLS",
            "on the same port; the certificate is in the record of --ready-json FILE".to_owned(),
        ),
    ];
    let lines = verbs.into_iter().chain(lines);
    lines.map(|(name, text)| format!("  {name:<7}{text}\n")).collect()
}
