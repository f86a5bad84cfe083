//! What an attacker meets, seen from outside the program: guesses, log lines, certificates that change, secrets in logs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use helenus::cli::record::ServerRecord;
use helenus::server::{Credentials, Options};
use helenus_base::clock::Clock;
use helenus_base::permissions::{PRIVATE, PUBLIC, write};
use helenus_types::wire::Version;
use helenus_types::wire::request::{AuthResponse, Execute, Params, Prepare, Query, Request, Startup, Values};
use helenus_types::wire::value::Value;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpStream;

use crate::raw::{Client, Frame, start_with};

/// Says STARTUP and logs in; gives the answer.
pub(crate) async fn login(address: SocketAddr, user: &str, password: &str) -> (Client, Frame) {
    let mut client = Client::connect(address, Version::V4).await;
    let options = vec![("CQL_VERSION", "3.0.0")];
    client.request(0, &Request::Startup(Startup { options })).await;
    assert_eq!(client.frame().await.unwrap().opcode, 3, "AUTHENTICATE");
    let token = Some(format!("\0{user}\0{password}").into_bytes().into());
    client.request(0, &Request::AuthResponse(AuthResponse { token })).await;
    let answer = client.frame().await.unwrap();
    (client, answer)
}

#[tokio::test]
async fn the_right_password_is_taken_while_its_address_is_attacked() {
    let server = start_with(Options {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        credentials: Some(Credentials {
            user: "ada".into(),
            password: "secret".into(),
        }),
        ..Options::default()
    })
    .await;
    let address = server.addresses()[0];
    let mut attackers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        attackers.spawn(async move {
            loop {
                assert_eq!(login(address, "ada", "guess").await.1.opcode, 0);
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..3 {
        let clock = Clock::system();
        let (mut client, answer) = login(address, "ada", "secret").await;
        assert_eq!(answer.opcode, 0x10, "AUTH_SUCCESS");
        assert!(
            clock.monotonic() < Duration::from_millis(2500),
            "{:?}",
            clock.monotonic()
        );
        client.query(1, "void").await;
        assert_eq!(client.frame().await.unwrap().opcode, 8);
    }
    attackers.abort_all();
    while let Some(ended) = attackers.join_next().await {
        assert!(
            ended.unwrap_err().is_cancelled(),
            "an attacker met something else than a refusal"
        );
    }
}

/// The program, with what it prints in a file.
pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Program {
    fn start(prepare: impl FnOnce(&Path), arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        Self::start_in(folder, arguments)
    }

    /// With its data in a folder.
    pub(crate) fn start_in(folder: tempfile::TempDir, arguments: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let (output, ready) = (folder.path().join("output"), folder.path().join("ready"));
        let file = File::create(&output).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_helenus"))
            .args(arguments(folder.path()))
            .arg("--data")
            .arg(format!("file:{}", folder.path().join("data").display()))
            .arg("--ready-file")
            .arg(&ready)
            // It ends with this process, however that ends.
            .arg("--exit-with-stdin")
            .env_remove("HELENUS_CONFIG")
            .stdin(Stdio::piped())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let address = wait_for("it is ready", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {}", read(&output));
            std::fs::read_to_string(&ready).ok()?.trim().parse().ok()
        });
        Self { child, address, folder }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    pub(crate) fn output(&self) -> String {
        read(&self.folder.path().join("output"))
    }

    /// A file of its folder.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// What it says of itself in its data directory.
    pub(crate) fn record(&self) -> ServerRecord {
        let path = ServerRecord::path(&self.folder.path().join("data"));
        wait_for("its record", || ServerRecord::read(&path).unwrap())
    }

    /// Kills it; gives its folder.
    pub(crate) fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::fs::remove_file(self.folder.path().join("ready")).unwrap();
        self.folder
    }

    /// Ends it; gives all that it has printed.
    pub(crate) fn stop(mut self) -> String {
        self.signal("-TERM");
        wait_for("it ends", || self.child.try_wait().unwrap());
        self.output()
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = Clock::system();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock.monotonic() < Duration::from_secs(30), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn with_user(more: &[&str]) -> impl FnOnce(&Path) -> Vec<String> {
    let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
    move |folder| {
        let password = folder.join("password").display().to_string();
        let mut arguments: Vec<String> = ["--listen", "127.0.0.1:0", "--user", "ada", "--password-file", &password]
            .map(str::to_owned)
            .into();
        arguments.extend(more);
        arguments
    }
}

fn put_password(folder: &Path) {
    write(&folder.join("password"), "MARKER-of-the-password\n", PRIVATE).unwrap();
}

#[tokio::test]
async fn a_refused_name_writes_no_line_and_no_novel_to_the_log() {
    for format in ["human", "json"] {
        let program = Program::start(put_password, with_user(&["--log-format", format]));
        let line = "x\n2026-11-22T00:00:00.000000Z  INFO helenus: login accepted user=admin\u{1b}[2K\r";
        let long = "y".repeat(60_000);
        for name in [line, &long] {
            let (_, answer) = login(program.address, name, "wrong").await;
            assert_eq!(answer.error().0, 0x0100);
        }
        let printed = program.stop();
        let refusals: Vec<&str> = printed.lines().filter(|line| line.contains("login refused")).collect();
        assert_eq!(refusals.len(), 2, "{printed}");
        assert!(refusals.iter().all(|line| line.len() < 500), "{printed}");
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!printed.chars().any(is_control), "{printed}");
        assert!(
            !printed
                .lines()
                .any(|line| line.starts_with("2026-11-22T00:00:00.000000Z")),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn no_secret_reaches_a_log_at_any_level() {
    for format in ["human", "json"] {
        let program = Program::start(put_password, with_user(&["--log-format", format, "--log", "trace"]));
        let (_, answer) = login(program.address, "ada", "MARKER-of-a-guess").await;
        assert_eq!(answer.error().0, 0x0100);
        let (mut client, answer) = login(program.address, "ada", "MARKER-of-the-password").await;
        assert_eq!(answer.opcode, 0x10);
        for statement in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k text PRIMARY KEY, v text, n int)",
            "INSERT INTO ks.t (k, v) VALUES ('MARKER-of-a-key', 'MARKER-of-a-literal')",
            "UPDATE ks.t SET v = 'MARKER-of-an-update' WHERE k = 'MARKER-of-a-key' IF v = 'MARKER-of-a-condition'",
            "SELECT * FROM ks.t WHERE k = 'MARKER-of-a-key'",
            "DELETE FROM ks.t WHERE k = 'MARKER-of-a-deleted-key'",
            "INSERT INTO ks.t (k, n) VALUES ('MARKER-of-an-error', 'MARKER-of-a-wrong-type')",
            "SELECT 'MARKER-of-a-syntax-error FROM",
        ] {
            client.query(1, statement).await;
            client.frame().await.unwrap();
        }
        bind_markers(&mut client).await;
        let printed = program.stop();
        assert!(printed.contains("TRACE"), "the level is on");
        assert!(
            printed.contains("login refused") && printed.contains("stopped"),
            "the end of the log is there"
        );
        let found: Vec<&str> = printed.lines().filter(|line| line.contains("MARKER")).collect();
        assert!(found.is_empty(), "{} lines, as {}", found.len(), found[0]);
        // Bytes, as a derived Debug of a slice prints them.
        let bytes = format!("{:?}", b"MARKER");
        assert!(
            !printed.contains(bytes.trim_matches(['[', ']'])),
            "a value is printed as numbers"
        );
    }
}

/// Values bound in a QUERY, and in an EXECUTE of what was prepared.
async fn bind_markers(client: &mut Client) {
    let params = |values: &[&'static str]| Params {
        values: Values::Positional(values.iter().map(|value| Value::Bytes((*value).into())).collect()),
        ..Params::default()
    };
    let text = "INSERT INTO ks.t (k, v) VALUES (?, ?)";
    let values = ["MARKER-of-a-bound-key", "MARKER-of-a-bound-value"];
    let query = Query {
        text,
        params: params(&values),
    };
    client.request(2, &Request::Query(query)).await;
    assert_eq!(client.frame().await.unwrap().opcode, 8);
    client
        .request(3, &Request::Prepare(Prepare { text, keyspace: None }))
        .await;
    let prepared = client.frame().await.unwrap().body;
    let length = usize::from(u16::from_be_bytes([prepared[4], prepared[5]]));
    // One that is right, and one with a value too many, which is refused.
    for (values, opcode) in [(&values[..], 8), (&[values[0], values[1], "MARKER-of-one-too-many"], 0)] {
        let execute = Execute {
            id: &prepared[6..6 + length],
            result_metadata_id: None,
            params: params(values),
        };
        client.request(4, &Request::Execute(execute)).await;
        assert_eq!(client.frame().await.unwrap().opcode, opcode);
    }
}

/// Whether the server shows this certificate, or one signed by it, to a new connection.
async fn shows(address: SocketAddr, certificate: &str) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), socket).await.is_ok()
}

fn made() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn put(folder: &Path, certificate: &str, key: &str) {
    write(&folder.join("certificate.pem"), certificate, PUBLIC).unwrap();
    write(&folder.join("key.pem"), key, PRIVATE).unwrap();
}

#[tokio::test]
async fn a_certificate_that_changes_is_shown_without_a_restart() {
    // On a signal, and by looking each second.
    for (seconds, by_signal) in [("0", true), ("1", false)] {
        let (first, second, third) = (made(), made(), made());
        let program = Program::start(
            |folder| put(folder, &first.0, &first.1),
            |folder| {
                let file = |name: &str| folder.join(name).display().to_string();
                let (certificate, key) = (file("certificate.pem"), file("key.pem"));
                let words = [
                    "--profile",
                    "cosmos",
                    "--tls-listen",
                    "127.0.0.1:0",
                    "--tls-reload-seconds",
                    seconds,
                ];
                let files = ["--tls-certificate", &certificate, "--tls-key", &key];
                words.into_iter().chain(files).map(str::to_owned).collect()
            },
        );
        let folder = program.folder.path();
        assert!(shows(program.address, &first.0).await);
        let old = TcpStream::connect(program.address).await.unwrap();
        for (put_now, shown, says) in [
            (
                (&second.0, &second.1),
                &second.0,
                "new connections get the new certificate",
            ),
            // A key that does not belong to the certificate: the old pair stays.
            ((&third.0, &first.1), &second.0, "the old one stays"),
            (
                (&third.0, &third.1),
                &third.0,
                "new connections get the new certificate",
            ),
        ] {
            let told = program.output().matches(says).count();
            put(folder, put_now.0, put_now.1);
            if by_signal {
                program.signal("-HUP");
            }
            wait_for(says, || (program.output().matches(says).count() > told).then_some(()));
            assert!(shows(program.address, shown).await, "{says}");
        }
        assert!(!shows(program.address, &first.0).await);
        drop(old);
        program.stop();
    }
}
