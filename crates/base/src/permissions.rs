//! Modes of files and directories, which protect data, passwords and keys from other users of the machine.
//!
//! | what | mode | where it is set |
//! | --- | --- | --- |
//! | directories of data | 0700 | [`create_directory`], [`tighten`] |
//! | files of data, lock files, keys | 0600 | [`keep_new_files_private`], [`write()`] with [`PRIVATE`], [`tighten`] |
//! | certificates | 0644 | [`write()`] with [`PUBLIC`]; [`tighten`] leaves files of its list as they are |
//!
//! A password file or key file named in the settings belongs to its user, so it is refused, not changed, if others can
//! read it ([`check_secret`]). The data directory belongs to the server: an older program created it by the umask, and
//! a refusal there would break an upgrade.
//!
//! On systems without Unix modes nothing is checked or set.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The mode of files that only their owner may read.
pub const PRIVATE: u32 = 0o600;

/// The mode of files that every user may read, such as a certificate.
pub const PUBLIC: u32 = 0o644;

/// The mode of directories of data.
#[cfg(unix)]
const PRIVATE_DIRECTORY: u32 = 0o700;

/// The bits of group and others.
#[cfg(unix)]
const NOT_OWNER: u32 = 0o077;

/// A file with a secret that other users can read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Its mode gives access to others.
    #[error("others can read {} (mode {mode:04o}): run chmod 600 {}", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode, the last nine bits.
        mode: u32,
    },
    /// Its mode cannot be read.
    #[error("{}: {source}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Checks that only its owner can read a file with a secret. A file owned by root may be readable by its group, as
/// PostgreSQL allows for its `ssl_key_file`: this is how system administrators and Kubernetes pass keys to a service. A
/// file that is not regular, such as the pipe of `<(pass show db)`, is not checked.
///
/// # Errors
/// Others can read it, or it does not exist.
#[cfg(unix)]
pub fn check_secret(path: &Path) -> Result<(), SecretError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path).map_err(|source| SecretError::Unknown {
        path: path.to_owned(),
        source,
    })?;
    let mode = metadata.mode() & 0o777;
    let allowed = if metadata.uid() == 0 { 0o040 } else { 0 };
    if !metadata.is_file() || mode & NOT_OWNER & !allowed == 0 {
        return Ok(());
    }
    Err(SecretError::Open {
        path: path.to_owned(),
        mode,
    })
}

/// Checks nothing: this system has no modes.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn check_secret(_path: &Path) -> Result<(), SecretError> {
    Ok(())
}

/// From here on the process creates files that only its owner can use. For the program only: this applies to the whole
/// process.
#[cfg(unix)]
pub fn keep_new_files_private() {
    use rustix::fs::Mode;
    use rustix::process::umask;
    let before = umask(Mode::RWXG | Mode::RWXO);
    umask(before | Mode::RWXG | Mode::RWXO);
}

/// Does nothing: this system has no modes.
#[cfg(not(unix))]
pub fn keep_new_files_private() {}

/// Creates a directory of data that only its owner can use. Missing parents are created according to the umask. An
/// existing directory is not changed.
///
/// # Errors
/// It cannot be created.
pub fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, PRIVATE_DIRECTORY);
    match builder.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

/// The name under which a file is written before it gets its own: no other file's, so the extension stays.
#[must_use]
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Writes a file atomically. Its mode is exactly this one, whatever the umask.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    let part = part_of(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    let mut file = options.open(&part)?;
    set_mode(&part, mode)?;
    file.write_all(content.as_ref())?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// Sets a file's mode.
///
/// # Errors
/// The file belongs to another user.
#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// Does nothing: this system has no modes.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// The result of [`tighten`].
#[derive(Debug, Default)]
pub struct Tightened {
    /// Files and directories that others could access and cannot any more.
    pub changed: usize,
    /// Those that others can still access.
    pub failed: usize,
    /// The first failure.
    pub first_failure: Option<(PathBuf, io::Error)>,
}

/// Removes the rights of group and others from a data directory and all that is in it, except files named in `public`
/// and `lost+found`. Follows no symbolic links. A failure does not stop it: files may belong to another user if a
/// volume is shared.
#[cfg(unix)]
#[must_use]
pub fn tighten(directory: &Path, public: &[&str]) -> Tightened {
    use std::os::unix::fs::MetadataExt;
    let mut done = Tightened::default();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let tightened = fs::symlink_metadata(&path).and_then(|metadata| {
            let name = path.file_name().unwrap_or_default();
            let is_public = name == "lost+found" || public.iter().any(|public| name == *public);
            if metadata.is_symlink() || is_public {
                return Ok(false);
            }
            let mode = metadata.mode() & 0o777;
            let is_open = mode & NOT_OWNER != 0;
            if is_open {
                set_mode(&path, mode & !NOT_OWNER)?;
            }
            if metadata.is_dir() {
                for entry in fs::read_dir(&path)? {
                    left.push(entry?.path());
                }
            }
            Ok(is_open)
        });
        match tightened {
            Ok(changed) => done.changed += usize::from(changed),
            // The engine may remove its own files at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                done.failed += 1;
                done.first_failure.get_or_insert((path, error));
            }
        }
    }
    done
}

/// Does nothing: this system has no modes.
#[cfg(not(unix))]
#[must_use]
pub fn tighten(_directory: &Path, _public: &[&str]) -> Tightened {
    Tightened::default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).map_or(0, |metadata| metadata.mode() & 0o777)
    }

    #[test]
    fn secrets_that_others_can_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        fs::write(&path, "s3cret\n").unwrap();
        let is_root = fs::metadata(&path).unwrap().uid() == 0;
        for (given, is_fine) in [
            (0o600, true),
            (0o400, true),
            (0o640, is_root),
            (0o660, false),
            (0o604, false),
            (0o644, false),
            (0o602, false),
        ] {
            set_mode(&path, given).unwrap();
            let checked = check_secret(&path);
            assert_eq!(checked.is_ok(), is_fine, "{given:o}");
            if let Err(error) = checked {
                assert!(
                    error
                        .to_string()
                        .ends_with(&format!("run chmod 600 {}", path.display()))
                );
            }
        }
        assert!(check_secret(Path::new("/nowhere")).is_err());
        assert!(check_secret(Path::new("/dev/null")).is_ok(), "it is no plain file");
    }

    #[test]
    fn directories_and_files_are_created_for_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        create_directory(&directory).unwrap();
        create_directory(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        for given in [PRIVATE, PUBLIC] {
            let path = directory.join("file");
            write(&path, "text", given).unwrap();
            assert_eq!(
                (mode(&path), fs::read_to_string(&path).unwrap()),
                (given, "text".into())
            );
        }
    }

    #[test]
    fn a_directory_of_data_is_tightened() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, outside) = (folder.path().join("data"), folder.path().join("outside"));
        fs::create_dir_all(directory.join("engine")).unwrap();
        let (table, certificate) = (directory.join("engine/1"), directory.join("certificate.pem"));
        for path in [&table, &certificate, &outside] {
            fs::write(path, "x").unwrap();
            set_mode(path, 0o664).unwrap();
        }
        std::os::unix::fs::symlink(&outside, directory.join("link")).unwrap();
        set_mode(&directory, 0o755).unwrap();
        set_mode(&directory.join("engine"), 0o750).unwrap();
        let done = tighten(&directory, &["certificate.pem"]);
        assert_eq!((done.changed, done.failed), (3, 0));
        assert_eq!((mode(&directory), mode(&directory.join("engine"))), (0o700, 0o700));
        assert_eq!(
            (mode(&table), mode(&certificate), mode(&outside)),
            (0o600, 0o664, 0o664)
        );
        assert_eq!(tighten(&directory, &["certificate.pem"]).changed, 0);
    }
}
