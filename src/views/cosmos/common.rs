//! What these tables share.

/// Their keyspace.
pub(super) const COSMOS: &str = crate::schema::system::COSMOS;

/// Hundredths of a request unit as request units.
#[expect(clippy::cast_precision_loss, reason = "exact up to ninety million million units")]
pub(super) fn units(hundredths: i64) -> f64 {
    hundredths as f64 / 100.0
}
