//! `helenus verify`: reads all data of a directory that no server has open.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::terminal::count;
use super::{Failure, progress, seed, servers, serving};
use crate::assembly::{opening, survey};
use crate::config::Config;
use helenus_base::clock::Clock;
use helenus_base::permissions;

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("indexes")
                .long("indexes")
                .action(ArgAction::SetTrue)
                .help("Only compare the entries of secondary indexes with their rows"),
        )
        .after_help("Exit code 0: all is well. 1: something is damaged or differs, or the data cannot be opened.")
}

/// Reads every row of all user tables and views and every index entry, and so verifies the checksums of their blocks.
///
/// # Errors
/// There is no data, a server has it open, or it is damaged.
pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    if matches.get_flag("indexes") {
        return indexes(config);
    }
    let directory = directory(config)?;
    let runtime = serving::runtime(config)?;
    let work = survey::survey(config, Clock::system(), seed()?);
    let figures = runtime.block_on(progress::shown("verify", Arc::default(), work))?;
    let rows: u64 = figures.iter().map(|figure| figure.rows).sum();
    let views = figures.iter().filter(|figure| figure.is_view).count();
    let of_views = match views {
        0 => String::new(),
        views => format!("{}, ", count(views, "view")),
    };
    println!(
        "{}: {}, {of_views}{} read",
        directory.display(),
        count(figures.len() - views, "table"),
        count(rows, "row")
    );
    indexes(config)
}

/// The existing data directory.
pub(super) fn directory(config: &Config) -> Result<PathBuf, Failure> {
    match servers::data_directory(config) {
        Some(directory) if directory.is_dir() => Ok(directory),
        Some(_) => Err(format!("there is no data at {}: give --data as to the server", config.data).into()),
        None if ["s3:", "az:", "gs:"]
            .iter()
            .any(|scheme| config.data.starts_with(scheme)) =>
        {
            Err("this verb reads directories only, and the data is in a bucket".into())
        }
        None => Err("data in memory ends with its server: give --data file:DIR".into()),
    }
}

/// Compares the entries of secondary indexes with their rows, and prints the result. Fails on any difference.
///
/// # Errors
/// There is no data, or it cannot be opened or read.
pub(super) fn indexes(config: &Config) -> Result<ExitCode, Failure> {
    permissions::keep_new_files_private();
    directory(config)?;
    let runtime = serving::runtime(config)?;
    let found = runtime.block_on(opening::check_indexes(config, Clock::system(), seed()?))?;
    for difference in &found.described {
        println!("{difference}");
    }
    println!(
        "{}, {}, {}; {} being built",
        count(found.indexes, "index"),
        count(found.entries, "entry"),
        count(found.differences, "difference"),
        found.building
    );
    Ok(if found.differences == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
