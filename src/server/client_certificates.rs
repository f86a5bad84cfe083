//! Certificates of clients: the accepted authorities, and the identity that selects a role.
//!
//! ```text
//! handshake ── no certificate ─► optional: login by password; required: refused
//!     │
//!     ├─ signed by none of tls-client-ca, expired, self-made ─► refused, and logged
//!     └─ valid ─► first URI of the subject's alternative names that begins with spiffe:// ─► role of ADD IDENTITY
//! ```
//! As with Cassandra's `MutualTlsWithPasswordFallbackAuthenticator`, a client that shows a certificate logs in by it or
//! not at all. Sessions are not resumed, so that each connection is checked against the current authorities. Lists of revoked
//! certificates are not read (Gap: role-2).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// Why the file of authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// The file holds no certificate.
    #[error("{}: no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate is not one of an authority.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The authorities cannot verify certificates.
    #[error("authorities of clients: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The prefix of an identity.
const SPIFFE: &str = "spiffe://";

/// Which client certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// PEM file with the authorities' certificates.
    pub authorities: PathBuf,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
}

/// A valid certificate that a client has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    /// `None` means it contains no such name.
    pub(super) identity: Option<String>,
}

impl ClientCertificate {
    /// The identity in the chain that a handshake has verified.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let shown = webpki::EndEntityCert::try_from(chain.first()?).ok();
        let identity = shown.and_then(|shown| {
            let mut names = shown.valid_uri_names();
            names.find(|name| name.starts_with(SPIFFE)).map(str::to_owned)
        });
        Some(Self { identity })
    }
}

type Verifier = Arc<dyn ClientCertVerifier>;

/// Verifies the certificates of handshakes against the current authorities.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    current: ArcSwap<Verifier>,
    is_required: bool,
}

impl ClientVerifier {
    /// With the authorities of a file.
    pub(super) fn new(trust: &ClientTrust) -> Result<Self, AuthoritiesError> {
        Ok(Self {
            current: ArcSwap::from_pointee(read(&trust.authorities)?),
            is_required: trust.is_required,
        })
    }

    /// Replaces the authorities from now on.
    pub(super) fn replace(&self, verifier: Verifier) {
        self.current.store(Arc::new(verifier));
    }
}

/// The authorities of a file.
pub(super) fn read(path: &Path) -> Result<Verifier, AuthoritiesError> {
    let file = |source| AuthoritiesError::File {
        path: path.to_owned(),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(file)? {
        roots
            .add(certificate.map_err(file)?)
            .map_err(|source| AuthoritiesError::Certificate {
                path: path.to_owned(),
                source,
            })?;
    }
    if roots.is_empty() {
        return Err(AuthoritiesError::NoCertificate { path: path.to_owned() });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    /// Empty: the names would soon be outdated, and a client that receives none shows the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.current.load().verify_client_cert(shown, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current.load().verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current.load().verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current.load().supported_verify_schemes()
    }
}
