//! Rules about stored data.

use super::figures::{TableFigures, bytes_text, forecast};
use super::model::{Model, Modelled};
use super::{Finding, Input, Level, rules};
use helenus_types::types::date_text;

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

fn percent(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

pub(super) fn check(model: &Model, figures: &[TableFigures], input: &Input<'_>, found: &mut Vec<Finding>) {
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
