//! Logins by certificates of clients, seen from outside the program.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use helenus_base::permissions::{PRIVATE, PUBLIC, write};
use helenus_types::wire::Version;
use helenus_types::wire::request::{AuthResponse, Request, Startup};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::raw::Client;
use crate::security::{Program, wait_for};

const SHOP: &str = "spiffe://test/shop";
const UNAUTHORIZED: u32 = 0x2100;

/// An authority, which signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    fn sign(&self, names: &[&str], is_expired: bool) -> Shown {
        let (params, key) = asked(names, is_expired);
        Some((params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem()))
    }
}

/// Certificate and key of a client.
type Shown = Option<(String, String)>;

fn asked(names: &[&str], is_expired: bool) -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let uris = names.iter().map(|name| SanType::URI((*name).try_into().unwrap()));
    params.subject_alt_names.extend(uris);
    if is_expired {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    }
    (params, KeyPair::generate().unwrap())
}

fn self_made(names: &[&str]) -> Shown {
    let (params, key) = asked(names, false);
    Some((params.self_signed(&key).unwrap().pem(), key.serialize_pem()))
}

/// Connects over TLS; the error is of the handshake, as far as the client knows it.
async fn connect(address: SocketAddr, server: &str, shown: &Shown) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(server.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    let socket = TcpStream::connect(address).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), socket).await
}

/// What the server shows, and its folder's files.
struct Files {
    server: String,
    key: String,
}

impl Files {
    fn put(folder: &Path, authority: &Authority) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (server, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        write(&folder.join("certificate.pem"), &server, PUBLIC).unwrap();
        write(&folder.join("key.pem"), &key, PRIVATE).unwrap();
        write(&folder.join("authorities.pem"), &authority.pem, PUBLIC).unwrap();
        Self { server, key }
    }
}

fn arguments(when: &'static str) -> impl FnOnce(&Path) -> Vec<String> {
    move |folder| {
        let file = |name: &str| folder.join(name).display().to_string();
        let mut words: Vec<String> = ["--login", "--password-cost", "4", "--tls-listen", "127.0.0.1:0"]
            .map(str::to_owned)
            .into();
        for (setting, value) in [
            ("--tls-certificate", file("certificate.pem")),
            ("--tls-key", file("key.pem")),
            ("--tls-client-ca", file("authorities.pem")),
            ("--tls-client-auth", when.to_owned()),
            ("--tls-reload-seconds", "0".to_owned()),
            ("--listen", "127.0.0.1:0".to_owned()),
        ] {
            words.extend([setting.to_owned(), value]);
        }
        words
    }
}

/// The address of TLS of a program.
fn tls_address(program: &Program) -> SocketAddr {
    program.record().tls.unwrap().parse().unwrap()
}

/// What came of a login: the client, the error, or `None` where the connection was ended.
enum Came {
    In(Box<Client<TlsStream<TcpStream>>>),
    Refused(u32, String),
    Ended,
}

/// Logs in with a password, which a client with a certificate does not need.
async fn login(address: SocketAddr, files: &Files, shown: &Shown, user: &str) -> Came {
    // The server judges a certificate after the client has ended its part of the handshake: the end may come later.
    let Ok(mut socket) = connect(address, &files.server, shown).await else {
        return Came::Ended;
    };
    let options = vec![("CQL_VERSION", "3.0.0")];
    let mut startup = Vec::new();
    Request::Startup(Startup { options }).write_frame(&mut startup, Version::V4, 0, 0);
    if socket.write_all(&startup).await.is_err() {
        return Came::Ended;
    }
    let mut client = Client::over(socket, Version::V4);
    let Some(answer) = client.frame().await else {
        return Came::Ended;
    };
    assert_eq!(answer.opcode, 3, "AUTHENTICATE");
    let token = Some(format!("\0{user}\0{user}").into_bytes().into());
    client.request(0, &Request::AuthResponse(AuthResponse { token })).await;
    let answer = client.frame().await.unwrap();
    if answer.opcode == 0 {
        let (code, text) = answer.error();
        return Came::Refused(code, text);
    }
    Came::In(Box::new(client))
}

impl Came {
    /// Asks; gives the code of the first error.
    async fn ask(&mut self, statements: &[&str]) -> Option<u32> {
        let Self::In(client) = self else {
            panic!("not logged in");
        };
        for statement in statements {
            client.query(1, statement).await;
            let answer = client.frame().await.unwrap();
            if answer.opcode == 0 {
                return Some(answer.error().0);
            }
        }
        None
    }

    fn text(self) -> String {
        match self {
            Self::In(_) => "in".into(),
            Self::Refused(0x0100, text) => text,
            Self::Refused(code, text) => format!("{code}: {text}"),
            Self::Ended => "ended".into(),
        }
    }
}

#[tokio::test]
async fn a_certificate_logs_in_as_the_role_of_its_identity() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let files = Files::put(folder.path(), &authority);
    let program = Program::start_in(folder, arguments("optional"));
    let address = tls_address(&program);
    // The first spiffe:// of several names counts; those before it are of other kinds.
    let shop = authority.sign(&["https://test/other", SHOP, "spiffe://test/idle"], false);
    let mut chief = login(address, &files, &None, "cassandra").await;
    let statements = [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)",
        "CREATE ROLE shop WITH LOGIN = true",
        "CREATE ROLE idle",
        "ADD IDENTITY 'spiffe://test/idle' TO ROLE 'idle'",
    ];
    assert_eq!(chief.ask(&statements).await, None);
    let text = |shown: Shown| {
        let files = &files;
        async move { login(address, files, &shown, "cassandra").await.text() }
    };
    let not_authorized = format!("Certificate identity '{SHOP}' not authorized");
    assert_eq!(text(shop.clone()).await, not_authorized);
    assert_eq!(
        chief.ask(&[&format!("ADD IDENTITY '{SHOP}' TO ROLE 'shop'")]).await,
        None
    );
    // Not cassandra, whose password it sends.
    let mut open = login(address, &files, &shop, "cassandra").await;
    assert_eq!(open.ask(&["SELECT * FROM ks.t"]).await, Some(UNAUTHORIZED));
    assert_eq!(chief.ask(&["GRANT SELECT ON ks.t TO shop"]).await, None);
    assert_eq!(open.ask(&["SELECT * FROM ks.t"]).await, None);
    assert_eq!(
        text(authority.sign(&["spiffe://test/idle"], false)).await,
        "idle is not permitted to log in"
    );
    for names in [&[][..], &["https://test/shop"], &["SPIFFE://test/shop"]] {
        let shown = authority.sign(names, false);
        assert_eq!(text(shown).await, "Unable to extract Spiffe from the certificate");
    }
    for shown in [
        Authority::new().sign(&[SHOP], false),
        authority.sign(&[SHOP], true),
        self_made(&[SHOP]),
    ] {
        let told = program.output().matches("certificate of a client refused").count();
        assert_eq!(text(shown).await, "ended");
        wait_for("the log line", || {
            (program.output().matches("certificate of a client refused").count() > told).then_some(())
        });
    }
    assert_eq!(chief.ask(&[&format!("DROP IDENTITY '{SHOP}'")]).await, None);
    assert_eq!(text(shop.clone()).await, not_authorized);
    let again = [&format!("ADD IDENTITY '{SHOP}' TO ROLE 'shop'"), "DROP ROLE shop"];
    assert_eq!(chief.ask(&again).await, None);
    assert_eq!(text(shop).await, not_authorized);
    program.kill();
}

#[tokio::test]
async fn a_certificate_that_is_required_and_authorities_that_change() {
    let (first, second) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let files = Files::put(folder.path(), &first);
    let program = Program::start_in(folder, arguments("optional"));
    let mut chief = login(tls_address(&program), &files, &None, "cassandra").await;
    let add = format!("ADD IDENTITY '{SHOP}' TO ROLE 'cassandra'");
    assert_eq!(chief.ask(&[&add]).await, None);
    let program = Program::start_in(program.kill(), arguments("required"));
    let address = tls_address(&program);
    let text = |shown: Shown| {
        let files = &files;
        async move { login(address, files, &shown, "cassandra").await.text() }
    };
    let (of_first, of_second) = (first.sign(&[SHOP], false), second.sign(&[SHOP], false));
    assert_eq!(text(None).await, "ended");
    assert_eq!(text(of_first.clone()).await, "in");
    assert_eq!(text(of_second.clone()).await, "ended");
    for (authorities, says, is_second) in [
        (second.pem.as_str(), "new connections get the new certificate", true),
        ("nothing", "the old one stays", true),
        (first.pem.as_str(), "new connections get the new certificate", false),
    ] {
        let told = program.output().matches(says).count();
        write(&program.path("authorities.pem"), authorities, PUBLIC).unwrap();
        program.signal("-HUP");
        wait_for(says, || (program.output().matches(says).count() > told).then_some(()));
        let (taken, refused) = if is_second {
            (&of_second, &of_first)
        } else {
            (&of_first, &of_second)
        };
        assert_eq!(text(taken.clone()).await, "in", "{says}");
        assert_eq!(text(refused.clone()).await, "ended", "{says}");
    }
    assert!(!files.key.is_empty() && !program.output().contains(&files.key));
    program.stop();
}
