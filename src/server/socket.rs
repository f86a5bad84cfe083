//! Unix sockets in the data directory, mode 0600 in a directory of mode 0700: the file system lets only the owner of
//! the data and root connect.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use helenus_base::permissions;

/// A listening socket. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// A path to a socket that fits into a socket's address however long the directory's path is: through an open handle of
/// the directory, which must stay open until the path was used. On other systems than Linux, the path itself.
pub(super) fn path(directory: &Path, name: &str) -> io::Result<(std::fs::File, PathBuf)> {
    let handle = std::fs::File::open(directory)?;
    let path = if cfg!(target_os = "linux") {
        let number = std::os::fd::AsRawFd::as_raw_fd(&handle);
        PathBuf::from(format!("/proc/self/fd/{number}")).join(name)
    } else {
        directory.join(name)
    };
    Ok((handle, path))
}

impl OwnSocket {
    /// Listens on the socket of this name, and removes the remains of a killed server.
    ///
    /// # Errors
    /// The directory cannot hold a socket, or another server listens there: this server holds no lock of a directory
    /// that is not its data's.
    pub(super) fn listen(directory: &Path, name: &str) -> io::Result<Self> {
        let (_handle, path) = path(directory, name)?;
        if std::os::unix::net::UnixStream::connect(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        permissions::set_mode(&path, permissions::PRIVATE)?;
        Ok(Self {
            listener,
            path: directory.join(name),
        })
    }

    /// The next connection.
    ///
    /// # Errors
    /// The errors of accept.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(socket, _)| socket)
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // If this fails, the next server of the directory removes it.
        drop(std::fs::remove_file(&self.path));
    }
}
