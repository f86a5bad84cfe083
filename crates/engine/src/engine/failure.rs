//! Why a store failed a request: typed inside the program, in words for clients.
//!
//! Texts of storage name directories and files: they are for the log alone. [`FailureCause`] has the words for clients.

use super::refusal::LimitRefusal;
use std::fmt;

use helenus_storage::storage::Error as StoreError;

/// A call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read. Nothing was changed.
    Read,
    /// To write, which may have happened.
    Write,
}

impl std::fmt::Display for Access {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
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

/// Why stores cannot be opened, or may not begin to take writes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct OpeningFailure {
    /// The store's error.
    pub error: Box<StoreError>,
}

impl OpeningFailure {
    /// Whether another process, or another database of this one, has the data open.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(*self.error, StoreError::Locked { .. })
    }
}

impl From<StoreError> for OpeningFailure {
    fn from(error: StoreError) -> Self {
        let error = Box::new(error);
        Self { error }
    }
}

impl PartialEq for OpeningFailure {
    /// Compares kinds, as those of [`StorageFailure`] are.
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(&*self.error) == std::mem::discriminant(&*other.error)
    }
}

impl Eq for OpeningFailure {}

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

/// A way to report a failure to clients.
pub(super) enum Outward {
    /// The same request may succeed later, or on another replica.
    Retry(FailureCause),
    /// The request never succeeds.
    Refuse(LimitRefusal),
    /// The program is wrong.
    OurFault,
}

/// How a failure of a store is reported to clients.
#[deny(clippy::wildcard_enum_match_arm)]
pub(super) fn outward(error: &StoreError) -> Outward {
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
        | StoreError::OtherStore { .. }
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
        | StoreError::OtherProfile { .. }
        | StoreError::EarlierMoment { .. }
        | StoreError::OtherCopy { .. }
        | StoreError::FollowsClose { .. }
        | StoreError::NotAccepted { .. }
        | StoreError::NoStore { .. } => FailureCause::Closed,
    };
    Outward::Retry(cause)
}
