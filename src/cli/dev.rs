//! `helenus dev`: a server to try things with. Data in memory, the admin port on, plain and TLS connections on one port.

use super::Failure;
use super::record::ServerRecord;
use crate::config::{Config, Values};
use crate::server::{TlsIdentity, TlsOptions};

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
    lines.map(|(name, text)| format!("  {name:<7}{text}\n")).concat()
}
