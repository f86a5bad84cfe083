//! Writes a backup: files of blocks, then the manifest.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::manifest::hex;
use super::{BLOCK_BYTES, Entry, Error, FILE_BYTES_MAX, FILE_VERSION, FileEntry, MAGIC, MANIFEST, Manifest, io_error};
use helenus_base::permissions;

/// Entries that become one block.
#[derive(Debug, Default)]
pub struct Block(Vec<u8>);

impl Block {
    /// Adds an entry. Returns whether the block is full.
    pub fn add(&mut self, entry: Entry<'_>) -> bool {
        self.0.push(entry.kind as u8);
        for part in [entry.key, entry.value] {
            // Keys and values of a store are far shorter than 4 GB.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            self.0.extend_from_slice(&length.to_be_bytes());
            self.0.extend_from_slice(part);
        }
        self.0.len() >= BLOCK_BYTES
    }

    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A backup in the making. If it is dropped before [`Writer::finish`], the directory is no backup.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    table: usize,
    file_bytes_max: u64,
    open: Option<Open>,
    done: Vec<FileEntry>,
}

/// The open data file.
struct Open {
    name: String,
    path: PathBuf,
    file: BufWriter<File>,
    sum: Xxh3,
    bytes: u64,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Open")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Open {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(io_error("writing", &self.path))
    }
}

impl Writer {
    /// Begins a backup in a new or empty directory.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; the medium fails.
    pub fn create(directory: &Path) -> Result<Self, Error> {
        permissions::create_directory(directory).map_err(io_error("creating", directory))?;
        let mut entries = fs::read_dir(directory).map_err(io_error("listing", directory))?;
        if entries.next().is_some() {
            return Err(Error::NotEmpty {
                directory: directory.to_owned(),
            });
        }
        permissions::set_mode(directory, 0o700).map_err(io_error("protecting", directory))?;
        Ok(Self {
            directory: directory.to_owned(),
            table: 0,
            file_bytes_max: FILE_BYTES_MAX,
            open: None,
            done: Vec::new(),
        })
    }

    #[cfg(test)]
    pub(super) const fn set_file_bytes_max(&mut self, bytes: u64) {
        self.file_bytes_max = bytes;
    }

    /// Proceeds to the next table.
    pub const fn begin_table(&mut self) {
        self.table += 1;
    }

    /// Writes a block of the table.
    ///
    /// # Errors
    /// The medium fails.
    pub fn write(&mut self, block: Block) -> Result<(), Error> {
        if block.is_empty() {
            return Ok(());
        }
        if self.open.as_ref().is_some_and(|open| open.bytes >= self.file_bytes_max) {
            self.end_file()?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(begin(&self.directory, self.table, self.done.len() + 1)?),
        };
        let length = u32::try_from(block.0.len()).map_err(|error| {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            io_error("writing", &open.path)(error)
        })?;
        open.write(&length.to_be_bytes())?;
        open.write(&xxh3_64(&block.0).to_be_bytes())?;
        open.write(&block.0)
    }

    fn end_file(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let file = open
            .file
            .into_inner()
            .map_err(|error| io_error("writing", &open.path)(error.into_error()))?;
        file.sync_all().map_err(io_error("syncing", &open.path))?;
        self.done.push(FileEntry {
            name: open.name,
            bytes: open.bytes,
            xxh3: hex(open.sum.digest()),
        });
        Ok(())
    }

    /// Ends the table: its files are durable.
    ///
    /// # Errors
    /// The medium fails.
    pub fn end_table(&mut self) -> Result<Vec<FileEntry>, Error> {
        self.end_file()?;
        Ok(std::mem::take(&mut self.done))
    }

    /// Writes the manifest, and with it makes the directory a backup.
    ///
    /// # Errors
    /// The medium fails.
    pub fn finish(self, manifest: &Manifest) -> Result<(), Error> {
        let path = self.directory.join(MANIFEST);
        let text = manifest.encode(&path)?;
        let sync = || File::open(&self.directory)?.sync_all();
        // The files' names must be durable before the manifest that lists them.
        sync().map_err(io_error("syncing", &self.directory))?;
        permissions::write(&path, &text, permissions::PRIVATE).map_err(io_error("writing", &path))?;
        sync().map_err(io_error("syncing", &self.directory))?;
        let parent = self.directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(io_error("syncing", parent))
    }
}

fn begin(directory: &Path, table: usize, number: usize) -> Result<Open, Error> {
    let name = format!("table-{table}-{number}.rows");
    let path = directory.join(&name);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, permissions::PRIVATE);
    let file = options.open(&path).map_err(io_error("creating", &path))?;
    let mut open = Open {
        name,
        path,
        file: BufWriter::new(file),
        sum: Xxh3::new(),
        bytes: 0,
    };
    open.write(MAGIC)?;
    open.write(&FILE_VERSION.to_be_bytes())?;
    Ok(open)
}
