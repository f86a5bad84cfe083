//! Inventory of the stored data, for advice on a data model: the data is opened without being served, and read as a
//! whole.

use std::collections::BTreeMap;

use super::opening::{RunError, open_unserved};
use crate::advice::{LogicalFigures, PhysicalFigures, TableFigures};
use crate::config::Config;
use helenus_base::clock::Clock;
use helenus_engine::engine::{self, LogicalSurvey, TableSurvey};
use helenus_storage::storage as store;

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// There is no data to read.
    #[error("there is no data at {url}")]
    Absent {
        /// Its expected location.
        url: String,
    },
    /// It cannot be opened or read.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Returns the figures of the partitions of all user tables and materialized views.
///
/// # Errors
/// There is no such data, or it cannot be opened or read.
pub async fn survey(config: &Config, clock: Clock, seed: u64) -> Result<Vec<TableFigures>, SurveyError> {
    // Opening would create an empty database under a mistyped name.
    if let Ok(store::Url::File(folder) | store::Url::SlateFile(folder)) = config.data.parse()
        && !folder.is_dir()
    {
        return Err(SurveyError::Absent {
            url: config.data.clone(),
        });
    }
    let (database, look) = open_unserved(config, clock, seed).await?;
    let failed = |source: engine::Error| RunError::Open {
        url: config.data.clone(),
        source: Box::new(source.into()),
    };
    let surveys = database.engine().upkeep().survey().await.map_err(failed)?;
    database.close().await.map_err(failed)?;
    drop(look);
    Ok(surveys.into_iter().map(figures).collect())
}

/// The figures in the form that the advice takes.
fn figures(survey: TableSurvey) -> TableFigures {
    let partitions = survey.partitions.iter();
    let last_day = partitions
        .clone()
        .filter_map(|one| one.daily.last_key_value())
        .map(|(day, _)| *day)
        .max();
    let of_last_day =
        |daily: &BTreeMap<i64, u64>| last_day.and_then(|day| daily.get(&day).copied()).unwrap_or_default();
    let logical = |one: LogicalSurvey| LogicalFigures {
        key: one.key,
        rows: one.rows,
        bytes: one.bytes,
        daily: one.daily.into_iter().collect(),
    };
    TableFigures {
        rows: survey.rows,
        bytes: partitions.clone().map(|one| one.bytes).sum(),
        logical: partitions.clone().map(|one| one.logical).sum(),
        last_day,
        last_day_bytes: partitions.clone().map(|one| of_last_day(&one.daily)).sum(),
        partitions: partitions
            .map(|one| PhysicalFigures {
                id: one.id,
                lower: one.lower,
                upper: one.upper,
                bytes: one.bytes,
                last_day_bytes: of_last_day(&one.daily),
                logical: one.logical,
            })
            .collect(),
        largest: survey.largest.into_iter().map(logical).collect(),
        busiest: survey.busiest.into_iter().map(logical).collect(),
        keyspace: survey.keyspace,
        table: survey.table,
        is_view: survey.is_view,
    }
}
