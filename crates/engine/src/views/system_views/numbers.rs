//! The number format of these tables.

use helenus_schema::schema::encode::{bigint, double};

#[expect(clippy::cast_precision_loss, reason = "a figure for people; 2^53 is enough")]
pub(super) const fn float(number: u64) -> f64 {
    number as f64
}

pub(super) fn long(number: u64) -> bytes::Bytes {
    bigint(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Rounded to three digits after the point, as Cassandra shows such figures.
pub(super) fn rounded(number: f64) -> bytes::Bytes {
    double((number * 1000.0).round() / 1000.0)
}
