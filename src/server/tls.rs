//! TLS: a certificate chain and a key, from PEM files or texts; files are reloaded when they change.
//!
//! ```text
//! files ── acceptor(), at start: an error refuses the start
//!   │                                 ┌──────────────┐
//!   └── Certificates::check(), later ─►│ current pair │─► each handshake uses the current pair
//!       an error keeps the old pair   └──────────────┘
//! ```
//! A check is due on SIGHUP and every `tls-reload-seconds` (`assembly::run`); it reads the files only if their stamp has
//! changed. Open connections are not affected.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use super::client_certificates::{self, AuthoritiesError, ClientTrust, ClientVerifier};
use helenus_base::permissions::{SecretError, check_secret};

/// The certificate that a server shows.
#[derive(Clone, PartialEq, Eq)]
pub enum TlsIdentity {
    /// In PEM files.
    Files {
        /// The certificate and its chain.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// PEM texts.
    Texts {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: String,
    },
    /// Made by the server when it starts.
    SelfMade,
}

impl std::fmt::Debug for TlsIdentity {
    /// Prints no key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Files { certificate, .. } => formatter.debug_tuple("Files").field(certificate).finish(),
            Self::Texts { .. } => formatter.write_str("Texts"),
            Self::SelfMade => formatter.write_str("SelfMade"),
        }
    }
}

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds no certificate or key.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// Other users can read the key.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file holds no certificate.
    #[error("{}: no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The certificate should have been generated at the start.
    #[error("no certificate")]
    NotMade,
    /// A generated or stored text is not valid PEM.
    #[error("self-made certificate: {0}")]
    Text(#[from] rustls::pki_types::pem::Error),
    /// The authorities of clients cannot be used.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// Certificate and key cannot be used, or not together.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// The pair that the next handshake uses.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The current certificate of the TLS addresses. Clones share it.
#[derive(Clone, Debug)]
pub struct Certificates {
    current: Arc<Current>,
    /// Verifies clients' certificates. `None` means none is requested.
    client_verifier: Option<Arc<ClientVerifier>>,
    /// `None` means texts, which do not change.
    files: Option<Arc<Files>>,
}

#[derive(Debug)]
struct Files {
    /// Certificate and key. `None` means texts.
    pair: Option<[PathBuf; 2]>,
    /// The file of the authorities of clients' certificates.
    authorities: Option<PathBuf>,
    /// The stamp of the files when they were last read, successfully or not.
    seen: Mutex<Stamp>,
}

/// Identifies a version of the files: writing, renaming or linking a file into place changes at least one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamp(Vec<Option<(SystemTime, u64, u64)>>);

impl Files {
    fn stamp(&self) -> Stamp {
        let paths = self.pair.iter().flatten().chain(&self.authorities);
        let of = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            #[cfg(unix)]
            let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
            #[cfg(not(unix))]
            let inode = 0;
            Some((metadata.modified().ok()?, metadata.len(), inode))
        };
        Stamp(paths.map(of).collect())
    }
}

/// The result of a check of the files.
#[derive(Debug)]
pub enum Reload {
    /// The files hold the current certificate, or there are only texts.
    Unchanged,
    /// The next handshake takes the new certificate.
    Replaced,
    /// The files cannot be used; the old certificate stays. Returned once, until the files change again.
    Kept(TlsError),
}

impl Certificates {
    /// Checks the files, and loads them if they have changed since the last check, or in any case.
    #[must_use]
    pub fn check(&self, in_any_case: bool) -> Reload {
        let Some(files) = &self.files else {
            return Reload::Unchanged;
        };
        // Taken before the files are read, so that the next check sees a concurrent change.
        let stamp = files.stamp();
        let mut seen = files.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == stamp && !in_any_case {
            return Reload::Unchanged;
        }
        *seen = stamp;
        match self.take(files) {
            Ok(()) => Reload::Replaced,
            Err(error) => Reload::Kept(error),
        }
    }

    /// An acceptor with the same certificate, now and later, that asks clients for none: their requests are signed.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn acceptor_without_clients(&self) -> Result<TlsAcceptor, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&self.current));
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Loads all the files, or nothing.
    fn take(&self, files: &Files) -> Result<(), TlsError> {
        let pair = match &files.pair {
            Some([certificate, key]) => Some(from_files(certificate, key).and_then(usable)?),
            None => None,
        };
        if let (Some(client_verifier), Some(path)) = (&self.client_verifier, &files.authorities) {
            client_verifier.replace(client_certificates::read(path)?);
        }
        if let Some(pair) = pair {
            self.current.0.store(Arc::new(pair));
        }
        Ok(())
    }
}

/// The acceptor of TLS connections with this certificate chain and key and these trusted clients, and a handle to its
/// certificate.
///
/// # Errors
/// The files or texts cannot be read or used.
pub(super) fn acceptor(
    identity: &TlsIdentity,
    clients: Option<&ClientTrust>,
) -> Result<(TlsAcceptor, Certificates), TlsError> {
    let watched = Files {
        pair: match identity {
            TlsIdentity::Files { certificate, key } => Some([certificate.clone(), key.clone()]),
            TlsIdentity::Texts { .. } | TlsIdentity::SelfMade => None,
        },
        authorities: clients.map(|clients| clients.authorities.clone()),
        seen: Mutex::default(),
    };
    // Taken before the files are read, so that the first check sees a concurrent change.
    *watched.seen.lock().unwrap_or_else(PoisonError::into_inner) = watched.stamp();
    let is_watched = watched.pair.is_some() || watched.authorities.is_some();
    let files = is_watched.then(|| Arc::new(watched));
    let pair = match identity {
        TlsIdentity::Files { certificate, key } => from_files(certificate, key)?,
        TlsIdentity::Texts { certificate, key } => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
            (chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)
        }
        TlsIdentity::SelfMade => return Err(TlsError::NotMade),
    };
    let current = Arc::new(Current(ArcSwap::from_pointee(usable(pair)?)));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client_verifier = clients.map(ClientVerifier::new).transpose()?.map(Arc::new);
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = match &client_verifier {
        Some(client_verifier) => config.with_client_cert_verifier(Arc::<ClientVerifier>::clone(client_verifier)),
        None => config.with_no_client_auth(),
    }
    .with_cert_resolver(Arc::<Current>::clone(&current));
    if client_verifier.is_some() {
        // A resumed session would not be verified again.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    let certificates = Certificates {
        current,
        client_verifier,
        files,
    };
    Ok((TlsAcceptor::from(Arc::new(config)), certificates))
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Certificate and key, if they belong together.
fn usable((chain, key): Pair) -> Result<CertifiedKey, TlsError> {
    let provider = rustls::crypto::ring::default_provider();
    Ok(CertifiedKey::from_der(chain, key, &provider)?)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::permissions::{PRIVATE, PUBLIC, write};

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn files_that_change_are_taken_and_broken_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        let put = |pair: &(String, String)| {
            write(&certificate, &pair.0, PUBLIC).unwrap();
            write(&key, &pair.1, PRIVATE).unwrap();
        };
        let (first, second) = (made(), made());
        put(&first);
        let identity = TlsIdentity::Files {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let (_, certificates) = acceptor(&identity, None).unwrap();
        let shows = |pair: &(String, String)| {
            let of = CertificateDer::from_pem_slice(pair.0.as_bytes()).unwrap();
            certificates.current.0.load().cert == [of]
        };
        assert!(shows(&first));
        assert!(matches!(certificates.check(false), Reload::Unchanged));
        put(&second);
        assert!(matches!(certificates.check(false), Reload::Replaced) && shows(&second));
        for (broken, says) in [
            ((first.0.clone(), second.1.clone()), "match"),
            (
                ("no certificate".into(), second.1.clone()),
                "certificate.pem: no certificate",
            ),
            ((second.0.clone(), "no key".into()), "key.pem"),
        ] {
            put(&broken);
            let Reload::Kept(error) = certificates.check(false) else {
                panic!("{broken:?}");
            };
            assert!(error.to_string().to_lowercase().contains(says), "{error}");
            assert!(shows(&second), "the old one stays");
            assert!(matches!(certificates.check(false), Reload::Unchanged), "told once");
            assert!(
                matches!(certificates.check(true), Reload::Kept(_)),
                "asked for, told again"
            );
        }
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(certificates.check(false), Reload::Kept(_)) && shows(&second));
        put(&first);
        #[cfg(unix)]
        {
            helenus_base::permissions::set_mode(&key, 0o644).unwrap();
            assert!(matches!(certificates.check(true), Reload::Kept(TlsError::Secret(_))));
            put(&first);
        }
        assert!(matches!(certificates.check(true), Reload::Replaced) && shows(&first));
    }
}
