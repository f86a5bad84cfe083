//! Rules about stored data, and forecasts of full partitions.

use serde::Serialize;

use super::model::{Model, Modelled};
use super::{Finding, Input, Level, rules};
use helenus_types::types::date_text;

/// Days of writes that a forecast uses.
const DAYS_MAX: i64 = 14;
/// A partition that will be full within so many days is an error.
const SOON_DAYS: i64 = 30;
/// A partition that will be full within so many days is a warning.
const LATER_DAYS: i64 = 365;
/// Share of the maximum size that gives a warning, in hundredths.
const NEAR_PERCENT: u64 = 70;
/// A table without writes for so many days counts as unused.
const IDLE_DAYS: i64 = 90;
/// Least rows of a table for which its distribution means anything.
const ROWS_MIN: u64 = 1_000;

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

fn percent(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

pub(super) fn judge(model: &Model, figures: &[TableFigures], input: &Input<'_>, found: &mut Vec<Finding>) {
    for figures in figures {
        if let Some(modelled) = model.table(&figures.keyspace, &figures.table) {
            sizes(modelled, figures, input, found);
            heat(modelled, figures, found);
            use_of(modelled, figures, input, found);
        }
    }
}

fn sizes(modelled: &Modelled, figures: &TableFigures, input: &Input<'_>, found: &mut Vec<Finding>) {
    for partition in &figures.largest {
        let share = percent(partition.bytes, input.logical_bytes_max);
        let (spot, name) = (&modelled.spot, modelled.name());
        if share >= NEAR_PERCENT {
            let level = if share >= 100 { Level::Error } else { Level::Warning };
            let message = format!(
                "partition {} has {}, {share} % of what one may have",
                partition.key,
                bytes_text(partition.bytes)
            );
            found.push(spot.finding(&rules::NEAR_CAP, level, name.clone(), message));
        }
        let Some(forecast) = forecast(partition, input.logical_bytes_max, input.today) else {
            continue;
        };
        let days = forecast.full_on - input.today;
        if days > LATER_DAYS {
            continue;
        }
        let level = if days <= SOON_DAYS {
            Level::Error
        } else {
            Level::Warning
        };
        let message = format!(
            "partition {} has {} and gets {} a day: full on {}, in {days} days",
            partition.key,
            bytes_text(partition.bytes),
            bytes_text(forecast.bytes_per_day),
            date_text(forecast.full_on)
        );
        found.push(spot.finding(&rules::CAP_FORECAST, level, name, message));
    }
}

fn heat(modelled: &Modelled, figures: &TableFigures, found: &mut Vec<Finding>) {
    let mut tell = |rule, message| found.push(modelled.spot.finding(rule, Level::Warning, modelled.name(), message));
    let physical = figures.partitions.len() as u64;
    if physical > 1 && figures.logical > 0 && figures.logical < physical * 2 {
        tell(
            &rules::FEW_PARTITIONS,
            format!("{} partition keys on {physical} physical partitions", figures.logical),
        );
    }
    let (Some(day), true) = (figures.last_day, figures.rows >= ROWS_MIN) else {
        return;
    };
    if let Some(busiest) = figures.busiest.first() {
        let bytes = busiest
            .daily
            .iter()
            .find(|(of, _)| *of == day)
            .map_or(0, |(_, bytes)| *bytes);
        let share = percent(bytes, figures.last_day_bytes);
        if share >= 25 && figures.logical >= 8 {
            tell(
                &rules::HOT_RANGE,
                format!(
                    "partition {} took {share} % of what was written on {}, among {} partition keys",
                    busiest.key,
                    date_text(day),
                    figures.logical
                ),
            );
        }
    }
    let hottest = figures
        .partitions
        .iter()
        .max_by_key(|partition| partition.last_day_bytes);
    if let Some(hottest) = hottest
        && physical >= 3
    {
        let share = percent(hottest.last_day_bytes, figures.last_day_bytes);
        if share >= 3 * 100 / physical {
            tell(
                &rules::HOT_RANGE,
                format!(
                    "physical partition {} (tokens {} to {}) took {share} % of what was written on {}, of {physical}",
                    hottest.id,
                    hottest.lower,
                    hottest.upper,
                    date_text(day)
                ),
            );
        }
    }
}

fn use_of(modelled: &Modelled, figures: &TableFigures, input: &Input<'_>, found: &mut Vec<Finding>) {
    let message = match figures.last_day {
        _ if figures.rows == 0 => "it has no rows".to_owned(),
        Some(day) if input.today - day >= IDLE_DAYS => format!("nothing was written since {}", date_text(day)),
        _ => return,
    };
    found.push(
        modelled
            .spot
            .finding(&rules::UNUSED_TABLE, Level::Note, modelled.name(), message),
    );
}
