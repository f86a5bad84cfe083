//! The `cli` room: the verbs of the `helenus` program. `main` hands the arguments to [`run`].
//!
//! `verbs::VERBS` is the table: name, older words, summary, the settings that the verb uses, its arguments and its function. Help,
//! completions, the man page and parsing all read it; a verb is added by a line there.
//!
//! A server writes a [`record::ServerRecord`] once it serves: one line of JSON with every address, the account and its key, the
//! certificate and the process id. Test harnesses read it (`--ready-json`), and so do `helenus shell`, `status` and `health`, which find
//! it in the data directory. The record holds a password, so only its owner may read it. It is removed when the server stops; a killed
//! server leaves it, and its reader notices that when it connects.

pub mod backups;
mod bash;
#[cfg(test)]
mod book;
mod cert;
mod check_bucket;
mod cqlsh;
mod dev;
#[cfg(test)]
mod features;
mod feed;
mod fleet_secret;
mod groups;
mod health;
mod init;
mod lint;
mod pages;
pub mod parent;
mod passwd;
mod pkcs12;
mod progress;
pub mod record;
mod running;
mod servers;
mod serving;
mod settings;
pub mod shell;
mod status;
mod stress;
mod switches;
mod terminal;
mod tips;
mod verbs;
mod verify;
pub mod warnings;

use std::ffi::OsString;
use std::process::ExitCode;

/// An error for the user of the command line.
pub type Failure = Box<dyn std::error::Error>;

/// Exit code of arguments that cannot be parsed, as clap has it.
const USAGE: u8 = 2;

/// Parses the program's arguments and runs the verb. Called as `cqlsh`, it acts as cqlsh. Exits with 2 if the arguments
/// are invalid.
#[must_use]
pub fn run() -> ExitCode {
    if cqlsh::is_called_by(std::env::args_os().next().as_deref()) {
        return cqlsh::run();
    }
    let matches = match verbs::command().try_get_matches_from(arguments(std::env::args_os())) {
        Ok(matches) => matches,
        Err(error) => match tips::of(&error, &texts(std::env::args_os())) {
            Some(hint) => {
                terminal::say(format_args!("error: {hint}"));
                return ExitCode::from(USAGE);
            }
            // Help and the version are such errors, too.
            None => error.exit(),
        },
    };
    match verbs::run(&matches) {
        Ok(code) => code,
        // The reader of our output, such as `head`, has closed the pipe.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(format_args!("helenus: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The arguments as texts, up to those of a command behind `--`.
fn texts(given: impl Iterator<Item = OsString>) -> Vec<String> {
    let texts = given.map(|argument| argument.to_string_lossy().into_owned());
    texts.take_while(|argument| argument != "--").collect()
}

/// The program's arguments. `help` is a verb of clap's own that takes no `-h`, so that is left out there.
fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = given.collect();
    if let [_, verb, help] = arguments.as_slice()
        && verb == "help"
        && (help == "-h" || help == "--help")
    {
        arguments.truncate(2);
    }
    arguments
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>();
    io.or_else(|| json.and_then(serde_json::Error::io_error_kind)) == Some(std::io::ErrorKind::BrokenPipe)
}

/// The program's only use of the system's randomness.
fn seed() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
