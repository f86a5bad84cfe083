//! `cargo run --release -p compat -- COMMAND`: the compatibility runs, one command each.

use std::process::ExitCode;

fn main() -> ExitCode {
    match compat::cli::run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compat: {error}");
            ExitCode::from(2)
        }
    }
}
