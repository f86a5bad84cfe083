//! `helenus fleet-secret URL`: changes the secret by which the nodes of a fleet know each other, while they run.

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::Failure;
use crate::assembly::{FLEET_SECRET_KNOWN_WITHIN, change_fleet_secret};
use crate::config::Config;

/// The URL, and what is done to it.
pub(super) fn arguments(command: Command) -> Command {
    let url = Arg::new("url")
        .value_name("URL")
        .required(true)
        .help("s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX: the data of the nodes");
    let about = format!(
        "Change the secret by which the nodes of a fleet know each other and encrypt their connections, while they run. It takes {} s; if it \
         is interrupted, begin it again.",
        FLEET_SECRET_KNOWN_WITHIN.as_secs()
    );
    command.long_about(about).arg(url)
}

/// Changes the secret, and prints a line for each step.
///
/// # Errors
/// The URL names no bucket, the bucket cannot be reached, or no fleet was there.
pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let url = matches.get_one::<String>("url").map(String::as_str).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Who reads the lines may be gone; the change goes on.
    let told = |line: &str| drop(writeln!(std::io::stdout().lock(), "{line}"));
    runtime.block_on(change_fleet_secret(url, config, told))?;
    Ok(ExitCode::SUCCESS)
}
