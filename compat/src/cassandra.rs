//! A Cassandra of our own, started with `oracle/start` on a folder of the cache and stopped when dropped.

use crate::{Error, Outcome};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// A running Cassandra.
#[derive(Debug)]
pub struct Cassandra {
    address: String,
    port: u16,
    folder: PathBuf,
}

impl Cassandra {
    /// Starts one without data on 127.0.0.1, on this port and the three after it; `None`, with a word why, when this
    /// machine has no Java, or neither Cassandra's jars nor Maven. `purpose` names its folder.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(purpose: &str, port: u16) -> Outcome<Option<Self>> {
        Self::start_with(purpose, port, &[])
    }

    /// As [`Cassandra::start`], with these options of `oracle/start` too.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_with(purpose: &str, port: u16, options: &[&str]) -> Outcome<Option<Self>> {
        let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let cache = cache()?;
        if !there("java") || !(there("mvn") || cache.join("cassandra/lib").is_dir()) {
            println!("cassandra  skipped: no java or mvn on this machine");
            return Ok(None);
        }
        let folder = cache.join("cassandra").join(purpose);
        std::fs::create_dir_all(&folder)?;
        let cassandra = Self {
            address: format!("127.0.0.1:{port}"),
            port,
            folder,
        };
        if cassandra.call("start", &[&["--clean"], options].concat())?.success() {
            Ok(Some(cassandra))
        } else {
            Err(Error::failed("Cassandra did not start"))
        }
    }

    /// Where it listens, HOST:PORT.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it left none.
    pub fn pid(&self) -> Outcome<u32> {
        let text = std::fs::read_to_string(self.folder.join("pid"))?;
        text.trim().parse().map_err(|_| Error::failed("no pid of Cassandra"))
    }

    fn call(&self, script: &str, more: &[&str]) -> Outcome<ExitStatus> {
        Command::new(crate::here("oracle").join(script))
            .args(["-p", &self.port.to_string(), "-d"])
            .arg(&self.folder)
            .args(more)
            .env("LIB", cache()?.join("cassandra/lib"))
            .status()
            .map_err(Error::io("start Cassandra"))
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _already_gone = self.call("stop", &[]);
    }
}

/// Where downloads and builds are kept: `HELENUS_COMPAT_CACHE`, or `~/.cache/helenus-compat`.
///
/// # Errors
/// When there is no home.
pub fn cache() -> Outcome<PathBuf> {
    if let Some(named) = std::env::var_os("HELENUS_COMPAT_CACHE") {
        return Ok(named.into());
    }
    let home = std::env::var_os("HOME").ok_or_else(|| Error::failed("no HOME"))?;
    Ok(PathBuf::from(home).join(".cache/helenus-compat"))
}
