//! `helenus check-bucket URL`: whether a bucket provides the guarantees that a database relies on, checked before one
//! is created there.

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::Failure;
use crate::assembly::opening;
use crate::config::Config;

/// The URL, and what is done to it.
pub(super) fn arguments(command: Command) -> Command {
    let url = Arg::new("url")
        .value_name("URL")
        .required(true)
        .help("s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX");
    command
        .long_about("Check whether a bucket keeps what a database relies on. Puts and removes objects below URL/fleet/check/ only.")
        .arg(url)
}

/// Runs the checks, and prints a line for each. Fails if any failed.
///
/// # Errors
/// The URL names no bucket, or the bucket cannot be reached.
pub(super) fn run(config: &Config, seed: u64, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let url = matches.get_one::<String>("url").map(String::as_str).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let checked = runtime.block_on(opening::check_bucket(url, config, seed))?;
    write!(std::io::stdout().lock(), "{checked}")?;
    Ok(if checked.is_fit() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
