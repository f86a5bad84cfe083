//! How a server is started in a run of faults: engine, durability, a clock of its own, system calls that fail or lie.

use crate::server::{self, Server, Starting};
use crate::{Error, Outcome, through, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Storage engines, by the beginning of a data URL.
pub const ENGINES: [&str; 2] = ["file", "slate+file"];

/// An engine as it is named on a command line: as a data URL begins, with or without its colon.
///
/// # Errors
/// Says which there are.
pub fn engine(named: &str) -> Result<String, String> {
    let name = named.strip_suffix(':').unwrap_or(named);
    if ENGINES.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("the engines are {}", ENGINES.join(" and ")))
    }
}

/// Where a run that names no engine keeps its data: in `folder`, or, under `compat/bucket/with`, below a prefix of its own in the bucket.
pub fn data(folder: &Path) -> String {
    let Ok(bucket) = std::env::var("HELENUS_COMPAT_BUCKET") else {
        return format!("file:{}", folder.join("data").display());
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{bucket}/{}", name.trim_start_matches('.'))
}

/// Whether such a run keeps its data in a bucket.
pub fn is_in_bucket() -> bool {
    std::env::var_os("HELENUS_COMPAT_BUCKET").is_some()
}

/// Runs with each engine that is named, with all if none is; true when all held.
///
/// # Errors
/// Those of the run.
pub fn each_engine(named: &[String], mut run: impl FnMut(&str) -> Outcome<bool>) -> Outcome<bool> {
    let mut held = true;
    if named.is_empty() {
        for engine in ENGINES {
            held &= run(engine)?;
        }
    }
    for engine in named {
        held &= run(known(engine)?)?;
    }
    Ok(held)
}

/// An engine as [`ENGINES`] has it, with or without the colon of a URL.
fn known(named: &str) -> Outcome<&str> {
    let engine = named.strip_suffix(':').unwrap_or(named);
    if ENGINES.contains(&engine) {
        return Ok(engine);
    }
    Err(Error::failed(format!(
        "no engine \"{named}\": write one of {}",
        ENGINES.join(", ")
    )))
}

/// What strace does to some system calls of a server.
#[derive(Debug, Clone)]
pub struct Injection {
    /// Names of the calls, with commas.
    pub calls: &'static str,
    /// As strace has it behind the names: `retval=0`, `error=EIO:when=3+`.
    pub what: String,
    /// Takes a line for each call; those of several starts go behind one another.
    pub log: PathBuf,
}

impl Injection {
    /// How many calls it changed so far.
    pub fn struck(&self) -> usize {
        let told = std::fs::read_to_string(&self.log).unwrap_or_default();
        told.matches("(INJECTED)").count()
    }
}

/// A server to be started, perhaps several times.
#[derive(Debug, Clone)]
pub struct Launch {
    /// URL of the data.
    pub data: String,
    /// More arguments.
    pub arguments: Vec<String>,
    /// Calls that fail or lie.
    pub injection: Option<Injection>,
    /// How far its clock is from the machine's, in seconds.
    pub clock_offset_seconds: i64,
}

impl Launch {
    /// Of this engine, with its data in `folder`. A fleet has them in a bucket, whatever the engine.
    pub fn new(engine: &str, folder: &Path) -> Self {
        Self {
            data: if through::is_fleet() {
                data(folder)
            } else {
                format!("{}:{}", engine.trim_end_matches(':'), folder.join("data").display())
            },
            arguments: Vec::new(),
            injection: None,
            clock_offset_seconds: 0,
        }
    }

    /// The same with these arguments too.
    #[must_use]
    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// The command that starts it.
    ///
    /// # Errors
    /// [`crate::Error::Skipped`] when strace or libfaketime is needed and missing.
    pub fn command(&self) -> Outcome<Command> {
        let program = server::program()?;
        let mut command = match &self.injection {
            None => Command::new(program),
            Some(injection) => {
                tools::need("strace", "strace")?;
                let mut strace = Command::new("strace");
                // -D: the server is this process's child, the tracer its grandchild, so that a kill hits the server.
                strace
                    .args(["-D", "-f", "-qq", "--seccomp-bpf", "-A", "-o"])
                    .arg(&injection.log);
                strace.arg("-e").arg(format!("trace={}", injection.calls));
                strace
                    .arg("-e")
                    .arg(format!("inject={}:{}", injection.calls, injection.what));
                strace.arg(program);
                strace
            }
        };
        if self.clock_offset_seconds != 0 {
            command.env("LD_PRELOAD", tools::faketime()?);
            command.env("FAKETIME", format!("{:+}", self.clock_offset_seconds));
            // Time that passes is not what jumps.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("DONT_FAKE_MONOTONIC", "1");
        }
        command.args(["serve", "--data", &self.data, "--listen", "127.0.0.1:0"]);
        command.args(&self.arguments);
        Ok(command)
    }

    /// Starts it and waits until it is ready; `folder` takes its log.
    ///
    /// # Errors
    /// When it ends before that.
    pub fn start(&self, folder: &Path) -> Outcome<Server> {
        Server::spawn(self.command()?, folder)
    }

    /// Starts it and does not wait.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin(&self, folder: &Path) -> Outcome<Starting> {
        Starting::launch(self.command()?, folder)
    }

    /// The exit code of `helenus salvage` on the data, and its words. `None` means that a signal ended it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn salvage(&self, to: &Path) -> Outcome<(Option<i32>, String)> {
        let mut command = Command::new(server::program()?);
        let output = command
            .args(["salvage", "--data", &self.data, "--to"])
            .arg(to)
            .output()?;
        let (out, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        Ok((output.status.code(), format!("{out}{error}")))
    }

    /// `helenus restore` of a folder into the data; its words when it fails.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn restore(&self, from: &Path) -> Outcome<Option<String>> {
        let mut command = Command::new(server::program()?);
        let output = command
            .args(["restore", "--data", &self.data, "--from"])
            .arg(from)
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        let failed = !output.status.success();
        Ok(failed.then(|| format!("restore ended with {}: {error}", output.status)))
    }

    /// `helenus check-indexes` on the data, which no server may have open; its words when it fails. No verb reads the bucket of a fleet.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn check_indexes(&self) -> Outcome<Option<String>> {
        if through::is_fleet() {
            return Ok(None);
        }
        let mut command = Command::new(server::program()?);
        let output = command.args(["check-indexes", "--data", &self.data]).output()?;
        if output.status.success() {
            return Ok(None);
        }
        let (out, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        Ok(Some(format!(
            "check-indexes ended with {}: {out}{error}",
            output.status
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_known_with_and_without_the_colon_of_a_url() {
        for engine in ENGINES {
            assert_eq!(known(engine).ok(), Some(engine));
            assert_eq!(known(&format!("{engine}:")).ok(), Some(engine));
        }
        for unknown in ["", ":", "files", "file::", "memory"] {
            assert!(known(unknown).is_err(), "{unknown}");
        }
    }
}
