//! Where the server's program is. Nothing is downloaded.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = if cfg!(windows) { "helenus.exe" } else { "helenus" };

/// The program's path: the argument, else HELENUS_BIN, else `helenus` beside the test program, else `helenus` in PATH.
///
/// # Errors
/// There is none, or the one that is named is no program.
pub fn find(program: Option<&Path>) -> Result<PathBuf, String> {
    let named = program.map(Path::to_owned);
    let variable = || {
        env::var_os("HELENUS_BIN")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    if let Some(path) = named.or_else(variable) {
        return if is_program(&path) {
            Ok(path)
        } else {
            Err(format!("{} is not a program", path.display()))
        };
    }
    let beside = env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let search = env::var_os("PATH").unwrap_or_default();
    let mut places = beside
        .into_iter()
        .chain(env::split_paths(&search))
        .map(|folder| folder.join(NAME));
    let missing = "there is no helenus in PATH: set HELENUS_BIN to the program; in a clone `cargo build --release` makes \
                   target/release/helenus";
    places.find(|path| is_program(path)).ok_or_else(|| missing.to_owned())
}

/// Writes a program that a test carries (`include_bytes!`) into a folder, under a hash of its bytes, and returns its path. A rename puts it
/// there whole, so that processes that start at the same time never run half of it.
///
/// # Errors
/// The folder cannot be written.
pub fn extract(program: &[u8], folder: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut hash = DefaultHasher::new();
    program.hash(&mut hash);
    let folder = folder.join(format!("{:016x}", hash.finish()));
    let path = folder.join(NAME);
    if fs::read(&path).is_ok_and(|there| there == program) {
        return Ok(path);
    }
    fs::create_dir_all(&folder)?;
    let mut part = OsString::from("part-");
    part.push(format!(
        "{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let part = folder.join(part);
    let written = write(&part, program).and_then(|()| fs::rename(&part, &path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.map(|()| path)
}

fn write(path: &Path, program: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o700);
    options.open(path)?.write_all(program)
}

fn is_program(path: &Path) -> bool {
    let Ok(there) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&there.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    there.is_file() && runs
}
