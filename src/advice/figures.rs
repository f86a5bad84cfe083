//! Figures of stored data, and forecasts of full partitions.

use serde::Serialize;

/// Days of writes that a forecast uses.
const DAYS_MAX: i64 = 14;

/// A logical partition: all rows of one partition key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogicalFigures {
    /// The partition key as CQL.
    pub key: String,
    /// Rows, static ones too.
    pub rows: u64,
    /// Bytes of keys, rows and entries of indexes.
    pub bytes: u64,
    /// Bytes last written on each of the last days: days since 1970-01-01 UTC, in order; days without are left out.
    pub daily: Vec<(i64, u64)>,
}

/// A physical partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhysicalFigures {
    /// Its number.
    pub id: u64,
    /// Lowest token.
    pub lower: i64,
    /// Highest token.
    pub upper: i64,
    /// Bytes as in [`LogicalFigures`].
    pub bytes: u64,
    /// The part of them that was written on the last day with writes.
    pub last_day_bytes: u64,
    /// Logical partitions in it.
    pub logical: u64,
}

/// The measured figures of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableFigures {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Whether it is a materialized view.
    pub is_view: bool,
    /// Rows, static ones too.
    pub rows: u64,
    /// Bytes as in [`LogicalFigures`].
    pub bytes: u64,
    /// Logical partitions.
    pub logical: u64,
    /// The last day with a write: days since 1970-01-01 UTC.
    pub last_day: Option<i64>,
    /// Bytes last written on that day.
    pub last_day_bytes: u64,
    /// The physical partitions, sorted by token.
    pub partitions: Vec<PhysicalFigures>,
    /// The largest logical partitions, the largest first.
    pub largest: Vec<LogicalFigures>,
    /// The logical partitions with most bytes of the last day, the busiest first.
    pub busiest: Vec<LogicalFigures>,
}

/// The forecast of a logical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Growth per day.
    pub bytes_per_day: u64,
    /// When it will be full: days since 1970-01-01 UTC.
    pub full_on: i64,
}

/// Fits a line through what a partition held at the end of each of the last 14 days. `None` means that the partition is
/// full, does not grow, was first written today, or would be full only in a thousand years.
///
/// Overwritten bytes count for the day of the last write, so a partition that is written repeatedly seems to grow
/// faster than it does. Future expirations and deletes are unknown.
#[must_use]
pub fn forecast(partition: &LogicalFigures, bytes_max: u64, today: i64) -> Option<Forecast> {
    let from = partition
        .daily
        .iter()
        .map(|(day, _)| *day)
        .find(|day| *day > today - DAYS_MAX)?;
    if from >= today || partition.bytes >= bytes_max {
        return None;
    }
    // Least squares in integers: x is the day, y the bytes at its end.
    let (mut held, mut count) = (0_i128, 0_i128);
    let (mut sum_x, mut sum_y, mut sum_xy, mut sum_xx) = (0_i128, 0_i128, 0_i128, 0_i128);
    for day in from..=today {
        let come = partition
            .daily
            .iter()
            .find(|(of, _)| *of == day)
            .map_or(0, |(_, bytes)| *bytes);
        held += i128::from(come);
        let x = i128::from(day - from);
        count += 1;
        sum_x += x;
        sum_y += held;
        sum_xy += x * held;
        sum_xx += x * x;
    }
    let bytes_per_day = (count * sum_xy - sum_x * sum_y) / (count * sum_xx - sum_x * sum_x);
    let bytes_per_day = u64::try_from(bytes_per_day).ok().filter(|bytes| *bytes > 0)?;
    let days = (bytes_max - partition.bytes) / bytes_per_day;
    let days = i64::try_from(days).ok().filter(|days| *days < 365_000)?;
    Some(Forecast {
        bytes_per_day,
        full_on: today + days,
    })
}

/// Bytes in human-readable units.
pub(super) fn bytes_text(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("bytes", 0)];
    for (unit, shift) in UNITS {
        if bytes >= 1 << shift && shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} bytes")
}
