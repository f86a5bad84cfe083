//! The identity that a server in the profile `cosmos` generates if none is configured: a certificate for TLS, and the
//! account's key.
//!
//! ```text
//! DIR/cosmos/certificate.pem   the certificate: a client that verifies the server trusts it (readable by every user)
//! DIR/cosmos/key.pem           its key        (only its owner may read it)
//! DIR/cosmos/account-key       the password   (only its owner may read it)
//! ```
//! `DIR` is the directory of the data; both stay the same over restarts. Data in memory has none: each start makes new
//! ones. They are secrets, so they come from the system's randomness, not from the seed of all other random choices.
//! They are written after the store has taken the directory, which refuses one with unknown files.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::{Credentials, Options, TlsIdentity};
use helenus_base::permissions::{self, PRIVATE, PUBLIC};
use helenus_storage::storage::Url;

const FOLDER: &str = "cosmos";
pub(crate) const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const ACCOUNT_KEY: &str = "account-key";

/// Bytes of an account's key before encoding; as many as Cosmos's keys have.
const ACCOUNT_KEY_BYTES: usize = 64;

/// The file of the self-made certificate of a data directory.
#[must_use]
pub fn certificate_file(directory: &Path) -> PathBuf {
    directory.join(FOLDER).join(CERTIFICATE)
}

/// Why no identity could be made.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The system provides no randomness.
    #[error("no randomness: {0}")]
    Randomness(getrandom::Error),
    /// A file can be neither read nor written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The generated or stored identity.
pub struct Identity {
    directory: Option<PathBuf>,
    certificate: Option<(String, String)>,
    /// The generated key, to be shown. `None` means the settings have one.
    account_key: Option<String>,
}

impl std::fmt::Debug for Identity {
    /// Prints no key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Completes the options: the certificate if it is to be self-made, and the login of `account` if none is
    /// configured. Without an account there is no login.
    ///
    /// # Errors
    /// The stored identity cannot be read, or none can be made.
    pub fn complete(options: &mut Options, account: Option<&str>, data: &Url) -> Result<Self, IdentityError> {
        let directory = data.directory().map(|directory| directory.join(FOLDER));
        let mut identity = Self {
            directory,
            certificate: None,
            account_key: None,
        };
        if let Some(tls) = &mut options.tls
            && tls.identity == TlsIdentity::SelfMade
        {
            let (certificate, key) = match (identity.kept(CERTIFICATE)?, identity.kept(KEY)?) {
                (Some(certificate), Some(key)) => (certificate, key),
                _ => certificate(
                    account.unwrap_or("helenus"),
                    tls.listen.iter().map(std::net::SocketAddr::ip),
                )?,
            };
            identity.certificate = Some((certificate.clone(), key.clone()));
            tls.identity = TlsIdentity::Texts { certificate, key };
        }
        if let Some(account) = account
            && options.credentials.is_none()
        {
            let key = match identity.kept(ACCOUNT_KEY)? {
                Some(key) => key.trim().to_owned(),
                None => draw_key()?,
            };
            identity.account_key = Some(key.clone());
            options.credentials = Some(Credentials {
                user: account.to_owned(),
                password: key,
            });
        }
        Ok(identity)
    }

    /// The account's key, if the server generated it.
    #[must_use]
    pub fn account_key(&self) -> Option<&str> {
        self.account_key.as_deref()
    }

    /// The file of the self-made certificate. `None` means there is none, or it is in memory only.
    #[must_use]
    pub fn certificate_path(&self) -> Option<PathBuf> {
        self.certificate.as_ref()?;
        Some(self.directory.as_ref()?.join(CERTIFICATE))
    }

    /// The self-made certificate as PEM.
    #[must_use]
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_ref().map(|(certificate, _)| certificate.as_str())
    }

    /// Writes the parts that stay the same over restarts.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(&self) -> Result<(), IdentityError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        if self.certificate.is_none() && self.account_key.is_none() {
            return Ok(());
        }
        permissions::create_directory(directory).map_err(failed(directory))?;
        let (certificate, key) = self.certificate.clone().unzip();
        for (name, text, mode) in [
            (CERTIFICATE, certificate, PUBLIC),
            (KEY, key, PRIVATE),
            (ACCOUNT_KEY, self.account_key.clone(), PRIVATE),
        ] {
            let path = directory.join(name);
            match text {
                // An older program may have written the file with another mode.
                Some(text) if fs::read_to_string(&path).is_ok_and(|kept| kept == text) => {
                    permissions::set_mode(&path, mode).map_err(failed(&path))?;
                }
                Some(text) => permissions::write(&path, &text, mode).map_err(failed(&path))?,
                None => {}
            }
        }
        Ok(())
    }

    fn kept(&self, name: &str) -> Result<Option<String>, IdentityError> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let path = directory.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path)(error)),
        }
    }
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    let path = path.to_owned();
    move |source| IdentityError::File { path, source }
}

/// A certificate for this machine's own names, the bound addresses, and the account's name at Cosmos, with its key.
fn certificate(account: &str, listen: impl Iterator<Item = IpAddr>) -> Result<(String, String), rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !account.is_empty() && account.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        names.push(format!("{account}.cassandra.cosmos.azure.com"));
    }
    for address in listen.map(|address| address.to_string()) {
        if !names.contains(&address) {
            names.push(address);
        }
    }
    let made = rcgen::generate_simple_self_signed(names)?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

/// A key of 64 bytes, in base64.
pub(super) fn draw_key() -> Result<String, IdentityError> {
    let mut bytes = [0; ACCOUNT_KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(IdentityError::Randomness)?;
    Ok(base64(&bytes))
}

/// A token for requests that change state through the admin port: 128 bits, as hexadecimal digits.
pub(crate) fn draw_token() -> Result<String, IdentityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(IdentityError::Randomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Bytes in base64, the form in which keys are pasted (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let of = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for digit in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap_or_default();
            let known = DIGITS.get(index).filter(|_| digit <= chunk.len());
            text.push(known.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::TlsOptions;
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_identity_is_kept_with_the_data() {
        let directory = tempfile::tempdir().unwrap();
        let data = Url::File(directory.path().to_owned());
        let options = || Options {
            tls: Some(TlsOptions {
                listen: vec!["127.0.0.1:0".parse().unwrap()],
                identity: TlsIdentity::SelfMade,
                clients: None,
            }),
            ..Options::default()
        };
        let (mut first, mut second) = (options(), options());
        let made = Identity::complete(&mut first, Some("account"), &data).unwrap();
        made.keep().unwrap();
        assert_eq!(made.account_key().unwrap().len(), 88);
        assert!(made.certificate_path().unwrap().is_file());
        Identity::complete(&mut second, Some("account"), &data).unwrap();
        assert!(first.tls == second.tls);
        let key = |options: &Options| options.credentials.as_ref().unwrap().password.clone();
        assert_eq!(key(&first), key(&second));
        let mut given = Options {
            credentials: first.credentials.clone(),
            ..options()
        };
        let mut elsewhere = options();
        assert_eq!(
            Identity::complete(&mut given, Some("account"), &Url::Memory)
                .unwrap()
                .account_key(),
            None
        );
        Identity::complete(&mut elsewhere, Some("account"), &Url::Memory).unwrap();
        assert!(key(&elsewhere) != key(&first));
    }
}
