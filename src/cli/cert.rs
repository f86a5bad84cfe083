//! `helenus cert`: the certificate that clients of a server should trust.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{Failure, pkcs12, seed, servers};
use crate::config::{Config, Values};
use crate::server::TlsIdentity;
use crate::server::identity;
use helenus_base::permissions::{self, PUBLIC};

/// The error for a running server without a certificate.
const WITHOUT_TLS: &str = "this server has no TLS, and so no certificate: start it with --tls-listen ADDRESS:PORT, --tls-certificate FILE \
                           and --tls-key FILE";

/// The format of trust stores.
const PKCS12: &str = "pkcs12";

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .help("File to write, instead of standard output"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["pem", PKCS12])
                .default_value("pem")
                .help("pem, or pkcs12: a trust store for Java"),
        )
        .arg(
            Arg::new("store-password")
                .long("store-password")
                .value_name("PASSWORD")
                .default_value("changeit")
                .help("Password of the trust store, which holds no secret"),
        )
}

/// Prints the certificate of the running server, else that of the settings or of the data directory.
///
/// # Errors
/// There is no certificate, or it cannot be read or written.
pub(super) fn run(values: &Values, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let out = given("out");
    let is_store = given("format") == Some(PKCS12);
    if is_store && out.is_none() && std::io::stdout().is_terminal() {
        return Err("out: a trust store is no text: give --out FILE".into());
    }
    servers::refuse_homeless(values)?;
    let pem = find(values, &Config::new(values)?)?;
    let content = match is_store {
        true => trust_store(&pem, given("store-password").unwrap_or_default())?,
        false => pem.into_bytes(),
    };
    match out {
        Some(file) => {
            let done = permissions::write(Path::new(file), &content, PUBLIC);
            done.map_err(|error| format!("out: cannot write {file}: {error}"))?;
        }
        None => std::io::stdout().lock().write_all(&content)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn trust_store(pem: &str, password: &str) -> Result<Vec<u8>, Failure> {
    let certificates: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let certificates = certificates.map_err(|error| format!("the certificate is no PEM: {error}"))?;
    let certificates: Vec<&[u8]> = certificates.iter().map(AsRef::as_ref).collect();
    Ok(pkcs12::trust_store(&certificates, password, &seed()?.to_le_bytes()))
}

fn find(values: &Values, config: &Config) -> Result<String, Failure> {
    let running = servers::running_or_dev(values, config)?;
    let is_running = running.is_some();
    if let Some(pem) = running.and_then(|record| record.certificate_pem) {
        return Ok(pem);
    }
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
    };
    if let Some(TlsIdentity::Files { certificate, .. }) = config.server.tls.as_ref().map(|tls| &tls.identity) {
        return read(certificate);
    }
    if is_running {
        return Err(WITHOUT_TLS.into());
    }
    match servers::data_directory(config).map(|directory| identity::certificate_file(&directory)) {
        Some(path) if path.exists() => read(&path),
        _ => Err(format!(
            "there is no certificate: {}; give --data as to a server with TLS, or --ready-json FILE",
            servers::not_found(config)
        )
        .into()),
    }
}
