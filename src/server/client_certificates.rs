//! Certificates of clients: who may have signed them, and the identity that a role is found by.
//!
//! ```text
//! handshake ── no certificate ─► optional: login by password; required: refused
//!     │
//!     ├─ signed by none of tls-client-ca, expired, self-made ─► refused, and logged
//!     └─ valid ─► first URI of the subject's alternative names that begins with spiffe:// ─► role of ADD IDENTITY
//! ```
//! As with Cassandra's `MutualTlsWithPasswordFallbackAuthenticator`, a client that shows a certificate logs in by it or not at all.
//! Sessions are not resumed, so that each connection is judged by the authorities of its own moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// Why the authorities of clients cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The file holds no certificate.
    #[error("{}: no certificate", path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
    /// A certificate is none of an authority.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// Certificates cannot be judged by them.
    #[error("authorities of clients: {0}")]
    Judge(#[from] rustls::server::VerifierBuilderError),
}

/// What an identity begins with.
const SPIFFE: &str = "spiffe://";

/// Whose certificates clients may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// PEM file with the authorities' certificates.
    pub authorities: PathBuf,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
}

/// A certificate that a client has shown and that is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    /// `None`: it has no such name.
    pub(super) identity: Option<String>,
}

impl ClientCertificate {
    /// Of the chain that a handshake has judged.
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

/// Judges the certificates of handshakes by the authorities that are current.
#[derive(Debug)]
pub(super) struct Judge {
    current: ArcSwap<Verifier>,
    is_required: bool,
}

impl Judge {
    /// By the authorities of a file.
    pub(super) fn new(trust: &ClientTrust) -> Result<Self, AuthoritiesError> {
        Ok(Self {
            current: ArcSwap::from_pointee(read(&trust.authorities)?),
            is_required: trust.is_required,
        })
    }

    /// By these from now on.
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

impl ClientCertVerifier for Judge {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    /// None: the names would be those of one moment, and a client that is given none shows what it has.
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
