//! The values of USING: timestamps and times to live.

use super::error::Error;
use super::refusal::ModifyRefusal;
use super::term::{Binding, TypedTerm};
use super::value;
use crate::command::Value;

/// Maximum time to live in seconds: twenty years. Source: Cassandra's `ExpiringCell.MAX_TTL`.
pub const TTL_SECONDS_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// `USING TIMESTAMP`; unset means no timestamp.
pub(super) fn timestamp(term: &TypedTerm, binding: &Binding<'_>) -> Result<Option<i64>, Error> {
    match term.bind(binding)? {
        Value::Null => Err(ModifyRefusal::NullTimestamp.into()),
        Value::Unset => Ok(None),
        Value::Bytes(bytes) => match value::bigint(&bytes) {
            None => Err(ModifyRefusal::TimestampBytes.into()),
            // In Cassandra the least value represents a missing timestamp.
            Some(i64::MIN) => Err(ModifyRefusal::TimestampRange.into()),
            found => Ok(found),
        },
    }
}

/// `USING TTL`; null means no expiry, unset means the table's default. A conditional write looks at its condition before it refuses a negative
/// one.
pub(super) fn ttl(term: &TypedTerm, binding: &Binding<'_>, is_conditional: bool) -> Result<Option<i32>, Error> {
    match term.bind(binding)? {
        // As `Attributes.getTimeToLive`: null is `LivenessInfo.NO_TTL`, unset is the table's default.
        Value::Null => Ok(Some(0)),
        Value::Unset => Ok(None),
        Value::Bytes(bytes) if bytes.is_empty() => Ok(Some(0)),
        Value::Bytes(bytes) => {
            let seconds = value::int(&bytes).ok_or(ModifyRefusal::TtlBytes)?;
            if seconds > TTL_SECONDS_MAX {
                return Err(ModifyRefusal::TtlTooLarge {
                    seconds,
                    seconds_max: TTL_SECONDS_MAX,
                }
                .into());
            }
            if seconds < 0 && !is_conditional {
                return Err(ModifyRefusal::TtlNegative(seconds).into());
            }
            Ok(Some(seconds))
        }
    }
}
