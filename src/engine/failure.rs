//! Failures of stores, reported to clients: typed inside, converted once where a request ends.
//!
//! ```text
//! store ─ storage_read, storage_write ─→ Error::Storage ─ at_edge(level, kind of write)
//!     ─→ retry      ReadFailure, WriteFailure
//!     ─→ refuse     Refused: it can never be written
//!     ─→ our fault  Fault
//! ```
//! Texts of storage name directories and files: they are for the log alone. [`FailureCause`] has the words for clients.
//! A request logs the failure in full when it is converted.

use super::refusal::LimitRefusal;
use std::fmt;

use super::error::Error;
use crate::consistency::WriteKind;
use crate::partition::Consistency;
use crate::partition::store::Error as StoreError;

/// A call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read. Nothing was changed.
    Read,
    /// To write, which may have happened.
    Write,
}

/// A failure of a store inside the program.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct StorageFailure {
    /// The kind of access that failed.
    pub access: Access,
    /// The store's error.
    pub error: Box<StoreError>,
}

impl StorageFailure {
    /// As [`Error::is_damage`].
    pub(super) fn is_damage(&self) -> bool {
        matches!(outward(&self.error), Outward::Retry(FailureCause::Damaged))
    }
}

impl PartialEq for StorageFailure {
    /// Compares kinds: errors of the operating system have no equality.
    fn eq(&self, other: &Self) -> bool {
        let [ours, theirs] = [&self.error, &other.error].map(|error| std::mem::discriminant(&**error));
        self.access == other.access && ours == theirs
    }
}

impl Eq for StorageFailure {}

/// Why a read or write failed, in words for clients. The write may have happened unless the cause says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// A replica failed, as a fault plan demands.
    Replica,
    /// Cosmos's answer to a conflict (HTTP's 449).
    Conflict,
    /// Cosmos's answer to a row or a request that is too large (HTTP's 413).
    RequestTooLarge,
    /// Cosmos's answer to a change of throughput during another one (HTTP's 423).
    Scaling,
    /// A change of the schema failed, and it is unknown yet whether it took effect.
    CatalogInDoubt,
    /// The disk is full.
    DiskFull,
    /// The disk has less room than its reserve. This write did not happen.
    DiskReserve,
    /// The store takes no writes until the server starts again. This write did not happen.
    WritesRefused,
    /// The store is opened again after a failure.
    Reopening,
    /// The lease of the bucket is not held now.
    LeaseOver,
    /// The bucket does not answer, or refuses requests.
    Bucket,
    /// The store is closed, or another writer has it.
    Closed,
    /// Bytes in the store are damaged.
    Damaged,
    /// The medium failed with this kind of error.
    Medium(std::io::ErrorKind),
    /// The engine failed in a way of its own.
    Engine,
}

impl fmt::Display for FailureCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Replica => "Operation failed - received 0 responses and 1 failures",
            Self::Conflict => "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
            Self::RequestTooLarge => "Request size is too large",
            // Cosmos documents this error; the words are ours.
            Self::Scaling => "The scale operation cannot be performed because another scale operation is in progress.",
            Self::CatalogInDoubt => "a change of the schema failed, and the store cannot say yet whether it was done",
            Self::DiskReserve => {
                "the disk has less room than disk-reserve-bytes: until there is more, only DELETE, TRUNCATE and changes of the schema are taken"
            }
            Self::DiskFull => "the disk is full; free some space, then requests succeed again",
            Self::WritesRefused => {
                "the store takes no writes since one failed; check the disk and start the server again"
            }
            Self::Reopening => "the store is being opened again after a failure; try again",
            Self::LeaseOver => {
                "this server does not hold the lease of its bucket; it renews the lease, unless another one has taken over"
            }
            Self::Bucket => {
                "the bucket does not answer, or refuses requests; the server tries again by itself, and a failed write may take effect then; see the server's log"
            }
            Self::Closed => "the store is closed; the server is stopping or another one has taken over",
            Self::Damaged => "data in the store is damaged; see the server's log",
            Self::Medium(kind) => return write!(formatter, "the store's medium failed: {kind}; see the server's log"),
            Self::Engine => "the storage engine failed; see the server's log",
        })
    }
}

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

/// How a failure is reported to clients.
enum Outward {
    /// The same request may succeed later, or on another replica.
    Retry(FailureCause),
    /// The request never succeeds.
    Refuse(LimitRefusal),
    /// The program is wrong.
    OurFault,
}

#[deny(clippy::wildcard_enum_match_arm)]
fn outward(error: &StoreError) -> Outward {
    let cause = match error {
        StoreError::RowTooLarge { bytes, bytes_max } => {
            let (bytes, bytes_max) = (*bytes, *bytes_max);
            return Outward::Refuse(LimitRefusal::Row { bytes, bytes_max });
        }
        StoreError::BatchTooLarge { .. } | StoreError::KeyTooLarge { .. } => {
            return Outward::Refuse(LimitRefusal::Store(error.to_string()));
        }
        StoreError::ForeignSnapshot | StoreError::Broken(_) => return Outward::OurFault,
        StoreError::DiskFull { .. } => FailureCause::DiskFull,
        StoreError::Io { source, .. } if !error.is_disk_full() => FailureCause::Medium(source.kind()),
        StoreError::Io { .. } => FailureCause::DiskFull,
        StoreError::WritesRefused { .. } => FailureCause::WritesRefused,
        StoreError::Reopening | StoreError::OpenedAgain | StoreError::MetItself { .. } => FailureCause::Reopening,
        StoreError::LeaseOver { .. } => FailureCause::LeaseOver,
        StoreError::Closed | StoreError::TakenOver { .. } => FailureCause::Closed,
        StoreError::Corrupt { .. }
        | StoreError::Gone { .. }
        | StoreError::LostWrites { .. }
        | StoreError::Damaged(_) => FailureCause::Damaged,
        StoreError::Engine { .. } => FailureCause::Engine,
        StoreError::Bucket { .. } => FailureCause::Bucket,
        // Occurs only when a store is opened, before there are requests.
        StoreError::UnknownScheme { .. }
        | StoreError::NoBucket { .. }
        | StoreError::InBucket { .. }
        | StoreError::WithoutFeature { .. }
        | StoreError::NoDirectory { .. }
        | StoreError::NoPath { .. }
        | StoreError::UnknownDurability { .. }
        | StoreError::Locked { .. }
        | StoreError::CacheLocked { .. }
        | StoreError::NotAStore { .. }
        | StoreError::NotEmpty { .. }
        | StoreError::NotEmptyAndOpen { .. }
        | StoreError::BeingRestored { .. }
        | StoreError::UnknownFormat { .. }
        | StoreError::EarlierMoment { .. }
        | StoreError::NotAccepted { .. }
        | StoreError::NoStore { .. } => FailureCause::Closed,
    };
    Outward::Retry(cause)
}

impl Error {
    /// The error of a request as its client sees it. Failures of stores get the request's level and kind of write,
    /// without the names of directories. Other errors stay unchanged.
    #[cold]
    pub(crate) fn at_edge(self, level: Consistency, kind: WriteKind) -> Self {
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
            tracing::warn!(error = %failure.error, access = ?failure.access, "a store failed a request");
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
    use crate::partition::store::Damaged;

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
