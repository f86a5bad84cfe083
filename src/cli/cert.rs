//! `helenus cert`: the certificate that clients of a server should trust.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::{Failure, servers};
use crate::config::Config;
use crate::permissions::{self, PUBLIC};
use crate::server::TlsIdentity;
use crate::server::identity;

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command.arg(
        Arg::new("out")
            .long("out")
            .value_name("FILE")
            .help("File to write, instead of standard output"),
    )
}

/// Prints the certificate as PEM: of the server that runs, else of the files of the settings or of the data directory.
///
/// # Errors
/// There is no certificate, or it cannot be read or written.
pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let pem = find(config)?;
    match matches.get_one::<String>("out") {
        Some(file) => {
            let done = permissions::write(Path::new(file), &pem, PUBLIC);
            done.map_err(|error| format!("out: cannot write {file}: {error}"))?;
        }
        None => std::io::stdout().lock().write_all(pem.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn find(config: &Config) -> Result<String, Failure> {
    if let Some(record) = servers::running(config)?
        && let Some(pem) = record.certificate_pem
    {
        return Ok(pem);
    }
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
    };
    if let Some(TlsIdentity::Files { certificate, .. }) = config.server.tls.as_ref().map(|tls| &tls.identity) {
        return read(certificate);
    }
    match servers::data_directory(config).map(|directory| identity::certificate_file(&directory)) {
        Some(path) if path.exists() => read(&path),
        _ => Err(format!(
            "there is no certificate: no server with TLS has {} open; give --data as to the server, or --ready-json FILE",
            config.data
        )
        .into()),
    }
}
