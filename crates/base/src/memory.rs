//! The memory of the process, as the operating system counts it.

/// Memory of the process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// All of it.
    pub all: u64,
    /// The part that the kernel can read again from files: the program itself.
    pub files: u64,
}

impl Resident {
    /// Reads it. `None` means that the system does not tell.
    #[must_use]
    pub fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/status").ok()?)
    }

    /// proc_pid_status(5).
    fn parse(status: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: u64 = value.split_whitespace().next()?.parse().ok()?;
            Some(kibibytes * 1024)
        };
        Some(Self {
            all: bytes("VmRSS:")?,
            files: bytes("RssFile:").unwrap_or_default(),
        })
    }

    /// The part that the process allocated.
    #[must_use]
    pub const fn allocated(self) -> u64 {
        self.all.saturating_sub(self.files)
    }
}

/// From here on the process gets no transparent huge pages. For the program only: this applies to the whole process, and
/// to those that it starts.
///
/// The kernel fills a huge page as soon as a part of it is used, and merges pages of an idle process into huge ones:
/// measured, 85 MB in use became 107 MB within two minutes without a request.
#[cfg(target_os = "linux")]
pub fn keep_pages_small() {
    // An old kernel refuses; then the process only takes more memory.
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "the kernel keeps huge pages");
    }
}

/// Does nothing: this system has no such pages.
#[cfg(not(target_os = "linux"))]
pub fn keep_pages_small() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_the_kernel_is_read() {
        let status = "Name:\thelenus\nVmRSS:\t   44032 kB\nRssAnon:\t   24000 kB\nRssFile:\t   20000 kB\nThreads:\t8\n";
        let read = Resident::parse(status).unwrap();
        assert_eq!(
            (read.all, read.files, read.allocated()),
            (44032 << 10, 20000 << 10, 24032 << 10)
        );
        assert_eq!(Resident::parse("Name:\thelenus\n"), None);
    }
}
