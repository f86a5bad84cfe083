//! A server started as a program, watched from outside, and ended with this value.
//!
//! Its standard output and error go to a file in its folder, so that a run can look for panics afterwards.

use crate::clock;
use crate::raw::Connection;
use crate::{Error, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest wait for a server to be ready.
const READY_WAIT_MAX: Duration = Duration::from_secs(60);
/// Clock ticks per second of `/proc/PID/stat`: 100 on every Linux in use.
const TICKS_PER_SECOND: u64 = 100;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
    log: PathBuf,
}

/// Where the server's program is: `HELENUS_BIN`, or beside this one.
///
/// # Errors
/// When it is in neither place.
pub fn program() -> Outcome<PathBuf> {
    if let Some(named) = std::env::var_os("HELENUS_BIN") {
        return Ok(named.into());
    }
    let beside = std::env::current_exe()?.with_file_name("helenus");
    if beside.exists() {
        Ok(beside)
    } else {
        Err(Error::failed(
            "no `helenus` beside this program: cargo build --release, or set HELENUS_BIN",
        ))
    }
}

impl Server {
    /// Starts `helenus serve` with its data at `data` (a URL); `folder` takes its log and ready file.
    ///
    /// # Errors
    /// When it cannot be started or ends before it is ready.
    pub fn start(data: &str, folder: &Path) -> Outcome<Self> {
        Self::start_with(data, &[], folder)
    }

    /// As [`Server::start`], with more arguments.
    ///
    /// # Errors
    /// When it cannot be started or ends before it is ready.
    pub fn start_with(data: &str, arguments: &[&str], folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(program()?);
        command.args(["serve", "--data", data, "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        Self::spawn(command, folder)
    }

    /// Starts `command`, to which `--ready-file` is added.
    ///
    /// # Errors
    /// When it cannot be started or ends before it is ready.
    pub fn spawn(mut command: Command, folder: &Path) -> Outcome<Self> {
        let ready = folder.join("ready");
        let log = folder.join("server.log");
        match std::fs::remove_file(&ready) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove the ready file")(error));
            }
            _ => {}
        }
        let out = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        command.arg("--ready-file").arg(&ready);
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        let mut child = command.spawn().map_err(Error::io("start the server"))?;
        let start = clock::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(&ready)
                && text.ends_with('\n')
            {
                let address = text.lines().next().unwrap_or_default().trim().to_owned();
                return Ok(Self { child, address, log });
            }
            if let Some(status) = child.try_wait()? {
                let told = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(Error::failed(format!(
                    "the server ended ({status}) before it was ready:\n{told}"
                )));
            }
            if start.elapsed() > READY_WAIT_MAX {
                child.kill()?;
                return Err(Error::failed("the server is not ready after a minute"));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Where it listens, HOST:PORT.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn runs(&mut self) -> Outcome<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// A started connection, protocol version 4.
    ///
    /// # Errors
    /// When it refuses.
    pub fn connect(&self) -> Outcome<Connection> {
        Connection::open(&self.address, 4)
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// How often its log says that a thread panicked.
    pub fn panics(&self) -> usize {
        std::fs::read_to_string(&self.log)
            .unwrap_or_default()
            .matches("panicked at")
            .count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed already.
        let _already_gone = self.child.kill();
        let _already_waited = self.child.wait();
    }
}

/// Processor time a process has used, user and system, in microseconds.
///
/// # Errors
/// When there is no such process.
pub fn cpu_micros(pid: u32) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(Error::io("read /proc"))?;
    // The name in brackets may hold blanks; fields are counted from behind it: utime is the 14th, stime the 15th.
    let fields = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>())
        .unwrap_or_default();
    let field = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    Ok((field(11) + field(12)) * (1_000_000 / TICKS_PER_SECOND))
}

/// Processor time, user and system, that each thread of a process has used: finer than [`cpu_micros`], which counts in hundredths
/// of a second.
#[derive(Debug, Clone)]
pub struct CpuTimes(BTreeMap<String, u64>);

impl CpuTimes {
    /// Reads it.
    ///
    /// # Errors
    /// When there is no such process, or the system does not keep the time of its threads.
    pub fn read(pid: u32) -> Outcome<Self> {
        let mut nanos = BTreeMap::new();
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).map_err(Error::io("read /proc"))? {
            let task = task?;
            // A thread may be gone by now.
            let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else {
                continue;
            };
            let on_processor = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
            let on_processor = on_processor.ok_or(Error::Malformed("schedstat of a thread"))?;
            nanos.insert(task.file_name().to_string_lossy().into_owned(), on_processor);
        }
        if nanos.is_empty() {
            return Err(Error::failed("no thread's processor time can be read"));
        }
        Ok(Self(nanos))
    }

    /// What was used since an earlier reading; that of threads that have ended since is not known.
    #[must_use]
    pub fn since(&self, before: &Self) -> Duration {
        let used = |(thread, now): (&String, &u64)| now.saturating_sub(before.0.get(thread).copied().unwrap_or(0));
        Duration::from_nanos(self.0.iter().map(used).sum())
    }
}

/// Memory a process holds, in KiB.
///
/// # Errors
/// When there is no such process.
pub fn rss_kib(pid: u32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(Error::io("read /proc"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    Ok(line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0))
}
