//! Size limits: those that Azure Cosmos DB documents, in one place. Which of them apply is decided when the database is
//! opened. Anything over a limit is refused before anything is written.
//!
//! Sources: "Azure Cosmos DB service quotas" (logical partition 20 GB, item 2 MB, request 2 MB, page 4 MB, batch 100
//! operations, partition key 2 KB); "Azure Cosmos DB for Apache Cassandra support" (row 2 MB); "Monitor reference",
//! where CQL clients receive 413 as 5376, a failed write, and 403 as 8448, unauthorized.

use super::refusal::LimitRefusal;
use bytes::Bytes;

use super::Error;
use super::failure::FailureCause;
use helenus_schema::schema::Table;
use helenus_types::consistency::Consistency;
use helenus_types::consistency::WriteKind;

/// The limits of a database. `None` means no limit, or Cassandra's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// Bytes of a logical partition: keys and values of its rows as they are stored, and of their index entries.
    pub logical_partition_bytes_max: Option<u64>,
    /// Bytes of a row as stored, without its key. Checked by reading the row before a write, with Cosmos's error.
    pub row_bytes_max: Option<u64>,
    /// The same, checked by the store when it merges the write with the row, so that writers read nothing first.
    pub merged_row_bytes_max: Option<u64>,
    /// Bytes that one request writes.
    pub request_bytes_max: Option<u64>,
    /// Statements of a batch.
    pub batch_operations_max: Option<usize>,
    /// Bytes of a partition key that is written.
    pub partition_key_bytes_max: Option<usize>,
    /// Longest time to live of a write, its own or its table's, in seconds; Cassandra's own limit is twenty years.
    pub ttl_seconds_max: Option<u32>,
}

impl Default for SizeLimits {
    /// Those of the `cassandra` profile.
    fn default() -> Self {
        Self {
            logical_partition_bytes_max: Some(Self::LOGICAL_PARTITION_BYTES_MAX),
            row_bytes_max: None,
            merged_row_bytes_max: Some(Self::MERGED_ROW_BYTES_MAX),
            request_bytes_max: None,
            batch_operations_max: None,
            partition_key_bytes_max: None,
            ttl_seconds_max: None,
        }
    }
}

impl SizeLimits {
    /// Bytes of a logical partition: 20 GB.
    pub const LOGICAL_PARTITION_BYTES_MAX: u64 = 20 << 30;
    /// Bytes of a row and of a request in the `cosmos` profile: 2 MB.
    pub const ROW_BYTES_MAX: u64 = 2 << 20;
    /// Bytes of a row in the `cassandra` profile: 16 MiB, as of a request. The one writer writes a row whole, so longer
    /// rows would delay all other writes, and the longest would fit into no frame.
    pub const MERGED_ROW_BYTES_MAX: u64 = 16 << 20;
    /// Statements of a batch in the `cosmos` profile.
    pub const BATCH_OPERATIONS_MAX: usize = 100;
    /// Bytes of a partition key in the `cosmos` profile.
    pub const PARTITION_KEY_BYTES_MAX: usize = 2048;
    /// Bytes of a page in the `cosmos` profile: 4 MB.
    pub const PAGE_BYTES_MAX: usize = 4 << 20;

    /// Refuses a batch of more statements than the limit.
    pub(super) fn check_operations(&self, count: usize) -> Result<(), Error> {
        match self.batch_operations_max {
            Some(max) if count > max => Err(LimitRefusal::Operations.into()),
            _ => Ok(()),
        }
    }

    /// Checks a written row merged with the stored one. `bytes_together` gets the limit, so that it need not merge rows
    /// whose sum is below it.
    pub(super) async fn check_row(
        &self,
        consistency: Consistency,
        write_kind: WriteKind,
        bytes_together: impl AsyncFnOnce(u64) -> Result<u64, Error>,
    ) -> Result<(), Error> {
        match self.row_bytes_max {
            Some(bytes_max) if bytes_together(bytes_max).await? > bytes_max => Err(too_large(consistency, write_kind)),
            _ => Ok(()),
        }
    }

    /// Refuses a key that is too long to be written.
    pub(super) fn check_partition_keys(&self, keys: &[Bytes]) -> Result<(), Error> {
        let Some(bytes_max) = self.partition_key_bytes_max else {
            return Ok(());
        };
        match keys.iter().map(Bytes::len).find(|bytes| *bytes > bytes_max) {
            Some(bytes) => Err(LimitRefusal::Key { bytes, bytes_max }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a time to live beyond the limit.
    pub(super) fn check_ttl(&self, ttl_seconds: u32) -> Result<(), Error> {
        match self.ttl_seconds_max {
            Some(seconds_max) if ttl_seconds > seconds_max => Err(LimitRefusal::Ttl {
                seconds: ttl_seconds,
                seconds_max,
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// Refuses a request that writes more bytes than the limit.
    pub(super) fn check_request(
        &self,
        bytes: u64,
        consistency: Consistency,
        write_kind: WriteKind,
    ) -> Result<(), Error> {
        match self.request_bytes_max {
            Some(max) if bytes > max => Err(too_large(consistency, write_kind)),
            _ => Ok(()),
        }
    }
}

/// Cosmos's error for a row or a request that is too large.
pub(super) fn too_large(consistency: Consistency, write_kind: WriteKind) -> Error {
    Error::WriteFailure {
        consistency,
        write_kind,
        cause: FailureCause::RequestTooLarge,
    }
}

/// The last second at which Cassandra's cells can expire: 2038-01-19T03:14:06Z.
const EXPIRY_SECONDS_MAX: i64 = 2_147_483_646;

/// Refuses an expiry later than Cassandra can represent (ExpirationDateOverflowHandling, policy REJECT): a client that
/// depended on it could not go back.
pub(super) fn refuse_overflow(table: &Table, ttl_seconds: u32, now_seconds: i64) -> Result<(), Error> {
    if ttl_seconds == 0 || now_seconds.saturating_add(i64::from(ttl_seconds)) <= EXPIRY_SECONDS_MAX {
        return Ok(());
    }
    Err(LimitRefusal::Expiry {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        seconds: ttl_seconds,
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_a_limit_is_refused() {
        let none = SizeLimits::default();
        assert!(none.check_operations(10_000).is_ok());
        let some = SizeLimits {
            request_bytes_max: Some(10),
            batch_operations_max: Some(2),
            partition_key_bytes_max: Some(3),
            ..none
        };
        assert!(some.check_operations(2).is_ok() && some.check_operations(3).is_err());
        let keys = |key: &'static str| [Bytes::from_static(b"k"), Bytes::from_static(key.as_bytes())];
        assert!(some.check_partition_keys(&keys("abc")).is_ok());
        assert!(some.check_partition_keys(&keys("abcd")).is_err());
        assert!(some.check_request(10, Consistency::One, WriteKind::Simple).is_ok());
        assert!(some.check_request(11, Consistency::One, WriteKind::Simple).is_err());
    }
}
