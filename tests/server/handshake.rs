//! How a connection begins, in each version: OPTIONS, STARTUP, compression, logins, TLS, events; and how it ends.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::raw::{Client, Frame, envelope, start, start_with};
use helenus::server::{Credentials, Limits, Options, TlsIdentity, TlsOptions};
use helenus_types::wire::request::{AuthResponse, EventKind, Register, Request, Startup};
use helenus_types::wire::response::{Event, StatusChange};
use helenus_types::wire::{Compression, Version};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn string_lists(body: &[u8]) -> Vec<(String, Vec<String>)> {
    let mut at = 0;
    let short = |at: &mut usize| {
        *at += 2;
        usize::from(u16::from_be_bytes([body[*at - 2], body[*at - 1]]))
    };
    let string = |at: &mut usize| {
        let length = short(at);
        *at += length;
        String::from_utf8(body[*at - length..*at].to_vec()).unwrap()
    };
    (0..short(&mut at))
        .map(|_| (string(&mut at), (0..short(&mut at)).map(|_| string(&mut at)).collect()))
        .collect()
}

/// Every line of what Cassandra answered to OPTIONS, STARTUP and unknown versions.
fn recorded() -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/supported.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn handshakes_answer_as_recorded() {
    let server = start(Limits::default()).await;
    for entry in recorded() {
        let number = entry["version"].as_u64().unwrap() as u8;
        let version = Version::from_byte(number).unwrap_or(Version::V4);
        let mut client = Client::connect(server.addresses()[0], version).await;
        let message = entry["message"].as_str().map(str::to_owned);
        if let Some(options) = entry.get("startup") {
            let options = options.as_object().unwrap();
            let options = options
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str().unwrap()))
                .collect();
            client.request(1, &Request::Startup(Startup { options })).await;
        } else if let Some(text) = entry.get("query before startup") {
            client.query(1, text.as_str().unwrap()).await;
        } else if Version::from_byte(number).is_some() {
            client.options(1).await;
            let frame = client.frame().await.unwrap();
            assert_eq!((frame.version, frame.opcode), (0x80 | number, 6));
            for (key, ours) in string_lists(&frame.body) {
                let theirs: Vec<&str> = entry["options"][&key]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_str().unwrap())
                    .collect();
                // Differs: the beta version 6 is not spoken here, so it is not offered.
                let theirs: Vec<&str> = theirs.into_iter().filter(|name| *name != "6/v6-beta").collect();
                assert_eq!(ours, theirs, "{key}");
            }
            continue;
        } else {
            // Refused versions are held by malformed.rs beside this file: the text names the versions spoken here, which are others.
            continue;
        }
        let frame = client.frame().await.unwrap();
        match message {
            Some(message) => assert_eq!(frame.error(), (0x000A, message)),
            None => assert_eq!(u64::from(frame.opcode), entry["opcode"].as_u64().unwrap()),
        }
    }
}

#[tokio::test]
async fn drivers_send_their_first_requests_together() {
    // Java sends OPTIONS and STARTUP without waiting; after STARTUP the same bytes may hold segments.
    let server = start(Limits::default()).await;
    for version in Version::ALL {
        let mut client = Client::connect(server.addresses()[0], version).await;
        let mut bytes = Vec::new();
        Request::Options.write_frame(&mut bytes, version, 1, 0);
        let startup = Request::Startup(Startup {
            options: vec![("CQL_VERSION", "3.0.0")],
        });
        startup.write_frame(&mut bytes, version, 2, 0);
        let mut query = Vec::new();
        Request::Options.write_frame(&mut query, version, 3, 0);
        bytes.extend(if version == Version::V5 {
            crate::raw::segment(&query, true)
        } else {
            query
        });
        client.bytes(&bytes).await;
        assert_eq!(client.frame().await.unwrap().opcode, 6);
        assert_eq!(client.frame().await.unwrap().opcode, 2);
        client.segments = version == Version::V5;
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.opcode, frame.stream), (6, 3));
    }
}

#[tokio::test]
async fn compressed_connections() {
    let server = start(Limits::default()).await;
    for (version, name) in [
        (Version::V3, "lz4"),
        (Version::V3, "snappy"),
        (Version::V4, "lz4"),
        (Version::V4, "snappy"),
    ] {
        let mut client = Client::connect(server.addresses()[0], version).await;
        let options = vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", name)];
        client.request(0, &Request::Startup(Startup { options })).await;
        assert_eq!(client.frame().await.unwrap().opcode, 2);
        // A plain request on a compressed connection is fine, a small answer is plain, a large one is compressed.
        client.query(1, "void").await;
        assert_eq!(client.frame().await.unwrap().flags & 1, 0);
        client.query(2, "bytes 100000").await;
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.stream, frame.flags & 1), (2, 1));
        assert!(frame.body.len() < 10_000);
        // Garbage that says it is compressed is answered on its stream.
        client
            .envelope(&envelope(version, 1, 3, 7, &[0, 0, 255, 255, 1, 2, 3]))
            .await;
        assert_eq!(client.frame().await.unwrap().error().0, 0x000A);
        assert_eq!(Compression::from_name(name).unwrap().name(), name);
    }
}

#[tokio::test]
async fn logging_in() {
    let credentials = Credentials {
        user: "ada".into(),
        password: "secret".into(),
    };
    let server = start_with(Options {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        credentials: Some(credentials),
        ..Options::default()
    })
    .await;
    let login = |token: &'static [u8]| {
        Request::AuthResponse(AuthResponse {
            token: Some(token.into()),
        })
    };
    for version in Version::ALL {
        for (token, right) in [(b"\0ada\0secret".as_slice(), true), (b"\0ada\0wrong", false)] {
            let mut client = Client::connect(server.addresses()[0], version).await;
            client
                .request(
                    0,
                    &Request::Startup(Startup {
                        options: vec![("CQL_VERSION", "3.0.0")],
                    }),
                )
                .await;
            let frame = client.frame().await.unwrap();
            assert_eq!(frame.opcode, 3);
            assert!(String::from_utf8_lossy(&frame.body).ends_with("org.apache.cassandra.auth.PasswordAuthenticator"));
            client.segments = version == Version::V5;
            client.query(1, "void").await;
            assert_eq!(client.frame().await.unwrap().error().0, 0x000A);
            client.request(2, &login(token)).await;
            let frame = client.frame().await.unwrap();
            if right {
                assert_eq!((frame.opcode, frame.body.as_slice()), (0x10, [0xFF; 4].as_slice()));
                client.query(3, "void").await;
                assert_eq!(client.frame().await.unwrap().opcode, 8);
            } else {
                let text = "Provided username ada and/or password are incorrect";
                assert_eq!(frame.error(), (0x0100, text.into()));
                assert!(client.closed().await);
            }
        }
    }
}

#[tokio::test]
async fn events_go_to_those_who_registered_before_the_answer() {
    let server = start(Limits::default()).await;
    for version in Version::ALL {
        let mut changer = Client::ready(server.addresses()[0], version).await;
        let mut listener = Client::ready(server.addresses()[0], version).await;
        for client in [&mut changer, &mut listener] {
            let kinds = vec![EventKind::SchemaChange, EventKind::StatusChange];
            client.request(1, &Request::Register(Register { kinds })).await;
            assert_eq!(client.frame().await.unwrap().opcode, 2);
        }
        let mut deaf = Client::ready(server.addresses()[0], version).await;
        changer.query(2, "change").await;
        let is_event = |frame: &Frame| (frame.stream, frame.opcode) == (-1, 0x0C);
        assert!(is_event(&changer.frame().await.unwrap()));
        assert_eq!(changer.frame().await.unwrap().stream, 2);
        assert!(is_event(&listener.frame().await.unwrap()));
        server
            .events()
            .emit(Event::Status(StatusChange::Up, "127.0.0.1:9042".parse().unwrap()));
        assert!(is_event(&listener.frame().await.unwrap()));
        deaf.options(1).await;
        assert_eq!(deaf.frame().await.unwrap().opcode, 6);
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls")).join(name)
}

/// The key as a server takes it: a checkout lets others read it.
fn private_key(folder: &Path) -> PathBuf {
    let path = folder.join("key.pem");
    let text = std::fs::read_to_string(fixture("key.pem")).unwrap();
    helenus_base::permissions::write(&path, &text, helenus_base::permissions::PRIVATE).unwrap();
    path
}

#[tokio::test]
async fn tls_has_its_own_port() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(Options {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        tls: Some(TlsOptions {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            identity: TlsIdentity::Files {
                certificate: fixture("certificate.pem"),
                key: private_key(folder.path()),
            },
            clients: None,
        }),
        limits: Limits {
            login_deadline: Duration::from_millis(500),
            ..Limits::default()
        },
        ..Options::default()
    })
    .await;
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(fixture("certificate.pem")).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    for version in Version::ALL {
        let socket = TcpStream::connect(server.tls_addresses()[0]).await.unwrap();
        let socket = connector
            .connect("localhost".try_into().unwrap(), socket)
            .await
            .unwrap();
        let mut client = Client::over(socket, version);
        client.start().await;
        client.query(1, "bytes 300000").await;
        assert_eq!(client.frame().await.unwrap().body.len(), 300_004);
    }
    // Plain bytes on the TLS port get no answer, and silence there meets the deadline.
    let mut plain = Client::connect(server.tls_addresses()[0], Version::V4).await;
    plain.options(1).await;
    let mut rest = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut plain.socket, &mut rest).await;
    assert!(rest.first().is_none_or(|byte| *byte != 0x84));
    let mut silent = Client::connect(server.tls_addresses()[0], Version::V4).await;
    assert!(silent.closed().await);
}

#[tokio::test]
async fn draining_answers_what_is_in_work() {
    for version in Version::ALL {
        let server = start(Limits::default()).await;
        let address = server.addresses()[0];
        let mut busy = Client::ready(address, version).await;
        let mut idle = Client::ready(address, version).await;
        busy.query(1, "slow").await;
        // Requests are read in their order: the first is in work once the second is answered.
        busy.query(2, "void").await;
        assert_eq!(busy.frame().await.unwrap().stream, 2);
        let drained = tokio::spawn(server.drain());
        assert_eq!(busy.frame().await.unwrap().opcode, 8);
        assert!(busy.closed().await);
        assert!(idle.closed().await);
        timeout(Duration::from_secs(5), drained).await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
    let server = start(Limits {
        drain: Duration::from_millis(200),
        ..Limits::default()
    })
    .await;
    let mut stuck = Client::ready(server.addresses()[0], Version::V4).await;
    stuck.query(1, "never").await;
    stuck.query(2, "void").await;
    assert_eq!(stuck.frame().await.unwrap().stream, 2);
    timeout(Duration::from_secs(2), server.drain()).await.unwrap();
    assert!(stuck.closed().await);
}
