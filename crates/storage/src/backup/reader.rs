//! Reads a backup: all checksums first, then block after block.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::manifest::hex;
use super::{
    BLOCK_HEAD_BYTES, Entry, Error, FILE_VERSION, FileEntry, HEAD_BYTES, Kind, MAGIC, Manifest, PAYLOAD_BYTES_MAX,
    TableEntry, io_error,
};

/// Bytes per read if only the checksum is needed.
const PIECE_BYTES: usize = 1 << 20;

/// An open backup.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    manifest: Manifest,
}

impl Reader {
    /// Opens a backup and reads its manifest.
    ///
    /// # Errors
    /// [`Error::NoManifest`], [`Error::Version`], [`Error::Damaged`]; the medium fails.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: directory.to_owned(),
            manifest: Manifest::read(directory)?,
        })
    }

    /// Its manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads every file of it and compares lengths and checksums.
    ///
    /// # Errors
    /// [`Error::Damaged`], which names the file; the medium fails.
    pub fn verify(&self) -> Result<(), Error> {
        for file in self.manifest.tables.iter().flat_map(|table| &table.files) {
            self.verify_file(file)?;
        }
        Ok(())
    }

    fn verify_file(&self, entry: &FileEntry) -> Result<(), Error> {
        let path = self.directory.join(&entry.name);
        let damaged = |what| Error::Damaged {
            path: path.clone(),
            what,
        };
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged("it is missing")),
            Err(error) => return Err(io_error("opening", &path)(error)),
        };
        // A device could be read without end.
        if !file.metadata().map_err(io_error("reading", &path))?.is_file() {
            return Err(damaged("it is no file"));
        }
        let (mut sum, mut bytes, mut piece) = (Xxh3::new(), 0, vec![0; PIECE_BYTES]);
        loop {
            let read = file.read(&mut piece).map_err(io_error("reading", &path))?;
            let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
                break;
            };
            sum.update(read);
            bytes += read.len() as u64;
        }
        if bytes != entry.bytes {
            return Err(damaged("its length is not that of the manifest"));
        }
        if hex(sum.digest()) != entry.xxh3 {
            return Err(damaged("its checksum is not that of the manifest"));
        }
        Ok(())
    }

    /// The blocks of a table, in order.
    #[must_use]
    pub fn blocks(&self, table: &TableEntry) -> Blocks {
        let paths: Vec<PathBuf> = table.files.iter().map(|file| self.directory.join(&file.name)).collect();
        Blocks {
            paths: paths.into_iter(),
            open: None,
        }
    }
}

/// The blocks of a table, in order.
#[derive(Debug)]
pub struct Blocks {
    paths: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, BufReader<File>)>,
}

impl Blocks {
    /// The next block's payload. `None` means there are no more.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Version`]; the medium fails.
    pub fn next_block(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.paths.next() else { return Ok(None) };
                let file = open(&path)?;
                self.open = Some((path, file));
            }
            let Some((path, file)) = &mut self.open else {
                return Ok(None);
            };
            let block = block(path, file)?;
            if block.is_some() {
                return Ok(block);
            }
            self.open = None;
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(io_error("opening", path))?;
    let mut file = BufReader::new(file);
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head).map_err(io_error("reading", path))?;
    let version = head
        .strip_prefix(MAGIC.as_slice())
        .and_then(|rest| rest.try_into().ok());
    match version.map(u16::from_be_bytes) {
        Some(FILE_VERSION) => Ok(file),
        Some(version) => Err(Error::Version {
            path: path.to_owned(),
            found: version.into(),
        }),
        None => Err(Error::Damaged {
            path: path.to_owned(),
            what: "it is no file of a backup",
        }),
    }
}

/// Reads one block; `None` at the file's end.
fn block(path: &Path, file: &mut impl Read) -> Result<Option<Vec<u8>>, Error> {
    let damaged = |what| Error::Damaged {
        path: path.to_owned(),
        what,
    };
    let mut head = Vec::with_capacity(BLOCK_HEAD_BYTES);
    let read = file.take(BLOCK_HEAD_BYTES as u64).read_to_end(&mut head);
    match read.map_err(io_error("reading", path))? {
        0 => return Ok(None),
        BLOCK_HEAD_BYTES => {}
        _ => return Err(damaged("it ends within a block")),
    }
    let (length, sum) = head
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged("it ends within a block"))?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length > PAYLOAD_BYTES_MAX {
        return Err(damaged("a block is longer than any can be"));
    }
    let mut payload = Vec::new();
    let read = file.take(length as u64).read_to_end(&mut payload);
    if read.map_err(io_error("reading", path))? != length {
        return Err(damaged("it ends within a block"));
    }
    if xxh3_64(&payload).to_be_bytes() != *sum {
        return Err(damaged("a block's checksum is wrong"));
    }
    Ok(Some(payload))
}

/// The entries of a payload; an item is `None` if the bytes are no entry.
pub fn entries(payload: &[u8]) -> impl Iterator<Item = Option<Entry<'_>>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let entry = entry(&mut rest);
        if entry.is_none() {
            rest = &[];
        }
        Some(entry)
    })
}

fn entry<'a>(rest: &mut &'a [u8]) -> Option<Entry<'a>> {
    let (kind, behind) = rest.split_first()?;
    *rest = behind;
    let mut part = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (part, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        *rest = behind;
        Some(part)
    };
    Some(Entry {
        kind: Kind::of(*kind)?,
        key: part()?,
        value: part()?,
    })
}
