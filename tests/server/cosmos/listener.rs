//! How clients connect: port, TLS, versions, account and key, compression.

use std::sync::Arc;

use helenus::config::{Config, Values};
use helenus_types::wire::Version;
use helenus_types::wire::request::{Request, Startup};

use super::{KEY, login, start};
use crate::raw::Client;

#[tokio::test]
async fn listener_speaks_tls_on_the_port_of_cosmos() {
    // Source: "Apache Cassandra features supported by Azure Cosmos DB" (support.md): port 10350, TLS 1.2, account and key.
    let given = [("profile".to_owned(), vec!["cosmos".to_owned()])];
    let default = Config::new(&Values::gather(None, &given.into(), |_| None).unwrap()).unwrap();
    assert!(default.server.listen.is_empty());
    assert_eq!(default.server.tls.unwrap().listen, ["127.0.0.1:10350".parse().unwrap()]);

    let server = start(&[]).await;
    let certificate = server.certificate().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    let certificate = <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(
        certificate.as_bytes(),
    );
    roots.add(certificate.unwrap()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    // Version 4 is spoken, 3 and 5 are tolerated.
    for version in Version::ALL {
        for (key, opcode) in [(KEY, 16), ("wrong", 0)] {
            let socket = tokio::net::TcpStream::connect(server.tls_address().unwrap())
                .await
                .unwrap();
            let name = "localhost".try_into().unwrap();
            let socket = connector.connect(name, socket).await.unwrap();
            let mut client = Client::over(socket, version);
            let answer = login(&mut client, key).await;
            assert_eq!(answer.opcode, opcode, "{version:?}");
            if opcode == 0 {
                // Source: monitor-reference.md: bad credentials are 256.
                assert_eq!(answer.error().0, 0x0100);
            }
        }
    }
}

#[tokio::test]
async fn compression_is_neither_offered_nor_taken() {
    // Source: gocql#1205.
    let server = start(&[]).await;
    let mut client = Client::connect(server.address(), Version::V4).await;
    client.options(1).await;
    let supported = client.frame().await.unwrap();
    let text = String::from_utf8_lossy(&supported.body).into_owned();
    assert!(!text.contains("lz4") && !text.contains("snappy"), "{text}");
    assert!(text.contains("4/v4") && text.contains("3.4.4"), "{text}");
    let options = vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "lz4")];
    client.request(1, &Request::Startup(Startup { options })).await;
    let (code, text) = client.frame().await.unwrap().error();
    assert_eq!(
        (code, text.as_str()),
        (0x000A, "Cql request had unsupported headers Compression")
    );
}
