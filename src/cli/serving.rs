//! `helenus serve`: runs a server until a signal stops it.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::record::{ServerRecord, Written};
use super::servers::data_directory;
use super::terminal::{self, Lossy};
use super::{Failure, init, parent, seed};
use crate::assembly::opening::is_durable;
use crate::assembly::run::{Running, THREAD_STACK_BYTES};
use crate::config::{Config, LogFormat};
use crate::server::log::{HumanFields, JsonEvents, Repeats};
use helenus_base::clock::Clock;
use helenus_base::{memory, permissions};

/// Exit code when data can no longer be read: EX_IOERR of sysexits.h. A supervisor should restart the server once, and
/// then check the disk.
const EXIT_LOST: u8 = 74;

/// How long blocking work of a server that has stopped may hold its process.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(1);

/// Begins to write the log to standard error.
///
/// # Errors
/// The filter is invalid.
pub(super) fn log(config: &Config) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log)?;
    let human = match config.log_format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Lossy(std::io::stderr()))
        .with_ansi(is_colored(
            std::io::stderr().is_terminal(),
            std::env::var_os("NO_COLOR").as_deref(),
        ));
    let repeats = Repeats::new(Clock::system());
    if human {
        builder.fmt_fields(HumanFields).finish().with(repeats).init();
    } else {
        builder
            .json()
            .map_event_format(JsonEvents)
            .finish()
            .with(repeats)
            .init();
    }
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(%panic, %backtrace, "panic");
    }));
    Ok(())
}

/// Whether the log has colours: on a terminal, unless `NO_COLOR` says otherwise with any text but an empty one (no-color.org).
fn is_colored(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// The runtime that a server runs on.
///
/// # Errors
/// The system refuses threads.
pub(super) fn runtime(config: &Config) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.threads > 0 {
        builder.worker_threads(config.threads);
    }
    builder.enable_all().thread_stack_size(THREAD_STACK_BYTES).build()
}

/// Starts a server and runs the CQL of `init`.
///
/// # Errors
/// The data cannot be opened, an address is taken, or a statement is refused.
pub(super) async fn start(config: &Config) -> Result<Running, Failure> {
    // Dates in the future do no harm to data that ends with the process.
    let clock = if is_durable(&config.data) {
        Clock::system()
    } else {
        Clock::movable()
    };
    let running = Running::start(config, clock, seed()?).await?;
    if let Some(path) = &config.init
        && let Err(error) = init::apply(running.database(), path).await
    {
        running.stop().await?;
        return Err(error);
    }
    for warning in running.fault_warnings() {
        tracing::warn!(warning, "the fault plan");
    }
    Ok(running)
}

/// Serves until a signal arrives. `more` is printed after the banner. `note` writes the record where else it belongs.
///
/// # Errors
/// The server cannot start, or the data cannot be closed.
pub(super) fn serve(
    config: &Config,
    more: fn(&Config, &ServerRecord) -> String,
    note: fn(&ServerRecord) -> Option<Written>,
) -> Result<ExitCode, Failure> {
    log(config)?;
    permissions::keep_new_files_private();
    memory::keep_pages_small();
    let runtime = runtime(config)?;
    let served = runtime.block_on(async {
        // Registered before anything is opened: a signal ends a start at once, and closes the data of a server that serves.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let had_terminal = terminal::ends_programs();
        let mut hang_up = signal(SignalKind::hangup())?;
        let running = tokio::select! {
            started = start(config) => started?,
            // As after a kill, the next start finds what was written.
            _ = terminate.recv() => return Ok(stopped_early()),
            _ = interrupt.recv() => return Ok(stopped_early()),
        };
        let written = announce(config, &running, more, note)?;
        let mut stdin_ends = std::pin::pin!(stdin_ends(config));
        let lost = loop {
            tokio::select! {
                () = &mut stdin_ends => break None,
                _ = terminate.recv() => break None,
                _ = interrupt.recv() => break None,
                why = running.until_lost() => break Some(why),
                _ = hang_up.recv() => {
                    if had_terminal && !terminal::is_there() {
                        break None;
                    }
                    running.check_certificate(true);
                }
            }
        };
        tracing::info!(connections = running.server().connections(), "stopping");
        let stopped = running.stop().await;
        drop(written);
        if let Some(why) = lost {
            tracing::error!(
                why,
                code = EXIT_LOST,
                "data can no longer be read here: the disk has failed, or another server has taken over"
            );
            return Ok(ExitCode::from(EXIT_LOST));
        }
        stopped?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    });
    runtime.shutdown_timeout(SHUTDOWN_WITHIN);
    served
}

/// The outcome of a server that was told to stop before it served.
fn stopped_early() -> ExitCode {
    tracing::info!("stopped before it served");
    ExitCode::SUCCESS
}

/// Resolves when standard input ends, if the server is to end with it.
async fn stdin_ends(config: &Config) {
    if config.exit_with_stdin {
        parent::stdin_ends().await;
    } else {
        std::future::pending().await
    }
}

/// Announces that the server answers: prints the banner, then writes the files that other programs wait for. Dropping
/// the returned value removes them.
fn announce(
    config: &Config,
    running: &Running,
    more: fn(&Config, &ServerRecord) -> String,
    note: fn(&ServerRecord) -> Option<Written>,
) -> Result<Vec<Written>, Failure> {
    let server = running.server();
    let record = ServerRecord::of(config, running)?;
    let is_json_printed = config.ready_json.as_deref() == Some(Path::new("-"));
    if is_json_printed {
        // Standard output carries only the record.
        write!(
            Lossy(std::io::stderr()),
            "{}{}",
            banner(config, running),
            more(config, &record)
        )?;
    } else {
        write!(
            Lossy(std::io::stdout()),
            "{}{}",
            banner(config, running),
            more(config, &record)
        )?;
    }
    std::io::stdout().flush()?;
    tracing::info!(
        addresses = %list(server.addresses()),
        tls_addresses = %list(server.tls_addresses()),
        data = %config.data,
        durability = %config.durability,
        "Startup complete: serving"
    );
    let mut written: Vec<Written> = note(&record).into_iter().collect();
    if let Some(directory) = data_directory(config) {
        let path = ServerRecord::path(&directory);
        let done = record.write(&path);
        written.push(done.map_err(|error| format!("cannot write the server's record to {}: {error}", path.display()))?);
    }
    match &config.ready_json {
        Some(_) if is_json_printed => record.print()?,
        Some(path) => {
            let done = record.write(path);
            written.push(done.map_err(|error| format!("ready-json: cannot write {}: {error}", path.display()))?);
        }
        None => {}
    }
    let Some(first) = server.addresses().first().or_else(|| server.tls_addresses().first()) else {
        return Ok(written);
    };
    if let Some(number) = config.ready_fd {
        // Opened by its path: taking over a file descriptor that another part has opened needs unsafe code.
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/dev/fd/{number}"));
        let done = opened.and_then(|mut file| writeln!(file, "{first}"));
        done.map_err(|error| format!("ready-fd: cannot write to the open file {number}: {error}"))?;
    }
    if let Some(path) = &config.ready_file {
        // Renamed into place, so that its reader finds the whole address. An address is no secret: every user may read
        // it.
        let done = permissions::write(path, format!("{first}\n"), permissions::PUBLIC);
        done.map_err(|error| format!("ready-file: cannot write {}: {error}", path.display()))?;
        written.push(Written::of(path));
    }
    Ok(written)
}

/// The banner: addresses, the data directory, and what to type next.
fn banner(config: &Config, running: &Running) -> String {
    let server = running.server();
    let has_login = config.server.credentials.is_some() || config.profile.is_cosmos();
    let serves = match (server.addresses(), server.tls_addresses()) {
        (plain, []) => list(plain),
        ([], tls) => format!("{} with TLS", list(tls)),
        (plain, tls) => format!("{}, with TLS on {}", list(plain), list(tls)),
    };
    let admin = running
        .admin_address()
        .map(|address| format!(", figures on http://{address}"));
    let mut lines = vec![
        format!(
            "helenus {} serves CQL on {serves}{}",
            env!("CARGO_PKG_VERSION"),
            admin.unwrap_or_default()
        ),
        format!(
            "data {}, durability {}, login {}",
            config.data,
            config.durability,
            if has_login { "required" } else { "none" }
        ),
    ];
    if let Some(identity) = running.identity() {
        if config.profile.is_cosmos() {
            lines.push(format!("profile cosmos, account {}", config.account_name));
        }
        lines.extend(identity.account_key().map(|key| format!("account key {key}")));
        match (identity.certificate(), identity.certificate_path()) {
            (Some(_), Some(path)) => lines.push(format!("self-made certificate {}", path.display())),
            (Some(_), None) => lines.push("self-made certificate, in memory only; --ready-json has it".to_owned()),
            (None, _) => {}
        }
    }
    lines.extend(of_tables(running));
    lines.push(next_steps(config, running));
    lines.join("\n  ") + "\n"
}

/// Where the tables of each account are, and the keys that no setting has.
fn of_tables(running: &Running) -> Vec<String> {
    let (Some(keys), Some(address)) = (running.tables_keys(), running.tables_addresses().first()) else {
        return Vec::new();
    };
    let endpoint = |account: &str| format!("http://{address}/{account}");
    let mut lines: Vec<String> = keys
        .names()
        .map(|account| format!("tables {}", endpoint(account)))
        .collect();
    lines.extend(keys.drawn().map(|(account, key)| {
        format!(
            "DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};TableEndpoint={}",
            endpoint(account)
        )
    }));
    lines
}

/// How to connect, and how to stop.
fn next_steps(config: &Config, running: &Running) -> String {
    let plain = running.server().addresses().first();
    let is_valid = |user: &str| running.database().roles().is_none_or(|roles| roles.admit(user).is_ok());
    let user = match &config.server.credentials {
        Some(credentials) if is_valid(&credentials.user) => format!("-u {} ", credentials.user),
        // The role of the settings was dropped, or may no longer log in.
        Some(_) => "-u ROLE ".to_owned(),
        None => String::new(),
    };
    let cqlsh = plain.filter(|_| !config.profile.is_cosmos());
    let cqlsh = cqlsh.map(|address| format!("cqlsh {user}{} {}", address.ip(), address.port()));
    let of_role = if user == "-u ROLE " { " -- -u ROLE" } else { "" };
    let shell = data_directory(config).map(|_| format!("helenus shell --data {}{of_role}", config.data));
    let ways: Vec<String> = cqlsh.into_iter().chain(shell).collect();
    match ways.as_slice() {
        [] => "stop: Ctrl-C".to_owned(),
        ways => format!("connect: {}; stop: Ctrl-C", ways.join(", or ")),
    }
}

/// Addresses with commas between.
#[must_use]
pub(super) fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_takes_the_colours_of_a_terminal() {
        for (is_terminal, no_color, is_colored_log) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (false, None, false),
        ] {
            assert_eq!(
                is_colored(is_terminal, no_color.map(OsStr::new)),
                is_colored_log,
                "{no_color:?}"
            );
        }
    }
}
