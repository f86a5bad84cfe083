//! The record of a running server, for test harnesses and for the program's other verbs.
//!
//! ```json
//! {"api":1,"cql":"127.0.0.1:9042","tls":null,"admin":null,"tables":null,"token":null,"profile":"cassandra","account":null,"key":null,"certificate_pem":null,"pid":4711}
//! ```
//! One line. `api` rises when a field changes its meaning; a reader rejects a number that it does not know. New fields
//! may appear.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::assembly::run::Running;
use crate::config::Config;
use crate::server::TlsIdentity;
use helenus_base::permissions::{self, PRIVATE};

/// The version of the record that this program writes and reads.
const API: u32 = 1;

/// The record's name in a data directory.
const FILE: &str = "helenus.server";

/// Where a server listens, and how to log in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// The version of the record.
    pub api: u32,
    /// The first address without TLS, `ADDRESS:PORT`; `None`: no such address.
    pub cql: Option<String>,
    /// The first address with TLS; `None`: no such address.
    pub tls: Option<String>,
    /// The admin port; `None`: off.
    pub admin: Option<String>,
    /// The first address of tables; `None`: they are not served.
    #[serde(default)]
    pub tables: Option<String>,
    /// The token of requests that change something through the admin port; `None`: the port is off.
    pub token: Option<String>,
    /// The name of its profile; `None`: not known.
    #[serde(default)]
    pub profile: Option<String>,
    /// The user that clients log in as; `None`: no login.
    pub account: Option<String>,
    /// Its password or key.
    pub key: Option<String>,
    /// The certificate that TLS clients should trust, as PEM; `None`: no TLS.
    pub certificate_pem: Option<String>,
    /// The server's process.
    pub pid: u32,
}

/// A record that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The record's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not a record.
    #[error("{} is not the record of a server: {source}", path.display())]
    Malformed {
        /// The record's file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Another version wrote it.
    #[error("{} has version {found}; this program reads version {API}", path.display())]
    Version {
        /// The record's file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl ServerRecord {
    /// The record of a server that serves.
    ///
    /// # Errors
    /// The certificate's file cannot be read.
    pub fn of(config: &Config, running: &Running) -> io::Result<Self> {
        let server = running.server();
        let first = |addresses: &[std::net::SocketAddr]| addresses.first().map(ToString::to_string);
        let identity = running.identity();
        let (mut account, mut key) = match &config.server.credentials {
            Some(credentials) => (Some(credentials.user.clone()), Some(credentials.password.clone())),
            None => (None, None),
        };
        if let Some(drawn) = identity.and_then(|identity| identity.account_key()) {
            account = Some(config.account_name.clone());
            key = Some(drawn.to_owned());
        }
        let mut certificate_pem = identity.and_then(|identity| identity.certificate()).map(str::to_owned);
        if let Some(TlsIdentity::Files { certificate, .. }) = config.server.tls.as_ref().map(|tls| &tls.identity) {
            certificate_pem = Some(fs::read_to_string(certificate)?);
        }
        Ok(Self {
            api: API,
            cql: first(server.addresses()),
            tls: first(server.tls_addresses()),
            admin: running.admin_address().map(|address| address.to_string()),
            tables: first(running.tables_addresses()),
            token: running.admin_token().map(str::to_owned),
            profile: Some(config.profile.to_string()),
            account,
            key,
            certificate_pem,
            pid: std::process::id(),
        })
    }

    /// A record made from the settings, for a server that has written none.
    #[must_use]
    pub fn new(cql: Option<String>, tls: Option<String>, account: Option<String>, key: Option<String>) -> Self {
        Self {
            api: API,
            cql,
            tls,
            admin: None,
            tables: None,
            token: None,
            profile: None,
            account,
            key,
            certificate_pem: None,
            pid: std::process::id(),
        }
    }

    /// The file of a record in a data directory.
    #[must_use]
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    /// Reads a record; `None` means that there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no record of this version.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(RecordError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let record: Self = serde_json::from_str(&text).map_err(|source| RecordError::Malformed {
            path: path.to_owned(),
            source,
        })?;
        if record.api != API {
            return Err(RecordError::Version {
                path: path.to_owned(),
                found: record.api,
            });
        }
        Ok(Some(record))
    }

    /// The record as its one line, with a line end.
    fn line(&self) -> io::Result<String> {
        Ok(format!("{}\n", serde_json::to_string(self)?))
    }

    /// Writes the record to standard output.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.line()?.as_bytes())?;
        out.flush()
    }

    /// Writes the record to a file, atomically and readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<Written> {
        permissions::write(path, &self.line()?, PRIVATE)?;
        Ok(Written {
            path: path.to_owned(),
            of: Some(self.clone()),
        })
    }
}

/// A file with the addresses of the server; removed on drop, unless another server has written its record there since.
#[derive(Debug)]
#[must_use = "the file is removed when this is dropped"]
pub struct Written {
    path: PathBuf,
    /// The record in it. `None` means that the file holds no record.
    of: Option<ServerRecord>,
}

impl Written {
    /// Takes ownership of an existing file.
    pub fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            of: None,
        }
    }

    /// Whether the file holds the record of another server.
    fn is_of_another(&self) -> bool {
        let found = ServerRecord::read(&self.path).ok().flatten();
        self.of.is_some() && found.is_some() && found != self.of
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.is_of_another() {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the record of the server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ServerRecord {
        ServerRecord {
            api: API,
            cql: Some("127.0.0.1:9042".to_owned()),
            tls: None,
            admin: None,
            tables: None,
            token: None,
            profile: Some("cosmos".to_owned()),
            account: Some("ada".to_owned()),
            key: Some("secret \"quoted\"".to_owned()),
            certificate_pem: Some("-----BEGIN\nEND-----\n".to_owned()),
            pid: 4711,
        }
    }

    #[test]
    fn a_record_is_one_line_that_reads_back_and_goes_with_its_guard() {
        let folder = tempfile::tempdir().unwrap();
        let path = ServerRecord::path(folder.path());
        assert!(ServerRecord::read(&path).unwrap().is_none());
        let written = record().write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(ServerRecord::read(&path).unwrap(), Some(record()));
        let later = ServerRecord { pid: 4712, ..record() };
        let of_later = later.write(&path).unwrap();
        drop(written);
        assert_eq!(
            ServerRecord::read(&path).unwrap(),
            Some(later),
            "another server's stays"
        );
        drop(of_later);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_record_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        fs::write(&path, "{\"api\":1}").unwrap();
        let refused = ServerRecord::read(&path).unwrap_err();
        assert!(matches!(refused, RecordError::Malformed { .. }), "{refused}");
        let newer = ServerRecord { api: 2, ..record() };
        let _written = newer.write(&path).unwrap();
        let refused = ServerRecord::read(&path).unwrap_err();
        assert!(matches!(refused, RecordError::Version { found: 2, .. }), "{refused}");
    }
}
