//! `helenus run -- COMMAND`: a command with a server of its own in memory.
//!
//! ```text
//! start the server ─► run --init ─► write the record ─► COMMAND … ends ─► stop the server ─► exit as COMMAND did
//! ```
//! The command finds the server by `CASSANDRA_HOST` and `CASSANDRA_PORT`, or by the record whose file `HELENUS_READY_JSON` names. `helenus
//! shell` and `helenus status` read the same variable, so they find the server without arguments; cqlsh reads `CQLSH_HOST` and
//! `CQLSH_PORT`. `HELENUS_BIN` names this program, for test kits inside the command.
//!
//! `HELENUS_READY_JSON` is also a setting: where a server writes its record. A server that the command starts must not write its record
//! over that of the server around it, so `HELENUS_RUN_RECORD` repeats the file's name: where both are equal, the variable is no setting
//! of a verb that serves ([`forget_outer_record`]).

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitCode, ExitStatus};

use clap::{Arg, ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::record::ServerRecord;
use super::{Failure, serving, terminal};
use crate::config::{Config, Origin, Values, variable};
use helenus_base::permissions;

/// The base of exit codes for a command that a signal ended: the signal's number is added, as in shells.
const SIGNALLED: i32 = 128;

/// The variable by which test kits find the program.
const BIN: &str = "HELENUS_BIN";

/// The arguments of the verb.
#[must_use]
pub(super) fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .required(true)
                .num_args(1..)
                .last(true)
                .help("The command and its arguments"),
        )
        .after_help(
            "COMMAND has CASSANDRA_HOST, CASSANDRA_PORT, CQLSH_HOST, CQLSH_PORT, HELENUS_READY_JSON (a file) and HELENUS_BIN in its \
             environment. Exit code: that of COMMAND; 126 if it cannot be started, 127 if there is none.",
        )
}

/// The verb's defaults, which replace the program's: free ports, data in memory, a quiet log.
pub(super) fn suggest(values: &mut Values) {
    for (name, value) in [
        ("data", "memory:"),
        ("listen", "127.0.0.1:0"),
        ("tls-listen", "127.0.0.1:0"),
        ("admin-listen", "127.0.0.1:0"),
        ("log", "warn"),
    ] {
        let is_tls_wanted = name != "tls-listen" || values.is_set(name);
        if is_tls_wanted {
            values.suggest("run", name, value);
        }
    }
}

/// The variable that repeats the name of the record's file.
pub(super) const RUN_RECORD: &str = "HELENUS_RUN_RECORD";

/// Removes the variable of the surrounding `helenus run`, which names its record's file. A verb that serves must not
/// write there. A verb with `--data` means the server of that data.
pub(super) fn forget_outer_record(values: &mut Values, serves: bool, environment: impl Fn(&str) -> Option<String>) {
    let is_data_given = values.origin("data") == Some(&Origin::CommandLine);
    let name = variable("ready-json");
    let is_outer = environment(RUN_RECORD).is_some_and(|file| environment(&name) == Some(file));
    if is_outer && (serves || is_data_given) && values.origin("ready-json") == Some(&Origin::Environment(name)) {
        values.forget("ready-json");
    }
}

/// A directory that is removed with its contents on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: it is in the temporary directory, and only its owner can read it.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Runs the command with a server.
///
/// # Errors
/// The server or the command cannot start.
pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    serving::log(config)?;
    permissions::keep_new_files_private();
    let mut words = matches.get_many::<String>("command").unwrap_or_default();
    let program = words.next().ok_or("give a command after --")?;
    let scratch = Scratch(std::env::temp_dir().join(format!("helenus-run-{}", std::process::id())));
    permissions::create_directory(&scratch.0)?;
    serving::runtime(config)?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // SIGHUP comes from a closed terminal.
        let mut hang_up = signal(SignalKind::hangup())?;
        // A terminal also sends SIGINT to the command, which decides itself when to end.
        let _interrupt = signal(SignalKind::interrupt())?;
        let mut ended = signal(SignalKind::child())?;
        let running = serving::start(config).await?;
        let record = ServerRecord::of(config, &running)?;
        let file = scratch.0.join("ready.json");
        let written = record.write(&file)?;
        let mut command = Process::new(program);
        command.args(words).envs(environment(&record, &file)?);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                running.stop().await?;
                terminal::say(format_args!("helenus: cannot run {program}: {error}"));
                return Ok(ExitCode::from(not_run(error.kind())));
            }
        };
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            tokio::select! {
                _ = ended.recv() => {}
                _ = terminate.recv() => end(&child),
                _ = hang_up.recv() => end(&child),
            }
        };
        running.stop().await?;
        drop(written);
        Ok(code(status))
    })
}

/// The exit code for a command that could not be started, as of `env` and of shells.
const fn not_run(kind: std::io::ErrorKind) -> u8 {
    if matches!(kind, std::io::ErrorKind::NotFound) {
        127
    } else {
        126
    }
}

/// The environment of the command.
fn environment(record: &ServerRecord, file: &Path) -> Result<Vec<(String, String)>, Failure> {
    let address = record
        .cql
        .as_ref()
        .or(record.tls.as_ref())
        .ok_or("the server has no address")?;
    let address: SocketAddr = address.parse()?;
    let mut variables = vec![
        (variable("ready-json"), file.display().to_string()),
        (RUN_RECORD.to_owned(), file.display().to_string()),
    ];
    for (host, port) in [("CASSANDRA_HOST", "CASSANDRA_PORT"), ("CQLSH_HOST", "CQLSH_PORT")] {
        variables.push((host.to_owned(), address.ip().to_string()));
        variables.push((port.to_owned(), address.port().to_string()));
    }
    if std::env::var_os(BIN).is_none() {
        variables.push((BIN.to_owned(), std::env::current_exe()?.display().to_string()));
    }
    Ok(variables)
}

/// Signals the command to end.
fn end(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
        && let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::TERM)
    {
        tracing::warn!(%error, "cannot end the command");
    }
}

fn code(status: ExitStatus) -> ExitCode {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    let code = status.code().or(signal.map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}
