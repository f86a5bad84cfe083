//! `cargo run --release -p compat -- COMMAND`: the compatibility runs, one command each.

use std::process::ExitCode;

/// What a run that cannot be had on this machine ends with, as test harnesses have it.
const SKIPPED: u8 = 77;

fn main() -> ExitCode {
    match compat::cli::run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(compat::Error::Skipped(why)) => {
            println!("compat: skipped, {why}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => {
            eprintln!("compat: {error}");
            ExitCode::from(2)
        }
    }
}
