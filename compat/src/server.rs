//! A server started as a program, watched from outside, and ended with this value.
//!
//! Its standard output and error go to a file in its folder, so that a run can look for panics afterwards.

use crate::clock;
use crate::raw::Connection;
use crate::through;
use crate::{Error, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
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
        Self::start_program(&program()?, data, arguments, folder)
    }

    /// As [`Server::start_with`], of another program.
    ///
    /// # Errors
    /// When it cannot be started or ends before it is ready.
    pub fn start_program(program: &Path, data: &str, arguments: &[&str], folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--data", data, "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        Self::spawn(command, folder)
    }

    /// Starts `command`, to which `--ready-file` is added, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started or ends before it is ready.
    pub fn spawn(command: Command, folder: &Path) -> Outcome<Self> {
        Starting::launch(command, folder)?.ready()
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

    /// Stops it as SIGSTOP does: it answers nothing more, calls that it is in come to their end.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn freeze(&self) -> Outcome<()> {
        crate::tools::run("kill", ["-STOP".to_owned(), self.pid().to_string()]).map(|_| ())
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn kill(mut self) -> Outcome<()> {
        through::kill(|| {
            self.child.kill()?;
            self.child.wait().map(drop)
        })?;
        Ok(())
    }

    /// How it ended; `None`: it runs.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// All that it, and those that ran before it in the same folder, have logged.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How often its log says that a thread panicked.
    pub fn panics(&self) -> usize {
        self.logged().matches("panicked at").count()
    }
}

/// A server that is not ready yet.
#[derive(Debug)]
pub struct Starting {
    /// Taken when it is ready.
    child: Option<Child>,
    ready: PathBuf,
    log: PathBuf,
    /// What the log held before.
    logged_before: usize,
}

impl Starting {
    /// Starts `command`, to which `--ready-file` is added; `folder` takes that and the log.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch(mut command: Command, folder: &Path) -> Outcome<Self> {
        let ready = folder.join("ready");
        let log = folder.join("server.log");
        match std::fs::remove_file(&ready) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove the ready file")(error));
            }
            _ => {}
        }
        let out = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let logged_before = std::fs::read(&log)?.len();
        command.arg("--ready-file").arg(&ready);
        command.stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        let child = Some(command.spawn().map_err(Error::io("start the server"))?);
        Ok(Self {
            child,
            ready,
            log,
            logged_before,
        })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// When it ends before that, or a minute passes.
    pub fn ready(mut self) -> Outcome<Server> {
        let start = clock::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(&self.ready)
                && text.ends_with('\n')
                && let Some(child) = self.child.take()
            {
                let address = text.lines().next().unwrap_or_default().trim().to_owned();
                let log = std::mem::take(&mut self.log);
                through::begin();
                return Ok(Server { child, address, log });
            }
            if let Some(status) = self.ended()? {
                let log = std::fs::read(&self.log).unwrap_or_default();
                let told = String::from_utf8_lossy(log.get(self.logged_before..).unwrap_or_default());
                return Err(Error::failed(format!(
                    "the server ended ({status}) before it was ready:\n{}",
                    told.trim_end()
                )));
            }
            if start.elapsed() > READY_WAIT_MAX {
                return Err(Error::failed("the server is not ready after a minute"));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// How it ended; `None`: it runs.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(child);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have been killed already.
    let _already_gone = child.kill();
    let _already_waited = child.wait();
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
