//! A disk whose power can be cut: an ext4 file system in an image, mounted over a loop device.
//!
//! ```text
//! server ─ write, fsync ─► page cache, ext4's journal in memory ─ issued ─► loop device ─► image
//!                                          └── a cut drops all of this ──┘      └── stays
//! ```
//! A cut is ext4's own shutdown (`EXT4_IOC_SHUTDOWN`, no flush of the journal), as xfstests uses it to test ext4 itself: from that
//! moment nothing goes to the device, and every call on the file system fails with EIO. Unmounting then drops what was not issued,
//! mounting replays the journal. So the server finds what the file system had issued at one moment, and nothing else; no copy is made.
//! The journal is committed every second, so that names, lengths and removals reach the device while data that was not synced does
//! not: the order in which programs that forget a sync lose.
//!
//! Deliberately absent: a device whose own cache forgets what was issued and not flushed; it would need device mapper.

use crate::{Error, Outcome, tools};
use std::path::{Path, PathBuf};

/// `_IOR('X', 125, __u32)` with 2, no flush: linux/fs/ext4/ext4.h.
const CUT: &str = r#"open(my $f, "<", $ARGV[0]) or die "open: $!"; my $flags = pack("L", 2); ioctl($f, 0x8004587D, $flags) or die "ioctl: $!";"#;

/// A mounted image; unmounted when dropped.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes one of so many MiB in `folder`.
    ///
    /// # Errors
    /// [`Error::Skipped`] where images cannot be mounted.
    pub fn make(folder: &Path, mebibytes: u64) -> Outcome<Self> {
        if !tools::is_root() || !Path::new("/dev/loop-control").exists() {
            return Err(Error::Skipped(
                "mounting an image needs root and loop devices".to_owned(),
            ));
        }
        tools::need("mkfs.ext4", "e2fsprogs")?;
        tools::need("mount", "mount")?;
        tools::need("perl", "perl-base")?;
        let disk = Self {
            image: folder.join("disk.img"),
            mount: folder.join("disk"),
        };
        std::fs::create_dir(&disk.mount)?;
        std::fs::File::create(&disk.image)?.set_len(mebibytes << 20)?;
        tools::run(
            "mkfs.ext4",
            // No blocks are kept for root, which the server may be: a full disk is full.
            ["-q", "-F", "-m", "0"]
                .map(OsArg::Text)
                .into_iter()
                .chain([OsArg::Path(&disk.image)]),
        )?;
        disk.attach()?;
        Ok(disk)
    }

    fn attach(&self) -> Outcome<()> {
        let options = ["-o", "loop,commit=1"].map(OsArg::Text);
        let paths = [OsArg::Path(&self.image), OsArg::Path(&self.mount)];
        tools::run("mount", options.into_iter().chain(paths)).map(|_| ())
    }

    /// Where files go.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// Cuts the power. What runs on it must be ended before [`Disk::power_on`].
    ///
    /// # Errors
    /// The file system refuses.
    pub fn cut(&self) -> Outcome<()> {
        let arguments = [OsArg::Text("-e"), OsArg::Text(CUT), OsArg::Path(&self.mount)];
        tools::run("perl", arguments).map(|_| ())
    }

    /// Starts it again after a cut.
    ///
    /// # Errors
    /// Something still runs on it, or the file system cannot be mounted.
    pub fn power_on(&self) -> Outcome<()> {
        tools::run("umount", [&self.mount])?;
        self.attach()
    }

    /// Writes out what the file system holds.
    ///
    /// # Errors
    /// It cannot.
    pub fn sync(&self) -> Outcome<()> {
        tools::run("sync", [OsArg::Text("-f"), OsArg::Path(&self.mount)]).map(|_| ())
    }

    /// Takes all that is free but for about so many bytes; the file that took it.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn fill(&self, but_bytes: u64) -> Outcome<PathBuf> {
        let filler = self.mount.join("filler");
        let length = self.free_bytes()?.saturating_sub(but_bytes).max(1);
        let length = length.to_string();
        let arguments = [OsArg::Text("-l"), OsArg::Text(&length), OsArg::Path(&filler)];
        let allocated = tools::run("fallocate", arguments);
        // The file system itself takes blocks for a file that long: it may have come to its end, and be a little too full.
        let missing = but_bytes.saturating_sub(self.free_bytes()?);
        if missing > 0 {
            let file = std::fs::OpenOptions::new().write(true).open(&filler)?;
            let held = file.metadata()?.len();
            file.set_len(held.saturating_sub(missing))?;
        } else if but_bytes > 0 {
            allocated?;
        }
        Ok(filler)
    }

    /// Bytes that files can still take.
    fn free_bytes(&self) -> Outcome<u64> {
        let told = tools::run(
            "df",
            [
                OsArg::Text("--output=avail"),
                OsArg::Text("-B1"),
                OsArg::Path(&self.mount),
            ],
        )?;
        let free = told.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
        free.ok_or(Error::Malformed("the free bytes that df tells"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The folder it is in goes next; the loop device goes with the mount.
        let _not_mounted = tools::run("umount", [OsArg::Text("-l"), OsArg::Path(&self.mount)]);
    }
}

/// An argument of a program: a text or a path.
#[derive(Debug, Clone, Copy)]
enum OsArg<'a> {
    Text(&'a str),
    Path(&'a Path),
}

impl AsRef<std::ffi::OsStr> for OsArg<'_> {
    fn as_ref(&self) -> &std::ffi::OsStr {
        match self {
            Self::Text(text) => text.as_ref(),
            Self::Path(path) => path.as_os_str(),
        }
    }
}
