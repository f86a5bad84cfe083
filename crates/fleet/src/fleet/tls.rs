//! Encryption between nodes, from the secret that they share: each node makes the same certificate of it, and a node that connects takes
//! no other.
//!
//! ```text
//! secret ── HMAC-SHA256, a label ──► seed of an Ed25519 key ──► certificate signed by itself, the same bytes on each node
//! ```
//! So nothing is to be configured, and a connection ends at somebody who knows the secret. The node that opens it
//! proves itself after that (`handshake`). The name that a connection asks for says which secret it begins with. While the secret is changed a node shows the
//! certificate that it is asked for, or else that of its current secret, and takes those of both.

use std::sync::Arc;

use ring::hmac;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};

use super::handshake::{Secret, Secrets};

const OF_KEY: &[u8] = b"helenus fleet 1 certificate";
const OF_NAME: &[u8] = b"helenus fleet 1 name";

/// What precedes the seed in the PKCS #8 form of an Ed25519 key (RFC 8410).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Of connections that others open.
    pub(super) server: Arc<ServerConfig>,
    /// Of those that this node opens.
    pub(super) client: Arc<ClientConfig>,
    /// The name that they ask for.
    pub(super) name: ServerName<'static>,
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate.
    #[error("the certificate between nodes cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// Its use.
    #[error("connections between nodes cannot be encrypted: {0}")]
    Use(#[from] Error),
}

impl Tls {
    /// The encryption among those who know these secrets.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn of(secrets: &Secrets) -> Result<Self, TlsError> {
        let provider = Arc::new(default_provider());
        let mut shown = Vec::new();
        for secret in std::iter::once(&secrets.current).chain(&secrets.other) {
            shown.push(Shown::of(secret, &provider)?);
        }
        let name = ServerName::try_from(name_of(&secrets.current));
        let name = name.map_err(|_| CertificateError::BadEncoding).map_err(Error::from)?;
        let taken = shown.iter().flat_map(|shown| shown.certified.cert.clone()).collect();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Asked(shown)));
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OneOf { taken, provider }))
            .with_no_client_auth();
        Ok(Self {
            server: Arc::new(server),
            client: Arc::new(client),
            name,
        })
    }
}

/// The name in the certificate of a secret.
fn name_of(secret: &Secret) -> String {
    let number = hmac::sign(&secret.key(), OF_NAME);
    let digits: String = number
        .as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{digits}.helenus")
}

/// The certificate of a secret.
#[derive(Debug)]
struct Shown {
    name: String,
    certified: Arc<CertifiedKey>,
}

impl Shown {
    fn of(secret: &Secret, provider: &CryptoProvider) -> Result<Self, TlsError> {
        let seed = hmac::sign(&secret.key(), OF_KEY);
        let key = PrivatePkcs8KeyDer::from([&PKCS8_PREFIX, seed.as_ref()].concat());
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519)?;
        let name = name_of(secret);
        let made = rcgen::CertificateParams::new([name.clone()])?.self_signed(&pair)?;
        let certified = CertifiedKey::from_der(vec![made.der().clone()], key.into(), provider)?;
        let certified = Arc::new(certified);
        Ok(Self { name, certified })
    }
}

/// Shows the certificate that is asked for, or else the first.
#[derive(Debug)]
struct Asked(Vec<Shown>);

impl ResolvesServerCert for Asked {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = self.0.iter().find(|shown| hello.server_name() == Some(&shown.name));
        asked.or(self.0.first()).map(|shown| Arc::clone(&shown.certified))
    }
}

/// Takes these certificates and no other.
#[derive(Debug)]
struct OneOf {
    taken: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OneOf {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.taken.iter().any(|taken| taken == shown) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Only TLS 1.3 is offered.
        Err(Error::General("no TLS 1.2 between nodes".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
