//! Parts that several of these tables share.

/// The keyspace of these tables.
pub(super) const COSMOS: &str = helenus_schema::schema::system::COSMOS;

/// Converts hundredths of a request unit to request units.
#[expect(clippy::cast_precision_loss, reason = "exact up to ninety million million units")]
pub(super) fn units(hundredths: i64) -> f64 {
    hundredths as f64 / 100.0
}
