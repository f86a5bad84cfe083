//! The command line.

use crate::{Outcome, golden, oracle, proxy};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};

/// Compatibility runs against a server of the Cassandra protocol.
#[derive(Debug, Parser)]
#[command(name = "compat")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays scripts of statements and compares with Cassandra's recorded answers.
    Oracle {
        /// Server to ask, HOST:PORT.
        #[arg(long)]
        target: String,
        /// Write the answers down (the target should be Cassandra).
        #[arg(long)]
        record: bool,
        /// Pass with this share of equal answers (percent) in spite of unknown differences.
        #[arg(long)]
        threshold: Option<f64>,
        /// Folder of the scripts.
        #[arg(long, default_value_os_t = here("oracle/scripts"))]
        scripts: PathBuf,
        /// Names of scripts; all when none is given.
        only: Vec<String>,
    },
    /// Replays the facts of `golden/`.
    Golden {
        /// Server to ask, HOST:PORT.
        #[arg(long)]
        target: String,
        /// Least share of equal answers in scope, in percent.
        #[arg(long, default_value_t = 98.0)]
        threshold: f64,
        /// Names of files without extension; all when none is given.
        only: Vec<String>,
    },
    /// Forwards more addresses to a server, until it is ended.
    Proxy {
        /// Address to listen on; may be repeated.
        #[arg(long, required = true)]
        listen: Vec<String>,
        /// Server, HOST:PORT.
        #[arg(long)]
        target: String,
    },
}

/// A path inside this crate.
pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs what the command line asks for; true when all that was checked held.
///
/// # Errors
/// When a run could not go on.
pub fn run() -> Outcome<bool> {
    match Arguments::parse().command {
        Command::Oracle {
            target,
            record,
            threshold,
            scripts,
            only,
        } => oracle::report::run(&oracle::report::Options {
            address: target,
            folder: scripts,
            only,
            record,
            threshold,
        }),
        Command::Golden {
            target,
            threshold,
            only,
        } => golden::run(&golden::Options {
            address: target,
            folder: here("golden"),
            only,
            threshold,
        }),
        Command::Proxy { listen, target } => proxy::run(&listen, &target),
    }
}
