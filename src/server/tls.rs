//! TLS: a certificate chain and a key, from PEM files or texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::listener::TlsIdentity;
use crate::permissions::{SecretError, check_secret};

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no certificate or key.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// Others can read the key.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file holds no certificate.
    #[error("{}: no certificate", path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
    /// A certificate was to be made at start, and was not.
    #[error("no certificate")]
    NotMade,
    /// A text that we have made or kept is none.
    #[error("self-made certificate: {0}")]
    Text(#[from] rustls::pki_types::pem::Error),
    /// Certificate and key cannot be used, or not together.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// What accepts TLS connections with this certificate chain and key.
///
/// # Errors
/// The files or texts cannot be read or used.
pub(super) fn acceptor(identity: &TlsIdentity) -> Result<TlsAcceptor, TlsError> {
    let (chain, key) = match identity {
        TlsIdentity::Files { certificate, key } => from_files(certificate, key)?,
        TlsIdentity::Texts { certificate, key } => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
            (chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)
        }
        TlsIdentity::SelfMade => return Err(TlsError::NotMade),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn from_files(certificate: &Path, key: &Path) -> Result<Pair, TlsError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    check_secret(key)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .map_err(file(certificate))?
        .collect::<Result<_, _>>()
        .map_err(file(certificate))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate {
            path: certificate.to_owned(),
        });
    }
    Ok((chain, PrivateKeyDer::from_pem_file(key).map_err(file(key))?))
}
