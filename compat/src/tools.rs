//! Programs of the system that a run needs: strace, libfaketime, mount and its kin.

use crate::{Error, Outcome};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Whether this process is root.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// Whether a program is in the path.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Installs a package of Debian where that is this machine's custom: as root with CI=true.
fn install(package: &str) -> bool {
    let may = is_root() && std::env::var_os("CI").is_some_and(|ci| ci == "true") && is_there("apt-get");
    may && run("apt-get", ["update", "-q"]).is_ok() && run("apt-get", ["install", "-q", "-y", package]).is_ok()
}

/// A program that must be there, of this package.
///
/// # Errors
/// [`Error::Skipped`] when it is not, and cannot be installed.
pub fn need(program: &str, package: &str) -> Outcome<()> {
    if is_there(program) || (install(package) && is_there(program)) {
        return Ok(());
    }
    Err(Error::Skipped(format!(
        "{program} is not on this machine: apt-get install {package}"
    )))
}

/// The library that gives a program another time.
///
/// # Errors
/// [`Error::Skipped`] when it is not there, and cannot be installed.
pub fn faketime() -> Outcome<PathBuf> {
    let find = || {
        let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
        let mut places = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
        places.find(|place| place.exists())
    };
    find()
        .or_else(|| if install("faketime") { find() } else { None })
        .ok_or_else(|| Error::Skipped("libfaketime is not on this machine: apt-get install faketime".to_owned()))
}

/// Runs a program to its end; what it printed.
///
/// # Errors
/// It cannot be started or fails; with its words.
pub fn run<I, A>(program: &str, arguments: I) -> Outcome<String>
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(Error::io(format!("run {program}")))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(Error::failed(format!("{program} failed ({}): {error}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
