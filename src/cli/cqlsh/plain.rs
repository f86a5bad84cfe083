//! Connections for other verbs: a statement, and how many rows it returns.

use std::time::Duration;

use super::client::{Asked, ClientError, Connection, Target, Trust};
use crate::cli::Failure;
use crate::cli::record::ServerRecord;

/// Longest wait for a connection, and for an answer.
const WITHIN: Duration = Duration::from_secs(60);

/// Consistency levels ONE and SERIAL (native_protocol_v4.spec §3).
const ONE: u16 = 1;
const SERIAL: u16 = 8;

impl Target {
    /// The server of a record. `None`: it has no address, or only one over TLS whose certificate is not known.
    #[must_use]
    pub(super) fn of(record: &ServerRecord, within: Duration) -> Option<Self> {
        let address = record.cql.as_ref().or(record.tls.as_ref())?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().ok()?,
            login: record.account.clone().zip(record.key.clone()),
            trust: match (&record.cql, &record.certificate_pem) {
                (Some(_), _) => Trust::Plain,
                (None, Some(pem)) => Trust::Certificates(pem.clone().into_bytes()),
                (None, None) => return None,
            },
            connect_within: within,
            answer_within: within,
        })
    }
}

/// A connection that is ready for statements.
pub(in crate::cli) struct PlainConnection(Connection);

impl PlainConnection {
    /// Connects and logs in as a record says.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the login.
    pub(in crate::cli) fn open(record: &ServerRecord) -> Result<Self, Failure> {
        let target = Target::of(record, WITHIN).ok_or("the server has no address that can be used")?;
        Ok(Self(Connection::open(&target)?))
    }

    /// Runs a statement; the number of rows.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub(in crate::cli) fn run(&mut self, statement: &str) -> Result<usize, ClientError> {
        let asked = Asked {
            consistency: ONE,
            serial_consistency: SERIAL,
            page_rows: None,
            from: None,
            is_traced: false,
        };
        Ok(self.0.query(statement, asked)?.rows.len())
    }
}
