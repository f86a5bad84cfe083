//! Failures of stores become errors of requests: recorded where a store is called, converted once where the request ends.
//!
//! ```text
//! store ─ storage_read, storage_write ─→ Error::Storage ─ at_edge(level, kind of write)
//!     ─→ retry      ReadFailure, WriteFailure
//!     ─→ refuse     Refused: it can never be written
//!     ─→ our fault  Fault
//! ```
//! A request logs the failure in full when it is converted.

use super::error::Error;
use super::failure::{Access, Outward, StorageFailure, outward};
use helenus_storage::storage::Error as StoreError;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

/// A store failed a read.
pub(crate) fn storage_read(error: &StoreError) -> Error {
    storage(error, Access::Read)
}

/// A store refused a write or failed it.
pub(crate) fn storage_write(error: &StoreError) -> Error {
    storage(error, Access::Write)
}

#[cold]
fn storage(error: &StoreError, access: Access) -> Error {
    let error = Box::new(error.clone());
    Error::Storage(StorageFailure { access, error })
}

impl Error {
    /// The error of a request as its client sees it. Failures of stores get the request's level and kind of write,
    /// without the names of directories. Other errors stay unchanged.
    #[cold]
    pub fn at_edge(self, level: Consistency, kind: WriteKind) -> Self {
        let failure = match self {
            Self::Storage(failure) => failure,
            Self::TooManyTombstones { .. } => return Self::TooManyTombstones { consistency: level },
            Self::GroupFailure { reason, .. } => {
                return Self::GroupFailure {
                    consistency: level,
                    reason,
                };
            }
            other => return other,
        };
        let outward = outward(&failure.error);
        // A refusal is an error of the client, which gets its whole text.
        if !matches!(outward, Outward::Refuse(_)) {
            tracing::warn!(error = %failure.error, access = %failure.access, "a store failed a request");
        }
        match (outward, failure.access) {
            (Outward::Refuse(refusal), _) => refusal.into(),
            (Outward::OurFault, _) => Self::Fault(failure.error.to_string()),
            (Outward::Retry(cause), Access::Read) => Self::ReadFailure {
                consistency: level,
                cause,
            },
            (Outward::Retry(cause), Access::Write) => Self::WriteFailure {
                consistency: level,
                write_kind: kind,
                cause,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use helenus_storage::storage::Damaged;

    fn failures() -> Vec<StoreError> {
        let directory = || PathBuf::from("/secret/place");
        let io = |kind| StoreError::Io {
            operation: "write",
            path: directory(),
            source: Arc::new(io::Error::new(kind, "/secret/place")),
        };
        vec![
            io(io::ErrorKind::Other),
            io(io::ErrorKind::StorageFull),
            StoreError::DiskFull { directory: directory() },
            StoreError::WritesRefused {
                directory: directory(),
                cause: Arc::new(io(io::ErrorKind::Other)),
            },
            StoreError::Corrupt {
                path: directory(),
                what: "/secret/place".to_owned(),
            },
            StoreError::Engine {
                location: "/secret/place".to_owned(),
                what: "/secret/place".to_owned(),
            },
            StoreError::TakenOver {
                location: "/secret/place".to_owned(),
            },
            StoreError::LeaseOver {
                location: "/secret/place".to_owned(),
            },
            StoreError::MetItself {
                location: "/secret/place".to_owned(),
            },
            StoreError::Damaged(Damaged::row("cell")),
            StoreError::OpenedAgain,
        ]
    }

    #[test]
    fn clients_see_the_level_and_no_directory() {
        for error in failures() {
            let read = storage_read(&error).at_edge(Consistency::Quorum, WriteKind::Simple);
            let Error::ReadFailure { consistency, cause } = &read else {
                panic!("{error}: {read:?}");
            };
            assert_eq!(*consistency, Consistency::Quorum, "{error}");
            assert!(!cause.to_string().contains("secret"), "{cause}");
            let write = storage_write(&error).at_edge(Consistency::All, WriteKind::Batch);
            let expected = Error::WriteFailure {
                consistency: Consistency::All,
                write_kind: WriteKind::Batch,
                cause: *cause,
            };
            assert_eq!(write, expected, "{error}");
        }
    }

    #[test]
    fn what_can_never_be_written_is_refused_and_our_own_fault_is_named_so() {
        let at_edge = |error: StoreError| storage_write(&error).at_edge(Consistency::One, WriteKind::Simple);
        let (bytes, bytes_max) = (3, 2);
        for error in [
            StoreError::RowTooLarge { bytes, bytes_max },
            StoreError::BatchTooLarge { bytes, bytes_max },
            StoreError::KeyTooLarge { bytes, bytes_max },
        ] {
            assert!(matches!(at_edge(error), Error::Refused(_)));
        }
        assert!(matches!(at_edge(StoreError::ForeignSnapshot), Error::Fault(_)));
    }
}
